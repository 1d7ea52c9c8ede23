// Placement: (stage, microbatch) → rank, as data. Loop, V, zigzag and bidirectional placements are all tables.
// A stage may have several copies on different ranks whose microbatch ranges are disjoint (microbatches are numbered
// globally: down 0 … m/2−1, up m/2 … m−1).
#pragma once

#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

class Placement {
public:
    // One copy of a stage: rank holds it for microbatches firstMicrobatch … (next copy's first) − 1.
    struct Copy {
        int firstMicrobatch = 0;
        int rank = 0;
        bool operator==(const Copy&) const = default;
    };

    Placement() = default;
    static Placement loop(int ranks, int stages);                // stage s → rank s mod p
    static Placement vShape(int ranks);                          // 2p stages: s < p → s, else 2p−1−s
    static Placement zigzag(int ranks, int stages);              // chunk even → s mod p, odd → p−1−(s mod p)
    static Placement bidirectional(int ranks, int microbatches); // down: s → s, up (from m/2): s → p−1−s
    static Placement of(std::vector<std::vector<Copy>> copiesByStage);
    static Placement of(const std::vector<int>& rankByStage);

    int stages() const { return static_cast<int>(m_copies.size()); }
    int rankOf(int stage, int microbatch) const; // microbatch −1: the first copy's rank
    const std::vector<Copy>& copiesOf(int stage) const { return m_copies[static_cast<std::size_t>(stage)]; }
    std::vector<int> stagesOf(int rank) const; // ascending
    // n-th stage of its rank (the chunk index of the papers); 0 where the rank holds one stage.
    int chunkOf(int stage, int rank) const;
    bool hasCopies() const; // any stage on more than one rank

    bool operator==(const Placement&) const = default;

private:
    std::vector<std::vector<Copy>> m_copies; // by stage, ascending firstMicrobatch, first is 0
};

} // namespace stagewright
