// The one table of kinds: text, title, colour, resource, dependency, memory and state rules. Everything that differs
// between kinds is a column here; simulator, validator, editor, engine, analyses and pictures ask the columns and list
// no kinds.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include "schedules/model/lanes.h"
#include "schedules/model/memory_category.h"
#include "schedules/model/op.h"

namespace stagewright {

// What an op makes that others of its microbatch may need. Kinds that satisfy the same needs share a product: a
// gradient arrives from a B or an I.
enum class Product : std::int8_t {
    None = -1,
    Activation,
    Gradient,
    WeightGradient,
    Recomputed,
    SentF,
    SentB,
    Offloaded,
    Reloaded,
};
inline constexpr std::size_t productCount = 8;

// What an op does with its stage's weights, gradients and optimizer state.
enum class StateWork : std::uint8_t {
    None,
    Gather,
    Release, // of gathered weights; takes no time
    Reduce,  // gradients, over the copies of the stage
    Step,    // the optimizer
};

// What work that fills gaps does: of K-FAC's factors of a stage the sums over a microbatch's inputs or output gradients,
// or a piece of their inversion.
enum class GapWork : std::uint8_t {
    None,
    InputFactors,
    GradientFactors,
    Inversion,
};

// Where the duration of an op comes from.
enum class TimedBy : std::uint8_t {
    Costs,   // the cost model, by kind, stage and rank
    Op,      // it says its duration itself
    Nothing, // takes no time
};

// Kinds that are painted alike.
enum class ColourClass : std::uint8_t {
    Forward,
    Backward,
    Weight,
    Communication,
    Optimizer,
    Other,
};
inline constexpr std::size_t colourClassCount = 6;

// Where in the stage graph (stage_graph.h) an op's inputs are made: at its own stage, at each one that feeds it, or at
// each one that it feeds. The numbers are those of the neighbours in a chain.
enum class StageSide : std::int8_t {
    Before = -1,
    Own = 0,
    After = 1,
};

// How an op of a kind depends on other ops of the same microbatch (and slice). Where a need names two kinds, either
// satisfies it (a gradient arrives from a B or an I).
struct Need {
    OpKind kind = OpKind::Forward;
    OpKind orKind = OpKind::Forward; // equal to kind where there is no alternative
    StageSide side = StageSide::Own;
    bool ifThere = false; // of an op that only some lists have
};

// What of its stage an op comes behind on its rank, over all microbatches of the step.
enum class Behind : std::uint8_t {
    Nothing,
    Gradients,  // the weight gradients that it is of
    Reductions, // these and their reductions
};

// In which order a rank runs the slices of a microbatch, of which later ones attend to earlier ones.
enum class SliceOrder : std::uint8_t {
    Any,
    Rising,
    Falling,
};

// Until when an op may be put off.
enum class Until : std::uint8_t {
    Needed,   // an op of its microbatch needs what it makes
    StageOps, // none does: until an op of its stage that comes behind gradients, else the step's end
    Steps,    // no op of its step does: into a gap of this step or of a later one
};

// A short list in a row of the table.
template <typename T, std::size_t Most>
class RowList {
public:
    template <std::same_as<T>... Of>
    constexpr RowList(Of... of) : m_list{of...}, m_count(sizeof...(of))
    {
        static_assert(sizeof...(of) <= Most);
    }
    constexpr const T* begin() const { return m_list.data(); }
    constexpr const T* end() const { return m_list.data() + m_count; }
    constexpr std::size_t size() const { return m_count; }

private:
    std::array<T, Most> m_list{};
    std::uint8_t m_count = 0;
};

// What of a stage's memory (StageMemory) an op takes or frees.
enum class MemoryShare : std::uint8_t {
    Activation, // of a microbatch; its stage input alone where it is recomputed later
    Recomputed, // the activation without the stage input
    InputPart,  // what an I frees of the activation
    Remainder,  // the rest of the activation
    Workspace,
    Weight,
    Gradient,
    Bucket, // of the gradient: one of those in which it is reduced, or all of it
};

// A change of memory by an op. Activations change by microbatch; of another category a stage has a share or has none, so
// that a second op that takes it changes nothing.
struct MemoryEffect {
    MemoryCategory category = MemoryCategory::Activations;
    MemoryShare share = MemoryShare::Activation;
    bool takes = true; // else it frees
    bool atEnd = true; // of the op; else at its start
};

struct KindTraits {
    OpKind kind = OpKind::Forward;
    std::string_view text = {};   // in op text: "F", "SEND_F", "OPT"
    std::string_view letter = {}; // in a picture: "F", "O"; empty: none
    std::string_view title = {};  // "forward", "input gradient" …
    std::string_view plural = {}; // "forwards", "full backwards" …
    ColourClass colour = ColourClass::Other;
    Resource resource = Resource::Compute;
    Lane lane = Lane::Compute; // where it runs beside compute
    TimedBy timedBy = TimedBy::Costs;
    Product makes = Product::None;
    Product carries = Product::None; // what a message moves
    StateWork state = StateWork::None;
    GapWork gap = GapWork::None;
    bool takesMicrobatch = false;     // also slices, halves and several microbatches in one op
    bool mayTakeMicrobatch = false;   // of a stage as a whole, or of the microbatches that it names: collectives
    bool inPieces = false;            // of a stage as a whole, cut into pieces, of which Op::slice is one
    bool needsWeights = false;        // must have all weights of its stage: sharded ones are gathered before it
    bool busy = false;                // counts as busy time: F, B, I, W, R
    bool computeOnly = false;         // allowed in PyTorch's compute-only form (or ours: R and delays)
    bool makesWeightGradient = false; // adds to the weight gradients of its stage: B, W
    bool settles = false;             // may follow its step's optimizer without being of the next step
    RowList<Need, 3> needs = {};
    Product serves = Product::None; // on its rank it comes before what makes this of its microbatch
    Behind behind = Behind::Nothing;
    SliceOrder slices = SliceOrder::Any;
    Until deferrable = Until::Needed;
    RowList<MemoryEffect, 3> memory = {}; // in the order in which they happen
    std::string_view notInPyTorch = {};   // what PyTorch's schedules lack, as in "a delay"; empty: they have it
};

// Stored kinds have up to five bits: what is beyond allKinds() is nothing and is painted as other work.
inline constexpr std::size_t opKindPlaces = 32;
namespace detail {
extern std::array<KindTraits, opKindPlaces> kindTable;
}

inline const KindTraits& ruleOf(OpKind kind) { return detail::kindTable[static_cast<std::size_t>(kind)]; }
// Every kind there is, in the order of OpKind.
std::span<const KindTraits> allKinds();

// One more kind for as long as this lives: tests show with it that nothing outside the table lists kinds. One at a
// time; make it before other threads read the table, and end it after them. Its row's `kind` is set here.
class ExtraKind {
public:
    explicit ExtraKind(KindTraits row);
    ExtraKind(KindTraits row, LaneTraits lane); // of a resource and a lane of its own, beside compute
    ~ExtraKind();
    ExtraKind(const ExtraKind&) = delete;
    ExtraKind& operator=(const ExtraKind&) = delete;
    OpKind kind() const;
};

// Whether its resource runs beside compute whatever the costs say.
inline bool runsApart(OpKind kind) { return useOf(ruleOf(kind).resource) != ResourceUse::Compute; }
inline Product productOf(OpKind kind) { return ruleOf(kind).makes; }
inline bool isBusy(OpKind kind) { return ruleOf(kind).busy; }
// F, B, I, W or R: a kind that the model's layers execute.
inline bool isCompute(OpKind kind) { return isBusy(kind); }

inline bool isForward(OpKind kind) { return productOf(kind) == Product::Activation; }
inline bool isRecompute(OpKind kind) { return productOf(kind) == Product::Recomputed; }
inline bool isReturn(OpKind kind) { return productOf(kind) == Product::Gradient; } // the stage before waits for it
inline bool makesWeightGradient(OpKind kind) { return ruleOf(kind).makesWeightGradient; }
inline bool isFullBackward(OpKind kind) { return isReturn(kind) && makesWeightGradient(kind); }
inline bool isInputGrad(OpKind kind) { return isReturn(kind) && !makesWeightGradient(kind); }
inline bool isWeightGrad(OpKind kind) { return productOf(kind) == Product::WeightGradient; }
inline bool isSplitBackward(OpKind kind) { return isInputGrad(kind) || isWeightGrad(kind); } // half of a backward
// a backward or half of one
inline bool isOfBackward(OpKind kind) { return isReturn(kind) || isWeightGrad(kind); }
inline bool isDelay(OpKind kind) { return ruleOf(kind).timedBy == TimedBy::Op; } // an intended one
// A send or a receive: an op that only a lowered schedule has (schedules/messages/lower.h).
inline bool isMessage(OpKind kind) { return ruleOf(kind).resource == Resource::Message; }
inline bool isSend(OpKind kind) { return isMessage(kind) && productOf(kind) != Product::None; } // a receive needs it
inline bool isReceive(OpKind kind) { return isMessage(kind) && productOf(kind) == Product::None; }
inline bool carriesActivation(OpKind kind) { return ruleOf(kind).carries == Product::Activation; } // to the next stage
// to the stage before
inline bool carriesGradient(OpKind kind) { return ruleOf(kind).carries == Product::Gradient; }
inline bool isOffload(OpKind kind) { return ruleOf(kind).resource == Resource::CopyOut; }
inline bool isReload(OpKind kind) { return ruleOf(kind).resource == Resource::CopyIn; }
inline bool isCopy(OpKind kind) { return isOffload(kind) || isReload(kind); } // between the device and its host
inline bool isOptimizer(OpKind kind) { return ruleOf(kind).state == StateWork::Step; }
inline bool isGather(OpKind kind) { return ruleOf(kind).state == StateWork::Gather; }
inline bool isRelease(OpKind kind) { return ruleOf(kind).state == StateWork::Release; }
inline bool isReduction(OpKind kind) { return ruleOf(kind).state == StateWork::Reduce; }
// Gather or release of a stage's weights, reduction of its gradients: what ranks that share a stage do together.
inline bool isCollective(OpKind kind) { return ruleOf(kind).resource == Resource::Collective; }
// Whether it is about a stage's weights, gradients or optimizer state: a collective or the optimizer.
inline bool worksOnState(OpKind kind) { return ruleOf(kind).state != StateWork::None; }
inline bool takesActivation(OpKind kind)
{
    return std::ranges::any_of(ruleOf(kind).memory, [](const MemoryEffect& effect) {
        return effect.category == MemoryCategory::Activations && effect.takes;
    });
}
// Whether it changes what is held of its microbatch's activation at its start, and not at its end.
inline bool changesActivationAtStart(OpKind kind)
{
    return std::ranges::any_of(ruleOf(kind).memory, [](const MemoryEffect& effect) {
        return effect.category == MemoryCategory::Activations && !effect.atEnd;
    });
}
// Whether nothing is left of its microbatch's activation behind it.
inline bool endsActivation(OpKind kind)
{
    return std::ranges::any_of(ruleOf(kind).memory,
                               [](const MemoryEffect& effect) { return effect.share == MemoryShare::Remainder; });
}
inline bool settles(OpKind kind) { return ruleOf(kind).settles; }
// Reduction of a stage's gradients over its copies, or the optimizer: may be in any list.
inline bool isStageOp(OpKind kind) { return ruleOf(kind).behind != Behind::Nothing; }
// Work that fills gaps, of this step or of a later one.
inline bool fillsGaps(OpKind kind) { return ruleOf(kind).deferrable == Until::Steps; }
inline GapWork gapWorkOf(OpKind kind) { return ruleOf(kind).gap; }
inline bool isFactor(OpKind kind)
{
    return gapWorkOf(kind) == GapWork::InputFactors || gapWorkOf(kind) == GapWork::GradientFactors;
}
inline bool isInPieces(OpKind kind) { return ruleOf(kind).inPieces; }
inline bool isDeferrable(OpKind kind) { return ruleOf(kind).deferrable != Until::Needed; }
// Whether this op names microbatches: of a collective only where it is of one, or of some.
inline bool hasMicrobatch(const Op& op)
{
    const KindTraits& rule = ruleOf(op.kind);
    return rule.takesMicrobatch || (rule.mayTakeMicrobatch && op.microbatch >= 0);
}
// B for I and I for B: where one list splits its backwards and another doesn't, they stand for each other.
inline OpKind otherReturn(OpKind kind) { return isFullBackward(kind) ? OpKind::InputGrad : OpKind::Backward; }
// An op of another kind over the same cells.
inline Op asKind(Op op, OpKind kind)
{
    op.kind = kind;
    return op;
}
inline Op asForward(const Op& op) { return asKind(op, OpKind::Forward); }
inline Op asBackward(const Op& op) { return asKind(op, OpKind::Backward); }
inline Op asInputGrad(const Op& op) { return asKind(op, OpKind::InputGrad); }
inline Op asWeightGrad(const Op& op) { return asKind(op, OpKind::WeightGrad); }
inline Op asRecompute(const Op& op) { return asKind(op, OpKind::Recompute); }
// The message that moves activations, or gradients.
inline OpKind sendKind(bool gradient) { return gradient ? OpKind::SendB : OpKind::SendF; }
inline OpKind receiveKind(bool gradient) { return gradient ? OpKind::RecvB : OpKind::RecvF; }
// The first kind that is painted so, which stands for the class where kinds aren't known one by one.
OpKind firstOf(ColourClass colour);

} // namespace stagewright
