// Recomputation as a pass over a schedule: an R before the backward of every microbatch of the chosen stages. Then F
// keeps only the stage's input, and R recomputes the activations (Chen et al. 2016, arXiv 1604.06174).
#pragma once

#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// "all", "none", "0-2", "1", "0-1,3" (or with '+') → by stage. Usage error outside 0 … stages − 1.
Result<std::vector<bool>> parseRecompute(std::string_view text, int stages);

// R comes directly before each B or I of the chosen stages (the first half of one whose forward ran whole). Not
// hoisted, R is issued together with it (Schedule::paired): it starts when the gradient has arrived too, and the
// backward follows it. Hoisted, it starts as soon as its rank is free. A backward that is in a pair with another op:
// hoisted, its R comes before the pair; else the pair comes apart, since both of it and the R would wait for each
// other's inputs. Stages that have an R already keep theirs.
Schedule withRecompute(const Schedule& schedule, const std::vector<bool>& stages, bool hoisted = false);

} // namespace stagewright
