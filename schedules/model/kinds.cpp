#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

using K = OpKind;
constexpr Need none{K::Forward, K::Forward, 0};
constexpr Need forwardBefore{K::Forward, K::Forward, -1};
constexpr Need ownForward{K::Forward, K::Forward, 0};
constexpr Need gradientAfter{K::Backward, K::InputGrad, +1};
constexpr Need ownGradient{K::Backward, K::InputGrad, 0};
constexpr Need ownInputGrad{K::InputGrad, K::InputGrad, 0};
constexpr Need sentBefore{K::SendF, K::SendF, -1};
constexpr Need sentAfter{K::SendB, K::SendB, +1};
constexpr Need ownOffload{K::Offload, K::Offload, 0};

// kind, text, title, microbatch, may name one, needs weights, busy, compute only, needs, count, holds, frees input part, frees remainder
constexpr std::array<KindRule, opKindCount> rules{{
    // clang-format off
    {K::Forward, "F", "forward", true, false, true, true, true, {forwardBefore, none}, 1, true, false, false},
    {K::Backward, "B", "full backward", true, false, true, true, true, {gradientAfter, ownForward}, 2, false, true, true},
    {K::InputGrad, "I", "input gradient", true, false, true, true, true, {gradientAfter, ownForward}, 2, false, true, false},
    {K::WeightGrad, "W", "weight gradient", true, false, false, true, true, {ownInputGrad, none}, 1, false, false, true},
    {K::Recompute, "R", "recompute", true, false, true, true, true, {ownForward, none}, 1, true, false, false},
    {K::Optimizer, "OPT", "optimizer", false, false, false, false, false, {none, none}, 0, false, false, false},
    {K::ReduceGrad, "REDUCE_GRAD", "gradient reduction", false, true, false, false, false, {none, none}, 0, false, false, false},
    {K::Unshard, "UNSHARD", "unshard", false, true, false, false, false, {none, none}, 0, false, false, false},
    {K::Reshard, "RESHARD", "reshard", false, true, false, false, false, {none, none}, 0, false, false, false},
    {K::SendF, "SEND_F", "send activation", true, false, false, false, false, {ownForward, none}, 1, false, false, false},
    {K::RecvF, "RECV_F", "receive activation", true, false, false, false, false, {sentBefore, none}, 1, false, false, false},
    {K::SendB, "SEND_B", "send gradient", true, false, false, false, false, {ownGradient, none}, 1, false, false, false},
    {K::RecvB, "RECV_B", "receive gradient", true, false, false, false, false, {sentAfter, none}, 1, false, false, false},
    {K::Offload, "OFFLOAD", "offload", true, false, false, false, false, {ownForward, none}, 1, false, false, false},
    {K::Reload, "RELOAD", "reload", true, false, false, false, false, {ownOffload, none}, 1, false, false, false},
    {K::Filler, "FILLER", "delay", false, false, false, false, true, {none, none}, 0, false, false, false},
    // clang-format on
}};

constexpr bool inKindOrder()
{
    for (std::size_t i = 0; i < rules.size(); ++i)
        if (static_cast<std::size_t>(rules[i].kind) != i) return false;
    return true;
}
static_assert(inKindOrder(), "one rule per kind, in the order of OpKind");

} // namespace

const KindRule& ruleOf(OpKind kind)
{
    return rules[static_cast<std::size_t>(kind)];
}

} // namespace stagewright
