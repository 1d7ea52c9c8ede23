#include "schedules/heuristic/greedy.h"

#include <algorithm>

namespace stagewright::planning {

namespace {

constexpr Nanos never = INT64_MAX / 4;

struct RankState {
    Nanos clock = 0;
    Nanos idle = 0;
    Bytes held = 0;
    bool begun = false;
    int done[6] = {}; // by letter of F, I and W: forwards, gradients (of I or B), weight gradients (of W or B)
    int warmup = 0;
    std::vector<int> pending; // chunks whose W waits
    std::size_t pendingHead = 0;
};

class Run {
public:
    Run(const Pipeline& pipeline, const GreedyRule& rule, const Words* base = nullptr);
    Found result();

private:
    struct Choice {
        Nanos start = never;
        int letter = -1;
    };
    Choice choose(int r) const { return m_base ? chooseFrom(r) : chooseFreely(r); }
    Choice chooseFreely(int r) const;
    Choice chooseFrom(int r) const;
    Choice firstInLine(int r) const;
    void takeFromLine(int r, Letter letter);
    bool forwardAllowed(int r, int chunk) const;
    Nanos arrival(int r, Letter letter) const;
    void fillUntil(int r, Nanos until);
    void perform(int r, Letter letter, Nanos start);
    void announce(int r);
    void limitWarmup();

    bool hasPending(const RankState& rank) const { return rank.pendingHead < rank.pending.size(); }
    Letter nextPending(const RankState& rank) const
    {
        return letterOf(PassKind::WeightGrad, rank.pending[rank.pendingHead]);
    }
    bool fits(int r, Letter letter) const
    {
        return m_ranks[static_cast<std::size_t>(r)].held +
                   m_pipeline.change(kindOf(letter), m_pipeline.stageOf(r, chunkOf(letter))) <=
               m_pipeline.cap[static_cast<std::size_t>(r)];
    }
    int open(const RankState& rank, int chunk) const
    {
        return rank.done[letterOf(PassKind::Forward, chunk)] - rank.done[letterOf(PassKind::InputGrad, chunk)];
    }

