#include "traces/export/html_report.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <ctime>
#include <tuple>

#include <fmt/core.h>

#include "schedules/base/step_number.h"
#include "traces/analysis/explain_gap.h"
#include "traces/compare/device_tables.h"
#include "traces/export/plot_svg.h"
#include "traces/export/timeline_svg.h"
#include "traces/format/atomic_file.h"
#include "traces/format/format_registry.h"
#include "traces/report/run_report.h"
#include "traces/report/table_document.h"
#include "traces/run/run_facts.h"

namespace stagewright {
namespace {

constexpr std::size_t mostOps = 60; // rows of a table of ops
constexpr std::size_t mostGaps = 12;
constexpr std::size_t mostRows = 512; // of a table of the report

// A table whose cells are escaped here; figures are right-aligned.
class HtmlTable {
public:
    // Columns after the first textColumns are figures.
    explicit HtmlTable(const std::vector<std::string>& header, std::size_t textColumns = 1)
        : HtmlTable(header, std::vector<bool>(textColumns, true))
    {
    }
    HtmlTable(const std::vector<std::string>& header, std::vector<bool> isText) : m_isText(std::move(isText))
    {
        m_html = "<div class=\"scroll\"><table><thead>" + line(header, "th") + "</thead><tbody>\n";
    }
    void add(const std::vector<std::string>& cells, const char* tone = "") { m_html += line(cells, "td", tone); }
    std::string text() const { return m_html + "</tbody></table></div>\n"; }

private:
    std::string line(const std::vector<std::string>& cells, const char* tag, const char* tone = "") const
    {
        std::string out = "<tr>";
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const bool text = i < m_isText.size() && m_isText[i];
            const std::string classes =
                std::string(text ? "" : "n") +
                (*tone != '\0' && i + 1 == cells.size() ? std::string(text ? "" : " ") + tone : "");
            out += fmt::format("<{}{}>{}</{}>", tag, classes.empty() ? "" : " class=\"" + classes + "\"",
                               escaped(cells[i]), tag);
        }
        return out + "</tr>\n";
    }
    std::vector<bool> m_isText;
    std::string m_html;
};

std::string timeText(std::int64_t unixMs)
{
    if (unixMs <= 0) return {};
    const std::time_t seconds = static_cast<std::time_t>(unixMs / 1000);
    std::tm parts{};
    if (gmtime_r(&seconds, &parts) == nullptr) return {};
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                       parts.tm_hour, parts.tm_min);
}

std::string head(const std::string& title)
{
    return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
           "content=\"width=device-width,initial-scale=1\">\n"
           "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
           "'unsafe-inline'\">\n<title>" +
           escaped(title) + "</title>\n<style>\n" + svgStyle() +
           "*{box-sizing:border-box}body{margin:0;background:var(--window);color:var(--text);font:14px/1.5 "
           "Inter,system-ui,\"Helvetica Neue\",Arial,sans-serif}\n"
           "main{max-width:1200px;margin:0 auto;padding:28px 28px 48px;background:var(--canvas)}\n"
           "h1{font-size:24px;line-height:1.25;margin:0 0 4px}h2{font-size:16px;margin:34px 0 "
           "10px;padding-top:14px;border-top:1px solid var(--separator)}h3{font-size:14px;margin:18px 0 6px}\n"
           "p{margin:6px 0}.meta,.note,dd "
           "small{color:var(--secondary)}.headline{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr)"
           ");gap:14px 22px;margin:20px 0 0}\n"
           ".headline div{border-left:3px solid var(--accent);padding-left:12px}.headline "
           "dt{color:var(--secondary)}.headline "
           "dd{margin:0;font-size:22px;font-weight:600;font-variant-numeric:tabular-nums}\n"
           ".headline dd small{display:block;font-size:12px;font-weight:400;line-height:1.4}\n"
           ".scroll{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:6px "
           "0}th,td{text-align:left;padding:3px 16px 3px 0;border-bottom:1px solid var(--grid);vertical-align:top}\n"
           "th{color:var(--secondary);font-weight:500}.n{text-align:right;white-space:nowrap}.better{color:var(--"
           "better)}.worse{color:var(--worse)}\n"
           ".legend span{margin-right:14px;white-space:nowrap}.legend "
           "svg{vertical-align:-1px}pre{white-space:pre-wrap;margin:6px 0}summary{cursor:pointer;color:var(--accent)}\n"
           "footer{margin-top:40px;color:var(--secondary);font-size:12px}\n"
           "@media "
           "print{body{background:#fff}main{padding:0;max-width:none}h2{break-after:avoid}svg.sw,tr{break-inside:avoid}"
           "details>*{display:block}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}\n"
           "</style>\n</head>\n<body>\n<main>\n";
}

