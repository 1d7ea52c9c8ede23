// The lowering (lower.h) of lists whose index is there already.
#pragma once

#include "schedules/messages/lower.h"
#include "schedules/model/op_index.h"

namespace stagewright {

// As lower(). compute: without sends and receives; index: its own.
Result<Schedule> lowerIndexed(const Schedule& compute, const OpIndex& index, const Lowering& lowering);

} // namespace stagewright
