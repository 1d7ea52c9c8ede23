// Ops and steps of a job from the names of its ranges. Times of all ranks are of one clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traces/import/foreign_trace.h"
#include "traces/import/label_rules.h"

namespace stagewright {

struct OpRange {
    Nanos start = 0;
    Nanos end = 0;
    Op op;
    std::uint32_t thread = 0;
    int step = 0;
    bool saysStage = false;
    bool saysMicrobatch = false;
    bool paired = false; // of an overlapped pair: the other one, directly before or behind it, has the same times
    bool device = false; // a range on the device already
    int chunk = -1;
};

struct RankOps {
    std::vector<OpRange> ops;                          // by start; every step is one of 0 … steps − 1
    std::vector<std::pair<Nanos, int>> stepBegins;     // by time: where each step present begins
};

struct OpReading {
    std::vector<RankOps> ranks; // as given
    std::optional<LabelDialect> dialect; // none: no op was found
    int steps = 0;
    bool markedSteps = false;    // cut where ranges mark them, else where ops come again
    std::int64_t outside = 0;    // ops outside of whole steps, left out; messages are told by their records
    std::int64_t nested = 0;     // ranges of ops within ops, left out
    std::vector<std::string> notes;
};

// Stages that names do not say stay 0 with saysStage false.
OpReading readOps(const std::vector<ForeignRank>& ranks, const LabelRules& rules);

// Ranks that work on the same microbatches of the same stages are copies of one pipeline (data or tensor parallel): the pipelines,
// each as indices of ranks in order. One where there are no copies.
std::vector<std::vector<std::size_t>> pipelinesOf(const std::vector<ForeignRank>& ranks, const OpReading& reading);

// Stages where names say none: the place in the pipeline, chunks in a loop or, where the last rank begins its second chunk before
// the first rank does, in a V. Ops then all say their stage.
void inferStages(OpReading& reading, std::vector<std::string>& notes);

} // namespace stagewright
