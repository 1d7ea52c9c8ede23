// Running a TorchTitan job of the user's on this computer with a schedule of ours: by the script of its folder
// (traces/export/torchtitan), watched until it ends.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct TitanRun {
    std::string python;                                  // absolute path of an interpreter that has TorchTitan
    std::string torch;                                   // its PyTorch
    std::string folder;                                  // of the job, absolute, as writeTorchTitanFolder() made it
    std::string config;                                  // the job's TOML file, absolute, or MODULE:FUNCTION
    int steps = 8;                                       // the last one is traced
    double timeoutSeconds = 120;                         // without a line of output; the start has 600 s at least
    std::function<void(int step, double loss)> onStep{}; // 0-based; on the calling thread
};

struct TitanRunEnd {
    int steps = 0;
    std::vector<double> losses; // by step; NaN where none was said
    std::string traces;         // the folder of the newest ones; "": none
    // Why it ended early, with the last lines of its log, FOLDER/titan.log. Cancelled: on request; it is ended at once.
    std::optional<Error> stopped;
};

inline constexpr int fewestTitanSteps = 4; // its profiler warms up for three

// Fails where it could not start. Blocks; looks at it ten times a second.
Result<TitanRunEnd> runTitanJob(const TitanRun& run, const std::stop_token& stop);

// "step: 12  loss:  8.1309" in a line of TorchTitan's log, with its colours. None: another line.
struct TitanStep {
    int step = 0; // 1-based, as it counts
    double loss = 0;
};
std::optional<TitanStep> parseTitanLine(const std::string& line);

} // namespace stagewright
