#include "schedules/messages/lower.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/messages/lower_indexed.h"
#include "schedules/messages/messages.h"
#include "schedules/messages/wait_graph.h"
#include "schedules/model/groups.h"
#include "schedules/model/kinds.h"
#include "schedules/model/shard_rules.h"
#include "schedules/model/work_counts.h"

namespace stagewright {

namespace {

constexpr std::array<std::string_view, 6> ruleNames{"just-in-time", "pytorch", "eager-post",
                                                    "rank-parity",  "grouped", "batched"};
constexpr std::size_t activeStages = 3; // that PyTorch keeps gathered

// A rank's list under construction.
struct Row {
    std::vector<Op> ops;
    std::vector<std::uint32_t> paired;

    void pair(std::size_t first) { paired.push_back(static_cast<std::uint32_t>(first)); }
};

struct Lowerer {
    const Schedule& schedule;
    const OpIndex& index;
    std::vector<Message> messages;
    // An op has [its offset, the next one) of the sorted lists below; by op id.
    std::vector<std::uint32_t> sendOffsets;
    std::vector<std::uint32_t> receiveOffsets;
    std::vector<std::uint32_t> sends; // message numbers by producer
    std::vector<Row> rows;

    Lowerer(const Schedule& aSchedule, const OpIndex& anIndex)
        : schedule(aSchedule), index(anIndex), messages(messagesOf(aSchedule, anIndex)), rows(aSchedule.order.size())
    {
        sendOffsets.assign(index.opCount() + 1, 0);
        receiveOffsets.assign(index.opCount() + 1, 0);
        for (const Message& message : messages) {
            ++sendOffsets[message.producer + 1];
            ++receiveOffsets[message.consumer + 1];
        }
        for (std::size_t i = 1; i < sendOffsets.size(); ++i) {
            sendOffsets[i] += sendOffsets[i - 1];
            receiveOffsets[i] += receiveOffsets[i - 1];
        }
        sends.resize(messages.size());
        std::vector<std::uint32_t> next(sendOffsets.begin(), sendOffsets.end() - 1);
        for (std::size_t i = 0; i < messages.size(); ++i)
            sends[next[messages[i].producer]++] = static_cast<std::uint32_t>(i);
        // Several messages of one op leave in the order of what they carry.
        for (std::size_t op = 0; op + 1 < sendOffsets.size(); ++op)
            std::sort(sends.begin() + sendOffsets[op], sends.begin() + sendOffsets[op + 1],
                      [this](std::uint32_t a, std::uint32_t b) { return messages[a].send < messages[b].send; });
    }

    bool isPaired(std::size_t rank, std::size_t position) const
    {
        return schedule.isPaired(static_cast<int>(rank), position);
    }
    // Ops at `position` that are issued together: one or two.
    std::size_t width(std::size_t rank, std::size_t position) const { return isPaired(rank, position) ? 2 : 1; }
    void receivesFor(std::uint32_t op, Row& row) const
    {
        for (std::uint32_t i = receiveOffsets[op]; i < receiveOffsets[op + 1]; ++i)
            row.ops.push_back(messages[i].receive);
    }
    template <typename Visit>
    void eachSend(std::uint32_t op, Visit&& visit) const
    {
        for (std::uint32_t i = sendOffsets[op]; i < sendOffsets[op + 1]; ++i) visit(messages[sends[i]]);
    }
    void compute(std::size_t rank, std::size_t position, std::size_t count)
    {
        Row& row = rows[rank];
        if (count == 2) row.pair(row.ops.size());
        for (std::size_t k = 0; k < count; ++k) row.ops.push_back(schedule.order[rank][position + k]);
    }

