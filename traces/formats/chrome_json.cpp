#include "traces/formats/chrome_json.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/kinds.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/memory.h"
#include "traces/formats/atomic_file.h"
#include "traces/formats/format_registry.h"

namespace stagewright {

std::string microseconds(Nanos nanos)
{
    const auto magnitude = nanos < 0 ? 0 - static_cast<std::uint64_t>(nanos) : static_cast<std::uint64_t>(nanos);
    return fmt::format("{}{}.{:03}", nanos < 0 ? "-" : "", magnitude / 1000, magnitude % 1000);
}

namespace {

// With quotes; control characters escaped, bytes that are no UTF-8 replaced.
std::string jsonText(std::string_view text)
{
    bool plain = true;
    for (const char c : text) plain = plain && c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
    if (plain) return fmt::format("\"{}\"", text);
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

class ChromeWriter {
public:
    ChromeWriter(const Run& run, const Sink& out, const Progress& progress)
        : m_run(run), m_timeline(*run.timeline), m_out(out), m_progress(progress),
          m_shift(m_timeline.begin() < 0 ? -m_timeline.begin() : 0)
    {
    }

    Result<ChromeCounts> write()
    {
        if (!gatherGaps()) return tl::unexpected(std::move(*m_error));
        header();
        threads();
        const bool done = spans() && bubbles() && flows() && memory() && counters();
        if (done) m_buffer += "\n]}\n";
        if (m_error) return tl::unexpected(std::move(*m_error));
        if (!flush(0)) return tl::unexpected(std::move(*m_error));
        return m_counts;
    }

private:
    // False where writing failed or was cancelled; m_error then says so.
    bool flush(std::size_t keepBelow)
    {
        if (m_error) return false;
        if (m_buffer.size() <= keepBelow) return true;
        if (m_progress.cancelled()) {
            m_error = Error{ErrorCode::Cancelled, "writing was cancelled", {}};
        } else if (!m_out(m_buffer)) {
            m_error = Error{ErrorCode::Failed, "the trace could not be written", "free some space or choose another place"};
        }
        m_buffer.clear();
        return !m_error;
    }

    template <typename... Args>
    void event(fmt::format_string<Args...> format, Args&&... args)
    {
        m_buffer += m_first ? "\n" : ",\n";
        m_first = false;
        fmt::format_to(std::back_inserter(m_buffer), format, std::forward<Args>(args)...);
    }

    std::string at(Nanos time) const { return microseconds(time + m_shift); }
    static int processOf(int rank) { return rank + 1; } // 0 is taken for the idle process by viewers

    void header()
    {
        const RunInfo& info = m_run.info;
        m_buffer += "{\"displayTimeUnit\":\"ms\",\"otherData\":{";
        m_buffer += fmt::format("\"run\":{},\"schedule\":{},\"provenance\":{},\"clock\":{},", jsonText(info.name),
                                jsonText(info.scheduleName), jsonText(toText(m_timeline.provenance())), jsonText(m_timeline.clock()));
        m_buffer += fmt::format("\"origin_ns\":{},\"time_unit_ns\":{},\"memory_unit\":{},\"generator\":\"stagewright\"}},", -m_shift,
                                m_timeline.timeUnit(), m_timeline.memoryUnit());
        m_buffer += "\"traceEvents\":[";
    }

    void nameThread(int rank, int thread, const std::string& name)
    {
        event(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})", processOf(rank), thread, jsonText(name));
        event(R"({{"name":"thread_sort_index","ph":"M","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}})", processOf(rank), thread);
    }

    // One thread per sub-lane of a track; a rank's idle time below its first compute lane.
    void threads()
    {
        for (int rank = 0; rank < m_timeline.ranks(); ++rank) {
            event(R"({{"name":"process_name","ph":"M","pid":{},"tid":0,"args":{{"name":"rank {}"}}}})", processOf(rank), rank);
            event(R"({{"name":"process_sort_index","ph":"M","pid":{},"tid":0,"args":{{"sort_index":{}}}}})", processOf(rank), rank);
        }
        m_threadOf.resize(m_timeline.spans().size());
        for (const Track& track : m_timeline.tracks()) {
            const auto lanes = sublanes(m_timeline.spansOf(track));
            int used = 1;
            for (std::size_t i = 0; i < lanes.size(); ++i) {
                used = std::max(used, lanes[i] + 1);
                m_threadOf[track.begin + i] = m_nextThread + lanes[i];
            }
            nameThreads(track.rank, used, track.name);
            if (&track != m_timeline.trackOf(track.rank, Lane::Compute)) continue;
            auto& gaps = m_gaps[static_cast<std::size_t>(track.rank)];
            used = 1;
            for (StepGap& gap : gaps) {
                used = std::max(used, gap.thread + 1);
                gap.thread += m_nextThread;
            }
            nameThreads(track.rank, used, fmt::format("rank {} idle", track.rank));
        }
    }

