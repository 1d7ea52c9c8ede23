// Which spans are one collective of several ranks, and who entered it last. An import ties them: an edge goes from the
// span that started last to each of the others.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

// How a rank's span divides: until the last rank enters it waits, from then on bytes move. Both are within it: 0 and all
// of it for the last rank, all of it and 0 where it ended before (clocks that are not aligned, or a broadcast whose
// source has gone on).
struct CollectiveParts {
    Nanos waiting = 0;
    Nanos transfer = 0;
    SpanId last = noSpan; // of the rank that entered last
    int ranks = 0;        // that are in the traces
};

// One span's, without the others'; nothing where no other rank's side is known.
std::optional<CollectiveParts> collectivePartsOf(const Timeline& timeline, SpanId span); // O(ranks)
// How long the other ranks together wait for the span's rank, which entered last: 0 for any other span. O(ranks).
Nanos othersWaitFor(const Timeline& timeline, SpanId span);

class CollectiveGroups {
public:
    explicit CollectiveGroups(const Timeline& timeline); // O(edges × log)
    // Nothing where no other rank's side is known.
    std::optional<CollectiveParts> of(SpanId span) const; // O(log)
    // By the span of the rank that entered last: those of the others.
    const std::map<SpanId, std::vector<SpanId>>& byLast() const { return m_others; }

private:
    const Timeline& m_timeline;
    std::map<SpanId, std::vector<SpanId>> m_others;
    std::map<SpanId, SpanId> m_lastOf;
};

// Fact of an imported run: how many of its collectives lack ranks of their group. Empty or "0": none does.
inline constexpr std::string_view collectivesLackingRanks = "collectives_lacking_ranks";

// What the rate of bytes is multiplied with, so that it compares with the links' speed whatever the number of ranks, as
// nccl-tests (doc/PERFORMANCE.md) defines bus bandwidth for sizes that are the larger of a rank's input and output:
// 2 (n − 1) ÷ n for an all-reduce, (n − 1) ÷ n for gathers, scatters and exchanges, 1 for a broadcast or reduction to
// one. Nothing for operations of other names.
std::optional<double> busFactor(std::string_view operation, int ranks);

} // namespace stagewright
