// Perfetto's protobuf traces: those of PyTorch's newer profiler (torch/profiler/_cuspy), of Perfetto's SDK, and what is
// exported here. Slices, render stages of GPUs and counters become events, whose meaning is kineto/trace_events.h.
#pragma once

#include <string>

#include "traces/foreign/byte_source.h"
#include "traces/format/format_registry.h"

namespace stagewright {

// `name` is the file's, for messages. Damage within is counted; an Error if it has no events.
Result<ForeignFile> readPerfettoTrace(ByteSource& source, const std::string& name, const ImportOptions& options,
                                      const Progress& progress);

} // namespace stagewright
