// Device work without a launch record: runtime calls were not traced, or the profiler lost them. It is matched to the operator or range on the
// host with the same "External id"; in traces older than those ids to the start of its flow.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/foreign/byte_source.h"
#include "traces/foreign/foreign_trace.h"
#include "traces/import/kineto/trace_threads.h"

namespace stagewright {

// `external` is by ForeignRank::device, −1 or 0: none. If work lacks its launch (in a large file 1 % of it), the source is read a
// second time from the start, because operators are not kept; launches are added to the rank, and a note with the counts. Errors: Cancelled.
Result<void> tieWithoutLaunches(ByteSource& source, const std::vector<std::int64_t>& external, TraceThreads& threads, ForeignRank& rank,
                                const Progress& progress);

} // namespace stagewright
