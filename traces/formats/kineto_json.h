// JSON traces: Kineto's, of PyTorch's profiler, and Chrome's trace events in general. One pass over the events (json_events.h), a second
// where kernels lack their launches (kineto_launches.h);
// a Kineto file is one process of a job, of any other each process is a rank.
#pragma once

#include <string>

#include "traces/formats/format_registry.h"
#include "traces/import/byte_source.h"
#include "traces/import/json_events.h"

namespace stagewright {

// `name` is the file's, for messages. Damage within is counted; an Error where the bytes are no trace, or it has no events.
Result<ForeignFile> readJsonTrace(ByteSource& source, const std::string& name, const ImportOptions& options, const Progress& progress,
                                  const JsonEvents::Sizes& sizes = {});

} // namespace stagewright
