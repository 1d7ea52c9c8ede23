#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/memory_limit.h"
#include "app/cli/options/setup_options.h"
#include "app/cli/options/setup_sources.h"
#include "app/cli/options/training_options.h"
#include "app/cli/process_runs.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/document_json.h"
#include "app/cli/text/document_text.h"
#include "app/cli/text/figures.h"
#include "app/cli/verbs/remote_call.h"
#include "app/cli/verbs/state_grid.h"
#include "app/launch/launcher.h"
#include "engine/check/backend_check.h"
#include "engine/check/check.h"
#include "engine/check/double_check.h"
#include "engine/check/kernel_check.h"
#include "engine/training/execution_plan.h"
#include "engine/training/forward_unit.h"
#include "engine/training/sharing_rules.h"
#include "engine/training/training.h"
#include "engine/transport/process_job.h"
#include "schedules/base/text.h"
#include "schedules/execute/perturb.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/variants.h"
#include "schedules/model/op_index.h"

namespace stagewright {

namespace {

struct CheckChoice {
    Setup setup;
    std::vector<TypedOption> typed; // the call as it was given
    int processes = 0;              // 0: ranks are threads
};

// --shard, --gather and --reduce as the lists have them; empty where they have no such ops.
std::array<std::string, 3> sharingWords(const ReplicaLists& sharing)
{
    if (!sharing.shared) return {};
    const Bytes bucket = sharing.sharding.bucket;
    return {toText(sharing.sharding),
            sharing.sharding.shards(ShardLevel::Weights) ? gatherText(sharing.rules) : std::string(),
            std::string(toText(sharing.rules.reduce)) +
                (bucket > 0 ? fmt::format(":bucket={}B", bucket) : std::string())};
}

// Nothing is named, and nothing changes what ranks wait for.
bool checksStateGrid(const Setup& setup)
{
    const bool plainMessages = setup.sends == "buffered" && !limitsMessages(setup) && setup.lower.empty() &&
                               setup.memoryLimit.empty() && setup.rankMemory.empty();
    return setup.schedules.empty() && !setup.sharesState() && plainMessages && setup.perturb.empty() &&
           setup.link.empty() && setup.cluster.empty() && setup.comm < 0 && setup.stageLayers.empty();
}

// What each rank received in the last step, as its transport counts it.
Json trafficJson(const std::vector<RankTraffic>& traffic)
{
    Json out = Json::array();
    for (const RankTraffic& rank : traffic)
        out.push_back({{"gathers", rank.gathers},
                       {"reductions", rank.reductions},
                       {"gathered_bytes", rank.gathered},
                       {"reduced_bytes", rank.reduced},
                       {"message_bytes", rank.messages}});
    return out;
}

// The registry with every variant, on the requested shape or the nearest one that a schedule takes; without those that
// halve microbatches where these have an odd number of samples.
std::vector<Schedule> everySchedule(const Setup& wanted, std::vector<std::string>& leftOut)
{
    const Shape shape(wanted.ranks, wanted.microbatches, wanted.chunks);
    const int microbatchSize = wanted.microbatchSize;
    std::vector<Schedule> schedules;
    for (const ScheduleInfo& info : allSchedules()) {
        for (const std::string& name : variantsOf(info)) {
            auto schedule = makeOnNearShape(name, shape);
            if (!schedule) {
                leftOut.push_back(fmt::format("{} skipped: {}", name, schedule.error().message));
                continue;
            }
            const auto cells = cellsOf(*schedule);
            if (microbatchSize % 2 != 0 && cells && cells->halves > 1) {
                leftOut.push_back(fmt::format("{} skipped: it halves microbatches, and a microbatch size of {} is odd",
                                              name, microbatchSize));
                continue;
            }
            schedules.push_back(std::move(*schedule));
        }
    }
    return schedules;
}

// Why none of the backend's devices can be used; empty: one can.
std::string whyUnusable(std::string_view name)
{
    auto backend = makeBackend(name);
    if (!backend) return backend.error().message;
    std::string reasons;
    for (const DeviceInfo& device : (*backend)->devices()) {
        if (device.usable) return {};
        reasons += (reasons.empty() ? "" : "; ") + (device.name.empty() ? "" : device.name + ": ") + device.reason;
    }
    return reasons.empty() ? "it has no device" : reasons;
}

// Its layers, one for each stage where the schedule has more.
std::shared_ptr<const Workload> workloadFor(int stages, const std::shared_ptr<const Workload>& workload)
{
    return workload->layers() < stages ? workload->withLayers(stages) : workload;
}

// Why a schedule can't be split by --stage-layers; empty: it can.
std::string whyNotSplit(const std::vector<int>& stageLayers, const Schedule& schedule)
{
    if (stageLayers.empty() || static_cast<int>(stageLayers.size()) == schedule.stages) return {};
    return fmt::format("--stage-layers has {} numbers, {} has {} stages", stageLayers.size(), schedule.name,
                       schedule.stages);
}

std::string verdictOf(bool passed) { return passed ? "pass" : "FAIL"; }
document::Tone toneOf(bool passed) { return passed ? document::Tone::Plain : document::Tone::Bad; }

// The reference is the CPU in fp32.
bool isCompared(const TrainingOptions& training)
{
    return traitsOf(training.backend).hasDevices || training.device.precision == Precision::Bf16;
}

std::vector<Precision> precisionsOf(const TrainingOptions& training)
{
    if (training.device.precision != Precision::Default) return {training.device.precision};
    return {Precision::Fp32, Precision::Tf32, Precision::Bf16};
}

// A device's kernels against the CPU's, one by one.
Result<bool> compareEachKernel(const TrainingOptions& training, Session& session, document::Table& table)
{
    bool passed = true;
    for (const Precision precision : precisionsOf(training)) {
        session.progress().tell(fmt::format("kernels of {} in {}", training.backend, toText(precision)), 0, 1);
        STAGEWRIGHT_TRY(auto compared, compareKernels(training.backend, training.device, precision));
        for (const KernelComparison& one : compared) {
            passed = passed && one.passed;
            table.add({one.kernel, training.backend, std::string(toText(precision)), one.error, one.tolerance,
                       verdictOf(one.passed), std::int64_t(one.passed)},
                      toneOf(one.passed));
        }
    }
    return passed;
}

// A device's layers against the CPU's, in the requested precision or in all of them.
Result<bool> compareDevice(const TrainingOptions& training, Session& session, document::Table& table,
                           const std::stop_token& stop)
{
    constexpr int steps = 10;
    bool passed = true;
    for (const Precision precision : precisionsOf(training)) {
        session.progress().tell(fmt::format("{} in {} against cpu", training.backend, toText(precision)), 0, 1);
        TrainingOptions options = training;
        options.device.precision = precision;
        STAGEWRIGHT_TRY(auto result, compareWithCpu(options, 2, steps, stop));
        passed = passed && result.passed;
        table.add({fmt::format("{} against cpu{}, {}", result.backend,
                               traitsOf(result.backend).hasDevices ? "" : " in fp32", plural(result.steps, "step")),
                   result.backend, std::string(toText(precision)), std::int64_t(result.steps), result.gradientError,
                   result.gradientTolerance, result.farthestTensor, result.lossError, result.lossTolerance,
                   verdictOf(result.passed), std::int64_t(result.passed)},
                  toneOf(result.passed));
    }
    return passed;
}

// The CPU's loss and gradients against a model in double precision that shares no code with the engine.
Result<bool> compareDouble(const TrainingOptions& training, Session& session, document::Table& table)
{
    session.progress().tell(fmt::format("{} against double precision", training.backend), 0, 1);
    STAGEWRIGHT_TRY(auto result, compareWithDouble(training));
    table.add({fmt::format("{} against double precision", result.backend), result.backend, result.model,
               result.gradientError, result.gradientTolerance, result.farthestTensor, result.lossError,
               result.lossTolerance, verdictOf(result.passed), std::int64_t(result.passed)},
              toneOf(result.passed));
    return result.passed;
}

// A schedule, what its replicas share, and how its messages travel.
struct Checked {
    std::shared_ptr<const CheckedSchedule> schedule;
    ReplicaLists sharing; // its schedule is moved out
    ChannelChoice messages{};
};

// What is to be checked before its channels are chosen. chosen: what the lists were made of; null: the library's, not
// checked yet.
struct Asked {
    std::shared_ptr<const CheckedSchedule> chosen;
    ReplicaLists trained;

