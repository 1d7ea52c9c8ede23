#include "app/costs/split_sources.h"

#include "engine/workload/configured_model.h"

namespace stagewright {

namespace {

SplitSource shapeOf(const ConfiguredModel& model)
{
    SplitSource shape{model.inputShares(model.stageLayers), {}, "the model's shape", SplitBasis::Shape, {}};
    for (const StageMemory& memory : model.memoryOf(model.stageLayers))
        shape.freedShare.emplace_back(memory.activation > 0 ? std::optional(static_cast<double>(memory.freedAtInput) /
                                                                            static_cast<double>(memory.activation))
                                                            : std::nullopt);
    return shape;
}

} // namespace

Result<std::vector<SplitSource>> splitSources(const RunFile* file, const Run& run, const CostModel& costs)
{
    std::vector<SplitSource> sources;
    const auto model = configuredModel(run.configuration);
    if (model)
        if (auto layers = splitOfLayers(costs, model->stageLayers)) sources.push_back(std::move(*layers));
    if (file != nullptr) {
        STAGEWRIGHT_TRY(auto other, splitOfFile(*file, run));
        if (other) sources.push_back(std::move(*other));
    }
    if (model && static_cast<int>(model->stageLayers.size()) == costs.stages()) sources.push_back(shapeOf(*model));
    return sources;
}

BackwardCosts withBackward(CostModel costs, const Run& run, int ranks, const std::string& file)
{
    BackwardCosts out{std::move(costs), {}, {}};
    CostModel halved = out.costs;
    if (!completeSplit(halved, ranks, {}).stages.empty()) {
        std::unique_ptr<RunFile> runs;
        if (!file.empty())
            if (auto opened = RunFile::open(file, OpenMode::Read)) runs = std::move(*opened);
        auto sources = splitSources(runs.get(), run, out.costs);
        if (!sources) sources = splitSources(nullptr, run, out.costs); // a file that can't be read has no other run
        if (sources) out.sources = std::move(*sources);
        out.use = completeSplit(out.costs, ranks, out.sources);
    }
    completeWhole(out.costs, ranks);
    return out;
}

} // namespace stagewright
