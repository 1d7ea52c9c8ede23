#include "engine/training/training.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <sys/prctl.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/device/machine.h"
#include "engine/layers/stage_memory.h"
#include "engine/training/device_connection.h"
#include "engine/training/process_team.h"
#include "engine/training/rank_report.h"
#include "engine/training/sharing_rules.h"
#include "engine/training/training_state.h"
#include "engine/training/training_with_backend.h"
#include "engine/training/watchdog.h"
#include "engine/transport/bytes.h"
#include "engine/transport/threads_transport.h"
#include "profiler/cupti/gpu_tracer.h"
#include "schedules/base/step_number.h"
#include "schedules/check/validate.h"
#include "schedules/messages/messages.h"
#include "schedules/model/mesh.h"

namespace stagewright {

std::string_view toText(ClockMode mode)
{
    switch (mode) {
    case ClockMode::Auto:
        return "auto";
    case ClockMode::Wall:
        return "wall";
    case ClockMode::Virtual:
        return "virtual";
    }
    return "auto";
}

namespace {

Nanos nanos(double seconds)
{
    return static_cast<Nanos>(seconds * 1e9);
}

// The one that a backend chose if none was requested.
Precision precisionOf(Precision asked, const Backend& backend)
{
    if (asked != Precision::Default) return asked;
    return backend.capabilities().elementBytes == 2 ? Precision::Bf16 : Precision::Fp32;
}

// Linux 6.16 and later give a process few lists of waiting threads, as many as its cores need; each wake-up then searches a long one. Other systems refuse.
void makeRoomToWait(std::size_t threads)
{
    constexpr int futexHash = 78, setSlots = 1; // PR_FUTEX_HASH, PR_FUTEX_HASH_SET_SLOTS of linux/prctl.h
    constexpr std::size_t few = 64, perThread = 4;
    if (threads > few) (void)::prctl(futexHash, setSlots, std::bit_ceil(perThread * threads), 0UL, 0UL);
}

class RankTraining final : public Training {
public:
    explicit RankTraining(std::shared_ptr<TrainingState> state) : m_state(std::move(state))
    {
        for (int rank = 0; rank < m_state->schedule->ranks; ++rank)
            if (m_state->team->isHere(rank)) m_here.push_back(rank);
    }

    ~RankTraining() override
    {
        if (m_processes) m_processes->end();
        m_state->control.stop({ErrorCode::Cancelled, "the training ended", {}});
        m_state->transport->interrupt();
        std::vector<bool> left(m_threads.size());
        awaitRest(nanos(std::min(2.0, m_state->options.timeoutSeconds)));
        {
            const std::lock_guard lock(m_state->mutex);
            m_state->command = RankCommand::Leave;
            for (std::size_t i = 0; i < m_threads.size(); ++i) {
                RankRun& rank = runOf(m_here[i]);
                left[i] = rank.done <= rank.ordered; // hangs inside an op
                rank.ordered = rank.done + (left[i] ? 1 : 0);
            }
        }
        m_state->commanded.notify_all();
        for (std::size_t i = 0; i < m_threads.size(); ++i) {
            if (left[i]) {
                m_threads[i].detach(); // keeps the state alive until it comes back
            } else {
                m_threads[i].join();
            }
        }
    }

    // Starts the ranks and waits until they have made their stages.
    Result<void> start(ProcessTeam* processes)
    {
        m_processes = processes;
        if (m_processes) m_processes->begin();
        const int ranks = m_state->schedule->ranks;
        makeRoomToWait(m_here.size());
        for (const int rank : m_here) {
            try {
                m_threads.emplace_back([state = m_state, rank] { runRank(state, rank); });
            } catch (const std::system_error& e) {
                m_state->control.stop({ErrorCode::Failed,
                                       fmt::format("rank {} of {}: no thread: {}", rank, ranks, e.what()),
                                       "use fewer ranks"});
                const std::lock_guard lock(m_state->mutex);
                for (const int r : m_here)
                    if (r >= rank) runOf(r).done = 1;
                break;
            }
        }
        awaitRest(-1);
        return m_state->team->agree(m_state->control.error());
    }

    Result<StepOutcome> step(std::stop_token stop) override
    {
        try {
            return runStep(stop);
        } catch (const std::bad_alloc&) {
            m_state->stop({ErrorCode::Failed, fmt::format("step {}: out of memory", stepNumber(m_steps)), {}});
            return tl::unexpected(*m_state->control.error());
        }
    }

