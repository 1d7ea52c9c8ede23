// Ops and steps of a job from the names of its ranges. Times of all ranks are on one clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/foreign/foreign_trace.h"
#include "traces/foreign/label_rules.h"

namespace stagewright {

struct OpRange {
    Nanos start = 0;
    Nanos end = 0;
    Op op;
    std::uint32_t thread = 0;
    int step = 0;
    bool saysStage = false;
    bool saysMicrobatch = false;
    bool paired = false; // of an overlapped pair: the other one, directly before or after it, has the same times
    bool device = false; // a range on the device already
    int chunk = -1;
};

struct StepTimes {
    Nanos begin = 0;
    Nanos end = 0;
    int step = 0;
    std::uint32_t thread = noThread; // the stream, of a range on the device
};

struct RankOps {
    std::vector<OpRange> ops; // by start; every step is one of 0 … steps − 1
    // by begin, on the host: as ranges mark them; cut by ops, one reaches to the next and the first and last have no
    // limit
    std::vector<StepTimes> steps;
    std::vector<StepTimes> deviceSteps; // by stream and begin: as the trace marks them on streams
    bool markedSteps = false;           // as OpReading's
    // marked on streams alone, or cut by ops that are ranges on the device: a start time says the step, not a launch
    bool stepsOnDevice = false;
};

struct OpReading {
    std::vector<RankOps> ranks;          // as given
    std::optional<LabelDialect> dialect; // empty: no op was found
    int steps = 0;
    bool markedSteps = false; // cut where ranges mark them, else where ops repeat or after the optimizer
    bool copies = false;      // the ranks are copies of a model, not stages (inferStages)
    std::int64_t outside = 0; // skipped ops outside complete steps; messages come from their records
    std::int64_t nested = 0;  // skipped ranges of ops within ops
    std::vector<std::string> notes;
};

// Stages missing in names stay 0 with saysStage false. Looks only at names and ranges of the ranks. stepsOfAll: marked
// steps that a rank with marks lacks are left out.
OpReading readOps(const std::vector<ForeignRank>& ranks, const LabelRules& rules, bool stepsOfAll = false);

// Ranks that work on the same microbatches of the same stages are copies of one pipeline (data or tensor parallel): the
// pipelines, each as indices of ranks in order. One if there are no copies.
std::vector<std::vector<std::size_t>> pipelinesOf(const std::vector<ForeignRank>& ranks, const OpReading& reading);

// Stages missing in names: the place in the pipeline, chunks in a loop or, if the last rank starts its second chunk
// before the first rank does, in a V. Ranks that run the same forwards at the same time without sending each other
// anything are copies of a model: all have stage 0. Then every op has its stage. `messages`: the ranks send to each
// other. Launches are sorted by correlation.
void inferStages(const std::vector<ForeignRank>& ranks, bool messages, OpReading& reading,
                 std::vector<std::string>& notes);

} // namespace stagewright
