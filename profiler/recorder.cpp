#include "profiler/recorder.h"

#include <algorithm>

#include "profiler/cupti/trace_facts.h"

namespace stagewright {

namespace {

// Per op: begin, end, a message's five events and about eight memory events.
constexpr std::size_t eventsPerOp = 16;

std::vector<Nanos> beginsOf(const StepRecord& record)
{
    std::vector<Nanos> begins; // by rank and op
    for (const std::vector<RecordedOp>& ops : record.ops)
        for (const RecordedOp& op : ops)
            begins.push_back(op.begin);
    return begins;
}

// Kernels move with their ops; what belongs to none has no place on the virtual clock.
void moveWork(StepRecord& record, const std::vector<Nanos>& before)
{
    const std::vector<Nanos> now = beginsOf(record);
    std::vector<std::size_t> first{0};
    for (const std::vector<RecordedOp>& ops : record.ops)
        first.push_back(first.back() + ops.size());
    std::erase_if(record.work, [](const RecordedWork& work) { return work.op < 0; });
    for (RecordedWork& work : record.work) {
        const std::size_t op = first[static_cast<std::size_t>(work.rank)] + static_cast<std::size_t>(work.op);
        work.begin += now[op] - before[op];
        work.end += now[op] - before[op];
    }
}

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

Result<RecordedStep> Recorder::finishStep(const GpuTrace* trace, TraceFacts* facts)
{
    std::vector<std::vector<RecordedEvent>> events;
    for (const std::unique_ptr<RankRecorder>& rank : m_ranks)
        events.push_back(rank->take());
    Result<StepRecord> record = decodeStep(m_steps, m_schedule, events, m_begin, m_origin);
    if (!record) return tl::unexpected(std::move(record.error()));

    RecordedStep result;
    result.step = m_steps;
    result.contention = record->contention();
    if (trace != nullptr) {
        Result<DeviceStep> device = correlate(*trace, *record, m_origin);
        if (!device) return tl::unexpected(std::move(device.error()));
        placeOnDevice(*record, *device);
        if (facts != nullptr) facts->add(*trace, *device);
        result.contention = 0; // threads that launch wait by design
    }
    if (m_options.virtualClock) {
        const std::vector<Nanos> begins = record->work.empty() ? std::vector<Nanos>() : beginsOf(*record);
        Result<void> placed = placeOnVirtualClock(*record, m_options.links, m_virtualEnd, m_options.launch);
        if (!placed) return tl::unexpected(std::move(placed.error()));
        if (!record->work.empty()) moveWork(*record, begins);
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
