#include "engine/training/weight_versions.h"

#include <algorithm>

namespace stagewright {

namespace {

constexpr int newest = -1;
constexpr int predicted = 0x7fffffff; // a version of its own, there while F runs

} // namespace

void WeightVersions::select(StageModel& model, int version)
{
    if (version == m_selected) return;
    model.useVersion(version);
    m_selected = version;
}

void WeightVersions::keep(StageModel& model, int version)
{
    model.keepVersion(version);
    m_kept[version] = true;
}

void WeightVersions::drop(StageModel& model, int version)
{
    if (m_kept.erase(version) == 0) return;
    if (m_selected == version) select(model, newest);
    model.dropVersion(version);
}

void WeightVersions::before(const PlannedOp& planned, StageModel& model)
{
    const Op& op = planned.op;
    switch (m_rule) {
    case WeightRule::Synchronous: return;
    case WeightRule::Stashed:
        if (isForward(op.kind)) {
            m_inFlight[op.microbatch] = m_updates;
            select(model, newest);
        } else {
            const int version = m_inFlight.at(op.microbatch);
            select(model, m_kept.contains(version) ? version : newest);
        }
        return;
    case WeightRule::TwoVersions: select(model, m_delayed); return;
    case WeightRule::Predicted:
        // Also if there is nothing to predict yet: the layers note the direction of updates from the first call on.
        if (isForward(op.kind) && planned.predicts && (planned.predictedUpdates > 0 || m_updates == 0)) {
            model.keepPredicted(predicted, m_optimizer, m_updates, planned.predictedUpdates);
            select(model, predicted);
        }
        return;
    }
}

void WeightVersions::after(const PlannedOp& planned, StageModel& model)
{
    const Op& op = planned.op;
    if (m_rule == WeightRule::Predicted && m_selected == predicted) {
        select(model, newest);
        model.dropVersion(predicted);
    }
    if (m_rule != WeightRule::Stashed || !makesWeightGradient(op.kind)) return;
    const int version = m_inFlight.at(op.microbatch);
    m_inFlight.erase(op.microbatch);
    const bool stillUsed = std::any_of(m_inFlight.begin(), m_inFlight.end(),
                                       [version](const auto& other) { return other.second == version; });
    if (!stillUsed) drop(model, version);
}

void WeightVersions::resume(int updates, bool delayed)
{
    m_updates = updates;
    if (m_rule != WeightRule::TwoVersions || !delayed || updates == 0) return;
    m_delayed = updates - 1;
    m_kept[m_delayed] = true;
}

void WeightVersions::step(StageModel& model)
{
    if (m_rule == WeightRule::Stashed) {
        select(model, newest);
        const bool used = std::any_of(m_inFlight.begin(), m_inFlight.end(),
                                      [this](const auto& one) { return one.second == m_updates; });
        if (used) keep(model, m_updates);
    }
    if (m_rule == WeightRule::TwoVersions) {
        select(model, newest);
        drop(model, m_delayed); // first, so that there are never three
        keep(model, m_updates);
        m_delayed = m_updates;
    }
    ++m_updates;
    model.optimizerStep(m_optimizer, m_updates, 1.0f);
    model.zeroGradients();
}

} // namespace stagewright
