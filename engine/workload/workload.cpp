#include "engine/workload/workload.h"

#include <algorithm>
#include <limits>

#include "engine/workload/references.h"

namespace stagewright {

namespace {

std::vector<int> balancedLayers(const Workload& workload, int stages)
{
    const int layers = workload.layers();
    const double block = workload.forwardCost(LayerCosts::Part::Block);
    const double embedding = workload.forwardCost(LayerCosts::Part::Embedding);
    const double head = workload.forwardCost(LayerCosts::Part::Head);
    const auto cost = [&](int stage, int count) {
        return block * count + (stage == 0 ? embedding : 0.0) + (stage == stages - 1 ? head : 0.0);
    };
    // best[s][n]: stages 0 … s hold n layers, at least one each; least largest cost, then least sum of squares, which
    // is the most even of them; the earliest stages take more where that is equal too.
    struct Best {
        double largest = std::numeric_limits<double>::infinity();
        double squares = std::numeric_limits<double>::infinity();
        int count = 0;
        bool operator<(const Best& other) const
        {
            return std::pair(largest, squares) < std::pair(other.largest, other.squares);
        }
    };
    const auto rows = static_cast<std::size_t>(stages);
    const auto columns = static_cast<std::size_t>(layers) + 1;
    std::vector<std::vector<Best>> best(rows, std::vector<Best>(columns));
    for (int stage = 0; stage < stages; ++stage) {
        for (int total = stage + 1; total <= layers - (stages - 1 - stage); ++total) {
            Best& here = best[static_cast<std::size_t>(stage)][static_cast<std::size_t>(total)];
            const int fewest = stage == 0 ? total : 1;
            for (int count = fewest; count <= total - stage; ++count) {
                const double mine = cost(stage, count);
                Best candidate{mine, mine * mine, count};
                if (stage > 0) {
                    const Best& before =
                        best[static_cast<std::size_t>(stage) - 1][static_cast<std::size_t>(total - count)];
                    candidate.largest = std::max(candidate.largest, before.largest);
                    candidate.squares += before.squares;
                }
                if (candidate < here) here = candidate;
            }
        }
    }
    std::vector<int> counts(rows);
    int rest = layers;
    for (int stage = stages - 1; stage >= 0; --stage) {
        const int count = best[static_cast<std::size_t>(stage)][static_cast<std::size_t>(rest)].count;
        counts[static_cast<std::size_t>(stage)] = count;
        rest -= count;
    }
    return counts;
}

} // namespace

Result<std::vector<StageSlice>> slicesOf(const Workload& workload, int stages, const std::vector<int>& stageLayers)
{
    if (stages < 1) return fail(ErrorCode::Usage, std::to_string(stages) + " stages; at least 1 is needed");
    std::vector<int> counts = stageLayers;
    if (counts.empty()) {
        if (workload.layers() < stages)
            return fail(ErrorCode::Usage,
                        "the model has " + std::to_string(workload.layers()) + " layers for " + std::to_string(stages) +
                            " stages",
                        "use layers=" + std::to_string(stages) + " or more, or fewer ranks or chunks");
        counts = balancedLayers(workload, stages);
    }
    if (counts.size() != static_cast<std::size_t>(stages))
        return fail(ErrorCode::Usage,
                    "layers are given for " + std::to_string(counts.size()) + " stages; the schedule has " +
                        std::to_string(stages),
                    "give one number for each stage");
    std::vector<StageSlice> slices;
    std::int64_t total = 0;
    for (int stage = 0; stage < stages; ++stage) {
        const int count = counts[static_cast<std::size_t>(stage)];
        StageSlice slice{stage, static_cast<int>(total), count, stage == 0, stage == stages - 1};
        if (count < 0 || (count == 0 && !slice.first && !slice.last))
            return fail(ErrorCode::Usage, "stage " + std::to_string(stage) + ": " + std::to_string(count) + " layers",
                        "give every stage a layer; the first and the last may have none");
        total += count;
        if (total > workload.layers()) break;
        slices.push_back(slice);
    }
    if (total != workload.layers()) {
        total = 0;
        for (const int count : counts) total += count;
        return fail(ErrorCode::Usage,
                    "the stages' layers sum to " + std::to_string(total) + "; the model has " +
                        std::to_string(workload.layers()),
                    "change the numbers or layers=");
    }
    return slices;
}

Result<std::vector<int>> layersOfStages(const Workload& workload, int stages, const std::vector<int>& stageLayers)
{
    STAGEWRIGHT_TRY(const auto slices, slicesOf(workload, stages, stageLayers));
    std::vector<int> out;
    for (const StageSlice& slice : slices) out.push_back(slice.layerCount);
    return out;
}

std::optional<DoubleForm> Workload::doubleForm(int) const { return std::nullopt; }

std::unique_ptr<TimedKernels> Workload::kernels(layers::LayerMath&, Allocator&, int) const { return nullptr; }

Result<std::shared_ptr<const Workload>> parseWorkload(const std::string& text)
{
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) return allWorkloads().front().make(text);
    std::string known;
    for (const WorkloadInfo& info : allWorkloads()) {
        if (text.compare(0, colon, info.name) == 0) return info.make(text.substr(colon + 1));
        known.append(known.empty() ? "" : ", ").append(info.name).append(" (").append(info.title).append(")");
    }
    return fail(ErrorCode::Usage, "model: unknown workload '" + text.substr(0, colon) + "'", "use one of: " + known);
}

std::string toText(const Workload& workload)
{
    if (workload.name() == allWorkloads().front().name) return workload.text();
    return std::string(workload.name()) + ":" + workload.text();
}

std::shared_ptr<const Workload> defaultWorkload()
{
    static const std::shared_ptr<const Workload> made = allWorkloads().front().make("").value();
    return made;
}

StageUse useOf(const Workload& workload, const Backend& backend, const StageSpec& stage)
{
    const StageMemory memory =
        workload.memoryOf(stage.slice, 1, stage.optimizer, backend.capabilities().layout); // the state of any size
    return {stage.slice.stage, memory.weight + memory.gradient + memory.optimizer, stage.share != nullptr,
            workload.mathUse(stage.microbatchSize)};
}

Result<std::unique_ptr<StageModel>> makeStage(const Workload& workload, Backend& backend, const StageSpec& stage,
                                              Allocator& allocator)
{
    const Capabilities device = backend.capabilities();
    if (stage.share != nullptr && !device.sharesState)
        return fail(ErrorCode::Usage,
                    "the " + std::string(backend.name()) + " backend can't share a stage's state between ranks yet",
                    "use --backend cpu, or leave --shard, --gather and --reduce out");
    STAGEWRIGHT_CHECK(workload.check(device, stage.share != nullptr));
    if (stage.microbatchSize < 1)
        return fail(ErrorCode::Usage,
                    "microbatch size " + std::to_string(stage.microbatchSize) + ", at least 1 needed");
    const StageUse use = useOf(workload, backend, stage);
    STAGEWRIGHT_TRY(auto math, backend.makeMath(use, allocator));
    try {
        return workload.makeStage(stage, allocator, std::move(math));
    } catch (const std::exception& e) {
        if (auto refused = backend.refusal(use, e)) return tl::unexpected(std::move(*refused));
        throw;
    }
}

} // namespace stagewright
