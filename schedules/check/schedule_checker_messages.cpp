// Sends and receives of a lowered schedule: each message is sent once, after the op that makes it, and received once,
// before the op that needs it.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/check/schedule_checker.h"
#include "schedules/messages/messages.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

std::string cargo(const Op& message)
{
    const bool forward = carriesActivation(message.kind);
    return forward ? "activations" : "gradient";
}

} // namespace

void ScheduleChecker::checkMessages(const OpIndex& index)
{
    const MessageIndex pairs(schedule, index);
    for (int r = 0; r < schedule.ranks; ++r) {
        const auto& ops = schedule.order[static_cast<std::size_t>(r)];
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (isMessage(ops[i].kind))
                checkMessage(index, pairs, r, i);
            else if (isCompute(ops[i].kind))
                checkReceived(index, pairs, r, i);
        }
    }
}

void ScheduleChecker::checkMessage(const OpIndex& index, const MessageIndex& pairs, int rank, std::size_t position)
{
    const Op& op = schedule.order[static_cast<std::size_t>(rank)][position];
    const bool send = isSend(op.kind);
    const bool forward = carriesActivation(op.kind);
    const int neighbour = op.stage + (send == forward ? 1 : -1);
    if (neighbour < 0 || neighbour >= schedule.stages)
        return add(FaultKind::BadOp, rank, position, op,
                   fmt::format("there is no stage {} to {}", neighbour, send ? "send to" : "receive from"),
                   "remove it");
    const int home = schedule.placement.rankOf(op.stage, op.microbatch);
    if (home != rank)
        return add(FaultKind::WrongRank, rank, position, op,
                   fmt::format("stage {} is on rank {} for microbatch {}", op.stage, home, op.microbatch),
                   fmt::format("move it to rank {}, or remove it", home));
    const Op other = send ? receiveOf(op) : sendOf(op);
    const int peer = schedule.placement.rankOf(other.stage, other.microbatch);
    if (peer == rank)
        return add(FaultKind::BadOp, rank, position, op,
                   fmt::format("stage {} is on the same rank; no message is needed", neighbour), "remove it");
    const MessagePair& pair = pairs.messages()[pairs.messageOf(index.idOf(rank, position))];
    const std::uint32_t mine = send ? pair.send : pair.receive;
    const std::uint32_t its = send ? pair.receive : pair.send;
    if (mine != index.idOf(rank, position)) {
        const OpPlace first = index.placeOf(mine);
        if (isSkipped(op))
            add(FaultKind::Duplicate, rank, position, op,
                fmt::format("a skip connection: the first is at op {} of rank {}, and stages form a chain, in which "
                            "each exchanges one message of a microbatch with the next",
                            opNumber(first.position), first.rank),
                "a skip connection can't be expressed: carry its tensor through the stages between, as a part of their "
                "messages");
        else
            add(FaultKind::Duplicate, rank, position, op,
                fmt::format("a second one; the first is at op {} of rank {}", opNumber(first.position), first.rank),
                "remove one of the two");
        return addOther(first.rank, first.position, op);
    }
    if (its == noOp)
        return add(FaultKind::Count, rank, position, op,
                   fmt::format("rank {} has no {}, so nobody {} it", peer, toText(other), send ? "takes" : "sends"),
                   fmt::format("add {} to rank {}, or remove {}", toText(other), peer, toText(op)));
    if (!send) return;
    // What is sent has been made.
    index.eachInput(op, [&](std::uint32_t id, const Need&, int) {
        if (id == noOp) return; // its forward or backward is missing: reported as such
        const OpPlace place = index.placeOf(id);
        if (place.rank != rank || place.position < position) return;
        const Op& producer = schedule.order[static_cast<std::size_t>(rank)][place.position];
        add(FaultKind::Order, rank, position, op,
            fmt::format("{} before {}; {} is at op {}", ruleOf(op.kind).title, toText(producer), toText(producer),
                        opNumber(place.position)),
            fmt::format("move it after {}", toText(producer)));
        addOther(rank, place.position, producer);
    });
}

// A stage sends more than its neighbour receives, and another receives more than its neighbour sends: one skips the
// stages between.
bool ScheduleChecker::isSkipped(const Op& message)
{
    const bool forward = carriesActivation(message.kind);
    if (!skipped) {
        // by the lower stage of a boundary: sends less receives
        std::map<std::pair<bool, int>, std::map<int, int>> left;
        for (const auto& ops : schedule.order)
            for (const Op& op : ops) {
                if (!isMessage(op.kind)) continue;
                const bool up = carriesActivation(op.kind);
                const int below = isSend(op.kind) == up ? op.stage : op.stage - 1;
                left[{up, op.microbatch}][below] += isSend(op.kind) ? 1 : -1;
            }
        skipped.emplace();
        for (const auto& [key, boundaries] : left) {
            const auto any = [&boundaries](auto&& holds) {
                return std::any_of(boundaries.begin(), boundaries.end(),
                                   [&](const auto& one) { return holds(one.second); });
            };
            if (any([](int count) { return count > 0; }) && any([](int count) { return count < 0; }))
                skipped->insert(key);
        }
    }
    return skipped->contains({forward, message.microbatch});
}

// Every input from another rank has its receive before the op.
void ScheduleChecker::checkReceived(const OpIndex& index, const MessageIndex& pairs, int rank, std::size_t position)
{
    const Op& op = schedule.order[static_cast<std::size_t>(rank)][position];
    pairs.eachDelivery(schedule, index, op, rank, [&](const Delivery& part) {
        if (part.stage == op.stage || part.producer == noOp || part.from.rank == rank) return true;
        if (part.message == noOp) {
            const Op& producer = schedule.order[static_cast<std::size_t>(part.from.rank)][part.from.position];
            Op receive = op;
            receive.kind = receiveKind(!isForward(op.kind));
            add(FaultKind::Count, rank, position, op,
                fmt::format("no {} before it; rank {} makes its {} with {}", toText(receive), part.from.rank,
                            cargo(receive), toText(producer)),
                fmt::format("add {} before it, and its send to rank {}", toText(receive), part.from.rank));
            addOther(part.from.rank, part.from.position, producer);
            return false;
        }
        const OpPlace receive = index.placeOf(pairs.messages()[part.message].receive);
        const Op& receiveOp = schedule.order[static_cast<std::size_t>(receive.rank)][receive.position];
        if (receive.rank == rank && receive.position > position) {
            add(FaultKind::Order, rank, position, op,
                fmt::format("before its {}; {} is at op {}", cargo(receiveOp), toText(receiveOp),
                            opNumber(receive.position)),
                fmt::format("move it after {}", toText(receiveOp)));
            addOther(rank, receive.position, receiveOp);
            return false;
        }
        return true;
    });
}

} // namespace stagewright