    std::optional<Deadlock> stall() const override { return m_stall; }
    std::optional<Error> lost() const override { return m_state->team->lost(); }
    const Schedule& schedule() const override { return *m_state->schedule; }
    const Schedule& lists() const override { return m_state->lowered ? *m_state->lowered : *m_state->schedule; }
    ClockMode clock() const override { return m_state->clock; }
    std::vector<ParameterView> parameters(int stage, int copy) override
    {
        const int rank = m_state->schedule->placement.copiesOf(stage)[static_cast<std::size_t>(copy)].rank;
        if (const auto& share = m_state->stageOn(stage, rank).share; share && !hasAllValues(*share)) return sharedParameters(stage, copy);
        if (m_state->team->isHere(rank)) return m_state->stageOn(stage, rank).model->parameters();
        Result<StageWeights> weights = m_state->team->weightsOf(stage, rank);
        if (!weights) m_state->stop(weights.error());
        StageWeights& kept = m_weights[{stage, copy}];
        kept = weights ? std::move(*weights) : StageWeights();
        return kept.views();
    }
    void keepGradients(bool keep) override { m_state->keepGradients = keep; }
    std::vector<std::vector<float>> lastGradients() const override
    {
        std::vector<std::vector<float>> gradients;
        for (int stage = 0; stage < m_state->schedule->stages; ++stage)
            gradients.push_back(m_state->gradientsOf(stage));
        return gradients;
    }
    std::vector<Bytes> peak(MemoryCategory category) const override
    {
        std::vector<Bytes> peaks;
        for (int rank = 0; rank < m_state->schedule->ranks; ++rank) peaks.push_back(m_state->peaksOf(rank).of[static_cast<std::size_t>(category)]);
        return peaks;
    }
    std::vector<std::pair<std::string, std::string>> configuration() const override;
    TraceFacts traceFacts() const override { return m_traceFacts; }
    void timeLayers(bool on) override
    {
        for (StageRun& run : m_state->stages)
            if (run.model) run.model->timeParts(on, m_state->clock == ClockMode::Virtual);
        m_timesLayers = on;
    }
    std::vector<LayerCosts> layerCosts() const override;
    std::vector<std::pair<std::string, std::string>> environment() const override
    {
        auto facts = m_state->backend->environment();
        for (auto& fact : machineFacts())
            facts.push_back(std::move(fact));
        for (auto& fact : m_state->team->facts())
            facts.push_back(std::move(fact));
        return facts;
    }
    Result<Served> serve() override;

private:
    // As SharedState says it of a rank that may be elsewhere.
    bool hasAllValues(const StageShare& share) const
    {
        const bool narrow = m_state->backend->capabilities().elementBytes < static_cast<int>(sizeof(float));
        return share.level == ShardLevel::None || (!narrow && share.level != ShardLevel::Weights);
    }
    // Put together from what the ranks of the stage own.
    std::vector<ParameterView> sharedParameters(int stage, int copy)
    {
        StageWeights& kept = m_weights[{stage, copy}];
        kept = {};
        std::vector<float> flat;
        for (const StageRun* run : m_state->copiesOf(stage)) {
            const bool here = m_state->team->isHere(run->rank);
            std::vector<float> values;
            Result<StageWeights> owned = here ? weightsFrom(bytesOf(ownedWeights(*run->model, values))) : m_state->team->weightsOf(stage, run->rank);
            if (!owned) {
                m_state->stop(owned.error());
                return {};
            }
            const StageShare& share = *run->share;
            flat.resize(static_cast<std::size_t>(share.flat.padded));
            values = std::move(owned->tensors.back().value); // behind the names and shapes of all
            std::size_t at = 0;
            for (const ShardPiece& piece : share.flat.pieces) {
                if (piece.owner != share.member) continue;
                std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(at), piece.size(), flat.begin() + piece.begin);
                at += static_cast<std::size_t>(piece.size());
            }
            if (kept.tensors.empty()) kept.tensors.assign(owned->tensors.begin(), owned->tensors.end() - 1);
        }
        std::size_t at = 0;
        for (StageWeights::Tensor& tensor : kept.tensors) {
            std::size_t count = 1;
            for (const int extent : tensor.shape) count *= static_cast<std::size_t>(extent);
            tensor.value.assign(flat.begin() + static_cast<std::ptrdiff_t>(at), flat.begin() + static_cast<std::ptrdiff_t>(at + count));
            at += count;
        }
        return kept.views();
    }

