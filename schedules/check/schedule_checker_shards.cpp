// What concerns sharded state: weights are gathered when an op needs them, gradients are reduced once.
#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/check/schedule_checker.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"

namespace stagewright {

namespace {

enum class Weights {
    Whole, // the stage has no UNSHARD or RESHARD on the rank
    Gathered,
    Sharded,
    Stepped, // gathered, but its optimizer has stepped only the parts that the rank owns
};

// What becomes of one stage's weights on one rank, as its list runs.
struct WeightsOf {
    Weights now = Weights::Whole;
    std::optional<std::size_t> since; // the op that made it so; none: the step before
    bool reported = false;            // a missing gather is one fault, however many ops need it
};

} // namespace

void ScheduleChecker::checkShards()
{
    for (int r = 0; r < schedule.ranks; ++r) {
        const auto& ops = schedule.order[static_cast<std::size_t>(r)];
        std::vector<WeightsOf> stages(static_cast<std::size_t>(schedule.stages));
        bool any = false;
        // Without an optimizer in the lists the step is behind them: a gather between ops that need the weights is one
        // of this step, and those before it have none.
        struct Order {
            bool needed = false, neededFirst = false, late = false;
        };
        std::vector<Order> orders(stages.size());
        for (const Op& op : ops) { // as the step before left them
            Weights& now = stages[op.stage].now;
            Order& order = orders[op.stage];
            if (ruleOf(op.kind).needsWeights) {
                order.late = order.late || (now == Weights::Gathered && order.neededFirst);
                order.needed = true;
            }
            if (isOptimizer(op.kind)) order = {};
            if (isOptimizer(op.kind) && now == Weights::Gathered) now = Weights::Stepped;
            if (!isGather(op.kind) && !isRelease(op.kind)) continue;
            if (isGather(op.kind) && now == Weights::Whole) order.neededFirst = order.needed;
            now = isGather(op.kind) ? Weights::Gathered : Weights::Sharded;
            any = true;
        }
        if (!any) continue;
        const bool steps = std::any_of(ops.begin(), ops.end(), [](const Op& op) { return isOptimizer(op.kind); });
        for (std::size_t stage = 0; stage < stages.size() && !steps; ++stage)
            if (orders[stage].late && stages[stage].now == Weights::Gathered) stages[stage].now = Weights::Sharded;
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Op& op = ops[i];
            WeightsOf& stage = stages[op.stage];
            if (stage.now == Weights::Whole) continue;
            const std::string_view title = ruleOf(op.kind).title;
            const auto become = [&](Weights now) { stage = {now, i, false}; };
            const std::string gather = toText(makeGather(op.stage));
            const std::string release = toText(makeRelease(op.stage));
            if (isGather(op.kind)) {
                // what the step before left gathered is gathered again
                if (stage.now == Weights::Gathered && stage.since) {
                    add(FaultKind::Duplicate, r, i, op,
                        fmt::format("the weights are gathered already, at op {}", opNumber(*stage.since)),
                        fmt::format("remove it, or release the weights before it with {}", release));
                    addOther(r, *stage.since, ops[*stage.since]);
                }
                become(Weights::Gathered);
            } else if (isRelease(op.kind)) {
                if (stage.now == Weights::Sharded) {
                    add(FaultKind::Duplicate, r, i, op,
                        stage.since ? fmt::format("the weights are released already, at op {}", opNumber(*stage.since))
                                    : std::string("the weights are not gathered"),
                        fmt::format("remove it, or gather the weights before it with {}", gather));
                    if (stage.since) addOther(r, *stage.since, ops[*stage.since]);
                }
                become(Weights::Sharded);
            } else if (isOptimizer(op.kind)) {
                if (stage.now == Weights::Gathered) become(Weights::Stepped);
            } else if (ruleOf(op.kind).needsWeights && stage.now != Weights::Gathered && !stage.reported) {
                const bool stepped = stage.now == Weights::Stepped;
                const std::string where =
                    stage.since ? fmt::format("; {} is at op {}", toText(ops[*stage.since]), opNumber(*stage.since))
                                : std::string();
                add(FaultKind::Order, r, i, op,
                    stepped
                        ? fmt::format("{} with weights of which this rank has stepped its part only{}", title, where)
                        : fmt::format("{} with sharded weights{}", title, where),
                    stage.since && !stepped
                        ? fmt::format("move {} after it, or add {} before it", toText(ops[*stage.since]), gather)
                        : fmt::format("add {} before it", gather));
                if (stage.since) addOther(r, *stage.since, ops[*stage.since]);
                stage.reported = true;
            }
        }
    }
}

