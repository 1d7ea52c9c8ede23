// Runs of another file into this one, and a run out of it.
#pragma once

#include "traces/store/run_store.h"

namespace stagewright {

Result<void> mergeRuns(RunStore& store, const std::string& otherPath, const Progress& progress);
Result<void> removeRun(Database& database, std::int64_t id); // within a transaction

} // namespace stagewright
