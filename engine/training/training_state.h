// What the ranks of one training share. Threads hold it by shared_ptr: a rank that hangs inside an op can be left
// behind without pulling the ground from under it.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/training/cycle_plans.h"
#include "engine/training/execution_plan.h"
#include "engine/training/flight_page.h"
#include "engine/training/op_execution.h"
#include "engine/training/rank_communicator.h"
#include "engine/training/ready_rank.h"
#include "engine/training/run_control.h"
#include "engine/training/training.h"
#include "engine/training/weight_versions.h"
#include "engine/transport/transport.h"
#include "profiler/cupti/gpu_tracer.h"
#include "profiler/recorder.h"
#include "schedules/execute/flight_record.h"

namespace stagewright {

// Reports to a rank's recorder what the rank's allocator does.
class RecordingSink final : public MemorySink {
public:
    explicit RecordingSink(RankRecorder& recorder) : m_recorder(recorder) {}
    void memoryChanged(const MemoryTag& tag, Bytes delta) override
    {
        m_recorder.memoryChanged(tag.category, tag.stage, tag.microbatch, delta);
    }

private:
    RankRecorder& m_recorder;
};

// One copy of a stage: its layers live on its rank's thread, its results are read by others only after a barrier.
struct StageRun {
    StageRun(const StageSlice& aSlice, int aRank, const TrainingOptions& options, WeightRule rule)
        : slice(aSlice), rank(aRank), versions(rule, options.optimizer)
    {
    }

    StageSlice slice;
    int rank;
    std::optional<StageShare> share; // of a stage whose state its ranks share
    std::unique_ptr<StageModel> model;
    WeightVersions versions;
    double squareSum = 0;
    std::vector<double> losses; // by microbatch; last stage
    // before clipping, where they are kept; of shared state the sums of the owned pieces
    std::vector<float> gradients;
    bool sent = false;                 // the gradients, to the other copies
    bool stepped = false;              // optimistically, in the list
    bool partly = false;               // of shared state in pieces: some have stepped, then the norm forbade the others
    int undone = 0;                    // optimizer steps rolled back in this step
    std::vector<LayerCosts> partTimes; // of a stage in another process, once it was timed
};

enum class RankCommand {
    Rest,
    Step,
    Leave,
};

// A rank's newest messages and ops, always kept: what a stall is explained from. Its own thread writes, the watchdog
// reads.
class FlightLog {
public:
    std::uint64_t add(const FlightEntry& entry)
    {
        const std::lock_guard lock(m_mutex);
        const std::uint64_t index = m_ring.add(entry);
        if (m_page) m_page->add(index, entry);
        return index;
    }
    void finish(std::uint64_t index)
    {
        const std::lock_guard lock(m_mutex);
        m_ring.finish(index);
        if (m_page) m_page->finish(index);
    }
    // Before its rank writes: into a file too. null: no longer.
    void writeTo(std::unique_ptr<FlightPage> page)
    {
        const std::lock_guard lock(m_mutex);
        m_page = std::move(page);
    }
    void leaveBehind() // the file stays
    {
        const std::lock_guard lock(m_mutex);
        if (m_page) m_page->stay();
    }
    RankRecord record(int rank) const
    {
        const std::lock_guard lock(m_mutex);
        return m_ring.record(rank);
    }

private:
    mutable std::mutex m_mutex;
    FlightRing m_ring;
    std::unique_ptr<FlightPage> m_page; // null: in memory only
};

// Largest bytes of a rank in a step: exact, and of activations at op ends.
struct RankPeaks {
    std::array<Bytes, memoryCategoryCount> of{};
};

struct RankRun {
    std::unique_ptr<RecordingSink> sink; // outlives the allocator's buffers
    std::unique_ptr<Memory> memory;      // null: the host's
    std::unique_ptr<Allocator> allocator;
    std::unique_ptr<Allocator> hostAllocator; // for numbers that ranks exchange, where the rank's memory is a device's

    Allocator& messages() { return hostAllocator ? *hostAllocator : *allocator; }
    RankStatus status;
    FlightLog flight;
    std::optional<RankPeaks> peaksElsewhere; // of a rank in another process
    RankTraffic traffic;                     // of the last step
    // Guarded by TrainingState::mutex:
    std::uint64_t ordered = 0; // commands given
    std::uint64_t done = 0;    // commands finished
};

struct TrainingState {
    // ranksHere: in this process. buckets: by stage, in how many pieces gradients are stepped.
    TrainingState(std::shared_ptr<const CheckedSchedule> checked, CyclePlans cycle, const TrainingOptions& options,
                  ClockMode clock, int ranksHere, int permits, std::unique_ptr<Backend> backend,
                  std::vector<std::unique_ptr<Memory>> memories, std::vector<int> buckets = {});

    // slices: of the model, by stage.
    void addStages(std::span<const StageSlice> slices);
    StageRun& stageOn(int stage, int rank);
    // The copy of the stage that has microbatch 0.
    StageRun& firstCopy(int stage) { return stageOn(stage, schedule->placement.rankOf(stage, -1)); }
    std::vector<StageRun*> copiesOf(int stage); // by rank
    // Whole gradients of a stage, put together from what its ranks kept; and between steps the weights of shared state.
    std::vector<float> gradientsOf(int stage);
    RankPeaks peaksOf(int rank);
    // Any thread: all ranks stop, wherever they are.
    void stop(const Error& error);

    std::shared_ptr<const CheckedSchedule> checked;
    const Schedule* schedule;                // checked->compute()
    std::shared_ptr<const Schedule> lowered; // rendezvous: checked's lists that the ranks run; else null
    std::string loweredBy;                   // what made them: a rule or "as given"
    ExecutionPlan plan;                      // of the first step
    CyclePlans cycle;
    const ExecutionPlan& planNow() const { return cycle.plans[cycle.at(step)]; } // of the step that runs
    const Schedule& listsNow() const { return cycle.schedules[cycle.at(step)]->compute(); }
    TrainingOptions options;
    ClockMode clock; // Wall or Virtual
    Recorder recorder;
    RunControl control;
    std::unique_ptr<Backend> backend;
    // Destroyed in this order: transport, stages, ranks (allocators last).
    std::vector<RankRun> ranks;
    std::vector<StageRun> stages; // by stage, then by rank
    // Whose square sums make the global norm: one rank of each stage or, of shared state, every rank for its pieces.
    std::vector<SumPlace> sums; // by stage, then by rank
    bool shared = false;        // ranks share state: sharesState(*schedule)
    std::unique_ptr<Transport> transport;
    BatchShapes shapes;
    StepData data;
    std::optional<MessageNumbers> messageNumbers; // where a tracer is to distinguish messages
    std::unique_ptr<ReadyTraining> ready;         // where ranks find the order while they run
    int step = 0;                                 // 0-based, the one that runs
    bool keepGradients = false;
    std::atomic<bool> skipped = false; // the step's optimizer, for a gradient that is not finite

    std::mutex mutex;
    std::condition_variable commanded;
    std::condition_variable finished;
    RankCommand command = RankCommand::Rest;
    std::unique_ptr<RankCommunicator> communicator; // goes first
};

} // namespace stagewright
