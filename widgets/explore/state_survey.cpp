#include "widgets/explore/state_survey.h"

#include <algorithm>
#include <numeric>

#include "schedules/library/registry.h"
#include "schedules/model/analytic_costs.h"
#include "schedules/timeline/timeline_of.h"

namespace stagewright {

namespace {

// The fullest rank and what it holds then.
void fillHeld(StateCell& cell, const Timeline& timeline)
{
    Bytes most = -1;
    for (int rank = 0; rank < timeline.ranks(); ++rank) {
        StateBytes now{};
        Bytes sum = 0;
        const auto events = timeline.memoryOf(rank);
        for (std::size_t i = 0; i < events.size(); ++i) {
            now[static_cast<std::size_t>(events[i].category)] += events[i].delta;
            sum += events[i].delta;
            // after all changes of a moment
            if (i + 1 < events.size() && events[i + 1].time == events[i].time) continue;
            if (sum <= most) continue;
            most = sum;
            cell.rank = rank;
            cell.held = now;
        }
    }
}

Result<StateCell> simulated(const StateQuestion& question, const std::string& name, ShardLevel level)
{
    auto schedule = makeSchedule(name, Shape{question.ranks, question.microbatches, question.chunks});
    if (!schedule) return tl::unexpected(std::move(schedule.error()));
    if (question.replicas > 1 || schedule->placement.hasCopies()) {
        schedule = addShardOps(*schedule, level, question.rules);
        if (!schedule) return tl::unexpected(std::move(schedule.error()));
    }
    STAGEWRIGHT_TRY(auto analytic, parseAnalyticCosts(question.model + "@" + question.device));
    STAGEWRIGHT_TRY(auto costs, analyticCosts(*schedule, analytic));
    costs.sharding.level = level;
    costs.replicas = question.replicas;
    costs.links.collectives = CollectiveLane::Beside;
    CollectiveCosts collectives = question.collectives;
    collectives.within = costs.links.all;
    setCollectiveTimes(costs, *schedule, collectives);
    STAGEWRIGHT_TRY(const auto timeline, simulatedTimeline(*schedule, costs));
    StateCell cell;
    cell.step = timeline->end() - timeline->begin();
    fillHeld(cell, *timeline);
    const auto volumes = collectiveVolumes(*schedule, costs);
    if (static_cast<std::size_t>(cell.rank) < volumes.size()) {
        cell.gathered = static_cast<double>(volumes[static_cast<std::size_t>(cell.rank)].gathered);
        cell.reduced = static_cast<double>(volumes[static_cast<std::size_t>(cell.rank)].reduced);
    }
    return cell;
}

} // namespace

double StateQuestion::capacity() const
{
    if (memory > 0) return memory;
    for (const DevicePreset& preset : devicePresets())
        if (preset.name == device) return preset.memory;
    return 0;
}

Bytes StateCell::peak() const { return std::accumulate(held.begin(), held.end(), Bytes{0}); }

StateCell stateCell(const StateQuestion& question, const std::string& schedule, ShardLevel level)
{
    StateCell out;
    if (auto cell = simulated(question, schedule, level))
        out = std::move(*cell);
    else
        out.error = cell.error().message + (cell.error().remedy.empty() ? "" : "; " + cell.error().remedy);
    out.done = true;
    return out;
}

std::vector<StateRow> stateSurvey(const StateQuestion& question, const std::vector<std::string>& schedules,
                                  const Progress& progress)
{
    std::vector<StateRow> rows;
    for (const std::string& name : schedules) {
        rows.push_back({name, {}});
        for (std::size_t level = 0; level < rows.back().cells.size() && !progress.stop.stop_requested(); ++level)
            rows.back().cells[level] = stateCell(question, name, static_cast<ShardLevel>(level));
    }
    return rows;
}

} // namespace stagewright
