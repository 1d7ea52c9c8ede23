// ExecutionPlan: a schedule as the rank loop runs it: for each op the parts it hands to the stage's layers, one after
// the other, and for each part the messages it needs and the ones it makes.
//
// Granularity. An op may cover several microbatches, one sequence slice or half a batch; the producer and the
// consumer of an input need not be cut alike. There is one message for each producer, consumer and microbatch, as large
// as the finer side: a whole F that feeds halves of a B's stage sends two, an F over microbatches 0 and 1 sends one for
// each. Within a stage
//   I or B   its F ran on the same part, or on the whole batch of which it is one half
//   W        has the parts of the I ops it covers: W over microbatches 0 to 3, or a whole W after two halves of I
//   R        has the parts of the F ops it covers
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/training/op_runner.h"
#include "engine/workload/stage_model.h"
#include "profiler/record/message_key.h"
#include "schedules/base/result.h"
#include "schedules/check/checked_schedule.h"

namespace stagewright {

struct PlannedMessage {
    MessageKey key;
    int rank = 0; // the other side: producer of an input, consumer of an output; the same rank: handed over
};

struct PlannedPart {
    Part part;
    std::uint32_t firstInput = 0; // into RankPlan::inputs
    std::uint32_t inputCount = 0;
    std::uint32_t firstOutput = 0; // into RankPlan::outputs
    std::uint32_t outputCount = 0;
};

struct PlannedOp {
    Op op;
    std::uint32_t firstPart = 0; // into RankPlan::parts
    std::uint32_t partCount = 0;
    std::uint32_t firstInput = 0; // of all its parts
    std::uint32_t inputCount = 0;
    bool pairedWithNext = false; // inputs of both are waited for first, then they run in order
    bool recomputed = false;     // F: an R follows, so that the layers may drop what it can recompute
    bool predicts = false;       // F under WeightRule::Predicted: of a stage that has an F with predictedUpdates > 0
    // F under WeightRule::Predicted: optimizer steps of the stage between it and its I or B
    int predictedUpdates = 0;
    int cyclesBack = 0; // work that fills gaps: whose refresh it is of (cycle_plans.h)
};

struct RankPlan {
    std::vector<int> stages; // ascending
    std::vector<PlannedOp> ops;
    std::vector<PlannedPart> parts;
    std::vector<PlannedMessage> inputs;
    std::vector<PlannedMessage> outputs;
    std::size_t computeEnd = 0;  // no F, B, I, W or R from here on
    bool stepsOnArrival = false; // other ops than gathers, releases and steps behind an Optimizer op

    std::span<const PlannedPart> partsOf(const PlannedOp& op) const
    {
        return std::span(parts).subspan(op.firstPart, op.partCount);
    }
    std::span<const PlannedMessage> inputsOf(const PlannedOp& op) const
    {
        return std::span(inputs).subspan(op.firstInput, op.inputCount);
    }
    std::span<const PlannedMessage> inputsOf(const PlannedPart& part) const
    {
        return std::span(inputs).subspan(part.firstInput, part.inputCount);
    }
    std::span<const PlannedMessage> outputsOf(const PlannedPart& part) const
    {
        return std::span(outputs).subspan(part.firstOutput, part.outputCount);
    }
};

struct ExecutionPlan {
    std::vector<RankPlan> ranks;
    bool halves = false;       // some op works on half a batch
    bool slices = false;       // some op works on a slice
    bool concatenates = false; // some W covers several parts
    bool recomputes = false;   // some R
    bool steps = false;        // Optimizer ops in the lists: no barrier before them, but for shared state
    bool shared = false;       // ranks share state: sharesState()
    bool reduces = false;      // ReduceGrad ops in the lists
    bool copies = false;       // OFFLOAD and RELOAD
};

// Plans the lists without sends and receives. Refuses (Usage) what can't be executed: gathers without ranks that share
// state, parts cut in ways that the layers can't follow, Optimizer ops that do not fit the schedule's rule for weights.
Result<ExecutionPlan> planExecution(const CheckedSchedule& schedule, const OpRunners& runners = {});

// Lengths in tokens of the schedule's slices: shares of `sequence` in proportion to Schedule::sliceLengths (equal ones
// where empty), by largest remainder, earlier slices first. Empty where no op names a slice. Usage where one would be
// empty.
Result<std::vector<int>> sliceTokens(const Schedule& schedule, int sequence);

} // namespace stagewright
