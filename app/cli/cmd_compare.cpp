#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/run_access.h"
#include "app/cli/run_json.h"
#include "app/cli/run_text.h"
#include "app/cli/session.h"
#include "app/cli/usage.h"
#include "traces/compare/compare.h"

namespace stagewright {

namespace {

struct Options {
    std::vector<std::string> runs;
    int ops = 8;
};

// F A B, F#A F#B, F#A G#B, or F alone where it holds two runs.
Result<std::pair<RunReference, RunReference>> chooseRuns(const std::vector<std::string>& words)
{
    if (words.size() == 3) {
        const RunReference file = parseRunReference(words[0]);
        if (!file.run.empty())
            return fail(ErrorCode::Usage, fmt::format("'{}' names a run already", words[0]), "write FILE A B, or FILE#A FILE#B");
        return std::pair(RunReference{file.file, words[1]}, RunReference{file.file, words[2]});
    }
    if (words.size() == 2) {
        const RunReference a = parseRunReference(words[0]);
        const RunReference b = parseRunReference(words[1]);
        if (a.run.empty() && b.run.empty() && !words[1].ends_with(".stagewright"))
            return fail(ErrorCode::Usage, fmt::format("compare needs two runs, and only '{}' is named", words[1]), "write FILE A B, or FILE#A FILE#B");
        return std::pair(a, b);
    }
    const RunReference only = parseRunReference(words[0]);
    auto file = openRunFile(only.file);
    if (!file) return tl::unexpected(std::move(file.error()));
    auto runs = (*file)->runs();
    if (!runs) return tl::unexpected(std::move(runs.error()));
    if (runs->size() != 2 || !only.run.empty())
        return fail(ErrorCode::Usage, fmt::format("compare needs two runs, and {} holds {}", only.file, runs->size()),
                    fmt::format("write: stagewright compare {} A B; 'stagewright runs {}' lists them", only.file, only.file));
    return std::pair(RunReference{only.file, std::to_string(runs->front().id)}, RunReference{only.file, std::to_string(runs->back().id)});
}

Result<int> run(const Options& options, Session& session)
{
    auto references = chooseRuns(options.runs);
    if (!references) return tl::unexpected(std::move(references.error()));
    auto a = readRun(references->first);
    if (!a) return tl::unexpected(std::move(a.error()));
    auto b = readRun(references->second);
    if (!b) return tl::unexpected(std::move(b.error()));
    warnOfDamage(*a, session);
    warnOfDamage(*b, session);
    auto comparison = compareRuns(a->run, b->run);
    if (!comparison) return tl::unexpected(std::move(comparison.error()));
    if (session.json) session.answer(comparisonJson(a->run, b->run, *comparison));
    session.out(comparisonText(a->run, b->run, *comparison, static_cast<std::size_t>(options.ops), session.colourOut()));
    return ExitDone;
}

} // namespace

Command command_compare()
{
    return {"compare", "Align two runs by op; say what changed and why", [](CLI::App& app) -> Runner {
        auto options = std::make_shared<Options>();
        app.add_option("RUNS", options->runs, "FILE A B, or FILE#A OTHER#B")->required()->expected(1, 3);
        app.add_option("--ops", options->ops, "How many of the moved ops are listed [8]")->type_name("N")->check(wholeNumber(0, 100'000));
        app.footer("Example: stagewright compare demo.stagewright 1f1b zb-h1");
        return [options](Session& session) { return run(*options, session); };
    }};
}

} // namespace stagewright
