// ExecutionPlan: a schedule as the rank loop runs it: for each op, the messages it needs and the ones it makes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profiler/rank_recorder.h"
#include "schedules/base/result.h"
#include "schedules/schedule.h"

namespace stagewright {

struct PlannedMessage
{
    MessageKey key;
    int rank = 0; // the other side: producer of an input, consumer of an output; the same rank: handed over
};

struct PlannedOp
{
    Op op;
    std::uint32_t firstInput = 0; // into RankPlan::messages
    std::uint32_t inputCount = 0;
    std::uint32_t firstOutput = 0;
    std::uint32_t outputCount = 0;
    bool pairedWithNext = false; // inputs of both are waited for first, then they run in order
};

struct RankPlan
{
    std::vector<int> stages; // ascending
    std::vector<PlannedOp> ops;
    std::vector<PlannedMessage> messages;

    std::span<const PlannedMessage> inputsOf(const PlannedOp& op) const
    {
        return std::span(messages).subspan(op.firstInput, op.inputCount);
    }
    std::span<const PlannedMessage> outputsOf(const PlannedOp& op) const
    {
        return std::span(messages).subspan(op.firstOutput, op.outputCount);
    }
};

struct ExecutionPlan
{
    std::vector<RankPlan> ranks;
};

// Validates the schedule first (Invalid), then refuses (Usage) what can't be executed: copies of a stage, slices,
// halves, recompute and kinds other than F, B, I, W and fillers. Ops over several microbatches run them in order.
Result<ExecutionPlan> planExecution(const Schedule& schedule);

} // namespace stagewright
