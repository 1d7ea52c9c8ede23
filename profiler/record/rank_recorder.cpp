#include "profiler/record/rank_recorder.h"

#include <algorithm>

namespace stagewright {

RankRecorder::RankRecorder(std::size_t eventsPerStep, bool threadCpu) : m_threadCpu(threadCpu)
{
    const std::size_t chunks = eventsPerStep / chunkEvents + 1;
    for (std::size_t i = 0; i < chunks; ++i)
        m_chunks.push_back(std::make_unique_for_overwrite<RecordedEvent[]>(chunkEvents));
    m_next = m_chunks.front().get();
    m_chunkEnd = m_next + chunkEvents;
}

void RankRecorder::nextChunk()
{
    ++m_chunk;
    if (m_chunk == m_chunks.size()) m_chunks.push_back(std::make_unique_for_overwrite<RecordedEvent[]>(chunkEvents));
    m_next = m_chunks[m_chunk].get();
    m_chunkEnd = m_next + chunkEvents;
}

void RankRecorder::addNet(const Net& net)
{
    if (m_netCount < m_net.size()) {
        m_net[m_netCount++] = net;
        return;
    }
    for (Net& more : m_moreNets) {
        if (more.microbatch == net.microbatch && more.stage == net.stage && more.category == net.category) {
            more.delta += net.delta;
            return;
        }
    }
    m_moreNets.push_back(net);
}

void RankRecorder::writeMemory(EventKind kind)
{
    const auto one = [this](EventKind eventKind, const Net& net) {
        if (net.delta != 0) {
            write(eventKind, {}, net.stage, net.microbatch, static_cast<std::int32_t>(net.category), 0, net.delta);
        }
    };
    for (std::size_t i = 0; i < m_netCount; ++i) one(kind, m_net[i]);
    for (const Net& net : m_moreNets) one(kind, net);
    m_netCount = 0;
    m_moreNets.clear();

    // Inside an op its peak is in use from its start to its end; what is kept beyond the end (after − before) is added
    // there. Of weights this is a version that is gone before the end.
    if (kind == EventKind::MemoryAtEnd) {
        if (m_weightsPeak > std::max(m_weightsBefore, m_weights))
            one(EventKind::MemoryInside, {m_weightsPeak - m_weightsBefore, -1, m_stage, MemoryCategory::Weights});
        one(EventKind::MemoryInside, {m_workspacePeak - m_workspaceBefore, -1, m_stage, MemoryCategory::Workspace});
        writeRest(one);
    }
    one(kind, {m_workspace - m_workspaceBefore, -1, m_stage, MemoryCategory::Workspace});
    m_workspaceBefore = m_workspacePeak = m_workspace;
    m_weightsBefore = m_weightsPeak = m_weights;
    m_heldBefore = m_held;
    m_since = {};
    if (kind == EventKind::MemoryAtBegin) return; // what was held in between counts to the op that follows
    m_heldPeak = m_held;
    m_sinceAtPeak = {};
}

// What the rank held at once within the op beyond its workspace and weights there: a backward's gradients come before
// its activations are gone. Activations count only as far as they are still there at the end, and without a microbatch:
// readers take whose they are from the end.
template <typename One>
void RankRecorder::writeRest(const One& one)
{
    const Bytes weights = std::max<Bytes>(0, m_weightsPeak - std::max(m_weightsBefore, m_weights));
    const Bytes written =
        m_heldBefore + (weights > 0 ? m_weightsPeak - m_weightsBefore : 0) + m_workspacePeak - m_workspaceBefore;
    Bytes missing = m_heldPeak - std::max(written, m_held);
    if (missing <= 0) return;
    missing = m_heldPeak - written;
    for (const MemoryCategory category : {MemoryCategory::Gradients, MemoryCategory::Buckets, MemoryCategory::Gathered,
                                          MemoryCategory::Optimizer, MemoryCategory::Communication}) {
        const Bytes part = std::clamp<Bytes>(m_sinceAtPeak[static_cast<std::size_t>(category)], 0, missing);
        one(EventKind::MemoryInside, {part, -1, m_stage, category});
        missing -= part;
    }
    const auto activations = static_cast<std::size_t>(MemoryCategory::Activations);
    const Bytes part = std::clamp<Bytes>(std::min(m_since[activations], m_sinceAtPeak[activations]), 0, missing);
    one(EventKind::MemoryInside, {part, -1, m_stage, MemoryCategory::Activations});
    one(EventKind::MemoryInside, {missing - part, -1, m_stage, MemoryCategory::Workspace});
}

std::vector<RecordedEvent> RankRecorder::take()
{
    std::vector<RecordedEvent> events;
    events.reserve(m_chunk * chunkEvents + static_cast<std::size_t>(m_next - m_chunks[m_chunk].get()));
    for (std::size_t i = 0; i <= m_chunk; ++i) {
        const RecordedEvent* begin = m_chunks[i].get();
        const RecordedEvent* end = i == m_chunk ? m_next : begin + chunkEvents;
        events.insert(events.end(), begin, end);
    }
    m_chunk = 0;
    m_next = m_chunks.front().get();
    m_chunkEnd = m_next + chunkEvents;
    if (m_device) readStamps(events);
    return events;
}

// What the host stamped (a message handed over, a receive posted) happens on the device when the previous op is done.
void RankRecorder::readStamps(std::vector<RecordedEvent>& events)
{
    Nanos last = 0;
    for (RecordedEvent& event : events) {
        switch (event.kind) {
        case EventKind::OpBegin:
        case EventKind::OpEnd:
            event.time = m_device->timeOf(event.time);
            event.value = event.time;
            last = event.time;
            break;
        case EventKind::WaitBegin:
        case EventKind::ReceiveBegin:
        case EventKind::ReceiveEnd:
            event.time = m_device->timeOf(event.time);
            last = event.time;
            break;
        case EventKind::CollectiveArrived:
        case EventKind::CollectiveBegin:
        case EventKind::CollectiveEnd: event.time = m_device->timeOf(event.time); break;
        case EventKind::Sent:
            // and the link's delay
            event.value = last != 0 ? last + std::max<Nanos>(0, event.value - event.time) : event.value;
            event.time = last != 0 ? last : event.time;
            break;
        default: break;
        }
    }
    m_device->forget();
}

} // namespace stagewright