    void inOrder(const Lowering& lowering);
    void bringTogether(std::size_t rank);
    void swapOnOddRanks(std::size_t rank);
    void group(std::size_t rank);
    Result<void> sweep(bool batched);
};

// Every rule but those that sweep: a rank's list follows from the list itself.
void Lowerer::inOrder(const Lowering& lowering)
{
    const bool eager = lowering.rule == LoweringRule::EagerPost;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const auto& ops = schedule.order[r];
        Row& row = rows[r];
        std::size_t posted = 0; // ops whose receives are already in the list
        for (std::size_t i = 0; i < ops.size();) {
            const std::size_t count = width(r, i);
            std::size_t until = i + count;
            if (eager)
                until = lowering.ahead == 0 ? ops.size()
                                            : std::min(ops.size(), until + static_cast<std::size_t>(lowering.ahead));
            for (; posted < until; ++posted) receivesFor(index.idOf(static_cast<int>(r), posted), row);
            compute(r, i, count);
            for (std::size_t k = i; k < i + count; ++k)
                eachSend(index.idOf(static_cast<int>(r), k),
                         [&](const Message& message) { row.ops.push_back(message.send); });
            i += count;
        }
        if (schedule.replicas > 1 &&
            (lowering.rule == LoweringRule::RankParity || lowering.rule == LoweringRule::Grouped))
            bringTogether(r);
        if (lowering.rule == LoweringRule::RankParity && r % 2 == 1) swapOnOddRanks(r);
        if (lowering.rule == LoweringRule::Grouped) group(r);
    }
}

// Gathers, releases and reductions between a send and a receive come before the send: they exchange no message with the
// neighbour, so the two still meet theirs. Not within one pipeline, whose sums over copies of a stage take the compute
// lane: the send would wait for them.
void Lowerer::bringTogether(std::size_t rank)
{
    std::vector<Op>& ops = rows[rank].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (!isSend(ops[i].kind)) continue;
        std::size_t sendsEnd = i;
        while (sendsEnd < ops.size() && isSend(ops[sendsEnd].kind)) ++sendsEnd;
        std::size_t receive = sendsEnd;
        while (receive < ops.size() && isCollective(ops[receive].kind)) ++receive;
        const auto at = [&ops](std::size_t position) { return ops.begin() + static_cast<std::ptrdiff_t>(position); };
        if (receive > sendsEnd && receive < ops.size() && isReceive(ops[receive].kind))
            std::rotate(at(i), at(sendsEnd), at(receive));
        i = receive - 1;
    }
}

void Lowerer::swapOnOddRanks(std::size_t rank)
{
    std::vector<Op>& ops = rows[rank].ops;
    auto peer = [this](const Op& op) {
        const Op other = isSend(op.kind) ? receiveOf(op) : sendOf(op);
        return schedule.placement.rankOf(other.stage, other.microbatch);
    };
    for (std::size_t i = 0; i + 1 < ops.size(); ++i)
        if (isSend(ops[i].kind) && isReceive(ops[i + 1].kind) && peer(ops[i]) == peer(ops[i + 1])) {
            std::swap(ops[i], ops[i + 1]);
            ++i;
        }
}

void Lowerer::group(std::size_t rank)
{
    Row& row = rows[rank];
    for (std::size_t i = 0; i + 1 < row.ops.size(); ++i)
        if (isSend(row.ops[i].kind) && isReceive(row.ops[i + 1].kind)) row.pair(i++);
    std::sort(row.paired.begin(), row.paired.end());
}

// The messages of a rank that one sweep made: sends, then receives.
struct Batch {
    std::vector<Op> sends;
    std::vector<Op> receives;

    void takeInto(Row& row)
    {
        sends.insert(sends.end(), receives.begin(), receives.end());
        for (std::size_t i = 0; i < sends.size(); ++i) {
            if (i + 1 < sends.size()) row.pair(row.ops.size());
            row.ops.push_back(sends[i]);
        }
        sends.clear();
        receives.clear();
    }
};

// In each sweep over the ranks, in their order, a rank may append the op or pair at its head. Ranks that wait are
// passed over until the op that they wait for is placed; batched: until the sweep behind it, as its message then has
// arrived.
Result<void> Lowerer::sweep(bool batched)
{
    using Queue = std::priority_queue<int, std::vector<int>, std::greater<>>;
    std::vector<std::uint32_t> placed(index.opCount(), 0); // in which sweep, from 1; 0: not yet
    std::uint32_t number = 1;
    std::vector<Batch> batches(batched ? rows.size() : 0);
    std::vector<std::size_t> head(rows.size(), 0);
    std::vector<std::vector<int>> waiters(index.opCount()); // ranks
    // The first input that is not placed; noOp: all are. An input that is not there has been refused before.
    auto missing = [&](std::size_t rank, std::size_t position) {
        std::uint32_t first = noOp;
        index.eachInput(schedule.order[rank][position], [&](std::uint32_t id, const Need&, int) {
            const bool underWay =
                batched && placed[id] == number && static_cast<std::size_t>(index.placeOf(id).rank) != rank;
            if (first == noOp && (placed[id] == 0 || underWay)) first = id;
        });
        return first;
    };
    Queue now;
    Queue next;
    for (std::size_t r = 0; r < rows.size(); ++r) now.push(static_cast<int>(r));
    for (; !now.empty(); std::swap(now, next), ++number) {
        while (!now.empty()) {
            const int rank = now.top();
            now.pop();
            const auto r = static_cast<std::size_t>(rank);
            if (head[r] == schedule.order[r].size()) continue;
            const std::size_t at = head[r];
            const std::size_t count = width(r, at);
            std::uint32_t awaited = missing(r, at);
            if (awaited == noOp && count == 2) awaited = missing(r, at + 1);
            if (awaited != noOp) {
                if (placed[awaited] == 0)
                    waiters[awaited].push_back(rank);
                else
                    next.push(rank);
                continue;
            }
            compute(r, at, count);
            for (std::size_t k = at; k < at + count; ++k) {
                const std::uint32_t id = index.idOf(rank, k);
                placed[id] = number;
                eachSend(id, [&](const Message& message) {
                    const auto to = static_cast<std::size_t>(message.toRank);
                    (batched ? batches[r].sends : rows[r].ops).push_back(message.send);
                    (batched ? batches[to].receives : rows[to].ops).push_back(message.receive);
                });
                for (const int waiter : std::exchange(waiters[id], {}))
                    (!batched && waiter > rank ? now : next).push(waiter);
            }
            head[r] += count;
            next.push(rank);
        }
        for (std::size_t r = 0; r < batches.size(); ++r) batches[r].takeInto(rows[r]);
    }
    for (std::size_t r = 0; r < rows.size(); ++r)
        if (head[r] < schedule.order[r].size())
            return tl::unexpected(blockedError(schedule, index, cycleAt(schedule, index, head)));
    return {};
}

