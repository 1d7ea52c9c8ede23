// Recorder: the recording of one training. Ranks write into rank(r) from their own threads; between steps, while all
// ranks are at rest, finishStep() turns what they recorded into the step's Timeline on the run's clock.
//
//     Recorder recorder(schedule, {.virtualClock = true, .links = links});
//     recorder.beginStep();        // before the ranks are let go
//     …                            // ranks call recorder.rank(r)
//     auto step = recorder.finishStep();
#pragma once

#include <memory>
#include <vector>

#include "profiler/record/rank_recorder.h"
#include "profiler/record/step_record.h"
#include "schedules/execute/perturb.h"

namespace stagewright {

struct GpuTrace;
struct TraceFacts;

struct RecorderOptions {
    bool virtualClock = false; // false: wall
    // of the virtual clock; on the wall clock messages carry when they are available
    Links links;
    RunPerturbation perturbation;       // of the virtual clock; on the wall clock the ranks themselves take longer
    bool threadCpu = true;              // the virtual clock needs it
    Channels channels{};                // of the virtual clock: whether messages share their links
    std::vector<int> gradientBuckets{}; // of the virtual clock (schedules/execute/place_buckets.h)
    // Schedules that steps take turns with, of which the recorder's is the first.
    std::vector<std::shared_ptr<const CheckedSchedule>> cycle{};
    bool ordersItself = false; // ranks find the order of their ops while they run: record/ran_order.h
};

struct RecordedStep {
    int step = 0;
    Nanos stepTime = 0; // on the run's clock: first to last span
    double contention = 0;
    std::shared_ptr<const Timeline> timeline; // this step alone; time 0 is the start of step 0
};

class Recorder {
public:
    Recorder(std::shared_ptr<const CheckedSchedule> schedule, const RecorderOptions& options);

    RankRecorder& rank(int rank) { return *m_ranks[static_cast<std::size_t>(rank)]; }
    int steps() const { return m_steps; } // finished ones

    void beginStep();
    // What a rank in another process recorded in this step; offset: to add to its times to have this process's. None of
    // them is before beginStep(): clocks are known but for a band.
    void adopt(int rank, std::vector<RecordedEvent> events, Nanos offset);
    // Fails where a rank's record is not whole (the step was stopped): then the step is dropped. trace: what devices
    // did in the step (GpuTracer::take); ops then have their times, kernels hang below them, and facts, if given,
    // gathers what was missing. On the virtual clock an op's duration is then its interval on the device.
    Result<RecordedStep> finishStep(const GpuTrace* trace = nullptr, TraceFacts* facts = nullptr);
    void dropStep(); // forgets what was recorded since beginStep()

private:
    std::shared_ptr<const CheckedSchedule> m_schedule;
    ExpectedMessages m_messages;
    std::shared_ptr<const CheckedSchedule> m_ran; // in the last step; m_messages are its own
    RecorderOptions m_options;
    std::vector<std::unique_ptr<RankRecorder>> m_ranks;
    std::vector<std::vector<RecordedEvent>> m_adopted; // by rank; empty: its own
    int m_steps = 0;
    Nanos m_origin = -1; // of the wall clock
    Nanos m_begin = 0;   // of the step, CLOCK_MONOTONIC
    Nanos m_virtualEnd = 0;
};

} // namespace stagewright
