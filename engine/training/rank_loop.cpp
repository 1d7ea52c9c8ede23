#include "engine/training/rank_loop.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <map>
#include <stdexcept>

#include <fmt/format.h>

#include "engine/training/gradient_rules.h"
#include "engine/training/host_copies.h"
#include "engine/training/rank_flight.h"
#include "engine/training/rank_trace.h"
#include "engine/training/ready_rank.h"
#include "engine/training/resume.h"
#include "engine/training/step_end.h"
#include "engine/training/training_state.h"
#include "profiler/record/clock.h"
#include "schedules/base/op_number.h"
#include "schedules/messages/link_lane.h"
#include "schedules/messages/messages.h"
#include "schedules/model/groups.h"

namespace stagewright {

namespace {

// What a sender knows of how its messages queue. With rendezvous, or one stream, when one starts is for its transport
// to say.
Channels senderLimits(const Channels& channels)
{
    Channels out;
    out.apart = channels.apart;
    if (channels.sends == SendMode::Buffered) out.perDirection = channels.perDirection;
    return out;
}

class RankLoop {
public:
    RankLoop(TrainingState& state, int rank)
        : m_state(state), m_rank(rank), m_plan(&state.plan.ranks[static_cast<std::size_t>(rank)]),
          m_run(state.ranks[static_cast<std::size_t>(rank)]), m_recorder(state.recorder.rank(rank)),
          m_virtual(state.clock == ClockMode::Virtual), m_flight(state, rank), m_trace(state, rank),
          m_execution(state.shapes.ofRank(rank), state.data, *m_run.allocator), m_exchange(state, rank, m_trace),
          m_stepEnd(state, rank, m_trace, m_exchange, hooks())
    {
        std::size_t most = 0;
        for (const PlannedOp& op : m_plan->ops) most = std::max<std::size_t>(most, op.inputCount);
        m_inputs.reserve(2 * most);
        if (state.ready) m_ready.emplace(state, rank);
        const bool moves =
            std::any_of(m_plan->ops.begin(), m_plan->ops.end(), [](const PlannedOp& op) { return isCopy(op.op.kind); });
        if (!moves) return;
        const TrainingOptions& options = state.options;
        m_copies = std::make_unique<HostCopies>(
            *m_run.allocator, options.links.copies, !m_virtual,
            options.hostMemory.empty() ? 0 : options.hostMemory[static_cast<std::size_t>(rank)],
            [&control = state.control] { return control.stopped(); });
        m_run.allocator->setRelief([this] { return m_copies->awaitRoom(); });
    }
    ~RankLoop()
    {
        if (m_copies) m_run.allocator->setRelief({});
    }
    RankLoop(const RankLoop&) = delete;
    RankLoop& operator=(const RankLoop&) = delete;

    void makeStages()
    {
        guarded("setting up", [this] {
            m_state.transport->open(m_rank);
            m_run.allocator->setSink(m_run.sink.get());
            if (const auto& limits = m_state.options.rankMemory; !limits.empty())
                m_run.allocator->setLimit(limits[static_cast<std::size_t>(m_rank)]);
            for (const int stage : m_plan->stages) {
                StageRun& run = stageRun(stage);
                m_run.status.set(RankPhase::Preparing, stage);
                const TrainingOptions& options = m_state.options;
                const PartShapes& shapes = m_state.shapes.ofRank(m_rank);
                Result<std::unique_ptr<StageModel>> model = makeStage(
                    *options.workload, *m_state.backend,
                    {run.slice, shapes.batch, options.seed, options.optimizer, run.share ? &*run.share : nullptr},
                    *m_run.allocator);
                if (!model) {
                    m_state.stop(std::move(model.error()).with(fmt::format("rank {}", m_rank)));
                    return;
                }
                run.model = std::move(*model);
                if (options.resume) resumeStage(run, *options.resume);
                run.model->setLossScale(m_state.shapes.lossScale(*m_state.schedule, m_rank));
                if (!options.cuts.empty())
                    run.model->setBackwardFrom(
                        options.cuts[static_cast<std::size_t>(m_state.schedule->replicaOf(m_rank))]);
                if (!shapes.sliceTokens.empty()) run.model->setSlices(shapes.sliceTokens);
                if (m_state.cycle.pieces > 0) run.model->factorsInOps(m_state.cycle.pieces);
                if (m_state.options.recomputedLayers) {
                    const auto [first, last] = *m_state.options.recomputedLayers;
                    run.model->setRecomputedLayers(first, last);
                }
            }
            m_exchange.prepare();
        });
    }

