#include "schedules/plan/fewer_bound.h"

#include <algorithm>

#include "schedules/plan/bound.h"
#include "schedules/plan/branch.h"
#include "schedules/plan/stretch.h"

namespace stagewright::planning {

namespace {

constexpr int numbers[] = {1, 2, 4, 8, 12, 16, 20, 24, 32, 48};
constexpr std::size_t mostStates = 200'000;
constexpr Nanos firstSteps = 32; // parts of the best objective
constexpr Nanos finestSteps = 10'000;

} // namespace

FewerBound::Part::Part(const Pipeline& all, int microbatches)
    : pipeline(withMicrobatches(all, microbatches)), low(windowBound(pipeline).value)
{
}

FewerBound::FewerBound(const Pipeline& pipeline) : m_pipeline(pipeline), m_grid(gridOf(pipeline))
{
    for (int s = 0; s < pipeline.stages(); ++s) // what a microbatch holds is never below zero
        if (pipeline.change(PassKind::Forward, s) < 0 || pipeline.change(PassKind::WeightGrad, s) > 0) return;
    for (int number : numbers)
        if (number < pipeline.microbatches) m_parts.push_back(std::make_unique<Part>(pipeline, number));
}

void FewerBound::prove(Part& part, std::int64_t work, Nanos best, const std::function<bool()>& stop)
{
    if (part.low >= part.reached) return;
    if (!part.relaxation) part.relaxation = std::make_unique<RankRelaxation>(part.pipeline, mostStates, stop);
    if (!part.relaxation->usable()) return;
    part.relaxation->limitStarts(restsOf(part.pipeline.microbatches));
    auto onGrid = [this](Nanos step) { return std::max<Nanos>(step / m_grid, 1) * m_grid; };
    part.low = (std::max(part.low, objectiveOf(part.pipeline.microbatches)) + m_grid - 1) / m_grid * m_grid;
    const Nanos least = onGrid(best / finestSteps);
    part.step = std::max(onGrid(part.step == 0 ? best / firstSteps : part.step), least);
    for (std::int64_t left = work; left > 0 && part.low < part.reached && !(stop && stop());) {
        const Nanos target = std::min(part.low + part.step, part.reached) - m_grid;
        const Branching result = branch(part.pipeline, *part.relaxation, target, left, stop);
        left -= std::max<std::int64_t>(result.work, 1);
        m_nodes += result.nodes;
        if (result.outcome == Branching::Outcome::Refuted) {
            part.low = target + m_grid;
            part.step = onGrid(2 * part.step);
        } else if (result.outcome == Branching::Outcome::Solved) {
            part.reached = target;
            part.step = onGrid((part.reached - part.low) / 2);
        } else if (part.step > least) {
            part.step = std::max(least, onGrid(part.step / 2));
        }
    }
}

void FewerBound::prove(std::int64_t work, Nanos best, const std::function<bool()>& stop)
{
    for (const auto& part : m_parts)
        if (!(stop && stop())) prove(*part, work, best, stop);
}

Nanos FewerBound::objectiveOf(int microbatches) const
{
    Nanos out = 0;
    for (const auto& part : m_parts) {
        const int more = microbatches - part->pipeline.microbatches;
        if (more >= 0) out = std::max(out, more * m_pipeline.time(PassKind::Forward, 0) + part->low);
    }
    return out;
}

std::vector<Nanos> FewerBound::restsOf(int microbatches) const
{
    std::vector<Nanos> out;
    out.reserve(static_cast<std::size_t>(microbatches));
    for (int k = 0; k < microbatches; ++k) out.push_back(k == 0 ? 0 : objectiveOf(microbatches - k));
    return out;
}

} // namespace stagewright::planning
