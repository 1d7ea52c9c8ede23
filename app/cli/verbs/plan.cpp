#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/options/memory_limit.h"
#include "app/cli/options/run_access.h"
#include "app/cli/options/setup_options.h"
#include "app/cli/options/setup_sources.h"
#include "app/cli/options/unused_costs.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/document_json.h"
#include "app/cli/text/document_text.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/table.h"
#include "schedules/base/hashing.h"
#include "schedules/execute/simulate.h"
#include "schedules/layout/partition.h"
#include "schedules/library/registry.h"
#include "schedules/plan/plan.h"
#include "schedules/text/cost_json.h"
#include "schedules/text/csv.h"
#include "schedules/text/draw_text.h"
#include "schedules/text/link_text.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/fit/measured_layers.h"
#include "traces/format/atomic_file.h"
#include "traces/run/simulated_run.h"

namespace stagewright {

namespace {

struct PlanChoice {
    int ranks = 4;
    int microbatches = 8;
    int chunks = 1;
    Setup setup; // its costs and replicas
    std::vector<std::string> memoryLimits;
    std::string objective = "makespan";
    double budget = 5;
    int seed = 1;
    int points = 0;
    std::string output;
    std::string partition;
    bool chunksGiven = false;
};

Result<std::uint64_t> outcomeOf(const Schedule& shape, const CostModel& costs);

Result<PlanRequest> readRequest(const PlanChoice& options, const SetupSources& sources, Session& session)
{
    PlanRequest request;
    request.ranks = options.ranks;
    request.microbatches = options.microbatches;
    request.chunks = options.chunks;
    request.objective = options.objective == "span" ? Objective::Span : Objective::Makespan;
    request.seconds = options.budget;
    request.seed = static_cast<std::uint64_t>(options.seed);
    // The costs are those of a schedule with the planner's placement and passes.
    STAGEWRIGHT_TRY(auto shape, makeSchedule(options.chunks == 1 ? "zb-h1" : "v-zb:reorder=no",
                                             {options.ranks, options.microbatches, options.chunks}));
    shape.name = "the plan";
    STAGEWRIGHT_TRY(request.costs, chooseCosts(shape, options.setup, sources));
    tellUnusedCosts(
        options.setup,
        [&](const Setup& other) -> Result<std::uint64_t> {
            const auto tried = chooseCosts(shape, other, sources);
            return tried ? outcomeOf(shape, *tried) : Result<std::uint64_t>(tl::unexpected(tried.error()));
        },
        shape.opCount(), shape.name, session);
    for (const std::string& text : options.memoryLimits) {
        STAGEWRIGHT_TRY(auto limit, readMemoryLimit(text, request.costs));
        if (limit) request.caps.push_back(*limit);
    }
    if (request.caps.size() == 1) request.caps.assign(static_cast<std::size_t>(options.ranks), request.caps.front());
    if (!request.caps.empty() && request.caps.size() != static_cast<std::size_t>(options.ranks))
        return fail(ErrorCode::Usage,
                    fmt::format("--memory-limit: {} limits for {} ranks", request.caps.size(), options.ranks),
                    "give one, or one for each rank: 4,4,3,3");
    return request;
}

// What a plan is made from, as one number: an order with I and W, and what full backwards take.
Result<std::uint64_t> outcomeOf(const Schedule& shape, const CostModel& costs)
{
    auto out = simulatedOutcome(shape, costs);
    for (int stage = 0; out && stage < shape.stages; ++stage)
        for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch)
            *out = mixBits(*out + static_cast<std::uint64_t>(costs.duration(
                                      makeBackward(stage, microbatch), shape.placement.rankOf(stage, microbatch))));
    return out;
}

Json unitArray(const std::vector<Bytes>& values, const Units& units)
{
    Json out = Json::array();
    for (Bytes value : values) out.push_back(units.memoryValue(value));
    return out;
}

Json leftOutJson(const std::vector<CostLeftOut>& leftOut)
{
    Json out = Json::array();
    for (const CostLeftOut& one : leftOut) out.push_back({{"what", one.what}, {"reason", one.reason}});
    return out;
}

// "left out of the costs: jitter (an order is planned for usual times)"; "" where nothing is.
std::string leftOutText(const std::vector<CostLeftOut>& leftOut)
{
    std::string out;
    for (const CostLeftOut& one : leftOut)
        out += fmt::format("{}{} ({})", out.empty() ? "left out of the costs: " : ", ", one.what, one.reason);
    return out;
}

Json planJson(const PlanRequest& request, const Plan& plan, const Units& units)
{
    auto result = simulate(plan.schedule, request.costs);
    Json object{{"schedule", plan.schedule.name},
                {"ranks", request.ranks},
                {"stages", plan.schedule.stages},
                {"microbatches", request.microbatches},
                {"chunks", request.chunks},
                {"time_unit", units.timeName()},
                {"objective", request.objective == Objective::Span ? "span" : "makespan"},
                {"makespan", units.timeValue(plan.makespan)},
                {"span", units.timeValue(plan.span)},
                {"bubble_fraction", nullptr},
                {"bubble_rate_span", nullptr},
                {"memory_limit", request.caps.empty() ? Json(nullptr) : unitArray(request.caps, units)},
                {"peak_activation", request.costs.knowsActivations() ? unitArray(plan.peaks, units) : Json(nullptr)},
                {"bound", units.timeValue(plan.bound)},
                {"gap", plan.gap},
                {"optimal", plan.optimal},
                {"proven_by", plan.provenBy},
                {"costs_left_out", leftOutJson(plan.leftOut)},
                {"bound_limit", plan.limit.empty() ? Json(nullptr) : Json(plan.limit)},
                {"found_by", plan.foundBy},
                {"orders_timed", plan.tries},
                {"relaxations_solved", plan.nodes},
                {"interrupted", plan.interrupted},
                {"csv", nullptr}};
    if (result) {
        const SimFigures figures = figuresOf(plan.schedule, *result);
        object["bubble_fraction"] = figures.bubbleFraction;
        object["bubble_rate_span"] = figures.bubbleRateSpan;
    }
    if (auto csv = writeScheduleCsv(plan.schedule)) object["csv"] = *csv;
    return object;
}

std::string proofText(const Plan& plan, const Units& units)
{
    if (plan.optimal) return fmt::format("optimal: no order within the caps is shorter ({})", plan.provenBy);
    return fmt::format("no order within the caps is shorter than {} ({}){}: at most {} away from the best",
                       units.timeText(plan.bound), plan.provenBy,
                       plan.leftOut.empty() ? "" : " without what is left out of the costs", formatPercent(plan.gap));
}

// The plan in every replica, with the ops of the shared state where the rules put them. The order was planned without
// them.
struct SharedPlan {
    ReplicaLists choice;
    CostModel costs;
    std::shared_ptr<const Timeline> timeline;
};

Result<SharedPlan> sharePlan(const PlanChoice& options, const PlanRequest& request, const Plan& plan)
{
    STAGEWRIGHT_TRY(auto choice,
                    shareState(plan.schedule, options.setup, {.ofMicrobatches = [](int) -> Result<Schedule> {
                                   return fail(ErrorCode::Usage,
                                               "--replica-batch: a plan has one number of microbatches",
                                               "plan each number on its own, and simulate them together");
                               }}));
    SharedPlan out{std::move(choice), request.costs, nullptr};
    shareCosts(out.costs, out.choice);
    STAGEWRIGHT_TRY(out.timeline, simulatedTimeline(out.choice.schedule, out.costs));
    return out;
}

// Largest sum over the categories at one moment, by rank.
std::vector<Bytes> fullestMoments(const Timeline& timeline)
{
    std::vector<Bytes> out(static_cast<std::size_t>(timeline.ranks()), 0);
    for (std::size_t rank = 0; rank < out.size(); ++rank) {
        Bytes now = 0;
        const auto events = timeline.memoryOf(static_cast<int>(rank));
        for (std::size_t i = 0; i < events.size(); ++i) {
            now += events[i].delta;
            if (i + 1 == events.size() || events[i + 1].time != events[i].time) out[rank] = std::max(out[rank], now);
        }
    }
    return out;
}

std::string sharedText(const SharedPlan& shared, const Units& units)
{
    const ReplicaLists& choice = shared.choice;
    std::string peaks;
    for (const Bytes peak : fullestMoments(*shared.timeline))
        peaks += (peaks.empty() ? "" : " ") + units.memoryText(peak);
    return fmt::format(
        "{} replicas, {}: a step with gathers, reductions and the optimizer takes {}; memory by rank {}\n",
        choice.schedule.replicas * choice.standsFor,
        choice.sharding.level == ShardLevel::None ? "nothing shared"
                                                  : fmt::format("{} shared", toText(choice.sharding)),
        units.timeText(shared.timeline->end() - shared.timeline->begin()), peaks);
}

Json sharedJson(const SharedPlan& shared, const Units& units)
{
    return {{"replicas", shared.choice.schedule.replicas * shared.choice.standsFor},
            {"shard", toText(shared.choice.sharding)},
            {"step", units.timeValue(shared.timeline->end() - shared.timeline->begin())},
            {"memory", unitArray(fullestMoments(*shared.timeline), units)}};
}

Result<void> store(const PlanChoice& options, const SharedPlan& shared, Session& session)
{
    if (options.output.empty()) return {};
    if (options.output.ends_with(".csv")) {
        STAGEWRIGHT_TRY(auto csv, writeScheduleCsv(shared.choice.schedule));
        STAGEWRIGHT_CHECK(writeFileAtomically(options.output, csv));
        session.note(fmt::format("written to {}", options.output));
        return {};
    }
    STAGEWRIGHT_TRY(auto run, simulatedRun(shared.choice.schedule, shared.costs));
    const auto facts = factsOf(shared.choice, SharedBy::Simulation);
    run.configuration.insert(run.configuration.end(), facts.begin(), facts.end());
    run.info.createdUnixMs = unixMilliseconds();
    STAGEWRIGHT_TRY(auto file, openRunFile(options.output, OpenMode::Create));
    STAGEWRIGHT_TRY(auto id, file->add(run));
    session.note(fmt::format("stored as {}#{}", options.output, id));
    return {};
}

// How a library schedule compares with the plan of the largest cap that is not above its peak, and what else differs.
std::string placeOf(const LibraryPoint& point, const std::vector<ParetoPoint>& curve)
{
    const ParetoPoint* same = nullptr;
    for (const ParetoPoint& planned : curve)
        if (planned.cap <= point.peak) same = &planned;
    std::string place = "below every cap";
    if (same) {
        const double more =
            static_cast<double>(point.objective) / static_cast<double>(std::max<Nanos>(same->plan.objective, 1)) - 1;
        place = more > 0.0005 ? fmt::format("{} longer than the plan", formatPercent(more)) : "on it";
        if (more < -0.0005)
            place = point.planned || same->cap < point.peak
                        ? "below it: between two caps"
                        : fmt::format("{} shorter than the plan", formatPercent(-more));
    }
    if (point.asynchronous) return place + "; stale weights";
    if (point.copies) return place + "; weights twice";
    return point.planned ? place : place + "; other stages or ops";
}

Result<int> runPareto(const PlanChoice& options, const PlanRequest& request, const SetupSources& sources,
                      Session& session)
{
    STAGEWRIGHT_TRY(auto found,
                    pareto(request, options.points, session.reporter("planning"),
                           [&](const Schedule& schedule) { return chooseCosts(schedule, options.setup, sources); }));
    session.progress().clear();
    const Units units{request.costs.timeUnit, request.costs.memoryUnit};
    using enum ColumnKind;
    document::Table curve{"curve.#",
                          {TableColumn{"cap", "cap", Size}, TableColumn{"objective", options.objective, Time},
                           TableColumn{"bound", "bound", Time}, document::unshown("gap"),
                           document::unshown("optimal", Truth), document::Column({{}, "gap", Whole}),
                           TableColumn{"peak", "peak", Size}, TableColumn{"found_by", "found by"}}};
    for (const ParetoPoint& point : found.curve) {
        const Plan& plan = point.plan;
        curve.add({point.cap, plan.objective, plan.bound, plan.gap, std::int64_t(plan.optimal),
                   plan.optimal ? std::string("optimal") : formatPercent(plan.gap),
                   *std::max_element(plan.peaks.begin(), plan.peaks.end()), plan.foundBy});
    }
    document::Table library{"library.#",
                            {TableColumn{"schedule", "schedule"}, TableColumn{"peak", "peak", Size},
                             TableColumn{"objective", options.objective, Time}, TableColumn{{}, "against the curve"},
                             document::unshown("planned", Truth), document::unshown("asynchronous", Truth),
                             document::unshown("copies", Truth)}};
    for (const LibraryPoint& point : found.library)
        library.add({point.name, point.peak, point.objective, placeOf(point, found.curve), std::int64_t(point.planned),
                     std::int64_t(point.asynchronous), std::int64_t(point.copies)});
    document::Table leftOut = document::dataTable("left_out.#", "schedule reason");
    for (const auto& [name, reason] : found.leftOut) {
        leftOut.add({name, reason});
        session.note(fmt::format("not compared: {}: {}", name, reason));
    }
    document::Document document{{}, {}, units};
    for (document::Table* table : {&curve, &library, &leftOut}) document.add().add(std::move(*table));
    if (session.json) {
        Json object{{"objective", options.objective},
                    {"time_unit", units.timeName()},
                    {"interrupted", found.interrupted},
                    {"costs_left_out", leftOutJson(leftOutOf(request))}};
        object.update(documentJson(document));
        session.answer(object);
    }
    session.out(documentText(document, {session.colourOut()}));
    if (const std::string costs = leftOutText(leftOutOf(request)); !costs.empty()) session.out("\n" + costs + "\n");
    return found.interrupted ? ExitInterrupted : ExitDone;
}

// "E 12 L", "2 mtp": what a stage has.
std::string contentOf(const PartitionProblem& problem, int begin, int end)
{
    std::string out;
    int blocks = 0, predictions = 0;
    bool embedding = false, loss = false;
    for (int i = begin; i < end; ++i) {
        const auto kind = problem.layers[static_cast<std::size_t>(i)].kind;
        blocks += kind == ModelLayer::Kind::Block ? 1 : 0;
        predictions += kind == ModelLayer::Kind::Prediction ? 1 : 0;
        embedding = embedding || kind == ModelLayer::Kind::Embedding;
        loss = loss || kind == ModelLayer::Kind::Loss;
    }
    const auto add = [&](const std::string& text) { out += (out.empty() ? "" : "+") + text; };
    if (embedding) add("E");
    if (blocks > 0) add(std::to_string(blocks));
    if (predictions > 0) add(fmt::format("{}m", predictions));
    if (loss) add("L");
    return out;
}

// "" where Megatron-LM does not run it: it places stages in loops, and has rules for what a stage may hold.
std::string megatronOf(const PartitionProblem& problem, const PartitionFound& found)
{
    for (int stage = 0; stage < found.schedule.stages; ++stage)
        if (found.schedule.placement.rankOf(stage, 0) != stage % problem.ranks) return {};
    return megatronText(problem, found.bounds, problem.ranks).value_or(std::string());
}

std::vector<int> blocksOf(const PartitionProblem& problem, const std::vector<int>& bounds)
{
    std::vector<int> out;
    for (std::size_t stage = 0; stage + 1 < bounds.size(); ++stage)
        out.push_back(static_cast<int>(
            std::count_if(problem.layers.begin() + bounds[stage], problem.layers.begin() + bounds[stage + 1],
                          [](const ModelLayer& layer) { return layer.kind == ModelLayer::Kind::Block; })));
    return out;
}

Json measuredJson(const std::optional<MeasuredLayers>& measured)
{
    if (!measured) return nullptr;
    return {{"mean_error", measured->meanError},
            {"largest_error", measured->largestError},
            {"in_layers", measured->byLayers},
            {"unknown", measured->unknown}};
}

std::string measuredText(const MeasuredLayers& measured)
{
    std::string out;
    if (measured.byLayers > 0)
        out = fmt::format("{} of the ops' time is in layers, the rest in each op; so summed, ops are {} from those "
                          "measured on the mean, at most {}\n",
                          formatPercent(measured.byLayers), formatPercent(measured.meanError),
                          formatPercent(measured.largestError));
    for (const std::string& one : measured.unknown) out += "unknown: " + one + "\n";
    return out;
}

// A rank's memory instead of the device's.
Result<void> capPartition(PartitionProblem& problem, const std::vector<std::string>& limits)
{
    if (limits.empty()) return {};
    if (limits.size() > 1)
        return fail(ErrorCode::Usage, "--memory-limit: --partition takes one memory for all ranks", "give one");
    if (limits.front() == "none") {
        problem.cap = 0;
        return {};
    }
    auto cap = parseBytes(limits.front());
    if (!cap) return tl::unexpected(std::move(cap.error()).with("--memory-limit"));
    if (*cap <= 0) return fail(ErrorCode::Usage, "--memory-limit: it is 0", "give a size such as 64GB, or none");
    problem.cap = *cap;
    return {};
}

// The ranks of a division that exceed the cap, with their stages and by how much.
std::vector<std::string> overCapOf(const PartitionProblem& problem, const PartitionFound& found)
{
    std::vector<std::string> out;
    for (int rank = 0; rank < problem.ranks; ++rank) {
        const auto& held = found.ranks[static_cast<std::size_t>(rank)];
        if (problem.cap <= 0 || held.sum() <= problem.cap) continue;
        std::vector<std::string> stages;
        for (int stage = 0; stage < found.schedule.stages; ++stage)
            if (found.schedule.placement.rankOf(stage, 0) == rank) stages.push_back(std::to_string(stage));
        out.push_back(fmt::format("rank {} ({} {}) needs {}, {} of state and {} of activations: {} over {}", rank,
                                  stages.size() == 1 ? "stage" : "stages", fmt::join(stages, ", "),
                                  formatBytes(held.sum()), formatBytes(held.state), formatBytes(held.activations),
                                  formatBytes(held.sum() - problem.cap), formatBytes(problem.cap)));
    }
    return out;
}

Result<int> runPartition(const PlanChoice& options, Session& session)
{
    if (options.points > 0) return fail(ErrorCode::Usage, "--partition can't be combined with --pareto", "omit it");
    PartitionProblem problem;
    std::optional<MeasuredLayers> measured;
    if (options.partition.find(".stagewright") != std::string::npos) {
        STAGEWRIGHT_TRY(const auto stored, readRun(parseRunReference(options.partition)));
        auto read = measuredLayersOf(stored.run);
        if (!read) return tl::unexpected(std::move(read.error()).with("--partition"));
        measured = std::move(*read);
        problem = measured->problem;
    } else if (options.partition.ends_with(".json")) {
        STAGEWRIGHT_TRY(const auto text, readFile(options.partition));
        auto read = parseModelLayers(text);
        if (!read) return tl::unexpected(std::move(read.error()).with(options.partition));
        problem = std::move(*read);
    } else {
        auto read = modelLayersOf(options.partition);
        if (!read) return tl::unexpected(std::move(read.error()).with("--partition"));
        problem = std::move(*read);
    }
    STAGEWRIGHT_CHECK(capPartition(problem, options.memoryLimits));
    problem.ranks = options.ranks;
    problem.microbatches = options.microbatches;
    if (options.chunksGiven) problem.chunks = {options.chunks};
    auto answer = planPartition(problem, std::max(0.1, options.budget), session.reporter("partitions"));
    session.progress().clear();
    if (!answer) return tl::unexpected(std::move(answer.error()).with("--partition"));
    const auto right = Table::Align::Right;
    Table table({{"divided by"},
                 {"schedule"},
                 {"chunks", right},
                 {"longest stage", right},
                 {"step", right},
                 {"state", right},
                 {"activations", right},
                 {"of the cap", right},
                 {"layers by stage"}});
    Json rows = Json::array();
    std::string exceeding;
    const PartitionFound& first = answer->found.front();
    const PartitionFound& best = answer->found.back();
    for (const PartitionFound& one : answer->found) {
        std::string stages;
        std::vector<int> counts;
        for (std::size_t k = 0; k + 1 < one.bounds.size(); ++k) {
            stages += (stages.empty() ? "" : " ") + contentOf(problem, one.bounds[k], one.bounds[k + 1]);
            counts.push_back(one.bounds[k + 1] - one.bounds[k]);
        }
        const PartitionFound::Held& fullest = one.fullest();
        const auto over = overCapOf(problem, one);
        table.add({one.method, one.schedule.name, std::to_string(one.chunks()), formatDuration(one.longest),
                   formatDuration(one.step), formatBytes(fullest.state), formatBytes(fullest.activations),
                   problem.cap > 0
                       ? formatPercent(static_cast<double>(fullest.sum()) / static_cast<double>(problem.cap))
                       : "no cap",
                   stages},
                  !over.empty()   ? Tint::Bad
                  : &one == &best ? Tint::Bold
                                  : Tint::None);
        if (!over.empty())
            exceeding += fmt::format(
                "{} does not fit: {}{}\n", one.method, over.front(),
                over.size() > 1 ? fmt::format("; {} more, too", plural(static_cast<int>(over.size()) - 1, "rank"))
                                : "");
        Json held = Json::array();
        for (const auto& rank : one.ranks)
            held.push_back({{"state_bytes", rank.state}, {"activation_bytes", rank.activations}});
        rows.push_back({{"method", one.method},
                        {"schedule", one.schedule.name},
                        {"chunks", one.chunks()},
                        {"longest_stage_ns", one.longest},
                        {"step_ns", one.step},
                        {"state_bytes", fullest.state},
                        {"activation_bytes", fullest.activations},
                        {"fits", over.empty()},
                        {"over", over},
                        {"ranks", std::move(held)},
                        {"layers", counts},
                        {"megatron", textOrNull(megatronOf(problem, one))}});
    }
    if (session.json)
        session.answer({{"layers", static_cast<std::int64_t>(problem.layers.size())},
                        {"rows", std::move(rows)},
                        {"bound_ns", answer->bound},
                        {"gap", answer->gap()},
                        {"cap_bytes", problem.cap > 0 ? Json(problem.cap) : Json(nullptr)},
                        {"measured", measuredJson(measured)},
                        {"interrupted", answer->interrupted}});
    session.out(fmt::format("{} on {}, {}\n", problem.origin, plural(problem.ranks, "rank"),
                            plural(problem.microbatches, "microbatch")));
    if (measured) session.out(measuredText(*measured));
    session.out(table.text(session.colourOut()));
    if (!exceeding.empty()) session.out("\n" + exceeding);
    session.out(
        fmt::format("\n{:.2f} times as fast as even{}; no division and order is shorter than {}: at most {} away "
                    "from the best\n",
                    static_cast<double>(first.step) / static_cast<double>(best.step),
                    first.over(problem) > 0 ? ", which does not fit" : "", formatDuration(answer->bound),
                    formatPercent(answer->gap())));
    if (const auto text = megatronOf(problem, best); !text.empty())
        session.out(fmt::format("Megatron-LM: --pipeline-model-parallel-layout '{}'\n", text));
    else
        session.note("Megatron-LM does not place these stages so; rows with a loop have its text in --json");
    if (!options.output.empty()) {
        if (!options.output.ends_with(".json"))
            return fail(ErrorCode::Usage, fmt::format("-o {}: of a partition the costs are written", options.output),
                        "name a file NAME.json; the order is written beside it as NAME.csv");
        const std::string order = options.output.substr(0, options.output.size() - 5) + ".csv";
        STAGEWRIGHT_TRY(const auto csv, writeScheduleCsv(best.schedule));
        STAGEWRIGHT_CHECK(writeFileAtomically(options.output, writeCostsJson(partitionCosts(problem, best.bounds))));
        STAGEWRIGHT_CHECK(writeFileAtomically(order, csv));
        session.note(
            fmt::format("its costs and its order: stagewright simulate -s {} --costs {}", order, options.output));
        if (measured)
            session.note(fmt::format("train it: stagewright record -s {} --model … --stage-layers {}", order,
                                     fmt::join(blocksOf(problem, best.bounds), ",")));
    }
    if (answer->interrupted) return ExitInterrupted;
    const auto over = overCapOf(problem, best);
    if (over.empty()) return ExitDone;
    session.unmet(
        fmt::format("no division that was found fits {}; of the nearest {}", formatBytes(problem.cap), over.front()));
    return ExitDoesNotHold;
}

Result<int> runPlan(const PlanChoice& options, Session& session)
{
    if (!options.partition.empty()) return runPartition(options, session);
    const SetupSources sources = sourcesOf(session);
    STAGEWRIGHT_TRY(auto request, readRequest(options, sources, session));
    if (options.points > 0) {
        if (!request.costs.knowsActivations())
            return fail(ErrorCode::Usage,
                        "--pareto plans activations against time, and the costs have no sizes of activations",
                        "use costs of a run that recorded memory");
        if (options.setup.sharesState())
            return fail(ErrorCode::Usage,
                        "--pareto plans activations against time; --replicas and what they share change neither",
                        "omit them, or omit --pareto");
        if (!options.output.empty() || !options.memoryLimits.empty())
            return fail(ErrorCode::Usage,
                        "--pareto plans for many caps: it can't be combined with -o or --memory-limit",
                        "omit them, or omit --pareto");
        return runPareto(options, request, sources, session);
    }
    STAGEWRIGHT_TRY(auto planned, plan(request, session.reporter("planning")));
    session.progress().clear();
    const Units units{request.costs.timeUnit, request.costs.memoryUnit};
    request.costs.jitter = 0; // shown and stored for usual times, as planned
    STAGEWRIGHT_TRY(auto shared, sharePlan(options, request, planned));
    if (shared.choice.shared) {
        planned.leftOut.push_back(
            {"replicas", "the order is planned for one pipeline, without gathers, reductions and the optimizer"});
        planned.optimal = false;
    }
    if (session.json) {
        Json object = planJson(request, planned, units);
        object["shared"] = shared.choice.shared ? sharedJson(shared, units) : Json(nullptr);
        session.answer(object);
    }
    std::string peaks;
    for (Bytes peak : planned.peaks) peaks += (peaks.empty() ? "" : " ") + units.memoryText(peak);
    if (!request.costs.knowsActivations()) peaks = "unknown: the costs have no sizes of activations";
    session.out(
        fmt::format("plan for {} × {}, {} per rank, {}\n", plural(request.ranks, "rank"),
                    (request.microbatches == 1 ? "1 microbatch" : fmt::format("{} microbatches", request.microbatches)),
                    plural(request.chunks, "stage"), request.costs.origin));
    session.out(fmt::format("time {}, span {}, peak activation {}\n", units.timeText(planned.makespan),
                            units.timeText(planned.span), peaks));
    session.out(proofText(planned, units) + "\n");
    if (!planned.leftOut.empty()) session.out(leftOutText(planned.leftOut) + "\n");
    session.out(fmt::format("found by {}\n", planned.foundBy));
    session.out((shared.choice.shared ? sharedText(shared, units) : std::string()) + "\n");
    session.out(drawTimeline(*shared.timeline, 0, session.columns(), session.colourOut()));
    STAGEWRIGHT_CHECK(store(options, shared, session));
    if (!planned.limit.empty()) session.note(planned.limit);
    if (planned.interrupted) session.note("interrupted: this is the best so far");
    return planned.interrupted ? ExitInterrupted : ExitDone;
}

} // namespace

