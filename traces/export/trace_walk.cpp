#include "traces/export/trace_walk.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "schedules/model/kinds.h"
#include "traces/analysis/collective_uses.h"
#include "traces/analysis/explain_gap.h"
#include "traces/analysis/memory.h"

namespace stagewright {

std::string toText(const TraceCounts& counts)
{
    return fmt::format("{} spans, {} bubbles, {} flows, {} counter samples", counts.spans, counts.bubbles, counts.flows,
                       counts.counterSamples);
}

Nanos traceShift(const Timeline& timeline)
{
    Nanos first = std::min<Nanos>(0, timeline.begin());
    for (int rank = 0; rank < timeline.ranks(); ++rank)
        if (const auto events = timeline.memoryOf(rank); !events.empty()) first = std::min(first, events.front().time);
    for (const Counter& counter : timeline.counters())
        if (!counter.samples.empty()) first = std::min(first, counter.samples.front().time);
    return -first;
}

namespace {

constexpr int ordersPerRow = 1 << 10; // a row's further rows come behind it
constexpr SpanId spansAtOnce = 1 << 22;
constexpr std::int64_t countsBetweenFlushes = 64;
constexpr std::int64_t spansBetweenTold = 1 << 12;

// Rows for work of one kind: the first that is free at its start.
struct Rows {
    int rank = 0;
    int order = 0;
    std::string name;
    std::vector<Nanos> freeAt;
    std::vector<int> numbers;
};

// The numbers of the data edges that leave each span, for spans asked for in ascending order.
class LeavingFlows {
public:
    explicit LeavingFlows(const Timeline& timeline) : m_timeline(timeline) {}

    std::span<const std::uint32_t> of(SpanId span)
    {
        if (!m_timeline.hasEdges()) return {};
        if (m_offsets.empty() || span - m_begin >= spansAtOnce) gather(span);
        const std::size_t at = span - m_begin;
        return std::span<const std::uint32_t>(m_flows).subspan(m_offsets[at], m_offsets[at + 1] - m_offsets[at]);
    }

private:
    // Takes the next four million spans: they are counted, then placed.
    void gather(SpanId begin)
    {
        m_begin = begin;
        // [at + 2] counts, [at + 1] is where the next one goes: at the end [at] is where those of `at` start.
        m_offsets.assign(std::min<std::size_t>(spansAtOnce, m_timeline.spans().size() - begin) + 2, 0);
        const auto edges = m_timeline.edges();
        // those before it wrap
        const auto inside = [begin](const Edge& edge) {
            return edge.kind == EdgeKind::Data && edge.from - begin < spansAtOnce;
        };
        for (const Edge& edge : edges)
            if (inside(edge)) ++m_offsets[edge.from - begin + 2];
        for (std::size_t i = 1; i < m_offsets.size(); ++i) m_offsets[i] += m_offsets[i - 1];
        m_flows.resize(m_offsets.back());
        for (std::size_t i = 0; i < edges.size(); ++i)
            if (inside(edges[i])) m_flows[m_offsets[edges[i].from - begin + 1]++] = static_cast<std::uint32_t>(i);
    }

    const Timeline& m_timeline;
    SpanId m_begin = 0;
    std::vector<std::uint32_t> m_offsets;
    std::vector<std::uint32_t> m_flows;
};

class Walk {
public:
    Walk(const Run& run, TraceSink& sink, const Progress& progress)
        : m_run(run), m_timeline(*run.timeline), m_sink(sink), m_progress(progress), m_flows(m_timeline)
    {
        m_ranks.resize(static_cast<std::size_t>(std::max(0, m_timeline.ranks())));
    }

    Result<TraceCounts> run()
    {
        for (int rank = 0; rank < m_timeline.ranks(); ++rank) m_sink.process(rank);
        for (const auto part : {&Walk::spans, &Walk::bubbles, &Walk::memory, &Walk::counters})
            STAGEWRIGHT_CHECK((this->*part)());
        return m_counts;
    }

private:
    struct Rank {
        std::set<std::string> names;
        int nextOrder = 0;
        Rows bubbles;
        bool hasCompute = false;
    };
    Rank& rankOf(int rank) { return m_ranks[static_cast<std::size_t>(rank)]; }

