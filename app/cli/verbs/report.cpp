#include <algorithm>
#include <limits>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/requirement.h"
#include "app/cli/options/run_access.h"
#include "app/cli/options/setup_options.h"
#include "app/cli/session.h"
#include "app/cli/text/lever_text.h"
#include "app/cli/text/predictions.h"
#include "app/cli/text/run_json.h"
#include "app/cli/text/run_text.h"
#include "app/cli/text/table.h"
#include "app/cli/text/table_report.h"
#include "schedules/execute/perturb.h"
#include "schedules/text/draw_text.h"
#include "traces/fit/executed_run.h"
#include "traces/fit/fit_costs.h"
#include "traces/run/note_text.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

struct ReportChoice {
    std::string file;
    std::string run;
    int step = -1; // from 1, as typed; −1: not given
    int gaps = 5;
    bool residuals = false;
    bool reveal = false;
    bool slack = false;
    bool kernels = false;
    std::vector<std::string> tables; // names, and "all"
    std::vector<std::string> whatIf;
    std::vector<std::string> require;
};

constexpr std::size_t mostKernels = 25;
constexpr const char* allTables = "all";

std::vector<std::string> tableNames()
{
    std::vector<std::string> names;
    for (const AnalysisInfo* analysis : allAnalyses()) names.emplace_back(analysis->name);
    return names;
}

std::vector<std::string> tablesAsked(const ReportChoice& options)
{
    const bool all = std::find(options.tables.begin(), options.tables.end(), allTables) != options.tables.end();
    return all ? tableNames() : options.tables;
}

bool needsEveryStep(const ReportChoice& options)
{
    const std::vector<std::string> tables = tablesAsked(options);
    return std::any_of(tables.begin(), tables.end(),
                       [](const std::string& name) { return findAnalysis(name)->ofEveryStep; });
}

// For one step only what its report is made from is read. What-ifs without the run's own costs are fitted to all steps.
Result<StoredRun> readWhatIsAsked(const RunReference& reference, const ReportChoice& options)
{
    if (needsEveryStep(options)) return readRun(reference);
    auto stored = readRunForReport(reference, std::max(-1, options.step - 1));
    return stored && !options.whatIf.empty() && !stored->run.costs ? readRun(reference) : std::move(stored);
}

Json tablesJson(const StepContext& context, const std::vector<std::string>& names)
{
    if (names.empty()) return nullptr;
    Json out = Json::object();
    for (const std::string& name : names) out[name] = tableJson(reportTable(*findAnalysis(name), context));
    return out;
}

Result<std::vector<RequirementCheck>> checkRequirements(const std::vector<Requirement>& requirements,
                                                        const Json& object)
{
    std::vector<RequirementCheck> checks;
    for (const Requirement& requirement : requirements) {
        auto checked = checkRequirement(requirement, object);
        if (!checked) return tl::unexpected(std::move(checked.error()).with("--require"));
        checks.push_back(std::move(*checked));
    }
    return checks;
}

// Every requirement's sentence on stderr. False: one is not met.
bool tellChecks(const std::vector<RequirementCheck>& checks, Session& session)
{
    bool all = true;
    for (const RequirementCheck& check : checks) {
        all = all && check.holds;
        if (check.holds)
            session.note("budget met: " + check.sentence);
        else
            session.unmet("budget not met: " + check.sentence);
    }
    return all;
}

