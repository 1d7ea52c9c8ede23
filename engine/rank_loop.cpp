#include <cmath>
#include <exception>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/run_state.h"
#include "profiler/clock.h"

namespace stagewright {

float gradientScale(std::span<const double> squareSums, double clipNorm)
{
    double sum = 0;
    for (const double part : squareSums)
        sum += part;
    const double norm = std::sqrt(sum);
    return clipNorm > 0 && norm > clipNorm ? static_cast<float>(clipNorm / norm) : 1.0f;
}

namespace {

class RankLoop
{
public:
    RankLoop(RunState& state, int rank)
        : m_state(state), m_rank(rank), m_plan(state.plan.ranks[static_cast<std::size_t>(rank)]),
          m_run(state.ranks[static_cast<std::size_t>(rank)]), m_recorder(state.recorder.rank(rank)),
          m_virtual(state.clock == ClockMode::Virtual)
    {
        std::size_t most = 0;
        for (const PlannedOp& op : m_plan.ops)
            most = std::max<std::size_t>(most, op.inputCount + op.outputCount);
        m_inputs.reserve(2 * most);
        m_outputs.reserve(most);
    }

    void makeStages()
    {
        guarded("setting up", [this] {
            m_run.allocator->setSink(m_run.sink.get());
            for (const int stage : m_plan.stages) {
                StageRun& run = m_state.stages[static_cast<std::size_t>(stage)];
                m_run.status.set(RankPhase::Preparing, stage);
                Result<std::unique_ptr<StageModel>> model =
                    m_state.backend->makeStage(m_state.options.model, run.slice, m_state.options.microbatchSize,
                                               m_state.options.seed, m_state.options.optimizer, *m_run.allocator);
                if (!model) {
                    m_state.control.stop(std::move(model.error()).with(fmt::format("rank {}", m_rank)));
                    return;
                }
                run.model = std::move(*model);
                run.model->setLossScale(1.0f / static_cast<float>(m_state.schedule->microbatches));
            }
        });
    }

    void step()
    {
        bool whole = false;
        guarded("preparing the step", [this] {
            m_run.status.set(RankPhase::Preparing);
            m_run.allocator->resetPeaks();
            m_recorder.resetPeak();
            m_held.clear();
            for (const int stage : m_plan.stages)
                model(stage).zeroGradients();
        });
        guarded("", [this, &whole] {
            if (!barrier([this] { m_state.recorder.beginStep(); })) return;
            m_recorder.stepBegin();
            whole = runList() && finishStep();
        });
        if (!whole) cleanUp();
    }

private:
    StageModel& model(int stage) { return *m_state.stages[static_cast<std::size_t>(stage)].model; }

    template <typename Work>
    void guarded(std::string_view what, Work&& work)
    {
        if (m_state.control.stopped()) return;
        std::string cause;
        try {
            work();
            return;
        } catch (const std::bad_alloc&) {
            cause = "out of memory";
        } catch (const std::exception& e) {
            cause = e.what();
        } catch (...) {
            cause = "an exception of unknown type";
        }
        const std::string where = m_where.empty() ? std::string(what) : m_where;
        stopAll({ErrorCode::Failed, fmt::format("rank {}, {}: {}", m_rank, where, cause), {}});
    }

    void stopAll(Error error)
    {
        m_state.control.stop(std::move(error));
        m_state.transport->interrupt();
    }

    template <typename Last>
    bool barrier(Last&& last)
    {
        m_run.status.set(RankPhase::Barrier);
        return m_state.control.meet(std::forward<Last>(last));
    }

    std::string nameOf(const Op& op, std::size_t position) const
    {
        return fmt::format("op {} ({})", position, toText(op));
    }

    bool runList()
    {
        bool inputsThere = false; // a pair's second op has got its inputs with the first
        for (std::size_t i = 0; i < m_plan.ops.size(); ++i) {
            if (m_state.control.stopped()) return false;
            const PlannedOp& planned = m_plan.ops[i];
            m_where = nameOf(planned.op, i);
            const auto position = static_cast<int>(i);
            if (!inputsThere && !receiveInputs(planned, position)) return false;
            inputsThere = planned.pairedWithNext && i + 1 < m_plan.ops.size();
            if (inputsThere && !receiveInputs(m_plan.ops[i + 1], position + 1)) return false;
            freeSent();
            const bool ran =
                planned.op.kind == OpKind::Filler ? runFiller(planned.op, position) : runOp(planned.op, position);
            if (!ran) return false;
            sendOutputs(planned);
        }
        m_where.clear();
        return true;
    }