    Result<void> flush()
    {
        if (++m_sinceFlush < countsBetweenFlushes) return {};
        m_sinceFlush = 0;
        if (m_progress.cancelled()) return fail(ErrorCode::Cancelled, "writing was cancelled");
        return m_sink.flush();
    }

    Rows rowsOf(int rank, std::string name)
    {
        Rows rows;
        rows.rank = rank;
        rows.order = rankOf(rank).nextOrder++ * ordersPerRow;
        rows.name = std::move(name);
        return rows;
    }

    void tellSpans() const
    {
        m_progress.tell("writing spans", m_counts.spans, static_cast<std::int64_t>(m_timeline.spans().size()));
    }

    // The row for work from start to end; declared where it is new.
    int rowFor(Rows& rows, Nanos start, Nanos end)
    {
        std::size_t at = 0;
        while (at < rows.freeAt.size() && rows.freeAt[at] > start) ++at;
        if (at == rows.freeAt.size()) {
            rows.freeAt.push_back(start);
            TraceRow row;
            row.number = m_nextRow++;
            row.rank = rows.rank;
            row.order = rows.order + static_cast<int>(std::min<std::size_t>(at, ordersPerRow - 1));
            auto& names = rankOf(rows.rank).names;
            row.name = at == 0 ? rows.name : fmt::format("{} ({})", rows.name, at + 1);
            for (int twin = 2; !names.insert(row.name).second; ++twin)
                row.name = fmt::format("{} #{}", rows.name, twin);
            rows.numbers.push_back(row.number);
            m_sink.row(row);
        }
        rows.freeAt[at] = std::max(start, end);
        return rows.numbers[at];
    }

    // "send" of a track that has no name of its own.
    static std::string nameOf(const Track& track)
    {
        const std::string usual = fmt::format("rank {}", track.rank);
        const bool compute = track.lane == Lane::Compute;
        if (track.name.empty() || track.name == (compute ? usual : fmt::format("{} {}", usual, toText(track.lane))))
            return std::string(toText(track.lane));
        return track.name;
    }

    Result<void> spans()
    {
        const auto all = m_timeline.spans();
        const auto edges = m_timeline.edges();
        std::size_t edge = 0;
        TraceSpan item;
        for (const Track& track : m_timeline.tracks()) {
            const bool compute = track.lane == Lane::Compute;
            Rank& rank = rankOf(track.rank);
            Rows rows = rowsOf(track.rank, nameOf(track));
            Rows weights =
                rowsOf(track.rank, compute && nameOf(track) != "compute" ? nameOf(track) + " weight gradients"
                                                                         : "weight gradients");
            if (compute && !rank.hasCompute) {
                rank.hasCompute = true;
                rank.bubbles = rowsOf(track.rank, "bubbles");
            }
            item.track = &track;
            for (SpanId id = track.begin; id < track.end; ++id) {
                const Span& span = all[id];
                const bool weight = compute && span.label == 0 && isWeightGrad(span.op.kind);
                item.id = id;
                item.span = &span;
                item.row = rowFor(weight ? weights : rows, span.start, span.end);
                item.leaves = m_flows.of(id);
                m_arrives.clear();
                for (; edge < edges.size() && edges[edge].to <= id; ++edge)
                    if (edges[edge].kind == EdgeKind::Data && edges[edge].to == id)
                        m_arrives.push_back(static_cast<std::uint32_t>(edge));
                item.arrives = m_arrives;
                m_sink.span(item);
                ++m_counts.spans;
                m_counts.flows += static_cast<std::int64_t>(m_arrives.size());
                if (m_counts.spans % spansBetweenTold == 0) tellSpans();
                if (auto done = flush(); !done) return done;
            }
        }
        tellSpans();
        return {};
    }

