#include <algorithm>

#include <span>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/run_access.h"
#include "app/cli/session.h"
#include "app/cli/text/document_json.h"
#include "app/cli/text/document_text.h"
#include "traces/compare/comparison_document.h"
#include "traces/compare/gate.h"
#include "traces/compare/plan_of.h"
#include "traces/format/atomic_file.h"

namespace stagewright {

namespace {

constexpr std::size_t mostRuns = 4, mostJudged = 64;

struct CompareChoice {
    std::vector<std::string> runs;
    int ops = 8;
    bool opsGiven = false;
    bool plan = false; // the one run against its own plan
    bool gate = false; // the last run judged against those before
    bool withinGiven = false;
    double within = 100 * usualGate; // per cent
    bool judgedGiven = false;
    int judged = 1;    // of the runs, the last ones
    std::string junit; // a file; "": none
};

bool namesRunFile(const std::string& word)
{
    return word.ends_with(".stagewright") || word.find('#') != std::string::npos;
}

// F A B [C [D]], F#A G#B …, or F alone where it holds two to four runs.
Result<std::vector<RunReference>> chooseRuns(const std::vector<std::string>& words, std::size_t most)
{
    std::vector<RunReference> chosen;
    const RunReference first = parseRunReference(words[0]);
    const bool names = words.size() > 1 && std::none_of(words.begin() + 1, words.end(), namesRunFile);
    if (words.size() == 1) {
        STAGEWRIGHT_TRY(auto file, openRunFile(first.file));
        STAGEWRIGHT_TRY(auto runs, file->runs());
        if (runs.size() < 2 || runs.size() > mostRuns || !first.run.empty())
            return fail(ErrorCode::Usage,
                        fmt::format("compare needs two to four runs, but {} has {}", words[0],
                                    first.run.empty() ? runs.size() : 1),
                        fmt::format("write: stagewright compare {} A B; 'stagewright runs {}' lists them", first.file,
                                    first.file));
        for (const RunInfo& info : runs) chosen.push_back({first.file, std::to_string(info.id)});
        return chosen;
    }
    if (names) { // runs of one file
        if (!first.run.empty() && words.size() > 2)
            return fail(ErrorCode::Usage, fmt::format("'{}' already names a run", words[0]),
                        "write FILE A B, or FILE#A FILE#B");
        if (words.size() == 2)
            return fail(ErrorCode::Usage, fmt::format("compare needs two runs, but only '{}' is named", words[1]),
                        "write FILE A B, or FILE#A FILE#B");
        for (std::size_t i = 1; i < words.size(); ++i) chosen.push_back({first.file, words[i]});
    } else {
        for (const std::string& word : words) chosen.push_back(parseRunReference(word));
    }
    if (chosen.size() > most)
        return fail(ErrorCode::Usage,
                    fmt::format("{} runs are named, but at most {} can be compared", chosen.size(), most));
    return chosen;
}

Result<int> print(const std::vector<Run>& runs, const std::vector<Comparison>& comparisons,
                  const CompareChoice& options, Session& session, document::Section more = {})
{
    std::vector<const Run*> all;
    for (const Run& run : runs) all.push_back(&run);
    std::span<const Comparison> shown = comparisons;
    if (all.size() > mostRuns) { // of many that are judged the first and the last
        all = {all.front(), all.back()};
        shown = shown.last(1);
    }
    document::Document document = comparisonDocument(all, shown, static_cast<std::size_t>(options.ops));
    // A verdict is read first, behind the names of the runs.
    document.sections.insert(options.gate ? document.sections.begin() + 1 : document.sections.end(), std::move(more));
    if (!options.gate) document.add().fact("gate", std::string());
    if (session.json)
        session.answer(documentJson(std::move(document)));
    else
        session.out(documentText(document, {session.colourOut(), {}, session.markdown}));
    return ExitDone;
}

// The run against its schedule timed with its own costs.
Result<int> runWithPlan(const CompareChoice& options, Session& session)
{
    RunReference reference = parseRunReference(options.runs[0]);
    if (options.runs.size() > 2 || (options.runs.size() == 2 && !reference.run.empty()))
        return fail(ErrorCode::Usage, "--plan compares one run with its own plan", "write FILE RUN --plan");
    if (options.runs.size() == 2) reference.run = options.runs[1];
    STAGEWRIGHT_TRY(auto stored, readRunForReport(reference, -1));
    warnOfDamage(stored, session);
    STAGEWRIGHT_TRY(auto plan, planOf(stored.run));
    STAGEWRIGHT_TRY(auto comparison, compareRuns(plan, stored.run));
    document::Section first{"The first op that deviates"};
    if (const auto deviation = firstDeviation(plan, stored.run, comparison)) {
        const std::string place = "first_deviation.";
        first.fact(place + "op", toText(deviation->op.op));
        first.fact(place + "rank", ColumnKind::Whole, deviation->op.rank);
        first.fact(place + "start_delta_ns", ColumnKind::Count, static_cast<double>(deviation->op.startDelta));
        first.fact(place + "duration_delta_ns", ColumnKind::Count, static_cast<double>(deviation->op.durationDelta));
        first.fact(place + "sentence", deviation->sentence);
        first.say("  " + deviation->sentence);
    } else {
        first.fact("first_deviation", std::string());
        first.say("  no op by more than 2 % of the step");
    }
    std::vector<Run> runs;
    runs.push_back(std::move(plan));
    runs.push_back(std::move(stored.run));
    std::vector<Comparison> comparisons;
    comparisons.push_back(std::move(comparison));
    return print(runs, comparisons, options, session, std::move(first));
}

Result<int> judge(const std::vector<Run>& runs, const std::vector<Comparison>& comparisons,
                  const CompareChoice& options, Session& session)
{
    std::vector<const Run*> all;
    for (const Run& run : runs) all.push_back(&run);
    STAGEWRIGHT_TRY(auto gate,
                    gateOf(all, comparisons, options.within / 100, static_cast<std::size_t>(options.judged)));
    if (!options.junit.empty()) STAGEWRIGHT_CHECK(writeFileAtomically(options.junit, gateJunit(gate, runs.back())));
    const Timeline& timeline = *runs[0].timeline;
    STAGEWRIGHT_CHECK(
        print(runs, comparisons, options, session, gateSection(gate, {timeline.timeUnit(), timeline.memoryUnit()})));
    if (gate.worse()) session.unmet(runs.back().info.name + " is " + gate.sentence());
    return gate.worse() ? ExitDoesNotHold : ExitDone;
}

Result<int> runCompare(const CompareChoice& options, Session& session)
{
    if (session.json && options.opsGiven) session.note("--ops is not used: --json lists every op");
    for (const auto& [given, name] : {std::pair(options.withinGiven, "--within"),
                                      {!options.junit.empty(), "--junit"},
                                      {options.judgedGiven, "--new"}})
        if (given && !options.gate)
            return fail(ErrorCode::Usage, fmt::format("{} says how --gate judges, which is missing", name));
    if (options.gate && options.plan)
        return fail(ErrorCode::Usage, "--gate judges a run by runs before it, --plan by its plan: take one of them");
    if (options.plan) return runWithPlan(options, session);
    STAGEWRIGHT_TRY(auto references, chooseRuns(options.runs, options.gate ? mostJudged : mostRuns));
    if (static_cast<std::size_t>(options.judged) >= references.size())
        return fail(ErrorCode::Usage, fmt::format("--new {}: of {} one at least is from before", options.judged,
                                                  counted(static_cast<long long>(references.size()), "run")));
    std::vector<Run> runs;
    for (const RunReference& reference : references) {
        STAGEWRIGHT_TRY(auto stored, readRunForReport(reference, -1));
        warnOfDamage(stored, session);
        for (std::size_t i = 0; i < runs.size(); ++i)
            if (references[i].file == reference.file && runs[i].info.id == stored.run.info.id &&
                references[i].run != reference.run)
                return fail(ErrorCode::Usage,
                            fmt::format("{} and {} are both run {}: a name finds the newest of that schedule",
                                        references[i].run, reference.run, stored.run.info.id),
                            "write the other one's number");
        runs.push_back(std::move(stored.run));
    }
    std::vector<Comparison> comparisons;
    for (std::size_t i = 1; i < runs.size(); ++i) {
        STAGEWRIGHT_TRY(auto comparison, compareRuns(runs[0], runs[i]));
        comparisons.push_back(std::move(comparison));
    }
    return options.gate ? judge(runs, comparisons, options, session) : print(runs, comparisons, options, session);
}

} // namespace

Command command_compare()
{
    return {.name = "compare",
            .summary = "Align two to four runs by op; show what changed and why",
            .setUp = [](OptionSet& verb) -> Runner {
                auto options = std::make_shared<CompareChoice>();
                verb.value(
                        "RUNS", &options->runs,
                        "FILE A B [C [D]], or FILE#A OTHER#B …; each is compared with the first; with --plan: FILE [A]")
                    .required()
                    .values(1, static_cast<int>(mostJudged) + 1);
                verb.value("--ops", &options->ops, "Number of moved ops to list [8]")
                    .form("N")
                    .given(options->opsGiven)
                    .check(wholeNumber(0, 100'000));
                verb.flag("--plan", options->plan,
                          "Compare one run with its plan: its own schedule, timed with costs fitted from the run");
                verb.flag("--gate", options->gate,
                          "Judge the last run by those before, recorded in turn: exit code 1 if its step, a stage's "
                          "work or a peak is "
                          "larger by more than noise");
                verb.value("--within", &options->within, "With --gate: a larger change than this is worse [2]")
                    .form("PERCENT")
                    .given(options->withinGiven)
                    .check(realNumber(0, 1000));
                verb.value("--new", &options->judged, "With --gate: so many of the runs, the last ones, are judged [1]")
                    .form("N")
                    .given(options->judgedGiven)
                    .check(wholeNumber(1, static_cast<int>(mostJudged) - 1));
                verb.value("--junit", &options->junit, "With --gate: write the verdict to this file, for CI")
                    .form("FILE")
                    .replaces();
                verb.notes("Examples: stagewright compare demo.stagewright 1f1b zb-h1\n"
                           "          stagewright compare pair.stagewright 1f1b new.csv --gate --junit "
                           "verdict.xml\n"
                           "          stagewright compare job.stagewright 3 --plan");
                return [options](Session& session) { return runCompare(*options, session); };
            },
            .document = true};
}

} // namespace stagewright
