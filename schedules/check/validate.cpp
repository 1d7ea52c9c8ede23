#include "schedules/check/validate.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/check/schedule_checker.h"
#include "schedules/model/kinds.h"
#include "schedules/model/op_index.h"
#include "schedules/model/partial_backward.h"
#include "schedules/model/work_counts.h"
#include "schedules/step/step_deadlock.h"

namespace stagewright {

namespace {

// "0-3, 7"
std::string ranges(const std::vector<int>& numbers)
{
    std::string out;
    for (std::size_t i = 0; i < numbers.size();) {
        std::size_t j = i;
        while (j + 1 < numbers.size() && numbers[j + 1] == numbers[j] + 1) ++j;
        if (!out.empty()) out += ", ";
        out += i == j ? std::to_string(numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[j]);
        i = j + 1;
    }
    return out;
}

} // namespace

void ScheduleChecker::add(FaultKind kind, int rank, std::size_t position, const Op& op, const std::string& message,
                          std::string remedy)
{
    lastDropped = out.faults.size() >= mostFaults;
    if (lastDropped) {
        ++out.more;
        return;
    }
    Fault fault;
    fault.kind = kind;
    fault.rank = rank;
    fault.position = static_cast<int>(position);
    fault.op = op;
    fault.message = fmt::format("rank {}, op {} ({}): {}", rank, opNumber(position), toText(op), message);
    fault.remedy = std::move(remedy);
    out.faults.push_back(std::move(fault));
}

void ScheduleChecker::addOther(int rank, std::size_t position, const Op& op)
{
    if (lastDropped) return;
    out.faults.back().otherRank = rank;
    out.faults.back().otherPosition = static_cast<int>(position);
    out.faults.back().other = op;
}

// Ops that fit the schedule's shape.
bool ScheduleChecker::checkOps()
{
    bool indexable = true;
    for (int r = 0; r < schedule.ranks; ++r) {
        const auto& ops = schedule.order[static_cast<std::size_t>(r)];
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (std::string fault = opFault(schedule, ops[i]); !fault.empty()) {
                add(FaultKind::BadOp, r, i, ops[i], fault, "correct its numbers, or remove it");
                indexable = false;
            }
        }
    }
    return indexable;
}

// One pass over all ops: wrong ranks, duplicates, order within the rank.
void ScheduleChecker::checkPlaces(const OpIndex& index)
{
    const CellSpace& cells = index.cells();
    for (int r = 0; r < schedule.ranks; ++r) {
        const auto& ops = schedule.order[static_cast<std::size_t>(r)];
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Op& op = ops[i];
            const Product product = productOf(op.kind);
            if (!ruleOf(op.kind).takesMicrobatch || isMessage(op.kind)) continue;
            for (int k = 0; k < op.count; ++k) {
                const int home = schedule.placement.rankOf(op.stage, op.microbatch + k);
                if (home == r) continue;
                add(FaultKind::WrongRank, r, i, op,
                    fmt::format("stage {} is on rank {} for microbatch {}", op.stage, home, op.microbatch + k),
                    fmt::format("move it to rank {}, or remove it", home));
                break;
            }
            const std::uint32_t self = index.idOf(r, i);
            cells.each(op, op.stage, [&](std::size_t cell) {
                const std::uint32_t other = product == Product::None ? self : index.producer(product, cell);
                if (other == self) return true;
                const OpPlace place = index.placeOf(other);
                const Op& first = schedule.order[static_cast<std::size_t>(place.rank)][place.position];
                add(FaultKind::Duplicate, r, i, op,
                    first.kind == op.kind
                        ? fmt::format("a second {}; the first is at op {} of rank {}", ruleOf(op.kind).title,
                                      opNumber(place.position), place.rank)
                        : fmt::format("{} in addition to the {} {} at op {} of rank {}", ruleOf(op.kind).title,
                                      ruleOf(first.kind).title, toText(first), opNumber(place.position), place.rank),
                    first.kind == op.kind ? "remove one of the two"
                                          : "keep either a full backward or an input gradient with a weight gradient");
                addOther(place.rank, place.position, first);
                return false;
            });
            index.eachInput(op, [&](std::uint32_t id, const Need& need, int stage) {
                if (id == noOp) {
                    if (!isCompute(op.kind)) // those of compute are counted
                        add(FaultKind::Count, r, i, op,
                            fmt::format("a {} without its {}", ruleOf(op.kind).title, ruleOf(need.kind).title),
                            fmt::format("add {} before it, or remove it",
                                        toText(makeOp(need.kind, stage, op.microbatch))));
                    return;
                }
                const OpPlace place = index.placeOf(id);
                if (place.rank != r) return;
                const Op& input = ops[place.position];
                if (place.position > i) {
                    const bool together = place.position == i + 1 && schedule.isPaired(r, i);
                    add(FaultKind::Order, r, i, op,
                        together ? fmt::format("issued together with {}, which it needs", toText(input))
                                 : fmt::format(
                                       "{} before {}; {} is at op {}", ruleOf(op.kind).title,
                                       input.stage == op.stage
                                           ? std::string(ruleOf(input.kind).title)
                                           : fmt::format("the {} of stage {}", ruleOf(input.kind).title, input.stage),
                                       input.stage == op.stage ? std::string(ruleOf(input.kind).title) : toText(input),
                                       opNumber(place.position)),
                        together ? std::string("issue them one after the other")
                                 : fmt::format("move it after {}", toText(input)));
                } else if (place.position + 1 == i && schedule.isPaired(r, place.position)) {
                    add(FaultKind::Order, r, i, op,
                        fmt::format("issued together with {}, which it needs", toText(input)),
                        "issue them one after the other");
                } else {
                    return;
                }
                addOther(r, place.position, input);
            });
        }
    }
}

