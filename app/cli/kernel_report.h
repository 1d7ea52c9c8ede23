// What report --kernels prints: kernels by op, launch gaps, links, roofline.
#pragma once

#include "app/cli/run_json.h"

namespace stagewright {

std::string kernelsText(const Run& run, const RunFigures& figures, bool colour);
// {"kernels": [...], "launch_gaps": {...}, "links": [...], "roofline": [...] or null}
Json kernelsJson(const Run& run, int step);

} // namespace stagewright
