#include "schedules/model/kinds.h"

#include <algorithm>
#include <cassert>

namespace stagewright {

namespace {

using K = OpKind;
constexpr Need forwardBefore{K::Forward, K::Forward, StageSide::Before};
constexpr Need ownForward{K::Forward, K::Forward};
constexpr Need gradientAfter{K::Backward, K::InputGrad, StageSide::After};
constexpr Need ownGradient{K::Backward, K::InputGrad};
constexpr Need ownInputGrad{K::InputGrad, K::InputGrad};
constexpr Need sentBefore{K::SendF, K::SendF, StageSide::Before};
constexpr Need sentAfter{K::SendB, K::SendB, StageSide::After};
constexpr Need ownOffload{K::Offload, K::Offload};
constexpr Need ownReload{K::Reload, K::Reload, StageSide::Own, true};

using Memory = MemoryCategory;
using Share = MemoryShare;
constexpr bool takes = true, frees = false, atStart = false, atEnd = true;
constexpr MemoryEffect keepsActivation{Memory::Activations, Share::Activation, takes, atEnd};
constexpr MemoryEffect movesOut{Memory::Activations, Share::Activation, frees, atEnd};
constexpr MemoryEffect movesIn{Memory::Activations, Share::Activation, takes, atStart};
constexpr MemoryEffect keepsRecomputed{Memory::Activations, Share::Recomputed, takes, atEnd};
constexpr MemoryEffect freesInputPart{Memory::Activations, Share::InputPart, frees, atEnd};
constexpr MemoryEffect freesRemainder{Memory::Activations, Share::Remainder, frees, atEnd};
constexpr MemoryEffect takesGradient{Memory::Gradients, Share::Gradient, takes, atStart};

constexpr std::array<KindTraits, opKindPlaces> rows{{
    {.kind = K::Forward,
     .text = "F",
     .letter = "F",
     .title = "forward",
     .plural = "forwards",
     .colour = ColourClass::Forward,
     .makes = Product::Activation,
     .takesMicrobatch = true,
     .needsWeights = true,
     .busy = true,
     .computeOnly = true,
     .needs = {forwardBefore},
     .slices = SliceOrder::Rising,
     .memory = {keepsActivation}},
    {.kind = K::Backward,
     .text = "B",
     .letter = "B",
     .title = "full backward",
     .plural = "full backwards",
     .colour = ColourClass::Backward,
     .makes = Product::Gradient,
     .takesMicrobatch = true,
     .needsWeights = true,
     .busy = true,
     .computeOnly = true,
     .makesWeightGradient = true,
     .needs = {gradientAfter, ownForward, ownReload},
     .slices = SliceOrder::Falling,
     .memory = {takesGradient, freesInputPart, freesRemainder}},
    {.kind = K::InputGrad,
     .text = "I",
     .letter = "I",
     .title = "input gradient",
     .plural = "input gradients",
     .colour = ColourClass::Backward,
     .makes = Product::Gradient,
     .takesMicrobatch = true,
     .needsWeights = true,
     .busy = true,
     .computeOnly = true,
     .needs = {gradientAfter, ownForward, ownReload},
     .slices = SliceOrder::Falling,
     .memory = {freesInputPart}},
    {.kind = K::WeightGrad,
     .text = "W",
     .letter = "W",
     .title = "weight gradient",
     .plural = "weight gradients",
     .colour = ColourClass::Weight,
     .makes = Product::WeightGradient,
     .takesMicrobatch = true,
     .busy = true,
     .computeOnly = true,
     .makesWeightGradient = true,
     .needs = {ownInputGrad, ownReload},
     .deferrable = Until::StageOps,
     .memory = {takesGradient, freesRemainder}},
    {.kind = K::Recompute,
     .text = "R",
     .letter = "R",
     .title = "recompute",
     .plural = "recomputations",
     .colour = ColourClass::Forward,
     .makes = Product::Recomputed,
     .takesMicrobatch = true,
     .needsWeights = true,
     .busy = true,
     .computeOnly = true,
     .needs = {ownForward, ownReload},
     .serves = Product::Gradient,
     .memory = {keepsRecomputed},
     .notInPyTorch = "recompute"},
    {.kind = K::Optimizer,
     .text = "OPT",
     .letter = "O",
     .title = "optimizer",
     .plural = "optimizer ops",
     .colour = ColourClass::Optimizer,
     .state = StateWork::Step,
     .settles = true,
     .behind = Behind::Reductions,
     .notInPyTorch = "an optimizer op"},
    {.kind = K::ReduceGrad,
     .text = "REDUCE_GRAD",
     .letter = "G",
     .title = "gradient reduction",
     .plural = "gradient reductions",
     .colour = ColourClass::Communication,
     .resource = Resource::Collective,
     .lane = Lane::Reduce,
     .state = StateWork::Reduce,
     .mayTakeMicrobatch = true,
     .behind = Behind::Gradients,
     .memory = {MemoryEffect{Memory::Buckets, Share::Bucket, takes, atStart},
                MemoryEffect{Memory::Buckets, Share::Bucket, frees, atEnd},
                MemoryEffect{Memory::Gradients, Share::Gradient, frees, atEnd}}},
    {.kind = K::Unshard,
     .text = "UNSHARD",
     .letter = "U",
     .title = "unshard",
     .plural = "unshards",
     .colour = ColourClass::Communication,
     .resource = Resource::Collective,
     .lane = Lane::Gather,
     .state = StateWork::Gather,
     .mayTakeMicrobatch = true,
     .settles = true,
     .memory = {MemoryEffect{Memory::Gathered, Share::Weight, takes, atStart}}},
    {.kind = K::Reshard,
     .text = "RESHARD",
     .letter = "S",
     .title = "reshard",
     .plural = "reshards",
     .colour = ColourClass::Communication,
     .resource = Resource::Collective,
     .lane = Lane::Gather,
     .timedBy = TimedBy::Nothing,
     .state = StateWork::Release,
     .mayTakeMicrobatch = true,
     .settles = true,
     .memory = {MemoryEffect{Memory::Gathered, Share::Weight, frees, atStart}}},
    {.kind = K::SendF,
     .text = "SEND_F",
     .title = "send activation",
     .plural = "sends of activations",
     .colour = ColourClass::Communication,
     .resource = Resource::Message,
     .lane = Lane::Send,
     .makes = Product::SentF,
     .carries = Product::Activation,
     .takesMicrobatch = true,
     .needs = {ownForward}},
    {.kind = K::RecvF,
     .text = "RECV_F",
     .title = "receive activation",
     .plural = "receives of activations",
     .colour = ColourClass::Communication,
     .resource = Resource::Message,
     .lane = Lane::Receive,
     .carries = Product::Activation,
     .takesMicrobatch = true,
     .needs = {sentBefore}},
    {.kind = K::SendB,
     .text = "SEND_B",
     .title = "send gradient",
     .plural = "sends of gradients",
     .colour = ColourClass::Communication,
     .resource = Resource::Message,
     .lane = Lane::Send,
     .makes = Product::SentB,
     .carries = Product::Gradient,
     .takesMicrobatch = true,
     .needs = {ownGradient}},
    {.kind = K::RecvB,
     .text = "RECV_B",
     .title = "receive gradient",
     .plural = "receives of gradients",
     .colour = ColourClass::Communication,
     .resource = Resource::Message,
     .lane = Lane::Receive,
     .carries = Product::Gradient,
     .takesMicrobatch = true,
     .needs = {sentAfter}},
    {.kind = K::Offload,
     .text = "OFFLOAD",
     .title = "offload",
     .plural = "offloads",
     .colour = ColourClass::Communication,
     .resource = Resource::CopyOut,
     .lane = Lane::CopyOut,
     .makes = Product::Offloaded,
     .takesMicrobatch = true,
     .needs = {ownForward},
     .memory = {movesOut},
     .notInPyTorch = "offloading"},
    {.kind = K::Reload,
     .text = "RELOAD",
     .title = "reload",
     .plural = "reloads",
     .colour = ColourClass::Communication,
     .resource = Resource::CopyIn,
     .lane = Lane::CopyIn,
     .makes = Product::Reloaded,
     .takesMicrobatch = true,
     .needs = {ownOffload},
     .serves = Product::Gradient,
     .memory = {movesIn},
     .notInPyTorch = "offloading"},
    {.kind = K::Filler,
     .text = "FILLER",
     .title = "delay",
     .plural = "delays",
     .timedBy = TimedBy::Op,
     .computeOnly = true,
     .notInPyTorch = "a delay"},
    {.kind = K::FactorA,
     .text = "FACTOR_A",
     .letter = "A",
     .title = "factor of inputs",
     .plural = "factors of inputs",
     .colour = ColourClass::Optimizer,
     .gap = GapWork::InputFactors,
     .takesMicrobatch = true,
     .deferrable = Until::Steps,
     .notInPyTorch = "work in gaps"},
    {.kind = K::FactorG,
     .text = "FACTOR_G",
     .letter = "K",
     .title = "factor of gradients",
     .plural = "factors of gradients",
     .colour = ColourClass::Optimizer,
     .gap = GapWork::GradientFactors,
     .takesMicrobatch = true,
     .deferrable = Until::Steps,
     .notInPyTorch = "work in gaps"},
    {.kind = K::Invert,
     .text = "INVERT",
     .letter = "V",
     .title = "inversion of factors",
     .plural = "inversions of factors",
     .colour = ColourClass::Optimizer,
     .gap = GapWork::Inversion,
     .inPieces = true,
     .deferrable = Until::Steps,
     .notInPyTorch = "work in gaps"},
}};

constexpr bool inKindOrder()
{
    for (std::size_t i = 0; i < opKindCount; ++i)
        if (static_cast<std::size_t>(rows[i].kind) != i) return false;
    return true;
}
static_assert(inKindOrder(), "one row per kind, in the order of OpKind");

std::size_t count = opKindCount; // one more while an ExtraKind lives

} // namespace

namespace detail {
constinit std::array<KindTraits, opKindPlaces> kindTable = rows;
}

std::span<const KindTraits> allKinds() { return {detail::kindTable.data(), count}; }

OpKind firstOf(ColourClass colour)
{
    return std::find_if(rows.begin(), rows.end(), [=](const KindTraits& row) { return row.colour == colour; })->kind;
}

ExtraKind::ExtraKind(KindTraits row)
{
    assert(count == opKindCount);
    row.kind = static_cast<OpKind>(opKindCount);
    detail::kindTable[opKindCount] = row;
    ++count;
}

ExtraKind::ExtraKind(KindTraits row, LaneTraits lane) : ExtraKind(row)
{
    lane.lane = static_cast<Lane>(laneCount);
    detail::laneTable[laneCount] = lane;
    detail::resourceUses[resourceCount] = ResourceUse::Beside;
    detail::kindTable[opKindCount].resource = static_cast<Resource>(resourceCount);
    detail::kindTable[opKindCount].lane = lane.lane;
}

ExtraKind::~ExtraKind()
{
    detail::laneTable[laneCount] = {};
    detail::resourceUses[resourceCount] = ResourceUse::Compute;
    detail::kindTable[opKindCount] = {};
    --count;
}

OpKind ExtraKind::kind() const { return static_cast<OpKind>(opKindCount); }

} // namespace stagewright
