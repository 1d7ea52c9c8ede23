#include "app/costs/split_costs.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/model/kinds.h"
#include "schedules/model/layer_costs.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

bool knows(const CostModel& costs, OpKind kind)
{
    for (int stage = 0; stage < costs.stages(); ++stage)
        if (costs.duration(kind, stage, -1) > 0) return true;
    return false;
}

SplitSource sourceOf(const CostModel& costs, std::string words)
{
    SplitSource source;
    source.words = std::move(words);
    for (int stage = 0; stage < costs.stages(); ++stage) {
        const auto input = static_cast<double>(costs.duration(OpKind::InputGrad, stage, -1));
        const auto weight = static_cast<double>(costs.duration(OpKind::WeightGrad, stage, -1));
        source.inputShare.push_back(input > 0 && weight > 0 ? input / (input + weight) : -1);
        const StageMemory& memory = costs.memory[static_cast<std::size_t>(stage)];
        std::optional<double>& freed = source.freedShare.emplace_back();
        if (memory.activation > 0)
            freed = static_cast<double>(memory.freedAtInput) / static_cast<double>(memory.activation);
    }
    return source;
}

// Splits B of the stage on every rank that has its own time.
void part(CostModel& costs, int stage, double share, int ranks)
{
    const auto set = [&](int rank) {
        const Nanos whole = costs.duration(OpKind::Backward, stage, rank);
        const Nanos input = std::llround(static_cast<double>(whole) * share);
        if (rank < 0) {
            costs.setDuration(OpKind::InputGrad, stage, input);
            costs.setDuration(OpKind::WeightGrad, stage, whole - input);
        } else {
            costs.setDuration(OpKind::InputGrad, stage, rank, input);
            costs.setDuration(OpKind::WeightGrad, stage, rank, whole - input);
        }
    };
    const Nanos common = costs.duration(OpKind::Backward, stage, -1);
    if (common > 0) set(-1);
    for (int rank = 0; rank < ranks; ++rank)
        if (costs.duration(OpKind::Backward, stage, rank) != common) set(rank);
}

// Last: of stages that are complete.
void completeMicrobatches(CostModel& costs, int stage)
{
    const auto ownOf = [&](OpKind kind, int microbatch) -> Nanos {
        const auto own = costs.microbatchDurations(kind, stage);
        return static_cast<std::size_t>(microbatch) < own.size() ? own[static_cast<std::size_t>(microbatch)] : -1;
    };
    std::size_t most = 0;
    for (const OpKind kind : {OpKind::Forward, OpKind::InputGrad, OpKind::WeightGrad, OpKind::Backward})
        most = std::max(most, costs.microbatchDurations(kind, stage).size());
    const auto usual = [&](OpKind kind) { return static_cast<double>(costs.duration(kind, stage, -1)); };
    const auto set = [&](OpKind kind, int microbatch, double duration) {
        costs.setMicrobatchDuration(kind, stage, microbatch, std::llround(std::max(0.0, duration)));
    };
    const double apart = usual(OpKind::InputGrad) + usual(OpKind::WeightGrad);
    for (int j = 0; j < static_cast<int>(most); ++j) {
        const Nanos forward = ownOf(OpKind::Forward, j);
        const Nanos input = ownOf(OpKind::InputGrad, j);
        const Nanos weight = ownOf(OpKind::WeightGrad, j);
        const Nanos whole = ownOf(OpKind::Backward, j);
        if (whole >= 0 && input < 0 && apart > 0)
            set(OpKind::InputGrad, j,
                weight >= 0 ? static_cast<double>(whole - weight)
                            : static_cast<double>(whole) * usual(OpKind::InputGrad) / apart);
        if (whole >= 0 && weight < 0 && apart > 0)
            set(OpKind::WeightGrad, j, static_cast<double>(whole - ownOf(OpKind::InputGrad, j)));
        const bool both =
            (input >= 0 || usual(OpKind::InputGrad) > 0) && (weight >= 0 || usual(OpKind::WeightGrad) > 0);
        if (whole < 0 && both && (input >= 0 || weight >= 0))
            set(OpKind::Backward, j,
                (input >= 0 ? static_cast<double>(input) : usual(OpKind::InputGrad)) +
                    (weight >= 0 ? static_cast<double>(weight) : usual(OpKind::WeightGrad)));
        if (forward >= 0 && ownOf(OpKind::Recompute, j) < 0)
            set(OpKind::Recompute, j,
                usual(OpKind::Recompute) > 0 && usual(OpKind::Forward) > 0
                    ? static_cast<double>(forward) * usual(OpKind::Recompute) / usual(OpKind::Forward)
                    : static_cast<double>(forward));
    }
}

} // namespace

bool knowsSplit(const CostModel& costs) { return knows(costs, OpKind::InputGrad) && knows(costs, OpKind::WeightGrad); }

bool sameSetup(const Run& a, const Run& b)
{
    const auto same = [&](const char* key) { return configured(a, key) == configured(b, key); };
    return !configured(a, "model").empty() && same("model") && same("microbatch_size") && same("backend") &&
           same("precision") && same("stage_layers");
}

