#include <numeric>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/options/run_access.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/json.h"
#include "app/cli/text/table.h"
#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/layout/layout.h"
#include "schedules/planner/problem.h"
#include "traces/fit/recorded_jobs.h"
#include "traces/fit/recorded_lines.h"
#include "traces/format/atomic_file.h"
#include "traces/plot/plot_files.h"

namespace stagewright {

namespace {

struct SolveChoice {
    std::string file, output, example, plot, layout, problem;
    std::vector<std::string> numbers; // KEY=VALUE
    std::vector<std::string> jobs;    // FILE#RUN
    std::vector<std::string> lines;   // likewise
};

// The problem with the numbers that were given instead of its own.
Result<std::string> changed(std::string problem, const std::vector<std::string>& numbers)
{
    for (const std::string& one : numbers) {
        const auto equals = one.find('=');
        const auto value =
            equals == std::string::npos ? std::nullopt : numberOf(std::string_view(one).substr(equals + 1));
        if (!value) return fail(ErrorCode::Usage, fmt::format("--set takes KEY=NUMBER, not '{}'", one));
        auto next = withNumber(problem, one.substr(0, equals), *value);
        if (!next) return tl::unexpected(std::move(next.error()).with("--set"));
        problem = std::move(*next);
    }
    return problem;
}

// Alpa's plan as a layout, for choose and what follows from it.
Result<void> saveLayout(const std::string& text, const SolveChoice& options, Session& session)
{
    if (options.layout.empty()) return {};
    STAGEWRIGHT_TRY(const auto solved, layoutOfProblem(text, options.layout, session.reporter("plans")));
    session.progress().clear();
    if (!solved) return {};
    STAGEWRIGHT_CHECK(writeFileAtomically(options.layout, toJson(solved->layout)));
    session.note("the plan for a model, beside equal stages: " + solved->choose);
    return {};
}

Result<int> solveText(const std::string& problem, const std::string& name, const SolveChoice& options, Session& session)
{
    auto answer = solveProblem(problem, session.reporter("plans"));
    session.progress().clear();
    if (!answer) return tl::unexpected(std::move(answer.error()).with(name));
    if (!options.output.empty()) STAGEWRIGHT_CHECK(writeFileAtomically(options.output, answer->json + "\n"));
    if (session.json)
        session.answer({{"program", answer->program},
                        {"fits", answer->fits},
                        {"sentence", answer->picture.sentence},
                        {"answer", ownJson(answer->json)}});
    session.out(answer->json + "\n");
    if (!answer->picture.sentence.empty()) session.note(answer->picture.sentence);
    if (!options.plot.empty()) {
        if (answer->picture.plot.empty())
            return fail(ErrorCode::Usage, fmt::format("nothing of {} can be drawn", name), answer->picture.sentence);
        std::string title(answer->program);
        for (const PlannerInfo& one : allExamples())
            if (one.program == exampleLike(problem)) title = one.title;
        STAGEWRIGHT_TRY(const auto text, plotText(answer->picture.plot, title, answer->picture.sentence, options.plot));
        STAGEWRIGHT_CHECK(writeFileAtomically(options.plot, text));
        session.note(fmt::format("the plot is written to {}", options.plot));
    }
    if (answer->fits) {
        STAGEWRIGHT_CHECK(saveLayout(problem, options, session));
        return ExitDone;
    }
    session.unmet(fmt::format("{}: no plan fits", name));
    return ExitDoesNotHold;
}

// A problem of Jigsaw whose jobs are recorded runs.
Result<std::string> problemOfRuns(const std::vector<std::string>& runs, Session& session)
{
    std::vector<RecordedJob> jobs;
    for (const std::string& one : runs) {
        STAGEWRIGHT_TRY(const auto stored, readRun(parseRunReference(one)));
        auto job = recordedJobOf(stored.run);
        if (!job) return tl::unexpected(std::move(job.error()).with("--jobs"));
        session.note(fmt::format("job {}: {} of run {}, {} of partial and {} of full backward a step", jobs.size(),
                                 counted(static_cast<long long>(job->partial.size()), "rank"), job->run,
                                 formatDuration(std::accumulate(job->partial.begin(), job->partial.end(), Nanos(0))),
                                 formatDuration(std::accumulate(job->full.begin(), job->full.end(), Nanos(0)))));
        jobs.push_back(std::move(*job));
    }
    return jigsawProblem(jobs);
}

// A problem of Cephalo whose cost lines recorded runs have.
Result<std::string> problemOfLines(const std::vector<std::string>& names, Session& session)
{
    std::vector<Run> runs;
    for (const std::string& one : names) {
        STAGEWRIGHT_TRY(auto stored, readRun(parseRunReference(one)));
        runs.push_back(std::move(stored.run));
    }
    auto read = cephaloProblem(runs);
    if (!read) return tl::unexpected(std::move(read.error()).with("--lines"));
    session.note("cost lines of " + read->words);
    return std::move(read->problem);
}

Result<int> runSolve(const SolveChoice& options, Session& session)
{
    const bool jobs = !options.jobs.empty();
    if (jobs || !options.lines.empty()) {
        const char* option = jobs ? "--jobs" : "--lines";
        if (!options.file.empty())
            return fail(ErrorCode::Usage, fmt::format("{} is given beside a problem", option), "leave one of them out");
        STAGEWRIGHT_TRY(const auto made,
                        jobs ? problemOfRuns(options.jobs, session) : problemOfLines(options.lines, session));
        STAGEWRIGHT_TRY(const auto problem, changed(made, options.numbers));
        if (!options.problem.empty()) STAGEWRIGHT_CHECK(writeFileAtomically(options.problem, problem));
        return solveText(problem, option, options, session);
    }
    if (!options.example.empty()) {
        if (!options.file.empty())
            return fail(ErrorCode::Usage, "an example is asked for beside a problem", "leave one of them out");
        STAGEWRIGHT_TRY(const auto made, exampleProblem(options.example));
        STAGEWRIGHT_TRY(const auto problem, changed(made, options.numbers));
        if (options.plot.empty() && options.layout.empty()) {
            if (!options.output.empty()) STAGEWRIGHT_CHECK(writeFileAtomically(options.output, problem));
            if (session.json) session.answer({{"example", ownJson(problem)}});
            session.out(problem);
            return ExitDone;
        }
        return solveText(problem, options.example, options, session);
    }
    if (options.file.empty()) {
        Json planners = Json::array();
        Table table({{"program"}, {"what it plans"}});
        for (const PlannerInfo& one : allPlanners()) {
            planners.push_back({{"program", std::string(one.program)}, {"title", std::string(one.title)}});
            table.add({std::string(one.program), std::string(one.title)});
        }
        if (session.json) session.answer({{"planners", std::move(planners)}});
        session.out(table.text(session.colourOut()));
        return ExitDone;
    }
    STAGEWRIGHT_TRY(const auto text, readFile(options.file));
    STAGEWRIGHT_TRY(const auto problem, changed(text, options.numbers));
    return solveText(problem, options.file, options, session);
}

} // namespace

Command command_solve()
{
    return {
        "solve", "Solve a problem of another system's planner: Alpa, Merak, Cephalo, COMET, Jigsaw, resharding",
        [](OptionSet& verb) -> Runner {
            auto options = std::make_shared<SolveChoice>();
            verb.value("FILE", &options->file, "The problem, as JSON; without it the planners are listed")
                .form("FILE.json");
            verb.value("-o,--output", &options->output, "Write the answer to this file").form("FILE.json").replaces();
            verb.value("--set", &options->numbers,
                       "Solve it with another number, for example between=6e10; may be repeated")
                .form("KEY=X");
            verb.value("--example", &options->example,
                       "Print a problem of this program to start from; with --plot or --save-layout, solve it")
                .form("PROGRAM");
            verb.value("--jobs", &options->jobs,
                       "A job for Jigsaw: a run that was recorded with --replicas and --cut; may be repeated")
                .form("FILE#RUN")
                .excludes("--example");
            verb.value(
                    "--lines", &options->lines,
                    "Cost lines for Cephalo: a run of replicas of one rank each, recorded with --rank-memory; one for "
                    "each size of microbatch")
                .form("FILE#RUN")
                .excludes("--example")
                .excludes("--jobs");
            verb.value("--save-problem", &options->problem,
                       "Write the problem that --jobs or --lines makes, to be changed by hand")
                .form("FILE.json")
                .replaces();
            verb.value("--plot", &options->plot,
                       "Draw the plan, by the suffix of the name: .svg, its points as .csv, for papers as .tex (TikZ)")
                .form("FILE")
                .replaces();
            verb.value("--save-layout", &options->layout,
                       "Write a plan of alpa_inter as a layout, for 'choose --layout'")
                .form("FILE.json")
                .replaces();
            verb.notes("docs/planners.md has the form of every problem and answer. Each answer is the optimum.\n"
                       "Examples: stagewright solve alpa.json --plot stages.svg\n"
                       "          stagewright solve --example comet -o comet.json\n"
                       "          stagewright solve comet.json --set between=6e10\n"
                       "          stagewright solve --lines small.stagewright#1 --lines large.stagewright#1\n"
                       "          stagewright solve --jobs partial.stagewright#1 --jobs partial.stagewright#2");
            return [options](Session& session) { return runSolve(*options, session); };
        },
        true, true};
}

} // namespace stagewright