    Result<Checked> checked() &&
    {
        const std::string label = trained.schedule.name;
        auto schedule = CheckedSchedule::after(chosen, std::move(trained.schedule));
        if (!schedule) return tl::unexpected(std::move(schedule.error()).with(label));
        return Checked{std::move(*schedule), std::move(trained)};
    }
};

// Whether the messages of a schedule all arrive: else why not, with what would help.
Result<void> allArrive(const Schedule& lists, const Channels& channels)
{
    const auto result = simulate(lists, CostModel::uniform(lists), channels);
    if (result) return {};
    std::string remedy;
    const auto add = [&remedy](const std::string& way) { remedy += (remedy.empty() ? "" : "; ") + way; };
    if (const auto found = explainDeadlock(lists, channels); found && found->hung()) {
        if (found->worksIfBuffered && channels.sends == SendMode::Rendezvous) add("it works with --sends buffered");
        if (found->worksWithStreams && channels.oneStream) add("it works with --channels shared");
        for (const std::string& way : found->otherWays) add(way);
    }
    return fail(ErrorCode::Invalid, result.error().message,
                remedy.empty() ? "'stagewright validate' shows the cycle and a way out" : remedy);
}

// The lists that are tried are those that ranks run under rendezvous: the training takes the same ones.
Result<void> chooseMessages(Checked& checked, const Setup& setup, const SetupSources& sources)
{
    const CheckedSchedule& schedule = *checked.schedule;
    STAGEWRIGHT_TRY(auto chosen, chooseChannels(schedule.given(), schedule.cameLowered(), setup, sources));
    checked.messages = chosen;
    std::shared_ptr<const Schedule> lowered;
    if (chosen.lowering) {
        STAGEWRIGHT_TRY(lowered, schedule.lowered(*chosen.lowering));
    }
    return allArrive(lowered ? *lowered : schedule.given(), chosen.channels);
}

// Slow ranks, late launches and links of all trainings, in forward times of the first schedule's.
Result<Perturbation> disturb(const Setup& setup, const std::vector<Checked>& schedules, TrainingOptions& training,
                             Nanos& unit)
{
    int ranks = schedules.empty() ? 1 : schedules.front().schedule->compute().ranks;
    for (const Checked& checked : schedules) ranks = std::min(ranks, checked.schedule->compute().ranks);
    auto perturbation = choosePerturbation(setup.perturb, ranks);
    if (!perturbation) return perturbation;
    STAGEWRIGHT_CHECK(disturbsRealRun(*perturbation, setup.steps));
    if (schedules.empty() || (setup.comm < 0 && perturbation->links.empty() && perturbation->launches.empty()))
        return perturbation;
    TrainingOptions plain = training;
    const Checked& first = schedules.front();
    plain.workload = workloadFor(first.schedule->compute().stages, training.workload);
    plain.stageLayers = setup.stageLayers;
    plain.sharding = first.sharing.sharding;
    plain.replicaSamples = first.sharing.samples;
    plain.cuts = first.sharing.cuts;
    STAGEWRIGHT_TRY(unit, measureForwardUnit(first.schedule, plain));
    if (setup.comm >= 0) training.links.all.latency = static_cast<Nanos>(setup.comm * static_cast<double>(unit));
    setLatency(*perturbation, unit, training.links);
    return perturbation;
}

Result<int> runCheck(const CheckChoice& options, const std::shared_ptr<ProcessJob>& job, Session& session)
{
    const bool speaks = !job || job->index() == 0; // other processes run ranks only
    const Setup& setup = options.setup;
    const SetupSources sources = sourcesOf(session);
    TrainingOptions training;
    auto parsed = parseWorkload(setup.model);
    if (!parsed) return tl::unexpected(std::move(parsed.error()).with("--model"));
    const std::shared_ptr<const Workload> workload =
        !setup.names("--model") && !setup.stageLayers.empty()
            ? (*parsed)->withLayers(std::accumulate(setup.stageLayers.begin(), setup.stageLayers.end(), 0))
            : *parsed;
    training.workload = workload;
    STAGEWRIGHT_CHECK(applyTo(setup, training));
    if (!setup.backend.empty()) STAGEWRIGHT_CHECK(checkDeviceUses(setup, setup.backend));

    std::vector<Asked> asked;
    std::vector<std::string> leftOut;
    const auto overReplicas = [&](const std::string& name, const Schedule& one, const Setup& wanted) {
        return trainedLists(one, name, wanted, sources, [&](int stages) {
            return layersOfStages(*workloadFor(stages, workload), stages, setup.stageLayers);
        });
    };
    for (const std::string& name : setup.schedules) {
        STAGEWRIGHT_TRY(auto schedule, chooseSchedule(name, setup, sources));
        auto several = overReplicas(name, schedule->given(), setup);
        if (!several) return tl::unexpected(std::move(several.error()).with(name));
        asked.push_back({std::move(schedule), std::move(*several)});
    }
    const bool all = setup.schedules.empty();
    if (all) {
        const bool shares = setup.shard != "none" || !setup.gather.empty() || !setup.reduce.empty();
        for (const Schedule& one : everySchedule(setup, leftOut)) {
            auto several = overReplicas(one.name, one, setup);
            if (several)
                asked.push_back({nullptr, std::move(*several)});
            else if (!shares || one.weights == WeightRule::Synchronous)
                return tl::unexpected(std::move(several.error()).with(one.name));
            else
                leftOut.push_back(fmt::format("{} skipped: {}", one.name, several.error().message));
        }
    }
    std::vector<Checked> grid;
    if (checksStateGrid(setup))
        for (const Setup& cell : stateGrid(setup)) {
            // its ranks can't be spread evenly
            if (job && cell.replicas * cell.ranks % job->count() != 0) continue;
            const std::string& name = cell.schedules.front();
            STAGEWRIGHT_TRY(auto schedule, chooseSchedule(name, cell, sources));
            auto several = overReplicas(name, schedule->given(), cell);
            if (!several) return tl::unexpected(std::move(several.error()).with(name));
            STAGEWRIGHT_TRY(auto checked, Asked{std::move(schedule), std::move(*several)}.checked());
            grid.push_back(std::move(checked));
        }
    std::vector<Checked> trained;
    Setup channels = setup;
    if (all && channels.lower.empty() && (channels.sends == "rendezvous" || limitsMessages(channels))) {
        channels.lower = toText(Lowering{}); // said once, not for each schedule
        session.note(fmt::format("sends and receives inserted {}; --lower chooses another rule", channels.lower));
    }
    for (Asked& one : asked) {
        const Schedule& schedule = one.trained.schedule;
        if (const std::string other = whyNotSplit(setup.stageLayers, schedule); !other.empty()) {
            if (!all) return fail(ErrorCode::Usage, other, "give one for each stage");
            leftOut.push_back("skipped: " + other);
            continue;
        }
        if (job && schedule.ranks % job->count() != 0) {
            std::string what = fmt::format("{} has {} ranks, not to be spread evenly over {} processes", schedule.name,
                                           schedule.ranks, job->count());
            if (!all) return fail(ErrorCode::Usage, std::move(what), "choose another -p or --processes");
            leftOut.push_back("skipped: " + what);
            continue;
        }
        STAGEWRIGHT_TRY(auto checked, std::move(one).checked());
        const Schedule& lists = checked.schedule->given();
        training.sharding = checked.sharing.sharding;
        if (auto plan = planExecution(*checked.schedule); all && (!plan || !checkSharing(lists, *plan, training)))
            leftOut.push_back(
                fmt::format("{} skipped: {}", lists.name,
                            plan ? checkSharing(lists, *plan, training).error().message : plan.error().message));
        else if (auto chosen = chooseMessages(checked, channels, sources); chosen)
            trained.push_back(std::move(checked));
        else if (all)
            leftOut.push_back(fmt::format("{} skipped: {}", lists.name, chosen.error().message));
        else
            return tl::unexpected(std::move(chosen.error()).with(lists.name));
    }
    std::vector<const Schedule*> given;
    for (const auto* each : {&trained, &grid})
        for (const Checked& one : *each) given.push_back(&one.schedule->given());
    noteUnusedLayers(setup, given, session);
    for (const Checked& one : trained)
        noteUnusedAlone(
            one.schedule->given(),
            {{"--comm", setup.comm >= 0}, {"--link", !setup.link.empty()}, {"--cluster", !setup.cluster.empty()}},
            sources);
    const Schedule* widest = nullptr;
    for (const Checked& one : trained)
        if (widest == nullptr || one.schedule->given().ranks > widest->ranks) widest = &one.schedule->given();
    if (widest != nullptr) STAGEWRIGHT_CHECK(applyCluster(setup, *widest, training, session));
    Nanos unit = 0;
    STAGEWRIGHT_TRY(auto perturbation, disturb(setup, trained, training, unit));
    if (!trained.empty()) addSpeeds(perturbation, trained.back().sharing.speeds);
    training.job = job;
    std::vector<std::string> backends;
    if (!setup.backend.empty() || job)
        backends.push_back(setup.backend.empty() ? "cpu" : setup.backend);
    else
        for (const std::string_view name : backendNames()) {
            if (std::string missing = whyUnusable(name); missing.empty())
                backends.emplace_back(name);
            else
                leftOut.push_back(fmt::format("backend {} skipped: {}", name, missing));
        }

    const bool anyReplicas = !grid.empty() || setup.sharesState();
    using enum ColumnKind;
    const std::vector<document::Column> verdict{TableColumn{{}, "verdict"}, document::unshown("passed", Truth)};
    const auto tableWith = [&verdict](std::string place, std::vector<document::Column> columns) {
        columns.insert(columns.end(), verdict.begin(), verdict.end());
        return document::Table{std::move(place), std::move(columns)};
    };
    document::Table kernelTable =
        tableWith("kernels.#", {TableColumn{"kernel", "kernel"}, TableColumn{"backend", "backend"},
                                TableColumn{"precision", "precision"}, TableColumn{"error", "error", Real},
                                TableColumn{"tolerance", "allowed", Real}});
    document::Table deviceTable = tableWith(
        "against_cpu.#",
        {TableColumn{{}, "undivided model"}, document::unshown("backend"), TableColumn{"precision", "precision"},
         document::unshown("steps"), TableColumn{"gradient_error", "gradient error", Real},
         TableColumn{"gradient_tolerance", "allowed", Real}, TableColumn{"farthest_tensor", "at"},
         TableColumn{"loss_error", "loss error", Real}, TableColumn{"loss_tolerance", "allowed", Real}});
    document::Table doubleTable =
        tableWith("against_double.#",
                  {TableColumn{{}, "model"}, document::unshown("backend"), TableColumn{"model", "of"},
                   TableColumn{"gradient_error", "gradient error", Real},
                   TableColumn{"gradient_tolerance", "allowed", Real}, TableColumn{"farthest_tensor", "at"},
                   TableColumn{"loss_error", "loss error", Real}, TableColumn{"loss_tolerance", "allowed", Real}});
    document::Table table = tableWith(
        "checks.#",
        {TableColumn{"schedule", "schedule"}, TableColumn{"shape", "shape"}, TableColumn{{}, "shard"},
         document::unshown("shard"), TableColumn{"gather", "gather"}, TableColumn{"reduce", "reduce"},
         TableColumn{"backend", "backend"}, TableColumn{"gradient_error", "gradient error", Real},
         TableColumn{"gradients_equal", "bits equal", Truth}, TableColumn{"losses_equal", "losses equal", Truth},
         TableColumn{"repeat_equal", "repeatable", Truth}, TableColumn{"order_equal", "order kept", Truth},
         document::unshown("copies_equal", Truth), document::unshown("weights_equal", Truth),
         document::unshown("replicas"), document::unshown("rollbacks"), document::unshown("weights"),
         document::unshown("deviation"), document::unshown("note")});
    for (const std::size_t c : {2, 4, 5}) table.columns[c].shown = anyReplicas;
    Json series = Json::array(); // of each schedule what a table does not hold
    const DeviceOptions devices = training.device;
    std::vector<std::string> notes;
    bool passed = true;
    std::int64_t done = 0;
    const auto total = static_cast<std::int64_t>((trained.size() + grid.size()) * backends.size());
    const std::stop_token stop = session.stop();
    for (const std::string& backend : backends) {
        training.backend = backend;
        training.stageLayers.clear(); // of schedules only
        training.workload = workload;
        training.device = traitsOf(backend).hasDevices || !setup.backend.empty() ? devices : DeviceOptions{};
        if (speaks && isCompared(training)) {
            auto each = compareEachKernel(training, session, kernelTable);
            if (!each) return tl::unexpected(std::move(each.error()).with(backend));
            passed = passed && *each;
            auto same = compareDevice(training, session, deviceTable, stop);
            if (!same) return tl::unexpected(std::move(same.error()).with(backend));
            passed = passed && *same;
            // bits are compared with sums in other orders
            if (training.device.precision == Precision::Default) training.device.precision = Precision::Fp32;
        }
        if (speaks && !traitsOf(backend).hasDevices) {
            auto same = compareDouble(training, session, doubleTable);
            if (!same) return tl::unexpected(std::move(same.error()).with(backend));
            passed = passed && *same;
        }
        for (std::size_t i = 0; i < trained.size() + grid.size(); ++i) {
            const bool inGrid = i >= trained.size();
            const Checked& checked = inGrid ? grid[i - trained.size()] : trained[i];
            const Schedule& schedule = checked.schedule->given();
            training.sharding = checked.sharing.sharding;
            training.replicaSamples = checked.sharing.samples;
            training.cuts = checked.sharing.cuts;
            training.channels = checked.messages.channels;
            if (checked.messages.lowering) training.lowering = *checked.messages.lowering;
            training.perturbation = runPerturbation(perturbation, schedule.ranks, unit, training.seed);
            session.progress().tell(fmt::format("{} on {}", schedule.name, backend), done++, total);
            training.workload = workloadFor(schedule.stages, workload);
            training.stageLayers = inGrid ? std::vector<int>() : setup.stageLayers;
            STAGEWRIGHT_CHECK(checkMemoryLimit(setup.memoryLimit, schedule, training));
            STAGEWRIGHT_TRY(training.rankMemory, readRankMemory(setup.rankMemory, schedule));
            auto result = checkSchedule(checked.schedule, training, setup.steps, stop);
            if (!result)
                return tl::unexpected(std::move(result.error()).with(fmt::format("{} on {}", schedule.name, backend)));
            passed = passed && result->passed;
            const auto [shard, gather, reduce] = sharingWords(checked.sharing);
            const auto truth = [](bool value) { return std::int64_t(value); };
            table.add({result->schedule,
                       result->shape,
                       shard,
                       document::textCell(result->sharing),
                       document::textCell(gather),
                       document::textCell(reduce),
                       result->backend,
                       result->gradientError,
                       truth(result->gradientsEqual),
                       truth(result->lossesEqual),
                       truth(result->repeatEqual),
                       truth(result->orderEqual),
                       truth(result->copiesEqual),
                       truth(result->weightsEqual),
                       std::int64_t(schedule.replicas),
                       std::int64_t(result->rollbacks),
                       std::string(toText(result->weights)),
                       result->weights == WeightRule::Synchronous && !result->partial ? TableCell()
                                                                                      : TableCell(result->deviation),
                       result->note,
                       verdictOf(result->passed),
                       truth(result->passed)},
                      toneOf(result->passed));
            if (!result->note.empty() && !(inGrid && result->passed))
                notes.push_back(fmt::format("{}: {}", result->schedule, result->note));
            series.push_back({{"traffic", trafficJson(result->traffic)},
                              {"loss", result->loss},
                              {"reference_loss", result->referenceLoss}});
        }
    }
    session.progress().tell("checked", total, total);
    session.progress().clear();
    document::Document document;
    document.add().fact("passed", Truth, passed);
    document.sections.back().add(document::listOf("left_out", Text, {leftOut.begin(), leftOut.end()}));
    for (document::Table* one : {&kernelTable, &deviceTable, &doubleTable, &table}) document.add().add(std::move(*one));
    if (session.json) {
        Json object = documentJson(document);
        for (std::size_t i = 0; i < series.size(); ++i) object["checks"][i].update(series.at(i));
        session.answer(object);
    }
    session.out(documentText(document, {session.colourOut()}));
    for (const std::string& note : notes) session.out("  " + note + "\n");
    for (const std::string& note : leftOut) session.out("  " + note + "\n");
    session.out(fmt::format("\n{}: gradients and losses against a one-rank replay in the schedule's own order, stale "
                            "weights against a one-rank "
                            "model of their rule{}, {}\n",
                            passed ? "all pass" : "NOT all pass",
                            job ? fmt::format("; ranks in {} processes, repeated by threads", job->count()) : "",
                            plural(setup.steps, "step")));
    return passed ? ExitDone : ExitDoesNotHold;
}

Result<int> runCheckAnywhere(const CheckChoice& given, Session& session)
{
    CheckChoice options = given;
    const auto launched = launchedProcesses();
    if (!options.setup.names("--ranks") && (launched || options.processes > 0))
        options.setup.ranks = launched.value_or(options.processes);
    if (!launched && options.processes > 0) {
        STAGEWRIGHT_TRY(const auto launcher, launcherWords({}, {options.processes}));
        STAGEWRIGHT_TRY(auto end,
                        startProcesses(options.processes, launcher, TrainingOptions().timeoutSeconds, session));
        return end.code;
    }
    return inProcesses(session,
                       [&](const std::shared_ptr<ProcessJob>& job) { return runCheck(options, job, session); });
}

} // namespace

Command command_check()
{
    return {"check", "Verify this machine: compare every schedule's gradients with a one-rank replay, on each backend",
            [](OptionSet& verb) -> Runner {
                auto options = std::make_shared<CheckChoice>();
                Setup& setup = options->setup;
                setup.model = "layers=8,hidden=32,heads=2,seq=16";
                setup.microbatchSize = 2;
                setup.steps = 2;
                addSetupOptions(verb, setup, SetupCheck,
                                {{"--schedule", "Schedules to check [all, with every variant]"},
                                 {"--backend", "Only this backend [all]"},
                                 {"--steps", "Training steps [2]"},
                                 {"--model", "The model [layers=8,hidden=32,heads=2,seq=16]"},
                                 {"--microbatch-size", "Samples per microbatch [2]"},
                                 {"--stage-layers",
                                  "Layers of each stage, such as 0,3,3,0: only the embedding or only the loss on a "
                                  "stage [balanced by cost]"},
                                 {"--seed", "Seed of weights and data [1]"},
                                 {"--host", "Check this host; see 'stagewright hosts'"}});
                verb.typed(options->typed);
                verb.value("--processes", &options->processes,
                           "Run the ranks in N processes started by mpirun, and compare with threads bit for bit")
                    .form("N")
                    .check(wholeNumber(1, 4096));
                verb.notes("Exit code 1 if a check fails.");
                return [options](Session& session) {
                    return options->setup.elsewhere()
                               ? callOnHost("check", options->setup.host, options->typed, session)
                               : runCheckAnywhere(*options, session);
                };
            },
            true, true};
}

} // namespace stagewright
