#include "schedules/model/activation.h"

#include <algorithm>

#include "schedules/model/kinds.h"
#include "schedules/model/partial_backward.h"

namespace stagewright {

ActivationRule::ActivationRule(const Schedule& schedule, const CostModel& costs, Unheld unheld)
    : m_costs(costs), m_microbatches(schedule.microbatches)
{
    m_sliceStarts = sliceStartsOf(schedule);
    for (const auto& ops : schedule.order)
        for (const Op& op : ops) {
            if (!isRecompute(op.kind)) continue;
            if (m_recomputed.empty())
                m_recomputed.assign(
                    static_cast<std::size_t>(schedule.stages) * static_cast<std::size_t>(m_microbatches), 0);
            for (int k = 0; k < op.count; ++k)
                if (cellOf(op, k) < m_recomputed.size()) m_recomputed[cellOf(op, k)] = 1;
        }
    setSizes(schedule);
    leaveOutCut(schedule);
    if (unheld == Unheld::LeftOut) leaveOutUnheld(schedule);
}

void ActivationRule::setSizes(const Schedule& schedule)
{
    if (m_costs.sizes.empty() && !m_costs.hasRelativeSizes()) return;
    for (int stage = 0; stage < std::min(schedule.stages, m_costs.stages()); ++stage)
        for (int j = 0; j < m_microbatches; ++j) m_sized.push_back(m_costs.memoryOf(schedule, stage, j));
}

// What lies below a replica's cut keeps nothing.
void ActivationRule::leaveOutCut(const Schedule& schedule)
{
    const std::vector<int> first = firstStagesBack(schedule);
    if (std::all_of(first.begin(), first.end(), [](int stage) { return stage == 0; })) return;
    m_leftOut.assign(static_cast<std::size_t>(schedule.stages) * static_cast<std::size_t>(m_microbatches), 0);
    for (int stage = 0; stage < schedule.stages; ++stage)
        for (int j = 0; j < m_microbatches; ++j)
            if (stage < first[static_cast<std::size_t>(schedule.replicaOf(schedule.placement.rankOf(stage, j)))])
                m_leftOut[static_cast<std::size_t>(stage) * static_cast<std::size_t>(m_microbatches) +
                          static_cast<std::size_t>(j)] = 1;
}

void ActivationRule::leaveOutUnheld(const Schedule& schedule)
{
    std::vector<Bytes> held(static_cast<std::size_t>(schedule.stages) * static_cast<std::size_t>(m_microbatches), 0);
    std::vector<char> out = m_leftOut;
    out.resize(held.size(), 0);
    std::vector<char> run(held.size(), 0); // the forward has been
    bool any = false;
    for (const auto& ops : schedule.order)
        for (const Op& op : ops)
            for (int k = 0; k < op.count; ++k) {
                const std::size_t cell = cellOf(op, k);
                if (cell >= held.size() || op.stage >= m_costs.memory.size()) continue;
                if (isForward(op.kind)) run[cell] = 1;
                Bytes& now = held[cell];
                now += deltaOf(op, k);
                // Costs by which I frees more than the whole, or whose stage inputs are larger, go below zero on their
                // own.
                const StageMemory& memory = m_costs.memory[op.stage];
                const bool odd = memory.freedAtInput > memory.activation || memory.boundary > memory.activation;
                if (now >= 0 || (odd && run[cell] != 0)) continue;
                out[cell] = 1;
                any = true;
            }
    if (any) m_leftOut = std::move(out);
}

Bytes ActivationRule::part(Bytes whole, const Op& op) const
{
    if (op.slice >= 0) whole = shareOfSlice(whole, m_sliceStarts, op.slice);
    if (op.half == 1) return whole / 2;
    return op.half == 2 ? whole - whole / 2 : whole;
}

Bytes ActivationRule::deltaOf(const Op& op, int k) const
{
    const KindTraits& rule = ruleOf(op.kind);
    if (rule.memory.size() == 0 || op.stage >= m_costs.memory.size()) return 0;
    if (!m_leftOut.empty() && cellOf(op, k) < m_leftOut.size() && m_leftOut[cellOf(op, k)] != 0) return 0;
    const StageMemory& memory =
        op.microbatch >= 0 && cellOf(op, k) < m_sized.size() ? m_sized[cellOf(op, k)] : m_costs.memory[op.stage];
    Bytes delta = 0;
    for (const MemoryEffect& effect : rule.memory) {
        if (effect.category != MemoryCategory::Activations) continue;
        const bool recomputed = !m_recomputed.empty() && effect.share == MemoryShare::Activation &&
                                cellOf(op, k) < m_recomputed.size() && m_recomputed[cellOf(op, k)] != 0;
        const Bytes bytes = recomputed ? memory.boundary : shareOf(memory, effect.share);
        delta += effect.takes ? bytes : -bytes;
    }
    return op.slice < 0 && op.half == 0 ? delta : part(delta, op);
}

std::vector<Bytes> peaksOf(const Schedule& schedule, const ActivationRule& rule)
{
    std::vector<Bytes> peaks;
    for (const auto& ops : schedule.order) {
        Bytes held = 0;
        Bytes peak = 0;
        for (const Op& op : ops) {
            for (int k = 0; k < op.count; ++k) held += rule.deltaOf(op, k);
            peak = std::max(peak, held);
        }
        peaks.push_back(peak);
    }
    return peaks;
}

} // namespace stagewright