    Result<StepOutcome> runStep(const std::stop_token& stop)
    {
        if (std::optional<Error> error = m_state->control.error()) {
            error->message = "the training has stopped: " + error->message;
            return tl::unexpected(std::move(*error));
        }
        TrainingState& state = *m_state;
        state.team->order({m_steps, state.keepGradients, m_timesLayers});
        prepareStep(m_steps);
        const Nanos begin = monotonicNow();
        {
            const std::stop_callback onStop(stop, [this] {
                // Who starts processes stops them all when one has ended.
                m_state->stop(m_state->team->lost().value_or(Error{ErrorCode::Cancelled, fmt::format("stopped in step {}", stepNumber(m_steps)), {}}));
            });
            order(RankCommand::Step);
            watch();
        }
        const Nanos wallTime = monotonicNow() - begin;
        if (!state.control.stopped())
            if (Result<void> taken = state.team->takeOver(); !taken) state.stop(taken.error());
        if (std::optional<Error> error = state.control.error()) {
            if (allRest()) state.recorder.dropStep();
            return tl::unexpected(std::move(*error));
        }
        const std::shared_ptr<GpuTracer>& tracer = state.options.tracer;
        const bool traced = tracer && tracer->started();
        GpuTrace trace;
        if (traced) trace = tracer->take();
        if (m_timesLayers)
            for (StageRun& run : state.stages)
                if (run.model) run.model->settlePartTimes();
        Result<RecordedStep> recorded = traced ? state.recorder.finishStep(&trace, &m_traceFacts) : state.recorder.finishStep();
        if (!recorded) {
            state.stop(recorded.error());
            return tl::unexpected(std::move(recorded.error()));
        }
        StepOutcome outcome;
        outcome.step = m_steps++;
        outcome.loss = meanLoss();
        outcome.stepTime = recorded->stepTime;
        outcome.wallTime = wallTime;
        outcome.contention = recorded->contention;
        outcome.clockBand = state.team->clockBand();
        for (const StageRun& run : state.stages)
            outcome.rollbacks += run.undone;
        outcome.skipped = state.skipped;
        for (const RankRun& run : state.ranks) outcome.traffic.push_back(run.traffic);
        outcome.timeline = std::move(recorded->timeline);
        return outcome;
    }

    void order(RankCommand command)
    {
        const std::lock_guard lock(m_state->mutex);
        m_state->command = command;
        for (const int rank : m_here)
            runOf(rank).ordered = runOf(rank).done;
        m_state->commanded.notify_all();
    }

    bool restLocked() const
    {
        return std::all_of(m_here.begin(), m_here.end(), [this](int rank) { return runOf(rank).done > runOf(rank).ordered; });
    }
    RankRun& runOf(int rank) const { return m_state->ranks[static_cast<std::size_t>(rank)]; }
    void prepareStep(int step)
    {
        m_state->step = step;
        m_state->skipped = false;
        m_state->data.sample(*m_state->options.data, m_state->options.seed, step, m_state->schedule->microbatches, m_state->shapes);
    }
    bool allRest() const
    {
        const std::lock_guard lock(m_state->mutex);
        return restLocked();
    }
    // Until all ranks here are at rest, or for this long (< 0: forever); then those elsewhere, likewise.
    bool awaitStep(Nanos atMost) { return awaitRest(atMost) && m_state->team->rested(atMost); }
    bool awaitRest(Nanos atMost)
    {
        std::unique_lock lock(m_state->mutex);
        if (atMost < 0) {
            m_state->finished.wait(lock, [this] { return restLocked(); });
            return true;
        }
        return m_state->finished.wait_for(lock, std::chrono::nanoseconds(atMost), [this] { return restLocked(); });
    }

    // Waits for the end of the step; stops it if there is no progress for the time-out, or if a rank does not stop.
    void watch()
    {
        const Nanos timeout = nanos(m_state->options.timeoutSeconds);
        const Nanos look = std::clamp<Nanos>(timeout / 10, 1'000'000, 200'000'000);
        Watchdog watchdog(*m_state, timeout);
        while (!awaitStep(look)) {
            if (m_state->control.stopped()) {
                awaitRest(timeout); // every rank stops within the op it runs
                m_state->team->rested(std::min(timeout, nanos(1.0)));
                return;
            }
            if (std::optional<Error> hang = watchdog.look(monotonicNow())) {
                m_stall = watchdog.stall();
                m_state->stop(*hang);
                awaitRest(std::min(timeout, nanos(1.0)));
                return;
            }
        }
    }

