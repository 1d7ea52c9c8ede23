// Perfetto protobuf (TrackEvent) export: a Trace of TracePackets, written as it goes. The layout is that of
// trace_walk.h; a process track per rank in the order of ranks, explicitly ordered rows under it, slices as a start
// packet and an end packet, arrows as flow ids, the microbatch as correlation id, names interned on one packet
// sequence. Fields: the proto files of Perfetto v53 (track_event.proto, track_descriptor.proto,
// counter_descriptor.proto, interned_data.proto).
#pragma once

#include <string>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/export/trace_walk.h"
#include "traces/format/atomic_file.h"
#include "traces/run/run.h"

namespace stagewright {

// Names interned before the sequence's state is cleared and numbering restarts; bounds the writer's (and a reader's)
// memory.
inline constexpr std::size_t perfettoNamesAtOnce = 1 << 16;

// Streams to `out`; a false return stops with an Error (Failed). Same run, same bytes. Times are ns; if the run starts
// before 0, everything is shifted to start at 0, and the metadata's origin_ns gives the time of 0.
Result<TraceCounts> writePerfetto(const Run& run, const Sink& out, const Progress& progress = {},
                                  std::size_t namesAtOnce = perfettoNamesAtOnce);
// To a temporary name beside `path`, then renamed.
Result<TraceCounts> writePerfettoFile(const Run& run, const std::string& path, const Progress& progress = {});

} // namespace stagewright
