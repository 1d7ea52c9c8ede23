#include <algorithm>
#include <filesystem>
#include <limits>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/requirement.h"
#include "app/cli/options/run_access.h"
#include "app/cli/options/setup_options.h"
#include "app/cli/session.h"
#include "app/cli/text/document_json.h"
#include "app/cli/text/document_text.h"
#include "app/cli/text/predictions.h"
#include "schedules/base/step_number.h"
#include "schedules/execute/perturb.h"
#include "schedules/text/draw_text.h"
#include "traces/analysis/kernels.h"
#include "traces/fit/executed_run.h"
#include "traces/report/run_document.h"
#include "traces/report/table_document.h"
#include "traces/run/run_facts.h"
#include "traces/run/run_link.h"

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
    bool link = false;
    std::vector<std::string> tables; // names, and "all"
    std::vector<std::string> whatIf;
    std::vector<std::string> require;
};

constexpr std::size_t mostKernels = 25;
constexpr std::size_t allRows = std::numeric_limits<std::size_t>::max();
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

void addTables(document::Document& document, const StepContext& context, const std::vector<std::string>& names,
               const std::string& place = {}, std::size_t mostRows = allRows)
{
    for (const std::string& name : names)
        document.sections.push_back(
            tableSection(reportTable(*findAnalysis(name), context), place.empty() ? place : place + name, mostRows));
}

// Beyond the run's own report: what the devices did, slack, the file.
void addSections(document::Document& document, const StepContext& context, const RunReport& figures,
                 const ReportChoice& options, const StoredRun& stored)
{
    const Run& run = stored.run;
    const bool ops = figures.noOps.empty(), devices = hasKernels(*run.timeline);
    for (const std::string& name : tablesOf(ReportPart::Device)) {
        document.add().fact(name, std::string());
        if (!devices) continue;
        document.sections.push_back(tableSection(reportTable(*findAnalysis(name), context), name, allRows));
        document.sections.back().shown = !ops && findAnalysis(name)->unknown(run).empty();
    }
    if (options.kernels || (!ops && devices)) addTables(document, context, kernelTables(run), {}, mostKernels);
    document.add().fact("device", std::string());
    if (options.kernels) document.sections.push_back(kernelsSection(context, "device"));
    if (options.slack) addTables(document, context, {"slack_by_kind"});
    document.add().fact("slack", std::string());
    if (options.slack) document.sections.push_back(slackSection(context, "slack"));
    document.add().fact("file", stored.file);
    document.add().fact("tables", std::string());
}

// To the step, and to each of its largest gaps.
document::Section linksSection(const StoredRun& stored, const RunReport& figures, std::size_t gaps)
{
    document::Section section{"Links"};
    RunLink link;
    link.file = std::filesystem::absolute(stored.file).lexically_normal().string();
    link.run = std::to_string(stored.run.info.id);
    link.step = stepNumber(figures.step);
    section.fact("link", toText(link));
    section.say(toText(link));
    std::vector<const Gap*> longest;
    for (const Gap& gap : figures.bubbles.gaps) longest.push_back(&gap);
    std::stable_sort(longest.begin(), longest.end(),
                     [](const Gap* a, const Gap* b) { return a->end - a->start > b->end - b->start; });
    longest.resize(std::min(longest.size(), gaps));
    for (const Gap* gap : longest) {
        link.range = {gap->start, gap->end};
        section.say(fmt::format("{}  rank {} is idle: {}", toText(link), gap->rank, toText(gap->cause)));
    }
    return section;
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

    RunDocumentOptions parts;
    parts.context = &context;
    parts.explained = static_cast<std::size_t>(options.gaps);
    parts.notes = &stored.notes;
    parts.data = session.json || !requirements.empty();
    document::Document document = runDocument(run, *figures, parts);
    addSections(document, context, *figures, options, stored);
    if (residuals) addTables(document, context, {"residuals"});
    if (residuals) document.sections.push_back(residualsSection(context, *residuals, "residuals"));
    if (!residuals) document.add().fact("residuals", std::string());
    addTables(document, context, tablesAsked(options), "tables.");
    if (options.link)
        document.sections.push_back(linksSection(stored, *figures, parts.explained));
    else
        document.add().fact("link", std::string());
    document.add().fact("revealed", secret);
    if (options.reveal) document.sections[1].say(fmt::format("the secret disturbance is {}", secret));
    if (answers.empty())
        document.add().fact("what_if", std::string());
    else
        document.sections.push_back(whatIfSection(answers));

    std::vector<RequirementCheck> checks; // before anything is printed: a wrong key prints nothing else
    Json object;
    if (session.json || !requirements.empty()) {
        object = documentJson(session.json ? std::move(document) : document);
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
    const bool colour = session.colourOut() && !session.markdown;
    const auto timeline = [&](const document::Marks&) {
        return drawTimeline(*run.timeline, figures->step, session.columns(), colour);
    };
    session.out(documentText(document, {colour, timeline, session.markdown}));
    return tellChecks(checks, session) ? ExitDone : ExitDoesNotHold;
}

} // namespace

Command command_report()
{
    return {.name = "report",
            .summary = "Explain a run: bubbles by cause, memory, overlap, critical path",
            .setUp = [](OptionSet& verb) -> Runner {
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
                verb.flag("--link", options->link, "Links to the step and its largest gaps, which the desktop opens");
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
            },
            .document = true};
}

} // namespace stagewright
