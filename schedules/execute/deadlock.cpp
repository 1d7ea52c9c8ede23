#include "schedules/execute/deadlock.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/base/quantity.h"
#include "schedules/check/validate.h"
#include "schedules/messages/lower.h"
#include "schedules/messages/messages.h"
#include "schedules/model/groups.h"
#include "schedules/model/kinds.h"
#include "schedules/step/step_deadlock.h"

namespace stagewright {

namespace {

// Single moves: how many may make up a fix, and how many ops are examined over all tries.
constexpr std::size_t fewMoves = 4;
constexpr std::size_t mostMoves = 64;
constexpr std::size_t movesBudget = 4'000'000;
constexpr std::size_t longest = 10'000'000; // ops; longer schedules get no fix

const Op& opAt(const Schedule& schedule, const OpPlace& place)
{
    return schedule.order[static_cast<std::size_t>(place.rank)][place.position];
}

// "F1" of "0SEND_F1"
std::string cargoOf(const Op& message)
{
    Op op = isSend(message.kind) ? message : sendOf(message);
    op.kind = ruleOf(op.kind).needs.begin()->kind;
    return fmt::format("the {} of {}", isForward(op.kind) ? "activations" : "gradient", toText(op));
}

std::string sentenceOf(const BlockedRank& blocked)
{
    if (isMessage(blocked.op.kind))
        return fmt::format("rank {} waits to {} {} {} rank {}", blocked.rank,
                           isSend(blocked.op.kind) ? "send" : "receive", cargoOf(blocked.op),
                           isSend(blocked.op.kind) ? "to" : "from", blocked.onRank);
    return fmt::format("rank {} waits before {} for {} of rank {}", blocked.rank, toText(blocked.op),
                       toText(blocked.waitsFor), blocked.onRank);
}

// One run of the lists.
struct Attempt {
    Attempt(const Schedule& schedule, const CellSpace& cells, const Channels& channels)
        : index(schedule, cells), plan(schedule, index, {untimedLinks(schedule), channels}), execution(plan),
          ended(execution.run())
    {
    }
    std::vector<Wait> waits() const { return waitsOf(execution, plan); }

    OpIndex index;
    StepPlan plan;
    StepRun execution;
    bool ended;
};

// Where a rank is blocked: the first op of the pair or group at the head of its list.
std::size_t headOf(const Schedule& schedule, const Wait& wait)
{
    return groupBegin(schedule, wait.rank, static_cast<std::size_t>(wait.position));
}

// Moves the awaited op to before the op at which its rank is blocked.
std::vector<OrderChange> candidates(const Schedule& schedule, const std::vector<Wait>& cycle)
{
    std::vector<OrderChange> out;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
        const Wait& wait = cycle[i];
        const Wait& next = cycle[(i + 1) % cycle.size()]; // of the rank waited for
        const std::size_t head = headOf(schedule, next);
        const auto from = static_cast<std::size_t>(wait.onPosition);
        if (from > head) out.push_back({wait.onRank, from, head, wait.waitsFor});
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const OrderChange& a, const OrderChange& b) { return a.from - a.to < b.from - b.to; });
    return out;
}

