// Device work without a launch record: runtime calls were not traced, or the profiler lost them. It is matched to the
// operator or range on the host with the same "External id"; in traces older than those ids to the start of its flow.
// Ids are of a process: where ranks were merged into one file, only those of the process count that made the device's
// other calls, or has its tag.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/foreign/byte_source.h"
#include "traces/foreign/foreign_trace.h"
#include "traces/import/kineto/trace_threads.h"

namespace stagewright {

// A process's id as it is among those of all processes (−1: none).
using IdOfProcess = std::function<std::int64_t(std::string_view process, std::int64_t id)>;

// `external` is by ForeignRank::device, as idOf() gives it, −1 or 0: none. If work lacks its launch (in a large file 1
// % of it), the source is read a second time from the start, because operators are not kept; launches are added to the
// rank, and a note with the counts. Errors: Cancelled.
Result<void> tieWithoutLaunches(ByteSource& source, const std::vector<std::int64_t>& external, const IdOfProcess& idOf,
                                TraceThreads& threads, ForeignRank& rank, const Progress& progress);

} // namespace stagewright