    double meanLoss() const
    {
        const Schedule& schedule = *m_state->schedule;
        std::vector<double> losses;
        for (int j = 0; j < schedule.microbatches; ++j) {
            const int rank = schedule.placement.rankOf(schedule.stages - 1, j);
            losses.push_back(m_state->stageOn(schedule.stages - 1, rank).losses[static_cast<std::size_t>(j)]);
        }
        return m_state->shapes.meanOf(losses);
    }

    std::shared_ptr<TrainingState> m_state;
    std::vector<int> m_here; // ranks
    std::vector<std::thread> m_threads;
    ProcessTeam* m_processes = nullptr;                    // the state's team, where it is one
    std::map<std::pair<int, int>, StageWeights> m_weights; // of stages elsewhere, by stage and copy, as last asked for
    std::optional<Deadlock> m_stall;
    TraceFacts m_traceFacts;
    int m_steps = 0;
    bool m_timesLayers = false;
};

Result<Training::Served> RankTraining::serve()
{
    if (std::optional<Error> error = m_state->control.error()) return tl::unexpected(std::move(*error));
    const std::optional<ProcessTeam::Wish> wish = m_processes ? m_processes->wish() : ProcessTeam::Wish{ProcessTeam::Wish::Kind::Leave, {}, 0, 0};
    if (!wish) return Served::Nothing;
    switch (wish->kind) {
    case ProcessTeam::Wish::Kind::Leave:
        return Served::Leave;
    case ProcessTeam::Wish::Kind::Weights:
        m_processes->sendWeights(*wish);
        return Served::Something;
    case ProcessTeam::Wish::Kind::Clock:
        m_processes->sendClock();
        return Served::Something;
    case ProcessTeam::Wish::Kind::Step:
        break;
    }
    m_state->keepGradients = wish->step.keepGradients;
    if (wish->step.timesLayers != m_timesLayers) timeLayers(wish->step.timesLayers);
    prepareStep(wish->step.step);
    order(RankCommand::Step);
    awaitRest(-1); // the leader's watchdog looks after all ranks
    for (StageRun& run : m_state->stages) {
        if (!run.model || !m_timesLayers) continue;
        run.model->settlePartTimes();
        run.partTimes = run.model->partTimes();
    }
    m_processes->report();
    return Served::Something;
}

std::vector<std::pair<std::string, std::string>> RankTraining::configuration() const
{
    const TrainingOptions& options = m_state->options;
    const Schedule& plan = *m_state->schedule;
    const OptimizerConfig& optimizer = options.optimizer;
    std::vector<std::pair<std::string, std::string>> pairs;
    const auto add = [&pairs](std::string key, std::string value) {
        pairs.emplace_back(std::move(key), std::move(value));
    };
    add("schedule", plan.name);
    add("ranks", fmt::format("{}", plan.ranks));
    if (plan.replicas > 1) add("replicas", fmt::format("{}", plan.replicas));
    add("stages", fmt::format("{}", plan.stages));
    add("microbatches", fmt::format("{}", plan.microbatches));
    add("model", toText(options.model));
    std::string layers;
    for (int stage = 0; stage < plan.stages; ++stage) {
        layers += fmt::format("{}{}", layers.empty() ? "" : ",", m_state->firstCopy(stage).slice.layerCount);
    }
    add("stage_layers", layers);
    add("microbatch_size", fmt::format("{}", options.microbatchSize));
    if (!options.replicaSamples.empty()) add("replica_samples", fmt::format("{}", fmt::join(options.replicaSamples, ",")));
    add("data", options.data->name());
    add("seed", fmt::format("{}", options.seed));
    if (optimizer.kind == OptimizerKind::AdamW) {
        add("optimizer",
            fmt::format("adamw, learning rate {}, beta {} {}, epsilon {}, weight decay {}", optimizer.learningRate,
                        optimizer.beta1, optimizer.beta2, optimizer.epsilon, optimizer.weightDecay));
    } else {
        add("optimizer", fmt::format("sgd, learning rate {}, momentum {}, weight decay {}", optimizer.learningRate,
                                     optimizer.momentum, optimizer.weightDecay));
    }
    add("warmup_of_learning_rate", fmt::format("{}", optimizer.warmupSteps));
    const bool synchronous = plan.weights == WeightRule::Synchronous;
    if (!synchronous) add("weights", std::string(toText(plan.weights)));
    add("clip_norm", optimizer.clipNorm > 0 && synchronous ? fmt::format("{}", optimizer.clipNorm) : "none");
    if (m_state->plan.shared) {
        add("shard", toText(options.sharding));
        if (options.sharding.bucket > 0) add("bucket_bytes", fmt::format("{}", options.sharding.bucket));
    }
    if (!options.cuts.empty()) add("cut", fmt::format("{}", fmt::join(options.cuts, ",")));
    if (synchronous && m_state->plan.steps && !m_state->plan.shared) add("optimizer_steps", "by rank, validated afterwards");
    if (const auto& slices = m_state->shapes.ofRank(0).sliceTokens; !slices.empty()) add("slice_tokens", fmt::format("{}", fmt::join(slices, ",")));
    if (options.recomputedLayers && m_state->plan.recomputes)
        add("recomputed_layers", fmt::format("{}-{}", options.recomputedLayers->first, options.recomputedLayers->second));
    add("backend", options.backend);
    if (m_state->ranks.front().memory) {
        add("precision", std::string(toText(precisionOf(options.device.precision, *m_state->backend))));
        add("sharing", m_state->clock == ClockMode::Virtual ? "serialised" : std::string(toText(options.device.sharing)));
        if (options.device.sharing == DeviceSharing::Queues) add("devices", fmt::format("{}", m_state->backend->sideBySide(m_state->schedule->ranks)));
        const bool byMpi = options.job && options.device.transport == DeviceTransport::Copies;
        const char* way = byMpi && options.job->processes().takesDeviceMemory() ? "mpi" : "host";
        add("gpu_transport", byMpi ? std::string(way) : std::string(toText(options.device.transport)));
    }
    add("transport", std::string(m_state->transport->name()));
    if (options.channels.sends == SendMode::Rendezvous) {
        add("sends", "rendezvous");
        add("receives", options.channels.blockingReceives() ? "blocking" : "posted");
        add("lowering", m_state->checked->cameLowered() ? "as given" : toText(options.lowering));
    }
    if (options.channels.perDirection > 0) add("channels", fmt::format("{}", options.channels.perDirection));
    add("clock", std::string(toText(m_state->clock)));
    if (m_state->clock == ClockMode::Virtual) add("permits", fmt::format("{}", m_state->control.permits()));
    const auto linkText = [](const Link& link) {
        return fmt::format("{} ns, {}", link.latency,
                           link.bytesPerSecond > 0 ? fmt::format("{} bytes/s", link.bytesPerSecond)
                                                   : "no bandwidth limit");
    };
    add("link", options.links.all == Link{} ? "none" : linkText(options.links.all));
    for (const auto& [ends, link] : options.links.overrides) {
        add(fmt::format("link_{}_{}", ends.first, ends.second), linkText(link));
    }
    return pairs;
}

std::vector<LayerCosts> RankTraining::layerCosts() const
{
    const TrainingOptions& options = m_state->options;
    const StageLayout layout = layoutOf(options.backend, options.device.precision);
    const auto memoryOf = [&](LayerCosts::Part part) { // of a single part, next to a stage of others
        StageSlice slice{0, 0, part == LayerCosts::Part::Block ? 1 : 0, part == LayerCosts::Part::Embedding, part == LayerCosts::Part::Head};
        return stageMemoryOf(options.model, slice, options.microbatchSize, options.optimizer, layout);
    };
    std::vector<LayerCosts> out;
    for (int stage = 0; stage < m_state->schedule->stages; ++stage) {
        const StageRun& run = m_state->firstCopy(stage);
        for (LayerCosts part : run.model ? run.model->partTimes() : run.partTimes) {
            if (part.duration[static_cast<std::size_t>(OpKind::Forward)] <= 0) return {};
            part.memory = memoryOf(part.part);
            out.push_back(part);
        }
    }
    return out;
}

// Into how many pieces the gradients that a rank steps of a stage are cut, at most.
int steppedPieces(const Schedule& schedule, const TrainingOptions& options, const StageSlice& slice)
{
    const auto members = static_cast<int>(holdersOf(schedule.placement, slice.stage).size());
    const FlatState flat = flatStateOf(options.sharding, layerElements(options.model, slice), members);
    const std::int64_t most = std::max<std::int64_t>(1, options.sharding.bucket / static_cast<Bytes>(sizeof(float)));
    const std::int64_t stepped = options.sharding.level == ShardLevel::None ? flat.padded : flat.largestOwned(members);
    return static_cast<int>(std::max<std::int64_t>(1, (stepped + most - 1) / most));
}

// What is not there for ranks in processes is refused by name.
Result<void> canSpread(const TrainingOptions& options, ClockMode clock, bool onDevice)
{
    const auto refused = [](const std::string& what) {
        return fail(ErrorCode::Usage, what + " is for ranks that are threads of one process", "leave it out, or run the ranks as threads");
    };
    if (onDevice && clock == ClockMode::Virtual)
        return fail(ErrorCode::Usage, "ranks in several processes can't take turns on a GPU", "give --sharing queues, which runs them side by side, use as many GPUs as ranks, or run the ranks as threads");
    if (onDevice && options.device.sharing == DeviceSharing::Partitions) return refused("--sharing partitions");
    return {};
}

// The transport and the team of a training whose ranks are in several processes.
Result<ProcessTeam*> joinProcesses(TrainingState& state, const RanksByProcess& where)
{
    Result<std::unique_ptr<ProcessTeam>> made = makeProcessTeam(state, state.options.job, where);
    if (!made) return tl::unexpected(std::move(made.error()));
    ProcessTeam* team = made->get();
    state.team = std::move(*made);
    std::vector<ExpectedMessage> expected;
    for (int rank = 0; rank < where.ranks && !state.lowered; ++rank)
        if (team->isHere(rank))
            for (const PlannedMessage& input : state.plan.ranks[static_cast<std::size_t>(rank)].inputs) expected.push_back({input.key, input.rank, rank});
    for (int rank = 0; rank < where.ranks && state.lowered; ++rank) // in the order of the sends
        for (const Op& op : state.lowered->order[static_cast<std::size_t>(rank)]) {
            if (!isSend(op.kind)) continue;
            const Op receive = receiveOf(op);
            const int to = state.schedule->placement.rankOf(receive.stage, receive.microbatch);
            MessageKey key = messageOf(receive);
            for (int k = 0; k < op.count && team->isHere(to); ++k, ++key.microbatch) expected.push_back({key, rank, to});
        }
    auto transport = makeProcessesTransport(state.options.job, where, state.schedule->placement, state.checked->cells(), expected, state.options.channels,
                                            state.options.links, std::move(state.transport), [team] { team->wake(); });
    if (!transport) return tl::unexpected(std::move(transport.error()));
    if (connectsDevices(state)) {
        if (Result<void> connected = connectDevices(state, where, std::move(*transport)); !connected) return tl::unexpected(std::move(connected.error()));
    } else {
        state.transport = std::move(*transport);
    }
    return team;
}

Result<std::unique_ptr<Training>> makeTraining(const std::shared_ptr<const CheckedSchedule>& checked, const TrainingOptions& options,
                                               std::unique_ptr<Backend> backend)
{
    const bool rendezvous = options.channels.sends == SendMode::Rendezvous;
    const Schedule& schedule = checked->compute();
    Result<ExecutionPlan> plan = planExecution(*checked);
    if (!plan) return tl::unexpected(std::move(plan.error()));
    Result<std::vector<StageSlice>> slices = sliceModel(options.model, schedule.stages, options.stageLayers);
    if (!slices) return tl::unexpected(std::move(slices.error()));
    if (!options.replicaSamples.empty() && options.replicaSamples.size() != static_cast<std::size_t>(schedule.replicas))
        return fail(ErrorCode::Usage, fmt::format("{} sizes of microbatches for {} replicas", options.replicaSamples.size(), schedule.replicas), "give one for each replica");
    std::vector<int> sizes = options.replicaSamples;
    if (sizes.empty()) sizes = {options.microbatchSize};
    for (const int size : sizes) {
        if (size < 1) return fail(ErrorCode::Usage, fmt::format("microbatch size {} is less than 1", size));
        if (plan->halves && size % 2 != 0)
            return fail(ErrorCode::Usage, fmt::format("microbatch size {} is odd, but the schedule halves microbatches", size), "use an even one");
    }
    Result<std::vector<int>> tokens = sliceTokens(schedule, options.model.sequence);
    if (!tokens) return tl::unexpected(std::move(tokens.error()));
    if (!(options.timeoutSeconds > 0)) {
        return fail(ErrorCode::Usage, fmt::format("a time-out of {} s is not positive", options.timeoutSeconds));
    }
    std::vector<StageSlice> held; // every copy
    if (!options.rankMemory.empty() && options.rankMemory.size() != static_cast<std::size_t>(schedule.ranks))
        return fail(ErrorCode::Usage, fmt::format("{} memory limits for {} ranks", options.rankMemory.size(), schedule.ranks), "give one for each rank");
    if (Result<void> fits = checkSharing(schedule, *plan, options); !fits) return tl::unexpected(std::move(fits.error()));
    if (Result<void> fits = checkCuts(schedule, *plan, options, *slices); !fits) return tl::unexpected(std::move(fits.error()));
    std::vector<char> known(slices->size(), 0); // sharded weights: of all copies together as much as of one
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        for (const int stage : plan->ranks[static_cast<std::size_t>(rank)].stages) {
            if (options.sharding.level == ShardLevel::Weights && std::exchange(known[static_cast<std::size_t>(stage)], 1) != 0) continue;
            held.push_back((*slices)[static_cast<std::size_t>(stage)]);
        }
    }
    if (Result<void> room = backend->checkRoom(options.model, held, options.optimizer); !room) {
        return tl::unexpected(std::move(room.error()));
    }
    RanksByProcess where{schedule.ranks, schedule.ranks};
    if (options.job) {
        Result<RanksByProcess> spread = ranksByProcess(schedule.ranks, *options.job);
        if (!spread) return tl::unexpected(std::move(spread.error()));
        where = *spread;
    }
    ClockMode clock = options.clock;
    const bool wallOnly = rendezvous || options.channels.perDirection > 0;
    if (clock == ClockMode::Virtual && wallOnly) {
        return fail(ErrorCode::Usage,
                    rendezvous ? "the virtual clock does not know rendezvous sends" : "the virtual clock does not know limited channels",
                    "train on the wall clock");
    }
    if (clock == ClockMode::Auto && wallOnly) clock = ClockMode::Wall;
    if (clock == ClockMode::Auto && backend->sideBySide(schedule.ranks) > 0)
        clock = schedule.ranks <= backend->sideBySide(schedule.ranks) ? ClockMode::Wall : ClockMode::Virtual;
    if (clock == ClockMode::Auto) { // watching the cores takes a while: only where they may suffice
        const bool enough = schedule.ranks <= usableCores() && schedule.ranks <= idleCores();
        clock = enough ? ClockMode::Wall : ClockMode::Virtual;
    }
    std::vector<std::unique_ptr<Memory>> memories(static_cast<std::size_t>(schedule.ranks)); // null also where the rank is elsewhere
    bool onDevice = false;                                                                   // there an op has the device for itself
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        if (options.job && where.processOf(rank) != options.job->index()) continue;
        Result<std::unique_ptr<Memory>> memory = backend->openMemory(rank, schedule.ranks, where.perProcess);
        if (!memory) return tl::unexpected(std::move(memory.error()).with(fmt::format("rank {}", rank)));
        onDevice = onDevice || *memory != nullptr;
        memories[static_cast<std::size_t>(rank)] = std::move(*memory);
    }
    if (options.job)
        if (Result<void> can = canSpread(options, clock, onDevice); !can) return tl::unexpected(std::move(can.error()));
    const int permits = clock != ClockMode::Virtual ? 0 : onDevice  ? 1
                                                      : options.job ? 0 // the system shares the cores out; CPU time says what an op took
                                                                    : std::min(usableCores(), schedule.ranks);
    const int width = messageWidth(options.model, *backend);
    TrainingOptions whole = options;
    if (!whole.data) whole.data = Corpus::builtIn();
    std::vector<int> buckets; // by stage
    if (options.sharding.bucket > 0 && plan->shared)
        for (const StageSlice& slice : *slices) buckets.push_back(steppedPieces(schedule, options, slice));

    auto state = std::make_shared<TrainingState>(checked, std::move(*plan), whole, clock,
                                                 where.perProcess, permits, std::move(backend), std::move(memories), std::move(buckets));
    const auto giveUp = [&ranks = state->ranks] { // ranks that wait for another device
        for (const RankRun& rank : ranks)
            if (rank.memory) rank.memory->interrupt();
    };
    state->transport = makeThreadsTransport(schedule.ranks, schedule.placement, checked->cells(), options.channels, giveUp);
    if (rendezvous) { // else the order of messages changes nothing
        Result<Schedule> lowered = checked->lowered(options.lowering);
        if (!lowered) return tl::unexpected(std::move(lowered.error()));
        state->lowered = std::make_shared<const Schedule>(std::move(*lowered));
    }
    state->shapes = BatchShapes(schedule, {options.microbatchSize, options.model.sequence, width, std::move(*tokens)}, options.replicaSamples);
    ProcessTeam* processes = nullptr;
    if (options.job) {
        Result<ProcessTeam*> joined = joinProcesses(*state, where);
        if (!joined) return tl::unexpected(std::move(joined.error()));
        processes = *joined;
    } else {
        state->team = makeThreadTeam(*state);
    }
    if (whole.tracer) {
        Result<MessageNumbers> numbers = MessageNumbers::of(*checked);
        if (!numbers) return tl::unexpected(std::move(numbers.error()));
        state->messageNumbers = *numbers;
    }
    state->addStages(*slices);
    auto training = std::make_unique<RankTraining>(std::move(state));
    if (Result<void> started = training->start(processes); !started) return tl::unexpected(std::move(started.error()));
    return training;
}

} // namespace