std::string foot(const HtmlOptions& options)
{
    return (options.program.empty() ? std::string()
                                    : "<footer>Written by " + escaped(options.program) + ".</footer>\n") +
           "</main>\n</body>\n</html>\n";
}

std::string figure(const std::string& title, const std::string& value, const std::string& meaning)
{
    return "<div><dt>" + escaped(title) + "</dt><dd>" + escaped(value) + "<small>" + escaped(meaning) +
           "</small></dd></div>\n";
}

std::string metaText(const Run& run, int step, const std::string& source)
{
    const RunInfo& info = run.info;
    std::string text =
        fmt::format("{}{}{}", info.scheduleName, info.scheduleName.empty() ? "" : ": ", counted(info.ranks, "rank"));
    if (info.stages > 0)
        text += fmt::format(", {}, {}", counted(info.stages, "stage"), counted(info.microbatches, "microbatch"));
    if (info.steps > 1)
        text += fmt::format("; step {} of {}, {} of them warm-up", stepNumber(step), info.steps, info.warmupSteps);
    text += "; " + clockText(run);
    if (!source.empty()) text += "; " + source;
    if (const std::string when = timeText(info.createdUnixMs); !when.empty()) text += ", " + when;
    if (info.state != RunState::Complete) text += "; " + std::string(toText(info.state));
    if (info.damagedBlocks > 0) text += fmt::format("; {} skipped", counted(info.damagedBlocks, "damaged block"));
    return text;
}

std::string headline(const Run& run, const RunReport& report)
{
    const std::vector<document::Figure> figures = report.figures();
    document::UnknownReasons reasons;
    std::string out = "<dl class=\"headline\">\n";
    const auto add = [&](std::string_view key, const std::string& meaning) {
        const document::Figure& one = *document::findFigure(figures, key);
        out += figure(one.title, document::textOf(one, report.units), one.unknown.empty() ? meaning : reasons.of(one));
    };
    const auto text = [&](std::string_view key) { return document::textOf(*document::findFigure(figures, key), report.units); };
    add("bubble_fraction", "idle time over all ranks ÷ (ranks × the time of the ops)");
    add("whole_step", "from the start of the first op, gather or reduction of any rank to the end of the last, the "
                      "optimizer included");
    if (report.bubbles.outside() > 0)
        add("makespan", "from the start of the first to the end of the last busy span over all ranks");
    add("peak_activation", "the highest of any rank at any time in the step");
    if (const document::Figure& messages = *document::findFigure(figures, "overlap.messages");
        !messages.unknown.empty() || messages.value > 0)
        add("overlap.exposed_time", fmt::format("of {} in {} messages: the part while the receiving rank is idle",
                                                text("overlap.comm_time"), text("overlap.messages")));
    if (const Metric* loss = run.metric("loss"); loss != nullptr && !loss->values.empty())
        out += figure("Loss", fmt::format("{:.3f} → {:.3f}", loss->values.front(), loss->values.back()),
                      fmt::format("mean cross-entropy, {} per token, first and last of {}", loss->unit,
                                  counted(static_cast<long long>(loss->values.size()), "step")));
    return out + "</dl>\n";
}

