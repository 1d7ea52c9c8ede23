#include "engine/training/execution_plan.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "engine/training/step_rules.h"
#include "schedules/base/op_number.h"
#include "schedules/check/validate.h"
#include "schedules/model/kinds.h"
#include "schedules/model/shard_rules.h"

namespace stagewright {

namespace {

Part partOf(const Op& op, int microbatch) { return {microbatch, op.slice, op.half}; }

bool movesData(OpKind kind) { return isForward(kind) || isReturn(kind); }

// Whether a stage's layers execute it, on the rank's thread or under a runner of its resource.
bool isOfLayers(OpKind kind) { return movesData(kind) || isWeightGrad(kind) || isRecompute(kind); }

class Planner {
public:
    Planner(const Schedule& schedule, const OpIndex& index, const OpRunners& runners)
        : m_schedule(schedule), m_index(index), m_runners(runners)
    {
    }

    Result<ExecutionPlan> plan()
    {
        STAGEWRIGHT_CHECK(checkKinds());
        collectOutputs();
        for (int rank = 0; rank < m_schedule.ranks; ++rank) {
            STAGEWRIGHT_TRY(RankPlan ranked, planRank(rank));
            m_plan.ranks.push_back(std::move(ranked));
        }
        return std::move(m_plan);
    }

private:
    tl::unexpected<Error> refusal(int rank, std::size_t position, std::string what, std::string remedy) const
    {
        const Op& op = opAt({rank, position});
        return fail(ErrorCode::Usage,
                    fmt::format("rank {}, op {} ({}): {}", rank, opNumber(position), toText(op), what),
                    std::move(remedy));
    }
    const Op& opAt(const OpPlace& place) const
    {
        return m_schedule.order[static_cast<std::size_t>(place.rank)][place.position];
    }

    Result<void> checkKinds()
    {
        m_plan.shared = sharesState(m_schedule);
        if (!m_schedule.graph.isChain())
            return fail(ErrorCode::Usage, "the stages don't form a chain: they can be simulated but not trained",
                        "train a schedule in which each stage feeds the next");
        for (int rank = 0; rank < m_schedule.ranks; ++rank) {
            const std::vector<Op>& list = m_schedule.order[static_cast<std::size_t>(rank)];
            for (std::size_t i = 0; i < list.size(); ++i) {
                const OpKind kind = list[i].kind;
                m_plan.slices = m_plan.slices || (list[i].slice >= 0 && !isInPieces(kind));
                m_plan.halves = m_plan.halves || list[i].half != 0;
                m_plan.recomputes = m_plan.recomputes || isRecompute(kind);
                m_plan.steps = m_plan.steps || isOptimizer(kind);
                m_plan.reduces = m_plan.reduces || isReduction(kind);
                if (m_runners.contains(ruleOf(kind).resource)) continue;
                if (isCopy(kind)) {
                    m_plan.copies = true;
                    continue;
                }
                if (runsApart(kind))
                    return refusal(rank, i, "nothing here runs its resource", "give a runner for it, or simulate it");
                if (isCompute(kind) || isDelay(kind) || isOptimizer(kind) || isReduction(kind) ||
                    gapWorkOf(kind) != GapWork::None || (m_plan.shared && isCollective(kind)))
                    continue;
                if (isCollective(kind))
                    return refusal(
                        rank, i, "no ranks share this stage's state",
                        "train it with --replicas and --shard, or leave UNSHARD and RESHARD out of the lists");
                return refusal(
                    rank, i, "this kind can be simulated but not trained",
                    "train a schedule of F, B, I, W, R, OPT, REDUCE_GRAD, OFFLOAD, RELOAD, FACTOR_A, FACTOR_G and "
                    "INVERT ops and delays");
            }
        }
        if (m_plan.slices && m_plan.halves) {
            return fail(ErrorCode::Usage, "ops by sequence slice and ops by half of a batch can't be trained together",
                        "cut the sequence or the batch");
        }
        return {};
    }

    // For each op its outgoing messages: what its consumers take in.
    void collectOutputs()
    {
        m_outputs.resize(m_index.opCount());
        for (int rank = 0; rank < m_schedule.ranks; ++rank) {
            for (const Op& op : m_schedule.order[static_cast<std::size_t>(rank)]) {
                eachMessage(m_schedule, m_index, op, [&](const MessageKey& key, std::uint32_t producer) {
                    m_outputs[producer].push_back({key, rank});
                });
            }
        }
        for (std::vector<PlannedMessage>& outputs : m_outputs) {
            std::sort(outputs.begin(), outputs.end(),
                      [](const PlannedMessage& a, const PlannedMessage& b) { return a.key < b.key; });
        }
    }