    void step()
    {
        bool whole = false;
        m_plan = &m_state.planNow().ranks[static_cast<std::size_t>(m_rank)];
        guarded("preparing the step", [this] {
            m_run.status.set(RankPhase::Preparing);
            m_run.allocator->resetPeaks();
            m_recorder.resetPeak();
            if (m_copies) m_copies->restart();
            m_held.clear();
            m_losses.clear();
            m_stepEnd.begin();
            m_exchange.begin();
            m_trace.beginStep();
            const RankTrace::Range range = m_trace.other();
            for (const int stage : m_plan->stages) {
                StageRun& run = stageRun(stage);
                run.model->zeroGradients();
                if (m_state.cycle.pieces > 0) run.model->keepFactorInputs(m_state.cycle.at(m_state.step) == 0);
                std::fill(run.losses.begin(), run.losses.end(), 0.0);
                run.sent = run.stepped = run.partly = false;
                run.undone = 0;
            }
            if (m_run.memory) m_run.memory->finish(); // none of this is in the step
        });
        guarded("", [this, &whole] {
            const bool met = barrier({}, nullptr, [this] {
                if (m_ready) m_state.ready->clock.restart();
                m_state.recorder.beginStep();
            });
            if (!met) return;
            m_recorder.stepBegin();
            whole = (m_ready ? runReady() : runList()) && copiesEnded();
            if (whole) collectLosses();
            whole = whole && m_stepEnd.finish();
            m_exchange.end();
        });
        if (!whole) cleanUp();
    }

private:
    StepHooks hooks()
    {
        return {[this](const Op& op, int position, RankPhase phase, int statusPosition,
                       const std::function<void(StageRun&)>& work) {
                    return recorded(op, position, phase, statusPosition, work);
                },
                [this](std::span<const StageSum> sums, std::vector<double>* all) { return barrier(sums, all, [] {}); },
                [this] { freeSent(); }, [this](int rank, const Buffer& buffer) { return delayTo(rank, buffer); },
                [this](std::string where) { m_where = std::move(where); }};
    }

    StageRun& stageRun(int stage) { return m_state.stageOn(stage, m_rank); }

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
        const std::optional<Error> lost =
            m_state.communicator->lost(); // then that is why a connection between devices failed
        m_state.stop(lost ? *lost : Error{ErrorCode::Failed, fmt::format("rank {}, {}: {}", m_rank, where, cause), {}});
    }

    bool barrier(std::span<const StageSum> sums, std::vector<double>* all, const std::function<void()>& last)
    {
        m_run.status.set(RankPhase::Barrier);
        return m_state.communicator->meet(m_rank, sums, all, last);
    }

    std::string nameOf(const Op& op, std::size_t position) const
    {
        return fmt::format("op {} ({})", opNumber(position), toText(op));
    }

    // Ranks that share state wait here until the weights that the op needs, or is to release, have been gathered.
    bool weightsThere(const PlannedOp& planned)
    {
        if (!m_state.plan.shared || !(ruleOf(planned.op.kind).needsWeights || isRelease(planned.op.kind))) return true;
        return m_exchange.awaitWeights(planned.op.stage);
    }

    bool receiveInputs(const PlannedOp& planned, int position)
    {
        for (const PlannedMessage& input : m_plan->inputsOf(planned)) {
            if (input.rank == m_rank) continue;                     // handed over, in m_held
            if (m_state.lowered && isReceived(input.key)) continue; // at its receive
            if (!m_state.transport->ready(m_rank, input.key)) m_run.status.set(RankPhase::Waiting, position);
            if (!receive(input.key, m_flight.receiving(input.key, input.rank, listed(position)))) return false;
        }
        return true;
    }

    // The place of an op of the plan in the list that the rank runs.
    int listed(int position) const { return position < 0 ? position : position + m_messagesBefore; }

    bool isReceived(const MessageKey& key) const
    {
        return std::any_of(m_inputs.begin(), m_inputs.end(),
                           [&](const SentMessage& input) { return input.key == key; });
    }

