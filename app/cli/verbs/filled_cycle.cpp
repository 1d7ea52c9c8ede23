#include "app/cli/verbs/filled_cycle.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "app/cli/session.h"
#include "app/cli/text/figures.h"
#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "traces/fit/fit_costs.h"

namespace stagewright {

namespace {

using Cycle = std::vector<std::shared_ptr<const CheckedSchedule>>;

Result<Cycle> checkedAll(std::vector<Schedule> schedules)
{
    Cycle out;
    for (Schedule& schedule : schedules) {
        STAGEWRIGHT_TRY(auto checked, CheckedSchedule::of(std::move(schedule)));
        out.push_back(std::move(checked));
    }
    return out;
}

// Costs of the ops and the pieces, from steps that have these at their ends.
Result<CostModel> measuredCosts(const Schedule& schedule, const TrainingOptions& options, FillRule rule)
{
    constexpr int warm = 1, rounds = 2;
    CostModel costs = CostModel::uniform(schedule); // in which pieces take next to nothing
    for (int stage = 0; stage < schedule.stages; ++stage)
        for (const KindTraits& kind : allKinds())
            if (kind.gap != GapWork::None) costs.setDuration(kind.kind, stage, 1);
    rule.apart = true;
    rule.cyclic = false;
    STAGEWRIGHT_TRY(FilledCycle apart, fillSchedule(schedule, costs, rule));
    TrainingOptions measured = options;
    STAGEWRIGHT_TRY(measured.cycle, checkedAll(std::move(apart.schedules)));
    measured.clock = ClockMode::Virtual; // CPU time, whatever else the machine does
    measured.links = Links();
    measured.perturbation = RunPerturbation();
    STAGEWRIGHT_TRY(auto training, Training::create(measured.cycle.front(), measured));
    std::optional<TimelineBuilder> all;
    const int steps = static_cast<int>(measured.cycle.size()) * (warm + rounds);
    for (int step = 0; step < steps; ++step) {
        STAGEWRIGHT_TRY(const auto outcome, training->step({}));
        const Timeline& timeline = *outcome.timeline;
        if (step < static_cast<int>(measured.cycle.size()) * warm) continue;
        if (!all) {
            all.emplace(timeline.provenance(), timeline.clock(), timeline.ranks());
            all->setUnits(timeline.timeUnit(), timeline.memoryUnit());
        }
        all->append(timeline);
    }
    STAGEWRIGHT_TRY(const auto whole, all->build());
    return fitCosts(*whole);
}

} // namespace

Result<Cycle> measuredCycle(const std::shared_ptr<const CheckedSchedule>& checked, const TrainingOptions& options,
                            FillRule rule, Session& session)
{
    const Schedule& schedule = checked->compute();
    rule.both = true;
    auto costs = measuredCosts(schedule, options, rule);
    if (!costs) return tl::unexpected(std::move(costs.error()).with("--fill, measuring the pieces"));
    auto filled = fillSchedule(schedule, *costs, rule);
    if (!filled) return tl::unexpected(std::move(filled.error()).with("--fill"));
    const double window = static_cast<double>(filled->makespan) * schedule.ranks;
    session.note(fmt::format(
        "--fill: a refresh takes {}; as measured its pieces take {}, and a step without them leaves {} idle{}",
        plural(filled->steps, "step"), formatDuration(filled->work), formatDuration(filled->idle),
        window > 0 ? fmt::format(" ({:.1f} % of all ranks)", 100 * static_cast<double>(filled->idle) / window)
                   : std::string()));
    std::vector<int> named; // ranks
    for (const FillPiece& piece : filled->unplaced) {
        if (std::find(named.begin(), named.end(), piece.rank) != named.end()) continue;
        named.push_back(piece.rank);
        session.warn(unplacedSentence(*filled, piece, 1));
    }
    return checkedAll(std::move(filled->schedules));
}

} // namespace stagewright
