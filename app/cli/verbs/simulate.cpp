#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "app/cli/command.h"
#include "app/cli/options/memory_limit.h"
#include "app/cli/options/setup_options.h"
#include "app/cli/options/setup_sources.h"
#include "app/cli/options/unused_costs.h"
#include "app/cli/session.h"
#include "app/cli/text/channel_json.h"
#include "app/cli/text/document_json.h"
#include "app/cli/text/document_text.h"
#include "app/cli/text/predictions.h"
#include "app/cli/text/run_json.h"
#include "schedules/base/text.h"
#include "schedules/execute/simulate.h"
#include "schedules/layout/choose.h"
#include "schedules/layout/layout_links.h"
#include "schedules/model/kinds.h"
#include "schedules/text/draw_text.h"
#include "traces/report/run_document.h"
#include "traces/report/table_document.h"
#include "traces/run/run_facts.h"
#include "traces/run/simulated_run.h"
#include "traces/store/add_runs.h"

namespace stagewright {

namespace {

// By rank; empty: none. Given once, or for each rank of a pipeline.
Result<std::vector<Bytes>> readLimits(const std::string& text, const CostModel& costs, const Schedule& schedule)
{
    std::vector<Bytes> given;
    for (const std::string_view item : split(text, ",")) {
        if (text.empty()) break;
        STAGEWRIGHT_TRY(auto limit, readMemoryLimit(std::string(item), costs));
        if (!limit)
            return fail(ErrorCode::Usage, fmt::format("--memory-limit {}: a rank's limit is missing", text),
                        "write 4,4,3,3");
        given.push_back(*limit);
    }
    const auto pipeline = static_cast<std::size_t>(schedule.pipelineRanks());
    if (given.size() > 1 && given.size() != pipeline)
        return fail(ErrorCode::Usage, fmt::format("--memory-limit: {} limits for {} ranks", given.size(), pipeline),
                    "give one, or one for each rank of a pipeline: 4,4,3,3");
    std::vector<Bytes> out;
    for (int rank = 0; !given.empty() && rank < schedule.ranks; ++rank)
        out.push_back(given[given.size() == 1 ? 0 : static_cast<std::size_t>(rank) % pipeline]);
    return out;
}

// What OFFLOADs have moved to the host, at most.
void addHost(document::Document& document, const std::vector<Bytes>& peaks)
{
    if (peaks.empty()) return;
    document::Figure figure{.key = "peak_on_host", .title = "Peak on the host", .kind = ColumnKind::Size};
    figure.value = static_cast<double>(*std::max_element(peaks.begin(), peaks.end()));
    figure.byRank.assign(peaks.begin(), peaks.end());
    document.add().add(std::move(figure));
}

constexpr std::size_t mostGapRows = 24;

// What --fill found: how many steps a refresh takes, what each gap holds and why its rest stays idle.
document::Section fillSection(const FilledCycle& cycle, int shownStep, Nanos unit)
{
    using namespace document;
    document::Section section{"Filled gaps"};
    Figure& steps = section.add(
        Figure{.key = "fill.steps", .title = "Steps per refresh", .kind = ColumnKind::Count, .summed = false});
    steps.value = cycle.steps;
    steps.byRank.assign(cycle.rankSteps.begin(), cycle.rankSteps.end());
    const auto add = [&](const char* key, const char* title, ColumnKind kind, double value) {
        section.add(Figure{.key = key, .title = title, .kind = kind, .value = value, .summed = false});
    };
    add("fill.idle", "Idle in a step without it, all ranks", ColumnKind::Time, static_cast<double>(cycle.idle));
    add("fill.work", "Work of a refresh, all ranks", ColumnKind::Time, static_cast<double>(cycle.work));
    const double window = static_cast<double>(cycle.makespan) * static_cast<double>(cycle.rankSteps.size());
    const double busy = window - static_cast<double>(cycle.idle);
    double placed = 0;
    for (const FillPiece& piece : cycle.placed) placed += static_cast<double>(piece.end - piece.start);
    if (window > 0) {
        add("fill.busy_before", "Busy without it", ColumnKind::Share, busy / window);
        add("fill.busy_after", "Busy with it", ColumnKind::Share, (busy + placed / cycle.steps) / window);
    }
    add("fill.unplaced", "Pieces without a place", ColumnKind::Count, static_cast<double>(cycle.unplaced.size()));
    add("fill.late", "Factors behind their backward", ColumnKind::Count, cycle.late);
    section.say(
        fmt::format("The picture shows step {} of {}; --fill kfac:step=N shows another.", shownStep, cycle.steps));
    if (cycle.late > 0)
        section.say("Factors behind their backward keep its inputs until then, which peaks don't count.");
    std::vector<int> named; // ranks
    for (const FillPiece& piece : cycle.unplaced) {
        if (std::find(named.begin(), named.end(), piece.rank) != named.end()) continue;
        named.push_back(piece.rank);
        section.say(unplacedSentence(cycle, piece, unit), Tone::Warn);
    }
    document::Table table{
        "fill.gaps.#",
        {TableColumn{"step", "step", ColumnKind::Whole}, TableColumn{"rank", "rank", ColumnKind::Whole},
         TableColumn{"start", "gap from", ColumnKind::Time}, TableColumn{"end", "to", ColumnKind::Time},
         TableColumn{"pieces", "pieces", ColumnKind::Count}, TableColumn{"holds", "holds"},
         TableColumn{"rest", "stays idle", ColumnKind::Time}, TableColumn{"why", "why"}}};
    table.mostShown = mostGapRows;
    for (const FilledGap& gap : cycle.gaps) {
        std::vector<std::string> holds; // "4 0FACTOR_A"
        for (std::size_t i = 0, next = 0; i < gap.holds.size(); i = next) {
            const Op& op = gap.holds[i];
            while (next < gap.holds.size() && gap.holds[next].kind == op.kind && gap.holds[next].stage == op.stage)
                ++next;
            holds.push_back(fmt::format("{} {}{}", next - i, op.stage, ruleOf(op.kind).text));
        }
        table.add({std::int64_t(gap.step + 1), std::int64_t(gap.rank), gap.start, gap.end,
                   static_cast<std::int64_t>(gap.holds.size()), textCell(joined(holds)), gap.rest,
                   textCell(describe(cycle, gap, unit))});
    }
    section.add(std::move(table));
    return section;
}

struct SimulateChoice {
    Setup setup;
    std::vector<std::string> whatIf;
    std::string output;
};

constexpr std::size_t mostCollectiveRows = 16;

void addReplicasJson(Json& object, const ReplicaLists& choice)
{
    object["replicas"] = choice.schedule.replicas * choice.standsFor;
    object["shard"] = toText(choice.sharding);
    if (object.find("collectives") == nullptr) object["collectives"] = nullptr;
}

// A schedule that can't end is an answer too: the cycle, with exit code 1.
Result<int> hung(const Prepared& prepared, Session& session)
{
    const ReplicaLists& replicas = prepared.state;
    const LoweredChoice& chosen = prepared.lists;
    const Validation& validation = prepared.validation;
    auto deadlock = explainDeadlock(chosen.schedule, chosen.channels);
    if (!deadlock || validation.cycle.empty()) deadlock = Deadlock{};
    if (session.json) {
        Json object = hungJson(chosen.schedule, validation);
        addDeadlockJson(object, *deadlock);
        addChannelsJson(object, chosen);
        addReplicasJson(object, replicas);
        session.answer(object);
    }
    auto valid = validation.toResult();
    Error error = valid.error();
    error.message = chosen.schedule.name + ": " + error.message;
    if (deadlock->hung())
        session.out("ranks that wait for each other:\n" + deadlockText(chosen.schedule, *deadlock, session.columns()));
    return tl::unexpected(std::move(error));
}

Result<int> runSimulate(const SimulateChoice& options, Session& session)
{
    const Setup& setup = options.setup;
    if (setup.schedules.size() > 1)
        return fail(ErrorCode::Usage,
                    fmt::format("--schedule: simulate takes one schedule, not {}", setup.schedules.size()),
                    "run it once for each; 'stagewright compare' compares stored runs");
    const SetupSources sources = sourcesOf(session);
    STAGEWRIGHT_TRY(auto prepared, prepare(setup.schedules.empty() ? "1f1b" : setup.schedules.front(), setup, sources));
    if (!prepared.validation.valid()) return hung(prepared, session);
    const ReplicaLists& replicas = prepared.state;
    const LoweredChoice& chosen = prepared.lists;
    const CostModel& costs = prepared.costs;
    const Schedule* schedule = &chosen.schedule;
    tellUnusedCosts(
        setup,
        [&](const Setup& other) -> Result<std::uint64_t> {
            STAGEWRIGHT_TRY(auto tried, costsOf(prepared.state, prepared.lists.schedule, other, sources));
            return simulatedOutcome(*schedule, tried, chosen.channels);
        },
        schedule->opCount(), schedule->name, session);
    if (replicas.shared && replicas.sharding.level != ShardLevel::None && collectivesAreFree(costs))
        session.warn(freeCollectives);
    STAGEWRIGHT_TRY(const auto limits, readLimits(setup.memoryLimit, costs, *schedule));
    const bool one = !limits.empty() &&
                     std::all_of(limits.begin(), limits.end(), [&](Bytes limit) { return limit == limits.front(); });
    const auto limit = one ? std::optional<Bytes>(limits.front()) : std::nullopt;
    STAGEWRIGHT_TRY(auto simulated, simulatedRun(*schedule, costs, chosen.channels, chosen.lowering));
    simulated.info.createdUnixMs = unixMilliseconds();
    STAGEWRIGHT_TRY(auto perturbation, choosePerturbation(setup.perturb, schedule->ranks));
    if (!perturbation.empty()) simulated.configuration.emplace_back("perturb", toText(perturbation));
    if (perturbation.secret) simulated.costs.reset(); // would give it away: the run is one of an unknown machine
    if (!setup.cluster.empty()) simulated.configuration.emplace_back("cluster", setup.cluster);
    if (!limits.empty()) simulated.configuration.emplace_back("memory_limit", setup.memoryLimit);
    if (!limits.empty()) simulated.configuration.emplace_back("memory_limit_bytes", memoryLimitText(limits));
    const auto facts = factsOf(replicas, SharedBy::Simulation);
    simulated.configuration.insert(simulated.configuration.end(), facts.begin(), facts.end());
    const ReportOptions asked{.step = 0, .memoryCap = limit, .levers = true};
    STAGEWRIGHT_TRY(const auto context, contextOf(simulated, asked));
    STAGEWRIGHT_TRY(const auto figures, reportOf(*context, asked));

    std::vector<WhatIfRow> answers;
    if (!options.whatIf.empty()) {
        auto answered = answerWhatIfs(*schedule, costs, options.whatIf, chosen.channels, chosen.lowering);
        if (!answered) return tl::unexpected(std::move(answered.error()).with("--what-if"));
        answers = std::move(*answered);
    }
    if (!options.output.empty()) {
        const Run* const runs[] = {&simulated};
        STAGEWRIGHT_TRY(const auto ids, addRuns(options.output, runs, session.reporter("spans")));
        simulated.info.id = ids.front();
    }
    RunDocumentOptions parts;
    parts.memory = replicas.shared && costs.memoryUnit == 1;
    parts.communication = simulated.costs && simulated.costs->links != Links{};
    parts.criticalPath = parts.titles = false;
    parts.data = session.json;
    document::Document document = runDocument(simulated, figures, parts);
    if (replicas.shared)
        document.sections.push_back(
            tableSection(reportTable(*findAnalysis("collectives"), *context), "collectives", mostCollectiveRows));
    if (const auto result = simulate(*schedule, costs, chosen.channels)) addHost(document, result->peakOnHost);
    if (prepared.fill)
        document.sections.push_back(fillSection(*prepared.fill, parseFill(setup.fill)->step, costs.timeUnit));
    document.sections.push_back(whatIfSection(answers));
    if (session.json) {
        Json object = documentJson(std::move(document));
        addChannelsJson(object, chosen);
        addReplicasJson(object, replicas);
        if (answers.empty()) object["what_if"] = nullptr;
        session.answer(object);
    } else {
        session.out(documentText(document, {session.colourOut(), [&](const document::Marks&) {
                                                return drawTimeline(*simulated.timeline, 0, session.columns(),
                                                                    session.colourOut());
                                            }}));
    }
    if (replicas.shared && replicas.standsFor > 1)
        session.note(fmt::format("the {} replicas are alike; one of them is shown", replicas.standsFor));
    if (!options.output.empty()) session.note(fmt::format("stored as {}#{}", options.output, simulated.info.id));
    int exit = ExitDone;
    for (std::size_t rank = 0; rank < limits.size(); ++rank) {
        const Bytes peak = figures.peak(static_cast<int>(rank));
        if (peak <= limits[rank]) continue;
        session.warn(fmt::format("rank {} holds {} at its peak, over the limit of {}", rank,
                                 figures.units.memoryText(peak), figures.units.memoryText(limits[rank])));
        exit = ExitDoesNotHold;
    }
    return exit;
}

} // namespace

Command command_simulate()
{
    return {"simulate", "Time a schedule with a cost model; print figures and a picture",
            [](OptionSet& verb) -> Runner {
                auto options = std::make_shared<SimulateChoice>();
                addSetupOptions(verb, options->setup, SetupSimulate,
                                {{"--memory-limit",
                                  "Activations a rank may hold: one limit, or one for each rank of a pipeline; exit "
                                  "code 1 if it holds more; waits for one limit are shown separately",
                                  "X|SIZE[,…]"}});
                addWhatIfOption(verb, options->whatIf);
                verb.value("-o,--output", &options->output, "Store it as a run in this file").form("FILE");
                verb.notes("Examples: stagewright simulate -s zb-h1 -p 4 -m 8 --costs F=1,I=1,W=0.5 --comm 0.1\n"
                           "          stagewright simulate -s mine.csv --costs-from demo.stagewright#3");
                return [options](Session& session) { return runSimulate(*options, session); };
            }};
}

} // namespace stagewright
