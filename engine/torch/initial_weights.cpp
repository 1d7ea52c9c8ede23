#include "engine/torch/initial_weights.h"

#include <new>
#include <vector>

#include "engine/saved/safetensors.h"

namespace stagewright {

Result<void> writeInitialWeights(const Workload& workload, std::span<const StageSlice> slices, std::uint64_t seed,
                                 const std::string& path)
{
    STAGEWRIGHT_TRY(auto backend, makeBackend("cpu"));
    OptimizerConfig plain;
    plain.kind = OptimizerKind::Sgd; // without state
    const auto eachStage = [&](auto&& use) -> Result<void> {
        for (const StageSlice& slice : slices) {
            Allocator allocator;
            try {
                STAGEWRIGHT_TRY(auto stage, makeStage(workload, *backend, {slice, 1, seed, plain}, allocator));
                if (auto used = use(*stage); !used) return used;
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
    STAGEWRIGHT_TRY(auto writer, SafetensorsWriter::create(path, tensors));
    auto written = eachStage([&](StageModel& stage) -> Result<void> {
        for (const ParameterView& parameter : stage.parameters())
            if (auto kept = writer.append(parameter.value); !kept) return kept;
        return {};
    });
    if (!written) return written;
    return writer.finish();
}

} // namespace stagewright