// What would help, largest gain first.
std::string leversHtml(const Run& run, const LeverTable& levers)
{
    const Nanos unit = run.timeline->timeUnit();
    std::string out = "<h2>What would help</h2>\n";
    if (!levers.simulated) return out + "<p class=\"note\">Not simulated: " + escaped(levers.reason) + ".</p>\n";
    HtmlTable table({"with", "step", "gain", "share"});
    bool any = false;
    std::string unknown;
    for (const Lever& lever : levers.shown()) {
        if (!lever.makespan) {
            unknown += "<p class=\"note\">" + escaped(lever.title + ": " + lever.reason) + ".</p>\n";
            continue;
        }
        any = any || lever.gain > 0;
        const auto before = static_cast<double>(std::max<Nanos>(1, *lever.makespan + lever.gain));
        table.add({lever.title, formatDuration(*lever.makespan, unit), formatDuration(-lever.gain, unit),
                   formatPercent(-static_cast<double>(lever.gain) / before)},
                  lever.gain > 0 ? "better" : "");
    }
    if (!any) out += "<p>None of these shortens the step.</p>\n";
    if (!levers.levers.empty()) out += table.text();
    const std::string error = formatPercent(levers.error());
    return out + unknown + "<p class=\"note\">" +
           escaped(fmt::format(
               "Each is simulated with the run's own costs. With them the step takes {}; recorded it took {} ({}{}).",
               formatDuration(*levers.simulated, unit), formatDuration(levers.measured, unit),
               levers.error() > 0 ? "+" : "", error)) +
           "</p>\n";
}

std::string samplesHtml(const Run& run, const StepSamples& samples)
{
    if (samples.figures.empty()) return {};
    HtmlTable table({"over the measured steps", "median", "from", "to"});
    for (const auto& [key, title, time] :
         {std::tuple("whole_step", "step time", true), std::tuple("bubble_fraction", "bubble ratio", false),
          std::tuple("exposed_time", "exposed communication", true)}) {
        const FigureSample* sample = samples.find(key);
        if (sample == nullptr) continue;
        const auto text = [&run, timed = time](double value) {
            return timed ? formatDuration(std::llround(value), run.timeline->timeUnit()) : formatPercent(value);
        };
        table.add({title, text(sample->median), text(sample->low), text(sample->high)});
    }
    const bool interval = static_cast<int>(samples.steps.size()) >= FigureSample::fewestForInterval;
    return table.text() + fmt::format("<p class=\"note\">{} of {} measured steps; from and to are {}.</p>\n",
                                      samples.steps.size(), samples.measured,
                                      interval ? "the 95 % interval of the median by order statistics"
                                               : "the smallest and the largest");
}

std::string causesHtml(const Run& run, const BubbleReport& bubbles, const LeverTable* levers = nullptr)
{
    const Nanos unit = run.timeline->timeUnit(),
                window = bubbles.makespan() * static_cast<Nanos>(std::max<std::size_t>(1, bubbles.ranks.size()));
    const bool byRank = bubbles.ranks.size() <= 8;
    std::vector<std::string> header{"cause", "meaning", "time", "share"};
    if (byRank)
        for (std::size_t r = 0; r < bubbles.ranks.size(); ++r) header.push_back(fmt::format("rank {}", r));
    HtmlTable table(header, 2);
    const auto row = [&](const std::string& title, const std::string& meaning, Nanos total, auto of) {
        std::vector<std::string> cells{
            title, meaning, formatDuration(total, unit),
            formatPercent(window > 0 ? static_cast<double>(total) / static_cast<double>(window) : 0)};
        if (byRank)
            for (const RankBubbles& rank : bubbles.ranks)
                cells.push_back(of(rank) != 0 ? formatDuration(of(rank), unit) : "·");
        table.add(cells);
    };
    for (const IdleCause cause : causesByGain(bubbles.byCause, levers)) {
        const auto c = static_cast<std::size_t>(cause);
        row(std::string(titleOf(cause)), std::string(meaningOf(cause)), bubbles.byCause[c],
            [c](const RankBubbles& rank) { return rank.byCause[c]; });
    }
    row("idle", "all causes", bubbles.idle, [](const RankBubbles& rank) { return rank.idle; });
    row("busy", "forward, backward, gradients, recomputation", bubbles.busy,
        [](const RankBubbles& rank) { return rank.busy; });
    std::string out = "<h2>Idle time by cause</h2>\n" + table.text();
    if (const std::string straggler = stragglerSentence(bubbles, unit); !straggler.empty())
        out += "<p>" + escaped(straggler) + "</p>\n";
    std::vector<const Gap*> gaps;
    for (const Gap& gap : bubbles.gaps) gaps.push_back(&gap);
    std::stable_sort(gaps.begin(), gaps.end(),
                     [](const Gap* a, const Gap* b) { return a->end - a->start > b->end - b->start; });
    if (gaps.size() > mostGaps) gaps.resize(mostGaps);
    if (gaps.empty()) return out;
    HtmlTable longest({"the longest gaps", "length"});
    for (const Gap* gap : gaps)
        longest.add({explainGap(*run.timeline, *gap), formatDuration(gap->end - gap->start, unit)});
    return out + longest.text();
}

