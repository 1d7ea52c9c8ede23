// Chrome JSON trace event export (specs: formats, section 1): one process per rank, one thread per lane without overlapping
// spans, flows for data dependencies, counters for memory, names and order metadata, microseconds from integers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/run.h"

namespace stagewright {

struct ChromeCounts { // what was written; equal to what the timeline holds
    std::int64_t spans = 0;
    std::int64_t bubbles = 0;
    std::int64_t flows = 0;
    std::int64_t counterSamples = 0;
};

// "1234.567": microseconds with three decimals from integer nanoseconds. The only such conversion.
std::string microseconds(Nanos nanos);

// Streams to `out`; a false return stops with an Error (Failed). Same run, same bytes.
Result<ChromeCounts> writeChromeJson(const Run& run, const std::function<bool(std::string_view)>& out,
                                     const Progress& progress = {});
// To a temporary name beside `path`, then renamed.
Result<ChromeCounts> writeChromeJsonFile(const Run& run, const std::string& path, const Progress& progress = {});

} // namespace stagewright
