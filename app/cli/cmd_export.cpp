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
#include "schedules/csv_line.h"
#include "app/cli/figures.h"
#include "app/cli/files.h"
#include "app/cli/run_access.h"
#include "app/cli/session.h"
#include "app/cli/usage.h"
#include "schedules/csv.h"
#include "schedules/kinds.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/formats/atomic_file.h"
#include "traces/formats/chrome_json.h"

namespace stagewright {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
    std::string file;
    std::string run;
    std::string format;
    std::string output;
    std::string lower;
    bool verbose = false;
};

Result<Json> exportChrome(const StoredRun& stored, const Options& options, Session& session)
{
    auto counts = writeChromeJsonFile(stored.run, options.output, session.reporter("spans"));
    if (!counts) return tl::unexpected(std::move(counts.error()));
    if (options.verbose)
        session.note(fmt::format("{} spans, {} bubbles, {} flows, {} counter samples", counts->spans, counts->bubbles, counts->flows,
                                 counts->counterSamples));
    return Json{{"spans", counts->spans},
                {"bubbles", counts->bubbles},
                {"flows", counts->flows},
                {"counter_samples", counts->counterSamples}};
}

Result<Json> exportSchedule(const StoredRun& stored, const Options& options, Session& session)
{
    Schedule schedule;
    if (stored.run.schedule) {
        schedule = *stored.run.schedule;
    } else {
        auto realised = scheduleOf(*stored.run.timeline, std::max(0, stored.run.representativeStep()));
        if (!realised) return tl::unexpected(std::move(realised.error()));
        schedule = std::move(*realised);
    }
    if (!options.lower.empty()) {
        const auto rule = parseLowering(options.lower);
        auto lowered = lower(schedule, *rule);
        if (!lowered) return tl::unexpected(std::move(lowered.error()));
        schedule = std::move(*lowered);
    }
    auto text = writeScheduleCsv(schedule);
    if (!text) return tl::unexpected(std::move(text.error()));
    if (auto written = writeFileAtomically(options.output, *text); !written) return tl::unexpected(std::move(written.error()));
    if (options.verbose) session.note(fmt::format("{} ranks, {} ops", schedule.ranks, schedule.opCount()));
    return Json{{"ranks", schedule.ranks}, {"ops", schedule.opCount()}};
}

Result<Json> exportSpans(const StoredRun& stored, const Options& options, Session& session)
{
    const Timeline& timeline = *stored.run.timeline;
    std::string text = csvLine({"step", "rank", "lane", "stage", "kind", "microbatch", "start_ns", "end_ns", "cpu_ns", "name"});
    std::int64_t count = 0;
    for (const Track& track : timeline.tracks()) {
        for (SpanId id = track.begin; id < track.end; ++id, ++count) {
            const Span& span = timeline.spans()[id];
            const bool foreign = span.label != 0;
            text += csvLine({std::to_string(span.step), std::to_string(track.rank), std::string(toText(track.lane)),
                             foreign ? "" : std::to_string(span.op.stage), foreign ? "" : std::string(ruleOf(span.op.kind).text),
                             foreign || span.op.microbatch < 0 ? "" : std::to_string(span.op.microbatch), std::to_string(span.start),
                             std::to_string(span.end),
                             timeline.hasCpuTime() && timeline.cpuTime(id) >= 0 ? std::to_string(timeline.cpuTime(id)) : "",
                             timeline.nameOf(span)});
        }
    }
    if (auto written = writeFileAtomically(options.output, text); !written) return tl::unexpected(std::move(written.error()));
    if (options.verbose) session.note(fmt::format("{} spans", count));
    return Json{{"spans", count}};
}

// The window's program draws pictures; it needs no display.
Result<Json> exportPicture(const StoredRun& stored, const Options& options)
{
    std::string program = siblingProgram("stagewright-ui");
    if (program.empty())
        return fail(ErrorCode::Unavailable, fmt::format("a {} is drawn by stagewright-ui, which is not beside this program", options.format),
                    "build it where Qt 6 is installed (./bootstrap.sh build), or export chrome or csv");
    const std::filesystem::path folder = std::filesystem::path(options.output).parent_path();
    if (!folder.empty() && !isFolder(folder.string()))
        return fail(ErrorCode::Unreadable, fmt::format("file {}: can't be made (there is no folder {})", options.output, folder.string()),
                    "make the folder, or choose another place");
    std::vector<std::string> words{program, stored.file, "--run", std::to_string(stored.run.info.id), "--export", options.format, "-o", options.output};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        setenv("QT_QPA_PLATFORM", "offscreen", 1);
        setenv("QT_LOGGING_RULES", "*.warning=false", 0); // what Qt says about having no display
        execv(program.c_str(), arguments.data());
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return fail(ErrorCode::Failed, fmt::format("{} can't be started: {}", program, std::strerror(errno)));
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
    if (isPicture(options.format) && !options.output.ends_with("." + options.format)) options.output += "." + options.format;
    RunReference reference = parseRunReference(options.file);
    if (!options.run.empty()) reference.run = options.run;
    auto stored = readRun(reference);
    if (!stored) return tl::unexpected(std::move(stored.error()));
    warnOfDamage(*stored, session);
    Result<Json> counts = options.format == "chrome"  ? exportChrome(*stored, options, session)
                          : options.format == "csv"   ? exportSchedule(*stored, options, session)
                          : options.format == "spans" ? exportSpans(*stored, options, session)
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
                               "chrome: trace events for Perfetto and chrome://tracing; csv: the schedule, for PyTorch; spans: a table of\n"
                               "every span; png, svg, pdf: the timeline as a picture")
                    ->type_name("FORMAT")->required()->check(oneOf({"chrome", "csv", "spans", "png", "svg", "pdf"}));
                addLowerOption(app, options->lower);
                app.add_option("-o,--output", options->output, "The file to write")->type_name("OUT")->required();
                app.add_flag("-v,--verbose", options->verbose, "Say how many spans, flows and counter samples were written");
                app.footer("Example: stagewright export demo.stagewright zb-h1 --format chrome -o zb-h1.json --verbose");
                return [options](Session& session) { return run(*options, session); };
            },
            true, true};
}

} // namespace stagewright
