// The steps of a run that a report needs.
#pragma once

#include "traces/store/run_store.h"

namespace stagewright {

Result<Run> readForReport(RunStore& store, std::int64_t id, int step, const Progress& progress);

} // namespace stagewright
