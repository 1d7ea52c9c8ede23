// OTLP in JSON: an ExportTraceServiceRequest, an array of them, or one a line as the collector's file exporter writes
// them.
#pragma once

#include <string_view>

#include "schedules/base/progress.h"
#include "traces/foreign/byte_source.h"
#include "traces/import/otlp/otlp_spans.h"

namespace stagewright {

// Spans are taken as they come, whatever the size of the text; a line that does not parse is counted in `to`, and
// reading goes on at the next line that starts an object. False: cancelled.
bool readOtlpJson(ByteSource& source, const Progress& progress, OtlpSpans& to);

} // namespace stagewright
