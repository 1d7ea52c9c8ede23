// RankRecorder: what one rank records while it runs. Written by the rank's own thread only, without locks, into chunks
// that were allocated before; read by take() while the rank is at rest. An event is 32 bytes and one clock reading.
//
// Order of calls in a step:  stepBegin  { waitBegin? receiveBegin receiveEnd }  opBegin  memoryChanged…  opEnd  { sent
// }
//
// CPU time: opEnd reads the thread's CPU clock; opBegin reads it only where something else happened since the last
// reading (a receive, a wait, a permit: see otherWork), so that a copied message is not counted as the op's time. Back
// to back, an op costs one reading; the hand-over of its message (about 1 µs) then counts to the op that follows.
//
// Memory: changes are summed per (category, stage, microbatch) and written once, at the op's end; changes between ops
// belong to the start of the next op. Workspace, and weights that come and go within an op, are written as their
// maximum there, and so is what else a rank holds within an op beyond what it held before and holds at its end: what is
// written reaches the most that it held at once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "profiler/record/clock.h"
#include "profiler/record/device_clock.h"
#include "profiler/record/message_key.h"
#include "schedules/model/op.h"
#include "schedules/timeline/timeline.h"

namespace stagewright {

enum class EventKind : std::uint8_t {
    OpBegin,           // value: CPU clock or −1
    OpEnd,             // value: as OpBegin
    WaitBegin,         // blocked for a message
    ReceiveBegin,      // the message is there; copying starts
    ReceiveEnd,        // value: bytes
    SendPosted,        // the rank waits at a send until Sent
    ReceivePosted,     // a receive is offered (rendezvous)
    Sent,              // handed over; value: when it is available to the receiver
    MemoryAtStart,     // of the step; value: bytes
    MemoryAtBegin,     // of the next op
    MemoryInside,      // from the last op's begin to its end; value: bytes
    MemoryAtEnd,       // of the last op
    Released,          // a sent message's buffer was freed; value: bytes (negative)
    CollectiveArrived, // of an UNSHARD or REDUCE_GRAD of the list: its last piece was there; value: bytes that came
    // of the copies and additions of what came; value: emulated time of the link, on the virtual clock
    CollectiveBegin,
    CollectiveEnd, // value: CPU time of these
    CopyBegin,     // of an OFFLOAD or RELOAD of the list, beside its ops; value: what it takes on the virtual clock
    CopyEnd,
    MovedOut, // to the host, from the copy's begin there and until its end here; value: bytes of a microbatch
    MovedIn,  // and back
};

struct RecordedEvent {
    Nanos time; // CLOCK_MONOTONIC; memory: 0, they carry their op's times
    std::int64_t value;
    // ops and collectives: in the rank's list, −1: optimizer and gradient norm; memory: the category
    std::int32_t position;
    std::int32_t microbatch;
    std::uint16_t stage;
    OpKind op; // ops: the kind; messages: SendF or SendB by direction
    EventKind kind;
    std::int16_t slice; // messages: as MessageKey
    std::uint8_t half;  // messages: as MessageKey
};
static_assert(sizeof(RecordedEvent) == 32);

class RankRecorder {
public:
    // eventsPerStep: how many are expected; more are taken too, in further chunks. threadCpu: read the CPU clock.
    explicit RankRecorder(std::size_t eventsPerStep, bool threadCpu = true);

    // From now on ops and receives are stamped by a device: their times, and the time of their ops in place of CPU
    // time, are known once it is done, at take(). A rank then waits on its device, not on its thread. Null: by the
    // host's clock.
    void useClock(DeviceClock* clock) { m_device = clock; }

