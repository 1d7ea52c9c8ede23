// The timeline of one pipeline from its ranks: lanes, spans, edges, and the schedule that was executed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/import/assemble.h"
#include "traces/import/message_pairs.h"
#include "traces/import/op_ranges.h"

namespace stagewright {

struct JobParts {
    std::vector<ForeignRank> ranks; // on one clock, in order of their numbers
    OpReading ops;                  // stages known
    MessagePairs messages;
};

// Frees the parts along the way. Fills counts, notes and schedule of `out`.
//   Compute  ops, optimizer, reduction       Send, Receive  messages with both sides
//                                                           (schedules/timeline/message_view.h)
//   Kernel, Copy  one track a stream, labelled; Span::op is the op they were launched by, with a Launch edge from it
//   Other    named ranges, one track a thread, and at the times of their kernels, with a Launch edge to kernels outside
//            ops
Result<std::shared_ptr<const Timeline>> buildTimeline(JobParts parts, ImportedRun& out, const Progress& progress);

} // namespace stagewright
