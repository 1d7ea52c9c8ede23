#include "profiler/recorder.h"

#include <algorithm>

namespace stagewright {

namespace {

// Per op: begin, end, a message's five events and about eight memory events.
constexpr std::size_t eventsPerOp = 16;

} // namespace

Recorder::Recorder(std::shared_ptr<const Schedule> schedule, const RecorderOptions& options)
    : m_schedule(std::move(schedule)), m_options(options)
{
    m_options.threadCpu = m_options.threadCpu || m_options.virtualClock;
    for (const std::vector<Op>& list : m_schedule->order) {
        m_ranks.push_back(std::make_unique<RankRecorder>((list.size() + 4) * eventsPerOp, m_options.threadCpu));
    }
}

void Recorder::beginStep()
{
    m_begin = monotonicNow();
    if (m_origin < 0) m_origin = m_begin;
}

Result<RecordedStep> Recorder::finishStep()
{
    std::vector<std::vector<RecordedEvent>> events;
    for (const std::unique_ptr<RankRecorder>& rank : m_ranks)
        events.push_back(rank->take());
    Result<StepRecord> record = decodeStep(m_steps, m_schedule, events, m_begin, m_origin);
    if (!record) return tl::unexpected(std::move(record.error()));

    RecordedStep result;
    result.step = m_steps;
    result.contention = record->contention();
    if (m_options.virtualClock) {
        Result<void> placed = placeOnVirtualClock(*record, m_options.links, m_virtualEnd, m_options.launch);
        if (!placed) return tl::unexpected(std::move(placed.error()));
        m_virtualEnd = record->end();
    }
    Result<std::shared_ptr<const Timeline>> timeline = timelineOf(*record);
    if (!timeline) return tl::unexpected(std::move(timeline.error()));
    Nanos first = record->end();
    for (const std::vector<RecordedOp>& ops : record->ops) {
        if (!ops.empty()) first = std::min(first, ops.front().begin);
    }
    result.stepTime = record->end() - first;
    result.timeline = std::move(*timeline);
    ++m_steps;
    return result;
}

void Recorder::dropStep()
{
    for (const std::unique_ptr<RankRecorder>& rank : m_ranks)
        rank->take();
}

} // namespace stagewright
