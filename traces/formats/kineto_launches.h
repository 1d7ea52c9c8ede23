// Device work that no record of a launch tells of: runtime calls were not traced, or the profiler lost them. It is tied to what its
// "External id" names on the host, an operator or a range; in traces older than those ids to where its flow begins.
#pragma once

#include <cstdint>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/formats/trace_threads.h"
#include "traces/import/byte_source.h"
#include "traces/import/foreign_trace.h"

namespace stagewright {

// `external` is by ForeignRank::device, −1 or 0: none. Where work lacks its launch (of a large file a hundredth of it) the source is read a
// second time from its begin, for operators are not kept; launches are added to the rank, and a note with the counts. Errors: Cancelled.
Result<void> tieWithoutLaunches(ByteSource& source, const std::vector<std::int64_t>& external, TraceThreads& threads, ForeignRank& rank,
                                const Progress& progress);

} // namespace stagewright