Result<std::optional<SplitSource>> splitOfFile(const RunFile& file, const Run& run)
{
    STAGEWRIGHT_TRY(auto infos, file.runs());
    for (std::size_t i = infos.size(); i-- > 0;) {
        const RunInfo& info = infos[i];
        if (info.id == run.info.id || info.stages != run.info.stages || info.provenance != Provenance::Measured)
            continue;
        // its costs are stored outside its steps
        auto other = file.readStep(info.id, std::min(info.warmupSteps, std::max(0, info.steps - 1)));
        if (!other || !other->costs || !knowsSplit(*other->costs) || !sameSetup(run, *other)) continue;
        SplitSource source = sourceOf(*other->costs, fmt::format("#{} {}", info.id, info.name));
        source.basis = SplitBasis::Run;
        source.run = info;
        return std::optional<SplitSource>(std::move(source));
    }
    return std::optional<SplitSource>();
}

std::optional<SplitSource> splitOfLayers(const CostModel& costs, const std::vector<int>& blocksByStage)
{
    if (costs.layers.empty()) return std::nullopt;
    Schedule stages;
    stages.stages = static_cast<int>(blocksByStage.size());
    stages.ranks = stages.stages;
    auto byLayer = costsByLayer(costs, stages, blocksByStage);
    if (!byLayer || byLayer->stages() != costs.stages() || !knowsSplit(*byLayer)) return std::nullopt;
    SplitSource source = sourceOf(*byLayer, "its layers");
    source.basis = SplitBasis::Layers;
    std::fill(source.freedShare.begin(), source.freedShare.end(), std::nullopt);
    return source;
}

SplitUse completeSplit(CostModel& costs, int ranks, const std::vector<SplitSource>& sources,
                       std::optional<double> inputShare)
{
    SplitUse use;
    const auto has = [&](OpKind kind, int stage) { return costs.duration(kind, stage, -1) > 0; };
    int whole = 0;
    for (int stage = 0; stage < costs.stages(); ++stage) {
        whole += has(OpKind::Backward, stage) ? 1 : 0;
        if (has(OpKind::Backward, stage) && !has(OpKind::InputGrad, stage) && !has(OpKind::WeightGrad, stage))
            use.stages.push_back(stage);
    }
    if (use.stages.empty()) return use;
    const bool freedGiven = std::any_of(costs.memory.begin(), costs.memory.end(),
                                        [](const StageMemory& memory) { return memory.freedAtInput != 0; });
    if (!costs.hasRankDurations()) ranks = 0;
    std::string where;
    for (const int stage : use.stages) {
        const auto at = static_cast<std::size_t>(stage);
        const auto first = [&](auto knowsIt) -> std::optional<std::size_t> {
            const auto found = std::find_if(sources.begin(), sources.end(), knowsIt);
            return found == sources.end() ? std::nullopt
                                          : std::optional(static_cast<std::size_t>(found - sources.begin()));
        };
        use.times = inputShare ? std::nullopt : first([&](const SplitSource& source) {
            return at < source.inputShare.size() && source.inputShare[at] >= 0;
        });
        part(costs, stage, inputShare ? *inputShare : use.times ? sources[*use.times].inputShare[at] : 0.5, ranks);
        where += fmt::format("{}{}", where.empty() ? "" : ", ", stage);
        if (freedGiven) continue;
        use.memory =
            first([&](const SplitSource& source) { return at < source.freedShare.size() && source.freedShare[at]; });
        if (use.memory)
            costs.memory[at].freedAtInput =
                std::llround(*sources[*use.memory].freedShare[at] * static_cast<double>(costs.memory[at].activation));
    }
    const std::string times = inputShare  ? fmt::format("{} % of B is I", std::round(*inputShare * 1000) / 10)
                              : use.times ? "times from " + sources[*use.times].words
                                          : "half of B each";
    const std::string memory = freedGiven   ? ""
                               : use.memory ? ", memory from " + sources[*use.memory].words
                                            : ", I frees nothing";
    costs.origin += fmt::format(", I and W{} not measured: {}{}",
                                static_cast<int>(use.stages.size()) < whole ? " of stage " + where : "", times, memory);
    return use;
}

void completeWhole(CostModel& costs, int ranks)
{
    for (int stage = 0; stage < costs.stages(); ++stage) {
        if (costs.duration(OpKind::Backward, stage, -1) > 0) continue;
        const auto parts = [&](int rank) {
            return costs.duration(OpKind::InputGrad, stage, rank) + costs.duration(OpKind::WeightGrad, stage, rank);
        };
        std::vector<int> without;
        for (int rank = 0; rank < ranks; ++rank)
            if (costs.duration(OpKind::Backward, stage, rank) == 0) without.push_back(rank);
        if (parts(-1) > 0) costs.setDuration(OpKind::Backward, stage, parts(-1));
        for (const int rank : without)
            if (parts(rank) != costs.duration(OpKind::Backward, stage, rank))
                costs.setDuration(OpKind::Backward, stage, rank, parts(rank));
    }
    if (!costs.hasMicrobatchDurations()) return;
    for (int stage = 0; stage < costs.stages(); ++stage) completeMicrobatches(costs, stage);
}

} // namespace stagewright
