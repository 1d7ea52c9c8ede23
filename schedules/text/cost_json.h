// Cost files.
#pragma once

#include <string>

#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"

namespace stagewright {

// {"format": "stagewright-costs", "version": 2, …}; docs/formats.md has the fields. read(write(x)) == x. Version 1 is
// read.
std::string writeCostsJson(const CostModel& costs);
Result<CostModel> readCostsJson(const std::string& text);

} // namespace stagewright