void findMoves(const Schedule& schedule, const CellSpace& cells, const Channels& channels, std::vector<Wait> cycle,
               std::size_t most, Deadlock& out)
{
    if (schedule.opCount() * fewMoves > movesBudget) return;
    Schedule now = schedule;
    std::vector<OrderChange> changes;
    std::size_t done = Attempt(now, cells, channels).execution.done();
    std::size_t looked = 0;
    while (!cycle.empty() && changes.size() < most) {
        std::optional<Schedule> best;
        std::vector<Wait> bestCycle;
        OrderChange bestChange;
        std::size_t bestDone = done;
        bool ends = false;
        for (const OrderChange& change : candidates(now, cycle)) {
            looked += now.opCount();
            if (looked > movesBudget) return;
            Schedule moved = now;
            auto& row = moved.order[static_cast<std::size_t>(change.rank)];
            if (moved.isPaired(change.rank, change.from) ||
                (change.from > 0 && moved.isPaired(change.rank, change.from - 1)))
                continue;
            std::rotate(row.begin() + static_cast<std::ptrdiff_t>(change.to),
                        row.begin() + static_cast<std::ptrdiff_t>(change.from),
                        row.begin() + static_cast<std::ptrdiff_t>(change.from) + 1);
            if (static_cast<std::size_t>(change.rank) < moved.paired.size())
                for (std::uint32_t& pair : moved.paired[static_cast<std::size_t>(change.rank)])
                    if (pair >= change.to && pair < change.from) ++pair;
            const Attempt attempt(moved, cells, channels);
            if (!attempt.ended && attempt.execution.done() <= bestDone) continue;
            std::vector<Wait> left = attempt.ended ? std::vector<Wait>() : shortestCycle(moved.ranks, attempt.waits());
            if (!attempt.ended && left.empty()) continue; // now it waits for what never comes
            bestDone = attempt.execution.done();
            best = std::move(moved);
            bestCycle = std::move(left);
            bestChange = change;
            ends = attempt.ended;
            if (ends) break;
        }
        if (!best) return;
        changes.push_back(bestChange);
        now = std::move(*best);
        done = bestDone;
        cycle = std::move(bestCycle);
        if (!ends) continue;
        if (!validate(now, channels).valid()) return;
        out.fix = std::move(changes);
        out.fixed = std::move(now);
        return;
    }
}

// The moves that lead from the schedule's lists to others of the same ops. False: they hold other ops.
bool movesTo(const Schedule& schedule, const Schedule& target, std::vector<OrderChange>& out)
{
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        std::vector<Op> row = schedule.order[r];
        const auto& wanted = target.order[r];
        if (row.size() != wanted.size()) return false;
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (row[i] == wanted[i]) continue;
            const auto at = std::find(row.begin() + static_cast<std::ptrdiff_t>(i), row.end(), wanted[i]);
            if (at == row.end()) return false;
            out.push_back({static_cast<int>(r), static_cast<std::size_t>(at - row.begin()), i, wanted[i]});
            std::rotate(row.begin() + static_cast<std::ptrdiff_t>(i), at, at + 1);
        }
    }
    return true;
}

// On odd ranks, or on even ones, each receive directly after a send to the same rank moves before it.
Schedule receivingFirst(Schedule schedule, std::size_t parity)
{
    auto peer = [&](const Op& op) {
        const Op other = isSend(op.kind) ? receiveOf(op) : sendOf(op);
        return other.stage < schedule.stages ? schedule.placement.rankOf(other.stage, other.microbatch) : -1;
    };
    for (std::size_t r = parity; r < schedule.order.size(); r += 2) {
        auto& row = schedule.order[r];
        auto grouped = [&](std::size_t i) { return schedule.isPaired(static_cast<int>(r), i); };
        for (std::size_t i = 0; i + 1 < row.size(); ++i) {
            if (!isSend(row[i].kind) || !isReceive(row[i + 1].kind) || peer(row[i]) != peer(row[i + 1])) continue;
            if (grouped(i) || grouped(i + 1) || (i > 0 && grouped(i - 1))) continue;
            std::swap(row[i], row[i + 1]);
            ++i;
        }
    }
    return schedule;
}

// Many moves that follow one rule: ranks of one parity receive first; or both sides of each message move to their place
// in one common order of all ops and messages, as under the PyTorch rule.
void findRule(const Schedule& schedule, const Channels& channels, Deadlock& out)
{
    if (!isLowered(schedule) || schedule.opCount() > longest) return;
    auto take = [&](Schedule target, std::string rule) {
        std::vector<OrderChange> changes;
        if (target == schedule || !validate(target, channels).valid() || !movesTo(schedule, target, changes))
            return false;
        out.fix = std::move(changes);
        out.fixRule = std::move(rule);
        out.fixed = std::move(target);
        return true;
    };
    if (take(receivingFirst(schedule, 1),
             "on odd ranks, each receive directly after a send to the same rank moves before it"))
        return;
    if (take(receivingFirst(schedule, 0),
             "on even ranks, each receive directly after a send to the same rank moves before it"))
        return;
    Lowering rule;
    rule.rule = LoweringRule::PyTorch;
    if (auto target = lower(schedule, rule))
        take(std::move(*target),
             "each message moves to its place in one common order of all ops, as --lower pytorch does");
}

