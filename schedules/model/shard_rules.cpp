#include "schedules/model/shard_rules.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/model/op_index.h"
#include "schedules/model/partial_backward.h"

namespace stagewright {

namespace {

constexpr std::array<std::string_view, 2> gatherNames{"batch", "microbatch"};
constexpr std::array<std::string_view, 4> reduceNames{"late", "overlapped", "microbatch", "stepped"};

bool readsWeights(const Op& op) { return ruleOf(op.kind).needsWeights; }

Op collective(OpKind kind, const Op& of, bool ofMicrobatch)
{
    Op op = makeOp(kind, of.stage);
    if (!ofMicrobatch) return op;
    op.microbatch = of.microbatch;
    op.count = of.count;
    return op;
}

// A row under construction: what is inserted is before or behind all ops of a pair or group.
class RowBuilder {
public:
    RowBuilder(const std::vector<Op>& ops, const std::vector<std::uint32_t>& paired) : m_ops(ops), m_paired(paired) {}

    void insert(const Op& op) { m_out.ops.push_back(op); }
    void copy(std::size_t position)
    {
        if (isFirst(position)) m_out.paired.push_back(static_cast<std::uint32_t>(m_out.ops.size()));
        m_out.ops.push_back(m_ops[position]);
    }
    bool isFirst(std::size_t position) const
    {
        return std::binary_search(m_paired.begin(), m_paired.end(), static_cast<std::uint32_t>(position));
    }
    std::size_t width(std::size_t position) const
    {
        std::size_t last = position;
        while (isFirst(last)) ++last;
        return last - position + 1;
    }
    GatheredRow take() { return std::move(m_out); }

private:
    const std::vector<Op>& m_ops;
    const std::vector<std::uint32_t>& m_paired;
    GatheredRow m_out;
};

// Each op that needs weights has a gather of its own. It is issued up to `prefetch` such ops ahead, but behind the
// release of its stage before it.
GatheredRow gatherEach(const std::vector<Op>& ops, const std::vector<std::uint32_t>& paired, int prefetch,
                       const std::function<bool(const Op&)>& needs)
{
    RowBuilder row(ops, paired);
    struct Use {
        std::size_t position;
        std::size_t end;        // behind the op or pair
        std::vector<Op> stages; // one op of each stage
        std::size_t gatherAt;
    };
    std::vector<Use> uses;
    // by stage: index of the use after which it was released, + 1
    std::vector<std::size_t> released(ops.empty() ? 0 : 1, 0);
    for (std::size_t i = 0; i < ops.size();) {
        const std::size_t width = row.width(i);
        Use use{i, i + width, {}, 0};
        for (std::size_t k = i; k < i + width; ++k) {
            const auto same = [&](const Op& op) { return op.stage == ops[k].stage; };
            if (needs(ops[k]) && std::none_of(use.stages.begin(), use.stages.end(), same)) use.stages.push_back(ops[k]);
        }
        i += width;
        if (use.stages.empty()) continue;
        const std::size_t number = uses.size();
        std::size_t first =
            number > static_cast<std::size_t>(prefetch) ? number - static_cast<std::size_t>(prefetch) : 0;
        for (const Op& op : use.stages) {
            if (op.stage >= released.size()) released.resize(op.stage + std::size_t{1}, 0);
            first = std::max(first, released[op.stage]);
            released[op.stage] = number + 1;
        }
        use.gatherAt = first;
        uses.push_back(std::move(use));
    }
    std::size_t next = 0;     // use that comes
    std::size_t gathered = 0; // uses before it are issued
    for (std::size_t i = 0; i < ops.size();) {
        const bool isUse = next < uses.size() && uses[next].position == i;
        while (isUse && gathered < uses.size() && uses[gathered].gatherAt <= next) {
            for (const Op& op : uses[gathered].stages) row.insert(collective(OpKind::Unshard, op, true));
            ++gathered;
        }
        const std::size_t end = i + row.width(i);
        for (; i < end; ++i) row.copy(i);
        if (!isUse) continue;
        for (const Op& op : uses[next].stages) row.insert(collective(OpKind::Reshard, op, true));
        ++next;
    }
    return row.take();
}

struct Present {
    bool gathers = false;
    bool reduces = false;
    bool steps = false;
};

Present presentIn(const Schedule& schedule)
{
    Present out;
    for (const auto& ops : schedule.order)
        for (const Op& op : ops) {
            out.gathers = out.gathers || op.kind == OpKind::Unshard || op.kind == OpKind::Reshard;
            out.reduces = out.reduces || op.kind == OpKind::ReduceGrad;
            out.steps = out.steps || op.kind == OpKind::Optimizer;
        }
    return out;
}

// By stage: whether it has copies in one pipeline.
std::vector<char> copiedStages(const Schedule& schedule)
{
    std::vector<char> out(static_cast<std::size_t>(std::max(0, schedule.stages)), 0);
    for (int stage = 0; stage < schedule.placement.stages(); ++stage) {
        const std::vector<int> holders = holdersOf(schedule.placement, stage);
        for (std::size_t i = 1; i < holders.size(); ++i)
            if (schedule.replicaOf(holders[i - 1]) == schedule.replicaOf(holders[i]))
                out[static_cast<std::size_t>(stage)] = 1;
    }
    return out;
}

// Copied stages are gathered throughout.
GatheredRow gatherThroughout(GatheredRow row, const std::vector<char>& copied)
{
    std::vector<int> stages;
    for (const Op& op : row.ops)
        if (copied[op.stage] && readsWeights(op) && std::find(stages.begin(), stages.end(), op.stage) == stages.end())
            stages.push_back(op.stage);
    std::vector<Op> ops;
    ops.reserve(row.ops.size() + 2 * stages.size());
    for (const int stage : stages) ops.push_back(makeOp(OpKind::Unshard, stage));
    ops.insert(ops.end(), row.ops.begin(), row.ops.end());
    for (const int stage : stages) ops.push_back(makeOp(OpKind::Reshard, stage));
    for (std::uint32_t& position : row.paired) position += static_cast<std::uint32_t>(stages.size());
    row.ops = std::move(ops);
    return row;
}

// The stages of a list in the order of their last gradients.
std::vector<int> gradientOrder(const std::vector<Op>& ops)
{
    std::vector<int> out;
    for (auto op = ops.rbegin(); op != ops.rend(); ++op)
        if (makesWeightGradient(op->kind) && std::find(out.begin(), out.end(), op->stage) == out.end())
            out.push_back(op->stage);
    std::reverse(out.begin(), out.end());
    return out;
}

// Stages that the rank holds without going back to them, in the order in which the rank of its place in the replica
// that goes back to all finishes them: its reductions must come in the same order.
struct Untouched {
    std::vector<int> order; // of that rank, all stages
    std::vector<int> stages;
};
Untouched untouchedOn(const Schedule& schedule, std::size_t rank, const std::vector<int>& firstBack)
{
    Untouched out;
    const int own = firstBack[static_cast<std::size_t>(schedule.replicaOf(static_cast<int>(rank)))];
    if (own == 0) return out;
    const auto whole = static_cast<int>(std::find(firstBack.begin(), firstBack.end(), 0) - firstBack.begin());
    const int alike = whole * schedule.pipelineRanks() + schedule.pipelineRankOf(static_cast<int>(rank));
    out.order = gradientOrder(schedule.order[static_cast<std::size_t>(alike)]);
    for (const int stage : out.order)
        if (stage < own) out.stages.push_back(stage);
    return out;
}

// A rank that steps a stage waits for the others' sums of it, so that all must come to their stages in one order.
Result<void> finishAlike(const Schedule& schedule, const std::vector<int>& firstBack)
{
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
        const int place = schedule.pipelineRankOf(static_cast<int>(rank));
        const auto whole = static_cast<int>(std::find(firstBack.begin(), firstBack.end(), 0) - firstBack.begin());
        std::vector<int> expected =
            gradientOrder(schedule.order[static_cast<std::size_t>(whole * schedule.pipelineRanks() + place)]);
        const int own = firstBack[static_cast<std::size_t>(schedule.replicaOf(static_cast<int>(rank)))];
        std::erase_if(expected, [own](int stage) { return stage < own; });
        if (gradientOrder(schedule.order[rank]) == expected) continue;
        return fail(ErrorCode::Usage,
                    fmt::format("rank {} finishes its stages in another order than rank {} of another replica, so each "
                                "would wait for the other's sums",
                                rank, whole * schedule.pipelineRanks() + place),
                    "give --reduce overlapped");
    }
    return {};
}

// REDUCE_GRAD by the rule; `finished` takes the stages in the order of their last gradients, untouched ones among them.
GatheredRow addReductions(const GatheredRow& in, ReduceRule rule, bool present, bool steps,
                          const std::vector<char>& copied, Untouched untouched, std::vector<int>& finished)
{
    std::vector<std::size_t> last;                               // by stage: the op with its last gradient
    std::map<std::pair<int, int>, std::size_t> lastOfMicrobatch; // slices and halves make several of one
    for (std::size_t i = 0; i < in.ops.size(); ++i)
        if (const Op& op = in.ops[i]; makesWeightGradient(op.kind)) {
            if (op.stage >= last.size()) last.resize(op.stage + std::size_t{1}, in.ops.size());
            last[op.stage] = i;
            if (rule == ReduceRule::Microbatch)
                for (int k = 0; k < op.count; ++k) lastOfMicrobatch[{op.stage, op.microbatch + k}] = i;
        }
    RowBuilder row(in.ops, in.paired);
    // Takes part in the reductions of the untouched stages before this one; −1: of all that are left.
    const auto takePart = [&](int before) {
        const auto until = std::find(untouched.order.begin(), untouched.order.end(), before);
        for (auto stage = untouched.order.begin(); stage != until; ++stage)
            if (std::erase(untouched.stages, *stage) > 0) {
                finished.push_back(*stage);
                if (!present && rule != ReduceRule::Late && !copied[static_cast<std::size_t>(*stage)])
                    row.insert(makeOp(OpKind::ReduceGrad, *stage));
            }
    };
    for (std::size_t i = 0; i < in.ops.size();) {
        const std::size_t first = i;
        const std::size_t end = i + row.width(i);
        for (; i < end; ++i) row.copy(i);
        for (std::size_t k = first; k < end; ++k) {
            const Op& op = in.ops[k];
            if (!makesWeightGradient(op.kind)) continue;
            const bool done = last[op.stage] == k;
            if (done) takePart(op.stage);
            if (done) finished.push_back(op.stage);
            if (present || rule == ReduceRule::Late) continue;
            if (rule == ReduceRule::Microbatch && !copied[op.stage])
                for (int m = op.microbatch; m < op.microbatch + op.count; ++m) {
                    Op part = makeOp(OpKind::ReduceGrad, op.stage, m);
                    while (lastOfMicrobatch[{op.stage, m}] != k && m < op.microbatch + op.count - 1)
                        part.microbatch = ++m;
                    if (lastOfMicrobatch[{op.stage, m}] != k) break;
                    while (m + 1 < op.microbatch + op.count && lastOfMicrobatch[{op.stage, m + 1}] == k)
                        ++part.count, ++m;
                    row.insert(part);
                }
            else if (done && !copied[op.stage])
                row.insert(makeOp(OpKind::ReduceGrad, op.stage));
        }
    }
    takePart(-1);
    std::vector<int> atEnd; // in one order on every rank, so that no two wait for each other
    for (const int stage : finished)
        if (!present && !steps && (rule == ReduceRule::Late || copied[static_cast<std::size_t>(stage)]))
            atEnd.push_back(stage);
    std::sort(atEnd.begin(), atEnd.end());
    for (const int stage : atEnd) row.insert(makeOp(OpKind::ReduceGrad, stage));
    return row.take();
}

// Each stage's OPT behind the next stage's reduction, so that its own has time to arrive; the gathers of stepped
// weights at the end, as the global norm has the last word on them.
void addEarlySteps(GatheredRow& row, const std::vector<int>& finished, const std::vector<char>& copied, bool gather)
{
    GatheredRow out;
    std::vector<int> reduced; // and not yet stepped
    std::size_t pair = 0;
    for (std::size_t i = 0; i < row.ops.size(); ++i) {
        if (pair < row.paired.size() && row.paired[pair] == i) {
            out.paired.push_back(static_cast<std::uint32_t>(out.ops.size()));
            ++pair;
        }
        out.ops.push_back(row.ops[i]);
        if (row.ops[i].kind != OpKind::ReduceGrad || copied[row.ops[i].stage]) continue;
        for (const int stage : reduced) out.ops.push_back(makeOp(OpKind::Optimizer, stage));
        reduced = {row.ops[i].stage};
    }
    for (const int stage : reduced) out.ops.push_back(makeOp(OpKind::Optimizer, stage));
    for (const int stage : finished)
        if (copied[static_cast<std::size_t>(stage)]) out.ops.push_back(makeOp(OpKind::Optimizer, stage));
    for (const int stage : finished)
        if (gather) out.ops.push_back(makeOp(OpKind::Unshard, stage));
    row = std::move(out);
}

// Around the OPT ops of the list: a reduction before each, the gather of the stepped weights behind it.
GatheredRow besideSteps(const GatheredRow& in, const std::function<bool(int)>& reduce, bool gather)
{
    RowBuilder row(in.ops, in.paired);
    for (std::size_t i = 0; i < in.ops.size(); ++i) {
        const Op& op = in.ops[i];
        const bool step = op.kind == OpKind::Optimizer;
        if (step && reduce(op.stage)) row.insert(makeOp(OpKind::ReduceGrad, op.stage));
        row.copy(i);
        if (step && gather) row.insert(makeOp(OpKind::Unshard, op.stage));
    }
    return row.take();
}

} // namespace

