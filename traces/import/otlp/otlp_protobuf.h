// OTLP in protobuf: an ExportTraceServiceRequest, several one after the other, or, as the collector's file exporter
// writes them, each behind its length in four bytes.
#pragma once

#include <string_view>

#include "schedules/base/progress.h"
#include "traces/foreign/byte_source.h"
#include "traces/import/otlp/otlp_spans.h"

namespace stagewright {

// Damage is counted in `to`. False: cancelled.
bool readOtlpProtobuf(ByteSource& source, const Progress& progress, OtlpSpans& to);

// Whether bytes that start like this are such a request with a span.
bool startsLikeOtlp(std::string_view head);

} // namespace stagewright
