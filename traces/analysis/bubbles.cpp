#include "traces/analysis/bubbles.h"

#include <algorithm>
#include <limits>
#include <map>

#include "schedules/kinds.h"
#include "traces/analysis/memory.h"
#include "traces/analysis/step_ops.h"
#include "traces/analysis/analysis_registry.h"

namespace stagewright {

namespace {

constexpr Nanos never = std::numeric_limits<Nanos>::max();
constexpr Nanos always = std::numeric_limits<Nanos>::min();

// An idle interval before it is told by cause.
struct Idle {
    Nanos start = 0;
    Nanos end = 0;
    bool filler = false;
};

struct Candidate { // a later op of the rank that could have run
    Nanos ready = never;
    SpanId span = noSpan;
};

// Activation memory of a rank against a cap.
class MemoryRoom {
public:
    MemoryRoom(const Timeline& timeline, int rank, int step, std::optional<Bytes> cap) : m_cap(cap)
    {
        if (!m_cap) return;
        m_series = memorySeries(timeline, rank, MemoryCategory::Activations);
        std::map<std::pair<int, int>, Bytes> grown;
        for (const MemoryEvent& event : timeline.memoryOf(rank)) {
            if (event.category != MemoryCategory::Activations || event.step != step || event.delta <= 0) continue;
            Bytes& bytes = grown[{event.stage, event.microbatch}];
            bytes += event.delta;
            Bytes& most = m_bytesOfStage[event.stage];
            most = std::max(most, bytes);
        }
    }

    // Would starting `op` at a time in [from, until) exceed the cap throughout?
    bool exceeded(const Op& op, Nanos from) const
    {
        if (!m_cap || !ruleOf(op.kind).holdsActivation) return false;
        const auto bytes = m_bytesOfStage.find(op.stage);
        if (bytes == m_bytesOfStage.end()) return false;
        auto after = std::upper_bound(m_series.points.begin(), m_series.points.end(), from,
                                      [](Nanos time, const MemoryPoint& point) { return time < point.time; });
        const Bytes inUse = after == m_series.points.begin() ? 0 : std::prev(after)->inUse;
        return inUse + bytes->second > *m_cap;
    }

private:
    std::optional<Bytes> m_cap;
    MemorySeries m_series;
    std::map<int, Bytes> m_bytesOfStage;
};

class RankAnalysis {
public:
    RankAnalysis(const Timeline& timeline, const StepOps& ops, int rank, const BubbleOptions& options, int step)
        : m_timeline(timeline), m_spans(timeline.spans()), m_ops(ops), m_rank(rank),
          m_room(timeline, rank, step, options.memoryCap)
    {
    }

    RankBubbles run(std::vector<Gap>& gaps)
    {
        cover();
        findCandidates();
        const std::size_t first = gaps.size();
        for (const Idle& idle : m_idle) explain(idle, gaps);
        for (std::size_t i = first; i < gaps.size(); ++i) {
            const Nanos length = gaps[i].end - gaps[i].start;
            m_result.idle += length;
            m_result.byCause[static_cast<std::size_t>(gaps[i].cause)] += length;
        }
        return m_result;
    }

private:
    // Walks the rank's compute lanes once: busy and apart time, and the idle intervals between.
    void cover()
    {
        const auto& all = m_ops.all(m_rank);
        Nanos cursor = m_ops.windowBegin();
        for (std::size_t i = 0; i < all.size();) {
            const Span& span = m_spans[all[i]];
            std::size_t next = i + 1; // spans over the very same interval are an overlapped pair
            while (next < all.size() && m_spans[all[next]].start == span.start && m_spans[all[next]].end == span.end)
                ++next;
            const Nanos start = std::max(span.start, cursor);
            const Nanos end = std::min(span.end, m_ops.windowEnd());
            if (start > cursor) m_idle.push_back({cursor, start, false});
            if (end > start) {
                if (span.op.kind == OpKind::Filler)
                    m_idle.push_back({start, end, true});
                else
                    share(i, next, end - start);
                cursor = end;
            } else {
                cursor = std::max(cursor, start);
            }
            i = next;
        }
        if (cursor < m_ops.windowEnd()) m_idle.push_back({cursor, m_ops.windowEnd(), false});
        if (!m_timeline.hasCpuTime()) return;
        for (const SpanId id : m_ops.busy(m_rank)) {
            const Nanos cpu = m_timeline.cpuTime(id);
            if (cpu >= 0) m_result.contention += std::max<Nanos>(0, m_spans[id].duration() - cpu);
        }
    }

