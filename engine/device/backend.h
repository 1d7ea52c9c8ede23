// Backend: a device that gives arithmetic, memory and queues; it knows no model. engine/cpu always; engine/cuda where
// built. One line each in engine/backends.def.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/device/device_options.h"
#include "engine/device/math.h"
#include "engine/device/memory.h"
#include "engine/device/traits.h"
#include "schedules/base/result.h"

namespace stagewright {

class CollectiveSource; // engine/check/kernel_check.h

struct DeviceInfo {
    std::string backend;
    std::string name; // "AMD EPYC …, 2 cores"
    bool usable = false;
    std::string reason; // why not
    std::vector<std::pair<std::string, std::string>> details;
};

// What a device does in its own way.
struct Capabilities {
    StageLayout layout;       // of what stages keep here; its elements are those of messages too
    bool sharesState = false; // ranks can share a stage's state
    int sharedTensor = 1;     // elements of which each tensor of shared state has a multiple
    bool dense = false;       // its arithmetic has LayerMath::dense()
    bool comparable = false;  // its arithmetic can be compared with the CPU's in fp32
    // connections between devices that sum up; null: none; valid as long as the backend
    const CollectiveSource* collectives = nullptr;
};

// What a stage's arithmetic works on, so that a device can choose how it computes.
struct MathUse {
    // The linear layers that take the most time: rows of a microbatch, (outputs, inputs) of each. Equal names, equal
    // shapes: what was measured is kept under the name. None: nothing to choose by.
    std::string name; // "hidden 512, 512 tokens"
    int rows = 0;
    std::vector<std::pair<int, int>> layers;
    std::int64_t widest = 0;     // elements of the largest activation
    int headWidth = 0;           // of attention; 0: it has none
    std::optional<bool> streams; // attention streams its keys at any length, or at none; unset: as is faster
};

// A stage as a device sees it.
struct StageUse {
    int stage = 0;
    Bytes state = 0;     // weights, gradients and optimizer state
    bool shared = false; // between ranks, each of which has a part of the state
    MathUse math;
};

class Backend {
public:
    virtual ~Backend() = default;
    virtual std::string_view name() const = 0;
    const BackendTraits& traits() const { return traitsOf(name()); }
    virtual std::vector<DeviceInfo> devices() const = 0;
    virtual Capabilities capabilities() const { return {}; }
    // Whether the device can hold the state of all these stages at once; Unavailable with both numbers where it can't.
    // Called before any of them is created.
    virtual Result<void> checkRoom(std::span<const StageUse> stages) const = 0;
    // A rank's memory on its device; null: the host's. Outlives the rank's stages. ranksHere: of them in this process.
    virtual Result<std::unique_ptr<Memory>> openMemory(int rank, int ranks, int ranksHere);
    // How many ranks really run in parallel; 0: as many as the host has cores for.
    virtual int sideBySide(int) const { return 0; }
    // The request with what it leaves open resolved as this device would, so that other processes can compute with the
    // same.
    virtual Result<DeviceOptions> resolve(const DeviceOptions& request, const MathUse& /*use*/) { return request; }
    // The arithmetic of one more stage, which it outlives, in the allocator's memory. Usage: more than the device can
    // count; Unavailable: no room for the state, or a memory that was not opened by this backend.
    virtual Result<std::unique_ptr<layers::LayerMath>> makeMath(const StageUse& stage, Allocator& allocator) = 0;
    // What to tell the user where a stage could not be made for this exception. None: it goes on.
    virtual std::optional<Error> refusal(const StageUse& /*stage*/, const std::exception& /*why*/) const
    {
        return std::nullopt;
    }
    // Facts for the run's environment: BLAS, its kernel, instruction sets.
    virtual std::vector<std::pair<std::string, std::string>> environment() const = 0;
};

std::vector<std::string_view> backendNames();
Result<std::unique_ptr<Backend>> makeBackend(std::string_view name, const DeviceOptions& options = {});

} // namespace stagewright
