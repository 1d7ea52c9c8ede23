// JSON traces: Kineto's, of PyTorch's profiler, and Chrome's trace events in general. One pass over the events
// (json_events.h), a second if kernels lack their launches (kineto_launches.h).
// A Kineto file is one process of a job; in any other file each process is a rank.
#pragma once

#include <string>

#include "traces/foreign/byte_source.h"
#include "traces/foreign/json_events.h"
#include "traces/format/format_registry.h"

namespace stagewright {

// `name` is the file's, for messages. Damage within is counted; an Error if the bytes are not a trace, or it has no
// events.
Result<ForeignFile> readJsonTrace(ByteSource& source, const std::string& name, const ImportOptions& options,
                                  const Progress& progress, const JsonEvents::Sizes& sizes = {});

} // namespace stagewright
