#include "schedules/cost_model.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stagewright {

Nanos Links::delay(int fromRank, int toRank, Bytes bytes) const
{
    if (fromRank == toRank) return 0;
    const Link* link = &all;
    if (!overrides.empty()) {
        if (auto found = overrides.find({fromRank, toRank}); found != overrides.end()) link = &found->second;
    }
    if (link->bytesPerSecond <= 0 || bytes == 0) return link->latency;
    return link->latency + std::llround(static_cast<double>(bytes) / link->bytesPerSecond * 1e9);
}

CostModel::CostModel(int stages, CostSource from) : memory(static_cast<std::size_t>(std::max(stages, 0))), source(from)
{
}

CostModel CostModel::uniform(const Schedule& schedule, const UnitCosts& costs)
{
    CostModel model(schedule.stages, CostSource::Uniform);
    model.timeUnit = rankShare;
    model.memoryUnit = activationShare;
    // A stage is ranks / stages of one rank's share, also where a stage has several copies.
    const double part = schedule.stages > 0 ? static_cast<double>(schedule.ranks) / schedule.stages : 1.0;
    auto nanos = [part](double units) { return static_cast<Nanos>(std::llround(units * part * rankShare)); };
    const Nanos inputGrad = nanos(costs.inputGrad);
    const Nanos weightGrad = nanos(costs.weightGrad);
    for (int s = 0; s < schedule.stages; ++s) {
        model.setDuration(OpKind::Forward, s, nanos(costs.forward));
        model.setDuration(OpKind::InputGrad, s, inputGrad);
        model.setDuration(OpKind::WeightGrad, s, weightGrad);
        model.setDuration(OpKind::Backward, s, costs.backward < 0 ? inputGrad + weightGrad : nanos(costs.backward));
        model.setDuration(OpKind::Recompute, s, nanos(costs.forward));
        model.setDuration(OpKind::Optimizer, s, nanos(costs.optimizer));
        StageMemory& memory = model.memory[static_cast<std::size_t>(s)];
        memory.activation = std::llround(part * activationShare);
        memory.freedAtInput = std::llround(costs.freedAtInput * static_cast<double>(memory.activation));
    }
    model.sliceStarts = sliceStartsOf(schedule);
    model.links.all.latency = std::llround(costs.latency * rankShare);
    model.origin = fmt::format("F={}, I={}, W={}", costs.forward, costs.inputGrad, costs.weightGrad);
    if (costs.backward >= 0) model.origin += fmt::format(", B={}", costs.backward);
    if (costs.optimizer > 0) model.origin += fmt::format(", OPT={}", costs.optimizer);
    if (costs.latency > 0) model.origin += fmt::format(", latency={}", costs.latency);
    if (costs.freedAtInput > 0) model.origin += fmt::format(", freed at I={}", costs.freedAtInput);
    return model;
}

Nanos CostModel::duration(const Op& op, int rank) const
{
    if (op.kind == OpKind::Filler) return op.delay;
    Nanos whole = duration(op.kind, op.stage, rank);
    if (op.slice >= 0) whole = shareOfSlice(whole, sliceStarts, op.slice);
    whole *= op.count;
    if (op.half == 0) return whole;
    return op.half == 1 ? whole / 2 : whole - whole / 2; // both halves together take the whole
}

Nanos CostModel::duration(OpKind kind, int stage, int rank) const
{
    if (!m_onRank.empty()) {
        if (auto found = m_onRank.find({kind, stage, rank}); found != m_onRank.end()) return found->second;
    }
    const auto& byStage = m_byStage[static_cast<std::size_t>(kind)];
    const auto index = static_cast<std::size_t>(stage);
    return index < byStage.size() ? byStage[index] : 0;
}

void CostModel::setDuration(OpKind kind, int stage, Nanos duration)
{
    auto& byStage = m_byStage[static_cast<std::size_t>(kind)];
    const auto index = static_cast<std::size_t>(stage);
    if (byStage.size() <= index) byStage.resize(std::max(index + 1, memory.size()), 0);
    byStage[index] = duration;
}

void CostModel::setDuration(OpKind kind, int stage, int rank, Nanos duration)
{
    m_onRank[{kind, stage, rank}] = duration;
}

} // namespace stagewright