// Lists that gather or reduce some stages do it with all that have as many copies: one that is left out would compute
// with a part of its weights, or step by the gradients of its rank alone.
void ScheduleChecker::checkLeftOut()
{
    if (schedule.weights != WeightRule::Synchronous) return;
    struct Uses {
        std::size_t needs = nowhere;    // first op that needs the weights
        std::size_t gradient = nowhere; // last B or W
        std::size_t step = nowhere;     // OPT
        bool gathers = false;
        bool reduces = false;
    };
    struct Seen {
        int gathered = -1; // a stage that is gathered
        int reduced = -1;
        bool released = false; // … by lists that also release stages
        bool stepped = false;
    };
    const auto several = [this](int stage) {
        return holdersOf(schedule.placement, stage).size() > 1 ? std::size_t{1} : std::size_t{0};
    };
    std::vector<std::vector<Uses>> ranks(schedule.order.size(),
                                         std::vector<Uses>(static_cast<std::size_t>(schedule.stages)));
    Seen seen[2]; // stages on one rank, on several
    for (std::size_t r = 0; r < ranks.size(); ++r)
        for (std::size_t i = 0; i < schedule.order[r].size(); ++i) {
            const Op& op = schedule.order[r][i];
            Uses& uses = ranks[r][op.stage];
            if (ruleOf(op.kind).needsWeights && uses.needs == nowhere) uses.needs = i;
            if (makesWeightGradient(op.kind)) uses.gradient = i;
            if (isOptimizer(op.kind)) uses.step = i;
            if (!isOptimizer(op.kind) && !isCollective(op.kind)) continue;
            Seen& alike = seen[several(op.stage)];
            alike.stepped = alike.stepped || isOptimizer(op.kind);
            uses.gathers = uses.gathers || isGather(op.kind);
            uses.reduces = uses.reduces || isReduction(op.kind);
            if (isGather(op.kind)) alike.gathered = op.stage;
            if (isReduction(op.kind)) alike.reduced = op.stage;
            alike.released = alike.released || isRelease(op.kind);
        }
    if (std::all_of(std::begin(seen), std::end(seen),
                    [](const Seen& one) { return one.gathered < 0 && one.reduced < 0; }))
        return;
    for (std::size_t r = 0; r < ranks.size(); ++r)
        for (int s = 0; s < schedule.stages; ++s) {
            const Uses& uses = ranks[r][static_cast<std::size_t>(s)];
            if (uses.needs == nowhere && uses.gradient == nowhere) continue;
            const Seen& alike = seen[several(s)];
            const int rank = static_cast<int>(r);
            const auto others = [s](int stage) {
                return stage == s ? std::string("on another rank they are")
                                  : fmt::format("those of stage {} are", stage);
            };
            if (alike.gathered >= 0 && !uses.gathers && uses.needs != nowhere) {
                const std::string gather = toText(makeGather(s));
                const bool behind = !alike.released && uses.step != nowhere;
                const std::size_t at = behind ? uses.step : uses.needs;
                add(FaultKind::Count, rank, at, schedule.order[r][at],
                    fmt::format("the weights of stage {} are never gathered on rank {}, but {}", s, r,
                                others(alike.gathered)),
                    behind ? fmt::format("add {} behind it", gather) : fmt::format("add {} before it", gather));
            }
            // else copies reduce at the step's end
            if (alike.reduced >= 0 && !uses.reduces && uses.gradient != nowhere && (alike.stepped || several(s) == 0))
                add(FaultKind::Count, rank, uses.gradient, schedule.order[r][uses.gradient],
                    fmt::format("the gradients of stage {} are never reduced on rank {}, but {}", s, r,
                                others(alike.reduced)),
                    fmt::format("add {} after it", toText(makeReduction(s))));
        }
}