    Result<RankPlan> planRank(int rank)
    {
        RankPlan ranked;
        ranked.stages = m_schedule.placement.stagesOf(rank);
        const std::vector<Op>& list = m_schedule.order[static_cast<std::size_t>(rank)];
        ranked.stepsOnArrival = stepsOnArrival(list);
        for (std::size_t i = 0; i < list.size(); ++i) {
            PlannedOp planned;
            planned.op = list[i];
            planned.pairedWithNext = m_schedule.isPaired(rank, i);
            planned.firstPart = static_cast<std::uint32_t>(ranked.parts.size());
            planned.firstInput = static_cast<std::uint32_t>(ranked.inputs.size());
            STAGEWRIGHT_CHECK(addParts(ranked, planned, rank, i));
            planned.partCount = static_cast<std::uint32_t>(ranked.parts.size()) - planned.firstPart;
            planned.inputCount = static_cast<std::uint32_t>(ranked.inputs.size()) - planned.firstInput;
            if (isOfLayers(planned.op.kind)) ranked.computeEnd = i + 1;
            m_plan.concatenates = m_plan.concatenates || (isWeightGrad(planned.op.kind) && planned.partCount > 1);
            ranked.ops.push_back(planned);
        }
        return ranked;
    }

    Result<void> addParts(RankPlan& ranked, PlannedOp& planned, int rank, std::size_t position)
    {
        const Op& op = planned.op;
        if (isCopy(op.kind)) return addMoved(ranked, op, rank, position);
        if (!isOfLayers(op.kind)) return {};
        if (!movesData(op.kind)) return addFollowing(ranked, op, rank, position);
        for (int k = 0; k < op.count; ++k) {
            Op one = op;
            one.microbatch += k;
            one.count = 1;
            if (!isForward(op.kind)) {
                if (Result<void> fits = checkForwardOf(one, rank, position); !fits) return fits;
            } else {
                planned.recomputed = planned.recomputed || hasRecompute(one);
                if (k > 0 && planned.recomputed != hasRecompute(one))
                    return refusal(rank, position, "only some of its microbatches are recomputed",
                                   "recompute all or none of them");
            }
            PlannedPart part;
            part.part = partOf(op, one.microbatch);
            part.firstInput = static_cast<std::uint32_t>(ranked.inputs.size());
            eachMessage(m_schedule, m_index, one, [&](const MessageKey& key, std::uint32_t producer) {
                ranked.inputs.push_back({key, m_index.placeOf(producer).rank});
            });
            part.inputCount = static_cast<std::uint32_t>(ranked.inputs.size()) - part.firstInput;
            part.firstOutput = static_cast<std::uint32_t>(ranked.outputs.size());
            for (const PlannedMessage& output : m_outputs[m_index.idOf(rank, position)]) {
                if (output.key.microbatch == one.microbatch) ranked.outputs.push_back(output);
            }
            part.outputCount = static_cast<std::uint32_t>(ranked.outputs.size()) - part.firstOutput;
            ranked.parts.push_back(part);
        }
        if (planned.recomputed && m_schedule.weights == WeightRule::Predicted)
            return refusal(rank, position, "it would be recomputed with other weights than it ran with",
                           "recompute under another rule for weights");
        return {};
    }

    // Distinct producers of the cells under an op at its own stage, one microbatch.
    template <typename Visit>
    void eachUnder(Product product, const Op& one, Visit&& visit) const
    {
        std::uint32_t last = noOp;
        m_index.cells().each(one, one.stage, [&](std::size_t cell) {
            const std::uint32_t id = m_index.producer(product, cell);
            if (id != noOp && id != last) visit(opAt(m_index.placeOf(id)));
            last = id;
            return true;
        });
    }
    bool hasRecompute(const Op& one) const
    {
        bool found = false;
        eachUnder(Product::Recomputed, one, [&found](const Op&) { found = true; });
        return found;
    }

    Result<void> checkForwardOf(const Op& one, int rank, std::size_t position) const
    {
        std::string ran;
        eachUnder(Product::Activation, one, [&](const Op& forward) {
            const bool fits = forward.slice == one.slice && (forward.half == 0 || forward.half == one.half);
            if (!fits) ran = toText(forward);
        });
        if (ran.empty()) return {};
        return refusal(rank, position,
                       fmt::format("its forward ran as {}: the layers can't go back in larger parts", ran),
                       "cut both alike, or only the backward by halves");
    }

