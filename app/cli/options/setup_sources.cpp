#include "app/cli/options/setup_sources.h"

#include <numeric>
#include <optional>

#include <fmt/core.h>

#include "app/cli/options/files.h"
#include "app/cli/options/run_access.h"
#include "app/cli/session.h"
#include "app/cli/text/channel_json.h"
#include "app/costs/split_sources.h"
#include "engine/workload/configured_model.h"
#include "schedules/model/kinds.h"
#include "schedules/model/layer_costs.h"
#include "schedules/text/cost_json.h"
#include "traces/fit/fit_costs.h"

namespace stagewright {

namespace {

// Measured costs have the kinds of their own schedule. A full backward is I then W (if only B is known: completeSplit).
// A recomputation costs as much as its forward.
Result<void> completeKinds(const Schedule& schedule, CostModel& costs, const std::string& origin)
{
    // cut otherwise
    if (const auto starts = sliceStartsOf(schedule); costs.sliceStarts.size() != starts.size())
        costs.sliceStarts = starts;
    if (costs.stages() != schedule.stages)
        return fail(ErrorCode::Usage,
                    fmt::format("the costs of {} are for {} stages, but {} has {}", origin, costs.stages(),
                                schedule.name, schedule.stages),
                    "take costs from a run with the same number of stages, or give --costs F=…,I=…,W=…");
    completeWhole(costs, schedule.ranks);
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
        const int r = static_cast<int>(rank);
        for (const Op& op : schedule.order[rank]) {
            if (isDelay(op.kind) || costs.duration(op.kind, op.stage, r) > 0) continue;
            const Nanos forward = costs.forward(op.stage, r);
            if (isRecompute(op.kind) && forward > 0) {
                costs.setDuration(op.kind, op.stage, r, forward);
                continue;
            }
            if (!isCompute(op.kind)) continue;
            return fail(ErrorCode::Usage,
                        fmt::format("the costs of {} have no duration of {} on rank {}", origin, toText(op), r),
                        isFullBackward(op.kind) ? "take costs from a run that has B, or I and W"
                                                : "take costs from a run that has it, such as one of zb-h1");
        }
    }
    return {};
}

std::optional<double> givenShare(const Setup& options)
{
    return options.inputShare >= 0 ? std::optional(options.inputShare) : std::nullopt;
}

// Where a run's costs are for other stages or layers than the schedule's: by layer, split as a recording would split
// them.
Result<void> fitStages(const Schedule& schedule, const Setup& options, const std::optional<ConfiguredModel>& model,
                       CostModel& costs)
{
    std::vector<int> layers = options.stageLayers;
    const bool asked = !layers.empty() && std::accumulate(layers.begin(), layers.end(), 0) == blocksOf(costs.layers);
    if (costs.layers.empty() || (costs.stages() == schedule.stages && !asked)) return {};
    if (layers.empty() && model) layers = model->layersFor(schedule.stages);
    STAGEWRIGHT_TRY(costs, costsByLayer(costs, schedule, layers));
    return {};
}

Result<CostModel> measuredCosts(const Schedule& schedule, const Setup& options)
{
    CostModel costs;
    std::string origin;
    if (!options.costsFrom.empty()) {
        auto stored = readRun(parseRunReference(options.costsFrom));
        if (!stored) return tl::unexpected(std::move(stored.error()).with("--costs-from"));
        origin = fmt::format("{}#{}", stored->file, stored->run.info.id);
        auto own = costsOf(stored->run);
        if (!own) return tl::unexpected(std::move(own.error()).with(origin));
        costs = std::move(*own);
        costs.origin = "fitted from " + origin;
        // of its own replicas
        if (costs.sizes.size() != static_cast<std::size_t>(schedule.replicas)) costs.sizes.clear();
        const auto model = configuredModel(stored->run.configuration);
        if (auto fits = fitStages(schedule, options, model, costs); !fits)
            return tl::unexpected(std::move(fits.error()).with(origin));
        if (schedule.splitsBackward()) {
            STAGEWRIGHT_TRY(auto file, openRunFile(stored->file));
            STAGEWRIGHT_TRY(auto sources, splitSources(file.get(), stored->run, costs));
            completeSplit(costs, schedule.ranks, sources, givenShare(options));
        }
    } else {
        auto text = options.costsText.empty() ? readFile(options.costs) : Result<std::string>(options.costsText);
        if (!text) return tl::unexpected(std::move(text.error()).with("--costs"));
        auto read = readCostsJson(*text);
        if (!read) return tl::unexpected(std::move(read.error()).with(options.costs));
        costs = std::move(*read);
        origin = options.costs;
        if (!costs.sizes.empty() && costs.sizes.size() != static_cast<std::size_t>(schedule.replicas))
            return fail(ErrorCode::Usage,
                        fmt::format("the costs of {} have microbatch_sizes of {} replicas, but {} has {}", origin,
                                    costs.sizes.size(), schedule.name, schedule.replicas),
                        "remove the key; --replica-batch gives each replica microbatches of its own size");
        if (auto fits = fitStages(schedule, options, std::nullopt, costs); !fits)
            return tl::unexpected(std::move(fits.error()).with(origin));
        if (schedule.splitsBackward()) completeSplit(costs, schedule.ranks, {}, givenShare(options));
    }
    STAGEWRIGHT_CHECK(completeKinds(schedule, costs, origin));
    return costs;
}

} // namespace

SetupSources sourcesOf(Session& session)
{
    return {.csv = [](const std::string& path) { return readCsvFile(path); },
            .text = [](const std::string& path) { return readFile(path); },
            .measured = measuredCosts,
            .note = [&session](const std::string& sentence) { session.note(sentence); },
            .cyclic =
                [&session](const Schedule& lists) {
                    if (const auto deadlock = explainDeadlock(lists, {}); deadlock && deadlock->hung())
                        session.out("ranks that wait for each other:\n" +
                                    deadlockText(lists, *deadlock, session.columns()));
                }};
}

} // namespace stagewright