    bool receive(const MessageKey& key, std::uint64_t flight)
    {
        Transport& transport = *m_state.transport;
        if (!transport.ready(m_rank, key)) {
            m_recorder.waitBegin(key);
            if (transport.wait(m_rank, key) != TransportStatus::Ready) return false;
        }
        m_recorder.receiveBegin(key);
        const RankTrace::MessageRange range = m_trace.message(key);
        m_inputs.push_back({key, transport.take(m_rank, key, *m_run.allocator), false, {}, {}});
        m_recorder.receiveEnd(key, static_cast<Bytes>(m_inputs.back().buffer.size() * sizeof(float)));
        m_run.flight.finish(flight);
        return true;
    }

    // The rank's list, sends and receives at their places where it is lowered. Else an op takes its inputs from the
    // transport, and what it makes leaves at its end: also between the two of a pair, where a lowered list has no place
    // for a send.
    bool runList()
    {
        const Schedule& lists = m_state.lowered ? *m_state.lowered : m_state.listsNow();
        const std::vector<Op>& list = lists.order[static_cast<std::size_t>(m_rank)];
        std::size_t next = 0; // of the plan
        m_messagesBefore = 0;
        for (std::size_t i = 0; i < list.size();) {
            if (m_state.control.stopped()) return false;
            const std::size_t count = groupSize(lists, m_rank, i);
            if (isMessage(list[i].kind)) {
                m_where = nameOf(list[i], i);
                if (!runMessages(list, i, count)) return false;
            } else if (next < m_plan->ops.size() && m_plan->ops[next].op == list[i]) {
                // all but the gathers of a file's lowered lists
                m_messagesBefore = static_cast<int>(i - next);
                if (!runOps(next, count)) return false;
                next += count;
            }
            i += count;
        }
        m_where.clear();
        return true;
    }

    // The same ops in the order that the rank finds.
    bool runReady()
    {
        m_messagesBefore = 0;
        m_ready->restart();
        while (!m_ready->done()) {
            m_where.clear();
            m_run.status.set(RankPhase::Waiting);
            const std::optional<std::size_t> next = m_ready->next();
            if (!next || m_state.control.stopped()) return false;
            if (!runOps(*next, m_plan->ops[*next].pairedWithNext ? 2 : 1)) return false;
        }
        m_ready->leave();
        m_where.clear();
        return true;
    }

    // An op that computes with what a RELOAD brings back waits for its end.
    bool activationsThere(const PlannedOp& planned, int position)
    {
        if (!m_copies) return true;
        const Op& op = planned.op;
        for (int k = 0; k < op.count && isCompute(op.kind); ++k) {
            if (m_copies->busy(op.stage, op.microbatch + k, op.slice)) m_run.status.set(RankPhase::Reload, position);
            if (!m_copies->await(op.stage, op.microbatch + k, op.slice)) return false;
        }
        noteCopies();
        return true;
    }

    // What the copies' threads did since, for the recorder, which is this thread's.
    void noteCopies()
    {
        if (!m_copies) return;
        for (const HostCopies::Done& done : m_copies->ended()) {
            m_recorder.copied(done.op, done.position, done.begin, done.end, done.cpu);
            for (const HostCopies::Done::Moved& moved : done.moved)
                m_recorder.moved(done.op, done.position, moved.microbatch, moved.bytes, isOffload(done.op.kind));
        }
    }

    bool copiesEnded()
    {
        if (!m_copies) return true;
        m_run.status.set(RankPhase::Reload);
        if (!m_copies->awaitAll()) return false;
        noteCopies();
        return true;
    }

    // Takes no time of the rank: its thread does it.
    bool runCopy(const PlannedOp& planned, int position)
    {
        const Op& op = planned.op;
        m_run.status.set(RankPhase::Running, position);
        m_recorder.otherWork();
        m_recorder.opBegin(op, position);
        std::vector<Part> parts;
        std::vector<std::vector<Buffer*>> kept;
        for (const PlannedPart& part : m_plan->partsOf(planned)) {
            parts.push_back(part.part);
            if (isOffload(op.kind)) kept.push_back(stageRun(op.stage).model->keptBuffers(part.part));
        }
        if (isOffload(op.kind))
            m_copies->offload(op, position, parts, std::move(kept));
        else
            m_copies->reload(op, position, parts);
        m_recorder.opEnd(op, position);
        return true;
    }