    void nameThreads(int rank, int count, const std::string& name)
    {
        for (int lane = 0; lane < count; ++lane)
            nameThread(rank, m_nextThread++, lane == 0 ? name : fmt::format("{} ({})", name, lane + 1));
    }

    bool spans()
    {
        const auto all = m_timeline.spans();
        for (const Track& track : m_timeline.tracks()) {
            const int process = processOf(track.rank);
            for (SpanId id = track.begin; id < track.end; ++id) {
                const Span& span = all[id];
                const std::string_view kind = ruleOf(span.op.kind).text;
                event(R"({{"name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"args":{{"step":{})",
                      jsonText(m_timeline.nameOf(span)), span.label == 0 ? kind : toText(track.lane), at(span.start),
                      microseconds(span.duration()), process, m_threadOf[id], span.step);
                if (span.label == 0) {
                    m_buffer += fmt::format(",\"kind\":\"{}\",\"stage\":{}", kind, span.op.stage);
                    if (span.op.microbatch >= 0) m_buffer += fmt::format(",\"microbatch\":{}", span.op.microbatch);
                }
                if (m_timeline.hasCpuTime() && m_timeline.cpuTime(id) >= 0)
                    m_buffer += fmt::format(",\"cpu_us\":{}", microseconds(m_timeline.cpuTime(id)));
                if ((span.flags & SpanDiscarded) != 0) m_buffer += ",\"discarded\":true";
                m_buffer += "}}";
                ++m_counts.spans;
                if (!flush(blockSize)) return false;
            }
            m_progress.tell("writing spans", m_counts.spans, static_cast<std::int64_t>(all.size()));
        }
        return true;
    }

    // Idle time by rank over all steps, by start. Windows of steps may overlap where nothing separates the steps.
    bool gatherGaps()
    {
        m_gaps.resize(static_cast<std::size_t>(std::max(0, m_timeline.ranks())));
        for (int step = 0; step < m_timeline.steps(); ++step) {
            auto report = analyseBubbles(m_timeline, step);
            if (!report) {
                m_error = std::move(report.error());
                return false;
            }
            for (const Gap& gap : report->gaps)
                if (m_timeline.trackOf(gap.rank, Lane::Compute) != nullptr)
                    m_gaps[static_cast<std::size_t>(gap.rank)].push_back({gap, step, 0});
        }
        for (auto& gaps : m_gaps) {
            std::stable_sort(gaps.begin(), gaps.end(), [](const StepGap& x, const StepGap& y) {
                return std::pair(x.gap.start, x.gap.end) < std::pair(y.gap.start, y.gap.end);
            });
            std::vector<Span> intervals(gaps.size());
            for (std::size_t i = 0; i < gaps.size(); ++i) {
                intervals[i].start = gaps[i].gap.start;
                intervals[i].end = gaps[i].gap.end;
            }
            const auto lanes = sublanes(intervals);
            for (std::size_t i = 0; i < gaps.size(); ++i) gaps[i].thread = lanes[i];
        }
        return true;
    }

    bool bubbles()
    {
        for (const auto& gaps : m_gaps) {
            for (const auto& [gap, step, thread] : gaps) {
                event(R"({{"name":{},"cat":"bubble","ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"args":{{"step":{},"cause":"{}","why":{}}}}})",
                      jsonText(titleOf(gap.cause)), at(gap.start), microseconds(gap.end - gap.start), processOf(gap.rank), thread,
                      step, toText(gap.cause), jsonText(explainGap(m_timeline, gap)));
                ++m_counts.bubbles;
                if (!flush(blockSize)) return false;
            }
        }
        return true;
    }

    // An arrow leaves in the producer's last nanosecond (its end already belongs to the next span) and binds to the consumer.
    bool flows()
    {
        const auto all = m_timeline.spans();
        for (const Edge& edge : m_timeline.edges()) {
            if (edge.kind != EdgeKind::Data) continue;
            const Span& from = all[edge.from];
            const Span& to = all[edge.to];
            const Nanos leaves = std::max(from.start, std::min(from.end - 1, to.start));
            const Nanos binds = std::max(to.start, leaves);
            event(R"({{"name":"data","cat":"data","ph":"s","id":{},"ts":{},"pid":{},"tid":{}}})", m_counts.flows, at(leaves),
                  processOf(m_timeline.trackOf(edge.from).rank), m_threadOf[edge.from]);
            event(R"({{"name":"data","cat":"data","ph":"f","bp":"e","id":{},"ts":{},"pid":{},"tid":{}}})", m_counts.flows, at(binds),
                  processOf(m_timeline.trackOf(edge.to).rank), m_threadOf[edge.to]);
            ++m_counts.flows;
            if (!flush(blockSize)) return false;
        }
        return true;
    }

    bool sample(int process, const std::string& name, const std::string& series, Nanos time, const std::string& value)
    {
        event(R"({{"name":{},"ph":"C","ts":{},"pid":{},"tid":0,"args":{{{}:{}}}}})", name, at(time), process, series, value);
        ++m_counts.counterSamples;
        return flush(blockSize);
    }

    bool memory()
    {
        const Bytes unit = m_timeline.memoryUnit();
        for (int rank = 0; rank < m_timeline.ranks(); ++rank) {
            for (std::size_t i = 0; i < memoryCategoryCount; ++i) {
                const auto category = static_cast<MemoryCategory>(i);
                const MemorySeries series = memorySeries(m_timeline, rank, category);
                const std::string name = jsonText(toText(category));
                for (const MemoryPoint& point : series.points) {
                    const std::string value = unit > 1 ? fmt::format("{}", static_cast<double>(point.inUse) / static_cast<double>(unit))
                                                       : fmt::format("{}", point.inUse);
                    if (!sample(processOf(rank), name, unit > 1 ? "\"microbatches\"" : "\"bytes\"", point.time, value)) return false;
                }
            }
        }
        return true;
    }

    bool counters()
    {
        for (const Counter& counter : m_timeline.counters()) {
            const std::string name = jsonText(counter.name);
            const std::string series = jsonText(counter.unit.empty() ? std::string("value") : counter.unit);
            for (const CounterSample& one : counter.samples) {
                if (!std::isfinite(one.value)) continue; // JSON has no such number
                if (!sample(counter.rank < 0 ? processOf(0) : processOf(counter.rank), name, series, one.time,
                            fmt::format("{}", one.value)))
                    return false;
            }
        }
        return true;
    }

    static constexpr std::size_t blockSize = 1 << 20;

    const Run& m_run;
    const Timeline& m_timeline;
    const Sink& m_out;
    const Progress& m_progress;
    Nanos m_shift; // viewers drop negative times
    std::string m_buffer;
    bool m_first = true;
    std::optional<Error> m_error;
    ChromeCounts m_counts;
    struct StepGap {
        Gap gap;
        int step = 0;
        int thread = 0; // first within the rank's idle threads, then the thread itself
    };

    int m_nextThread = 1;
    std::vector<int> m_threadOf;             // by span
    std::vector<std::vector<StepGap>> m_gaps; // by rank
};

} // namespace

