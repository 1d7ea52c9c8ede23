// MessageKey: what a message between two stages carries, named by the stage that consumes it. MessageSpace numbers keys
// densely, for tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "schedules/model/kinds.h"
#include "schedules/model/op_index.h"

namespace stagewright {

// One message per producer, consumer and microbatch: its slice and half are those of the finer side (execution_plan.h).
struct MessageKey {
    std::int32_t microbatch = 0;
    std::uint16_t stage = 0;
    bool gradient = false;   // false: activations for F of stage; true: gradient for I or B of stage
    std::uint8_t half = 0;   // as Op::half
    std::int16_t slice = -1; // as Op::slice
    auto operator<=>(const MessageKey&) const = default;
};

class MessageSpace {
public:
    MessageSpace() = default;
    explicit MessageSpace(const CellSpace& cells)
        : m_stages(cells.stages), m_microbatches(cells.microbatches), m_rows(cells.slices + 1),
          m_halves(cells.halves > 1 ? 3 : 1)
    {
    }

    bool contains(const MessageKey& key) const
    {
        return key.stage < m_stages && key.microbatch >= 0 && key.microbatch < m_microbatches && key.slice >= -1 &&
               key.slice + 1 < m_rows && key.half < m_halves;
    }
    // Keys of one stage are numbered 0 … perStage() − 1.
    std::size_t perStage() const { return 2 * static_cast<std::size_t>(m_microbatches * m_rows * m_halves); }
    std::size_t within(const MessageKey& key) const
    {
        const int part = (key.slice + 1) * m_halves + key.half;
        const int block = (key.gradient ? m_microbatches : 0) + key.microbatch;
        return static_cast<std::size_t>(block * m_rows * m_halves + part);
    }

private:
    int m_stages = 0;
    int m_microbatches = 0;
    int m_rows = 1;   // slice −1, 0, 1 …
    int m_halves = 1; // 3 where ops are halved
};

// A receive of several microbatches takes a message each: this is the first one's.
inline MessageKey messageOf(const Op& receive)
{
    return {receive.microbatch, receive.stage, carriesGradient(receive.kind), receive.half, receive.slice};
}

// The slice and half that a message between these two ops has; both must touch.
inline MessageKey messageBetween(const Op& producer, const Op& consumer, int microbatch)
{
    MessageKey key;
    key.microbatch = microbatch;
    key.stage = consumer.stage;
    key.gradient = producer.stage > consumer.stage;
    key.slice = consumer.slice >= 0 ? consumer.slice : producer.slice;
    key.half = consumer.half != 0 ? consumer.half : producer.half;
    return key;
}

// Calls visit(key, producer id) for each message that F, B or I needs from a neighbouring stage, by microbatch, then by
// slice and half. A producer that the schedule lacks is skipped.
template <typename Visit>
void eachMessage(const Schedule& schedule, const OpIndex& index, const Op& op, Visit&& visit)
{
    if (!isForward(op.kind) && !isReturn(op.kind)) return;
    schedule.graph.eachNeed(op, schedule.stages, [&](const Need& need, int stage) {
        if (stage == op.stage) return;
        for (int k = 0; k < op.count; ++k) {
            Op one = op;
            one.microbatch = op.microbatch + k;
            one.count = 1;
            std::uint32_t last = noOp;
            index.cells().each(one, stage, [&](std::size_t cell) {
                const std::uint32_t id = index.producer(productOf(need.kind), cell);
                if (id == noOp || id == last) return true;
                last = id;
                const OpPlace from = index.placeOf(id);
                const Op& producer = schedule.order[static_cast<std::size_t>(from.rank)][from.position];
                visit(messageBetween(producer, op, one.microbatch), id);
                return true;
            });
        }
    });
}

} // namespace stagewright