Schedule withCollectives(const Schedule& schedule)
{
    Schedule out = schedule;
    out.paired.assign(out.order.size(), {});
    for (std::size_t r = 0; r < out.order.size(); ++r) {
        GatheredRow gathered = gatherStages(schedule, r, activeStages, [](const Op&) { return true; });
        const std::vector<Op>& row = gathered.ops;
        out.paired[r] = std::move(gathered.paired);
        std::vector<int> gradients(static_cast<std::size_t>(schedule.stages), 0);
        std::vector<int> expected(static_cast<std::size_t>(schedule.stages), 0);
        for (const Op& op : row)
            if (makesWeightGradient(op.kind))
                ++expected[op.stage];
            else if (isReduction(op.kind))
                expected[op.stage] = -1; // is there already
        std::vector<Op> reduced;
        std::vector<std::uint32_t> paired;
        std::vector<Op> late; // behind the second op of a pair
        for (std::size_t i = 0; i < row.size(); ++i) {
            const bool pair =
                std::binary_search(out.paired[r].begin(), out.paired[r].end(), static_cast<std::uint32_t>(i));
            if (pair) paired.push_back(static_cast<std::uint32_t>(reduced.size()));
            reduced.push_back(row[i]);
            const OpKind kind = row[i].kind;
            if (makesWeightGradient(kind) && ++gradients[row[i].stage] == expected[row[i].stage])
                late.push_back(makeReduction(row[i].stage));
            if (pair) continue;
            reduced.insert(reduced.end(), late.begin(), late.end());
            late.clear();
        }
        out.order[r] = std::move(reduced);
        out.paired[r] = std::move(paired);
    }
    return out;
}

Result<Schedule> insertMessages(const Schedule& compute, const OpIndex& index, const Lowering& lowering)
{
    countWork(&WorkCounts::lowerings);
    if (!compute.graph.isChain())
        return fail(ErrorCode::Invalid, "the stages don't form a chain, and sends and receives say no partner",
                    "simulate it without them");
    for (std::size_t r = 0; r < compute.order.size(); ++r)
        for (std::size_t i = 0; i < compute.order[r].size(); ++i) {
            bool whole = true;
            index.eachInput(compute.order[r][i],
                            [&](std::uint32_t id, const Need&, int) { whole = whole && id != noOp; });
            if (!whole) return tl::unexpected(blockedError(compute, index, {}));
        }
    Lowerer lowerer(compute, index);
    if (lowering.rule == LoweringRule::PyTorch || lowering.rule == LoweringRule::Batched) {
        STAGEWRIGHT_CHECK(lowerer.sweep(lowering.rule == LoweringRule::Batched));
    } else {
        lowerer.inOrder(lowering);
    }
    Schedule lowered = compute;
    lowered.paired.resize(lowered.order.size());
    for (std::size_t r = 0; r < lowered.order.size(); ++r) {
        lowered.order[r] = std::move(lowerer.rows[r].ops);
        lowered.paired[r] = std::move(lowerer.rows[r].paired);
    }
    return lowered;
}

} // namespace

std::string toText(const Lowering& lowering)
{
    std::string out(ruleNames[static_cast<std::size_t>(lowering.rule)]);
    if (lowering.ahead > 0) out += fmt::format(":{}", lowering.ahead);
    if (lowering.collectives) out += ":collectives";
    return out;
}