    // Gives the time to the spans [first, last) in equal parts, what does not divide to the first.
    void share(std::size_t first, std::size_t last, Nanos time)
    {
        const auto& all = m_ops.all(m_rank);
        const Nanos count = static_cast<Nanos>(last - first);
        Nanos part = time / count + time % count;
        for (std::size_t i = first; i < last; ++i) {
            if (m_ops.isBusySpan(all[i])) {
                m_result.busy += part;
                m_result.busyByKind[static_cast<std::size_t>(m_spans[all[i]].op.kind)] += part;
            } else {
                m_result.apart += part;
            }
            part = time / count;
        }
    }

    // From the back: the earliest ready op among those that stand at or after a position, apart for ops that take memory.
    void findCandidates()
    {
        const auto& busy = m_ops.busy(m_rank);
        m_freeing.resize(busy.size() + 1);
        m_holding.resize(busy.size() + 1);
        m_inputs.resize(busy.size());
        for (std::size_t i = busy.size(); i-- > 0;) {
            m_freeing[i] = m_freeing[i + 1];
            m_holding[i] = m_holding[i + 1];
            m_inputs[i] = m_ops.inputs(busy[i]);
            const Span& span = m_spans[busy[i]];
            if ((span.flags & SpanDiscarded) != 0) continue;
            Nanos ready = always;
            for (const Input& input : m_inputs[i]) ready = std::max(ready, input.arrival);
            Candidate& best = ruleOf(span.op.kind).holdsActivation ? m_holding[i] : m_freeing[i];
            if (ready <= best.ready) best = {ready, busy[i]};
        }
    }

    void explain(const Idle& idle, std::vector<Gap>& gaps)
    {
        const auto& busy = m_ops.busy(m_rank);
        while (m_next < busy.size() && m_spans[busy[m_next]].start < idle.end) ++m_next;
        if (m_next == busy.size()) return add(gaps, idle.start, idle.end, IdleCause::Drain);
        const SpanId next = busy[m_next];
        if (m_next == 0) return add(gaps, idle.start, idle.end, IdleCause::Warmup, next);
        if (idle.filler) return add(gaps, idle.start, idle.end, IdleCause::Order, next);

        Input produced{noSpan, always, always}; // the input whose producer ended last
        Input arrived{noSpan, always, always};  // the input that arrived last
        for (const Input& input : m_inputs[m_next]) {
            if (input.ready > produced.ready) produced = input;
            if (input.arrival > arrived.arrival) arrived = input;
        }
        std::size_t later = m_next + 1;
        while (later < busy.size() && m_spans[busy[later]].start == m_spans[next].start) ++later;
        const Candidate& freeing = m_freeing[later];
        const Candidate& holding = m_holding[later];

        // Cuts of the interval: while X's inputs are missing, another op being ready comes first.
        const Nanos launch = std::clamp(arrived.arrival, idle.start, idle.end);
        const Nanos order = std::clamp(std::min(freeing.ready, holding.ready), idle.start, launch);
        const Nanos produce = std::clamp(produced.ready, idle.start, order);
        add(gaps, idle.start, produce, IdleCause::Dependency, next, produced.from);
        add(gaps, produce, order, IdleCause::Transfer, next, arrived.from);
        addReady(gaps, order, launch, next, freeing, holding);
        add(gaps, launch, idle.end, IdleCause::Launch, next);
    }

    void addReady(std::vector<Gap>& gaps, Nanos start, Nanos end, SpanId next, const Candidate& freeing,
                  const Candidate& holding)
    {
        if (start >= end) return;
        const Nanos free = std::clamp(freeing.ready, start, end);
        if (start < free) { // only ops that take memory were ready
            const bool full = m_room.exceeded(m_spans[holding.span].op, start);
            add(gaps, start, free, full ? IdleCause::Memory : IdleCause::Order, next, noSpan, holding.span);
        }
        if (free < end) add(gaps, free, end, IdleCause::Order, next, noSpan, freeing.span);
    }

