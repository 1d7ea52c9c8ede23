// Clocks of a trace: what a ClockSnapshot ties to each other, and a packet's time on the trace's clock, which is the boot
// time's or what the first snapshot says of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "schedules/base/units.h"
#include "traces/import/perfetto/sequence_state.h"

namespace stagewright {

class PerfettoClocks {
public:
    // A ClockSnapshot; clocks 64 to 127 are the sequence's own. True: it is the first that says the epoch. Throws
    // protozero::exception where it is damaged.
    bool take(std::string_view snapshot, PerfettoSequence& sequence);
    // clock 0: the trace's. Empty: no possible time. One that no snapshot ties to the trace's stays as it is, and counts.
    std::optional<Nanos> timeOf(std::uint64_t time, std::uint32_t clock, PerfettoSequence& sequence);

    std::optional<Nanos> epoch() const { return m_epoch; } // of the trace's clock, since 1970
    bool allKnown() const { return m_unknown.empty(); }
    std::int64_t eventsOfUnknown() const { return m_ofUnknown; }

private:
    std::map<std::uint32_t, PerfettoSequence::Clock> m_clocks;
    std::set<std::uint32_t> m_unknown;
    std::int64_t m_ofUnknown = 0;
    std::optional<Nanos> m_epoch;
};

} // namespace stagewright
