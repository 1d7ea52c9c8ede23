#include "traces/export/chrome_json.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "traces/export/trace_file.h"

namespace stagewright {

std::string microseconds(Nanos nanos)
{
    const auto magnitude = nanos < 0 ? 0 - static_cast<std::uint64_t>(nanos) : static_cast<std::uint64_t>(nanos);
    return fmt::format("{}{}.{:03}", nanos < 0 ? "-" : "", magnitude / 1000, magnitude % 1000);
}

std::string jsonText(std::string_view text)
{
    bool plain = true;
    for (const char c : text) plain = plain && c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
    if (plain) return fmt::format("\"{}\"", text);
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

namespace {

class ChromeWriter : public TraceSink {
public:
    ChromeWriter(const Run& run, const Sink& out)
        : m_run(run), m_timeline(*run.timeline), m_out(out), m_shift(traceShift(m_timeline))
    {
        header();
    }

    void process(int rank) override
    {
        event(R"({{"name":"process_name","ph":"M","pid":{},"tid":0,"args":{{"name":"rank {}"}}}})", processOf(rank),
              rank);
        event(R"({{"name":"process_sort_index","ph":"M","pid":{},"tid":0,"args":{{"sort_index":{}}}}})",
              processOf(rank), rank);
    }

    void row(const TraceRow& row) override
    {
        const int thread = threadOf(row.number);
        event(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})", processOf(row.rank),
              thread, jsonText(row.name));
        event(R"({{"name":"thread_sort_index","ph":"M","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
              processOf(row.rank), thread, row.order);
    }

    void counter(const TraceCounter&) override {} // its samples name it

    void span(const TraceSpan& item) override
    {
        const Span& span = *item.span;
        const int process = processOf(item.track->rank);
        const int thread = threadOf(item.row);
        const std::string_view kind = ruleOf(span.op.kind).text;
        event(
            R"({{"name":{},"cat":"{}","ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"args":{{"step":{},"step_number":{})",
            jsonText(m_timeline.nameOf(span)), span.label == 0 ? kind : toText(item.track->lane), at(span.start),
            microseconds(span.duration()), process, thread,
            span.step == outsideSteps ? "null" : std::to_string(span.step),
            span.step == outsideSteps ? "null" : std::to_string(stepNumber(span.step)));
        if (span.label == 0) {
            m_buffer += fmt::format(",\"kind\":\"{}\",\"stage\":{}", kind, span.op.stage);
            if (span.op.microbatch >= 0) m_buffer += fmt::format(",\"microbatch\":{}", span.op.microbatch);
        }
        if (m_timeline.hasCpuTime() && m_timeline.cpuTime(item.id) >= 0)
            m_buffer += fmt::format(",\"cpu_us\":{}", microseconds(m_timeline.cpuTime(item.id)));
        if ((span.flags & SpanDiscarded) != 0) m_buffer += ",\"discarded\":true";
        m_buffer += "}}";
        const auto all = m_timeline.spans();
        const auto edges = m_timeline.edges();
        for (const std::uint32_t flow : item.leaves)
            event(R"({{"name":"data","cat":"data","ph":"s","id":{},"ts":{},"pid":{},"tid":{}}})", flow,
                  at(leavesAt(span, all[edges[flow].to])), process, thread);
        for (const std::uint32_t flow : item.arrives)
            event(R"({{"name":"data","cat":"data","ph":"f","bp":"e","id":{},"ts":{},"pid":{},"tid":{}}})", flow,
                  at(std::max(span.start, leavesAt(all[edges[flow].from], span))), process, thread);
    }

    void bubble(const TraceBubble& item) override
    {
        const Gap& gap = *item.gap;
        event(
            R"({{"name":{},"cat":"bubble","ph":"X","ts":{},"dur":{},"pid":{},"tid":{},"args":{{"step":{},"step_number":{},"cause":"{}","why":{}}}}})",
            jsonText(item.title), at(gap.start), microseconds(gap.end - gap.start), processOf(gap.rank),
            threadOf(item.row), item.step, stepNumber(item.step), item.cause, jsonText(item.why));
    }

    void sample(const TraceCounter& counter, const TraceSample& sample) override
    {
        event(R"({{"name":{},"ph":"C","ts":{},"pid":{},"tid":0,"args":{{{}:{}}}}})", jsonText(counter.name),
              at(sample.time), processOf(std::max(0, counter.rank)),
              jsonText(counter.unit.empty() ? std::string("value") : counter.unit),
              sample.isWhole ? fmt::format("{}", sample.whole) : fmt::format("{}", sample.value));
    }

    Result<void> flush() override
    {
        if (m_buffer.size() < writtenAtOnce) return {};
        return writeOut();
    }

    Result<void> finish()
    {
        m_buffer += "\n]}\n";
        return writeOut();
    }

private:
    Result<void> writeOut()
    {
        if (!m_out(m_buffer))
            return fail(ErrorCode::Failed, "the trace could not be written",
                        "free some space or choose another location");
        m_buffer.clear();
        return {};
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
    static int threadOf(int row) { return row + 1; }
    // An arrow leaves in the producer's last nanosecond (its end already belongs to the next span).
    static Nanos leavesAt(const Span& from, const Span& to)
    {
        return std::max(from.start, std::min(from.end - 1, to.start));
    }

    void pairs(std::string_view name, const TextPairs& values)
    {
        m_buffer += fmt::format("\"{}\":{{", name);
        for (std::size_t i = 0; i < values.size(); ++i)
            m_buffer +=
                fmt::format("{}{}:{}", i == 0 ? "" : ",", jsonText(values[i].first), jsonText(values[i].second));
        m_buffer += "},";
    }

    void header()
    {
        const RunInfo& info = m_run.info;
        m_buffer += "{\"displayTimeUnit\":\"ms\",\"otherData\":{";
        m_buffer += fmt::format("\"run\":{},\"schedule\":{},\"provenance\":{},\"clock\":{},", jsonText(info.name),
                                jsonText(info.scheduleName), jsonText(toText(m_timeline.provenance())),
                                jsonText(m_timeline.clock()));
        pairs("configuration", m_run.configuration);
        pairs("environment", m_run.environment);
        m_buffer +=
            fmt::format("\"origin_ns\":{},\"time_unit_ns\":{},\"memory_unit\":{},\"generator\":\"stagewright\"}},",
                        -m_shift, m_timeline.timeUnit(), m_timeline.memoryUnit());
        m_buffer += "\"traceEvents\":[";
    }

    static constexpr std::size_t writtenAtOnce = 1 << 20;

    const Run& m_run;
    const Timeline& m_timeline;
    const Sink& m_out;
    Nanos m_shift; // viewers drop negative times
    std::string m_buffer;
    bool m_first = true;
};

} // namespace

Result<TraceCounts> writeChromeJson(const Run& run, const std::function<bool(std::string_view)>& out,
                                    const Progress& progress)
{
    if (!run.timeline) return fail(ErrorCode::Usage, fmt::format("run {} has no timeline", run.info.name));
    ChromeWriter writer(run, out);
    auto counts = walkTrace(run, writer, progress);
    if (!counts) return counts;
    STAGEWRIGHT_CHECK(writer.finish());
    return counts;
}

Result<TraceCounts> writeChromeJsonFile(const Run& run, const std::string& path, const Progress& progress)
{
    return writeTraceFile(path, [&](const Sink& out) { return writeChromeJson(run, out, progress); });
}

namespace formats {

namespace {

Result<WrittenFile> writeChrome(const ExportRequest& request)
{
    STAGEWRIGHT_TRY(const auto counts, writeChromeJsonFile(*request.run, request.path, request.progress));
    return writtenOf(counts);
}

} // namespace

extern const FormatInfo chrome_json;
const FormatInfo chrome_json{.name = "chrome",
                             .title = "Chrome JSON",
                             .writes = "trace events for chrome://tracing",
                             .suffixes = {".json"},
                             .write = writeChrome};

} // namespace formats

} // namespace stagewright