Result<int> runReport(const ReportChoice& options, Session& session)
{
    if (options.step == 0)
        return fail(ErrorCode::Usage, "--step: steps are counted from 1, warm-up included; 0 is not a step",
                    "write --step 1 for the first one");
    RunReference reference = parseRunReference(options.file);
    if (!options.run.empty()) reference.run = options.run;
    STAGEWRIGHT_TRY(auto stored, readWhatIsAsked(reference, options));
    warnOfDamage(stored, session);
    const Run& run = stored.run;
    std::vector<Requirement> requirements;
    for (const std::string& text : options.require) {
        auto requirement = parseRequirement(text);
        if (!requirement) return tl::unexpected(std::move(requirement.error()).with("--require"));
        requirements.push_back(std::move(*requirement));
    }
    std::string secret; // what the disturbance is
    if (options.reveal) {
        const auto asked = parsePerturbation(configured(run, "perturb"), run.info.ranks);
        if (!asked || !asked->secret)
            return fail(ErrorCode::Usage, fmt::format("--reveal: {} has no secret disturbance", describe(stored)),
                        "runs recorded with --perturb secret=SEED have one");
        secret = toText(revealed(*asked, run.info.ranks));
    }
    const ReportOptions wanted{.step = options.step > 0 ? options.step - 1 : -1, .levers = true};
    auto found = contextOf(run, wanted);
    if (!found) return tl::unexpected(std::move(found.error()).with(describe(stored)));
    const StepContext& context = **found;
    auto figures = reportOf(context, wanted);
    if (!figures) return tl::unexpected(std::move(figures.error()).with(describe(stored)));
    std::optional<Residuals> residuals;
    std::vector<WhatIfRow> answers;
    if (options.residuals || !options.whatIf.empty()) {
        if (!context.costs()) return tl::unexpected(Error(context.costs().error()).with(describe(stored)));
        if (options.residuals) {
            if (!context.residuals()) return tl::unexpected(Error(context.residuals().error()).with("--residuals"));
            residuals = *context.residuals();
        }
        if (!options.whatIf.empty()) {
            if (!run.schedule)
                return fail(ErrorCode::Usage,
                            fmt::format("--what-if: {} has no schedule to simulate", describe(stored)));
            const auto& executed = context.executed();
            if (!executed) return tl::unexpected(Error(executed.error()).with("--what-if"));
            auto answered = answerWhatIfs(executed->schedule, executed->costs, options.whatIf, executed->channels,
                                          executed->lowering);
            if (!answered) return tl::unexpected(std::move(answered.error()).with("--what-if"));
            answers = std::move(*answered);
        }
    }

    Json object;
    std::vector<RequirementCheck> checks; // before anything is printed: a wrong key prints nothing else
    if (session.json || !requirements.empty()) {
        object = runJson(run, *figures);
        object["file"] = stored.file;
        object["gaps"] = gapsJson(context, *figures, static_cast<std::size_t>(options.gaps));
        object["notes"] = notesJson(stored.notes);
        for (const std::string& name : tablesOf(ReportPart::Device))
            object[name] =
                figures->devices.empty() ? Json(nullptr) : tableJson(reportTable(*findAnalysis(name), context));
        object["device"] = options.kernels ? kernelsJson(context) : Json(nullptr);
        object["slack"] = options.slack ? slackJson(context) : Json(nullptr);
        object["residuals"] = residuals ? residualsJson(context, *residuals) : Json(nullptr);
        object["tables"] = tablesJson(context, tablesAsked(options));
        object["revealed"] = options.reveal ? Json(secret) : Json(nullptr);
        object["what_if"] = options.whatIf.empty() ? Json(nullptr) : whatIfJson(answers, figures->units);
        STAGEWRIGHT_TRY(checks, checkRequirements(requirements, object));
    }
    if (session.json) {
        Json list = Json::array();
        for (std::size_t i = 0; i < checks.size(); ++i)
            list.push_back(
                {{"requirement", requirements[i].text}, {"holds", checks[i].holds}, {"sentence", checks[i].sentence}});
        object["requirements"] = requirements.empty() ? Json(nullptr) : std::move(list);
        const bool kept = tellChecks(checks, session);
        session.answer(object);
        return kept ? ExitDone : ExitDoesNotHold;
    }
    const bool colour = session.colourOut();
    const auto heading = [&](const char* text) { session.out("\n" + tinted(text, Tint::Bold, colour) + "\n"); };
    session.out(headlineText(run, *figures, colour));
    if (options.reveal) session.out(fmt::format("the secret disturbance is {}\n", secret));
    const bool ops = figures->noOps.empty();
    if (ops) session.out("\n" + leversText(*figures->levers, figures->units, colour));
    if (run.info.state != RunState::Complete)
        session.out(tinted(fmt::format("this run is {}: its {} are complete\n", toText(run.info.state),
                                       plural(run.info.steps, "step")),
                           Tint::Warn, colour));
    if (!run.info.note.empty()) session.out(fmt::format("note: {}\n", run.info.note));
    if (!stored.notes.empty()) {
        heading("notes");
        for (const Note& note : stored.notes)
            session.out(fmt::format("{}: {}{}\n", placeText(note, run.timeline->timeUnit()), note.text,
                                    note.fromRun != 0 ? fmt::format("  (from run {})", note.fromRun) : ""));
    }
    if (ops) {
        heading("timeline");
        session.out(drawTimeline(*run.timeline, figures->step, session.columns(), colour));
        heading("bubbles");
        session.out(idleText(*figures, colour));
        if (const std::string gaps = largestGapsText(context, *figures, static_cast<std::size_t>(options.gaps));
            !gaps.empty()) {
            heading("largest gaps");
            session.out(gaps);
        }
    }
    if (!figures->memory.empty()) {
        heading("memory at its peak");
        session.out(memoryText(*figures, colour));
    }
    if (ops) session.out("\n" + overlapText(*figures) + "\n" + criticalPathText(run, *figures));
    const auto printTables = [&](const std::vector<std::string>& names, std::size_t mostRows) {
        for (const std::string& name : names) {
            const ReportTable table = reportTable(*findAnalysis(name), context);
            heading(inLine(std::string(table.analysis->title)).c_str());
            session.out(tableText(table, figures->units, colour, mostRows));
        }
    };
    if (!ops && !figures->devices.empty()) {
        std::vector<std::string> known;
        for (const std::string& name : tablesOf(ReportPart::Device))
            if (findAnalysis(name)->unknown(run).empty()) known.push_back(name);
        printTables(known, std::numeric_limits<std::size_t>::max());
    }
    if (options.kernels || (!ops && !figures->devices.empty())) printTables(kernelTables(run), mostKernels);
    if (options.slack) printTables({"slack_by_kind"}, std::numeric_limits<std::size_t>::max());
    if (residuals) printTables({"residuals"}, std::numeric_limits<std::size_t>::max());
    printTables(tablesAsked(options), std::numeric_limits<std::size_t>::max());
    if (!answers.empty()) {
        heading("what if");
        session.out(whatIfText(answers, figures->units, colour));
    }
    return tellChecks(checks, session) ? ExitDone : ExitDoesNotHold;
}

} // namespace

