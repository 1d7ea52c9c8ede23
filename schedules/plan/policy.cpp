#include "schedules/plan/policy.h"

#include <algorithm>
#include <cmath>

#include "schedules/heuristic/random.h"

namespace stagewright::planning {

namespace {

constexpr Nanos endless = INT64_MAX / 4;

// Buffers are kept between runs.
class Follower {
public:
    explicit Follower(const Pipeline& pipeline)
        : m_pipeline(pipeline), m_ranks(static_cast<std::size_t>(pipeline.ranks)),
          m_words(static_cast<std::size_t>(pipeline.ranks))
    {
    }
    // The mean over ranks of their own ends, for comparing orders of one objective.
    struct Outcome {
        bool feasible = false;
        Nanos objective = endless;
        Nanos makespan = endless;
        double mean = 0;
    };
    Outcome run(const Policy& policy);
    const Words& words() const { return m_words; }

private:
    struct State {
        Nanos clock = 0;
        Nanos wake = 0; // when it decides next; endless: when a neighbour has begun something for it
        Bytes held = 0;
        int done[6] = {};                  // by chunk: forwards, gradients, microbatches released
        std::vector<std::uint8_t> waiting; // chunks whose W waits
        std::size_t head = 0;
        int left() const { return static_cast<int>(waiting.size() - head); }
    };

    Nanos arrival(int stage, bool gradient) const;
    bool fits(int r, PassKind kind, int chunk) const
    {
        const auto index = static_cast<std::size_t>(r);
        return m_ranks[index].held + m_pipeline.change(kind, m_pipeline.stageOf(r, chunk)) <= m_pipeline.cap[index];
    }
    bool forwardFits(int r, int chunk) const;
    void decide(int r, const RankRule& rule);
    void weight(int r);
    void perform(int r, PassKind kind, int chunk);

