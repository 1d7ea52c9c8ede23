// The one table of kinds: text, title, dependency and memory rules. Simulator, validator, editor and engine all read it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "schedules/model/op.h"

namespace stagewright {

// How an op of a kind depends on other ops of the same microbatch (and slice). Where a need names two kinds, either
// satisfies it (a gradient arrives from a B or an I).
struct Need {
    OpKind kind;
    OpKind orKind;   // equal to kind where there is no alternative
    int stageOffset; // −1: previous stage, 0: same stage, +1: next stage; a need beyond the first or last stage is void
};

struct KindRule {
    OpKind kind;
    std::string_view text;  // in op text: "F", "SEND_F", "OPT"
    std::string_view title; // "forward", "input gradient" …
    bool takesMicrobatch;
    bool mayTakeMicrobatch; // of a stage as a whole, or of microbatches where the op names them: UNSHARD, RESHARD, REDUCE_GRAD
    bool needsWeights;      // must have all weights of its stage: sharded ones are gathered before it
    bool busy;              // counts as busy time: F, B, I, W, R
    bool computeOnly;       // allowed in PyTorch's compute-only form (or ours: R and delays)
    std::array<Need, 2> needs;
    std::uint8_t needCount;
    // Activation memory, in shares of one (stage, microbatch): F +1 at its end; the part `freedAtInput` of the cost model
    // leaves at I, the rest at W; B frees all at its end.
    bool holdsActivation; // F, R
    bool freesInputPart;  // I, B
    bool freesRemainder;  // W, B
};

const KindRule& ruleOf(OpKind kind);
inline bool isBusy(OpKind kind) { return ruleOf(kind).busy; }
// F, B, I, W or R: a kind that the model's layers execute.
inline bool isCompute(OpKind kind) { return isBusy(kind); }
inline bool isReturn(OpKind kind) { return kind == OpKind::Backward || kind == OpKind::InputGrad; } // gives the gradient that the stage before waits for
inline bool isSend(OpKind kind) { return kind == OpKind::SendF || kind == OpKind::SendB; }
inline bool isReceive(OpKind kind) { return kind == OpKind::RecvF || kind == OpKind::RecvB; }
// A send or a receive: an op that only a lowered schedule has (schedules/messages/lower.h).
inline bool isMessage(OpKind kind) { return isSend(kind) || isReceive(kind); }
// Gather or release of a stage's weights, reduction of its gradients: what ranks that share a stage do together.
inline bool isCollective(OpKind kind) { return kind == OpKind::Unshard || kind == OpKind::Reshard || kind == OpKind::ReduceGrad; }
// Whether this op names microbatches: of a collective only where it is of one, or of some.
inline bool hasMicrobatch(const Op& op)
{
    const KindRule& rule = ruleOf(op.kind);
    return rule.takesMicrobatch || (rule.mayTakeMicrobatch && op.microbatch >= 0);
}
// Reduction of a stage's gradients over its copies, or the optimizer: may be in any list.
inline bool isStageOp(OpKind kind) { return kind == OpKind::Optimizer || kind == OpKind::ReduceGrad; }

} // namespace stagewright