void findFix(const Schedule& schedule, const CellSpace& cells, const Channels& channels, const std::vector<Wait>& cycle,
             Deadlock& out)
{
    findMoves(schedule, cells, channels, cycle, fewMoves, out);
    if (!out.fixed) findRule(schedule, channels, out);
    if (!out.fixed) findMoves(schedule, cells, channels, cycle, mostMoves, out);
}

// Each send posted together with the receive directly after it.
void tryGrouping(const Schedule& schedule, const CellSpace& cells, const Channels& channels, Deadlock& out)
{
    Schedule grouped = schedule;
    grouped.paired.resize(grouped.order.size());
    bool onCircle = false;
    for (std::size_t r = 0; r < grouped.order.size(); ++r) {
        const auto& ops = grouped.order[r];
        auto& pairs = grouped.paired[r];
        const std::vector<std::uint32_t> before = pairs;
        auto taken = [&](std::size_t i) {
            return std::binary_search(before.begin(), before.end(), static_cast<std::uint32_t>(i));
        };
        for (std::size_t i = 0; i + 1 < ops.size(); ++i) {
            if (!isSend(ops[i].kind) || !isReceive(ops[i + 1].kind)) continue;
            if (taken(i) || taken(i + 1) || (i > 0 && taken(i - 1))) continue;
            pairs.push_back(static_cast<std::uint32_t>(i));
            for (const CycleOp& op : out.cycleOps)
                if (!onCircle && op.rank == static_cast<int>(r) && op.position == static_cast<int>(i)) {
                    onCircle = true;
                    out.groupedSend = ops[i];
                    out.groupedReceive = ops[i + 1];
                }
        }
        std::sort(pairs.begin(), pairs.end());
    }
    if (onCircle) out.groupingWorks = Attempt(grouped, cells, channels).ended;
}

// Beside the fix: fewer moves, other channels, the places that other rules give to the messages.
void findOtherWays(const Schedule& schedule, const CellSpace& cells, const Channels& channels,
                   const std::vector<Wait>& cycle, Deadlock& out)
{
    if (!isLowered(schedule) || schedule.opCount() > movesBudget / fewMoves) return;
    if (!out.fixRule.empty()) {
        Deadlock moved;
        findMoves(schedule, cells, channels, cycle, mostMoves, moved);
        if (moved.fixed) {
            const OrderChange& first = moved.fix.front();
            std::string way = fmt::format("on rank {} move {} from op {} to op {}", first.rank, toText(first.op),
                                          opNumber(first.from), opNumber(first.to));
            if (moved.fix.size() > 1)
                way += fmt::format(", and {}", counted(static_cast<long long>(moved.fix.size()) - 1, "more move"));
            out.otherWays.push_back(std::move(way));
        }
    }
    const auto ends = [&](Channels other) { return Attempt(schedule, cells, other).ended; };
    Channels unlimited = channels;
    unlimited.perDirection = 0;
    if (channels.perDirection > 0 && ends(unlimited))
        out.otherWays.emplace_back("any number of messages at once from one rank to another: --channels 0");
    const Schedule plain = withoutMessages(schedule);
    for (const LoweringRule kind : {LoweringRule::JustInTime, LoweringRule::PyTorch, LoweringRule::RankParity,
                                    LoweringRule::Grouped, LoweringRule::Batched}) {
        Lowering rule;
        rule.rule = kind;
        // it is the fix
        if (kind == LoweringRule::PyTorch && !out.fixRule.empty() && out.fixRule.ends_with("--lower pytorch does"))
            continue;
        const auto target = lower(plain, rule);
        if (!target || *target == schedule || (out.fixed && *target == *out.fixed) ||
            !validate(*target, channels).valid())
            continue;
        std::size_t groups = 0, largest = 1;
        for (std::size_t r = 0; r < target->order.size(); ++r)
            for (std::size_t i = 0; i < target->order[r].size(); ++i) {
                const std::size_t size = groupSize(*target, static_cast<int>(r), i);
                if (size > 1 && isMessage(target->order[r][i].kind)) ++groups, largest = std::max(largest, size);
                i += size - 1;
            }
        std::string way = fmt::format("its messages where --lower {} puts them", toText(rule));
        if (groups > 0)
            way +=
                fmt::format(", in {} of up to {} messages", counted(static_cast<long long>(groups), "group"), largest);
        out.otherWays.push_back(std::move(way));
    }
}

} // namespace

