// Where a head's columns are in a packed matrix, and which segments of keys a block of queries sees: shared by
// attention in fp32 and bf16.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "engine/device/math.h"
#include "engine/layers/attention_sizes.h"

namespace stagewright::cpu {

// The offset, in elements, of a head's first column in a matrix of (batch · tokens) rows.
class HeadPlace {
public:
    HeadPlace(const AttentionShape& shape, int sample, int head)
        : m_column(static_cast<std::size_t>(head) * static_cast<std::size_t>(shape.headWidth())),
          m_sample(static_cast<std::size_t>(sample))
    {
    }
    std::size_t operator()(int tokens, int stride, int row = 0) const
    {
        return (m_sample * static_cast<std::size_t>(tokens) + static_cast<std::size_t>(row)) *
                   static_cast<std::size_t>(stride) +
               m_column;
    }

private:
    std::size_t m_column;
    std::size_t m_sample;
};

// f(segment index, first key, keys) for the segments that a block sees; keys > 0.
template <typename Visit>
void forSegments(std::span<const layers::KeySegment> segments, int keys, Visit&& visit)
{
    int first = 0;
    for (std::size_t s = 0; s < segments.size() && first < keys; ++s) {
        visit(s, first, std::min(segments[s].tokens, keys - first));
        first += segments[s].tokens;
    }
}

} // namespace stagewright::cpu
