#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/channel_options.h"
#include "app/cli/options/cost_options.h"
#include "app/cli/options/memory_limit.h"
#include "app/cli/options/options.h"
#include "app/cli/options/replica_options.h"
#include "app/cli/options/training_options.h"
#include "app/cli/process_runs.h"
#include "app/cli/progress_line.h"
#include "app/cli/session.h"
#include "app/cli/text/figures.h"
#include "app/cli/text/json.h"
#include "app/cli/text/table.h"
#include "app/cli/verbs/remote_call.h"
#include "app/cli/verbs/state_grid.h"
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
    ScheduleOptions schedule;
    RecomputeOptions recompute;
    ReplicaOptions replicas;
    TrainingChoice choice;
    ChannelOptions channels;
    double comm = -1;
    std::string link;
    std::vector<std::string> perturb;
    std::string backend;
    std::string model = "layers=8,hidden=32,heads=2,seq=16";
    bool modelGiven = false;
    std::vector<int> stageLayers; // of named schedules and those with as many stages
    int steps = 2;
    int microbatchSize = 2;
    std::int64_t seed = 1;
    int processes = 0; // 0: ranks are threads
    std::string memoryLimit;
    std::string rankMemory;
    PlaceOptions place;
};

std::string yesNo(bool value) { return value ? "yes" : "no"; }

// --shard, --gather and --reduce as the lists have them; empty where they have no such ops.
std::array<std::string, 3> sharingWords(const ReplicaSharing& sharing)
{
    if (!sharing.shared) return {};
    const Bytes bucket = sharing.sharding.bucket;
    return {toText(sharing.sharding),
            sharing.sharding.shards(ShardLevel::Weights) ? gatherText(sharing.rules) : std::string(),
            std::string(toText(sharing.rules.reduce)) +
                (bucket > 0 ? fmt::format(":bucket={}B", bucket) : std::string())};
}

// Nothing is named, and nothing changes what ranks wait for.
bool checksStateGrid(const CheckChoice& options)
{
    const bool plainMessages = options.channels.sends == "buffered" && !limitsMessages(options.channels) &&
                               options.channels.lower.empty() && options.memoryLimit.empty() &&
                               options.rankMemory.empty();
    return options.schedule.schedules.empty() && !options.replicas.any() && plainMessages && options.perturb.empty() &&
           options.link.empty() && options.comm < 0 && options.stageLayers.empty();
}

// Of the last step, by rank, as the transport counts what a rank receives.
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
std::vector<Schedule> everySchedule(const ShapeOptions& wanted, int microbatchSize, std::vector<std::string>& leftOut)
{
    const Shape shape(wanted.ranks, wanted.microbatches, wholeOf<int>(wanted.chunks).value_or(0));
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
std::shared_ptr<const Workload> workloadFor(const Schedule& schedule, const std::shared_ptr<const Workload>& workload)
{
    return workload->layers() < schedule.stages ? workload->withLayers(schedule.stages) : workload;
}

// Why a schedule can't be split by --stage-layers; empty: it can.
std::string whyNotSplit(const std::vector<int>& stageLayers, const Schedule& schedule)
{
    if (stageLayers.empty() || static_cast<int>(stageLayers.size()) == schedule.stages) return {};
    return fmt::format("--stage-layers has {} numbers, {} has {} stages", stageLayers.size(), schedule.name,
                       schedule.stages);
}

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
Result<bool> compareEachKernel(const TrainingOptions& training, Session& session, Table& table, Json& results)
{
    bool passed = true;
    for (const Precision precision : precisionsOf(training)) {
        session.progress().tell(fmt::format("kernels of {} in {}", training.backend, toText(precision)), 0, 1);
        STAGEWRIGHT_TRY(auto compared, compareKernels(training.backend, training.device, precision));
        for (const KernelComparison& one : compared) {
            passed = passed && one.passed;
            table.add({one.kernel, training.backend, std::string(toText(precision)), fmt::format("{:.2g}", one.error),
                       fmt::format("{:.0e}", one.tolerance), one.passed ? "pass" : "FAIL"},
                      one.passed ? Tint::None : Tint::Bad);
            results.push_back({{"kernel", one.kernel},
                               {"backend", training.backend},
                               {"precision", std::string(toText(precision))},
                               {"error", one.error},
                               {"tolerance", one.tolerance},
                               {"passed", one.passed}});
        }
    }
    return passed;
}

// A device's layers against the CPU's, in the requested precision or in all of them.
Result<bool> compareDevice(const TrainingOptions& training, Session& session, Table& table, Json& results,
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
                   std::string(toText(precision)), fmt::format("{:.2g}", result.gradientError),
                   fmt::format("{:.0e}", result.gradientTolerance), result.farthestTensor,
                   fmt::format("{:.2g}", result.lossError), fmt::format("{:.0e}", result.lossTolerance),
                   result.passed ? "pass" : "FAIL"},
                  result.passed ? Tint::None : Tint::Bad);
        results.push_back({{"backend", result.backend},
                           {"precision", std::string(toText(precision))},
                           {"steps", result.steps},
                           {"gradient_error", result.gradientError},
                           {"gradient_tolerance", result.gradientTolerance},
                           {"farthest_tensor", result.farthestTensor},
                           {"loss_error", result.lossError},
                           {"loss_tolerance", result.lossTolerance},
                           {"passed", result.passed}});
    }
    return passed;
}