Result<Lowering> parseLowering(std::string_view text)
{
    const auto [name, parameter] = keyValueOf(text, ':');
    const auto at = std::find(ruleNames.begin(), ruleNames.end(), name);
    if (at == ruleNames.end())
        return fail(ErrorCode::Usage, fmt::format("unknown lowering rule '{}'", name),
                    fmt::format("known are {}", fmt::join(ruleNames, ", ")));
    Lowering out;
    out.rule = static_cast<LoweringRule>(at - ruleNames.begin());
    if (!parameter) return out;
    if (out.rule == LoweringRule::PyTorch && *parameter == "collectives") {
        out.collectives = true;
        return out;
    }
    if (out.rule != LoweringRule::EagerPost || !readNumber(*parameter, out.ahead) || out.ahead < 1)
        return fail(
            ErrorCode::Usage, fmt::format("lowering rule {}: '{}' is not one of its parameters", *at, *parameter),
            "write eager-post:2 for receives two ops ahead, pytorch:collectives for UNSHARD, RESHARD and REDUCE_GRAD");
    return out;
}

ReceiveMode receivesOf(LoweringRule rule)
{
    return rule == LoweringRule::PyTorch || rule == LoweringRule::EagerPost ? ReceiveMode::Posted
                                                                            : ReceiveMode::Blocking;
}

Result<Schedule> lower(const Schedule& schedule, const Lowering& lowering)
{
    Schedule out = lowering.collectives ? withCollectives(withoutCommunication(schedule)) : withoutMessages(schedule);
    STAGEWRIGHT_TRY(const auto cells, cellsOf(out));
    return insertMessages(out, OpIndex(out, cells), lowering);
}

Result<Schedule> lowerIndexed(const Schedule& compute, const OpIndex& index, const Lowering& lowering)
{
    // with gathers and reductions these are other lists, with an index of their own
    if (lowering.collectives) return lower(compute, lowering);
    return insertMessages(compute, index, lowering);
}

namespace {

// As without(), by kind, and counted.
Schedule stripped(const Schedule& schedule, const std::function<bool(OpKind)>& dropped)
{
    countWork(&WorkCounts::strips);
    return without(schedule, [&](const Op& op) { return dropped(op.kind); });
}

} // namespace

std::optional<Lowering> exactLoweringOf(const Schedule& lists)
{
    constexpr int mostAhead = 4;
    std::vector<Lowering> rules;
    for (const LoweringRule rule : {LoweringRule::JustInTime, LoweringRule::Grouped, LoweringRule::Batched,
                                    LoweringRule::PyTorch, LoweringRule::RankParity})
        rules.push_back({rule, 0, false});
    rules.push_back({LoweringRule::PyTorch, 0, true});
    for (int ahead = 0; ahead <= mostAhead; ++ahead) rules.push_back({LoweringRule::EagerPost, ahead, false});
    for (const Lowering& rule : rules)
        if (const auto made = lower(lists, rule); made && *made == lists) return rule;
    return std::nullopt;
}

Lowering loweringOf(const Schedule& lists)
{
    if (const auto exact = exactLoweringOf(lists)) return *exact;
    for (std::size_t rank = 0; rank < lists.paired.size(); ++rank)
        for (const std::uint32_t position : lists.paired[rank])
            if (isMessage(lists.order[rank][position].kind)) return {LoweringRule::Batched, 0, false};
    return {};
}

Schedule withoutMessages(const Schedule& schedule)
{
    return stripped(schedule, [](OpKind kind) { return isMessage(kind); });
}

Schedule withoutCollectives(const Schedule& schedule)
{
    return stripped(schedule, [](OpKind kind) { return isCollective(kind); });
}

Schedule computeOrder(const Schedule& schedule)
{
    bool shares = false;
    for (const auto& ops : schedule.order)
        shares = shares || std::any_of(ops.begin(), ops.end(), [](const Op& op) { return isCollective(op.kind); });
    const bool steps = shares && schedule.weights == WeightRule::Synchronous;
    return stripped(schedule, [steps](OpKind kind) {
        return isMessage(kind) || isCollective(kind) || (steps && isOptimizer(kind));
    });
}

Schedule withoutCommunication(const Schedule& schedule)
{
    const bool copies = schedule.placement.hasCopies();
    return stripped(schedule, [copies](OpKind kind) {
        return isMessage(kind) || isGather(kind) || isRelease(kind) || (isReduction(kind) && !copies);
    });
}

} // namespace stagewright