Result<ChromeCounts> writeChromeJson(const Run& run, const std::function<bool(std::string_view)>& out, const Progress& progress)
{
    if (!run.timeline) return fail(ErrorCode::Usage, fmt::format("run {}: it has no timeline", run.info.name));
    return ChromeWriter(run, out, progress).write();
}

Result<ChromeCounts> writeChromeJsonFile(const Run& run, const std::string& path, const Progress& progress)
{
    ChromeCounts counts;
    const auto written = writeFileAtomically(path, [&](const Sink& out) -> Result<void> {
        auto done = writeChromeJson(run, out, progress);
        if (!done) return tl::unexpected(done.error());
        counts = *done;
        return {};
    });
    if (!written) return tl::unexpected(written.error());
    return counts;
}

namespace formats {

namespace {

Result<std::string> write(const Run& run, const std::string& path, const Progress& progress)
{
    const auto counts = writeChromeJsonFile(run, path, progress);
    if (!counts) return tl::unexpected(counts.error());
    return fmt::format("{} spans, {} bubbles, {} flows, {} counter samples", counts->spans, counts->bubbles, counts->flows,
                       counts->counterSamples);
}

} // namespace

extern const FormatInfo chrome_json;
const FormatInfo chrome_json{"chrome", "Chrome JSON trace (Perfetto, chrome://tracing)", ".json", write};

} // namespace formats

} // namespace stagewright