    void stepBegin()
    {
        flushMemory(EventKind::MemoryAtStart);
        m_cpuStale = true;
    }
    void opBegin(const Op& op, std::int32_t position)
    {
        flushMemory(EventKind::MemoryAtBegin);
        m_stage = op.stage;
        if (m_device) {
            const std::int64_t stamp = m_device->stamp();
            write(EventKind::OpBegin, op.kind, op.stage, op.microbatch, position, stamp, stamp);
            return;
        }
        if (m_threadCpu && m_cpuStale) m_cpu = threadCpuNow();
        write(EventKind::OpBegin, op.kind, op.stage, op.microbatch, position, monotonicNow(), m_cpu);
    }
    void opEnd(const Op& op, std::int32_t position)
    {
        if (m_device) {
            const std::int64_t stamp = m_device->stamp();
            write(EventKind::OpEnd, op.kind, op.stage, op.microbatch, position, stamp, stamp);
        } else {
            const Nanos now = monotonicNow();
            if (m_threadCpu) m_cpu = threadCpuNow();
            m_cpuStale = false;
            write(EventKind::OpEnd, op.kind, op.stage, op.microbatch, position, now, m_cpu);
        }
        flushMemory(EventKind::MemoryAtEnd);
        if (m_activations > m_activationPeak) m_activationPeak = m_activations;
    }
    void waitBegin(const MessageKey& key)
    {
        if (m_device) return; // a wait of the thread says nothing about the device
        message(EventKind::WaitBegin, key, 0);
        m_cpuStale = true;
    }
    void receiveBegin(const MessageKey& key)
    {
        if (m_device) {
            const std::int64_t stamp = m_device->stamp();
            message(EventKind::WaitBegin, key, 0, stamp);
            message(EventKind::ReceiveBegin, key, 0, stamp);
        } else {
            message(EventKind::ReceiveBegin, key, 0);
        }
    }
    void receiveEnd(const MessageKey& key, Bytes bytes)
    {
        message(EventKind::ReceiveEnd, key, bytes, m_device ? m_device->stamp() : monotonicNow());
        m_cpuStale = true;
    }
    void receivePosted(const MessageKey& key) { message(EventKind::ReceivePosted, key, 0); }
    void sendPosted(const MessageKey& key) { message(EventKind::SendPosted, key, 0); }
    void sent(const MessageKey& key, Nanos availableAt) { message(EventKind::Sent, key, availableAt); }
    void otherWork() { m_cpuStale = true; }

    void memoryChanged(MemoryCategory category, std::uint16_t stage, std::int32_t microbatch, Bytes delta)
    {
        const auto c = static_cast<std::size_t>(category);
        m_held += delta;
        m_since[c] += delta;
        if (m_held > m_heldPeak) {
            m_heldPeak = m_held;
            m_sinceAtPeak = m_since;
        }
        if (m_releasing) {
            m_released += delta;
        } else if (category == MemoryCategory::Workspace) {
            m_workspace += delta;
            if (m_workspace > m_workspacePeak) m_workspacePeak = m_workspace;
        } else {
            if (category == MemoryCategory::Activations) m_activations += delta;
            if (category == MemoryCategory::Weights) {
                m_weights += delta;
                if (m_weights > m_weightsPeak) m_weightsPeak = m_weights;
            }
            for (std::size_t i = 0; i < m_netCount; ++i) {
                Net& net = m_net[i];
                if (net.microbatch == microbatch && net.stage == stage && net.category == category) {
                    net.delta += delta;
                    return;
                }
            }
            addNet({delta, microbatch, stage, category});
        }
    }
    // When a collective starts to take what came: for collectiveTaken() alone.
    std::int64_t collectiveBegin() { return m_device ? m_device->stamp() : monotonicNow(); }
    // A collective of the list is whole: what it waited for came at `arrived` and was taken from `begin` until now. A
    // device waits for what comes as part of the taking.
    void collectiveTaken(std::int32_t position, Nanos arrived, std::int64_t begin, Bytes bytes, Nanos cpu, Nanos link)
    {
        write(EventKind::CollectiveArrived, {}, 0, -1, position, arrived > 0 && !m_device ? arrived : begin, bytes);
        write(EventKind::CollectiveBegin, {}, 0, -1, position, begin, link);
        write(EventKind::CollectiveEnd, {}, 0, -1, position, collectiveBegin(), cpu);
        m_cpuStale = true;
    }