    // One op of the plan, or a pair once the inputs of both are there.
    bool runOps(std::size_t first, std::size_t count)
    {
        m_where = nameOf(m_plan->ops[first].op, first);
        for (std::size_t k = first; k < first + count; ++k)
            if (!receiveInputs(m_plan->ops[k], static_cast<int>(k))) return false;
        for (std::size_t k = first; k < first + count; ++k)
            if (!weightsThere(m_plan->ops[k]) || !activationsThere(m_plan->ops[k], static_cast<int>(k))) return false;
        for (std::size_t k = first; k < first + count; ++k) {
            if (k > first) m_where = nameOf(m_plan->ops[k].op, k);
            freeSent();
            const Nanos cpu = m_ready ? threadCpuNow() : 0;
            if (!runAny(m_plan->ops[k], static_cast<int>(k))) return false;
            if (m_ready) m_ready->ran(k, threadCpuNow() - cpu);
            if (m_state.lowered)
                keepLocalOutputs();
            else
                sendOutputs();
        }
        return true;
    }

    // One send or receive, or several that are posted together.
    bool runMessages(const std::vector<Op>& list, std::size_t position, std::size_t count)
    {
        struct Posted {
            MessageKey key;
            int peer;
            bool send;
            std::uint64_t flight;
        };
        m_run.status.set(RankPhase::Message, static_cast<int>(position));
        const bool blocking = m_state.options.channels.blockingReceives();
        std::vector<Posted> posted;
        m_state.transport->beginGroup(m_rank);
        for (std::size_t i = position; i < position + count; ++i) {
            const Op& op = list[i];
            const Op other = isSend(op.kind) ? receiveOf(op) : sendOf(op);
            const int peer = m_state.schedule->placement.rankOf(other.stage, other.microbatch);
            MessageKey key = messageOf(isSend(op.kind) ? other : op);
            for (int k = 0; k < op.count; ++k, ++key.microbatch) {
                if (isReceive(op.kind)) {
                    m_recorder.receivePosted(key);
                    m_state.transport->offer(m_rank, key);
                    if (blocking)
                        posted.push_back({key, peer, false, m_flight.receiving(key, peer, static_cast<int>(i))});
                    continue;
                }
                Buffer buffer = takeOutput(key);
                const std::uint64_t flight = m_flight.sending(key, peer, static_cast<int>(i), buffer);
                m_recorder.sendPosted(key);
                const Nanos availableAt = arrivalAt(peer, buffer);
                m_state.transport->send(m_rank, peer, key, std::move(buffer), availableAt);
                posted.push_back({key, peer, true, flight});
            }
        }
        m_state.transport->endGroup(m_rank);
        for (const Posted& message : posted) {
            if (!message.send) {
                if (!receive(message.key, message.flight)) return false;
                continue;
            }
            if (m_state.transport->waitSent(message.peer, message.key) != TransportStatus::Ready) return false;
            m_recorder.sent(message.key, monotonicNow());
            m_run.flight.finish(message.flight);
        }
        return true;
    }

    Buffer takeOutput(const MessageKey& key)
    {
        for (std::size_t i = 0; i < m_outputs.size(); ++i) {
            if (!(m_outputs[i].first.key == key)) continue;
            Buffer buffer = std::move(m_outputs[i].second);
            m_outputs.erase(m_outputs.begin() + static_cast<std::ptrdiff_t>(i));
            return buffer;
        }
        throw std::logic_error("the data it sends was not computed");
    }

    void keepLocalOutputs()
    {
        std::erase_if(m_outputs, [this](auto& output) {
            if (output.first.rank != m_rank) return false;
            m_held.push_back({output.first.key, std::move(output.second), false, {}, {}});
            return true;
        });
    }

