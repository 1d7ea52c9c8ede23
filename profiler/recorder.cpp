#include "profiler/recorder.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "profiler/cupti/device_times.h"
#include "profiler/cupti/trace_facts.h"
#include "profiler/record/ran_order.h"
#include "profiler/record/step_timeline.h"
#include "profiler/record/virtual_clock.h"

namespace stagewright {

namespace {

// Per op: begin, end, a message's five events and about eight memory events.
constexpr std::size_t eventsPerOp = 16;

struct Interval {
    Nanos begin = 0;
    Nanos end = 0;
};

std::vector<Interval> intervalsOf(const StepRecord& record)
{
    std::vector<Interval> intervals; // by rank and op
    for (const std::vector<RecordedOp>& ops : record.ops)
        for (const RecordedOp& op : ops) intervals.push_back({op.begin, op.end});
    return intervals;
}

// Kernels move with their ops, and shrink with them; what belongs to none has no place on the virtual clock.
void moveWork(StepRecord& record, const std::vector<Interval>& before)
{
    const std::vector<Interval> now = intervalsOf(record);
    std::vector<std::size_t> first{0};
    for (const std::vector<RecordedOp>& ops : record.ops) first.push_back(first.back() + ops.size());
    std::erase_if(record.work, [](const RecordedWork& work) { return work.op < 0; });
    for (RecordedWork& work : record.work) {
        const std::size_t op = first[static_cast<std::size_t>(work.rank)] + static_cast<std::size_t>(work.op);
        const Nanos length = before[op].end - before[op].begin;
        const double shrunk =
            length > 0 ? std::min(1.0, static_cast<double>(now[op].end - now[op].begin) / static_cast<double>(length))
                       : 1.0;
        const auto moved = [&](Nanos at) {
            return now[op].begin + std::llround(static_cast<double>(at - before[op].begin) * shrunk);
        };
        work.begin = moved(work.begin);
        work.end = moved(work.end);
        if (work.launched >= 0)
            work.launched = std::clamp<Nanos>(moved(work.launched), std::min(now[op].begin, work.begin), work.begin);
    }
}

} // namespace

Recorder::Recorder(std::shared_ptr<const CheckedSchedule> schedule, const RecorderOptions& options)
    : m_schedule(std::move(schedule)), m_messages(*m_schedule), m_ran(m_schedule), m_options(options)
{
    m_options.threadCpu = m_options.threadCpu || m_options.virtualClock;
    for (const std::vector<Op>& list : m_schedule->compute().order) {
        m_ranks.push_back(std::make_unique<RankRecorder>((list.size() + 4) * eventsPerOp, m_options.threadCpu));
    }
}

void Recorder::beginStep()
{
    m_begin = monotonicNow();
    if (m_origin < 0) m_origin = m_begin;
}

void Recorder::adopt(int rank, std::vector<RecordedEvent> events, Nanos offset)
{
    for (RecordedEvent& event : events) {
        if (event.time == 0) continue; // memory, which has its op's times
        event.time = std::max(event.time + offset, m_begin);
        if (event.kind == EventKind::Sent) event.value += offset;
    }
    m_adopted.resize(m_ranks.size());
    m_adopted[static_cast<std::size_t>(rank)] = std::move(events);
}

Result<RecordedStep> Recorder::finishStep(const GpuTrace* trace, TraceFacts* facts)
{
    std::vector<std::vector<RecordedEvent>> events;
    for (const std::unique_ptr<RankRecorder>& rank : m_ranks) events.push_back(rank->take());
    for (std::size_t rank = 0; rank < m_adopted.size(); ++rank)
        if (!m_adopted[rank].empty()) events[rank] = std::exchange(m_adopted[rank], {});
    if (m_options.cycle.size() > 1) {
        m_ran = m_options.cycle[static_cast<std::size_t>(m_steps) % m_options.cycle.size()];
        m_messages = ExpectedMessages(*m_ran);
    }
    if (m_options.ordersItself) {
        STAGEWRIGHT_TRY(auto ran, inOrderOf(m_schedule, m_ran, events));
        if (ran != m_ran) m_messages = ExpectedMessages(*ran);
        m_ran = std::move(ran);
    }
    STAGEWRIGHT_TRY(StepRecord record, decodeStep(m_steps, m_ran, m_messages, events, m_begin, m_origin));

    RecordedStep result;
    result.step = m_steps;
    result.contention = record.contention();
    if (trace != nullptr) {
        STAGEWRIGHT_TRY(DeviceStep device, correlate(*trace, record, m_origin));
        placeOnDevice(record, device);
        if (facts != nullptr) facts->add(*trace, device);
        result.contention = 0; // threads that launch wait by design
    }
    if (m_options.virtualClock) {
        const std::vector<Interval> before = record.work.empty() ? std::vector<Interval>() : intervalsOf(record);
        STAGEWRIGHT_CHECK(placeOnVirtualClock(record, m_options.links, m_virtualEnd, m_options.perturbation,
                                              m_options.gradientBuckets, m_options.channels));
        if (!record.work.empty()) moveWork(record, before);
        m_virtualEnd = record.end();
    }
    STAGEWRIGHT_TRY(std::shared_ptr<const Timeline> timeline, timelineOf(record));
    Nanos first = record.end();
    for (const std::vector<RecordedOp>& ops : record.ops) {
        if (!ops.empty()) first = std::min(first, ops.front().begin);
    }
    result.stepTime = record.end() - first;
    result.timeline = std::move(timeline);
    ++m_steps;
    return result;
}

void Recorder::dropStep()
{
    for (const std::unique_ptr<RankRecorder>& rank : m_ranks) rank->take();
    m_adopted.clear();
}

} // namespace stagewright
