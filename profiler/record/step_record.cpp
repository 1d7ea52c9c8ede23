#include "profiler/record/step_record.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "schedules/model/op_index.h"

namespace stagewright {

namespace {

std::string nameOf(const MessageKey& key)
{
    Op op = key.gradient ? makeBackward(key.stage, key.microbatch) : makeForward(key.stage, key.microbatch);
    op.slice = key.slice;
    op.half = key.half;
    return fmt::format("{} for {}", key.gradient ? "gradient" : "activations", toText(op));
}

MessageKey keyOf(const RecordedEvent& event)
{
    return {event.microbatch, event.stage, carriesGradient(event.op), event.half, event.slice};
}

MemoryChange changeOf(const RecordedEvent& event, MemoryChange::When when, std::size_t op)
{
    MemoryChange change;
    change.when = when;
    change.op = op;
    change.delta = event.value;
    change.microbatch = event.microbatch;
    change.stage = event.stage;
    change.category = static_cast<MemoryCategory>(event.position);
    return change;
}

// The target takes at the copy's begin, the source is free at its end.
void addMoved(const RecordedEvent& event, std::size_t op, std::vector<MemoryChange>& memory)
{
    const bool out = event.kind == EventKind::MovedOut;
    MemoryChange change = changeOf(event, MemoryChange::When::OpBegin, op);
    change.category = MemoryCategory::Activations;
    change.onHost = out;
    memory.push_back(change);
    change.when = MemoryChange::When::OpEnd;
    change.delta = -change.delta;
    change.onHost = !out;
    memory.push_back(change);
}

} // namespace

ExpectedMessages::ExpectedMessages(const CheckedSchedule& checked)
    : m_space(checked.cells()), m_at(static_cast<std::size_t>(checked.compute().stages) * m_space.perStage(), -1)
{
    const Schedule& schedule = checked.compute();
    const OpIndex& index = checked.index();
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        const std::vector<Op>& list = schedule.order[static_cast<std::size_t>(rank)];
        for (std::size_t i = 0; i < list.size(); ++i)
            eachMessage(schedule, index, list[i], [&](const MessageKey& key, std::uint32_t producer) {
                const OpPlace from = index.placeOf(producer);
                if (from.rank == rank) return;
                RecordedMessage message;
                message.key = key;
                message.fromRank = from.rank;
                message.toRank = rank;
                message.fromOp = from.position;
                message.toOp = i;
                m_at[at(key)] = static_cast<std::int64_t>(m_all.size());
                m_all.push_back(message);
            });
    }
}

Nanos StepRecord::end() const
{
    Nanos last = begin;
    for (const std::vector<RecordedOp>& list : ops) {
        for (const RecordedOp& op : list) last = std::max({last, op.end, op.takeEnd});
    }
    return last;
}

double StepRecord::contention() const
{
    Nanos wall = 0;
    Nanos cpu = 0;
    for (const std::vector<RecordedOp>& list : ops) {
        for (const RecordedOp& op : list) {
            if (!isBusy(op.op.kind) || op.cpu < 0) continue;
            wall += op.end - op.begin;
            cpu += op.cpu;
        }
    }
    if (wall <= 0) return 0;
    return std::max(0.0, 1.0 - static_cast<double>(cpu) / static_cast<double>(wall));
}