    // A copy of the list has ended, with the times that its own thread stamped, and what it moved of a microbatch.
    void copied(const Op& op, std::int32_t position, Nanos begin, Nanos end, Nanos cpu)
    {
        write(EventKind::CopyBegin, op.kind, op.stage, op.microbatch, position, begin, cpu);
        write(EventKind::CopyEnd, op.kind, op.stage, op.microbatch, position, end, 0);
    }
    void moved(const Op& op, std::int32_t position, std::int32_t microbatch, Bytes bytes, bool out)
    {
        if (bytes == 0) return;
        write(out ? EventKind::MovedOut : EventKind::MovedIn, op.kind, op.stage, microbatch, position, 0, bytes);
        const Bytes delta = out ? -bytes : bytes; // which the op that runs has not changed
        m_held += delta;
        m_heldBefore += delta;
        m_heldPeak += delta;
        m_activations += delta;
    }

    // Around the freeing of a sent message's buffer: its bytes are placed where the receiver took the message.
    void releaseBegin()
    {
        m_releasing = true;
        m_released = 0;
    }
    void releaseEnd(const MessageKey& key)
    {
        m_releasing = false;
        message(EventKind::Released, key, m_released, 0);
    }

    // Largest sum of activations seen at an op's end since resetPeak().
    Bytes activationPeak() const { return m_activationPeak; }
    void resetPeak() { m_activationPeak = m_activations; }

    // While the rank is at rest: what was recorded since the last call, in order. The chunks are kept for the next
    // step.
    std::vector<RecordedEvent> take();

private:
    struct Net {
        Bytes delta;
        std::int32_t microbatch;
        std::uint16_t stage;
        MemoryCategory category;
    };
    static constexpr std::size_t chunkEvents = 4096;

    void write(EventKind kind, OpKind op, std::uint16_t stage, std::int32_t microbatch, std::int32_t position,
               Nanos time, std::int64_t value)
    {
        if (m_next == m_chunkEnd) nextChunk();
        *m_next++ = RecordedEvent{time, value, position, microbatch, stage, op, kind, -1, 0};
    }
    void message(EventKind kind, const MessageKey& key, std::int64_t value)
    {
        message(kind, key, value, monotonicNow());
    }
    void message(EventKind kind, const MessageKey& key, std::int64_t value, Nanos time)
    {
        if (m_next == m_chunkEnd) nextChunk();
        *m_next++ =
            RecordedEvent{time, value, 0, key.microbatch, key.stage, sendKind(key.gradient), kind, key.slice, key.half};
    }
    void flushMemory(EventKind kind)
    {
        if (m_netCount != 0 || m_heldPeak != m_heldBefore || m_weightsPeak != m_weightsBefore ||
            m_workspacePeak != m_workspaceBefore || m_workspace != m_workspaceBefore)
            writeMemory(kind);
    }
    void writeMemory(EventKind kind);
    template <typename One>
    void writeRest(const One& one);
    void readStamps(std::vector<RecordedEvent>& events);
    void addNet(const Net& net);
    void nextChunk();

    RecordedEvent* m_next = nullptr;
    RecordedEvent* m_chunkEnd = nullptr;
    DeviceClock* m_device = nullptr;
    Nanos m_cpu = -1;
    bool m_threadCpu;
    bool m_cpuStale = true;
    bool m_releasing = false;
    std::uint16_t m_stage = 0;
    Bytes m_released = 0;
    Bytes m_workspace = 0;
    Bytes m_workspaceBefore = 0; // at the last flush
    Bytes m_workspacePeak = 0;   // since then
    Bytes m_weights = 0;
    Bytes m_weightsBefore = 0;
    Bytes m_weightsPeak = 0;
    Bytes m_held = 0; // of all categories
    Bytes m_heldBefore = 0;
    Bytes m_heldPeak = 0;
    std::array<Bytes, memoryCategoryCount> m_since{};       // changes by category since the last flush
    std::array<Bytes, memoryCategoryCount> m_sinceAtPeak{}; // when the rank held most
    Bytes m_activations = 0;
    Bytes m_activationPeak = 0;
    std::size_t m_netCount = 0;
    std::array<Net, 32> m_net{};
    std::vector<Net> m_moreNets; // only where one op touches more than 32 (stage, microbatch, category)
    std::size_t m_chunk = 0;
    std::vector<std::unique_ptr<RecordedEvent[]>> m_chunks;
};

} // namespace stagewright
