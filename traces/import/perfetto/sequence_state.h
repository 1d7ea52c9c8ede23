// What a sequence of packets has said so far, and what its events refer to by number: names (InternedData), clocks, the
// default track. Cleared where a packet says so.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "schedules/base/units.h"
#include "traces/foreign/foreign_trace.h"

namespace stagewright {

class PerfettoSequence {
public:
    // Fields of InternedData. Texts get their number in `texts`. Throws protozero::exception where it is damaged.
    void intern(std::string_view data, NameTable& texts);
    void clear(); // all but clocks

    std::optional<std::uint32_t> name(std::uint64_t iid) const { return m_names.find(iid); }
    std::optional<std::uint32_t> category(std::uint64_t iid) const { return m_categories.find(iid); }
    std::optional<std::uint32_t> noteName(std::uint64_t iid) const { return m_noteNames.find(iid); }
    std::optional<std::uint32_t> noteText(std::uint64_t iid) const { return m_noteTexts.find(iid); }
    std::optional<std::uint32_t> gpuSpecification(std::uint64_t iid) const { return m_specifications.find(iid); }
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
    // iid → number of the text; small ones, which most writers have, by index
    class Table {
    public:
        void set(std::uint64_t iid, std::uint32_t text)
        {
            if (iid >= most) {
                m_others[iid] = text;
                return;
            }
            if (iid >= m_small.size()) m_small.resize(static_cast<std::size_t>(iid) + 1, none);
            m_small[static_cast<std::size_t>(iid)] = text;
        }
        std::optional<std::uint32_t> find(std::uint64_t iid) const
        {
            if (iid < m_small.size())
                return m_small[static_cast<std::size_t>(iid)] == none
                           ? std::nullopt
                           : std::optional(m_small[static_cast<std::size_t>(iid)]);
            const auto found = m_others.find(iid);
            return found == m_others.end() ? std::nullopt : std::optional(found->second);
        }
        void clear()
        {
            m_small.clear();
            m_others.clear();
        }

    private:
        static constexpr std::uint64_t most = 1 << 16;
        static constexpr std::uint32_t none = 0xffffffffu;
        std::vector<std::uint32_t> m_small;
        std::unordered_map<std::uint64_t, std::uint32_t> m_others;
    };
    Table m_names, m_categories, m_noteNames, m_noteTexts, m_specifications;
    std::map<std::uint64_t, GpuCounters> m_counters;
};

} // namespace stagewright
