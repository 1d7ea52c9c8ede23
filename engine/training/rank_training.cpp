#include "engine/training/rank_training.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <new>
#include <system_error>

#include <sys/prctl.h>

#include <fmt/format.h>

#include "engine/saved/saved_training.h"
#include "engine/training/rank_loop.h"
#include "engine/training/watchdog.h"
#include "schedules/base/step_number.h"

namespace stagewright {

namespace {

Nanos nanos(double seconds) { return static_cast<Nanos>(seconds * 1e9); }

// Linux 6.16 and later give a process few lists of waiting threads, as many as its cores need; each wake-up then
// searches a long one. Other systems refuse.
void makeRoomToWait(std::size_t threads)
{
    constexpr int futexHash = 78, setSlots = 1; // PR_FUTEX_HASH, PR_FUTEX_HASH_SET_SLOTS of linux/prctl.h
    constexpr std::size_t few = 64, perThread = 4;
    if (threads > few) (void)::prctl(futexHash, setSlots, std::bit_ceil(perThread * threads), 0UL, 0UL);
}

} // namespace

RankTraining::RankTraining(std::shared_ptr<TrainingState> state)
    : m_state(std::move(state)), m_first(m_state->options.resume ? m_state->options.resume->step() : 0)
{
    for (int rank = 0; rank < m_state->schedule->ranks; ++rank)
        if (m_state->communicator->isHere(rank)) m_here.push_back(rank);
}

RankTraining::~RankTraining()
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

Result<void> RankTraining::start(ProcessCommunicator* processes)
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
    return m_state->communicator->agree(m_state->control.error());
}

Result<StepOutcome> RankTraining::step(const std::stop_token& stop)
{
    try {
        return runStep(stop);
    } catch (const std::bad_alloc&) {
        m_state->stop({ErrorCode::Failed, fmt::format("step {}: out of memory", stepNumber(m_steps)), {}});
        return tl::unexpected(*m_state->control.error());
    }
}

void RankTraining::timeLayers(bool on)
{
    for (StageRun& run : m_state->stages)
        if (run.model) run.model->timeParts(on, m_state->clock == ClockMode::Virtual);
    m_timesLayers = on;
}

Result<StepOutcome> RankTraining::runStep(const std::stop_token& stop)
{
    if (std::optional<Error> error = m_state->control.error()) {
        error->message = "the training has stopped: " + error->message;
        return tl::unexpected(std::move(*error));
    }
    TrainingState& state = *m_state;
    state.communicator->order({m_first + m_steps, state.keepGradients, m_timesLayers});
    prepareStep(m_first + m_steps);
    const Nanos begin = monotonicNow();
    {
        const std::stop_callback onStop(stop, [this] {
            // Who starts processes stops them all when one has ended.
            m_state->stop(m_state->communicator->lost().value_or(
                Error{ErrorCode::Cancelled, fmt::format("stopped in step {}", stepNumber(m_steps)), {}}));
        });
        order(RankCommand::Step);
        watch();
    }
    const Nanos wallTime = monotonicNow() - begin;
    if (!state.control.stopped())
        if (Result<void> taken = state.communicator->takeOver(); !taken) state.stop(taken.error());
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
    Result<RecordedStep> recorded =
        traced ? state.recorder.finishStep(&trace, &m_traceFacts) : state.recorder.finishStep();
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
    outcome.clockBand = state.communicator->clockBand();
    for (const StageRun& run : state.stages) outcome.rollbacks += run.undone;
    outcome.skipped = state.skipped;
    for (const RankRun& run : state.ranks) outcome.traffic.push_back(run.traffic);
    outcome.timeline = std::move(recorded->timeline);
    return outcome;
}

void RankTraining::order(RankCommand command)
{
    const std::lock_guard lock(m_state->mutex);
    m_state->command = command;
    for (const int rank : m_here) runOf(rank).ordered = runOf(rank).done;
    m_state->commanded.notify_all();
}

bool RankTraining::restLocked() const
{
    return std::all_of(m_here.begin(), m_here.end(),
                       [this](int rank) { return runOf(rank).done > runOf(rank).ordered; });
}

void RankTraining::prepareStep(int step)
{
    m_state->step = step;
    m_state->skipped = false;
    m_state->data.sample(*m_state->options.workload, m_state->options.seed, step, m_state->schedule->microbatches,
                         m_state->shapes);
}

bool RankTraining::allRest() const
{
    const std::lock_guard lock(m_state->mutex);
    return restLocked();
}

bool RankTraining::awaitRest(Nanos atMost)
{
    std::unique_lock lock(m_state->mutex);
    if (atMost < 0) {
        m_state->finished.wait(lock, [this] { return restLocked(); });
        return true;
    }
    return m_state->finished.wait_for(lock, std::chrono::nanoseconds(atMost), [this] { return restLocked(); });
}

void RankTraining::watch()
{
    const Nanos timeout = nanos(m_state->options.timeoutSeconds);
    const Nanos look = std::clamp<Nanos>(timeout / 10, 1'000'000, 200'000'000);
    Watchdog watchdog(*m_state, timeout);
    while (!awaitStep(look)) {
        if (m_state->control.stopped()) {
            awaitRest(timeout); // every rank stops within the op it runs
            m_state->communicator->rested(std::min(timeout, nanos(1.0)));
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

double RankTraining::meanLoss() const
{
    const Schedule& schedule = *m_state->schedule;
    std::vector<double> losses;
    for (int j = 0; j < schedule.microbatches; ++j) {
        const int rank = schedule.placement.rankOf(schedule.stages - 1, j);
        losses.push_back(m_state->stageOn(schedule.stages - 1, rank).losses[static_cast<std::size_t>(j)]);
    }
    return m_state->shapes.meanOf(losses);
}

Result<Training::Served> RankTraining::serve()
{
    if (std::optional<Error> error = m_state->control.error()) return tl::unexpected(std::move(*error));
    const std::optional<ProcessCommunicator::Request> request =
        m_processes ? m_processes->request()
                    : ProcessCommunicator::Request{ProcessCommunicator::Request::Kind::Leave, {}, 0, 0};
    if (!request) return Served::Nothing;
    switch (request->kind) {
    case ProcessCommunicator::Request::Kind::Leave: return Served::Leave;
    case ProcessCommunicator::Request::Kind::Weights: m_processes->sendWeights(*request); return Served::Something;
    case ProcessCommunicator::Request::Kind::State: m_processes->sendState(*request); return Served::Something;
    case ProcessCommunicator::Request::Kind::Clock: m_processes->sendClock(); return Served::Something;
    case ProcessCommunicator::Request::Kind::Step: break;
    }
    m_state->keepGradients = request->step.keepGradients;
    if (request->step.timesLayers != m_timesLayers) timeLayers(request->step.timesLayers);
    prepareStep(request->step.step);
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

} // namespace stagewright