    const Pipeline& m_pipeline;
    const GreedyRule& m_rule;
    const Words* m_base; // null: free choice
    Words m_line;        // what is left of the base, from m_lineHead on
    std::vector<std::size_t> m_lineHead;
    std::vector<RankState> m_ranks;
    std::vector<Nanos> m_end[2];
    Words m_words;
    std::vector<Choice> m_choices; // by rank, what it would do next
};

Run::Run(const Pipeline& pipeline, const GreedyRule& rule, const Words* base)
    : m_pipeline(pipeline), m_rule(rule), m_base(base), m_ranks(static_cast<std::size_t>(pipeline.ranks)),
      m_words(static_cast<std::size_t>(pipeline.ranks)), m_choices(static_cast<std::size_t>(pipeline.ranks))
{
    for (auto& table : m_end)
        table.assign(static_cast<std::size_t>(pipeline.stages()) * static_cast<std::size_t>(pipeline.microbatches), -1);
    limitWarmup();
    if (base) m_line = *base;
    m_lineHead.assign(static_cast<std::size_t>(pipeline.ranks), 0);
}

void Run::limitWarmup()
{
    int before = m_pipeline.microbatches + 1;
    for (int r = 0; r < m_pipeline.ranks; ++r) {
        const Bytes each = m_pipeline.change(PassKind::Forward, r);
        const Bytes cap = m_pipeline.cap[static_cast<std::size_t>(r)];
        Nanos count = m_pipeline.microbatches;
        if (m_pipeline.chunks == 1) {
            const Nanos wait = m_pipeline.turn(r) - m_pipeline.head(r);
            const Nanos length = std::max<Nanos>(m_pipeline.time(PassKind::Forward, r), 1);
            count = std::min(count, m_rule.overshoot ? (wait + length - 1) / length : wait / length);
            if (each > 0) count = std::min<Nanos>(count, cap / each);
            if (m_rule.falling) count = std::min<Nanos>(count, before - 1);
        }
        m_ranks[static_cast<std::size_t>(r)].warmup = static_cast<int>(std::max<Nanos>(count, 1));
        before = m_ranks[static_cast<std::size_t>(r)].warmup;
    }
}

Nanos Run::arrival(int r, Letter letter) const
{
    const int stage = m_pipeline.stageOf(r, chunkOf(letter));
    const int chunk = chunkOf(letter);
    const int j =
        m_ranks[static_cast<std::size_t>(r)]
            .done[letterOf(kindOf(letter) == PassKind::Forward ? PassKind::Forward : PassKind::InputGrad, chunk)];
    if (j >= m_pipeline.microbatches) return never;
    const auto m = static_cast<std::size_t>(m_pipeline.microbatches);
    auto at = [&](int kind, int s) {
        return m_end[kind][static_cast<std::size_t>(s) * m + static_cast<std::size_t>(j)];
    };
    if (kindOf(letter) == PassKind::Forward) {
        if (stage == 0) return 0;
        const Nanos before = at(0, stage - 1);
        return before < 0 ? never : before + m_pipeline.fromBelow[static_cast<std::size_t>(stage)];
    }
    const Nanos own = at(0, stage);
    if (own < 0) return never;
    if (stage + 1 == m_pipeline.stages()) return own;
    const Nanos after = at(1, stage + 1);
    return after < 0 ? never : std::max(own, after + m_pipeline.fromAbove[static_cast<std::size_t>(stage)]);
}

bool Run::forwardAllowed(int r, int chunk) const
{
    const RankState& rank = m_ranks[static_cast<std::size_t>(r)];
    Bytes need = rank.held + m_pipeline.change(PassKind::Forward, m_pipeline.stageOf(r, chunk));
    // The second chunk must always find room for one microbatch, or the first one's would never leave.
    if (m_pipeline.chunks == 2 && chunk == 0 &&
        rank.done[letterOf(PassKind::Forward, 1)] == rank.done[letterOf(PassKind::WeightGrad, 1)])
        need += m_pipeline.change(PassKind::Forward, m_pipeline.stageOf(r, 1));
    return need <= m_pipeline.cap[static_cast<std::size_t>(r)];
}

// The next F or I of the rank and when it would start; W's are a choice only where memory requires them.
Run::Choice Run::chooseFreely(int r) const
{
    const RankState& rank = m_ranks[static_cast<std::size_t>(r)];
    Choice best;
    Nanos bestArrival = never;
    int bestClass = 0;
    Nanos nextGradient = never;
    auto offer = [&](Letter letter, Nanos ready, int order) {
        const Nanos start = std::max(rank.clock, ready);
        const bool earlier = start != best.start  ? start < best.start
                             : order != bestClass ? order < bestClass
                                                  : ready < bestArrival;
        if (!earlier) return;
        best = {start, letter};
        bestArrival = ready;
        bestClass = order;
    };
    for (int c = m_pipeline.chunks - 1; c >= 0; --c) {
        if (open(rank, c) == 0) continue;
        Letter letter = letterOf(PassKind::InputGrad, c);
        if (m_pipeline.usesFull(m_pipeline.stageOf(r, c)) && (m_rule.full || (!fits(r, letter) && !hasPending(rank))))
            letter = letterOf(PassKind::Backward, c);
        const Nanos ready = arrival(r, letter);
        if (ready == never) continue;
        nextGradient = std::min(nextGradient, ready);
        if (!fits(r, letter)) { // I may add what W will need
            if (hasPending(rank)) offer(nextPending(rank), rank.clock, 3);
            continue;
        }
        offer(letter, ready, 0);
    }
    for (int c = m_pipeline.chunks - 1; c >= 0; --c) {
        const Letter letter = letterOf(PassKind::Forward, c);
        const Nanos ready = arrival(r, letter);
        if (ready == never) continue;
        if (m_pipeline.chunks == 1) {
            const bool warm = rank.done[letterOf(PassKind::InputGrad, 0)] == 0;
            if ((warm || m_rule.hold) && open(rank, 0) >= rank.warmup) continue;
        }
        if (!forwardAllowed(r, c)) {
            if (hasPending(rank)) {
                const Letter filler = nextPending(rank);
                const Nanos length = m_pipeline.time(PassKind::WeightGrad, m_pipeline.stageOf(r, chunkOf(filler)));
                offer(filler, std::max(rank.clock, ready - length), 3);
            }
            continue;
        }
        const Nanos start = std::max(rank.clock, ready);
        const double patience =
            m_rule.patience * static_cast<double>(m_pipeline.time(PassKind::Forward, m_pipeline.stageOf(r, c)));
        if (nextGradient != never && nextGradient > start && static_cast<double>(nextGradient - start) <= patience)
            continue;
        offer(letter, ready, m_rule.upperFirst ? 2 - c : 1);
    }
    return best;
}

// The line's first letter; a W instead of an F that finds no room.
Run::Choice Run::firstInLine(int r) const
{
    const auto index = static_cast<std::size_t>(r);
    const RankState& rank = m_ranks[index];
    if (m_lineHead[index] >= m_line[index].size()) return {};
    const Letter letter = m_line[index][m_lineHead[index]];
    const Nanos ready = arrival(r, letter);
    const bool gradient = kindOf(letter) == PassKind::InputGrad;
    if (!fits(r, letter) && gradient && !hasPending(rank) &&
        m_pipeline.usesFull(m_pipeline.stageOf(r, chunkOf(letter))))
        return {ready == never ? never : std::max(rank.clock, ready), letterOf(PassKind::Backward, chunkOf(letter))};
    if (!fits(r, letter)) {
        if (!hasPending(rank)) return {};
        const Letter filler = nextPending(rank);
        const Nanos length = m_pipeline.time(PassKind::WeightGrad, m_pipeline.stageOf(r, chunkOf(filler)));
        return {ready == never ? never : std::max(rank.clock, ready - length), filler};
    }
    return {ready == never ? never : std::max(rank.clock, ready), letter};
}

Run::Choice Run::chooseFrom(int r) const
{
    const auto index = static_cast<std::size_t>(r);
    const RankState& rank = m_ranks[index];
    const Word& line = m_line[index];
    const Choice first = firstInLine(r);
    if (first.start <= rank.clock || m_lineHead[index] >= line.size()) return first;
    Choice best = first;
    bool seen[letterCount] = {};
    Bytes open = 0; // of microbatches under way, their W's taken as done
    for (int c = 0; c < m_pipeline.chunks; ++c)
        open += this->open(rank, c) * m_pipeline.change(PassKind::Forward, m_pipeline.stageOf(r, c));
    Bytes most = open;
    int kinds = 0;
    for (std::size_t at = m_lineHead[index]; at < line.size() && kinds < 2 * m_pipeline.chunks; ++at) {
        const Letter letter = line[at];
        const int stage = m_pipeline.stageOf(r, chunkOf(letter));
        const Bytes each = m_pipeline.change(PassKind::Forward, stage);
        const bool forward = kindOf(letter) == PassKind::Forward;
        if (!seen[letter] && at > m_lineHead[index]) {
            const Nanos ready = arrival(r, letter);
            const Nanos start = std::max(rank.clock, ready);
            const bool room = fits(r, letter) && (!forward || most + each <= m_pipeline.cap[index]);
            if (ready != never && room && start < best.start &&
                start + m_pipeline.time(kindOf(letter), stage) <= first.start)
                best = {start, letter};
        }
        if (!seen[letter]) ++kinds;
        seen[letter] = true;
        open += forward ? each : -each;
        most = std::max(most, open);
    }
    if (best.letter >= 0 && best.start == never) best.letter = -1;
    return best;
}

void Run::takeFromLine(int r, Letter letter)
{
    const auto index = static_cast<std::size_t>(r);
    Word& line = m_line[index];
    const auto from = line.begin() + static_cast<std::ptrdiff_t>(m_lineHead[index]);
    auto found = std::find(from, line.end(), letter);
    if (found == line.end() && kindOf(letter) == PassKind::Backward) // for an I that didn't fit
        found = std::find(from, line.end(), letterOf(PassKind::InputGrad, chunkOf(letter)));
    if (found == line.end()) return; // a W
    std::rotate(from, found, found + 1);
    ++m_lineHead[index];
}

void Run::fillUntil(int r, Nanos until)
{
    RankState& rank = m_ranks[static_cast<std::size_t>(r)];
    while (hasPending(rank) && rank.clock < until) {
        const Letter letter = letterOf(PassKind::WeightGrad, rank.pending[rank.pendingHead]);
        const Nanos length = m_pipeline.time(PassKind::WeightGrad, m_pipeline.stageOf(r, chunkOf(letter)));
        const Nanos wait = until - rank.clock;
        if (length > wait) {
            if (static_cast<double>(wait) < m_rule.fill.partial * static_cast<double>(length)) return;
            if (m_rule.fill.balance) {
                Nanos worst = 0;
                for (const RankState& other : m_ranks) worst = std::max(worst, other.idle);
                if (wait < worst - rank.idle) return;
            }
        }
        perform(r, letter, rank.clock);
    }
}

void Run::perform(int r, Letter letter, Nanos start)
{
    RankState& rank = m_ranks[static_cast<std::size_t>(r)];
    const int chunk = chunkOf(letter);
    const int stage = m_pipeline.stageOf(r, chunk);
    const PassKind kind = kindOf(letter);
    if (rank.begun) rank.idle += start - rank.clock;
    rank.begun = true;
    rank.clock = start + m_pipeline.time(kind, stage);
    rank.held += m_pipeline.change(kind, stage);
    m_words[static_cast<std::size_t>(r)].push_back(letter);
    auto finish = [&](std::size_t table) {
        const int j = rank.done[letterOf(table == 0 ? PassKind::Forward : PassKind::InputGrad, chunk)]++;
        m_end[table][static_cast<std::size_t>(stage) * static_cast<std::size_t>(m_pipeline.microbatches) +
                     static_cast<std::size_t>(j)] = rank.clock;
    };
    if (kind == PassKind::WeightGrad || kind == PassKind::Backward) ++rank.done[letterOf(PassKind::WeightGrad, chunk)];
    if (kind == PassKind::WeightGrad) {
        ++rank.pendingHead;
    } else if (kind == PassKind::Forward) {
        finish(0);
        if (stage + 1 < m_pipeline.stages()) announce(m_pipeline.rankOf(stage + 1));
    } else {
        finish(1);
        if (kind == PassKind::InputGrad) rank.pending.push_back(chunk);
        if (stage > 0) announce(m_pipeline.rankOf(stage - 1));
    }
}

void Run::announce(int r) { m_choices[static_cast<std::size_t>(r)] = choose(r); }

Found Run::result()
{
    for (int r = 0; r < m_pipeline.ranks; ++r) announce(r);
    for (;;) {
        int r = 0;
        for (int other = 1; other < m_pipeline.ranks; ++other)
            if (m_choices[static_cast<std::size_t>(other)].start < m_choices[static_cast<std::size_t>(r)].start)
                r = other;
        const Choice choice = m_choices[static_cast<std::size_t>(r)];
        if (choice.letter < 0) break;
        const auto letter = static_cast<Letter>(choice.letter);
        if (kindOf(letter) != PassKind::WeightGrad) {
            const std::size_t before = m_words[static_cast<std::size_t>(r)].size();
            fillUntil(r, choice.start);
            if (m_words[static_cast<std::size_t>(r)].size() != before) { // memory and clock are others now
                announce(r);
                continue;
            }
        }
        // A W that makes room is decided on when the room is needed, and starts as soon as the rank is free.
        perform(r, letter,
                kindOf(letter) == PassKind::WeightGrad ? m_ranks[static_cast<std::size_t>(r)].clock : choice.start);
        if (m_base) {
            takeFromLine(r, letter);
            for (int other = 0; other < m_pipeline.ranks; ++other)
                if (other == r || other == r - 1 || other == r + 1) announce(other);
        } else {
            announce(r);
        }
    }
    Found out;
    Nanos objective = 0;
    Nanos makespan = 0;
    for (int r = 0; r < m_pipeline.ranks; ++r) {
        RankState& rank = m_ranks[static_cast<std::size_t>(r)];
        for (int c = 0; c < m_pipeline.chunks; ++c)
            if (rank.done[letterOf(PassKind::InputGrad, c)] < m_pipeline.microbatches) return out; // stuck
        fillUntil(r, never);
        objective = std::max(objective, rank.clock - m_pipeline.origin[static_cast<std::size_t>(r)]);
        makespan = std::max(makespan, rank.clock);
    }
    out.words = std::move(m_words);
    out.objective = objective;
    out.makespan = makespan;
    return out;
}

} // namespace

Found greedy(const Pipeline& pipeline, const GreedyRule& rule)
{
    for (int r = 0; r < pipeline.ranks; ++r)
        if (leastMemory(pipeline, r) > pipeline.cap[static_cast<std::size_t>(r)]) return {};
    return Run(pipeline, rule).result();
}

Found greedyFrom(const Pipeline& pipeline, const Words& words, const FillRule& rule)
{
    GreedyRule own;
    own.fill = rule;
    return Run(pipeline, own, &words).result();
}

} // namespace stagewright::planning
