// A workload for tests: real, tiny, deterministic arithmetic of its own, with a hook on every op and exact activation
// sizes.
//
// The model is a vector of `hidden` numbers per microbatch, multiplied by one weight vector per layer; the loss is half
// the mean square. Splitting it over stages changes no bit. Slices and halves are vectors of their own, each as wide as
// a whole; recomputation drops all layers; plain descent only, and prediction follows its last gradients. A hook may
// sleep, spin, throw or hang.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "engine/workload/workload.h"
#include "profiler/record/clock.h"
#include "schedules/model/op.h"

namespace stagewright::test {

// Called within every F, R, I, W (a B gives I, then W) and Optimizer on the rank's thread, before the arithmetic.
using OpHook = std::function<void(OpKind kind, int stage, int microbatch)>;

struct FakeOptions {
    OpHook hook;
    std::size_t keptAtForward = 100; // floats per layer kept from F on
    // floats per layer kept from I to W (may be more than the above)
    std::size_t keptForWeights = 40;
    std::size_t workspace = 64;                                // floats in F and I
    std::function<std::unique_ptr<Memory>(int rank)> memory{}; // of the ranks of a BareBackend; none: the host's
};

// As many layers, as wide, and the same data as `like`, a GPT. ofStage: called for each stage that is made.
std::shared_ptr<const Workload> fakeWorkload(const Workload& like, std::function<FakeOptions()> ofStage);
inline std::shared_ptr<const Workload> fakeWorkload(const Workload& like, const FakeOptions& options)
{
    return fakeWorkload(like, [options] { return options; });
}

// A device without arithmetic, for workloads that bring their own; memory: of the ranks; none: the host's.
class BareBackend final : public Backend {
public:
    explicit BareBackend(std::function<std::unique_ptr<Memory>(int rank)> memory = {}) : m_memory(std::move(memory)) {}
    std::string_view name() const override { return "fake"; }
    std::vector<DeviceInfo> devices() const override { return {}; }
    Result<void> checkRoom(std::span<const StageUse> stages) const override;
    Result<std::unique_ptr<Memory>> openMemory(int rank, int ranks, int ranksHere) override;
    Result<std::unique_ptr<layers::LayerMath>> makeMath(const StageUse& stage, Allocator& allocator) override;
    std::vector<std::pair<std::string, std::string>> environment() const override { return {{"fake", "yes"}}; }

private:
    std::function<std::unique_ptr<Memory>(int rank)> m_memory;
};

// Set by a hook in W: this W of the calling thread adds nothing.
bool& skipNextWeightGrad();
// The same way: this W adds a NaN.
bool& poisonNextWeightGrad();

// Uses this much CPU time of the calling thread.
inline void burn(Nanos cpu)
{
    const Nanos until = threadCpuNow() + cpu;
    while (threadCpuNow() < until) {
    }
}

// A door that hooks wait at; opened at the latest when it dies.
class Door {
public:
    ~Door() { open(); }
    void open()
    {
        const std::lock_guard lock(m_mutex);
        m_open = true;
        m_changed.notify_all();
    }
    void pass()
    {
        std::unique_lock lock(m_mutex);
        ++m_waiting;
        m_changed.notify_all();
        m_changed.wait(lock, [this] { return m_open; });
        --m_waiting;
        m_changed.notify_all();
    }
    void awaitSomeone()
    {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [this] { return m_waiting > 0; });
    }
    void awaitNobody()
    {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [this] { return m_waiting == 0; });
    }

private:
    std::mutex m_mutex;
    std::condition_variable m_changed;
    bool m_open = false;
    int m_waiting = 0;
};

} // namespace stagewright::test
