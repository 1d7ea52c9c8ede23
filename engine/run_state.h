// What the ranks of one training share. Threads hold it by shared_ptr: a rank that hangs inside an op can be left
// behind without pulling the ground from under it.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/backend.h"
#include "engine/execution_plan.h"
#include "engine/op_execution.h"
#include "engine/run_control.h"
#include "engine/training.h"
#include "engine/transport/transport.h"
#include "profiler/recorder.h"

namespace stagewright {

// Tells a rank's recorder what the rank's allocator does.
class RecordingSink final : public MemorySink
{
public:
    explicit RecordingSink(RankRecorder& recorder) : m_recorder(recorder) {}
    void memoryChanged(const MemoryTag& tag, Bytes delta) override
    {
        m_recorder.memoryChanged(tag.category, tag.stage, tag.microbatch, delta);
    }

private:
    RankRecorder& m_recorder;
};

// One stage: its layers live on its rank's thread, its results are read by others only after a barrier.
struct StageRun
{
    StageSlice slice;
    std::unique_ptr<StageModel> model;
    double squareSum = 0;
    std::vector<double> losses;   // by microbatch; last stage
    std::vector<float> gradients; // before clipping, where they are kept
};

enum class RankCommand { Rest, Step, Leave };

struct RankRun
{
    std::unique_ptr<RecordingSink> sink; // outlives the allocator's buffers
    std::unique_ptr<Allocator> allocator;
    RankStatus status;
    // Guarded by RunState::mutex:
    std::uint64_t ordered = 0; // commands given
    std::uint64_t done = 0;    // commands finished
};

struct RunState
{
    RunState(std::shared_ptr<const Schedule> schedule, ExecutionPlan plan, const TrainingOptions& options,
             ClockMode clock, int permits, std::unique_ptr<Backend> backend);

    std::shared_ptr<const Schedule> schedule;
    ExecutionPlan plan;
    TrainingOptions options;
    ClockMode clock; // Wall or Virtual
    Recorder recorder;
    RunControl control;
    std::unique_ptr<Backend> backend;
    // Destroyed in this order: transport, stages, ranks (allocators last).
    std::vector<RankRun> ranks;
    std::vector<StageRun> stages;
    std::unique_ptr<Transport> transport;
    StepData data;
    int step = 0; // 0-based, the one that runs
    bool keepGradients = false;

    std::mutex mutex;
    std::condition_variable commanded;
    std::condition_variable finished;
    RankCommand command = RankCommand::Rest;
};

// A rank's life: makes its stages, then obeys commands until Leave. Exceptions end in RunControl::stop().
void runRank(const std::shared_ptr<RunState>& state, int rank);

} // namespace stagewright