std::string criticalPathHtml(const Run& run, const RunReport& report)
{
    const Timeline& timeline = *run.timeline;
    const auto& path = report.criticalPath;
    if (path.empty()) return {};
    std::string names;
    Nanos wait = 0;
    for (std::size_t i = 0; i < path.size(); ++i) {
        wait += path[i].waitBefore;
        if (i < 400) names += (i > 0 ? " " : "") + timeline.nameOf(timeline.spans()[path[i].span]);
    }
    return fmt::format("<h2>Critical path</h2>\n<p>{} on it decide when the step ends; {} of it is waiting for "
                       "transfers and launches.</p>\n<p class=\"note\">{}{}</p>\n",
                       counted(static_cast<long long>(path.size()), "op"), formatDuration(wait, timeline.timeUnit()),
                       escaped(names), path.size() > 400 ? " …" : "");
}

// Every table of the report, each behind its title; what is a course is drawn before them.
std::string tablesHtml(const StepContext& context)
{
    const Units units{context.timeline().timeUnit(), context.timeline().memoryUnit()};
    std::string out = "<h2>Tables</h2>\n";
    std::string unknown, courses;
    for (const ReportTable& table : reportTables(context)) {
        if (context.stop().stop_requested()) break;
        const std::string title(table.analysis->title);
        if (const Plot curves = curvesOf(table); !curves.empty())
            courses += "<h2>" + escaped(title) + "</h2>\n" + plotSvg(curves, title);
        if (!table.unknown.empty()) {
            unknown += "<p class=\"note\">" + escaped(title + ": unknown: " + table.unknown) + ".</p>\n";
            continue;
        }
        std::vector<std::string> header;
        std::vector<bool> isText;
        const std::vector<std::size_t> shown = shownColumns(table);
        for (const std::size_t c : shown) {
            header.push_back(table.columns[c].title);
            isText.push_back(table.columns[c].kind == ColumnKind::Text);
        }
        HtmlTable rows(header, std::move(isText));
        for (std::size_t i = 0; i < std::min(mostRows, table.rows.size()); ++i) {
            std::vector<std::string> cells;
            for (const std::size_t c : shown) cells.push_back(cellText(table.columns[c], table.rows[i][c], units));
            rows.add(cells);
        }
        out += "<details><summary>" + escaped(title) + "</summary>\n" + rows.text();
        if (table.rows.size() > mostRows)
            out += fmt::format("<p class=\"note\">The first {} of {} rows.</p>\n", mostRows, table.rows.size());
        if (!table.sentence.empty()) out += "<p class=\"note\">" + escaped(table.sentence) + "</p>\n";
        out += "</details>\n";
    }
    return courses + out + unknown;
}

std::string pairsHtml(const std::string& title, const TextPairs& pairs)
{
    if (pairs.empty()) return {};
    HtmlTable table({"", ""}, 2);
    for (const auto& [key, value] : pairs) table.add({key, value});
    return "<h3>" + escaped(title) + "</h3>\n" + table.text();
}

std::string provenanceHtml(const Run& run)
{
    std::string out = "<h2>Origin</h2>\n";
    TextPairs facts{{"provenance", std::string(toText(run.info.provenance))}, {"clock", clockText(run)}};
    if (run.costs) facts.emplace_back("costs", run.costs->origin.empty() ? "a cost model" : run.costs->origin);
    for (const RunFact& fact : factsOf(run))
        if (!fact.value.empty()) facts.emplace_back(fact.title, fact.value);
    if (std::string weights = weightsText(run); !weights.empty()) facts.emplace_back("weights", std::move(weights));
    out += pairsHtml("Setup", facts) + pairsHtml("Configuration", run.configuration) +
           pairsHtml("Environment", run.environment);
    if (!run.info.note.empty()) out += "<h2>Note</h2>\n<pre>" + escaped(run.info.note) + "</pre>\n";
    return out;
}