void ScheduleChecker::checkReductions()
{
    if (schedule.weights != WeightRule::Synchronous) return;
    for (int r = 0; r < schedule.ranks; ++r) {
        const auto& ops = schedule.order[static_cast<std::size_t>(r)];
        struct Reduced {
            std::size_t gradient = nowhere; // the B or W of a microbatch
            std::size_t reduction = nowhere;
        };
        std::map<std::pair<int, int>, Reduced> cells; // (stage, microbatch)
        std::map<int, std::size_t> wholes;            // by stage: a reduction of the whole batch
        std::map<int, std::size_t> parts;
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (!isReduction(ops[i].kind)) continue;
            (hasMicrobatch(ops[i]) ? parts : wholes).try_emplace(ops[i].stage, i);
        }
        if (parts.empty()) continue;
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Op& op = ops[i];
            if (!parts.contains(op.stage)) continue;
            if (makesWeightGradient(op.kind))
                for (int k = 0; k < op.count; ++k) cells[{op.stage, op.microbatch + k}].gradient = i;
            if (!isReduction(op.kind) || !hasMicrobatch(op)) continue;
            if (const auto whole = wholes.find(op.stage); whole != wholes.end()) {
                add(FaultKind::Duplicate, r, i, op,
                    fmt::format("gradients reduced twice; {} at op {} reduces the whole batch",
                                toText(ops[whole->second]), opNumber(whole->second)),
                    "remove one of the two");
                addOther(r, whole->second, ops[whole->second]);
            }
            for (int k = 0; k < op.count; ++k) {
                Reduced& cell = cells[{op.stage, op.microbatch + k}];
                if (cell.reduction != nowhere) {
                    add(FaultKind::Duplicate, r, i, op,
                        fmt::format("a gradient reduced twice; {} is at op {}", toText(ops[cell.reduction]),
                                    opNumber(cell.reduction)),
                        "remove one of the two");
                    addOther(r, cell.reduction, ops[cell.reduction]);
                    break;
                }
                cell.reduction = i;
            }
        }
        for (const auto& [key, cell] : cells) {
            if (cell.gradient == nowhere) {
                add(FaultKind::WrongRank, r, cell.reduction, ops[cell.reduction],
                    fmt::format("rank {} has no gradient of stage {} and microbatch {}", r, key.first, key.second),
                    "remove it, or name a microbatch that the rank has");
            } else if (cell.reduction == nowhere) {
                if (wholes.contains(key.first)) continue; // reported above
                add(FaultKind::Count, r, cell.gradient, ops[cell.gradient],
                    fmt::format("its gradient is not reduced, but those of other microbatches are; {} is at op {}",
                                toText(ops[parts.at(key.first)]), opNumber(parts.at(key.first))),
                    fmt::format("add {} after it", toText(makeReduction(key.first, key.second))));
                addOther(r, parts.at(key.first), ops[parts.at(key.first)]);
            } else if (cell.reduction < cell.gradient) {
                add(FaultKind::Order, r, cell.reduction, ops[cell.reduction],
                    fmt::format("gradient reduction before the gradient; {} is at op {}", toText(ops[cell.gradient]),
                                opNumber(cell.gradient)),
                    fmt::format("move it after {}", toText(ops[cell.gradient])));
                addOther(r, cell.gradient, ops[cell.gradient]);
            }
        }
    }
}

// A rank that takes part less often than the others lets them wait for ever.
void ScheduleChecker::checkMembers(OpKind kind)
{
    if (!schedule.placement.hasCopies()) return;
    std::map<std::pair<int, int>, int> counts; // (stage, rank)
    std::vector<char> seen(static_cast<std::size_t>(schedule.stages), 0);
    for (int r = 0; r < schedule.ranks; ++r)
        for (const Op& op : schedule.order[static_cast<std::size_t>(r)]) {
            // of a whole batch: else at the step's end
            if (op.kind != kind || (isReduction(kind) && !hasMicrobatch(op))) continue;
            ++counts[{op.stage, r}];
            seen[op.stage] = 1;
        }
    for (int s = 0; s < schedule.stages; ++s) {
        if (!seen[static_cast<std::size_t>(s)]) continue;
        const std::vector<int> holders = holdersOf(schedule.placement, s);
        const auto countOf = [&](int rank) {
            const auto found = counts.find({s, rank});
            return found == counts.end() ? 0 : found->second;
        };
        const auto fewer = [&](int a, int b) { return countOf(a) < countOf(b); };
        const int least = *std::min_element(holders.begin(), holders.end(), fewer);
        const int most = *std::max_element(holders.begin(), holders.end(), fewer);
        if (countOf(least) == countOf(most)) continue;
        Fault fault;
        fault.kind = FaultKind::Count;
        fault.rank = least;
        fault.op = makeOp(kind, s);
        fault.message =
            fmt::format("stage {}: {} {} ops on rank {}, but {} on rank {}; all ranks of a stage take part in each", s,
                        countOf(least), ruleOf(kind).text, least, countOf(most), most);
        fault.remedy = isGather(kind) ? "gather once a batch, or give each rank as many"
                                      : "reduce once a batch, or give each rank as many";
        out.faults.push_back(std::move(fault));
    }
}

} // namespace stagewright
