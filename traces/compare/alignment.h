// Two steps side by side: which op of one run corresponds to which of the other. Runs of replicas with as many pipeline
// ranks are aligned replica by replica, microbatches counted within each.
#pragma once

#include <string>
#include <vector>

#include "traces/compare/compare.h"
#include "traces/step/step_ops.h"

namespace stagewright {

class Alignment {
public:
    Alignment(const Timeline& a, int stepA, const Timeline& b, int stepB);

    const StepOps& opsA() const { return m_a; }
    const StepOps& opsB() const { return m_b; }
    // One entry per op of either run, by rank and A's order, those of B alone last.
    const std::vector<OpDelta>& ops() const { return m_ops; }
    // The partner in the other run, noSpan if none.
    SpanId partnerOfA(SpanId a) const;
    SpanId partnerOfB(SpanId b) const;
    std::size_t onlyInA() const { return m_onlyA; }
    std::size_t onlyInB() const { return m_onlyB; }
    // A full backward of one run is aligned with the input gradient of the other.
    bool splitsBackward() const { return m_splits; }

    // Ops of B that precede `b` on its rank though A runs them after b's partner, in B's order.
    std::vector<SpanId> broughtForward(SpanId b) const;
    // Ops of A that precede `a` on its rank though B runs them after a's partner, in A's order.
    std::vector<SpanId> putOff(SpanId a) const;

private:
    std::vector<SpanId> passed(const StepOps& ops, const Timeline& timeline, SpanId id, const StepOps& otherOps,
                               const Timeline& other, const std::vector<SpanId>& partners) const;

    const Timeline& m_timelineA;
    const Timeline& m_timelineB;
    StepOps m_a;
    StepOps m_b;
    std::vector<OpDelta> m_ops;
    std::vector<SpanId> m_partnerOfA; // by span of A, noSpan: none
    std::vector<SpanId> m_partnerOfB;
    std::size_t m_onlyA = 0;
    std::size_t m_onlyB = 0;
    bool m_splits = false;
};

} // namespace stagewright
