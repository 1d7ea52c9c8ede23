#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/run_access.h"
#include "app/cli/run_json.h"
#include "app/cli/run_text.h"
#include "app/cli/session.h"
#include "app/cli/table.h"
#include "app/cli/usage.h"
#include "schedules/draw_text.h"

namespace stagewright {

namespace {

struct Options {
    std::string file;
    std::string run;
    int step = -1;
    int gaps = 5;
};

Result<int> run(const Options& options, Session& session)
{
    RunReference reference = parseRunReference(options.file);
    if (!options.run.empty()) reference.run = options.run;
    auto stored = readRun(reference);
    if (!stored) return tl::unexpected(std::move(stored.error()));
    warnOfDamage(*stored, session);
    const Run& run = stored->run;
    auto figures = analyseRun(run, options.step);
    if (!figures) return tl::unexpected(std::move(figures.error()).with(describe(*stored)));

    if (session.json) {
        Json object = runJson(run, *figures);
        object["file"] = stored->file;
        object["gaps"] = gapsJson(run, *figures, static_cast<std::size_t>(options.gaps));
        session.answer(object);
        return ExitDone;
    }
    const bool colour = session.colourOut();
    const auto heading = [&](const char* text) { session.out("\n" + tinted(text, Tint::Bold, colour) + "\n"); };
    session.out(headlineText(run, *figures, colour));
    if (run.info.state != RunState::Complete)
        session.out(tinted(fmt::format("this run is {}: its {} are complete\n", toText(run.info.state), plural(run.info.steps, "step")),
                           Tint::Warn, colour));
    if (!run.info.note.empty()) session.out(fmt::format("note: {}\n", run.info.note));
    heading("timeline");
    session.out(drawTimeline(*run.timeline, figures->step, session.columns(), colour));
    heading("bubbles");
    session.out(idleText(*figures, colour));
    if (const std::string gaps = largestGapsText(run, *figures, static_cast<std::size_t>(options.gaps)); !gaps.empty()) {
        heading("largest gaps");
        session.out(gaps);
    }
    if (!figures->memory.empty()) {
        heading("memory at its peak");
        session.out(memoryText(*figures, colour));
    }
    session.out("\n" + overlapText(*figures));
    session.out("\n" + criticalPathText(run, *figures));
    return ExitDone;
}

} // namespace

Command command_report()
{
    return {"report", "Explain a run: bubbles by cause, memory, overlap, critical path", [](CLI::App& app) -> Runner {
        auto options = std::make_shared<Options>();
        app.add_option("FILE", options->file, "A run file, or FILE#RUN")->required();
        app.add_option("RUN", options->run, "A run, by number or name [the newest]");
        app.add_option("--step", options->step, "Figures of this step [the measured step with the median time]")
            ->type_name("N")->check(wholeNumber(0, 1'000'000'000));
        app.add_option("--gaps", options->gaps, "How many of the largest gaps are explained [5]")
            ->type_name("N")->check(wholeNumber(0, 10'000));
        return [options](Session& session) { return run(*options, session); };
    }};
}

} // namespace stagewright