// The CPU's loss and gradients against a model in double precision that shares no code with the engine.
Result<bool> compareDouble(const TrainingOptions& training, Session& session, Table& table, Json& results)
{
    session.progress().tell(fmt::format("{} against double precision", training.backend), 0, 1);
    STAGEWRIGHT_TRY(auto result, compareWithDouble(training));
    table.add({fmt::format("{} against double precision", result.backend), result.model,
               fmt::format("{:.2g}", result.gradientError), fmt::format("{:.0e}", result.gradientTolerance),
               result.farthestTensor, fmt::format("{:.2g}", result.lossError),
               fmt::format("{:.0e}", result.lossTolerance), result.passed ? "pass" : "FAIL"},
              result.passed ? Tint::None : Tint::Bad);
    results.push_back({{"backend", result.backend},
                       {"model", result.model},
                       {"gradient_error", result.gradientError},
                       {"gradient_tolerance", result.gradientTolerance},
                       {"farthest_tensor", result.farthestTensor},
                       {"loss_error", result.lossError},
                       {"loss_tolerance", result.lossTolerance},
                       {"passed", result.passed}});
    return result.passed;
}

// A schedule, what its replicas share, and how its messages travel.
struct Checked {
    std::shared_ptr<const CheckedSchedule> schedule;
    ReplicaSharing sharing;
    ChannelChoice messages{};
};

// What is to be checked before its channels are chosen. chosen: what the lists were made of; null: the library's, not
// checked yet.
struct Asked {
    std::shared_ptr<const CheckedSchedule> chosen;
    TrainedReplicas trained;