    bool runAny(const PlannedOp& planned, int position)
    {
        if (isDelay(planned.op.kind)) return runFiller(planned.op, position);
        if (isCopy(planned.op.kind)) return runCopy(planned, position);
        if (gapWorkOf(planned.op.kind) != GapWork::None) return runGapWork(planned, position);
        const OpRunners& runners = m_state.options.runners;
        if (const auto runner = runners.find(ruleOf(planned.op.kind).resource); runner != runners.end())
            return recorded(planned.op, position, RankPhase::Running, position, [&](StageRun& run) {
                runner->second->run(planned.op, m_rank, [&] { runCompute(planned, run); });
            });
        switch (ruleOf(planned.op.kind).state) {
        case StateWork::Gather:
            if (!m_stepEnd.beforeGather(planned.op.stage)) return false;
            return recorded(planned.op, position, RankPhase::Running, position,
                            [&](StageRun&) { m_exchange.gather(planned.op.stage, position); });
        case StateWork::Release:
            return recorded(planned.op, position, RankPhase::Running, position,
                            [&](StageRun&) { m_exchange.release(planned.op.stage); });
        case StateWork::Reduce:
            if (m_state.plan.shared)
                return recorded(planned.op, position, RankPhase::Running, position,
                                [&](StageRun&) { m_exchange.reduce(planned.op.stage, position); });
            return recorded(planned.op, position, RankPhase::Running, position,
                            [this](StageRun& run) { m_stepEnd.shareGradients(run); }) &&
                   meetCopies(planned.op, position);
        case StateWork::Step: return m_stepEnd.runOptimizer(planned.op, position);
        case StateWork::None: break;
        }
        return recorded(planned.op, position, RankPhase::Running, position,
                        [&](StageRun& run) { runCompute(planned, run); });
    }

    bool runGapWork(const PlannedOp& planned, int position)
    {
        return recorded(planned.op, position, RankPhase::Running, position, [&](StageRun& run) {
            const int refresh = m_state.cycle.refreshOf(planned, m_state.step);
            switch (gapWorkOf(planned.op.kind)) {
            case GapWork::None: break;
            case GapWork::InputFactors:
            case GapWork::GradientFactors:
                run.model->addFactors(planned.op.microbatch, gapWorkOf(planned.op.kind) == GapWork::InputFactors,
                                      refresh);
                break;
            case GapWork::Inversion: run.model->invertFactors(planned.op.slice, refresh); break;
            }
        });
    }

    bool meetCopies(const Op& op, int position)
    {
        if (!m_state.lowered || m_state.schedule->weights != WeightRule::Synchronous) return true;
        const std::uint64_t flight = m_flight.running(op, listed(position));
        if (!m_stepEnd.meetCopies(op.stage)) return false;
        m_run.flight.finish(flight);
        return true;
    }

    // Runs `work` on the op's stage under a permit, between opBegin and opEnd. statusPosition: for the watchdog.
    template <typename Work>
    bool recorded(const Op& op, int position, RankPhase phase, int statusPosition, Work&& work)
    {
        m_run.status.set(RankPhase::Permit, position);
        const Permit permit(m_state.control);
        if (!permit) return false;
        m_run.status.set(phase, statusPosition);
        const RunPerturbation& perturbation = m_state.options.perturbation;
        const bool disturbed = isCompute(op.kind);
        if (disturbed && !m_virtual && perturbation.launchOf(m_rank) > 0)
            m_state.control.sleepUntil(monotonicNow() + perturbation.launchOf(m_rank));
        if (m_virtual || position < 0) m_recorder.otherWork();
        m_recorder.opBegin(op, position);
        const std::uint64_t flight = m_flight.running(op, listed(position));
        const bool slowed = disturbed && !m_virtual && perturbation.changesDurations();
        const Nanos cpuBefore = slowed ? threadCpuNow() : 0;
        {
            const RankTrace::Range range = m_trace.op(op, position);
            work(stageRun(op.stage));
        }
        if (slowed) slowDown(op, cpuBefore);
        noteCopies();
        m_recorder.opEnd(op, position);
        if (m_virtual && m_run.memory) m_run.memory->finish(); // one op at a time: its time is that of the whole device
        m_run.flight.finish(flight);
        return true;
    }

    // On the wall clock: keeps computing within the op until its CPU time is the factor times as long. Nothing makes it
    // faster. (The virtual clock takes durations times the factor.)
    void slowDown(const Op& op, Nanos cpuBefore) const
    {
        const double factor = m_state.options.perturbation.factorOf(m_rank, m_state.step, op);
        if (factor <= 1.0) return;
        const Nanos until = cpuBefore + std::llround(static_cast<double>(threadCpuNow() - cpuBefore) * factor);
        while (threadCpuNow() < until && !m_state.control.stopped()) {
        }
    }

