// A run of a file, or some of its steps, as a Run.
#pragma once

#include "traces/store/run_store.h"

namespace stagewright {

// The row of `run` as info; a run in state Recording whose writer is gone shows as Interrupted.
Result<RunInfo> readRunInfo(RunStore& store, std::int64_t id);
Result<void> eachRunInfo(
    RunStore& store,
    const std::function<Result<void>(RunInfo)>& sink); // those that are listed, by id, until the sink gives an error
Result<std::vector<RunInfo>> readRunInfos(RunStore& store);
Result<Run> readRun(RunStore& store, std::int64_t id, StepRange steps, const Progress& progress);
Result<Run> readRunHeader(RunStore& store, std::int64_t id);

} // namespace stagewright
