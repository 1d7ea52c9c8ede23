// Workload: what is trained. It gives its configuration, its data, its slices into stages, the stages themselves over
// whatever arithmetic a device has, what they cost, and its form in PyTorch. One folder and one line in
// engine/workload/workloads.def each; nothing outside the folder knows one by name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/device/backend.h"
#include "engine/workload/stage_model.h"
#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"

namespace stagewright {

struct DoubleForm;   // engine/workload/references.h
struct TimedKernels; // the same

// A stage to be made.
struct StageSpec {
    StageSlice slice;
    int microbatchSize = 1; // samples of a microbatch
    std::uint64_t seed = 1;
    OptimizerConfig optimizer;
    const StageShare* share = nullptr; // of a stage whose state ranks share; null: all of it is the rank's
};

// A value: never changed once it is made, and read from several threads. Samples are of `positions` positions (a GPT's
// tokens), each a row of `width` elements in what one stage hands to the next.
class Workload {
public:
    virtual ~Workload() = default;

    // Its configuration. text(): what its maker takes, "layers=8,hidden=128,heads=4,seq=128"; shape(): the numbers of
    // it by name, for PyTorch's job.
    virtual std::string_view name() const = 0;
    virtual std::string text() const = 0;
    virtual std::vector<std::pair<std::string, int>> shape() const = 0;
    virtual int layers() const = 0; // that stages share out
    virtual int width() const = 0;
    virtual int positions() const = 0;
    virtual std::shared_ptr<const Workload> withLayers(int layers) const = 0;

    // Its data: bytes of a position and of its target; of the samples from `first` on, as they are numbered through all
    // of a step's microbatches, each a pure function of (seed, step, number), so that every schedule sees the same.
    // tokens and targets: samples × positions × their bytes.
    virtual int tokenBytes() const { return 1; }
    virtual int targetBytes() const { return 1; }
    virtual void sample(std::uint64_t seed, int step, std::int64_t first, int samples, std::span<std::uint8_t> tokens,
                        std::span<std::uint8_t> targets) const = 0;
    virtual std::string dataName() const = 0;
    virtual std::span<const std::uint8_t> data() const = 0; // that samples are drawn from; for PyTorch's job
    // Unreadable, Usage: a file that it can't draw from.
    virtual Result<std::shared_ptr<const Workload>> withData(const std::string& path) const = 0;

    // What it costs. Floating-point operations of a position's forward, by which slices are balanced; those of an op
    // over a whole microbatch of a stage; weights of each of a stage's layers (what comes before the blocks, blocks,
    // what follows), in the order of its parameters; and what an Allocator will count, to the byte, with microbatches
    // of so many whole samples.
    virtual double forwardCost(LayerCosts::Part part) const = 0;
    virtual double flops(OpKind kind, const StageSlice& slice, int microbatchSize) const = 0;
    virtual std::vector<std::int64_t> layerElements(const StageSlice& slice) const = 0;
    virtual StageMemory memoryOf(const StageSlice& slice, int microbatchSize, const OptimizerConfig& optimizer = {},
                                 const StageLayout& layout = {}) const = 0;

    // Its stages. check(): Usage where such a device can't compute it; shared: with state that ranks share.
    // makeStage(): weights depend on (seed, parameter name) alone, and not on how layers are split; throws
    // std::bad_alloc where they do not fit, and what the arithmetic throws.
    virtual Result<void> check(const Capabilities& device, bool shared) const = 0;
    virtual MathUse mathUse(int microbatchSize) const = 0;
    virtual std::unique_ptr<StageModel> makeStage(const StageSpec& stage, Allocator& allocator,
                                                  std::unique_ptr<layers::LayerMath> math) const = 0;
    // Whether engine/workload/<name>/torch_form.py has it for PyTorch, with the same parameters and data.
    virtual bool runsInTorch() const { return false; }
    // The layer of a parameter by its name: 0 also of what comes before the blocks, layers() of what follows.
    virtual int layerOf(const std::string& parameter) const = 0;

    // For checks (engine/workload/references.h): a small form of it with a second implementation, and the kernels of a
    // stage one by one, on arithmetic and memory that outlive them. None: it has none.
    virtual std::optional<DoubleForm> doubleForm(int microbatchSize) const;
    virtual std::unique_ptr<TimedKernels> kernels(layers::LayerMath& math, Allocator& allocator,
                                                  int microbatchSize) const;
};

// How one is found by name.
struct WorkloadInfo {
    std::string_view name;
    std::string_view title;                                                   // "a GPT-style decoder on bytes"
    Result<std::shared_ptr<const Workload>> (*make)(const std::string& text); // "": its defaults
};
namespace workloads {
#define STAGEWRIGHT_WORKLOAD(name) WorkloadInfo name();
#include "engine/workload/workloads.def"
#undef STAGEWRIGHT_WORKLOAD
} // namespace workloads
const std::vector<WorkloadInfo>& allWorkloads();

// "layers=8,hidden=256" of the first, "NAME:KEYS" of any; and back. Usage, naming the key and the remedy.
Result<std::shared_ptr<const Workload>> parseWorkload(const std::string& text);
std::string toText(const Workload& workload);
std::shared_ptr<const Workload> defaultWorkload(); // the first, as it is by default

// Layers over stages, balanced by forwardCost(), or as stageLayers says. Usage: fewer layers than needed, or
// stageLayers that do not sum to the workload's layers.
Result<std::vector<StageSlice>> slicesOf(const Workload& workload, int stages,
                                         const std::vector<int>& stageLayers = {});
Result<std::vector<int>> layersOfStages(const Workload& workload, int stages, const std::vector<int>& stageLayers = {});

// What a device knows of a stage, and the stage on it.
StageUse useOf(const Workload& workload, const Backend& backend, const StageSpec& stage);
Result<std::unique_ptr<StageModel>> makeStage(const Workload& workload, Backend& backend, const StageSpec& stage,
                                              Allocator& allocator);

} // namespace stagewright