// Whether some op of the stage, of any where it is −1, is of such a kind.
template <typename Holds>
bool ScheduleChecker::hasAny(Holds&& holds, int stage) const
{
    return std::any_of(schedule.order.begin(), schedule.order.end(), [&](const std::vector<Op>& ops) {
        return std::any_of(ops.begin(), ops.end(),
                           [&](const Op& op) { return (stage < 0 || op.stage == stage) && holds(op.kind); });
    });
}

// m forwards, one backward each down to the replica's first stage with one, and a weight gradient for each input
// gradient alone.
void ScheduleChecker::checkCounts(const OpIndex& index)
{
    const CellSpace& cells = index.cells();
    auto kindAt = [&](std::uint32_t id) {
        const OpPlace place = index.placeOf(id);
        return schedule.order[static_cast<std::size_t>(place.rank)][place.position].kind;
    };
    const std::vector<int> firstBack = firstStagesBack(schedule);
    const auto fault = [&](int stage, OpKind kind, int microbatch, std::string message, std::string remedy) {
        Fault& added = out.faults.emplace_back();
        added.kind = FaultKind::Count;
        added.rank = schedule.placement.rankOf(stage, microbatch);
        added.op = makeOp(kind, stage, microbatch);
        added.message = std::move(message);
        added.remedy = std::move(remedy);
    };
    const bool forwardOnly = !hasAny(isOfBackward);
    if (forwardOnly)
        fault(0, OpKind::Backward, 0, "forwards only: no stage has a backward",
              "inference and evaluation have no schedule here: in a training step every stage goes back for every "
              "microbatch");
    for (int s = 0; s < schedule.stages; ++s) {
        std::vector<int> noForward;
        std::vector<int> noBackward;
        std::vector<int> noWeight;
        std::vector<int> strayWeight;
        std::vector<int> noReload;
        for (int j = 0; j < schedule.microbatches; ++j) {
            bool lacks[5] = {};
            for (std::size_t sub = 0; sub < cells.perMicrobatch(); ++sub) {
                const std::size_t cell = cells.cell(s, j) + sub;
                const std::uint32_t gradient = index.producer(Product::Gradient, cell);
                const bool weight = index.producer(Product::WeightGradient, cell) != noOp;
                const bool split = gradient != noOp && isInputGrad(kindAt(gradient));
                lacks[0] |= index.producer(Product::Activation, cell) == noOp;
                lacks[1] |= gradient == noOp;
                lacks[2] |= split && !weight;
                lacks[3] |= weight && gradient != noOp && !split;
                lacks[4] |=
                    index.producer(Product::Offloaded, cell) != noOp && index.producer(Product::Reloaded, cell) == noOp;
            }
            if (lacks[0]) noForward.push_back(j);
            if (lacks[1] &&
                s >= firstBack[static_cast<std::size_t>(schedule.replicaOf(schedule.placement.rankOf(s, j)))])
                noBackward.push_back(j);
            if (lacks[2]) noWeight.push_back(j);
            if (lacks[3]) strayWeight.push_back(j);
            if (lacks[4]) noReload.push_back(j);
        }
        const auto m = static_cast<std::size_t>(schedule.microbatches);
        auto report = [&](OpKind kind, const std::vector<int>& which, std::string_view what, bool missing,
                          std::string_view remedy) {
            if (which.empty()) return;
            fault(s, kind, which.front(),
                  missing ? fmt::format("stage {}: {} of {} {}, missing for microbatch {}", s, m - which.size(), m,
                                        what, ranges(which))
                          : fmt::format("stage {}: {} for microbatch {}", s, what, ranges(which)),
                  fmt::format(fmt::runtime(remedy), toText(makeOp(kind, s, which.front())),
                              schedule.placement.rankOf(s, which.front())));
        };
        // else it is known whose ops are missing
        const bool rowExists = !schedule.order[static_cast<std::size_t>(schedule.placement.rankOf(s, 0))].empty();
        if (rowExists && noForward.size() == m && !hasAny([](OpKind) { return true; }, s)) {
            fault(s, OpKind::Forward, 0, fmt::format("stage {} is in no row: the row of its rank is missing", s),
                  "add the row; stages are numbered from 0 on, without gaps");
            continue;
        }
        if (noForward.empty() && noBackward.size() == m) {
            if (!forwardOnly)
                fault(s, OpKind::Backward, 0,
                      fmt::format("stage {}: a frozen stage, with forwards but without any backward", s),
                      "frozen stages can't be expressed: every stage goes back for every microbatch");
            continue;
        }
        if (noForward.empty() && noBackward.empty() && noWeight.size() == m) {
            fault(s, OpKind::WeightGrad, 0,
                  fmt::format("stage {}: a frozen stage, with input gradients but without any weight gradient", s),
                  "frozen stages can't be expressed: every input gradient has its weight gradient");
            continue;
        }
        report(OpKind::Forward, noForward, "forwards", true, "add {} to rank {}");
        report(OpKind::Backward, noBackward, "backwards (B or I)", true,
               "add {} to rank {}, or an input and a weight gradient");
        report(OpKind::WeightGrad, noWeight, "input gradient without a weight gradient", false, "add {} to rank {}");
        report(OpKind::Reload, noReload, "an offload without the reload that its backward waits for,", false,
               "add {} to rank {}, before the backward");
        report(OpKind::WeightGrad, strayWeight, "weight gradient in addition to a full backward, which includes it,",
               false, "remove {} from rank {}");
    }
}

