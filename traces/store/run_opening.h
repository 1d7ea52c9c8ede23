// Opening a run file: what is looked at before anything of it is believed, and what a killed recording left.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "schedules/base/result.h"
#include "traces/store/run_store.h"

namespace stagewright {

Result<std::shared_ptr<RunStore>> openRunStore(const std::string& path, OpenMode mode, std::stop_token stop);

} // namespace stagewright