    bool receiveInputs(const PlannedOp& planned, int position)
    {
        for (const PlannedMessage& input : m_plan.inputsOf(planned)) {
            if (input.rank == m_rank) continue; // handed over, in m_held
            Transport& transport = *m_state.transport;
            if (!transport.ready(m_rank, input.key)) {
                m_run.status.set(RankPhase::Waiting, position);
                m_recorder.waitBegin(input.key);
                if (transport.wait(m_rank, input.key) != TransportStatus::Ready) return false;
            }
            m_recorder.receiveBegin(input.key);
            m_inputs.push_back({input.key, transport.take(m_rank, input.key, *m_run.allocator)});
            m_recorder.receiveEnd(input.key, static_cast<Bytes>(m_inputs.back().buffer.size() * sizeof(float)));
        }
        return true;
    }

    bool runOp(const Op& op, int position)
    {
        m_run.status.set(RankPhase::Permit, position);
        const Permit permit(m_state.control);
        if (!permit) return false;
        m_run.status.set(RankPhase::Running, position);
        const RunPerturbation& perturbation = m_state.options.perturbation;
        if (!m_virtual && perturbation.launchOf(m_rank) > 0) m_state.control.sleepUntil(monotonicNow() + perturbation.launchOf(m_rank));
        if (m_virtual) m_recorder.otherWork();
        m_recorder.opBegin(op, position);
        const Nanos cpuBefore = perturbation.slowFactor.empty() ? 0 : threadCpuNow();
        executeOp(
            op, model(op.stage), m_state.data, [this](const MessageKey& key) { return takeInput(key); },
            [this](const MessageKey& key, Buffer buffer) {
                m_outputs.push_back({key, std::move(buffer)});
            });
        if (!perturbation.slowFactor.empty()) slowDown(cpuBefore);
        m_recorder.opEnd(op, position);
        StageRun& run = m_state.stages[op.stage];
        if (op.kind == OpKind::Forward && run.slice.last) {
            for (int j = op.microbatch; j < op.microbatch + op.count; ++j) {
                run.losses[static_cast<std::size_t>(j)] = run.model->loss(j);
            }
        }
        return true;
    }

    // A slow rank: computes on within the op until its CPU time is the factor times what it was.
    void slowDown(Nanos cpuBefore) const
    {
        const double factor = m_state.options.perturbation.factorOf(m_rank);
        if (factor <= 1.0) return;
        const Nanos until = cpuBefore + std::llround(static_cast<double>(threadCpuNow() - cpuBefore) * factor);
        while (threadCpuNow() < until && !m_state.control.stopped()) {
        }
    }

    bool runFiller(const Op& op, int position)
    {
        m_run.status.set(RankPhase::Sleeping, position);
        m_recorder.otherWork();
        m_recorder.opBegin(op, position);
        const bool slept = m_virtual || m_state.control.sleepUntil(monotonicNow() + op.delay);
        m_recorder.opEnd(op, position);
        return slept;
    }

    Buffer takeInput(const MessageKey& key)
    {
        for (std::vector<SentMessage>* from : {&m_inputs, &m_held}) {
            for (std::size_t i = 0; i < from->size(); ++i) {
                if (!((*from)[i].key == key)) continue;
                Buffer buffer = std::move((*from)[i].buffer);
                if (i + 1 != from->size()) (*from)[i] = std::move(from->back());
                from->pop_back();
                return buffer;
            }
        }
        throw std::logic_error("its input is missing");
    }

    // Only after the op has ended: a full backward lets its input gradient go at its end.
    void sendOutputs(const PlannedOp& planned)
    {
        for (std::size_t i = 0; i < m_outputs.size(); ++i) {
            const PlannedMessage& output = m_plan.outputsOf(planned)[i];
            SentMessage& made = m_outputs[i];
            if (output.rank == m_rank) {
                m_held.push_back(std::move(made));
                continue;
            }
            const Bytes bytes = static_cast<Bytes>(made.buffer.size() * sizeof(float));
            const Nanos delay = m_virtual ? 0 : m_state.options.links.delay(m_rank, output.rank, bytes);
            const Nanos now = monotonicNow();
            m_state.transport->send(m_rank, output.rank, made.key, std::move(made.buffer), now + delay);
            m_recorder.sent(made.key, now + delay);
        }
        m_outputs.clear();
    }

    void freeSent()
    {
        while (std::optional<SentMessage> sent = m_state.transport->giveBack(m_rank)) {
            m_recorder.releaseBegin();
            sent->buffer.reset();
            m_recorder.releaseEnd(sent->key);
        }
    }