Result<void> agreeOnOptions(TrainingOptions& options, int ranks)
{
    if (!options.job) return {};
    ByteWriter own;
    std::optional<Error> failed;
    if (options.job->index() == 0) {
        Result<std::unique_ptr<Backend>> backend = makeBackend(options.backend, options.device);
        Result<DeviceOptions> settled = backend ? (*backend)->settle(options.device, options.model, options.microbatchSize) : tl::unexpected(backend.error());
        if (!settled) failed = settled.error();
        const int sideBySide = backend ? (*backend)->sideBySide(ranks) : 0;                          // 0: on the processor
        const bool ownDevices = sideBySide > 0 && options.device.transport == DeviceTransport::Nccl; // each process may see its own alone
        if (options.clock == ClockMode::Auto && !ownDevices && options.job->oneHost() && ranks > (sideBySide > 0 ? sideBySide : options.job->cores())) options.clock = ClockMode::Virtual;
        own.put(options.clock == ClockMode::Auto ? ClockMode::Wall : options.clock);
        own.text(settled ? settled->products : std::string());
    }
    Result<std::vector<std::byte>> agreed = options.job->fromFirst(own.take());
    if (!agreed) return tl::unexpected(std::move(agreed.error()));
    if (failed) return tl::unexpected(std::move(*failed)); // the others find the same fault, or none
    ByteReader bytes(*agreed);
    options.clock = bytes.get<ClockMode>();
    options.device.products = bytes.text();
    return {};
}