    void add(std::vector<Gap>& gaps, Nanos start, Nanos end, IdleCause cause, SpanId next = noSpan,
             SpanId blamed = noSpan, SpanId readySpan = noSpan)
    {
        if (start >= end) return;
        Gap gap;
        gap.rank = m_rank;
        gap.start = start;
        gap.end = end;
        gap.cause = cause;
        gap.next = next;
        gap.blamed = blamed;
        if (readySpan != noSpan) {
            gap.readyOp = m_spans[readySpan].op;
            gap.hasReadyOp = true;
        }
        if (!gaps.empty()) {
            Gap& last = gaps.back();
            if (last.rank == gap.rank && last.end == gap.start && last.cause == gap.cause && last.next == gap.next &&
                last.blamed == gap.blamed && last.hasReadyOp == gap.hasReadyOp && last.readyOp == gap.readyOp) {
                last.end = gap.end;
                return;
            }
        }
        gaps.push_back(gap);
    }

    const Timeline& m_timeline;
    std::span<const Span> m_spans;
    const StepOps& m_ops;
    int m_rank;
    MemoryRoom m_room;
    RankBubbles m_result;
    std::vector<Idle> m_idle;
    std::vector<std::vector<Input>> m_inputs; // by position in busy(rank)
    std::vector<Candidate> m_freeing;         // ops that take no activation memory
    std::vector<Candidate> m_holding;         // ops that do
    std::size_t m_next = 0;
};

} // namespace

Result<BubbleReport> analyseBubbles(const Timeline& timeline, int step, const BubbleOptions& options)
{
    BubbleReport report;
    report.step = step;
    report.ranks.resize(static_cast<std::size_t>(std::max(0, timeline.ranks())));
    const StepOps ops(timeline, step);
    if (ops.empty()) return report;
    report.windowBegin = ops.windowBegin();
    report.windowEnd = ops.windowEnd();
    Nanos ideal = 0;
    for (int rank = 0; rank < ops.ranks(); ++rank) {
        RankBubbles& bubbles = report.ranks[static_cast<std::size_t>(rank)];
        bubbles = RankAnalysis(timeline, ops, rank, options, step).run(report.gaps);
        report.busy += bubbles.busy;
        report.idle += bubbles.idle;
        for (std::size_t cause = 0; cause < idleCauseCount; ++cause) report.byCause[cause] += bubbles.byCause[cause];
        const auto& busy = ops.busy(rank);
        if (busy.empty()) continue;
        Nanos last = 0;
        for (const SpanId id : busy) last = std::max(last, timeline.spans()[id].end);
        const Nanos span = last - timeline.spans()[busy.front()].start;
        if (span > report.span) {
            report.span = span;
            ideal = bubbles.busy;
        }
    }
    const double area = static_cast<double>(ops.ranks()) * static_cast<double>(report.makespan());
    if (area > 0) report.bubbleFraction = static_cast<double>(report.idle) / area;
    if (report.span > 0) report.bubbleRateSpan = 1 - static_cast<double>(ideal) / static_cast<double>(report.span);
    return report;
}

namespace analyses {

namespace {

Result<AnalysisTable> bubbleTable(const Timeline& timeline, int step)
{
    const auto report = analyseBubbles(timeline, step);
    if (!report) return tl::unexpected(report.error());
    AnalysisTable table;
    table.columns = {{"rank", "Rank", ""}, {"busy_ns", "Busy", "ns"}, {"apart_ns", "Optimizer and collectives", "ns"},
                     {"idle_ns", "Idle", "ns"}};
    for (std::size_t cause = 0; cause < idleCauseCount; ++cause) {
        const auto which = static_cast<IdleCause>(cause);
        table.columns.push_back({std::string(toText(which)) + "_ns", std::string(titleOf(which)), "ns"});
    }
    for (std::size_t rank = 0; rank < report->ranks.size(); ++rank) {
        const RankBubbles& bubbles = report->ranks[rank];
        std::vector<AnalysisCell> row{static_cast<std::int64_t>(rank), bubbles.busy, bubbles.apart, bubbles.idle};
        for (const Nanos part : bubbles.byCause) row.emplace_back(part);
        table.rows.push_back(std::move(row));
    }
    return table;
}

bool hasSpans(const Timeline& timeline)
{
    return !timeline.empty();
}

} // namespace

extern const AnalysisInfo bubbles;
const AnalysisInfo bubbles{"bubbles", "Idle time by cause", "busy spans", hasSpans, bubbleTable};

} // namespace analyses

} // namespace stagewright
