#include "engine/torch/initial_weights.h"

#include <new>
#include <vector>

#include "engine/device/backend.h"
#include "engine/torch/safetensors.h"

namespace stagewright {

Result<void> writeInitialWeights(const ModelConfig& model, std::span<const StageSlice> slices, std::uint64_t seed,
                                 const std::string& path)
{
    auto backend = makeBackend("cpu");
    if (!backend) return tl::unexpected(std::move(backend.error()));
    OptimizerConfig plain;
    plain.kind = OptimizerKind::Sgd; // without state
    const auto eachStage = [&](auto&& use) -> Result<void> {
        for (const StageSlice& slice : slices) {
            Allocator allocator;
            try {
                auto stage = (*backend)->makeStage(model, slice, 1, seed, plain, allocator);
                if (!stage) return tl::unexpected(std::move(stage.error()));
                if (auto used = use(**stage); !used) return used;
            } catch (const std::bad_alloc&) {
                return fail(ErrorCode::Failed, "stage " + std::to_string(slice.stage) + ": no memory for its weights",
                            "use a smaller model or more stages");
            }
        }
        return {};
    };
    std::vector<TensorShape> tensors;
    auto listed = eachStage([&](StageModel& stage) -> Result<void> {
        for (const ParameterView& parameter : stage.parameters()) tensors.push_back({parameter.name, parameter.shape});
        return {};
    });
    if (!listed) return listed;
    auto writer = SafetensorsWriter::create(path, tensors);
    if (!writer) return tl::unexpected(std::move(writer.error()));
    auto written = eachStage([&](StageModel& stage) -> Result<void> {
        for (const ParameterView& parameter : stage.parameters())
            if (auto kept = writer->append(parameter.value); !kept) return kept;
        return {};
    });
    if (!written) return written;
    return writer->finish();
}

} // namespace stagewright