    template <typename Work>
    bool extra(OpKind kind, RankPhase phase, int stage, Work&& work)
    {
        const Op op = makeOp(kind, stage);
        m_where = fmt::format("{} of stage {}", kind == OpKind::Optimizer ? "optimizer" : "gradient norm", stage);
        m_run.status.set(phase, stage);
        const Permit permit(m_state.control);
        if (!permit) return false;
        m_recorder.otherWork();
        m_recorder.opBegin(op, -1);
        work(m_state.stages[static_cast<std::size_t>(stage)]);
        m_recorder.opEnd(op, -1);
        return true;
    }

    bool finishStep()
    {
        for (const int stage : m_plan.stages) {
            const bool ran = extra(OpKind::ReduceGrad, RankPhase::Norm, stage,
                                   [](StageRun& run) { run.squareSum = run.model->gradientSquareSum(); });
            if (!ran) return false;
        }
        m_where = "keeping gradients";
        if (m_state.keepGradients) {
            for (const int stage : m_plan.stages)
                copyGradients(m_state.stages[static_cast<std::size_t>(stage)]);
        }
        m_where.clear();
        if (!barrier([] {})) return false;
        freeSent(); // every message has been taken by now
        std::vector<double> squareSums;
        for (const StageRun& run : m_state.stages)
            squareSums.push_back(run.squareSum);
        const OptimizerConfig& optimizer = m_state.options.optimizer;
        const float scale = gradientScale(squareSums, optimizer.clipNorm);
        for (const int stage : m_plan.stages) {
            const bool ran = extra(OpKind::Optimizer, RankPhase::Optimizer, stage, [&](StageRun& run) {
                run.model->optimizerStep(optimizer, m_state.step + 1, scale);
            });
            if (!ran) return false;
        }
        m_where.clear();
        return true;
    }

    static void copyGradients(StageRun& run)
    {
        run.gradients.clear();
        for (const ParameterView& parameter : run.model->parameters()) {
            run.gradients.insert(run.gradients.end(), parameter.gradient.begin(), parameter.gradient.end());
        }
    }

    // After a stopped step. Messages still under way are freed with the transport.
    void cleanUp()
    {
        m_inputs.clear();
        m_outputs.clear();
        m_held.clear();
        try {
            for (const int stage : m_plan.stages) {
                if (m_state.stages[static_cast<std::size_t>(stage)].model) model(stage).dropMicrobatches();
            }
        } catch (const std::exception&) { // the step has failed already, and its first cause is known
        }
    }

    RunState& m_state;
    int m_rank;
    const RankPlan& m_plan;
    RankRun& m_run;
    RankRecorder& m_recorder;
    bool m_virtual;
    std::string m_where;                // for messages: the op that runs
    std::vector<SentMessage> m_inputs;  // received for the next op or pair
    std::vector<SentMessage> m_outputs; // of the op that runs
    std::vector<SentMessage> m_held;    // from a stage to the next one on the same rank
};

} // namespace

RunState::RunState(std::shared_ptr<const Schedule> aSchedule, ExecutionPlan aPlan, const TrainingOptions& someOptions,
                   ClockMode aClock, int permits, std::unique_ptr<Backend> aBackend)
    : schedule(std::move(aSchedule)), plan(std::move(aPlan)), options(someOptions), clock(aClock),
      recorder(schedule, {.virtualClock = aClock == ClockMode::Virtual, .links = someOptions.links,
                          .launch = someOptions.perturbation.launch, .threadCpu = true}),
      control(schedule->ranks, permits), backend(std::move(aBackend)), ranks(static_cast<std::size_t>(schedule->ranks)),
      stages(static_cast<std::size_t>(schedule->stages))
{
    for (int rank = 0; rank < schedule->ranks; ++rank) {
        RankRun& run = ranks[static_cast<std::size_t>(rank)];
        run.sink = std::make_unique<RecordingSink>(recorder.rank(rank));
        run.allocator = std::make_unique<Allocator>();
    }
}

void runRank(const std::shared_ptr<RunState>& state, int rank)
{
    RankLoop loop(*state, rank);
    RankRun& run = state->ranks[static_cast<std::size_t>(rank)];
    loop.makeStages();
    std::unique_lock lock(state->mutex);
    for (;;) {
        run.status.set(RankPhase::AtRest);
        ++run.done;
        state->finished.notify_all();
        state->commanded.wait(lock, [&] { return run.ordered >= run.done; });
        if (state->command == RankCommand::Leave) return;
        lock.unlock();
        loop.step();
        lock.lock();
    }
}

} // namespace stagewright
