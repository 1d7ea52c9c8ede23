// Memory timelines of PyTorch (torch.profiler's export_memory_timeline), as JSON.
#pragma once

#include <string>

#include "schedules/base/progress.h"
#include "traces/foreign/byte_source.h"
#include "traces/format/format_registry.h"

namespace stagewright {

// `name` is the file's, for messages. One rank, of one device: memory by category over time, without ops. A truncated
// file is read to its end; an Error if the bytes are not a memory timeline, or it has no change of memory.
Result<ForeignFile> readMemoryTimeline(ByteSource& source, const std::string& name, const Progress& progress);

} // namespace stagewright
