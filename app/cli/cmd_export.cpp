#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "app/cli/channel_options.h"
#include "app/cli/command.h"
#include "schedules/base/step_number.h"
#include "schedules/csv_line.h"
#include "app/cli/figures.h"
#include "app/cli/files.h"
#include "app/cli/run_access.h"
#include "app/cli/session.h"
#include "app/cli/usage.h"
#include "app/cli/version.h"
#include "schedules/csv.h"
#include "schedules/kinds.h"
#include "schedules/pytorch.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/formats/atomic_file.h"
#include "traces/formats/chrome_json.h"
#include "traces/formats/html_report.h"
#include "traces/formats/kineto_writer.h"
#include "traces/formats/perfetto.h"
#include "traces/formats/torchtitan.h"

namespace stagewright {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
    std::string file;
    std::string run;
    std::string format;
    std::string output;
    std::string lower;
    std::string against; // another run: the report compares
    int step = 0;        // from 1; 0: the one with the median time
    std::vector<std::string> picture; // words for the window's program
    bool pytorch = false; // csv: refuse what PyTorch can't express
    bool verbose = false;
};

struct Format {
    std::string_view name;
    std::vector<std::string_view> suffixes; // the first is the usual one
};
const std::vector<Format>& allNames()
{
    static const std::vector<Format> formats{{"chrome", {"json"}}, {"perfetto", {"pftrace", "perfetto-trace"}}, {"csv", {"csv"}}, {"spans", {"csv"}}, {"kineto", {}}, {"torchtitan", {}}, {"html", {"html", "htm"}}, {"png", {"png"}}, {"svg", {"svg"}}, {"pdf", {"pdf"}}};
    return formats;
}