std::string stepsHtml(const Run& run)
{
    std::vector<const Metric*> metrics;
    for (const Metric& metric : run.metrics)
        if (metric.values.size() > 1) metrics.push_back(&metric);
    if (metrics.empty()) return {};
    std::vector<std::string> header{"step"};
    for (const Metric* metric : metrics)
        header.push_back(metric->name + (metric->unit.empty() || metric->unit == "ns" ? "" : ", " + metric->unit));
    HtmlTable table(header);
    std::size_t steps = 0;
    for (const Metric* metric : metrics) steps = std::max(steps, metric->values.size());
    for (std::size_t step = 0; step < std::min<std::size_t>(steps, 500); ++step) {
        std::vector<std::string> cells{fmt::format("{}{}", stepNumber(static_cast<int>(step)),
                                                   static_cast<int>(step) < run.info.warmupSteps ? " (warm-up)" : "")};
        for (const Metric* metric : metrics) {
            const bool has = step < metric->values.size() && std::isfinite(metric->values[step]);
            cells.push_back(!has ? "–"
                            : metric->unit == "ns"
                                ? formatDuration(static_cast<Nanos>(std::llround(metric->values[step])))
                                : fmt::format("{:.4g}", metric->values[step]));
        }
        table.add(cells);
    }
    return "<h2>Steps</h2>\n<details><summary>" + counted(static_cast<long long>(steps), "step") + "</summary>\n" +
           table.text() + "</details>\n";
}

Result<int> stepOf(const Run& run, int asked)
{
    const int step = asked < 0 ? std::max(0, run.representativeStep()) : asked;
    if (!run.timeline || run.timeline->empty())
        return fail(ErrorCode::Invalid,
                    fmt::format("run {} has no spans, so there is nothing to report", run.info.name));
    if (step >= run.timeline->steps())
        return fail(ErrorCode::Usage, fmt::format("run {} has no step {}; its steps are 1 to {}", run.info.name,
                                                  stepNumber(step), run.timeline->steps()));
    return step;
}

std::string deltaText(const MetricDelta& metric, Nanos timeUnit, Bytes memoryUnit, bool change)
{
    const auto text = [&](double value) {
        if (metric.unit == "ns") return formatDuration(static_cast<Nanos>(std::llround(value)), timeUnit);
        if (metric.unit == "bytes") return formatBytes(static_cast<Bytes>(std::llround(value)), memoryUnit);
        if (metric.unit == "fraction") return formatPercent(value);
        return fmt::format("{} {}", shortNumber(value, 4), metric.unit);
    };
    if (!change) return text(metric.a) + "\t" + text(metric.b);
    const std::string delta = text(metric.delta());
    return metric.delta() > 0 ? "+" + delta : delta;
}

// Where steps can't be compared, what the devices did is, as the command line and the window show it.
std::string devicesHtml(const DeviceChanges& devices)
{
    std::string out;
    for (const DeviceTable& one : deviceTables(devices)) {
        std::vector<std::string> header;
        std::vector<bool> isText;
        for (const DeviceTable::Column& column : one.columns) {
            header.push_back(column.title);
            isText.push_back(!column.figure);
        }
        HtmlTable table(header, std::move(isText));
        for (const DeviceTable::Row& row : one.rows) table.add(row.cells);
        std::string title = one.title;
        if (!title.empty()) title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
        out += "<h2>" + escaped(title) + "</h2>\n" + table.text();
    }
    return out;
}

tl::unexpected<Error> noPage() { return fail(ErrorCode::Cancelled, "writing was cancelled"); }

} // namespace

