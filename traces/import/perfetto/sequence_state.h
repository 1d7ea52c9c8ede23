// What a sequence of packets has said so far, and what its events refer to by number: names (InternedData), clocks, the
// default track. Cleared where a packet says so.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "schedules/base/units.h"
#include "traces/foreign/foreign_trace.h"

namespace stagewright {

class PerfettoSequence {
public:
    // Fields of InternedData. Texts get their number in `texts`. Throws protozero::exception where it is damaged.
    void intern(std::string_view data, NameTable& texts);
    void clear(); // all but clocks

    std::optional<std::uint32_t> name(std::uint64_t iid) const { return find(m_names, iid); }
    std::optional<std::uint32_t> category(std::uint64_t iid) const { return find(m_categories, iid); }
    std::optional<std::uint32_t> noteName(std::uint64_t iid) const { return find(m_noteNames, iid); }
    std::optional<std::uint32_t> noteText(std::uint64_t iid) const { return find(m_noteTexts, iid); }
    std::optional<std::uint32_t> gpuSpecification(std::uint64_t iid) const { return find(m_specifications, iid); }
    struct GpuCounters {
        int gpu = 0;
        std::map<std::uint64_t, std::string> names; // by the counter's id
    };
    const GpuCounters* gpuCounters(std::uint64_t iid) const;
    static void readCounterNames(std::string_view descriptor, GpuCounters& to);

    std::uint64_t defaultTrack = 0;
    std::uint32_t defaultClock = 0; // 0: the trace's
    struct Clock {
        Nanos offset = 0; // of the trace's clock − this one, at a multiplier of 1
        std::int64_t multiplier = 1;
        bool incremental = false;
        std::int64_t last = 0; // of an incremental one, in its unit
    };
    std::map<std::uint32_t, Clock> clocks; // 64 to 127, which are a sequence's own

private:
    using Table = std::unordered_map<std::uint64_t, std::uint32_t>; // iid → number of the text
    static std::optional<std::uint32_t> find(const Table& table, std::uint64_t iid)
    {
        const auto found = table.find(iid);
        return found == table.end() ? std::nullopt : std::optional(found->second);
    }
    Table m_names, m_categories, m_noteNames, m_noteTexts, m_specifications;
    std::map<std::uint64_t, GpuCounters> m_counters;
};

} // namespace stagewright
