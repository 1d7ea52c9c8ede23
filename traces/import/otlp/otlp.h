// Files of OpenTelemetry's protocol (OTLP), JSON or protobuf.
#pragma once

#include <string>
#include <vector>

#include "traces/foreign/byte_source.h"
#include "traces/import/otlp/otlp_spans.h"

namespace stagewright {

// Adds what `source` holds to `to`; Cancelled is the only Error. JSON or protobuf by its first bytes.
Result<void> readOtlp(ByteSource& source, bool json, const Progress& progress, OtlpSpans& to);

// Whether text that starts like this is a request in JSON.
bool startsLikeOtlpJson(std::string_view head);

} // namespace stagewright
