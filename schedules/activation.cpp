#include "schedules/activation.h"

#include <algorithm>

#include "schedules/kinds.h"

namespace stagewright {

ActivationRule::ActivationRule(const Schedule& schedule, const CostModel& costs)
    : m_costs(costs), m_microbatches(schedule.microbatches)
{
    m_sliceStarts = sliceStartsOf(schedule);
    for (const auto& ops : schedule.order)
        for (const Op& op : ops) {
            if (op.kind != OpKind::Recompute) continue;
            if (m_recomputed.empty())
                m_recomputed.assign(
                    static_cast<std::size_t>(schedule.stages) * static_cast<std::size_t>(m_microbatches), 0);
            for (int k = 0; k < op.count; ++k)
                m_recomputed[static_cast<std::size_t>(op.stage) * static_cast<std::size_t>(m_microbatches) +
                             static_cast<std::size_t>(op.microbatch + k)] = 1;
        }
}

Bytes ActivationRule::part(Bytes whole, const Op& op) const
{
    if (op.slice >= 0) whole = shareOfSlice(whole, m_sliceStarts, op.slice);
    if (op.half == 1) return whole / 2;
    return op.half == 2 ? whole - whole / 2 : whole;
}

Bytes ActivationRule::deltaOf(const Op& op, int k) const
{
    const KindRule& rule = ruleOf(op.kind);
    if (!rule.holdsActivation && !rule.freesInputPart && !rule.freesRemainder) return 0;
    if (op.stage >= m_costs.memory.size()) return 0;
    const StageMemory& memory = m_costs.memory[op.stage];
    Bytes delta = 0;
    if (rule.holdsActivation) {
        delta = memory.activation;
        if (!m_recomputed.empty()) {
            const auto cell = static_cast<std::size_t>(op.stage) * static_cast<std::size_t>(m_microbatches) +
                              static_cast<std::size_t>(op.microbatch + k);
            const bool recomputed = m_recomputed[cell] != 0;
            if (op.kind == OpKind::Recompute)
                delta = memory.activation - memory.boundary;
            else if (recomputed)
                delta = memory.boundary;
        }
    }
    if (rule.freesInputPart) delta -= memory.freedAtInput;
    if (rule.freesRemainder) delta -= memory.activation - memory.freedAtInput;
    return op.slice < 0 && op.half == 0 ? delta : part(delta, op);
}

} // namespace stagewright