    // Windows of steps may overlap where nothing separates the steps: rows are chosen over all steps.
    Result<void> bubbles()
    {
        TraceBubble item;
        for (int step = 0; step < m_timeline.steps(); ++step) {
            STAGEWRIGHT_TRY(const auto report, analyseBubbles(m_timeline, step));
            for (const Gap& gap : report.gaps) {
                Rank& rank = rankOf(gap.rank);
                if (!rank.hasCompute) continue;
                item.gap = &gap;
                item.step = step;
                item.row = rowFor(rank.bubbles, gap.start, gap.end);
                item.cause = report.partial ? "unknown" : toText(gap.cause);
                item.title = report.partial ? titleOf(m_timeline, gap) : titleOf(gap.cause);
                item.why = explainGap(m_timeline, gap);
                m_sink.bubble(item);
                ++m_counts.bubbles;
                if (auto done = flush(); !done) return done;
            }
            if (m_progress.cancelled()) return fail(ErrorCode::Cancelled, "writing was cancelled");
            m_progress.tell("writing bubbles", step + 1, m_timeline.steps());
        }
        return {};
    }

    TraceCounter declare(int rank, std::string name, std::string unit, bool isMemory)
    {
        TraceCounter counter;
        counter.number = m_nextCounter++;
        counter.rank = rank;
        counter.order = rank < 0 ? m_nextCounter : rankOf(rank).nextOrder++ * ordersPerRow;
        counter.name = std::move(name);
        counter.unit = std::move(unit);
        counter.isMemory = isMemory;
        m_sink.counter(counter);
        return counter;
    }

    Result<void> write(const TraceCounter& counter, const TraceSample& sample)
    {
        m_sink.sample(counter, sample);
        ++m_counts.counterSamples;
        return flush();
    }

    Result<void> memory()
    {
        const Bytes unit = m_timeline.memoryUnit();
        for (int rank = 0; rank < m_timeline.ranks(); ++rank) {
            for (std::size_t i = 0; i < memoryCategoryCount; ++i) {
                const MemorySeries series = memorySeries(m_timeline, rank, -1, static_cast<MemoryCategory>(i));
                if (series.points.empty()) continue;
                const TraceCounter counter =
                    declare(rank, std::string(toText(series.category)), unit > 1 ? "microbatches" : "bytes", true);
                for (const MemoryPoint& point : series.points) {
                    TraceSample sample;
                    sample.time = point.time;
                    sample.isWhole = unit <= 1;
                    sample.whole = point.inUse;
                    sample.value = static_cast<double>(point.inUse) / static_cast<double>(std::max<Bytes>(1, unit));
                    if (auto done = write(counter, sample); !done) return done;
                }
            }
        }
        return {};
    }

    Result<void> counters()
    {
        std::vector<Counter> computed = receivedCounters(m_run);
        std::erase_if(computed, [this](const Counter& one) {
            return std::any_of(m_timeline.counters().begin(), m_timeline.counters().end(),
                               [&one](const Counter& own) { return own.rank == one.rank && own.name == one.name; });
        });
        if (auto done = counters(m_timeline.counters()); !done) return done;
        return counters(computed);
    }
    Result<void> counters(std::span<const Counter> list)
    {
        for (const Counter& one : list) {
            if (one.samples.empty()) continue;
            const TraceCounter counter = declare(one.rank, one.name, one.unit, false);
            for (const CounterSample& at : one.samples) {
                if (!std::isfinite(at.value)) continue; // JSON has no such number
                TraceSample sample;
                sample.time = at.time;
                sample.value = at.value;
                if (auto done = write(counter, sample); !done) return done;
            }
        }
        return {};
    }

    const Run& m_run;
    const Timeline& m_timeline;
    TraceSink& m_sink;
    const Progress& m_progress;
    LeavingFlows m_flows;
    std::vector<Rank> m_ranks;
    std::vector<std::uint32_t> m_arrives;
    TraceCounts m_counts;
    std::int64_t m_sinceFlush = 0;
    int m_nextRow = 0;
    int m_nextCounter = 0;
};

} // namespace

Result<TraceCounts> walkTrace(const Run& run, TraceSink& sink, const Progress& progress)
{
    if (!run.timeline) return fail(ErrorCode::Usage, fmt::format("run {} has no timeline", run.info.name));
    auto counts = Walk(run, sink, progress).run();
    if (!counts) return counts;
    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "writing was cancelled");
    STAGEWRIGHT_CHECK(sink.flush());
    return counts;
}

} // namespace stagewright