bool stepsOnArrival(std::span<const Op> list)
{
    const auto optimizer = std::find_if(list.begin(), list.end(), [](const Op& op) { return isOptimizer(op.kind); });
    return std::any_of(optimizer, list.end(), [](const Op& op) { return !settles(op.kind) && !isMessage(op.kind); });
}

bool stepsOnArrival(const Schedule& schedule)
{
    return std::any_of(schedule.order.begin(), schedule.order.end(),
                       [](const std::vector<Op>& list) { return stepsOnArrival(list); });
}

bool sharesState(const Schedule& schedule)
{
    if (schedule.weights != WeightRule::Synchronous || !schedule.placement.hasCopies()) return false;
    const Present present = presentIn(schedule);
    return present.reduces && present.steps;
}

GatheredRow gatherStages(const Schedule& schedule, std::size_t rank, std::size_t active,
                         const std::function<bool(const Op&)>& needs)
{
    const auto& ops = schedule.order[rank];
    static const std::vector<std::uint32_t> noPairs;
    RowBuilder row(ops, rank < schedule.paired.size() ? schedule.paired[rank] : noPairs);
    // The next op that needs a stage, by stage; ahead of an op, the stages in the order of that.
    std::vector<std::vector<std::size_t>> uses;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (!needs(ops[i])) continue;
        if (ops[i].stage >= uses.size()) uses.resize(ops[i].stage + std::size_t{1});
        uses[ops[i].stage].push_back(i);
    }
    std::vector<int> used;
    for (std::size_t s = 0; s < uses.size(); ++s)
        if (!uses[s].empty()) used.push_back(static_cast<int>(s));
    std::vector<std::size_t> passed(uses.size(), 0);
    std::vector<int> gathered; // ascending
    for (std::size_t i = 0; i < ops.size();) {
        const std::size_t end = i + row.width(i);
        bool any = false;
        for (std::size_t k = i; k < end; ++k) any = any || needs(ops[k]);
        if (any) {
            std::vector<std::pair<std::size_t, int>> next; // first use, stage
            for (const int stage : used) {
                const auto s = static_cast<std::size_t>(stage);
                while (passed[s] < uses[s].size() && uses[s][passed[s]] < i) ++passed[s];
                if (passed[s] < uses[s].size()) next.emplace_back(uses[s][passed[s]], stage);
            }
            std::sort(next.begin(), next.end());
            std::size_t kept = std::min(active, next.size());
            while (kept < next.size() && (next[kept].first < end || (kept > 0 && row.isFirst(next[kept - 1].first) &&
                                                                     next[kept].first == next[kept - 1].first + 1)))
                ++kept; // both of a pair
            next.resize(kept);
            const auto wanted = [&](int stage) {
                return std::any_of(next.begin(), next.end(), [&](const auto& n) { return n.second == stage; });
            };
            for (std::size_t k = 0; k < gathered.size();)
                if (wanted(gathered[k])) {
                    ++k;
                } else {
                    row.insert(makeOp(OpKind::Reshard, gathered[k]));
                    gathered.erase(gathered.begin() + static_cast<std::ptrdiff_t>(k));
                }
            for (const auto& [use, stage] : next) {
                const auto at = std::lower_bound(gathered.begin(), gathered.end(), stage);
                if (at != gathered.end() && *at == stage) continue;
                row.insert(makeOp(OpKind::Unshard, stage));
                gathered.insert(at, stage);
            }
        }
        for (; i < end; ++i) row.copy(i);
    }
    for (const int stage : gathered) row.insert(makeOp(OpKind::Reshard, stage));
    return row.take();
}