    // What a copy moves, cut as its forward was.
    Result<void> addMoved(RankPlan& ranked, const Op& op, int rank, std::size_t position) const
    {
        for (int k = 0; k < op.count; ++k) {
            Op one = op;
            one.microbatch += k;
            one.count = 1;
            std::string other;
            eachUnder(Product::Activation, one, [&](const Op& forward) {
                if (forward.slice != one.slice || forward.half != one.half) other = toText(forward);
            });
            if (!other.empty())
                return refusal(rank, position, fmt::format("its forward ran as {}", other), "cut both alike");
            PlannedPart part;
            part.part = partOf(op, one.microbatch);
            part.firstInput = static_cast<std::uint32_t>(ranked.inputs.size());
            part.firstOutput = static_cast<std::uint32_t>(ranked.outputs.size());
            ranked.parts.push_back(part);
        }
        return {};
    }

    // W takes the parts its input gradients had, R those its forwards had.
    Result<void> addFollowing(RankPlan& ranked, const Op& op, int rank, std::size_t position)
    {
        const Product product = isWeightGrad(op.kind) ? Product::Gradient : Product::Activation;
        std::string coarser;
        for (int k = 0; k < op.count; ++k) {
            Op one = op;
            one.microbatch += k;
            one.count = 1;
            eachUnder(product, one, [&](const Op& before) {
                const bool inside =
                    (op.slice < 0 || op.slice == before.slice) && (op.half == 0 || op.half == before.half);
                if (!inside) coarser = toText(before);
                PlannedPart part;
                part.part = partOf(before, one.microbatch);
                part.firstInput = static_cast<std::uint32_t>(ranked.inputs.size());
                part.firstOutput = static_cast<std::uint32_t>(ranked.outputs.size());
                ranked.parts.push_back(part);
            });
        }
        if (coarser.empty()) return {};
        return refusal(rank, position, fmt::format("{} before it is larger", coarser), "cut both alike");
    }

    const Schedule& m_schedule;
    const OpIndex& m_index;
    const OpRunners& m_runners;
    std::vector<std::vector<PlannedMessage>> m_outputs; // by op id
    ExecutionPlan m_plan;
};

} // namespace

Result<ExecutionPlan> planExecution(const CheckedSchedule& schedule, const OpRunners& runners)
{
    Result<ExecutionPlan> plan = Planner(schedule.compute(), schedule.index(), runners).plan();
    if (!plan) return plan;
    STAGEWRIGHT_CHECK(planSteps(schedule.compute(), *plan));
    return plan;
}

Result<std::vector<int>> sliceTokens(const Schedule& schedule, int sequence)
{
    std::size_t slices = 0;
    for (const std::vector<Op>& list : schedule.order) {
        for (const Op& op : list)
            if (!isInPieces(op.kind)) slices = std::max(slices, static_cast<std::size_t>(op.slice + 1));
    }
    if (slices == 0) return std::vector<int>();
    std::vector<std::uint32_t> shares = schedule.sliceLengths;
    if (shares.empty()) shares.assign(slices, 1);
    if (shares.size() != slices) {
        return fail(ErrorCode::Usage,
                    fmt::format("{} slice lengths, but the ops name {} slices", shares.size(), slices));
    }
    const std::uint64_t total = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
    std::vector<int> lengths;
    std::vector<std::size_t> byRemainder;
    int left = sequence;
    for (std::size_t i = 0; i < slices; ++i) {
        lengths.push_back(total == 0 ? 0 : static_cast<int>(static_cast<std::uint64_t>(sequence) * shares[i] / total));
        left -= lengths.back();
        byRemainder.push_back(i);
    }
    std::stable_sort(byRemainder.begin(), byRemainder.end(), [&](std::size_t a, std::size_t b) {
        const auto rest = [&](std::size_t i) {
            return total == 0 ? 0 : static_cast<std::uint64_t>(sequence) * shares[i] % total;
        };
        return rest(a) > rest(b);
    });
    for (std::size_t i = 0; left > 0 && total > 0; ++i, --left) ++lengths[byRemainder[i]];
    for (std::size_t i = 0; i < slices; ++i) {
        if (lengths[i] > 0) continue;
        return fail(ErrorCode::Usage,
                    fmt::format("slice {} of {} would have none of the sequence's {} tokens", i, slices, sequence),
                    "train on longer sequences or with fewer slices");
    }
    return lengths;
}

} // namespace stagewright
