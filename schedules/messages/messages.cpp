#include "schedules/messages/messages.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace stagewright {

namespace {

// What two ops cover together, as the cell fields of an op.
Op commonPart(const Op& a, const Op& b)
{
    Op out = a;
    const int first = std::max(a.microbatch, b.microbatch);
    const int last = std::min(a.microbatch + a.count, b.microbatch + b.count);
    out.microbatch = first;
    out.count = static_cast<std::uint16_t>(last - first);
    if (out.slice < 0) out.slice = b.slice;
    if (out.half == 0) out.half = b.half;
    return out;
}

} // namespace

std::vector<Message> messagesOf(const Schedule& schedule, const OpIndex& index)
{
    std::vector<Message> out;
    std::vector<std::uint32_t> producers;
    std::vector<std::uint32_t> takenBy(index.opCount(), noOp); // the last op that takes what this one makes
    for (int r = 0; r < schedule.ranks; ++r) {
        const auto& ops = schedule.order[static_cast<std::size_t>(r)];
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Op& op = ops[i];
            if (!isCompute(op.kind)) continue;
            const std::uint32_t self = index.idOf(r, i);
            producers.clear();
            index.eachInput(op, [&](std::uint32_t id, const Need&, int stage) {
                if (id == noOp || stage == op.stage) return;
                if (std::exchange(takenBy[id], self) != self) producers.push_back(id);
            });
            for (const std::uint32_t id : producers) {
                const OpPlace place = index.placeOf(id);
                if (place.rank == r) continue;
                const Op& producer = schedule.order[static_cast<std::size_t>(place.rank)][place.position];
                Message message;
                message.producer = id;
                message.consumer = self;
                message.fromRank = place.rank;
                message.toRank = r;
                message.receive = commonPart(op, producer);
                message.receive.kind = receiveKind(!isForward(op.kind));
                message.send = asKind(message.receive, sendKind(!isForward(op.kind)));
                message.send.stage = producer.stage;
                out.push_back(message);
            }
        }
    }
    return out;
}

bool isLowered(const Schedule& schedule)
{
    for (const auto& ops : schedule.order)
        for (const Op& op : ops)
            if (isMessage(op.kind)) return true;
    return false;
}

Op receiveOf(const Op& send)
{
    Op out = send;
    const bool forward = carriesActivation(send.kind);
    out.kind = receiveKind(!forward);
    out.stage = static_cast<std::uint16_t>(send.stage + (forward ? 1 : -1));
    return out;
}

Op sendOf(const Op& receive)
{
    Op out = receive;
    const bool forward = carriesActivation(receive.kind);
    out.kind = sendKind(!forward);
    out.stage = static_cast<std::uint16_t>(receive.stage + (forward ? -1 : 1));
    return out;
}

namespace {

// The number of each message, by its receive. A table; ops over several microbatches are few.
class MessageNumbers {
public:
    explicit MessageNumbers(const CellSpace& cells)
        : m_microbatches(static_cast<std::size_t>(cells.microbatches)),
          m_slices(static_cast<std::size_t>(cells.slices) + 1), m_plain(cells.plain),
          m_size(static_cast<std::size_t>(cells.stages) * m_microbatches * (m_plain ? 1 : 3 * m_slices))
    {
    }
    // A stage beyond the schedule's (a send from the last stage on) has no place in the table.
    std::uint32_t& of(const Op& receive)
    {
        const std::size_t cell = receive.stage * m_microbatches + static_cast<std::size_t>(receive.microbatch);
        const std::size_t at =
            m_plain ? cell : (cell * m_slices + static_cast<std::size_t>(receive.slice + 1)) * 3 + receive.half;
        if (receive.count != 1 || at >= m_size) return m_others.try_emplace(receive, noOp).first->second;
        auto& table = m_tables[carriesGradient(receive.kind) ? 1 : 0];
        if (table.empty()) table.assign(m_size, noOp);
        return table[at];
    }

private:
    std::size_t m_microbatches;
    std::size_t m_slices;
    bool m_plain;
    std::size_t m_size;
    std::array<std::vector<std::uint32_t>, 2> m_tables;
    std::unordered_map<Op, std::uint32_t> m_others;
};

} // namespace

MessageIndex::MessageIndex(const Schedule& schedule, const OpIndex& index) : m_messageOfOp(index.opCount(), noOp)
{
    MessageNumbers known(index.cells());
    std::uint32_t id = 0;
    for (const auto& ops : schedule.order)
        for (const Op& op : ops) {
            if (isMessage(op.kind)) {
                const bool send = isSend(op.kind);
                std::uint32_t& message = known.of(send ? receiveOf(op) : op);
                if (message == noOp) {
                    message = static_cast<std::uint32_t>(m_messages.size());
                    m_messages.emplace_back();
                }
                MessagePair& pair = m_messages[message];
                std::uint32_t& side = send ? pair.send : pair.receive;
                if (side == noOp) side = id;
                m_messageOfOp[id] = message;
                if (!send) {
                    auto& table = m_byCell[carriesGradient(op.kind) ? 1 : 0];
                    if (table.empty()) table.assign(index.cells().size(), noOp);
                    index.cells().each(op, op.stage, [&](std::size_t cell) {
                        if (table[cell] == noOp) table[cell] = message;
                        return true;
                    });
                }
            }
            ++id;
        }
}

} // namespace stagewright