Result<void> parseGather(std::string_view text, ShardRules& rules)
{
    const auto [name, parameter] = keyValueOf(text, ':');
    const auto at = std::find(gatherNames.begin(), gatherNames.end(), name);
    if (at == gatherNames.end())
        return fail(ErrorCode::Usage, fmt::format("weights can't be gathered by '{}'", name),
                    "use microbatch or batch, each with :prefetch=K");
    rules.gather = static_cast<GatherRule>(at - gatherNames.begin());
    rules.prefetch = 0;
    if (!parameter) return {};
    const auto [key, value] = keyValueOf(*parameter);
    const int depth = value ? wholeOf<int>(*value).value_or(-1) : -1;
    if (key != "prefetch" || depth < 0 || depth > 1024)
        return fail(ErrorCode::Usage, fmt::format("'{}' is not a depth of prefetch", *parameter),
                    "write prefetch=K with K from 0 to 1024");
    rules.prefetch = depth;
    return {};
}

Result<ReduceRule> parseReduce(std::string_view text)
{
    const auto at = std::find(reduceNames.begin(), reduceNames.end(), text);
    if (at == reduceNames.end())
        return fail(ErrorCode::Usage, fmt::format("gradients can't be reduced '{}'", text),
                    "use late, overlapped, microbatch or stepped, each with :bucket=SIZE");
    return static_cast<ReduceRule>(at - reduceNames.begin());
}

