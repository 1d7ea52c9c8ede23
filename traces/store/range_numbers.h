// Reading a part of a segment: which of its spans were read, and which blocks hold the edges into them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/timeline/timeline.h"
#include "traces/store/database.h"

namespace stagewright {

// Ids of the spans of some blocks by their number in the segment; memory: those blocks.
class RangeNumbers {
public:
    void add(SpanId first, std::vector<SpanId> ids) { m_blocks[first] = std::move(ids); }
    SpanId of(SpanId number) const // noSpan: not read
    {
        auto after = m_blocks.upper_bound(number);
        if (after == m_blocks.begin()) return noSpan;
        --after;
        const std::size_t at = number - after->first;
        return at < after->second.size() ? after->second[at] : noSpan;
    }
    // The numbers, as [first, last): neighbours joined.
    std::vector<std::pair<SpanId, SpanId>> ranges() const
    {
        std::vector<std::pair<SpanId, SpanId>> out;
        for (const auto& [first, ids] : m_blocks) {
            const SpanId last = first + static_cast<SpanId>(ids.size());
            if (!out.empty() && out.back().second >= first)
                out.back().second = std::max(out.back().second, last);
            else
                out.emplace_back(first, last);
        }
        return out;
    }

private:
    std::map<SpanId, std::vector<SpanId>> m_blocks; // by their first number
};

// Ordinals of the edge blocks that hold edges into these spans: edges are stored by the span they lead to, so each range is found by halving. Looks
// at the start of about log(blocks) blocks a range.
Result<std::vector<std::int64_t>> edgeBlocksInto(Database& database, std::int64_t run, std::int64_t segment, const std::vector<std::pair<SpanId, SpanId>>& ranges);

} // namespace stagewright
