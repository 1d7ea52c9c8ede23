#include "engine/training/rank_report.h"

#include <algorithm>

#include "engine/training/training_state.h"
#include "engine/transport/bytes.h"

namespace stagewright {

std::vector<std::byte> reportOf(TrainingState& state, const std::function<bool(int rank)>& isHere)
{
    ByteWriter bytes;
    bytes.put<std::uint8_t>(state.skipped ? 1 : 0);
    const auto here =
        std::count_if(state.stages.begin(), state.stages.end(), [&](const StageRun& run) { return isHere(run.rank); });
    for (std::size_t rank = 0; rank < state.ranks.size(); ++rank) {
        if (!isHere(static_cast<int>(rank))) continue;
        bytes.put(static_cast<int>(rank));
        bytes.put(state.peaksOf(static_cast<int>(rank)));
        bytes.put(state.ranks[rank].traffic);
        bytes.list(std::span<const RecordedEvent>(state.recorder.rank(static_cast<int>(rank)).take()));
    }
    bytes.put(-1); // no further rank
    bytes.put(static_cast<std::int64_t>(here));
    for (const StageRun& run : state.stages) {
        if (!isHere(run.rank)) continue;
        bytes.put(run.slice.stage);
        bytes.put(run.rank);
        bytes.put(run.undone);
        bytes.list(std::span<const double>(run.losses));
        bytes.list(state.keepGradients ? std::span<const float>(run.gradients) : std::span<const float>());
        bytes.list(std::span<const LayerCosts>(run.partTimes));
    }
    return bytes.take();
}

bool takeReport(TrainingState& state, std::span<const std::byte> report, Nanos offset)
{
    ByteReader bytes(report);
    if (bytes.get<std::uint8_t>() != 0) state.skipped = true;
    for (int rank = bytes.get<int>(); rank >= 0 && bytes.good(); rank = bytes.get<int>()) {
        if (static_cast<std::size_t>(rank) >= state.ranks.size()) return false;
        state.ranks[static_cast<std::size_t>(rank)].peaksElsewhere = bytes.get<RankPeaks>();
        state.ranks[static_cast<std::size_t>(rank)].traffic = bytes.get<RankTraffic>();
        state.recorder.adopt(rank, bytes.list<RecordedEvent>(), offset);
    }
    const auto stages = bytes.get<std::int64_t>();
    for (std::int64_t i = 0; i < stages && bytes.good(); ++i) {
        const int stage = bytes.get<int>();
        const int rank = bytes.get<int>();
        const auto found = std::find_if(state.stages.begin(), state.stages.end(), [&](const StageRun& run) {
            return run.slice.stage == stage && run.rank == rank;
        });
        if (found == state.stages.end()) return false;
        found->undone = bytes.get<int>();
        std::vector<double> losses = bytes.list<double>();
        if (losses.size() == found->losses.size()) found->losses = std::move(losses);
        std::vector<float> gradients = bytes.list<float>();
        if (!gradients.empty()) found->gradients = std::move(gradients);
        found->partTimes = bytes.list<LayerCosts>();
    }
    return bytes.good();
}

std::vector<ParameterView> ownedWeights(StageModel& model, std::vector<float>& owned)
{
    std::vector<ParameterView> views = model.parameters();
    SharedState* state = model.shared();
    if (state == nullptr || state->hasAllValues()) return views;
    for (ParameterView& view : views) view.value = view.gradient = {};
    owned = state->steppedValues();
    views.push_back({"owned", {static_cast<int>(owned.size())}, owned, {}});
    return views;
}

std::vector<std::byte> bytesOf(const std::vector<ParameterView>& parameters)
{
    ByteWriter bytes;
    bytes.put<std::uint64_t>(parameters.size());
    for (const ParameterView& parameter : parameters) {
        bytes.text(parameter.name);
        bytes.list(std::span<const int>(parameter.shape));
        bytes.list(std::span<const float>(parameter.value));
        bytes.list(std::span<const float>(parameter.gradient));
    }
    return bytes.take();
}

Result<StageWeights> weightsFrom(std::span<const std::byte> received)
{
    ByteReader bytes(received);
    StageWeights weights;
    const auto count = bytes.get<std::uint64_t>();
    for (std::uint64_t i = 0; i < count && bytes.good(); ++i) {
        StageWeights::Tensor tensor;
        tensor.name = bytes.text();
        tensor.shape = bytes.list<int>();
        tensor.value = bytes.list<float>();
        tensor.gradient = bytes.list<float>();
        weights.tensors.push_back(std::move(tensor));
    }
    if (!bytes.good()) return fail(ErrorCode::Failed, "weights from another process are damaged");
    return weights;
}

} // namespace stagewright