    void runCompute(const PlannedOp& planned, StageRun& run)
    {
        run.versions.before(planned, *run.model);
        m_execution.run(
            *m_plan, planned, *run.model, [this](const PlannedMessage& message) { return takeInput(message.key); },
            [this](const PlannedMessage& message, Buffer buffer) {
                m_outputs.push_back({message, std::move(buffer)});
            });
        run.versions.after(planned, *run.model);
        if (!isForward(planned.op.kind) || !run.slice.last) return;
        for (const PlannedPart& part : m_plan->partsOf(planned)) m_losses.emplace_back(&run, part.part);
    }

    // Once the list is done, as a device may not know them before; in the list's order.
    void collectLosses()
    {
        const RankTrace::Range range = m_trace.other();
        for (const auto& [run, part] : m_losses)
            run->losses[static_cast<std::size_t>(part.microbatch)] +=
                m_state.shapes.ofRank(m_rank).shareOf(part) * run->model->loss(part);
        m_losses.clear();
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
    void sendOutputs()
    {
        for (auto& [message, buffer] : m_outputs) {
            if (message.rank == m_rank) {
                m_held.push_back({message.key, std::move(buffer), false, {}, {}});
                continue;
            }
            const Nanos availableAt = arrivalAt(message.rank, buffer);
            const auto bytes = static_cast<Bytes>(buffer.size() * sizeof(float));
            m_run.flight.finish(m_flight.sending(message.key, message.rank, -1, buffer));
            m_state.transport->send(m_rank, message.rank, message.key, std::move(buffer), availableAt);
            if (m_ready) m_ready->sent(message, bytes);
            m_recorder.sent(message.key, availableAt);
        }
        m_outputs.clear();
    }

    Nanos delayTo(int rank, const Buffer& buffer) const
    {
        if (m_virtual) return 0;
        return m_state.options.links.delay(m_rank, rank, static_cast<Bytes>(buffer.size() * sizeof(float)));
    }

    // When a message that is sent now arrives: behind those before it on its link. The transport adds what else delays
    // it, its receive or its turn.
    Nanos arrivalAt(int rank, const Buffer& buffer)
    {
        const Nanos now = monotonicNow();
        if (m_virtual) return now;
        const Transit transit =
            m_state.options.links.transit(m_rank, rank, static_cast<Bytes>(buffer.size() * sizeof(float)));
        return m_links.try_emplace(rank, senderLimits(m_state.options.channels)).first->second.take(now, transit) +
               transit.delay;
    }

    void freeSent()
    {
        while (std::optional<SentMessage> sent = m_state.transport->giveBack(m_rank)) {
            if (sent->control) {
                sent->buffer.reset();
                continue;
            }
            m_recorder.releaseBegin();
            sent->buffer.reset();
            m_recorder.releaseEnd(sent->key);
        }
    }

    // After a stopped step. Messages still under way are freed with the transport.
    void cleanUp()
    {
        m_inputs.clear();
        m_outputs.clear();
        m_held.clear();
        if (m_copies) m_copies->drop();
        try {
            for (const int stage : m_plan->stages) {
                if (stageRun(stage).model) stageRun(stage).model->dropMicrobatches();
            }
        } catch (const std::exception&) { // the step has failed already, and its first cause is known
        }
    }

    TrainingState& m_state;
    int m_rank;
    const RankPlan* m_plan; // of the step that runs
    RankRun& m_run;
    RankRecorder& m_recorder;
    bool m_virtual;
    std::map<int, LinkLane> m_links; // emulated, by the rank at their other end
    RankFlight m_flight;
    RankTrace m_trace;
    OpExecution m_execution;
    int m_messagesBefore = 0;                                 // the op that runs, in a lowered list
    std::string m_where;                                      // for messages: the op that runs
    std::vector<SentMessage> m_inputs;                        // received for the next op or pair
    std::vector<std::pair<PlannedMessage, Buffer>> m_outputs; // of the op that runs
    std::vector<std::pair<StageRun*, Part>> m_losses;         // of this step
    std::vector<SentMessage> m_held;                          // from a stage to the next one on the same rank
    StateExchange m_exchange;
    StepEnd m_stepEnd;
    std::optional<ReadyRank> m_ready;     // where it finds the order of its ops
    std::unique_ptr<HostCopies> m_copies; // where the list has OFFLOAD and RELOAD
};

} // namespace

void runRank(const std::shared_ptr<TrainingState>& state, int rank)
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
