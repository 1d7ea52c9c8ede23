// A report cut to a range of time.
#include "traces/report/range_report.h"

#include "traces/report/run_report.h"

#include <algorithm>

#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

struct Window {
    Nanos begin = 0;
    Nanos end = 0;
};

Nanos inside(Nanos begin, Nanos end, const Window& range)
{
    return std::max<Nanos>(0, std::min(end, range.end) - std::max(begin, range.begin));
}

// When a rank is busy; gives the part within an interval.
class Occupied {
public:
    void add(Nanos begin, Nanos end) // by begin
    {
        if (end <= begin) return;
        if (!m_parts.empty() && begin <= m_parts.back().end) {
            m_parts.back().end = std::max(m_parts.back().end, end);
            return;
        }
        const Nanos before = m_parts.empty() ? 0 : m_parts.back().before + m_parts.back().end - m_parts.back().begin;
        m_parts.push_back({begin, end, before});
    }
    Nanos within(Nanos begin, Nanos end) const { return end > begin ? until(end) - until(begin) : 0; }

private:
    struct Part {
        Nanos begin, end, before;
    };
    Nanos until(Nanos time) const
    {
        const auto after = std::upper_bound(m_parts.begin(), m_parts.end(), time,
                                            [](Nanos t, const Part& part) { return t < part.begin; });
        if (after == m_parts.begin()) return 0;
        const Part& part = *std::prev(after);
        return part.before + std::min(time, part.end) - part.begin;
    }
    std::vector<Part> m_parts;
};

// Changes at the same time count together, as in the peaks of a step.
Bytes peakIn(const Timeline& timeline, int rank, MemoryCategory category, const Window& range)
{
    const auto events = timeline.memoryOf(rank);
    Bytes inUse = 0, peak = 0;
    bool any = false;
    for (std::size_t i = 0; i < events.size() && events[i].time < range.end;) {
        const Nanos time = events[i].time;
        if (time > range.begin && !any) { // what is held at the start of the range
            any = true;
            peak = inUse;
        }
        for (; i < events.size() && events[i].time == time; ++i)
            if (events[i].category == category) inUse += events[i].delta;
        if (time < range.begin) continue;
        peak = any ? std::max(peak, inUse) : inUse;
        any = true;
    }
    return any ? peak : inUse;
}

} // namespace

RunReport reportIn(const RunReport& whole, const Timeline& timeline, Nanos from, Nanos to)
{
    RunReport cut = whole;
    BubbleReport& report = cut.bubbles;
    const Window range{std::clamp(from, report.windowBegin, report.windowEnd),
                       std::clamp(to, report.windowBegin, report.windowEnd)};
    report.windowBegin = range.begin;
    report.windowEnd = range.end;
    report.stepBegin = range.begin;
    report.stepEnd = range.end;
    report.span = 0;
    report.bubbleRateSpan = 0;
    report.busy = report.idle = 0;
    report.byCause = {};
    cut.overlap = {};
    cut.overlap.commByRank.resize(report.ranks.size());
    cut.overlap.exposedByRank.resize(report.ranks.size());
    cut.spans = 0;
    cut.baseline.reset();
    for (Gap& gap : report.gaps) {
        gap.start = std::clamp(gap.start, range.begin, range.end);
        gap.end = std::clamp(gap.end, range.begin, range.end);
    }
    for (std::size_t r = 0; r < report.ranks.size(); ++r) {
        RankBubbles& rank = report.ranks[r];
        rank = {};
        const Track* track = timeline.trackOf(static_cast<int>(r), Lane::Compute);
        if (track == nullptr) continue;
        const auto [first, last] = timeline.stepRange(*track, whole.step);
        Occupied occupied;
        bool isSecond = false; // of an overlapped pair
        const auto ofStep = [&](const Span& span) {
            return span.step == whole.step && (span.flags & SpanDiscarded) == 0;
        };
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (!ofStep(span)) continue;
            if (!isDelay(span.op.kind)) occupied.add(span.start, span.end);
            Nanos part = inside(span.start, span.end, range);
            if (part == 0) continue;
            ++cut.spans;
            // The two ops of an overlapped pair share their interval.
            const bool second = isSecond;
            const bool hasMate = !second && id + 1 < last && timeline.spans()[id + 1].start == span.start &&
                                 timeline.spans()[id + 1].end == span.end;
            if (hasMate || second) part = second ? part - part / 2 : part / 2;
            isSecond = hasMate;
            if (isBusy(span.op.kind)) {
                rank.busy += part;
                rank.busyByKind[static_cast<std::size_t>(span.op.kind)] += part;
            } else if (!isDelay(span.op.kind)) {
                rank.apart += part;
            }
        }
        for (const Gap& gap : report.gaps)
            if (gap.rank == static_cast<int>(r))
                rank.byCause[static_cast<std::size_t>(gap.cause)] += gap.end - gap.start;
        for (std::size_t c = 0; c < idleCauseCount; ++c) {
            rank.idle += rank.byCause[c];
            report.byCause[c] += rank.byCause[c];
        }
        report.busy += rank.busy;
        report.idle += rank.idle;
        for (SpanId id = first; id < last; ++id) {
            if (!ofStep(timeline.spans()[id])) continue;
            for (const Edge& edge : timeline.edgesInto(id)) {
                if (edge.kind != EdgeKind::Data || timeline.trackOf(edge.from).rank == static_cast<int>(r)) continue;
                const Nanos begin = std::max(timeline.spans()[edge.from].end, range.begin),
                            end = std::min(edge.arrival, range.end);
                const bool instant = edge.arrival <= timeline.spans()[edge.from].end && edge.arrival >= range.begin &&
                                     edge.arrival < range.end;
                if (end <= begin && !instant) continue;
                const Nanos hidden = occupied.within(begin, end);
                ++cut.overlap.messages;
                cut.overlap.commTime += std::max<Nanos>(0, end - begin);
                cut.overlap.hiddenTime += hidden;
                cut.overlap.commByRank[r] += std::max<Nanos>(0, end - begin);
                cut.overlap.exposedByRank[r] += std::max<Nanos>(0, end - begin) - hidden;
            }
        }
    }
    cut.overlap.exposedTime = cut.overlap.commTime - cut.overlap.hiddenTime;
    const double area = static_cast<double>(report.ranks.size()) * static_cast<double>(range.end - range.begin);
    if (!report.partial) report.bubbleFraction = area > 0 ? static_cast<double>(report.idle) / area : 0;
    for (std::size_t r = 0; r < cut.memory.size(); ++r) {
        cut.memory[r].holders.clear();
        for (std::size_t c = 0; c < memoryCategoryCount; ++c)
            cut.memory[r].peak[c] = peakIn(timeline, static_cast<int>(r), static_cast<MemoryCategory>(c), range);
    }
    return cut;
}

} // namespace stagewright
