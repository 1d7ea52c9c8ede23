// Running a job folder of PyTorch: one process a rank, on this computer or on the nodes of a Slurm job, watched until
// all have ended.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/torch/torch_event.h"
#include "schedules/base/result.h"

namespace stagewright {

struct TorchRun {
    std::string python; // absolute path of an interpreter or of a program that acts as one
    std::string folder; // of the job, absolute
    int ranks = 1;
    // of a Slurm job: srun starts as many on each, neighbours together; the folder is on all. Empty: all here
    std::vector<std::string> nodes{};
    std::vector<std::string> srun{};      // its options, as words; not empty: it starts the ranks on one node, too
    std::vector<std::string> container{}; // words in front of each rank's interpreter
    int untraced = 0; // steps before the traced ones: of a job that is stopped in them nothing is kept
    // Without progress; loading PyTorch has 120 s at least, as writing traces on another node has. Ranks that load or
    // write here may take as long as they compute.
    double timeoutSeconds = 120;
    std::function<void(const TorchEvent&)> onEvent{}; // on the calling thread; Ready, Step and Check
};

struct TorchRunEnd {
    int completeSteps = 0;      // warm-up included
    std::vector<double> losses; // by step; NaN where none was said
    std::vector<Nanos> stepTimes;
    std::string torch, python, device; // of rank 0
    std::string interface; // of ranks on several nodes: "ib0", by which rank 0 meets the others; "": unknown
    int tracedSteps = 0;   // by every rank; an end costs the step that was not complete only
    // Beside the traced steps, on the rank where both took longest; 0: it did not come to its end.
    Nanos profiling = 0; // PyTorch's profiler
    Nanos writing = 0;   // its traces
    // Why it ended early. Cancelled: on request, between two steps where that took no longer than 10 s. Failed: a rank
    // ended, made no sign of life for 15 s in which it did not compute either, or no rank made progress for the
    // time-out; it names the rank, what it did and its log's last lines. All other ranks have been ended.
    std::optional<Error> stopped;
};

// Fails where nothing could start. Blocks; looks at the ranks ten times a second.
Result<TorchRunEnd> runTorchJob(const TorchRun& run, const std::stop_token& stop);

} // namespace stagewright
