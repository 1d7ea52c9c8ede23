#include "engine/training/step_end.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "engine/training/gradient_rules.h"

namespace stagewright {

namespace {

constexpr double unknownNorm = -1;

} // namespace

StepEnd::StepEnd(TrainingState& state, int rank, const RankTrace& trace, StateExchange& exchange, StepHooks hooks)
    : m_state(state), m_rank(rank), m_plan(state.plan.ranks[static_cast<std::size_t>(rank)]),
      m_run(state.ranks[static_cast<std::size_t>(rank)]), m_trace(trace), m_exchange(exchange),
      m_hooks(std::move(hooks))
{
    if (state.schedule->weights == WeightRule::Synchronous && state.plan.steps && !state.plan.shared)
        m_norms.resize(static_cast<std::size_t>(state.schedule->stages));
    m_early = state.plan.shared && m_plan.stepsOnArrival;
}

void StepEnd::begin()
{
    m_normsKnown = m_normsPassed = false;
    m_shared.reset();
    m_arrived.clear();
    std::fill(m_norms.begin(), m_norms.end(), unknownNorm);
}

// An op outside the list.
bool StepEnd::extra(OpKind kind, RankPhase phase, int stage, const std::function<void(StageRun&)>& work)
{
    m_hooks.where(fmt::format("{} of stage {}", isOptimizer(kind) ? "optimizer" : "gradient norm", stage));
    return m_hooks.record(makeOp(kind, stage), -1, phase, stage, work);
}

bool StepEnd::finish()
{
    if (!finishStep()) return false;
    if (m_run.memory) m_run.memory->finish(); // the step is over when the device is done
    return true;
}

bool StepEnd::finishStep()
{
    if (m_state.plan.shared) {
        // a rank without stages meets the others all the same
        if (!m_shared && !(judgeShared() && validateShared())) return false;
        m_hooks.where("taking gathered weights");
        if (!m_exchange.awaitGathers()) return false;
    } else if (m_state.schedule->weights == WeightRule::Synchronous) {
        const bool done = m_state.plan.steps ? validateSteps() : stepTogether();
        if (!done) return false;
        if (!m_state.plan.steps) return true;
    }
    m_hooks.where({});
    if (!m_hooks.barrier({}, nullptr)) return false; // not recorded: the ranks come to rest
    return freeAllSent();
}

// Every message has been taken by now.
bool StepEnd::freeAllSent()
{
    if (!m_state.transport->settle(m_rank)) return false;
    m_hooks.freeSent();
    m_run.allocator->awaitReaders();
    return true;
}

// One barrier before the optimizer: the norm is that of all gradients.
bool StepEnd::stepTogether()
{
    if (!sumOverCopies()) return false;
    for (const int stage : m_plan.stages) {
        const bool ran = extra(OpKind::ReduceGrad, RankPhase::Norm, stage,
                               [](StageRun& run) { run.squareSum = run.model->gradientSquareSum(); });
        if (!ran) return false;
    }
    m_hooks.where("keeping gradients");
    for (const int stage : m_plan.stages) keepGradients(stageRun(stage));
    m_hooks.where({});
    const std::vector<StageSum> own = ownSums();
    std::vector<double> squareSums;
    if (!m_hooks.barrier(own, &squareSums) || !freeAllSent()) return false;
    const OptimizerConfig& optimizer = m_state.options.optimizer;
    const Verdict verdict = judgeGradients(squareSums, optimizer.clipNorm);
    if (verdict.skip) m_state.skipped = true;
    for (const int stage : m_plan.stages) {
        const bool ran = extra(OpKind::Optimizer, RankPhase::Optimizer, stage, [&](StageRun& run) {
            if (!verdict.skip) run.model->optimizerStep(optimizer, m_state.step + 1, verdict.scale);
        });
        if (!ran) return false;
    }
    m_hooks.where({});
    return true;
}

// The sums of the places that are this rank's.
std::vector<StageSum> StepEnd::ownSums()
{
    std::vector<StageSum> own;
    for (std::size_t place = 0; place < m_state.sums.size(); ++place)
        if (m_state.sums[place].rank == m_rank)
            own.push_back({static_cast<int>(place), stageRun(m_state.sums[place].stage).squareSum});
    return own;
}

bool StepEnd::judgeShared()
{
    m_hooks.where("summing up gradients");
    // What owners let go is taken before any of them steps it.
    if (!m_exchange.awaitGathers() || !m_exchange.awaitGradients()) return false;
    for (const int stage : m_plan.stages) {
        const RankTrace::Range range = m_trace.other();
        StageRun& run = stageRun(stage);
        run.squareSum = run.model->gradientSquareSum();
        if (!m_state.keepGradients) continue;
        run.gradients = run.model->shared()->sumsOnHost();
    }
    std::vector<double> parts;
    if (!m_hooks.barrier(ownSums(), &parts) || !freeAllSent()) return false;
    m_shared = judgeGradients(parts, m_state.options.optimizer.clipNorm);
    if (m_shared->skip) m_state.skipped = true;
    m_hooks.where({});
    return true;
}

// An Optimizer op with more of the list behind it: its stage's gradients are summed, those of others need not be.
bool StepEnd::stepOnArrival(const Op& op, int position)
{
    if (m_state.options.sharding.bucket > 0) return stepByPieces(op, position);
    if (!m_exchange.awaitGradients(op.stage)) return false;
    m_hooks.freeSent(); // who has sent its gradients has taken the stage's weights
    m_run.allocator->awaitReaders();
    m_arrived.push_back(op.stage);
    return m_hooks.record(op, position, RankPhase::Running, position, [this](StageRun& run) {
        run.squareSum = run.model->gradientSquareSum();
        run.stepped = mayStep(0);
        if (!run.stepped) return;
        run.model->shared()->keepStepped();
        run.model->optimizerStep(m_state.options.optimizer, m_state.step + 1, 1.0F);
    });
}

bool StepEnd::mayStep(double squareSum)
{
    std::vector<double> known;
    for (const int stage : m_arrived) known.push_back(stageRun(stage).squareSum);
    known.push_back(squareSum);
    const Verdict soFar = judgeGradients(known, m_state.options.optimizer.clipNorm);
    return !soFar.skip && soFar.scale == 1.0F;
}

// The same bucket by bucket: on the wall clock while later ones are on their way, so that the op waits for them; on the
// virtual clock, where an op waits for nothing, once all are there.
bool StepEnd::stepByPieces(const Op& op, int position)
{
    std::vector<std::pair<std::int64_t, std::int64_t>> there;
    const bool within = m_state.clock == ClockMode::Wall;
    if (!within && !m_exchange.awaitGradients(
                       op.stage, [&there](std::int64_t begin, std::int64_t end) { there.emplace_back(begin, end); }))
        return false;
    bool whole = true;
    const bool ran = m_hooks.record(op, position, RankPhase::Running, position, [&](StageRun& run) {
        double squareSum = 0;
        std::size_t pieces = 0;
        std::size_t stepped = 0;
        const auto step = [&](std::int64_t begin, std::int64_t end) {
            squareSum += run.model->gradientSquareSumOn(begin, end);
            if (pieces++ != stepped || !mayStep(squareSum)) return;
            if (stepped++ == 0) {
                m_hooks.freeSent(); // who has sent a bucket has taken the stage's weights
                m_run.allocator->awaitReaders();
                run.model->shared()->keepStepped();
            }
            run.model->optimizerStepOn(m_state.options.optimizer, m_state.step + 1, 1.0F, begin, end);
        };
        if (within)
            whole = m_exchange.awaitGradients(op.stage, step);
        else
            for (const auto& [begin, end] : there) step(begin, end);
        if (!whole) return;
        run.model->shared()->refreshOwn();
        run.squareSum = run.model->gradientSquareSum(); // as all ranks sum it up
        run.stepped = stepped == pieces;
        run.partly = stepped > 0 && !run.stepped;
        m_arrived.push_back(op.stage);
    });
    return ran && whole;
}

// The verdict on what was stepped before it.
bool StepEnd::validateShared()
{
    m_hooks.where("validating the optimizer's steps");
    for (const int stage : m_arrived) {
        const bool stepped = stageRun(stage).stepped;
        const bool undo = stageRun(stage).partly || (stepped && (m_shared->skip || m_shared->scale != 1.0F));
        if (undo || (!stepped && !m_shared->skip)) {
            const bool ran = extra(OpKind::Optimizer, RankPhase::Optimizer, stage, [&](StageRun& run) {
                if (undo) run.model->shared()->restoreStepped();
                if (!m_shared->skip)
                    run.model->optimizerStep(m_state.options.optimizer, m_state.step + 1, m_shared->scale);
                run.undone += undo ? 1 : 0;
            });
            if (!ran) return false;
        }
        stageRun(stage).model->shared()->dropKept();
    }
    m_hooks.where({});
    return true;
}

bool StepEnd::beforeGather(int stage)
{
    if (m_shared || std::find(m_arrived.begin(), m_arrived.end(), stage) == m_arrived.end()) return true;
    return judgeShared() && validateShared();
}

bool StepEnd::runShared(const Op& op, int position)
{
    if (m_early && !m_shared) return stepOnArrival(op, position);
    if (!m_shared && !judgeShared()) return false;
    return m_hooks.record(op, position, RankPhase::Running, position, [this](StageRun& run) {
        if (!m_shared->skip) run.model->optimizerStep(m_state.options.optimizer, m_state.step + 1, m_shared->scale);
    });
}

// With three copies or more each adds up a piece: (n−1)/n of the gradients go out and come in twice, whatever n,
// instead of n−1 times all of them. Of two copies that is as much in one message more. A device's gradients stay whole.
std::vector<ShardPiece> StepEnd::piecesOf(StageRun& run, std::span<StageRun* const> copies) const
{
    if (copies.size() < 3 || m_run.memory) return {}; // first: to count a device's gradients is to copy them
    const std::size_t count = gradientCount(*run.model);
    if (count < copies.size()) return {};
    const auto elements = static_cast<std::int64_t>(count);
    FlatState flat = flatStateOf({}, std::span(&elements, 1), static_cast<int>(copies.size()));
    std::vector<ShardPiece> pieces;
    for (ShardPiece& piece : flat.pieces) {
        piece.end = std::min(piece.end, elements); // the padding is nobody's
        if (piece.end <= piece.begin) return {};
        pieces.push_back(piece);
    }
    return pieces;
}

void StepEnd::postGradients(int rank, ControlKey::Kind kind, int stage, const Buffer& from, std::size_t begin,
                            std::size_t count)
{
    const auto s = static_cast<std::uint16_t>(stage);
    Buffer message = m_run.allocator->take(count, messageTag(s));
    std::memcpy(message.data(), from.data() + begin, count * sizeof(float));
    const Nanos availableAt = monotonicNow() + m_hooks.delayTo(rank, message);
    m_state.transport->post(rank, {kind, s, m_rank}, std::move(message), availableAt);
}

void StepEnd::shareGradients(StageRun& run)
{
    run.sent = true;
    const int stage = run.slice.stage;
    const std::vector<StageRun*> copies = m_state.copiesOf(stage);
    const std::vector<ShardPiece> pieces = piecesOf(run, copies);
    const MemoryTag tag = messageTag(stage);
    if (!pieces.empty()) {
        Buffer whole = m_run.allocator->take(gradientCount(*run.model), tag);
        run.model->packGradients(whole);
        for (std::size_t i = 0; i < copies.size(); ++i)
            if (copies[i] != &run)
                postGradients(copies[i]->rank, ControlKey::Kind::WeightGradients, stage, whole,
                              static_cast<std::size_t>(pieces[i].begin), static_cast<std::size_t>(pieces[i].size()));
        return;
    }
    for (const StageRun* other : copies) {
        if (other == &run) continue;
        Buffer buffer = m_run.allocator->take(gradientCount(*run.model), tag);
        run.model->packGradients(buffer);
        const Nanos availableAt = monotonicNow() + m_hooks.delayTo(other->rank, buffer);
        m_state.transport->post(other->rank,
                                {ControlKey::Kind::WeightGradients, static_cast<std::uint16_t>(stage), m_rank},
                                std::move(buffer), availableAt);
    }
}

// Each copy adds up its piece in the order of ranks and sends the sums to the others: element by element the same
// additions as if each had added up all of them.
bool StepEnd::sumByPieces(StageRun& run, std::span<StageRun* const> copies, std::span<const ShardPiece> pieces)
{
    const int stage = run.slice.stage;
    const auto s = static_cast<std::uint16_t>(stage);
    const MemoryTag tag = messageTag(s);
    Buffer whole = m_run.allocator->take(gradientCount(*run.model), tag);
    run.model->packGradients(whole);
    const auto own = static_cast<std::size_t>(std::find(copies.begin(), copies.end(), &run) - copies.begin());
    const auto begin = static_cast<std::size_t>(pieces[own].begin);
    const auto count = static_cast<std::size_t>(pieces[own].size());
    std::vector<float> sums(count);
    for (std::size_t i = 0; i < copies.size(); ++i) {
        Buffer other;
        if (i != own) {
            m_run.status.set(RankPhase::Copies, stage);
            other = m_state.transport->collect(m_rank, {ControlKey::Kind::WeightGradients, s, copies[i]->rank},
                                               *m_run.allocator, tag);
            if (!other) return false;
        }
        const float* from = i == own ? whole.data() + begin : other.data();
        for (std::size_t k = 0; k < count; ++k) sums[k] = i == 0 ? from[k] : sums[k] + from[k];
    }
    std::copy(sums.begin(), sums.end(), whole.data() + begin);
    for (std::size_t i = 0; i < copies.size(); ++i)
        if (i != own) postGradients(copies[i]->rank, ControlKey::Kind::GradientSums, stage, whole, begin, count);
    for (std::size_t i = 0; i < copies.size(); ++i) {
        if (i == own) continue;
        m_run.status.set(RankPhase::Copies, stage);
        const Buffer piece = m_state.transport->collect(m_rank, {ControlKey::Kind::GradientSums, s, copies[i]->rank},
                                                        *m_run.allocator, tag);
        if (!piece) return false;
        std::memcpy(whole.data() + pieces[i].begin, piece.data(),
                    static_cast<std::size_t>(pieces[i].size()) * sizeof(float));
    }
    return extra(OpKind::ReduceGrad, RankPhase::Norm, stage,
                 [&whole](StageRun& one) { one.model->sumGradients(std::span(&whole, 1)); });
}

bool StepEnd::meetCopies(int stage)
{
    const auto s = static_cast<std::uint16_t>(stage);
    const MemoryTag tag = messageTag(s);
    std::vector<int> others;
    for (const StageRun* copy : m_state.copiesOf(stage))
        if (copy->rank != m_rank) others.push_back(copy->rank);
    for (const int other : others)
        m_state.transport->post(other, {ControlKey::Kind::AtReduction, s, m_rank}, m_run.messages().take(1, tag),
                                monotonicNow());
    m_run.status.set(RankPhase::Copies, stage);
    return std::all_of(others.begin(), others.end(), [&](int other) {
        return static_cast<bool>(
            m_state.transport->collect(m_rank, {ControlKey::Kind::AtReduction, s, other}, m_run.messages(), tag));
    });
}

// Every copy adds up all of them in the order of ranks, so that they stay equal bit for bit.
bool StepEnd::sumOverCopies()
{
    for (const int stage : m_plan.stages) {
        if (stageRun(stage).sent || m_state.copiesOf(stage).size() < 2) continue;
        const bool ran =
            extra(OpKind::ReduceGrad, RankPhase::Norm, stage, [this](StageRun& run) { shareGradients(run); });
        if (!ran) return false;
    }
    for (const int stage : m_plan.stages) {
        const std::vector<StageRun*> copies = m_state.copiesOf(stage);
        if (copies.size() < 2) continue;
        const auto s = static_cast<std::uint16_t>(stage);
        StageRun& own = stageRun(stage);
        if (const std::vector<ShardPiece> pieces = piecesOf(own, copies); !pieces.empty()) {
            if (!sumByPieces(own, copies, pieces)) return false;
            continue;
        }
        std::vector<Buffer> buffers;
        for (const StageRun* copy : copies) {
            m_run.status.set(RankPhase::Copies, stage);
            const MemoryTag tag = messageTag(s);
            const RankTrace::Range range = m_trace.other();
            if (copy == &own) {
                buffers.push_back(m_run.allocator->take(gradientCount(*own.model), tag));
                own.model->packGradients(buffers.back());
            } else {
                buffers.push_back(m_state.transport->collect(m_rank, {ControlKey::Kind::WeightGradients, s, copy->rank},
                                                             *m_run.allocator, tag));
                if (!buffers.back()) return false;
            }
        }
        const bool ran = extra(OpKind::ReduceGrad, RankPhase::Norm, stage,
                               [&buffers](StageRun& run) { run.model->sumGradients(buffers); });
        if (!ran) return false;
    }
    return true;
}

// An Optimizer op of the list. Synchronous: steps at once if what is known of the gradients, here and on the ranks
// before, gives no reason against it; validateSteps() has the last word (Qi et al. 2024, arXiv 2401.10241, section 4).
bool StepEnd::runOptimizer(const Op& op, int position)
{
    if (m_state.plan.shared) return runShared(op, position);
    const bool optimistic = !m_norms.empty();
    const bool lastOnes = static_cast<std::size_t>(position) >= m_plan.computeEnd;
    if (optimistic && lastOnes && !receiveNormsUp(position)) return false;
    const bool ran = m_hooks.record(op, position, RankPhase::Running, position, [&](StageRun& run) {
        keepGradients(run);
        if (!optimistic) {
            run.versions.step(*run.model);
            return;
        }
        m_norms[op.stage] = run.squareSum = run.model->gradientSquareSum();
        const OptimizerConfig& optimizer = m_state.options.optimizer;
        const Verdict soFar = judgeGradients(knownNorms(), optimizer.clipNorm);
        run.stepped = !soFar.skip && soFar.scale == 1.0f;
        if (run.stepped) run.model->optimizerStep(optimizer, m_state.step + 1, 1.0f);
    });
    if (!ran) return false;
    const bool own = std::all_of(m_plan.stages.begin(), m_plan.stages.end(), [this](int stage) {
        return m_norms.empty() || m_norms[static_cast<std::size_t>(stage)] != unknownNorm;
    });
    if (optimistic && own && m_normsKnown) passNormsUp();
    return true;
}

std::vector<double> StepEnd::knownNorms() const
{
    std::vector<double> known;
    for (const double norm : m_norms) {
        if (norm != unknownNorm) known.push_back(norm);
    }
    return known;
}

// What the previous ranks know, once all of them have stepped.
bool StepEnd::receiveNormsUp(int position)
{
    if (m_normsKnown) return true;
    if (m_rank > 0) {
        m_run.status.set(RankPhase::Norms, position);
        if (!receiveNorms({ControlKey::Kind::NormsUp, 0, m_rank - 1})) return false;
    }
    m_normsKnown = true;
    return true;
}

bool StepEnd::receiveNorms(const ControlKey& key)
{
    const Buffer message = m_state.transport->collect(m_rank, key, m_run.messages(), messageTag());
    if (!message) return false;
    std::vector<double> received(m_norms.size());
    std::memcpy(received.data(), message.data(), received.size() * sizeof(double));
    for (std::size_t stage = 0; stage < received.size(); ++stage) {
        if (received[stage] != unknownNorm) m_norms[stage] = received[stage];
    }
    return true;
}

void StepEnd::postNorms(int rank, const ControlKey& key)
{
    Buffer message = m_run.messages().take(2 * m_norms.size(), messageTag());
    std::memcpy(message.data(), m_norms.data(), m_norms.size() * sizeof(double));
    const Nanos availableAt = monotonicNow() + m_hooks.delayTo(rank, message);
    m_state.transport->post(rank, key, std::move(message), availableAt);
}

void StepEnd::passNormsUp()
{
    if (m_normsPassed) return;
    m_normsPassed = true;
    if (m_rank + 1 < m_state.schedule->ranks) postNorms(m_rank + 1, {ControlKey::Kind::NormsUp, 0, m_rank});
}

// The norms of all stages come back from the last rank; steps they forbid are rolled back, and repeated if clipped.
bool StepEnd::validateSteps()
{
    m_hooks.where("validating the optimizer's steps");
    if (!receiveNormsUp(-1)) return false;
    passNormsUp();
    if (m_rank + 1 < m_state.schedule->ranks) {
        m_run.status.set(RankPhase::Norms);
        if (!receiveNorms({ControlKey::Kind::NormsDown, 0, m_rank + 1})) return false;
    }
    if (m_rank > 0) postNorms(m_rank - 1, {ControlKey::Kind::NormsDown, 0, m_rank});
    const OptimizerConfig& optimizer = m_state.options.optimizer;
    const Verdict verdict = judgeGradients(m_norms, optimizer.clipNorm);
    if (verdict.skip) m_state.skipped = true;
    for (const int stage : m_plan.stages) {
        const StageRun& now = stageRun(stage);
        const bool undo = now.stepped && (verdict.skip || verdict.scale != 1.0f);
        const bool step = !verdict.skip && (undo || !now.stepped);
        if (!undo && !step) continue;
        const bool ran = extra(OpKind::Optimizer, RankPhase::Optimizer, stage, [&](StageRun& run) {
            if (undo) run.model->undoOptimizerStep(optimizer, m_state.step + 1, 1.0f);
            if (step) run.model->optimizerStep(optimizer, m_state.step + 1, verdict.scale);
            run.undone += undo ? 1 : 0;
        });
        if (!ran) return false;
    }
    return true;
}

void StepEnd::keepGradients(StageRun& run)
{
    if (!m_state.keepGradients) return;
    const RankTrace::Range range = m_trace.other();
    run.gradients.resize(gradientCount(*run.model));
    copyGradients(*run.model, run.gradients);
}

} // namespace stagewright
