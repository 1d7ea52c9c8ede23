// Ops of a schedule that no figure follows from yet.
#pragma once

#include <string>

#include "schedules/model/schedule.h"

namespace stagewright {

// "2 OFFLOAD and 2 RELOAD ops move nothing: …"; "" where every op counts. Who reads a schedule says it.
std::string withoutEffect(const Schedule& schedule);

} // namespace stagewright