Result<void> serveTrainings(std::span<const std::unique_ptr<Training>> trainings, const ProcessJob& job)
{
    std::vector<Training*> left;
    for (const auto& training : trainings) left.push_back(training.get());
    std::optional<Error> stopped;
    while (!left.empty() && !stopped) {
        const auto asked = [&] {
            bool any = false;
            std::erase_if(left, [&](Training* training) {
                Result<Training::Served> served = training->serve();
                if (!served) stopped = std::move(served.error());
                any = any || !served || *served != Training::Served::Nothing;
                return served && *served == Training::Served::Leave;
            });
            return any;
        };
        job.await(asked, [] { return false; });
    }
    if (stopped) return tl::unexpected(std::move(*stopped));
    return {};
}

TraceFacts Training::traceFacts() const
{
    return {};
}

Result<std::unique_ptr<Training>> Training::create(const Schedule& schedule, const TrainingOptions& options)
{
    Result<std::unique_ptr<Backend>> backend = makeBackend(options.backend, options.device);
    if (!backend) return tl::unexpected(std::move(backend.error()));
    return createTraining(schedule, options, std::move(*backend));
}

Result<std::unique_ptr<Training>> createTraining(const Schedule& schedule, const TrainingOptions& options,
                                                 std::unique_ptr<Backend> backend)
{
    auto checked = CheckedSchedule::of(schedule);
    if (!checked) return tl::unexpected(std::move(checked.error()));
    return createTraining(*checked, options, std::move(backend));
}

Result<std::unique_ptr<Training>> createTraining(const std::shared_ptr<const CheckedSchedule>& schedule, const TrainingOptions& options,
                                                 std::unique_ptr<Backend> backend)
{
    try {
        return makeTraining(schedule, options, std::move(backend));
    } catch (const std::bad_alloc&) {
        return fail(ErrorCode::Failed, fmt::format("setting up {} ranks: out of memory", schedule->compute().ranks));
    }
}

} // namespace stagewright
