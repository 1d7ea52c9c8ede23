// The traces of a PyTorch job as a run of this program: with its order, losses, configuration and versions.
#pragma once

#include <string>

#include "app/launch/titan_run.h"
#include "app/launch/torch_run.h"
#include "engine/torch/torch_job.h"
#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/run/run.h"

namespace stagewright {

struct TorchImport {
    Run run;             // of the measured steps; not stored yet
    std::string warning; // the order that ran is not the one that was sent; "" if it is
};

// Reads FOLDER/traces. Fails where they are unreadable or are not one run.
Result<TorchImport> importTorchJob(const TorchJob& job, const TorchRunEnd& end, const std::string& folder,
                                   const Progress& progress = {});

// The same of a TorchTitan job: its newest traces, with the losses of its log.
Result<TorchImport> importTitanJob(const Schedule& schedule, const TitanRun& titan, const TitanRunEnd& end,
                                   const Progress& progress = {});

} // namespace stagewright