Command command_plan()
{
    return {
        "plan", "Search for the best schedule for given costs and memory, with a proven bound",
        [](OptionSet& verb) -> Runner {
            auto options = std::make_shared<PlanChoice>();
            verb.value("-p,--ranks", &options->ranks, "Ranks (devices) of the pipeline [4]")
                .form("P")
                .check(wholeNumber(1, 1024));
            verb.value("-m,--microbatches", &options->microbatches, "Microbatches of a step [8]")
                .form("M")
                .check(wholeNumber(1, 100'000));
            verb.value("--chunks", &options->chunks, "Stages per rank: 1, or 2 in V placement [1]")
                .form("1|2")
                .check(wholeNumber(1, 2))
                .given(options->chunksGiven);
            addSetupOptions(verb, options->setup, SetupPlan);
            verb.value(
                    "--memory-limit", &options->memoryLimits,
                    "Activations a rank may hold; one limit, or one for each rank [none]. With --partition: the memory "
                    "of a rank, state and activations, such as 64GB, or none [the device's]")
                .form("X|SIZE[,…]")
                .commas()
                .each();
            verb.value("--objective", &options->objective,
                       "What to minimise: makespan, or span, from a rank's first start to its last end [makespan]")
                .form("WHAT")
                .check(oneOf({"makespan", "span"}));
            verb.value("--budget", &options->budget, "Longest search in seconds; 0: first guesses only [5]")
                .form("S")
                .check(realNumber(0, 86'400));
            verb.value("--seed", &options->seed, "Seed of the local search [1]")
                .form("N")
                .check(wholeNumber(0, 1'000'000'000));
            verb.value("--pareto", &options->points,
                       "Plan for up to N caps between the least possible and none, where the curve bends: memory "
                       "against time")
                .form("N")
                .check(wholeNumber(2, 200));
            verb.value("--partition", &options->partition,
                       "Divide a model's layers among the stages, with embedding, multi-token prediction and loss: "
                       "layers of a file, of a recorded run as it measured them, or a model on a device; -o writes the "
                       "costs of the best division")
                .form("FILE.json|FILE.stagewright[#RUN]|MODEL@DEVICE[:b=1][:t=1][:mtp=1]");
            verb.value("-o,--output", &options->output,
                       "Write the plan as a CSV, or store it as a run of a .stagewright file")
                .form("FILE")
                .replaces();
            verb.notes(
                "Examples: stagewright plan -p 4 -m 8 --memory-limit 3 -o plan.csv\n"
                "          stagewright plan -p 4 -m 16 --replicas 8 --shard weights --gather batch --reduce "
                "overlapped --costs analytic:gpt-6.2b@a100\n"
                "          stagewright plan -p 4 -m 16 --chunks 2 --costs F=1,I=1.2,W=0.8 --comm 0.1 --pareto 8");
            return [options](Session& session) { return runPlan(*options, session); };
        },
        true, true};
}

} // namespace stagewright