    Result<Checked> checked() &&
    {
        const std::string label = trained.schedule.name;
        auto schedule = CheckedSchedule::after(chosen, std::move(trained.schedule));
        if (!schedule) return tl::unexpected(std::move(schedule.error()).with(label));
        return Checked{std::move(*schedule), std::move(trained.sharing)};
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
Result<void> chooseMessages(Checked& checked, const ChannelOptions& options, Session& session)
{
    const CheckedSchedule& schedule = *checked.schedule;
    STAGEWRIGHT_TRY(auto chosen, chooseChannels(schedule.given(), schedule.cameLowered(), options, session));
    checked.messages = chosen;
    std::shared_ptr<const Schedule> lowered;
    if (chosen.lowering) {
        STAGEWRIGHT_TRY(lowered, schedule.lowered(*chosen.lowering));
    }
    return allArrive(lowered ? *lowered : schedule.given(), chosen.channels);
}

// Slow ranks, late launches and links of all trainings, in forward times of the first schedule's.
Result<Perturbation> disturb(const CheckChoice& options, const std::vector<Checked>& schedules,
                             TrainingOptions& training, Nanos& unit)
{
    int ranks = schedules.empty() ? 1 : schedules.front().schedule->compute().ranks;
    for (const Checked& checked : schedules) ranks = std::min(ranks, checked.schedule->compute().ranks);
    auto perturbation = choosePerturbation(options.perturb, ranks);
    if (!perturbation) return perturbation;
    STAGEWRIGHT_CHECK(disturbsRealRun(*perturbation, options.steps));
    if (!options.link.empty()) {
        auto link = parseLink(options.link);
        if (!link) return tl::unexpected(std::move(link.error()).with("--link"));
        training.links.all = *link;
    }
    if (schedules.empty() || (options.comm < 0 && perturbation->links.empty() && perturbation->launches.empty()))
        return perturbation;
    TrainingOptions plain = training;
    const Checked& first = schedules.front();
    plain.workload = workloadFor(first.schedule->compute(), training.workload);
    plain.stageLayers = options.stageLayers;
    plain.sharding = first.sharing.sharding;
    plain.replicaSamples = first.sharing.samples;
    plain.cuts = first.sharing.cuts;
    STAGEWRIGHT_TRY(unit, measureForwardUnit(first.schedule, plain));
    if (options.comm >= 0) training.links.all.latency = static_cast<Nanos>(options.comm * static_cast<double>(unit));
    setLatency(*perturbation, unit, training.links);
    return perturbation;
}

Result<int> runCheck(const CheckChoice& options, const std::shared_ptr<ProcessJob>& job, Session& session)
{
    const bool speaks = !job || job->index() == 0; // other processes run ranks only
    TrainingOptions training;
    auto parsed = parseWorkload(options.model);
    if (!parsed) return tl::unexpected(std::move(parsed.error()).with("--model"));
    const std::shared_ptr<const Workload> workload =
        !options.modelGiven && !options.stageLayers.empty()
            ? (*parsed)->withLayers(std::accumulate(options.stageLayers.begin(), options.stageLayers.end(), 0))
            : *parsed;
    training.workload = workload;
    training.microbatchSize = options.microbatchSize;
    training.seed = static_cast<std::uint64_t>(options.seed);
    STAGEWRIGHT_CHECK(applyTo(options.choice, training));
    if (!options.backend.empty()) STAGEWRIGHT_CHECK(checkDeviceUses(options.choice, options.backend));

    std::vector<Asked> asked;
    std::vector<std::string> leftOut;
    const auto overReplicas = [&](const std::string& name, const Schedule& one, const ReplicaOptions& replicas,
                                  const ShapeOptions& wanted) -> Result<TrainedReplicas> {
        STAGEWRIGHT_TRY(auto with, recomputed(one, options.recompute, session));
        ReplicaOptions replicated = replicas;
        replicated.layersOf = [&](int stages) {
            return layersOfStages(*workloadFor(with, workload), stages, options.stageLayers);
        };
        return trainedReplicas(with, replicated, options.microbatchSize, [&](int microbatches) {
            ShapeOptions shape = wanted;
            shape.microbatches = microbatches;
            auto other = chooseSchedule(name, shape, session);
            if (!other) return Result<Schedule>(tl::unexpected(std::move(other.error())));
            return recomputed((*other)->given(), options.recompute, session);
        });
    };
    for (const std::string& name : options.schedule.schedules) {
        STAGEWRIGHT_TRY(auto schedule, chooseSchedule(name, options.schedule.shape, session));
        auto several = overReplicas(name, schedule->given(), options.replicas, options.schedule.shape);
        if (!several) return tl::unexpected(std::move(several.error()).with(name));
        asked.push_back({std::move(schedule), std::move(*several)});
    }
    if (options.schedule.schedules.empty()) {
        const bool shares =
            options.replicas.shard != "none" || !options.replicas.gather.empty() || !options.replicas.reduce.empty();
        for (const Schedule& one : everySchedule(options.schedule.shape, options.microbatchSize, leftOut)) {
            auto several = overReplicas(one.name, one, options.replicas, options.schedule.shape);
            if (several)
                asked.push_back({nullptr, std::move(*several)});
            else if (!shares || one.weights == WeightRule::Synchronous)
                return tl::unexpected(std::move(several.error()).with(one.name));
            else
                leftOut.push_back(fmt::format("{} skipped: {}", one.name, several.error().message));
        }
    }
    std::vector<Checked> grid;
    if (checksStateGrid(options))
        for (const GridCell& cell : stateGrid()) {
            // its ranks can't be spread evenly
            if (job && cell.replicas.replicas * stateGridShape().ranks % job->count() != 0) continue;
            STAGEWRIGHT_TRY(auto schedule, chooseSchedule(cell.schedule, stateGridShape(), session));
            auto several = overReplicas(cell.schedule, schedule->given(), cell.replicas, stateGridShape());
            if (!several) return tl::unexpected(std::move(several.error()).with(cell.schedule));
            STAGEWRIGHT_TRY(auto checked, Asked{std::move(schedule), std::move(*several)}.checked());
            grid.push_back(std::move(checked));
        }
    std::vector<Checked> trained;
    ChannelOptions channels = options.channels;
    if (options.schedule.schedules.empty() && channels.lower.empty() &&
        (channels.sends == "rendezvous" || limitsMessages(channels))) {
        channels.lower = toText(Lowering{}); // said once, not for each schedule
        session.note(fmt::format("sends and receives inserted {}; --lower chooses another rule", channels.lower));
    }
    for (Asked& one : asked) {
        const Schedule& schedule = one.trained.schedule;
        if (const std::string other = whyNotSplit(options.stageLayers, schedule); !other.empty()) {
            if (!options.schedule.schedules.empty()) return fail(ErrorCode::Usage, other, "give one for each stage");
            leftOut.push_back("skipped: " + other);
            continue;
        }
        if (job && schedule.ranks % job->count() != 0) {
            std::string what = fmt::format("{} has {} ranks, not to be spread evenly over {} processes", schedule.name,
                                           schedule.ranks, job->count());
            if (!options.schedule.schedules.empty())
                return fail(ErrorCode::Usage, std::move(what), "choose another -p or --processes");
            leftOut.push_back("skipped: " + what);
            continue;
        }
        STAGEWRIGHT_TRY(auto checked, std::move(one).checked());
        const Schedule& lists = checked.schedule->given();
        training.sharding = checked.sharing.sharding;
        if (auto plan = planExecution(*checked.schedule);
            options.schedule.schedules.empty() && (!plan || !checkSharing(lists, *plan, training)))
            leftOut.push_back(
                fmt::format("{} skipped: {}", lists.name,
                            plan ? checkSharing(lists, *plan, training).error().message : plan.error().message));
        else if (auto chosen = chooseMessages(checked, channels, session); chosen)
            trained.push_back(std::move(checked));
        else if (options.schedule.schedules.empty())
            leftOut.push_back(fmt::format("{} skipped: {}", lists.name, chosen.error().message));
        else
            return tl::unexpected(std::move(chosen.error()).with(lists.name));
    }
    std::vector<const Schedule*> given;
    for (const auto* each : {&trained, &grid})
        for (const Checked& one : *each) given.push_back(&one.schedule->given());
    noteUnusedLayers(options.choice, given, session);
    for (const Checked& one : trained)
        noteUnusedAlone(one.schedule->given(), {{"--comm", options.comm >= 0}, {"--link", !options.link.empty()}},
                        session);
    Nanos unit = 0;
    STAGEWRIGHT_TRY(auto perturbation, disturb(options, trained, training, unit));
    if (!trained.empty()) addSpeeds(perturbation, trained.back().sharing.speeds);
    training.job = job;
    std::vector<std::string> backends;
    if (!options.backend.empty() || job)
        backends.push_back(options.backend.empty() ? "cpu" : options.backend);
    else
        for (const std::string_view name : backendNames()) {
            if (std::string missing = whyUnusable(name); missing.empty())
                backends.emplace_back(name);
            else
                leftOut.push_back(fmt::format("backend {} skipped: {}", name, missing));
        }

    const bool anyReplicas = !grid.empty() || options.replicas.any();
    std::vector<Table::Column> columns{{"schedule"}, {"shape"}};
    if (anyReplicas) columns.insert(columns.end(), {{"shard"}, {"gather"}, {"reduce"}});
    columns.insert(columns.end(), {{"backend"},
                                   {"gradient error", Table::Align::Right},
                                   {"bits equal"},
                                   {"losses equal"},
                                   {"repeatable"},
                                   {"order kept"},
                                   {"verdict"}});
    Table table(std::move(columns));
    Json results = Json::array();
    Table deviceTable({{"undivided model"},
                       {"precision"},
                       {"gradient error", Table::Align::Right},
                       {"allowed", Table::Align::Right},
                       {"at"},
                       {"loss error", Table::Align::Right},
                       {"allowed", Table::Align::Right},
                       {"verdict"}});
    Json comparisons = Json::array();
    Table doubleTable({{"model"},
                       {"of"},
                       {"gradient error", Table::Align::Right},
                       {"allowed", Table::Align::Right},
                       {"at"},
                       {"loss error", Table::Align::Right},
                       {"allowed", Table::Align::Right},
                       {"verdict"}});
    Json doubles = Json::array();
    Table kernelTable({{"kernel"},
                       {"backend"},
                       {"precision"},
                       {"error", Table::Align::Right},
                       {"allowed", Table::Align::Right},
                       {"verdict"}});
    Json kernels = Json::array();
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
        training.device = traitsOf(backend).hasDevices || !options.backend.empty() ? devices : DeviceOptions{};
        if (speaks && isCompared(training)) {
            auto each = compareEachKernel(training, session, kernelTable, kernels);
            if (!each) return tl::unexpected(std::move(each.error()).with(backend));
            passed = passed && *each;
            auto same = compareDevice(training, session, deviceTable, comparisons, stop);
            if (!same) return tl::unexpected(std::move(same.error()).with(backend));
            passed = passed && *same;
            // bits are compared with sums in other orders
            if (training.device.precision == Precision::Default) training.device.precision = Precision::Fp32;
        }
        if (speaks && !traitsOf(backend).hasDevices) {
            auto same = compareDouble(training, session, doubleTable, doubles);
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
            training.workload = workloadFor(schedule, workload);
            training.stageLayers = inGrid ? std::vector<int>() : options.stageLayers;
            STAGEWRIGHT_CHECK(checkMemoryLimit(options.memoryLimit, schedule, training));
            STAGEWRIGHT_TRY(training.rankMemory, readRankMemory(options.rankMemory, schedule));
            auto result = checkSchedule(checked.schedule, training, options.steps, stop);
            if (!result)
                return tl::unexpected(std::move(result.error()).with(fmt::format("{} on {}", schedule.name, backend)));
            passed = passed && result->passed;
            const auto [shard, gather, reduce] = sharingWords(checked.sharing);
            std::vector<std::string> cells{result->schedule, result->shape};
            if (anyReplicas) cells.insert(cells.end(), {shard, gather, reduce});
            cells.insert(cells.end(),
                         {result->backend, fmt::format("{:.3g}", result->gradientError), yesNo(result->gradientsEqual),
                          yesNo(result->lossesEqual), yesNo(result->repeatEqual), yesNo(result->orderEqual),
                          result->passed ? "pass" : "FAIL"});
            table.add(std::move(cells), result->passed ? Tint::None : Tint::Bad);
            if (!result->note.empty() && !(inGrid && result->passed))
                notes.push_back(fmt::format("{}: {}", result->schedule, result->note));
            results.push_back({{"schedule", result->schedule},
                               {"shape", result->shape},
                               {"backend", result->backend},
                               {"gradient_error", result->gradientError},
                               {"gradients_equal", result->gradientsEqual},
                               {"losses_equal", result->lossesEqual},
                               {"repeat_equal", result->repeatEqual},
                               {"order_equal", result->orderEqual},
                               {"copies_equal", result->copiesEqual},
                               {"weights_equal", result->weightsEqual},
                               {"replicas", schedule.replicas},
                               {"shard", result->sharing.empty() ? Json(nullptr) : Json(result->sharing)},
                               {"gather", gather.empty() ? Json(nullptr) : Json(gather)},
                               {"reduce", reduce.empty() ? Json(nullptr) : Json(reduce)},
                               {"traffic", trafficJson(result->traffic)},
                               {"rollbacks", result->rollbacks},
                               {"weights", std::string(toText(result->weights))},
                               {"deviation", result->weights == WeightRule::Synchronous && !result->partial
                                                 ? Json(nullptr)
                                                 : Json(result->deviation)},
                               {"loss", result->loss},
                               {"reference_loss", result->referenceLoss},
                               {"note", result->note},
                               {"passed", result->passed}});
        }
    }
    session.progress().tell("checked", total, total);
    session.progress().clear();
    if (session.json)
        session.answer({{"passed", passed},
                        {"checks", std::move(results)},
                        {"kernels", kernels},
                        {"against_cpu", comparisons},
                        {"against_double", doubles},
                        {"left_out", leftOut}});
    if (!kernels.empty()) session.out(kernelTable.text(session.colourOut()) + "\n");
    if (!comparisons.empty()) session.out(deviceTable.text(session.colourOut()) + "\n");
    if (!doubles.empty()) session.out(doubleTable.text(session.colourOut()) + "\n");
    session.out(table.text(session.colourOut()));
    for (const std::string& note : notes) session.out("  " + note + "\n");
    for (const std::string& note : leftOut) session.out("  " + note + "\n");
    session.out(fmt::format("\n{}: gradients and losses against a one-rank replay in the schedule's own order, stale "
                            "weights against a one-rank "
                            "model of their rule{}, {}\n",
                            passed ? "all pass" : "NOT all pass",
                            job ? fmt::format("; ranks in {} processes, repeated by threads", job->count()) : "",
                            plural(options.steps, "step")));
    return passed ? ExitDone : ExitDoesNotHold;
}

Result<int> runCheckAnywhere(const CheckChoice& given, Session& session)
{
    CheckChoice options = given;
    const auto launched = launchedProcesses();
    if (!options.schedule.shape.ranksGiven && (launched || options.processes > 0))
        options.schedule.shape.ranks = launched.value_or(options.processes);
    if (!launched && options.processes > 0) {
        STAGEWRIGHT_TRY(auto end, startProcesses(options.processes, TrainingOptions().timeoutSeconds, session));
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
                addScheduleOptions(verb, options->schedule, "Schedules to check [all, with every variant]");
                verb.value("--backend", &options->backend, "Only this backend [all]").form("NAME");
                verb.value("--steps", &options->steps, "Training steps [2]").form("N").check(wholeNumber(1, 10'000));
                verb.value("--model", &options->model, "The model [layers=8,hidden=32,heads=2,seq=16]")
                    .form("KEY=N,…")
                    .given(options->modelGiven);
                verb.value("--stage-layers", &options->stageLayers,
                           "Layers of each stage, such as 0,3,3,0: only the embedding or only the loss on a stage "
                           "[balanced by cost]")
                    .form("N,N…")
                    .commas()
                    .each()
                    .check(wholeNumber(0, 65'536));
                verb.value("--microbatch-size", &options->microbatchSize, "Samples per microbatch [2]")
                    .form("B")
                    .check(wholeNumber(1, 4096));
                addRecomputeOptions(verb, options->recompute);
                addReplicaOptions(verb, options->replicas);
                addTrainingOptions(verb, options->choice);
                addCommOptions(verb, options->comm, options->link);
                addChannelOptions(verb, options->channels);
                addPerturbOption(verb, options->perturb);
                addMemoryOptions(verb, options->memoryLimit, options->rankMemory);
                verb.value("--seed", &options->seed, "Seed of weights and data [1]")
                    .form("N")
                    .check(wholeNumber(0, 4'000'000'000));
                verb.value("--processes", &options->processes,
                           "Run the ranks in N processes started by mpirun, and compare with threads bit for bit")
                    .form("N")
                    .check(wholeNumber(1, 4096));
                addHostOption(verb, options->place, "Check this host; see 'stagewright hosts'");
                verb.notes("Exit code 1 if a check fails.");
                return [options](Session& session) {
                    return options->place.elsewhere() ? callOnHost("check", options->place, session)
                                                      : runCheckAnywhere(*options, session);
                };
            },
            true, true};
}

} // namespace stagewright
