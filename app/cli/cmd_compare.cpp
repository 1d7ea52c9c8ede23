#include <algorithm>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/comparison_text.h"
#include "app/cli/run_access.h"
#include "app/cli/session.h"
#include "app/cli/usage.h"
#include "traces/compare/compare.h"

namespace stagewright {

namespace {

constexpr std::size_t mostRuns = 4;

struct Options {
    std::vector<std::string> runs;
    int ops = 8;
};

bool namesRunFile(const std::string& word) { return word.ends_with(".stagewright") || word.find('#') != std::string::npos; }

// F A B [C [D]], F#A G#B …, or F alone where it holds two to four runs.
Result<std::vector<RunReference>> chooseRuns(const std::vector<std::string>& words)
{
    std::vector<RunReference> chosen;
    const RunReference first = parseRunReference(words[0]);
    const bool names = words.size() > 1 && std::none_of(words.begin() + 1, words.end(), namesRunFile);
    if (words.size() == 1) {
        auto file = openRunFile(first.file);
        if (!file) return tl::unexpected(std::move(file.error()));
        auto runs = (*file)->runs();
        if (!runs) return tl::unexpected(std::move(runs.error()));
        if (runs->size() < 2 || runs->size() > mostRuns || !first.run.empty())
            return fail(ErrorCode::Usage, fmt::format("compare needs two to four runs, and {} holds {}", words[0], first.run.empty() ? runs->size() : 1),
                        fmt::format("write: stagewright compare {} A B; 'stagewright runs {}' lists them", first.file, first.file));
        for (const RunInfo& info : *runs) chosen.push_back({first.file, std::to_string(info.id)});
        return chosen;
    }
    if (names) { // runs of one file
        if (!first.run.empty() && words.size() > 2)
            return fail(ErrorCode::Usage, fmt::format("'{}' names a run already", words[0]), "write FILE A B, or FILE#A FILE#B");
        if (words.size() == 2)
            return fail(ErrorCode::Usage, fmt::format("compare needs two runs, and only '{}' is named", words[1]), "write FILE A B, or FILE#A FILE#B");
        for (std::size_t i = 1; i < words.size(); ++i) chosen.push_back({first.file, words[i]});
    } else {
        for (const std::string& word : words) chosen.push_back(parseRunReference(word));
    }
    if (chosen.size() > mostRuns)
        return fail(ErrorCode::Usage, fmt::format("{} runs are named, and {} at most are compared", chosen.size(), mostRuns));
    return chosen;
}

Result<int> run(const Options& options, Session& session)
{
    auto references = chooseRuns(options.runs);
    if (!references) return tl::unexpected(std::move(references.error()));
    std::vector<Run> runs;
    for (const RunReference& reference : *references) {
        auto stored = readRun(reference);
        if (!stored) return tl::unexpected(std::move(stored.error()));
        warnOfDamage(*stored, session);
        runs.push_back(std::move(stored->run));
    }
    std::vector<Comparison> comparisons;
    for (std::size_t i = 1; i < runs.size(); ++i) {
        auto comparison = compareRuns(runs[0], runs[i]);
        if (!comparison) return tl::unexpected(std::move(comparison.error()));
        comparisons.push_back(std::move(*comparison));
    }
    if (session.json) session.answer(comparisonJson(runs, comparisons));
    session.out(comparisonText(runs, comparisons, static_cast<std::size_t>(options.ops), session.colourOut()));
    return ExitDone;
}

} // namespace

Command command_compare()
{
    return {"compare", "Align two to four runs by op; say what changed and why", [](CLI::App& app) -> Runner {
        auto options = std::make_shared<Options>();
        app.add_option("RUNS", options->runs, "FILE A B [C [D]], or FILE#A OTHER#B …; each is set against the first")->required()->expected(1, 5);
        app.add_option("--ops", options->ops, "How many of the moved ops are listed [8]")->type_name("N")->check(wholeNumber(0, 100'000));
        app.footer("Example: stagewright compare demo.stagewright 1f1b zb-h1");
        return [options](Session& session) { return run(*options, session); };
    }};
}

} // namespace stagewright
