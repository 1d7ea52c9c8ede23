#include "traces/compare/alignment.h"

#include <algorithm>

#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

// The lowest microbatch of each replica: replicas number theirs on, and two runs may share the batch out differently.
struct ReplicaStarts {
    int pipelineRanks = 0;  // 0: not of whole replicas
    std::vector<int> first; // by replica

    ReplicaStarts(const Timeline& timeline, const StepOps& ops)
    {
        const Schedule* schedule = timeline.schedule().get();
        const int replicas =
            schedule != nullptr && schedule->ranks == ops.ranks() ? std::max(1, schedule->replicas) : 1;
        pipelineRanks = ops.ranks() / replicas;
        first.assign(static_cast<std::size_t>(replicas), -1);
        for (int rank = 0; rank < ops.ranks() && pipelineRanks > 0; ++rank) {
            int& lowest = first[static_cast<std::size_t>(rank / pipelineRanks)];
            for (const SpanId id : ops.busy(rank)) {
                const int microbatch = timeline.spans()[id].op.microbatch;
                if (microbatch >= 0 && (lowest < 0 || microbatch < lowest)) lowest = microbatch;
            }
        }
    }
    int of(int rank) const { return std::max(0, first[static_cast<std::size_t>(rank / pipelineRanks)]); }
};

} // namespace

Alignment::Alignment(const Timeline& a, int stepA, const Timeline& b, int stepB)
    : m_timelineA(a), m_timelineB(b), m_a(a, stepA), m_b(b, stepB), m_partnerOfA(a.spans().size(), noSpan),
      m_partnerOfB(b.spans().size(), noSpan)
{
    const ReplicaStarts startsA(a, m_a), startsB(b, m_b);
    const bool byReplica = startsA.pipelineRanks > 0 && startsA.pipelineRanks == startsB.pipelineRanks &&
                           (startsA.first.size() > 1 || startsB.first.size() > 1);
    // in B, on the same rank of the same replica, its microbatch counted within that
    const auto partner = [&](Op op, int rank) {
        if (byReplica && rank < m_b.ranks() && op.microbatch >= 0) op.microbatch += startsB.of(rank) - startsA.of(rank);
        const SpanId found = m_b.find(op);
        return found != noSpan && m_b.rankOf(found) == rank && m_partnerOfB[found] == noSpan ? found : noSpan;
    };
    const auto kept = [](const Timeline& timeline, SpanId id) {
        return (timeline.spans()[id].flags & SpanDiscarded) == 0;
    };
    for (int rank = 0; rank < m_a.ranks(); ++rank) {
        for (const SpanId id : m_a.busy(rank)) {
            if (!kept(a, id)) continue;
            const Span& span = a.spans()[id];
            SpanId other = partner(span.op, rank);
            if (other == noSpan && isReturn(span.op.kind)) {
                Op alike = span.op;
                alike.kind = otherReturn(span.op.kind);
                other = partner(alike, rank);
                m_splits = m_splits || other != noSpan;
            }
            OpDelta delta{span.op, rank, id, other, 0, 0};
            if (other == noSpan) {
                ++m_onlyA;
            } else {
                m_partnerOfA[id] = other;
                m_partnerOfB[other] = id;
                const Span& beside = b.spans()[other];
                delta.startDelta = (beside.start - m_b.windowBegin()) - (span.start - m_a.windowBegin());
                delta.durationDelta = beside.duration() - span.duration();
            }
            m_ops.push_back(delta);
        }
    }
    for (int rank = 0; rank < m_b.ranks(); ++rank) {
        for (const SpanId id : m_b.busy(rank)) {
            if (!kept(b, id) || m_partnerOfB[id] != noSpan) continue;
            m_ops.push_back({b.spans()[id].op, rank, noSpan, id, 0, 0});
            ++m_onlyB;
        }
    }
}

SpanId Alignment::partnerOfA(SpanId a) const { return a == noSpan ? noSpan : m_partnerOfA[a]; }

SpanId Alignment::partnerOfB(SpanId b) const { return b == noSpan ? noSpan : m_partnerOfB[b]; }

std::vector<SpanId> Alignment::broughtForward(SpanId b) const
{
    return passed(m_b, m_timelineB, b, m_a, m_timelineA, m_partnerOfB);
}

std::vector<SpanId> Alignment::putOff(SpanId a) const
{
    return passed(m_a, m_timelineA, a, m_b, m_timelineB, m_partnerOfA);
}

std::vector<SpanId> Alignment::passed(const StepOps& ops, const Timeline& timeline, SpanId id, const StepOps& otherOps,
                                      const Timeline& other, const std::vector<SpanId>& partners) const
{
    std::vector<SpanId> moved;
    const SpanId beside = partners[id];
    if (beside == noSpan) return moved;
    for (const SpanId before : ops.busy(ops.rankOf(id))) {
        if (timeline.spans()[before].start >= timeline.spans()[id].start) break;
        SpanId there = partners[before];
        // a weight gradient that is part of a full backward in the other run is placed with that
        if (there == noSpan && isWeightGrad(timeline.spans()[before].op.kind)) {
            there = otherOps.find(asBackward(timeline.spans()[before].op));
        }
        if (there != noSpan && otherOps.rankOf(there) == otherOps.rankOf(beside) &&
            other.spans()[there].start > other.spans()[beside].start)
            moved.push_back(before);
    }
    return moved;
}

} // namespace stagewright