void findCycle(Deadlock& deadlock, int ranks)
{
    std::vector<Wait> waits;
    for (const BlockedRank& blocked : deadlock.blocked)
        if (blocked.onRank >= 0)
            waits.push_back(
                {blocked.rank, blocked.position, blocked.op, blocked.onRank, blocked.onPosition, blocked.waitsFor});
    const std::vector<Wait> cycle = shortestCycle(ranks, waits);
    deadlock.cycle.clear();
    deadlock.cycleOps.clear();
    deadlock.victims.clear();
    for (const Wait& wait : cycle) {
        deadlock.cycle.push_back(wait.rank);
        deadlock.cycleOps.push_back({wait.rank, wait.position, wait.op});
        const Wait& next = cycle[deadlock.cycle.size() % cycle.size()];
        if (next.position != wait.onPosition || next.op != wait.waitsFor)
            deadlock.cycleOps.push_back({wait.onRank, wait.onPosition, wait.waitsFor});
    }
    for (const BlockedRank& blocked : deadlock.blocked)
        if (blocked.onRank >= 0 &&
            std::find(deadlock.cycle.begin(), deadlock.cycle.end(), blocked.rank) == deadlock.cycle.end())
            deadlock.victims.push_back(blocked.rank);
}

Result<Deadlock> explainDeadlock(const Schedule& schedule, const Channels& channels)
{
    STAGEWRIGHT_TRY(const auto cells, cellsOf(schedule));
    Deadlock out;
    const Attempt attempt(schedule, cells, channels);
    if (attempt.ended) return out;
    const std::vector<Wait> waits = attempt.waits();
    const std::vector<Wait> cycle = shortestCycle(schedule.ranks, waits);
    for (int r = 0; r < schedule.ranks; ++r) {
        const auto obstacles = attempt.execution.obstacles(r);
        if (obstacles.empty()) continue;
        BlockedRank blocked;
        blocked.rank = r;
        // On the cycle: the wait that closes it; else the first.
        const Wait* wait = nullptr;
        for (const Wait& other : cycle)
            if (other.rank == r) wait = &other;
        for (const Wait& other : waits)
            if (!wait && other.rank == r) wait = &other;
        if (wait) {
            blocked.position = wait->position;
            blocked.op = wait->op;
            blocked.onRank = wait->onRank;
            blocked.onPosition = wait->onPosition;
            blocked.waitsFor = wait->waitsFor;
            blocked.sentence = sentenceOf(blocked);
        } else {
            const OpPlace at = attempt.index.placeOf(obstacles.front().op);
            blocked.position = static_cast<int>(at.position);
            blocked.op = opAt(schedule, at);
            blocked.sentence = fmt::format("rank {} is stuck at op {} ({}), whose input never comes", r,
                                           opNumber(at.position), toText(blocked.op));
        }
        out.blocked.push_back(std::move(blocked));
    }
    findCycle(out, schedule.ranks);
    const auto endsUnder = [&](const Schedule& lists, Channels other) { return Attempt(lists, cells, other).ended; };
    Channels other = channels;
    other.sends = SendMode::Buffered;
    if (channels.sends == SendMode::Rendezvous) out.worksIfBuffered = endsUnder(schedule, other);
    other = channels;
    other.receives = ReceiveMode::Posted;
    if (channels.blockingReceives()) out.worksIfPosted = endsUnder(schedule, other);
    other = channels;
    other.oneStream = false;
    if (channels.oneStream) out.worksWithStreams = endsUnder(schedule, other);
    if (cycle.empty()) return out;
    tryGrouping(schedule, cells, channels, out);
    findFix(schedule, cells, channels, cycle, out);
    findOtherWays(schedule, cells, channels, cycle, out);
    return out;
}

} // namespace stagewright