void ScheduleChecker::checkDeadlock(const OpIndex& index, const Channels& channels)
{
    out.cycle = findDeadlock(schedule, index, channels);
    if (out.cycle.empty()) return;
    const Wait& wait = out.cycle.front();
    Fault fault;
    fault.kind = FaultKind::Deadlock;
    fault.rank = wait.rank;
    fault.position = wait.position;
    fault.op = wait.op;
    fault.otherRank = wait.onRank;
    fault.otherPosition = wait.onPosition;
    fault.other = wait.waitsFor;
    fault.message = describeCycle(out.cycle);
    fault.remedy = "move one of these ops before the op that blocks it";
    out.faults.push_back(std::move(fault));
}

Result<void> Validation::toResult() const
{
    if (faults.empty()) return {};
    const std::size_t others = faults.size() - 1 + more;
    return fail(ErrorCode::Invalid, faults.front().message,
                others > 0 ? fmt::format("{}; {} more fault{}", faults.front().remedy, others,
                                         others > 1 ? "s follow" : " follows")
                           : faults.front().remedy);
}

void ScheduleChecker::run(const Channels& channels)
{
    countWork(&WorkCounts::validations);
    if (std::string fault = shapeFault(schedule); !fault.empty()) {
        out.faults.push_back({FaultKind::Shape,
                              -1,
                              -1,
                              {},
                              -1,
                              -1,
                              {},
                              std::move(fault),
                              "look for a stray stage or microbatch number, or a pair in the wrong place"});
        return;
    }
    if (!checkOps()) return;
    const auto cells = cellsOf(schedule);
    if (!cells) { // unreachable after the two checks above
        out.faults.push_back({FaultKind::Shape, -1, -1, {}, -1, -1, {}, cells.error().message, cells.error().remedy});
        return;
    }
    const OpIndex& index = made.emplace(schedule, *cells);
    checkPlaces(index);
    checkCounts(index);
    if (isLowered(schedule)) checkMessages(index);
    checkStageOps();
    checkShards();
    checkLeftOut();
    checkReductions();
    checkMembers(OpKind::Unshard);
    checkMembers(OpKind::ReduceGrad);
    checkRecompute(index);
    checkSlices(index);
    std::stable_sort(out.faults.begin(), out.faults.end(), [](const Fault& a, const Fault& b) {
        return std::pair(a.rank, a.position) < std::pair(b.rank, b.position);
    });
    checkDeadlock(index, channels);
}

Validation validate(const Schedule& schedule, const Channels& channels)
{
    ScheduleChecker checker{schedule};
    checker.run(channels);
    return std::move(checker.out);
}

} // namespace stagewright