Result<std::string> htmlReport(const Run& run, const HtmlOptions& options)
{
    if (run.timeline && run.timeline->empty() && options.step < 0) {
        return head(run.info.name + " – Stagewright") + "<h1>" + escaped(run.info.name) + "</h1>\n<p class=\"meta\">" +
               escaped(metaText(run, 0, options.source)) + "</p>\n<p>Nothing ran: the run has no spans.</p>\n" +
               provenanceHtml(run) + foot(options);
    }
    STAGEWRIGHT_TRY(const auto step, stepOf(run, options.step));
    const ReportOptions asked{.step = step, .levers = true, .stop = options.progress.stop};
    STAGEWRIGHT_TRY(const auto context, contextOf(run, asked));
    STAGEWRIGHT_TRY(const auto report, reportOf(*context, asked));
    const auto cancelled = [&options] { return options.progress.cancelled(); };
    std::string out = head(run.info.name + " – Stagewright") + "<h1>" + escaped(run.info.name) +
                      "</h1>\n<p class=\"meta\">" + escaped(metaText(run, step, options.source)) + "</p>\n";
    out += headline(run, report) + samplesHtml(run, report.overSteps) + leversHtml(run, *report.levers);
    out += "<h2>Timeline</h2>\n" + timelineSvg(run, step) + legendHtml(run, step);
    if (const std::string memory = memorySvg(run, step); !memory.empty())
        out += "<h2>Activation memory</h2>\n" + memory;
    if (!cancelled()) out += causesHtml(run, report.bubbles, &*report.levers) + criticalPathHtml(run, report);
    if (!cancelled()) out += tablesHtml(*context);
    if (!cancelled()) out += stepsHtml(run) + provenanceHtml(run);
    if (cancelled()) return noPage();
    return out + foot(options);
}