    const Pipeline& m_pipeline;
    std::vector<State> m_ranks;
    std::vector<Nanos> m_end[2]; // of forwards and gradients, by stage × microbatch
    Words m_words;
};

// When what the stage's next F or gradient needs is there; endless: nobody knows yet.
Nanos Follower::arrival(int stage, bool gradient) const
{
    const int r = m_pipeline.rankOf(stage);
    const int c = m_pipeline.chunkOfStage(stage);
    const State& rank = m_ranks[static_cast<std::size_t>(r)];
    const int j = rank.done[(gradient ? 2 : 0) + c];
    const auto m = static_cast<std::size_t>(m_pipeline.microbatches);
    if (j >= (gradient ? rank.done[c] : m_pipeline.microbatches)) return endless;
    if (!gradient && stage == 0) return 0;
    if (gradient && stage + 1 == m_pipeline.stages()) return 0; // its own F is done
    const int other = gradient ? stage + 1 : stage - 1;
    const Nanos end = m_end[gradient ? 1 : 0][static_cast<std::size_t>(other) * m + static_cast<std::size_t>(j)];
    if (end == endless) return endless;
    return end + (gradient ? m_pipeline.fromAbove : m_pipeline.fromBelow)[static_cast<std::size_t>(stage)];
}

bool Follower::forwardFits(int r, int chunk) const
{
    const State& rank = m_ranks[static_cast<std::size_t>(r)];
    Bytes need = rank.held + m_pipeline.change(PassKind::Forward, m_pipeline.stageOf(r, chunk));
    // The second chunk must always find room for one microbatch, or the first one's would never leave.
    if (m_pipeline.chunks == 2 && chunk == 0 && rank.done[1] == rank.done[5])
        need += m_pipeline.change(PassKind::Forward, m_pipeline.stageOf(r, 1));
    return need <= m_pipeline.cap[static_cast<std::size_t>(r)];
}

void Follower::perform(int r, PassKind kind, int chunk)
{
    State& rank = m_ranks[static_cast<std::size_t>(r)];
    const int stage = m_pipeline.stageOf(r, chunk);
    const auto m = static_cast<std::size_t>(m_pipeline.microbatches);
    const Nanos end = rank.clock + m_pipeline.time(kind, stage);
    rank.held += m_pipeline.change(kind, stage);
    auto finish = [&](bool gradient, int neighbour) {
        int& count = rank.done[(gradient ? 2 : 0) + chunk];
        m_end[gradient ? 1 : 0][static_cast<std::size_t>(stage) * m + static_cast<std::size_t>(count++)] = end;
        if (neighbour < 0 || neighbour >= m_pipeline.stages()) return;
        State& other = m_ranks[static_cast<std::size_t>(m_pipeline.rankOf(neighbour))];
        // it waits: look again
        if (&other != &rank && other.wake > other.clock) other.wake = std::max(other.clock, rank.clock);
    };
    if (kind == PassKind::Forward) finish(false, stage + 1);
    if (givesGradient(kind)) finish(true, stage - 1);
    if (kind == PassKind::InputGrad) rank.waiting.push_back(static_cast<std::uint8_t>(chunk));
    if (kind == PassKind::WeightGrad || kind == PassKind::Backward) ++rank.done[4 + chunk];
    m_words[static_cast<std::size_t>(r)].push_back(letterOf(kind, chunk));
    rank.clock = rank.wake = end;
}

void Follower::weight(int r)
{
    State& rank = m_ranks[static_cast<std::size_t>(r)];
    perform(r, PassKind::WeightGrad, rank.waiting[rank.head++]);
}

void Follower::decide(int r, const RankRule& rule)
{
    State& rank = m_ranks[static_cast<std::size_t>(r)];
    const Nanos now = rank.clock = std::max(rank.clock, rank.wake);
    if (rank.left() >= rule.pending) return weight(r);
    const int chunks = m_pipeline.chunks;
    int gradient = -1; // chunk
    int forward = -1;
    PassKind gradientKind = PassKind::InputGrad;
    bool blocked = false; // there is something that memory forbids
    Nanos nextGradient = endless;
    Nanos next = endless;
    for (int at = 0; at < chunks; ++at) {
        int c = rule.upperGradient ? chunks - 1 - at : at;
        int stage = m_pipeline.stageOf(r, c);
        if (const Nanos ready = arrival(stage, true); ready < endless) {
            const bool canFull = m_pipeline.usesFull(stage);
            PassKind kind =
                canFull && (rule.full || rank.left() >= rule.fullAbove) ? PassKind::Backward : PassKind::InputGrad;
            if (!fits(r, kind, c) && canFull && rank.left() == 0) kind = PassKind::Backward;
            const bool room = fits(r, kind, c);
            blocked = blocked || (!room && ready <= now);
            if (room && ready <= now && gradient < 0) {
                gradient = c;
                gradientKind = kind;
            }
            if (ready > now) nextGradient = std::min(nextGradient, ready);
        }
        c = rule.upperForward ? chunks - 1 - at : at;
        stage = m_pipeline.stageOf(r, c);
        if (const Nanos ready = arrival(stage, false); ready < endless) {
            const bool allowed = rank.done[c] - rank.done[2 + c] < rule.open[c];
            const bool room = forwardFits(r, c);
            blocked = blocked || (allowed && !room && ready <= now);
            if (allowed && room && ready <= now && forward < 0) forward = c;
            if (allowed && ready > now) next = std::min(next, ready);
        }
    }
    next = std::min(next, nextGradient);
    if (forward >= 0 && (gradient < 0 || rule.forwardFirst[forward])) {
        const Nanos length = m_pipeline.time(PassKind::Forward, m_pipeline.stageOf(r, forward));
        const bool waits = gradient < 0 && nextGradient < endless &&
                           static_cast<double>(nextGradient - now) <= rule.patience * static_cast<double>(length);
        if (!waits) return perform(r, PassKind::Forward, forward);
        next = nextGradient;
    } else if (gradient >= 0) {
        return perform(r, gradientKind, gradient);
    }
    if (rank.left() > 0) {
        const Nanos length = m_pipeline.time(PassKind::WeightGrad, m_pipeline.stageOf(r, rank.waiting[rank.head]));
        if (blocked || next == endless || static_cast<double>(next - now) >= rule.partial * static_cast<double>(length))
            return weight(r);
    }
    rank.wake = next;
}

Follower::Outcome Follower::run(const Policy& policy)
{
    const std::size_t cells =
        static_cast<std::size_t>(m_pipeline.stages()) * static_cast<std::size_t>(m_pipeline.microbatches);
    for (auto& table : m_end) table.assign(cells, endless);
    for (std::size_t r = 0; r < m_ranks.size(); ++r) {
        State fresh;
        fresh.waiting = std::move(m_ranks[r].waiting);
        fresh.waiting.clear();
        m_ranks[r] = std::move(fresh);
        m_words[r].clear();
    }
    for (;;) {
        std::size_t r = 0;
        for (std::size_t other = 1; other < m_ranks.size(); ++other)
            if (m_ranks[other].wake < m_ranks[r].wake) r = other;
        if (m_ranks[r].wake >= endless) break;
        decide(static_cast<int>(r), policy[r]);
    }
    Outcome out;
    out.objective = out.makespan = 0;
    out.feasible = true;
    for (int r = 0; r < m_pipeline.ranks; ++r) {
        const State& rank = m_ranks[static_cast<std::size_t>(r)];
        for (int c = 0; c < m_pipeline.chunks; ++c)
            out.feasible = out.feasible && rank.done[4 + c] == m_pipeline.microbatches;
        const Nanos own = rank.clock - m_pipeline.origin[static_cast<std::size_t>(r)];
        out.objective = std::max(out.objective, own);
        out.makespan = std::max(out.makespan, rank.clock);
        out.mean += static_cast<double>(own) / m_pipeline.ranks;
    }
    return out;
}

int roomFor(const Pipeline& pipeline, int r)
{
    Bytes each = 0;
    for (int c = 0; c < pipeline.chunks; ++c) each += pipeline.change(PassKind::Forward, pipeline.stageOf(r, c));
    const Bytes cap = pipeline.cap[static_cast<std::size_t>(r)];
    if (each <= 0 || cap / each >= pipeline.microbatches) return pipeline.microbatches;
    return std::max<int>(1, static_cast<int>(cap / each));
}

// Rules to begin with: as many microbatches under way as fit, and as few as 1F1B has.
std::vector<Policy> firstPolicies(const Pipeline& pipeline)
{
    std::vector<Policy> out;
    for (const bool few : {false, true})
        for (const int pending : {1, 1000})
            for (const bool full : {false, true}) {
                if (full &&
                    (pending == 1 || std::find(pipeline.full.begin(), pipeline.full.end(), 1) == pipeline.full.end()))
                    continue;
                Policy& policy = out.emplace_back(static_cast<std::size_t>(pipeline.ranks));
                for (int r = 0; r < pipeline.ranks; ++r) {
                    RankRule& rule = policy[static_cast<std::size_t>(r)];
                    const int room = roomFor(pipeline, r);
                    rule.open[0] = few ? std::min(pipeline.stages() - r, 2 * room) : 2 * room + 1;
                    rule.open[1] = few ? std::min(r + 1, 2 * room) : 2 * room + 1;
                    rule.pending = pending;
                    rule.full = full;
                }
            }
    return out;
}

void change(const Pipeline& pipeline, RankRule& rule, Random& random)
{
    constexpr double parts[] = {0, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2.5};
    auto nudge = [&](int& value, int least, int most) {
        const int step = random.below(4) == 0 ? 2 : 1;
        value = std::clamp(value + (random.below(2) == 0 ? step : -step), least, most);
    };
    const bool anyFull = std::find(pipeline.full.begin(), pipeline.full.end(), 1) != pipeline.full.end();
    switch (random.below(anyFull ? 11 : 9)) {
    case 0:
    case 1: nudge(rule.open[0], 1, 4 * pipeline.ranks); break;
    case 2:
    case 3: nudge(rule.open[pipeline.chunks - 1], 1, 4 * pipeline.ranks); break;
    case 4:
        if (rule.pending > 100)
            rule.pending = 1 + static_cast<int>(random.below(6));
        else if (random.below(6) == 0)
            rule.pending = 1000;
        else
            nudge(rule.pending, 1, 100);
        break;
    case 5: rule.patience = parts[random.below(std::size(parts))]; break;
    case 6: rule.partial = parts[random.below(std::size(parts))]; break;
    case 7: {
        bool& first = rule.forwardFirst[random.below(static_cast<std::size_t>(pipeline.chunks))];
        first = !first;
        break;
    }
    case 8: {
        bool& upper = random.below(2) == 0 ? rule.upperForward : rule.upperGradient;
        upper = !upper;
        break;
    }
    case 9: rule.full = !rule.full; break;
    default: rule.fullAbove = rule.fullAbove > 100 ? static_cast<int>(random.below(4)) : 1'000'000; break;
    }
}

} // namespace

Found follow(const Pipeline& pipeline, const Policy& policy)
{
    Follower follower(pipeline);
    const auto outcome = follower.run(policy);
    if (!outcome.feasible) return {};
    return {follower.words(), outcome.objective, outcome.makespan};
}

PolicyFound searchPolicies(const Pipeline& pipeline, const Policy& start, const PolicyLimits& limits)
{
    Follower follower(pipeline);
    Random random(limits.seed);
    PolicyFound best;
    double unit = 0;
    for (int r = 0; r < pipeline.ranks; ++r)
        unit += static_cast<double>(pipeline.work(r)) / pipeline.microbatches / pipeline.ranks / 3;
    double current = HUGE_VAL;
    double temperature = 0;
    Policy policy;
    auto attempt = [&](const Policy& candidate) {
        ++best.tries;
        const auto outcome = follower.run(candidate);
        if (!outcome.feasible) return false;
        if (outcome.objective < best.found.objective ||
            (outcome.objective == best.found.objective && outcome.makespan < best.found.makespan)) {
            best.found = {follower.words(), outcome.objective, outcome.makespan};
            best.policy = candidate;
        }
        const double energy = static_cast<double>(outcome.objective) + 0.2 * outcome.mean;
        if (energy > current && random.unit() >= std::exp((current - energy) / std::max(temperature, 1e-3)))
            return false;
        current = energy;
        return true;
    };
    if (start.empty()) {
        for (const Policy& first : firstPolicies(pipeline))
            if (attempt(first)) policy = first;
    } else if (attempt(start)) {
        policy = start;
    }
    if (policy.empty()) return best;
    while (best.tries < limits.tries && best.found.objective > limits.enough) {
        if (best.tries % 8 == 0 && limits.stop && limits.stop()) break;
        temperature = 0.4 * unit * (1 - static_cast<double>(best.tries) / static_cast<double>(limits.tries));
        Policy next = policy;
        const std::size_t changes = 1 + random.below(3);
        for (std::size_t k = 0; k < changes; ++k) {
            const std::size_t r = random.below(next.size());
            change(pipeline, next[r], random);
            const bool spread = random.below(4) == 0; // the same for the ranks beside it
            if (spread && r + 1 < next.size()) {
                const auto open = next[r + 1].open[0];
                const auto upper = next[r + 1].open[1];
                next[r + 1] = next[r];
                next[r + 1].open[0] = open;
                next[r + 1].open[1] = upper;
            }
        }
        if (attempt(next)) policy = std::move(next);
    }
    return best;
}

} // namespace stagewright::planning
