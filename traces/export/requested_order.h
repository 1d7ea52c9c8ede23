// The order that a format of the order alone writes.
#pragma once

#include "traces/format/format_registry.h"
#include "traces/report/run_report.h"

namespace stagewright {

// ExportRequest::order, or that of the run. Errors: those of scheduleOfRun.
inline Result<Schedule> requestedOrder(const ExportRequest& request)
{
    return request.order != nullptr ? Result<Schedule>(*request.order) : scheduleOfRun(*request.run);
}

} // namespace stagewright
