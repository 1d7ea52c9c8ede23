// Reading a part of a segment: which of its spans were read, and which blocks hold the edges into them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/timeline/timeline.h"
#include "traces/store/database.h"

namespace stagewright {

// Ids of the spans of some blocks by their number in the segment; memory: those blocks.
class RangeNumbers {
public:
    // In any order; a damaged file may have two blocks of one number, of which the last counts.
    void add(SpanId first, std::vector<SpanId> ids)
    {
        const auto at = std::lower_bound(m_blocks.begin(), m_blocks.end(), first,
                                         [](const Block& block, SpanId number) { return block.first < number; });
        if (at != m_blocks.end() && at->first == first)
            at->ids = std::move(ids);
        else
            m_blocks.insert(at, {first, std::move(ids)});
    }
    SpanId of(SpanId number) const // noSpan: not read
    {
        // edges into a span's neighbours follow
        if (m_last < m_blocks.size() && m_blocks[m_last].holds(number))
            return m_blocks[m_last].ids[number - m_blocks[m_last].first];
        const auto after = std::upper_bound(m_blocks.begin(), m_blocks.end(), number,
                                            [](SpanId wanted, const Block& block) { return wanted < block.first; });
        if (after == m_blocks.begin() || !(after - 1)->holds(number)) return noSpan;
        m_last = static_cast<std::size_t>(after - 1 - m_blocks.begin());
        return (after - 1)->ids[number - (after - 1)->first];
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
    struct Block {
        SpanId first;
        std::vector<SpanId> ids;
        bool holds(SpanId number) const { return number >= first && number - first < ids.size(); }
    };
    std::vector<Block> m_blocks; // by their first number
    mutable std::size_t m_last = 0;
};

// Ordinals of the edge blocks that hold edges into these spans: edges are stored by the span they lead to, so each
// range is found by halving. Looks at the start of about log(blocks) blocks a range.
Result<std::vector<std::int64_t>> edgeBlocksInto(Database& database, std::int64_t run, std::int64_t segment,
                                                 const std::vector<std::pair<SpanId, SpanId>>& ranges);

} // namespace stagewright