Result<StepRecord> decodeStep(int step, std::shared_ptr<const CheckedSchedule> schedule,
                              const ExpectedMessages& messages,
                              const std::vector<std::vector<RecordedEvent>>& eventsByRank, Nanos begin, Nanos origin)
{
    StepRecord record;
    record.step = step;
    record.begin = begin - origin;
    record.ops.resize(eventsByRank.size());
    record.memory.resize(eventsByRank.size());
    record.messages = messages.all();
    for (std::size_t rank = 0; rank < eventsByRank.size(); ++rank) {
        const std::vector<Op>& list = schedule->compute().order[rank];
        std::vector<RecordedOp>& ops = record.ops[rank];
        std::vector<MemoryChange>& memory = record.memory[rank];
        std::vector<RecordedOp> outside;  // of the list: they come behind it, whenever they ran
        std::vector<std::size_t> pending; // memory changes before the next op
        RecordedOp* now = nullptr;        // the last op that began
        std::size_t index = 0;            // its place
        bool open = false;
        for (const RecordedEvent& event : eventsByRank[rank]) {
            const Nanos time = event.time - origin;
            switch (event.kind) {
            case EventKind::OpBegin: {
                RecordedOp op;
                const auto position = static_cast<std::size_t>(event.position);
                op.op = event.position >= 0 && position < list.size() ? list[position] : makeOp(event.op, event.stage);
                op.position = event.position;
                op.begin = time;
                op.cpu = event.value;
                if (open || (event.position >= 0 && position != ops.size())) {
                    return fail(ErrorCode::Failed,
                                fmt::format("step {}, rank {}: record is damaged before op {} ({})", stepNumber(step),
                                            rank, opNumber(event.position), toText(op.op)));
                }
                const bool listed = event.position >= 0;
                index = listed ? position : list.size() + outside.size();
                now = &(listed ? ops : outside).emplace_back(op);
                for (const std::size_t change : pending) memory[change].op = index;
                pending.clear();
                open = true;
                break;
            }
            case EventKind::OpEnd:
                if (!open)
                    return fail(ErrorCode::Failed,
                                fmt::format("step {}, rank {}: an op ends that never started", stepNumber(step), rank));
                now->end = time;
                now->cpu = event.value < 0 || now->cpu < 0 ? -1 : event.value - now->cpu;
                open = false;
                break;
            case EventKind::CollectiveArrived:
            case EventKind::CollectiveBegin:
            case EventKind::CollectiveEnd: {
                const auto position = static_cast<std::size_t>(event.position);
                if (position >= ops.size() || !isCollective(ops[position].op.kind))
                    return fail(ErrorCode::Failed,
                                fmt::format("step {}, rank {}: took what no collective brought, at op {}",
                                            stepNumber(step), rank, opNumber(event.position)));
                RecordedOp& op = ops[position];
                if (event.kind == EventKind::CollectiveArrived) {
                    op.arrived = std::max(time, op.end);
                    op.bytes = event.value;
                } else if (event.kind == EventKind::CollectiveBegin) {
                    op.takeBegin = time;
                    op.taken += event.value;
                } else {
                    op.takeEnd = time;
                    op.taken += event.value;
                }
                break;
            }
            case EventKind::CopyBegin:
            case EventKind::CopyEnd:
            case EventKind::MovedOut:
            case EventKind::MovedIn: {
                const auto position = static_cast<std::size_t>(event.position);
                if (event.position < 0 || position >= ops.size() || !isCopy(ops[position].op.kind))
                    return fail(ErrorCode::Failed,
                                fmt::format("step {}, rank {}: a copy ended that the list does not have, at op {}",
                                            stepNumber(step), rank, opNumber(event.position)));
                RecordedOp& op = ops[position];
                if (event.kind == EventKind::CopyBegin) {
                    op.begin = time;
                    op.cpu = event.value;
                } else if (event.kind == EventKind::CopyEnd) {
                    op.end = time;
                } else {
                    addMoved(event, position, memory);
                }
                break;
            }
            case EventKind::WaitBegin:
            case EventKind::ReceiveBegin:
            case EventKind::ReceiveEnd:
            case EventKind::SendPosted:
            case EventKind::ReceivePosted:
            case EventKind::Sent:
            case EventKind::Released: {
                const std::optional<std::size_t> known = messages.find(keyOf(event));
                if (!known) {
                    return fail(ErrorCode::Failed,
                                fmt::format("step {}, rank {}: recorded a message that the schedule does not have ({})",
                                            stepNumber(step), rank, nameOf(keyOf(event))));
                }
                RecordedMessage* message = &record.messages[*known];
                if (event.kind == EventKind::WaitBegin) message->waitBegin = time;
                if (event.kind == EventKind::ReceiveBegin) message->takeBegin = time;
                if (event.kind == EventKind::ReceiveEnd) {
                    message->takeEnd = time;
                    message->bytes = event.value;
                }
                if (event.kind == EventKind::ReceivePosted) message->receivePosted = time;
                if (event.kind == EventKind::SendPosted) message->sendPosted = time;
                if (event.kind == EventKind::Sent) {
                    message->sent = time;
                    message->available = event.value - origin;
                }
                if (event.kind == EventKind::Released) {
                    message->released = event.value;
                    message->releasedAfter = now == nullptr ? -1 : static_cast<std::int64_t>(index);
                }
                break;
            }
            case EventKind::MemoryAtStart: memory.push_back(changeOf(event, MemoryChange::When::StepBegin, 0)); break;
            case EventKind::MemoryAtBegin:
                pending.push_back(memory.size());
                memory.push_back(changeOf(event, MemoryChange::When::OpBegin, list.size()));
                break;
            case EventKind::MemoryAtEnd:
            case EventKind::MemoryInside:
                if (now == nullptr) { // freed after a step without ops
                    memory.push_back(changeOf(event, MemoryChange::When::StepBegin, 0));
                    break;
                }
                if (event.kind == EventKind::MemoryInside) {
                    memory.push_back(changeOf(event, MemoryChange::When::OpBegin, index));
                    memory.push_back(changeOf(event, MemoryChange::When::OpEnd, index));
                    memory.back().delta = -event.value;
                } else {
                    memory.push_back(changeOf(event, MemoryChange::When::OpEnd, index));
                }
                break;
            }
        }
        if (open || ops.size() != list.size())
            return fail(ErrorCode::Failed, fmt::format("step {}, rank {}: recorded {} of {} ops", stepNumber(step),
                                                       rank, ops.size(), list.size()));
        ops.insert(ops.end(), outside.begin(), outside.end());
    }
    for (RecordedMessage& message : record.messages) {
        if (message.sendPosted >= 0) // the receiver may have gone on before the sender woke up
            message.available = std::min(message.available, message.takeBegin);
        if (message.waitBegin >= 0 && message.waitBegin == message.takeBegin) // a device's: it waits and copies in one
            message.takeBegin =
                std::clamp(message.available, message.takeBegin, std::max(message.takeBegin, message.takeEnd));
        message.arrival = message.waitBegin >= 0 ? message.takeEnd : message.available;
        if (message.sent < 0 || message.takeEnd < 0) {
            return fail(ErrorCode::Failed, fmt::format("step {}: {} was never {}", stepNumber(step),
                                                       nameOf(message.key), message.sent < 0 ? "sent" : "received"));
        }
    }
    record.schedule = std::move(schedule);
    return record;
}

} // namespace stagewright
