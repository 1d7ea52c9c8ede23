// What a list of the runs of a file shows, read table by table, not run by run.
#pragma once

#include "traces/store/run_store.h"

namespace stagewright {

Result<void> listRuns(RunStore& store, const RunFile::ListSink& sink, const Progress& progress);

} // namespace stagewright
