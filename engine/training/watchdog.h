// Watchdog: notices that no rank makes progress, and says who waits for what. Emulated links and delays of the schedule
// delay ranks on purpose: on the wall clock the longest of them is added to the time-out. Only time that the watchdog
// itself was awake counts, so that a stopped or starved process does not look like a hang.
#pragma once

#include <optional>

#include "engine/training/training_state.h"

namespace stagewright {

class Watchdog {
public:
    Watchdog(const TrainingState& state, Nanos timeout);
    // Called at least ten times per time-out; an Error once nothing has changed for the time-out.
    std::optional<Error> look(Nanos now);
    // Why, after look() gave an error: from the ranks' flight logs, with the way out where the lists themselves hang
    // so.
    const Deadlock& stall() const { return m_stall; }

private:
    const TrainingState& m_state;
    Nanos m_timeout;
    Deadlock m_stall;
    Nanos m_longestPause; // on purpose
    Nanos m_lastLook;
    Nanos m_still = 0; // without a change
    std::uint64_t m_progress = 0;
};

} // namespace stagewright
