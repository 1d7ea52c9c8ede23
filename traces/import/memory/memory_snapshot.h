// Memory snapshots of PyTorch's allocator, converted from pickle to JSON.
#pragma once

#include <cstdint>
#include <string>

#include "schedules/base/progress.h"
#include "traces/foreign/byte_source.h"
#include "traces/format/format_registry.h"

namespace stagewright {

inline constexpr std::int64_t mostMemoryBytes = std::int64_t{1} << 50; // of one change; more is damage

// `name` is the file's, for messages. Every device with events is a rank: its allocations and frees, the ranges of
// external_annotations, the reserved bytes as a counter. A truncated file is read to its end; an Error if the bytes are
// not a snapshot, or it has no events with times.
Result<ForeignFile> readMemorySnapshot(ByteSource& source, const std::string& name, const Progress& progress);

} // namespace stagewright