// The requested format and that of the file's suffix must agree. A suffix that belongs to no format says nothing.
Result<std::string> formatOf(const std::string& asked, const std::string& output)
{
    std::string suffix = std::filesystem::path(output).extension().string();
    if (!suffix.empty()) suffix.erase(0, 1);
    std::transform(suffix.begin(), suffix.end(), suffix.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto has = [&](const Format& format) { return std::find(format.suffixes.begin(), format.suffixes.end(), suffix) != format.suffixes.end(); };
    const auto said = std::find_if(allNames().begin(), allNames().end(), has);
    if (asked.empty()) {
        if (said == allNames().end()) return fail(ErrorCode::Usage, fmt::format("file {}: the name has no known suffix", output), "give --format, or one of the suffixes .json, .pftrace, .csv, .html, .svg, .pdf, .png");
        return std::string(said->name);
    }
    const auto wanted = std::find_if(allNames().begin(), allNames().end(), [&](const Format& format) { return format.name == asked; });
    if (said != allNames().end() && !wanted->suffixes.empty() && !has(*wanted))
        return fail(ErrorCode::Usage, fmt::format("file {}: the format is {}, but the suffix is {}", output, asked, suffix), fmt::format("name it .{}, or omit --format", wanted->suffixes.front()));
    return asked;
}

Result<Json> exportTrace(const StoredRun& stored, const Options& options, Session& session)
{
    const auto write = options.format == "perfetto" ? writePerfettoFile : writeChromeJsonFile;
    auto counts = write(stored.run, options.output, session.reporter("spans"));
    if (!counts) return tl::unexpected(std::move(counts.error()));
    if (options.verbose) session.note(toText(*counts));
    return Json{{"spans", counts->spans},
                {"bubbles", counts->bubbles},
                {"flows", counts->flows},
                {"counter_samples", counts->counterSamples}};
}

Result<Schedule> scheduleOfRun(const StoredRun& stored)
{
    if (stored.run.schedule) return *stored.run.schedule;
    return scheduleOf(*stored.run.timeline, std::max(0, stored.run.representativeStep()));
}

Result<Json> exportSchedule(const StoredRun& stored, const Options& options, Session& session)
{
    auto schedule = scheduleOfRun(stored);
    if (!schedule) return tl::unexpected(std::move(schedule.error()));
    if (options.pytorch)
        if (auto forms = pytorchForms(*schedule); !forms) return tl::unexpected(std::move(forms.error()));
    if (!options.lower.empty()) {
        const auto rule = parseLowering(options.lower);
        auto lowered = lower(*schedule, *rule);
        if (!lowered) return tl::unexpected(std::move(lowered.error()));
        schedule = std::move(*lowered);
    }
    CsvOptions csv;
    csv.pytorch = options.pytorch;
    auto text = writeScheduleCsv(*schedule, csv);
    if (!text) return tl::unexpected(std::move(text.error()));
    (void)session.stop(); // a signal from here on leaves no partial file
    if (auto written = writeFileAtomically(options.output, *text); !written) return tl::unexpected(std::move(written.error()));
    if (options.verbose) session.note(fmt::format("{} ranks, {} ops", schedule->ranks, schedule->opCount()));
    return Json{{"ranks", schedule->ranks}, {"ops", schedule->opCount()}};
}

Result<Json> exportTorchTitan(const StoredRun& stored, const Options& options, Session& session)
{
    const auto schedule = scheduleOfRun(stored);
    if (!schedule) return tl::unexpected(schedule.error());
    const auto files = torchTitanFolder(*schedule, fmt::format("{}, run {}", std::filesystem::path(stored.file).filename().string(), stored.run.info.id));
    if (!files) return tl::unexpected(files.error());
    (void)session.stop(); // a signal from here on leaves no partial file
    const auto written = writeTorchTitanFolder(*files, options.output);
    if (!written) return tl::unexpected(written.error());
    return Json{{"ranks", schedule->ranks}, {"stages", schedule->stages}, {"microbatches", schedule->microbatches}, {"files", files->size()}};
}

Result<Json> exportKineto(const StoredRun& stored, const Options& options, Session& session)
{
    const auto counts = writeKinetoFolder(stored.run, options.output, session.reporter("ranks"));
    if (!counts) return tl::unexpected(counts.error());
    if (options.verbose) session.note(toText(*counts));
    return Json{{"ranks", counts->ranks}, {"spans", counts->spans}, {"launches", counts->launches}, {"memory_events", counts->memoryEvents}};
}

Result<Json> exportSpans(const StoredRun& stored, const Options& options, Session& session)
{
    const Timeline& timeline = *stored.run.timeline;
    const Progress progress = session.reporter("spans");
    std::string text = csvLine({"step", "rank", "lane", "stage", "kind", "microbatch", "start_ns", "end_ns", "cpu_ns", "name", "step_number"});
    std::int64_t count = 0;
    const auto written = writeFileAtomically(options.output, [&](const Sink& out) -> Result<void> {
        constexpr std::size_t block = 1 << 20;
        const auto flush = [&] {
            const bool good = out(text);
            text.clear();
            return good;
        };
        for (const Track& track : timeline.tracks()) {
            for (SpanId id = track.begin; id < track.end; ++id, ++count) {
                const Span& span = timeline.spans()[id];
                const bool foreign = span.label != 0;
                text += csvLine({std::to_string(span.step), std::to_string(track.rank), std::string(toText(track.lane)),
                                 foreign ? "" : std::to_string(span.op.stage), foreign ? "" : std::string(ruleOf(span.op.kind).text),
                                 foreign || span.op.microbatch < 0 ? "" : std::to_string(span.op.microbatch), std::to_string(span.start),
                                 std::to_string(span.end),
                                 timeline.hasCpuTime() && timeline.cpuTime(id) >= 0 ? std::to_string(timeline.cpuTime(id)) : "",
                                 timeline.nameOf(span), std::to_string(stepNumber(span.step))});
                if (text.size() < block) continue;
                progress.tell("writing spans", count, static_cast<std::int64_t>(timeline.spans().size()));
                if (progress.cancelled()) return fail(ErrorCode::Cancelled, "writing was cancelled");
                if (!flush()) return {}; // the file has the reason
            }
        }
        (void)flush();
        return {};
    });
    if (!written) return tl::unexpected(written.error());
    if (options.verbose) session.note(fmt::format("{} spans", count));
    return Json{{"spans", count}};
}

Result<Json> exportHtml(const StoredRun& stored, const Options& options, Session& session)
{
    const auto named = [](const StoredRun& run) { return fmt::format("{}, run {}", std::filesystem::path(run.file).filename().string(), run.run.info.id); };
    HtmlOptions html;
    html.step = options.step - 1;
    html.program = fmt::format("Stagewright {}", programVersion);
    html.source = named(stored);
    Result<std::string> page = fail(ErrorCode::Failed, "nothing was written");
    if (options.against.empty()) {
        page = htmlReport(stored.run, html);
    } else {
        RunReference reference = options.against.find('#') == std::string::npos ? RunReference{stored.file, options.against} : parseRunReference(options.against);
        auto other = readRun(reference);
        if (!other) return tl::unexpected(std::move(other.error()));
        warnOfDamage(*other, session);
        html.otherSource = html.source;
        html.source = named(*other);
        page = htmlComparison(other->run, stored.run, html);
    }
    if (!page) return tl::unexpected(std::move(page.error()));
    (void)session.stop(); // a signal from here on leaves no partial file
    if (auto written = writeFileAtomically(options.output, *page); !written) return tl::unexpected(std::move(written.error()));
    return Json{{"bytes", page->size()}};
}

// The window's program draws pictures; it needs no display.
Result<Json> exportPicture(const StoredRun& stored, const Options& options)
{
    std::string program = siblingProgram("stagewright-ui");
    if (program.empty())
        return fail(ErrorCode::Unavailable, fmt::format("stagewright-ui draws {} files, and it is not next to this program", options.format),
                    "build it with Qt 6 installed (./bootstrap.sh build), or export chrome or csv");
    const std::filesystem::path folder = std::filesystem::path(options.output).parent_path();
    if (!folder.empty() && !isFolder(folder.string()))
        return fail(ErrorCode::Unreadable, fmt::format("file {}: can't be created (there is no folder {})", options.output, folder.string()),
                    "create the folder, or choose another place");
    std::vector<std::string> words{program, stored.file, "--export", options.format, "-o", options.output};
    if (options.against.empty())
        words.insert(words.end(), {"--run", std::to_string(stored.run.info.id)});
    else
        words.insert(words.end(), {"--compare", options.against, std::to_string(stored.run.info.id)});
    if (options.step > 0) words.insert(words.end(), {"--step", std::to_string(options.step)});
    words.insert(words.end(), options.picture.begin(), options.picture.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        setenv("QT_QPA_PLATFORM", "offscreen", 1);
        setenv("QT_LOGGING_RULES", "*.warning=false", 0); // Qt's warnings about the missing display
        execv(program.c_str(), arguments.data());
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return fail(ErrorCode::Failed, fmt::format("{} can't be started: {}", program, std::strerror(errno)));
    if (WIFEXITED(status) && WEXITSTATUS(status) == ExitUsage) return fail(ErrorCode::Usage, fmt::format("{} was not drawn", options.output), "see the line above");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return fail(ErrorCode::Failed, fmt::format("{} ended with {} {}", program, WIFEXITED(status) ? "exit code" : "signal",
                                                   WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
    return Json::object();
}

bool isPicture(const std::string& format)
{
    return format == "png" || format == "svg" || format == "pdf";
}

Result<int> run(const Options& given, Session& session)
{
    Options options = given;
    auto format = formatOf(options.format, options.output);
    if (!format) return tl::unexpected(std::move(format.error()));
    options.format = *format;
    if (!options.picture.empty() && !isPicture(options.format))
        return fail(ErrorCode::Usage, fmt::format("{} is for pictures, but the format is {}", options.picture.front(), options.format), "omit it, or use svg, pdf or png");
    if (!options.against.empty() && !isPicture(options.format) && options.format != "html")
        return fail(ErrorCode::Usage, fmt::format("--against: {} holds only one run", options.format), "use html, svg, pdf or png");
    if (isPicture(options.format) && options.against.find('#') != std::string::npos)
        return fail(ErrorCode::Usage, "--against: pictures compare two runs of one file", "merge them with runs --merge, or use html");
    if (options.pytorch && options.format != "csv") return fail(ErrorCode::Usage, fmt::format("--pytorch is for csv, but the format is {}", options.format), "omit it, or use csv");
    RunReference reference = parseRunReference(options.file);
    if (!options.run.empty()) reference.run = options.run;
    auto stored = readRun(reference);
    if (!stored) return tl::unexpected(std::move(stored.error()));
    warnOfDamage(*stored, session);
    Result<Json> counts = options.format == "chrome" || options.format == "perfetto" ? exportTrace(*stored, options, session)
                          : options.format == "csv"   ? exportSchedule(*stored, options, session)
                          : options.format == "kineto" ? exportKineto(*stored, options, session)
                          : options.format == "torchtitan" ? exportTorchTitan(*stored, options, session)
                          : options.format == "spans" ? exportSpans(*stored, options, session)
                          : options.format == "html"  ? exportHtml(*stored, options, session)
                                                      : exportPicture(*stored, options);
    if (!counts) return tl::unexpected(std::move(counts.error()));
    if (session.json)
        session.answer({{"file", stored->file}, {"run", stored->run.info.id}, {"format", options.format}, {"output", options.output},
                        {"counts", counts->empty() ? Json(nullptr) : *counts}});
    session.note(fmt::format("wrote {} ({}#{} {})", options.output, stored->file, stored->run.info.id, stored->run.info.name));
    return ExitDone;
}

} // namespace

Command command_export()
{
    return {"export", "Write a run for other tools",
            [](CLI::App& app) -> Runner {
                auto options = std::make_shared<Options>();
                app.add_option("FILE", options->file, "A run file, or FILE#RUN")->required();
                app.add_option("RUN", options->run, "A run, by number or name [the newest]");
                app.add_option("--format", options->format,
                               "perfetto: a trace for ui.perfetto.dev; chrome: trace events for chrome://tracing; csv: the schedule; torchtitan: a\n"
                               "folder with the schedule, settings and constraints of a job; kineto: a folder with a trace per rank as PyTorch\n"
                               "writes them; spans: a table of\n"
                               "every span; html: a report in one page; png, svg, pdf: timeline and memory as a picture\n"
                               "[from the suffix of OUT]")
                    ->type_name("FORMAT")->check(oneOf({"chrome", "perfetto", "csv", "torchtitan", "kineto", "spans", "html", "png", "svg", "pdf"}));
                app.add_option("--against", options->against, "html, pictures: compare with another run (A)")->type_name("RUN");
                app.add_option("--step", options->step, "html, pictures: a step, from 1 [the one with the median time]")->type_name("N")->check(wholeNumber(1, 1'000'000'000));
                const auto picture = [&](const char* name, const char* text, const char* type) {
                    app.add_option_function<std::string>(name, [options, name](const std::string& value) { options->picture.insert(options->picture.end(), {name, value}); }, text)->type_name(type);
                };
                picture("--style", "Pictures: screen, or paper for print", "STYLE");
                picture("--width", "Width of a picture for paper, in mm: 84 for one column, 178 for two", "MM");
                picture("--text", "Text size of a picture for paper, in points", "PT");
                picture("--theme", "Pictures: light or dark", "THEME");
                picture("--parts", "Pictures: timeline, memory or both, separated by a comma", "PARTS");
                for (const char* flag : {"--hatched", "--no-caption", "--no-legend"})
                    app.add_flag_callback(flag, [options, flag] { options->picture.emplace_back(flag); },
                                          std::string(flag) == "--hatched" ? "Pictures for paper: also hatch the kinds" : "Pictures: omit it");
                addLowerOption(app, options->lower);
                app.add_flag("--pytorch", options->pytorch, "csv: refuse what PyTorch's pipelining can't run, and name the nearest schedule that it can");
                app.add_option("-o,--output", options->output, "The file to write, or the folder")->type_name("OUT")->required();
                app.add_flag("-v,--verbose", options->verbose, "Print how many spans, flows and counter samples were written");
                app.footer("Example: stagewright export demo.stagewright zb-h1 --format chrome -o zb-h1.json --verbose");
                return [options](Session& session) { return run(*options, session); };
            },
            true, true};
}

} // namespace stagewright
