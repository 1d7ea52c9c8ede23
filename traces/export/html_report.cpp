#include "traces/export/html_report.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <tuple>

#include <fmt/core.h>

#include "schedules/base/step_number.h"
#include "traces/compare/comparison_document.h"
#include "traces/export/document_html.h"
#include "traces/export/timeline_svg.h"
#include "traces/format/atomic_file.h"
#include "traces/format/format_registry.h"
#include "traces/plot/svg_colours.h"
#include "traces/report/run_document.h"
#include "traces/report/table_document.h"
#include "traces/run/run_facts.h"

namespace stagewright {
namespace {

constexpr std::size_t mostOps = 60; // rows of a table of ops
constexpr std::size_t mostGaps = 12;
constexpr std::size_t mostSteps = 500;
constexpr std::size_t allRows = std::numeric_limits<std::size_t>::max();

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
           "td "
           "small{display:block;color:var(--secondary)}tr.strong{font-weight:600}.scroll{overflow-x:auto}table{border-"
           "collapse:collapse;font-variant-numeric:tabular-nums;margin:6px "
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

// Where the run is stored, and what of it is not as it should be.
std::string storedText(const Run& run, const std::string& source)
{
    const RunInfo& info = run.info;
    std::string text = source;
    const auto add = [&text](const std::string& more) { text += (text.empty() || more.empty() ? "" : ", ") + more; };
    add(timeText(info.createdUnixMs));
    if (info.warmupSteps > 0) add(counted(info.warmupSteps, "step") + " of warm-up");
    if (info.state != RunState::Complete) add(std::string(toText(info.state)));
    if (info.damagedBlocks > 0) add(counted(info.damagedBlocks, "damaged block") + " skipped");
    return text;
}

void addPairs(document::Document& out, std::string title, const TextPairs& pairs, bool folded)
{
    document::Table table{{}, {TableColumn{}, TableColumn{}}};
    for (const auto& [key, value] : pairs) table.rows.push_back({{key, value}});
    document::Section& section = out.add(std::move(title));
    section.folded = folded;
    section.add(std::move(table));
}

// Where the run is from, its settings and its note; of a comparison behind their titles.
void addProvenance(document::Document& out, const Run& run, const std::string& of = {})
{
    TextPairs facts{{"provenance", std::string(toText(run.info.provenance))}, {"clock", clockText(run)}};
    if (run.costs) facts.emplace_back("costs", run.costs->origin.empty() ? "a cost model" : run.costs->origin);
    for (const RunFact& fact : factsOf(run))
        if (!fact.value.empty()) facts.emplace_back(fact.title, fact.value);
    if (std::string weights = weightsText(run); !weights.empty()) facts.emplace_back("weights", std::move(weights));
    addPairs(out, of + "Setup", facts, !of.empty());
    addPairs(out, of + "Configuration", run.configuration, !of.empty());
    addPairs(out, of + "Environment", run.environment, !of.empty());
    if (!of.empty() && !run.info.note.empty()) out.add(of + "Note").say(run.info.note);
}

// What was measured of each step.
void addSteps(document::Document& out, const Run& run)
{
    document::Table table{{}, {TableColumn{{}, "step"}}};
    std::vector<const Metric*> metrics;
    std::size_t steps = 0;
    for (const Metric& metric : run.metrics) {
        if (metric.values.size() < 2) continue;
        metrics.push_back(&metric);
        steps = std::max(steps, metric.values.size());
        const bool timed = metric.unit == "ns";
        table.columns.push_back(TableColumn{{},
                                            metric.name + (metric.unit.empty() || timed ? "" : ", " + metric.unit),
                                            timed ? ColumnKind::Time : ColumnKind::Real});
    }
    table.mostShown = mostSteps;
    for (std::size_t step = 0; step < steps; ++step) {
        const int at = static_cast<int>(step);
        TableRow cells{fmt::format("{}{}", stepNumber(at), at < run.info.warmupSteps ? " (warm-up)" : "")};
        for (const Metric* metric : metrics) {
            const double value = step < metric->values.size() ? metric->values[step] : std::nan("");
            cells.push_back(!std::isfinite(value)  ? TableCell()
                            : metric->unit == "ns" ? TableCell(static_cast<std::int64_t>(std::llround(value)))
                                                   : TableCell(value));
        }
        table.rows.push_back({std::move(cells)});
    }
    document::Section& section = out.add("Steps");
    section.folded = true;
    section.add(std::move(table));
}

// Every table of the report, each behind its title.
void addTables(document::Document& out, const StepContext& context)
{
    for (const ReportTable& table : reportTables(context)) {
        if (context.stop().stop_requested()) return;
        out.sections.push_back(tableSection(table, {}, allRows));
        out.sections.back().folded = true;
    }
}

std::string timelineHtml(const Run& run, int step, const SvgOptions& axis = {}, const std::string& of = {})
{
    SvgOptions options = axis;
    if (!of.empty()) options.title = "Timeline" + of;
    std::string out = timelineSvg(run, step, options) + legendHtml(run, step);
    if (!of.empty()) options.title = "Activation memory" + of;
    const std::string memory = memorySvg(run, step, options);
    return memory.empty() ? out : out + "<h3>Activation memory</h3>\n" + memory;
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

tl::unexpected<Error> noPage() { return fail(ErrorCode::Cancelled, "writing was cancelled"); }

} // namespace

Result<std::string> htmlReport(const Run& run, const HtmlOptions& options)
{
    if (run.timeline && run.timeline->empty() && options.step < 0) {
        document::Document document{run.info.name, storedText(run, options.source)};
        document.add().say("Nothing ran: the run has no spans.");
        addProvenance(document, run);
        if (!run.info.note.empty()) document.add("Note").say(run.info.note);
        return head(run.info.name + " – Stagewright") + documentHtml(document) + foot(options);
    }
    STAGEWRIGHT_TRY(const auto step, stepOf(run, options.step));
    const ReportOptions asked{.step = step, .levers = true, .stop = options.progress.stop};
    STAGEWRIGHT_TRY(const auto context, contextOf(run, asked));
    STAGEWRIGHT_TRY(const auto report, reportOf(*context, asked));
    RunDocumentOptions parts;
    parts.context = context.get();
    parts.explained = mostGaps;
    parts.data = false;
    document::Document document = runDocument(run, report, parts);
    document.sections.front().say(storedText(run, options.source));
    if (!options.progress.cancelled()) addTables(document, *context);
    addSteps(document, run);
    addProvenance(document, run);
    if (options.progress.cancelled()) return noPage();
    return head(run.info.name + " – Stagewright") +
           documentHtml(document, [&](const document::Marks&) { return timelineHtml(run, step); }) + foot(options);
}

Result<std::string> htmlComparison(const Run& a, const Run& b, const HtmlOptions& options)
{
    for (const Run* run : {&a, &b}) STAGEWRIGHT_CHECK(stepOf(*run, -1));
    const auto comparison = compareRuns(a, b, -1, -1, options.progress);
    if (options.progress.cancelled()) return noPage();
    if (!comparison) return tl::unexpected(comparison.error());
    const Comparison& c = *comparison;
    const Run* const runs[] = {&a, &b};
    document::Document document = comparisonDocument(runs, {&c, 1}, mostOps);
    document.title = b.info.name + " against " + a.info.name;
    for (const auto& [name, run, source] :
         {std::tuple("A", &a, &options.source), std::tuple("B", &b, &options.otherSource)})
        if (const std::string stored = storedText(*run, *source); !stored.empty())
            document.sections.front().say(fmt::format("{}  {}", name, stored));
    // one axis for both
    SvgOptions axis;
    const auto length = [](const Run& run, const BubbleReport& bubbles) {
        Nanos end = bubbles.windowEnd;
        for (const StepMark& mark : run.timeline->stepMarks())
            if (mark.step == bubbles.step) end = std::max(end, mark.end);
        return end - bubbles.windowBegin;
    };
    if (c.sameUnits) axis.duration = std::max(length(a, c.reportA.bubbles), length(b, c.reportB.bubbles));
    for (const bool second : {false, true}) { // the tables of devices show runs without ops
        if (!(second ? c.reportB : c.reportA).noOps.empty()) continue;
        document::Marks picture;
        picture.run = second ? 1 : 0;
        document.add(fmt::format("{}: {}", second ? "B" : "A", (second ? b : a).info.name)).add(picture);
    }
    addProvenance(document, a, "A: ");
    addProvenance(document, b, "B: ");
    if (options.progress.cancelled()) return noPage();
    return head(document.title + " – Stagewright") +
           documentHtml(document,
                        [&](const document::Marks& marks) {
                            return marks.run == 0 ? timelineHtml(a, c.stepA, axis, " of A")
                                                  : timelineHtml(b, c.stepB, axis, " of B");
                        }) +
           foot(options);
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
