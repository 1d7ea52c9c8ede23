#include "engine/training/training.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/device/machine.h"
#include "engine/layers/stage_memory.h"
#include "engine/training/training_state.h"
#include "engine/training/training_with_backend.h"
#include "engine/training/watchdog.h"
#include "engine/transport/threads_transport.h"
#include "profiler/cupti/gpu_tracer.h"
#include "schedules/base/step_number.h"
#include "schedules/check/validate.h"
#include "schedules/messages/messages.h"

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

class ThreadTraining final : public Training {
public:
    explicit ThreadTraining(std::shared_ptr<TrainingState> state) : m_state(std::move(state)) {}

    ~ThreadTraining() override
    {
        m_state->control.stop({ErrorCode::Cancelled, "the training ended", {}});
        m_state->transport->interrupt();
        std::vector<bool> left(m_threads.size());
        awaitRest(nanos(std::min(2.0, m_state->options.timeoutSeconds)));
        {
            const std::lock_guard lock(m_state->mutex);
            m_state->command = RankCommand::Leave;
            for (std::size_t i = 0; i < m_threads.size(); ++i) {
                RankRun& rank = m_state->ranks[i];
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
    Result<void> start()
    {
        const int ranks = m_state->schedule->ranks;
        for (int rank = 0; rank < ranks; ++rank) {
            try {
                m_threads.emplace_back([state = m_state, rank] { runRank(state, rank); });
            } catch (const std::system_error& e) {
                m_state->control.stop({ErrorCode::Failed,
                                       fmt::format("rank {} of {}: no thread: {}", rank, ranks, e.what()),
                                       "use fewer ranks"});
                const std::lock_guard lock(m_state->mutex);
                for (int r = rank; r < ranks; ++r)
                    m_state->ranks[static_cast<std::size_t>(r)].done = 1;
                break;
            }
        }
        awaitRest(-1);
        if (std::optional<Error> error = m_state->control.error()) return tl::unexpected(std::move(*error));
        return {};
    }

    Result<StepOutcome> step(std::stop_token stop) override
    {
        try {
            return runStep(stop);
        } catch (const std::bad_alloc&) {
            m_state->control.stop({ErrorCode::Failed, fmt::format("step {}: out of memory", stepNumber(m_steps)), {}});
            m_state->transport->interrupt();
            return tl::unexpected(*m_state->control.error());
        }
    }

    std::optional<Deadlock> stall() const override { return m_stall; }
    const Schedule& schedule() const override { return *m_state->schedule; }
    const Schedule& lists() const override { return m_state->lowered ? *m_state->lowered : *m_state->schedule; }
    ClockMode clock() const override { return m_state->clock; }
    std::vector<ParameterView> parameters(int stage, int copy) override
    {
        const auto& copies = m_state->schedule->placement.copiesOf(stage);
        return m_state->stageOn(stage, copies[static_cast<std::size_t>(copy)].rank).model->parameters();
    }
    void keepGradients(bool keep) override { m_state->keepGradients = keep; }
    std::vector<std::vector<float>> lastGradients() const override
    {
        std::vector<std::vector<float>> gradients;
        for (int stage = 0; stage < m_state->schedule->stages; ++stage)
            gradients.push_back(m_state->firstCopy(stage).gradients);
        return gradients;
    }
    std::vector<Bytes> peak(MemoryCategory category) const override
    {
        std::vector<Bytes> peaks;
        for (std::size_t rank = 0; rank < m_state->ranks.size(); ++rank) {
            peaks.push_back(category == MemoryCategory::Activations
                                ? m_state->recorder.rank(static_cast<int>(rank)).activationPeak()
                                : m_state->ranks[rank].allocator->peak(category));
        }
        return peaks;
    }
    std::vector<std::pair<std::string, std::string>> configuration() const override;
    TraceFacts traceFacts() const override { return m_traceFacts; }
    void timeLayers(bool on) override
    {
        for (StageRun& run : m_state->stages) run.model->timeParts(on, m_state->clock == ClockMode::Virtual);
        m_timesLayers = on;
    }
    std::vector<LayerCosts> layerCosts() const override;
    std::vector<std::pair<std::string, std::string>> environment() const override
    {
        auto facts = m_state->backend->environment();
        for (auto& fact : machineFacts())
            facts.push_back(std::move(fact));
        return facts;
    }

private:
    Result<StepOutcome> runStep(const std::stop_token& stop)
    {
        if (std::optional<Error> error = m_state->control.error()) {
            error->message = "the training has stopped: " + error->message;
            return tl::unexpected(std::move(*error));
        }
        TrainingState& state = *m_state;
        state.step = m_steps;
        state.skipped = false;
        state.data.sample(*state.options.data, state.options.seed, m_steps, state.schedule->microbatches, state.shapes);
        const Nanos begin = monotonicNow();
        {
            const std::stop_callback onStop(stop, [this] {
                m_state->control.stop({ErrorCode::Cancelled, fmt::format("stopped in step {}", stepNumber(m_steps)), {}});
                m_state->transport->interrupt();
            });
            order(RankCommand::Step);
            watch();
        }
        if (std::optional<Error> error = state.control.error()) {
            if (allRest()) state.recorder.dropStep();
            return tl::unexpected(std::move(*error));
        }
        const Nanos wallTime = monotonicNow() - begin;
        const std::shared_ptr<GpuTracer>& tracer = state.options.tracer;
        const bool traced = tracer && tracer->started();
        GpuTrace trace;
        if (traced) trace = tracer->take();
        if (m_timesLayers)
            for (StageRun& run : state.stages) run.model->settlePartTimes();
        Result<RecordedStep> recorded = traced ? state.recorder.finishStep(&trace, &m_traceFacts) : state.recorder.finishStep();
        if (!recorded) {
            state.control.stop(recorded.error());
            return tl::unexpected(std::move(recorded.error()));
        }
        StepOutcome outcome;
        outcome.step = m_steps++;
        outcome.loss = meanLoss();
        outcome.stepTime = recorded->stepTime;
        outcome.wallTime = wallTime;
        outcome.contention = recorded->contention;
        for (const StageRun& run : state.stages)
            outcome.rollbacks += run.undone;
        outcome.skipped = state.skipped;
        outcome.timeline = std::move(recorded->timeline);
        return outcome;
    }

    void order(RankCommand command)
    {
        const std::lock_guard lock(m_state->mutex);
        m_state->command = command;
        for (RankRun& rank : m_state->ranks)
            rank.ordered = rank.done;
        m_state->commanded.notify_all();
    }

    bool restLocked() const
    {
        return std::all_of(m_state->ranks.begin(), m_state->ranks.end(),
                           [](const RankRun& rank) { return rank.done > rank.ordered; });
    }
    bool allRest() const
    {
        const std::lock_guard lock(m_state->mutex);
        return restLocked();
    }
    // Until all ranks are at rest, or for this long (< 0: forever).
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
        while (!awaitRest(look)) {
            if (m_state->control.stopped()) {
                awaitRest(timeout); // every rank stops within the op it runs
                return;
            }
            if (std::optional<Error> hang = watchdog.look(monotonicNow())) {
                m_stall = watchdog.stall();
                m_state->control.stop(std::move(*hang));
                m_state->transport->interrupt();
                awaitRest(std::min(timeout, nanos(1.0)));
                return;
            }
        }
    }

    double meanLoss() const
    {
        const Schedule& schedule = *m_state->schedule;
        double sum = 0;
        for (int j = 0; j < schedule.microbatches; ++j) {
            const int rank = schedule.placement.rankOf(schedule.stages - 1, j);
            sum += m_state->stageOn(schedule.stages - 1, rank).losses[static_cast<std::size_t>(j)];
        }
        return sum / static_cast<double>(schedule.microbatches);
    }

    std::shared_ptr<TrainingState> m_state;
    std::vector<std::thread> m_threads;
    std::optional<Deadlock> m_stall;
    TraceFacts m_traceFacts;
    int m_steps = 0;
    bool m_timesLayers = false;
};

std::vector<std::pair<std::string, std::string>> ThreadTraining::configuration() const
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
    add("stages", fmt::format("{}", plan.stages));
    add("microbatches", fmt::format("{}", plan.microbatches));
    add("model", toText(options.model));
    std::string layers;
    for (int stage = 0; stage < plan.stages; ++stage) {
        layers += fmt::format("{}{}", layers.empty() ? "" : ",", m_state->firstCopy(stage).slice.layerCount);
    }
    add("stage_layers", layers);
    add("microbatch_size", fmt::format("{}", options.microbatchSize));
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
    if (synchronous && m_state->plan.steps) add("optimizer_steps", "by rank, validated afterwards");
    if (!m_state->shapes.sliceTokens.empty())
        add("slice_tokens", fmt::format("{}", fmt::join(m_state->shapes.sliceTokens, ",")));
    if (options.recomputedLayers && m_state->plan.recomputes)
        add("recomputed_layers", fmt::format("{}-{}", options.recomputedLayers->first, options.recomputedLayers->second));
    add("backend", options.backend);
    if (m_state->ranks.front().memory) {
        add("precision", std::string(toText(precisionOf(options.device.precision, *m_state->backend))));
        add("sharing", m_state->clock == ClockMode::Virtual ? "serialised" : std::string(toText(options.device.sharing)));
        if (options.device.sharing == DeviceSharing::Queues) add("devices", fmt::format("{}", m_state->backend->sideBySide(m_state->schedule->ranks)));
        add("gpu_transport", std::string(toText(options.device.transport)));
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

std::vector<LayerCosts> ThreadTraining::layerCosts() const
{
    const TrainingOptions& options = m_state->options;
    const StageLayout layout = layoutOf(options.backend, options.device.precision);
    const auto memoryOf = [&](LayerCosts::Part part) { // of a single part, next to a stage of others
        StageSlice slice{0, 0, part == LayerCosts::Part::Block ? 1 : 0, part == LayerCosts::Part::Embedding, part == LayerCosts::Part::Head};
        return stageMemoryOf(options.model, slice, options.microbatchSize, options.optimizer, layout);
    };
    std::vector<LayerCosts> out;
    for (int stage = 0; stage < m_state->schedule->stages; ++stage)
        for (LayerCosts& part : m_state->firstCopy(stage).model->partTimes()) {
            if (part.duration[static_cast<std::size_t>(OpKind::Forward)] <= 0) return {};
            part.memory = memoryOf(part.part);
            out.push_back(part);
        }
    return out;
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
    if (options.microbatchSize < 1) {
        return fail(ErrorCode::Usage, fmt::format("microbatch size {} is less than 1", options.microbatchSize));
    }
    if (plan->halves && options.microbatchSize % 2 != 0) {
        return fail(ErrorCode::Usage,
                    fmt::format("microbatch size {} is odd, but the schedule halves microbatches", options.microbatchSize),
                    "use an even one");
    }
    Result<std::vector<int>> tokens = sliceTokens(schedule, options.model.sequence);
    if (!tokens) return tl::unexpected(std::move(tokens.error()));
    if (!(options.timeoutSeconds > 0)) {
        return fail(ErrorCode::Usage, fmt::format("a time-out of {} s is not positive", options.timeoutSeconds));
    }
    std::vector<StageSlice> held; // every copy
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        for (const int stage : plan->ranks[static_cast<std::size_t>(rank)].stages)
            held.push_back((*slices)[static_cast<std::size_t>(stage)]);
    }
    if (Result<void> room = backend->checkRoom(options.model, held, options.optimizer); !room) {
        return tl::unexpected(std::move(room.error()));
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
    std::vector<std::unique_ptr<Memory>> memories;
    for (int rank = 0; rank < schedule.ranks; ++rank) {
        Result<std::unique_ptr<Memory>> memory = backend->openMemory(rank, schedule.ranks);
        if (!memory) return tl::unexpected(std::move(memory.error()).with(fmt::format("rank {}", rank)));
        memories.push_back(std::move(*memory));
    }
    const bool onDevice = memories.front() != nullptr; // there an op has the device for itself
    const int permits = clock != ClockMode::Virtual ? 0 : onDevice ? 1
                                                                   : std::min(usableCores(), schedule.ranks);
    const int width = messageWidth(options.model, *backend);
    TrainingOptions whole = options;
    if (!whole.data) whole.data = Corpus::builtIn();

    auto state = std::make_shared<TrainingState>(checked, std::move(*plan), whole, clock,
                                                 permits, std::move(backend), std::move(memories));
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
    if (whole.tracer) {
        Result<MessageNumbers> numbers = MessageNumbers::of(*checked);
        if (!numbers) return tl::unexpected(std::move(numbers.error()));
        state->messageNumbers = *numbers;
    }
    state->shapes = {options.microbatchSize, options.model.sequence, width, std::move(*tokens)};
    state->addStages(*slices);
    auto training = std::make_unique<ThreadTraining>(std::move(state));
    if (Result<void> started = training->start(); !started) return tl::unexpected(std::move(started.error()));
    return training;
}

} // namespace

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
