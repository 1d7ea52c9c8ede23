// Watchdog: notices that no rank gets on, and says who waits for what.
#pragma once

#include <optional>

#include "engine/run_state.h"

namespace stagewright {

class Watchdog
{
public:
    Watchdog(const RunState& state, Nanos timeout);
    // Called now and then; an Error once nothing has changed for the time-out.
    std::optional<Error> look(Nanos now);

private:
    const RunState& m_state;
    Nanos m_timeout;
    Nanos m_lastChange;
    std::uint64_t m_progress = 0;
};

} // namespace stagewright