Command command_report()
{
    return {"report", "Explain a run: bubbles by cause, memory, overlap, critical path", [](OptionSet& verb) -> Runner {
                auto options = std::make_shared<ReportChoice>();
                verb.value("FILE", &options->file, "A run file, or FILE#RUN").required();
                verb.value("RUN", &options->run, "A run, by number or name [the newest]");
                verb.value("--step", &options->step,
                           "Figures of this step, from 1, warm-up included [the measured step with the median time]")
                    .form("N")
                    .check(wholeNumber(0, 1'000'000'000));
                verb.value("--gaps", &options->gaps, "How many of the largest gaps are explained [5]")
                    .form("N")
                    .check(wholeNumber(0, 10'000));
                auto names = tableNames();
                names.emplace_back(allTables);
                verb.value("--table", &options->tables, "A table of the report, or all of them; several times")
                    .form("NAME")
                    .each()
                    .check(oneOf(names));
                verb.flag("--residuals", options->residuals,
                          "What the fitted costs predict against what was measured, per op and for the step");
                verb.flag("--reveal", options->reveal,
                          "What the disturbance of a run recorded with --perturb secret=SEED is");
                verb.flag("--slack", options->slack,
                          "How much later each op could have started without the step taking longer");
                verb.flag("--kernels", options->kernels,
                          "Of GPU runs and traces: kernels by op, launch gaps, links, roofline");
                addWhatIfOption(verb, options->whatIf);
                verb.value("--require", &options->require,
                           "Exit code 1 where it does not hold: a key of --json against a number; several times")
                    .form("KEY<=X")
                    .each();
                verb.notes(
                    "Examples: stagewright report demo.stagewright zb-h1 --residuals --what-if 'B*0.5' --what-if m=16\n"
                    "          stagewright report demo.stagewright --require 'bubble_fraction<=0.12' --require "
                    "'loss[-1]<3.6'");
                return [options](Session& session) { return runReport(*options, session); };
            }};
}

} // namespace stagewright
