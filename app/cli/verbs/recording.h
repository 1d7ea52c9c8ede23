// Recording: trains one or several schedules for real, interleaved step by step (a, b, a, b) with the same seed and
// data, and writes each as a run of one file, one transaction a step.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/training/training.h"
#include "schedules/base/result.h"
#include "schedules/check/checked_schedule.h"
#include "schedules/execute/perturb.h"
#include "schedules/plan/fill_plan.h"
#include "traces/run/run.h"
#include "traces/store/step_stream.h"

namespace stagewright {

class Session;

struct RecordSettings {
    std::vector<std::shared_ptr<const CheckedSchedule>> schedules;
    // By schedule, where its steps take turns with several: TrainingOptions::cycle.
    std::vector<std::vector<std::shared_ptr<const CheckedSchedule>>> cycles;
    FillRule fill;        // makes cycles
    std::string fillText; // as given; kept with the runs
    TrainingOptions training;
    int steps = 8;
    int warmup = 1;
    int checkpointEvery = 0; // steps; 0: never
    int keepCheckpoints = 2;
    bool keepWarmup = false;  // keeps runs that were stopped before their first measured step
    int tracedSteps = 8;      // of PyTorch's engine: the last of `steps`
    bool traceDevices = true; // where the backend has devices that can be traced
    std::string deviceDump;   // a file for CUPTI's buffers as they were filled; empty: none
    // link latency in forward units, measured once; < 0: training.links as they are
    double comm = -1;
    Perturbation perturbation; // in the same unit
    // as declared, of emulated slow ranks, which are in perturbation; empty: none
    std::string speeds;
    std::string cluster;                          // as given, whose links are emulated; kept with the runs
    std::string memoryLimit, rankMemory;          // as given; kept with the runs
    TextPairs sharing;                            // addReplicaFacts(); kept with the runs
    std::vector<std::vector<Bytes>> memoryLimits; // the same by schedule, then by rank; empty: none
    std::string file;                             // created if absent, else runs are appended
    std::string stream;                           // a new file for the stream of steps; empty: none
};

struct Recording {
    // ids of the runs that are kept, in the order of the schedules: those with a measured step
    std::vector<std::int64_t> runs;
    std::vector<int> completeSteps;       // of those, warm-up included
    std::optional<std::string> savedIn;   // the file was lost while recording: where its runs are; "": nowhere
    std::vector<std::string> checkpoints; // files that are there, oldest first
    std::optional<Error> stopped;         // why it ended early; complete steps are kept
    // Where the watchdog stopped it: who waited for whom, in which lists, in which run (0: it has no measured step, so
    // it is removed again).
    std::optional<Deadlock> stall;
    Schedule stalledLists;
    std::int64_t stalledRun = 0;
};

// The stream of steps of a recording elsewhere; none where it has none. Where Slurm has queued the job again, it goes on.
Result<std::unique_ptr<StepStreamWriter>> streamOf(const RecordSettings& settings);

// The ranks of each schedule, where all are to share the same processes. Usage: they differ.
Result<int> ranksOfEach(const RecordSettings& settings);

// Fails where nothing could start (bad model, file not writable): then the file is as it was. A failure or stop after
// that is reported in Recording::stopped; a run without a measured step is removed again.
Result<Recording> recordRuns(const RecordSettings& settings, Session& session);

// In a process that does not lead (settings.training.job): runs its ranks of the same recording until the leader is
// done.
Result<void> serveRecording(const RecordSettings& settings, Session& session);

} // namespace stagewright
