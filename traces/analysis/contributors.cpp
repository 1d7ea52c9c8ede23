// Partial backward: which replicas each layer's gradient is the mean over, and how far it is from the mean over all of
// them.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/model/mesh.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"
#include "traces/run/run_facts.h"

namespace stagewright::analyses {

namespace {

std::vector<TableColumn> contributorColumns()
{
    return {{"layer", "Layer", ColumnKind::Text, "Of the model; of a simulated run without layers, a stage."},
            {"stage", "Stage", ColumnKind::Whole},
            {"contributors", "Contributors", ColumnKind::Count, "Replicas that go back to the layer."},
            {"replicas", "Replicas", ColumnKind::Text, "Which ones."},
            {"batch_share", "Of the batch", ColumnKind::Share,
             "Their samples among all: the layer's gradient is the mean over them."},
            {"gradient_cosine", "Cosine", ColumnKind::Real,
             "Of the angle between the layer's gradient and that of all replicas, at the same weights and data; "
             "measured in this step."},
            {"gradient_distance", "Distance", ColumnKind::Real,
             "Norm of the difference of both ÷ norm of that of all replicas; measured in this step."}};
}

TableCell measuredIn(const Run& run, const std::string& name, int step)
{
    const Metric* metric = run.metric(name);
    const auto at = static_cast<std::size_t>(std::max(0, step));
    return metric != nullptr && at < metric->values.size() ? TableCell(metric->values[at]) : TableCell();
}

// The samples in each replica's share of the batch.
std::vector<std::int64_t> samplesByReplica(const Run& run, std::size_t replicas)
{
    std::vector<std::int64_t> out(replicas, 1);
    const std::vector<int> sizes = wholesOf(configured(run, "replica_samples")).value_or(std::vector<int>());
    if (!run.schedule || run.schedule->replicas != static_cast<int>(replicas)) return out;
    for (std::size_t replica = 0; replica < replicas; ++replica) {
        out[replica] = replicaSchedule(*run.schedule, static_cast<int>(replica)).microbatches;
        if (sizes.size() == replicas) out[replica] *= sizes[replica];
    }
    return out;
}

Result<AnalysisRows> contributorRows(const StepContext& context)
{
    const Run& run = context.run();
    const std::vector<int> cuts = wholesOf(configured(run, "cut")).value_or(std::vector<int>());
    const std::vector<int> stages = wholesOf(configured(run, "stage_layers")).value_or(std::vector<int>());
    const int layers = std::accumulate(stages.begin(), stages.end(), 0);
    const std::vector<std::int64_t> samples = samplesByReplica(run, cuts.size());
    const auto all = static_cast<double>(std::accumulate(samples.begin(), samples.end(), std::int64_t{0}));
    AnalysisRows out;
    const auto add = [&](const std::string& name, int stage, int layer) {
        std::vector<int> replicas;
        std::int64_t contributed = 0;
        for (std::size_t k = 0; k < cuts.size(); ++k)
            if (cuts[k] <= layer) {
                replicas.push_back(static_cast<int>(k));
                contributed += samples[k];
            }
        out.rows.push_back({name, std::int64_t{stage}, static_cast<std::int64_t>(replicas.size()),
                            fmt::format("{}", fmt::join(replicas, ", ")),
                            all > 0 ? TableCell(static_cast<double>(contributed) / all) : TableCell(),
                            measuredIn(run, "gradient_cosine_" + name, context.step()),
                            measuredIn(run, "gradient_distance_" + name, context.step())});
    };
    const bool trained = !configured(run, "model").empty();
    if (trained) add("embedding", 0, 0);
    int layer = 0;
    for (std::size_t stage = 0; stage < stages.size(); ++stage)
        for (int k = 0; k < stages[stage]; ++k, ++layer) add(std::to_string(layer), static_cast<int>(stage), layer);
    if (trained) add("head", static_cast<int>(stages.size()) - 1, layers);
    if (layers > 0 && !cuts.empty()) {
        double through = 0;
        for (const int cut : cuts) through += static_cast<double>(layers - cut) / layers;
        out.sentence =
            fmt::format("this is not synchronous training: replicas go back through {} of the layers on average",
                        formatPercent(through / static_cast<double>(cuts.size())));
        if (const Metric* deviation = run.metric("deviation"); deviation != nullptr && !deviation->values.empty())
            out.sentence +=
                fmt::format("; after the last step its weights are {} from those of synchronous training (relative L2)",
                            distanceText(deviation->values.back()));
        const Metric* loss = run.metric("loss");
        const Metric* synchronous = run.metric("synchronous_loss");
        if (loss != nullptr && synchronous != nullptr && !loss->values.empty() && !synchronous->values.empty())
            out.sentence += fmt::format(", and its loss is {:.3f} instead of {:.3f}", loss->values.back(),
                                        synchronous->values.back());
    }
    return out;
}

std::string unknownWithoutCuts(const Run& run)
{
    return configured(run, "cut").empty() ? "every replica goes back to the first layer" : "";
}

} // namespace

extern const AnalysisInfo contributors;
const AnalysisInfo contributors{"contributors", "Partial backward: contributors by layer", contributorColumns,
                                unknownWithoutCuts, contributorRows};

} // namespace stagewright::analyses
