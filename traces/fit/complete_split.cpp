#include "traces/fit/complete_split.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "traces/store/run_file.h"

namespace stagewright {

namespace {

bool isWhole(const CostModel& costs, int stage, int rank)
{
    return costs.duration(OpKind::Backward, stage, rank) > 0 && costs.duration(OpKind::InputGrad, stage, rank) == 0 && costs.duration(OpKind::WeightGrad, stage, rank) == 0;
}

std::string valueOf(const Run& run, std::string_view key)
{
    for (const auto& [name, value] : run.configuration)
        if (name == key) return value;
    return {};
}

} // namespace

bool lacksSplit(const CostModel& costs, int ranks)
{
    for (int stage = 0; stage < costs.stages(); ++stage)
        for (int rank = 0; rank < ranks; ++rank)
            if (isWhole(costs, stage, rank)) return true;
    return false;
}

bool takeSplit(CostModel& costs, const CostModel& other, int ranks)
{
    if (costs.stages() != other.stages() || costs.timeUnit != other.timeUnit || costs.memoryUnit != other.memoryUnit) return false;
    CostModel out = costs;
    const bool byRank = costs.hasRankDurations() || other.hasRankDurations();
    for (int stage = 0; stage < costs.stages(); ++stage) {
        const auto at = static_cast<std::size_t>(stage);
        for (int rank = 0; rank < (byRank ? ranks : 1); ++rank) {
            if (!isWhole(costs, stage, rank)) continue;
            const Nanos input = other.duration(OpKind::InputGrad, stage, rank), weight = other.duration(OpKind::WeightGrad, stage, rank);
            const Nanos here = costs.duration(OpKind::Forward, stage, rank), there = other.duration(OpKind::Forward, stage, rank);
            if (input <= 0 || weight <= 0 || here <= 0 || there <= 0) return false;
            const double load = static_cast<double>(here) / static_cast<double>(there);
            for (const auto& [kind, time] : {std::pair(OpKind::InputGrad, input), std::pair(OpKind::WeightGrad, weight)}) {
                const auto scaled = static_cast<Nanos>(std::llround(static_cast<double>(time) * load));
                if (byRank)
                    out.setDuration(kind, stage, rank, scaled);
                else
                    out.setDuration(kind, stage, scaled);
            }
        }
        out.memory[at].freedAtInput = other.memory[at].freedAtInput;
    }
    costs = std::move(out);
    return true;
}

bool madeAlike(const Run& a, const Run& b)
{
    if (a.info.ranks != b.info.ranks || a.info.stages != b.info.stages) return false;
    constexpr std::array keys{"model", "stage_layers", "microbatch_size", "backend", "device", "precision"};
    return std::all_of(keys.begin(), keys.end(), [&](const char* key) { return valueOf(a, key) == valueOf(b, key); });
}

Result<std::optional<SplitSource>> findSplit(const std::string& path, const Run& like)
{
    auto file = RunFile::open(path, OpenMode::Read);
    if (!file) return tl::unexpected(file.error());
    auto infos = (*file)->runs();
    if (!infos) return tl::unexpected(infos.error());
    for (auto info = infos->rbegin(); info != infos->rend(); ++info) {
        if (info->provenance != Provenance::Measured || info->state == RunState::Recording || info->ranks != like.info.ranks || info->stages != like.info.stages || info->steps == 0) continue;
        auto run = (*file)->readStep(info->id, info->steps - 1);
        if (!run || !run->costs || !madeAlike(*run, like)) continue; // a damaged one is no reason to look no further
        CostModel tried = *run->costs;
        const Schedule* schedule = run->schedule.get();
        if (schedule == nullptr || lacksSplit(tried, info->ranks) || tried.duration(OpKind::InputGrad, 0, schedule->placement.rankOf(0, 0)) == 0) continue;
        return SplitSource{info->id, info->name, info->scheduleName, std::move(tried)};
    }
    return std::nullopt;
}

} // namespace stagewright
