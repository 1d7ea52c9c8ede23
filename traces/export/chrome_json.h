// Chrome JSON trace event export in the layout of trace_walk.h: one process per rank, one thread per row, flows for
// data dependencies, counters for memory, names and order metadata, microseconds from integers.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/export/trace_walk.h"
#include "traces/run/run.h"

namespace stagewright {

// "1234.567": microseconds with three decimals from integer nanoseconds. The only such conversion.
std::string microseconds(Nanos nanos);

// With quotes; control characters escaped, bytes that are not UTF-8 replaced.
std::string jsonText(std::string_view text);

// Streams to `out`; a false return stops with an Error (Failed). Same run, same bytes.
Result<TraceCounts> writeChromeJson(const Run& run, const std::function<bool(std::string_view)>& out,
                                    const Progress& progress = {});
// To a temporary name beside `path`, then renamed.
Result<TraceCounts> writeChromeJsonFile(const Run& run, const std::string& path, const Progress& progress = {});

} // namespace stagewright