std::string gatherText(const ShardRules& rules)
{
    std::string out(gatherNames[static_cast<std::size_t>(rules.gather)]);
    if (rules.prefetch > 0) out += fmt::format(":prefetch={}", rules.prefetch);
    return out;
}

std::string_view toText(ReduceRule rule) { return reduceNames[static_cast<std::size_t>(rule)]; }

Result<Schedule> addShardOps(const Schedule& schedule, ShardLevel level, const ShardRules& rules)
{
    if (schedule.weights != WeightRule::Synchronous)
        return fail(ErrorCode::Usage,
                    fmt::format("the state of a schedule with {} weights can't be shared", toText(schedule.weights)),
                    "take a schedule with synchronous weights");
    if (std::string fault = shapeFault(schedule); !fault.empty()) return fail(ErrorCode::Invalid, std::move(fault));
    for (const auto& ops : schedule.order)
        for (const Op& op : ops)
            if (std::string fault = opFault(schedule, op); !fault.empty())
                return fail(ErrorCode::Invalid, toText(op) + ": " + fault);
    const Present present = presentIn(schedule);
    const std::vector<char> copied = copiedStages(schedule);
    const std::vector<int> firstBack = firstStagesBack(schedule);
    if (level >= ShardLevel::Gradients && goesBackPartly(schedule))
        return fail(ErrorCode::Usage,
                    "replicas that go back to different layers can't shard gradients: each stage's are handed to their "
                    "owners as a whole",
                    "give --shard none or optimizer");
    if (rules.reduce == ReduceRule::Microbatch && goesBackPartly(schedule))
        return fail(
            ErrorCode::Usage,
            "replicas that go back to different layers reduce once a batch, as some have no gradient of a microbatch",
            "give --reduce late or overlapped");
    if (rules.reduce == ReduceRule::Stepped) STAGEWRIGHT_CHECK(finishAlike(schedule, firstBack));
    Schedule out = schedule;
    out.paired.resize(out.order.size());
    for (std::size_t r = 0; r < out.order.size(); ++r) {
        GatheredRow row{out.order[r], out.paired[r]};
        if (level == ShardLevel::Weights && !present.gathers) {
            const auto needs = [&copied](const Op& op) { return readsWeights(op) && !copied[op.stage]; };
            row = rules.gather == GatherRule::Batch
                      ? gatherStages(out, r, static_cast<std::size_t>(rules.prefetch) + 1, needs)
                      : gatherEach(out.order[r], out.paired[r], rules.prefetch, needs);
            row = gatherThroughout(std::move(row), copied);
        }
        const bool stale = (level == ShardLevel::Optimizer || level == ShardLevel::Gradients) && !present.gathers;
        // Before OPT ops that are there, what would go to the end.
        const auto late = [&](int stage) {
            return !present.reduces && (rules.reduce == ReduceRule::Late || copied[static_cast<std::size_t>(stage)]);
        };
        std::vector<int> finished;
        row = addReductions(row, rules.reduce, present.reduces, present.steps, copied,
                            untouchedOn(schedule, r, firstBack), finished);
        if (present.steps) {
            row = besideSteps(row, late, stale);
        } else if (rules.reduce == ReduceRule::Stepped && !present.reduces) {
            addEarlySteps(row, finished, copied, stale);
        } else {
            for (const int stage : finished) {
                row.ops.push_back(makeOp(OpKind::Optimizer, stage));
                if (stale) row.ops.push_back(makeOp(OpKind::Unshard, stage));
            }
        }
        out.order[r] = std::move(row.ops);
        out.paired[r] = std::move(row.paired);
    }
    return out;
}

} // namespace stagewright
