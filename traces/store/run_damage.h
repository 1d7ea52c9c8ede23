// What of a run is damaged.
#pragma once

#include "traces/store/run_store.h"

namespace stagewright {

Result<RunDamage> damageOf(RunStore& store, std::int64_t id, const Progress& progress);

} // namespace stagewright
