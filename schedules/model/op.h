// Op: one cell of a schedule. Text form (PyTorch's pipelining convention): stage, kind, microbatch, no separators.
//
//   2F0     stage 2, forward, microbatch 0        3I1  input gradient        0W7  weight gradient     1B4  full
//                                                                            backward
//   2F0.1   sequence slice 1                      0W0-3  one op over microbatches 0 to 3              2B1h0  first half
//   2R3     recompute      2OPT  optimizer
//   1UNSHARD  1RESHARD  2REDUCE_GRAD              of a stage and the whole batch: its weights gathered, released, its
//                                                 gradients reduced
//   1UNSHARD3 1RESHARD3 2REDUCE_GRAD3             the same for one microbatch
//   0SEND_F1 1RECV_F1 3SEND_B0 2RECV_B0           the stage named is the sending / the receiving one
//   0FILLER5000  an intended delay of 5,000 ns (stage: any stage of the rank)
//   1FACTOR_A3 1FACTOR_G3 1INVERT.2               K-FAC's factors of a microbatch; the third piece of their inversion
//
// Zero-bubble papers write B for the input gradient (our I); the window names both.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "schedules/base/result.h"

namespace stagewright {

enum class OpKind : std::uint8_t {
    Forward,
    Backward, // full backward: input and weight gradient in one op
    InputGrad,
    WeightGrad,
    Recompute,
    Optimizer,
    ReduceGrad,
    Unshard,
    Reshard,
    SendF,
    RecvF,
    SendB,
    RecvB,
    Offload,
    Reload,
    Filler,
    FactorA,
    FactorG,
    Invert,
};
inline constexpr std::size_t opKindCount = 19;
// Places of a table by kind: one more, for the kind that a test adds (ExtraKind in kinds.h).
inline constexpr std::size_t opKindRoom = opKindCount + 1;

struct Op {
    std::int32_t microbatch = -1; // −1: the kind has none, or a collective is of the whole batch
    std::uint32_t delay = 0;      // Filler only: ns, at most 4.29 s
    std::uint16_t stage = 0;
    std::uint16_t count = 1; // microbatches covered: microbatch … microbatch + count − 1
    std::int16_t slice = -1; // sequence slice, −1: whole sequence; of a kind in pieces which piece, from 0 on
    OpKind kind = OpKind::Forward;
    std::uint8_t half = 0; // 0: whole, 1: h0, 2: h1

    auto operator<=>(const Op&) const = default;
};
static_assert(sizeof(Op) == 16);

inline Op makeOp(OpKind kind, int stage, int microbatch = -1)
{
    Op op;
    op.kind = kind;
    op.stage = static_cast<std::uint16_t>(stage);
    op.microbatch = microbatch;
    return op;
}
inline Op makeFiller(int stage, std::uint32_t delay)
{
    Op op = makeOp(OpKind::Filler, stage);
    op.delay = delay;
    return op;
}

inline Op makePiece(OpKind kind, int stage, int piece)
{
    Op op = makeOp(kind, stage);
    op.slice = static_cast<std::int16_t>(piece);
    return op;
}

inline Op makeForward(int stage, int microbatch) { return makeOp(OpKind::Forward, stage, microbatch); }
inline Op makeBackward(int stage, int microbatch) { return makeOp(OpKind::Backward, stage, microbatch); }
inline Op makeOptimizer(int stage) { return makeOp(OpKind::Optimizer, stage); }
// It is of the whole batch, or of one microbatch.
inline Op makeGather(int stage, int microbatch = -1) { return makeOp(OpKind::Unshard, stage, microbatch); }
inline Op makeRelease(int stage, int microbatch = -1) { return makeOp(OpKind::Reshard, stage, microbatch); }
inline Op makeReduction(int stage, int microbatch = -1) { return makeOp(OpKind::ReduceGrad, stage, microbatch); }

// Round trip: parseOp(toText(op)) == op for every op whose fields fit its kind.
std::string toText(const Op& op);
// Strict: the whole text must be consumed. Errors name the character.
Result<Op> parseOp(std::string_view text);

} // namespace stagewright

template <>
struct std::hash<stagewright::Op> {
    std::size_t operator()(const stagewright::Op& op) const noexcept;
};