Result<std::string> htmlComparison(const Run& a, const Run& b, const HtmlOptions& options)
{
    for (const Run* run : {&a, &b}) STAGEWRIGHT_CHECK(stepOf(*run, -1));
    const auto comparison = compareRuns(a, b, -1, -1, options.progress);
    if (options.progress.cancelled()) return noPage();
    if (!comparison) return tl::unexpected(comparison.error());
    const Comparison& c = *comparison;
    const Nanos unit = a.timeline->timeUnit();
    const Bytes memoryUnit = a.timeline->memoryUnit();
    std::string out = head(b.info.name + " against " + a.info.name + " – Stagewright") + "<h1>" + escaped(b.info.name) +
                      " against " + escaped(a.info.name) + "</h1>\n";
    out += "<p class=\"meta\">A: " + escaped(metaText(a, c.stepA, options.source)) +
           "</p>\n<p class=\"meta\">B: " + escaped(metaText(b, c.stepB, options.otherSource)) + "</p>\n";
    out += "<h2>" + escaped(c.headline) + "</h2>\n";
    if (!c.unknown.empty() && c.devices)
        out += "<p class=\"note\">" + escaped("Steps and bubbles are not compared; " + c.unknown) + ".</p>\n";
    const std::vector<std::string>& why = c.devices ? c.devices->why : c.why;
    if (!why.empty()) {
        out += "<ul>\n";
        for (const std::string& sentence : why) out += "<li>" + escaped(sentence) + "</li>\n";
        out += "</ul>\n";
    }
    if (!c.differences.empty()) {
        HtmlTable table({"different", "A", "B"}, 3);
        for (const RunDifference& difference : c.differences) table.add({difference.title, difference.a, difference.b});
        out += table.text();
    }
    SvgOptions axis;
    const auto length = [](const Run& run, const BubbleReport& bubbles) {
        Nanos end = bubbles.windowEnd;
        for (const StepMark& mark : run.timeline->stepMarks())
            if (mark.step == bubbles.step) end = std::max(end, mark.end);
        return end - bubbles.windowBegin;
    };
    // one axis for both
    if (c.sameUnits) axis.duration = std::max(length(a, c.reportA.bubbles), length(b, c.reportB.bubbles));
    for (const bool second : {false, true}) {
        const Run& run = second ? b : a;
        const int step = second ? c.stepB : c.stepA;
        if (!(second ? c.reportB : c.reportA).noOps.empty()) continue; // the tables of devices show it
        if (options.progress.cancelled()) return noPage();
        axis.title = std::string("Timeline of ") + (second ? "B" : "A");
        out += fmt::format("<h2>{}: {}</h2>\n", second ? "B" : "A", escaped(run.info.name)) +
               headline(run, second ? c.reportB : c.reportA);
        out += "<h3>Timeline</h3>\n" + timelineSvg(run, step, axis) + legendHtml(run, step);
        axis.title = std::string("Activation memory of ") + (second ? "B" : "A");
        if (const std::string memory = memorySvg(run, step, axis); !memory.empty())
            out += "<h3>Activation memory</h3>\n" + memory;
    }
    if (options.progress.cancelled()) return noPage();
    if (!c.unknown.empty()) {
        if (c.devices) out += devicesHtml(*c.devices);
        for (const bool second : {false, true})
            out += fmt::format("<details><summary>More on {}</summary>\n", second ? "B" : "A") +
                   provenanceHtml(second ? b : a) + "</details>\n";
        return out + foot(options);
    }
    HtmlTable metrics({"figure", "A", "B", "B − A"});
    for (const MetricDelta& metric : c.metrics) {
        if (metric.a == 0 && metric.b == 0) continue;
        const std::string both = deltaText(metric, unit, memoryUnit, false);
        const bool less = metric.key.rfind("loss", 0) == 0 || metric.unit == "ns" || metric.unit == "bytes" ||
                          metric.unit == "fraction";
        metrics.add({metric.title, both.substr(0, both.find('\t')), both.substr(both.find('\t') + 1),
                     deltaText(metric, unit, memoryUnit, true)},
                    metric.delta() == 0 || !less ? ""
                    : metric.delta() < 0         ? "better"
                                                 : "worse");
    }
    out += "<h2>Figures</h2>\n" + metrics.text();
    for (const UnknownMetric& one : c.unknownMetrics)
        out += fmt::format("<p>{} is not compared: {}.</p>\n", escaped(one.title), escaped(one.why));
    if (c.sameUnits) {
        HtmlTable split({"where the change comes from", "mean per rank"});
        const double ranks = std::max<double>(1, static_cast<double>(c.reportB.bubbles.ranks.size()));
        const auto add = [&](const std::string& title, Nanos time) {
            const auto share = static_cast<Nanos>(std::llround(static_cast<double>(time) / ranks));
            if (time != 0)
                split.add({title, (share > 0 ? "+" : "") + formatDuration(share, unit)}, time < 0 ? "better" : "worse");
        };
        add("busy time", c.change.busyDelta);
        add("optimizer and collectives", c.change.apartDelta);
        for (std::size_t i = 0; i < idleCauseCount; ++i)
            add("idle: " + std::string(titleOf(static_cast<IdleCause>(i))), c.change.idleDelta[i]);
        out += split.text();
        HtmlTable ops({"op", "rank", "start", "duration"}, 1);
        std::size_t rows = 0;
        for (const OpDelta& op : c.ops) {
            if (!op.inBoth() || ++rows > mostOps) continue;
            const auto text = [&](Nanos time) { return (time > 0 ? "+" : "") + formatDuration(time, unit); };
            ops.add({b.timeline->nameOf(b.timeline->spans()[op.b]), std::to_string(op.rank), text(op.startDelta),
                     text(op.durationDelta)});
        }
        out += "<h2>Ops by change</h2>\n" + ops.text();
        if (rows > mostOps)
            out += fmt::format("<p class=\"note\">The {} ops whose start moved most, of {}.</p>\n", mostOps, rows);
    }
    for (const bool second : {false, true})
        out += fmt::format("<details><summary>More on {}</summary>\n", second ? "B" : "A") +
               provenanceHtml(second ? b : a) + "</details>\n";
    return out + foot(options);
}

namespace formats {

namespace {

Result<WrittenFile> writeHtml(const ExportRequest& request)
{
    HtmlOptions options;
    options.step = request.step;
    options.program = request.program;
    options.source = request.against == nullptr ? request.source : request.againstSource;
    options.otherSource = request.source;
    options.progress = request.progress;
    STAGEWRIGHT_TRY(const auto html, request.against == nullptr
                                         ? htmlReport(*request.run, options)
                                         : htmlComparison(*request.against, *request.run, options));
    STAGEWRIGHT_CHECK(writeFileAtomically(request.path, html));
    const auto bytes = static_cast<std::int64_t>(html.size());
    return WrittenFile{{{"bytes", bytes}}, fmt::format("a page of {} bytes", bytes)};
}

} // namespace

extern const FormatInfo html_report;
const FormatInfo html_report{.name = "html",
                             .title = "HTML report",
                             .writes = "a report in one page",
                             .suffixes = {".html", ".htm"},
                             .oneStep = true,
                             .compares = true,
                             .write = writeHtml};

} // namespace formats

} // namespace stagewright
