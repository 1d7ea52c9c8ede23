#include "schedules/plan/branch.h"

#include <algorithm>
#include <optional>

namespace stagewright::planning {

namespace {

constexpr std::size_t mostWaiting = std::size_t{256} << 20;

struct Pass
{
    Letter letter = 0;
    int microbatch = 0;
};

// Two passes of one rank and how much time is left over in either order.
struct Pair
{
    int rank = 0;
    Pass a;
    Pass b;
    Nanos aFirst = 0;
    Nanos bFirst = 0;
    Nanos score = 0; // small: one order leaves little room, the other not much more
};

// Microbatch j of `before` always ends before microbatch j of `after` starts.
bool needs(Letter after, Letter before, int chunks)
{
    auto place = [chunks](Letter letter) { // along the chain of a microbatch on its rank
        const int c = chunkOf(letter);
        if (kindOf(letter) == PassKind::Forward) return c;
        return chunks == 2 ? 3 - c : 2;
    };
    if (kindOf(before) == PassKind::WeightGrad) return false;
    if (kindOf(after) == PassKind::WeightGrad) return place(before) <= place(letterOf(PassKind::InputGrad, chunkOf(after)));
    return place(before) < place(after);
}

class Brancher
{
public:
    Brancher(const Pipeline& pipeline, RankRelaxation& relaxation, std::int64_t mostWork, const std::function<bool()>& stop)
        : m_pipeline(pipeline), m_relaxation(relaxation), m_mostWork(mostWork), m_stop(stop)
    {
    }
    Branching run(Nanos target)
    {
        Windows windows = m_relaxation.windowsFor(target);
        m_result.outcome = visit(windows);
        return std::move(m_result);
    }

private:
    using Outcome = Branching::Outcome;
    bool over() const { return m_result.work >= m_mostWork || (m_stop && m_stop()); }
    Outcome visit(Windows& windows);
    std::optional<Pair> openPair(const Windows& windows);
    void pairsOf(int rank, const Windows& windows);
    bool open(const Pair& pair, const Windows& windows);
    void order(Windows& windows, int rank, Pass first, Pass second) const;
    Words wordsOf(const Windows& windows) const;

    const Pipeline& m_pipeline;
    RankRelaxation& m_relaxation;
    std::int64_t m_mostWork;
    const std::function<bool()>& m_stop;
    Branching m_result;
    std::vector<Pair> m_pairs;
    std::size_t m_waiting = 0; // bytes of branches to come back to
};

void Brancher::pairsOf(int rank, const Windows& windows)
{
    for (int la = 0; la < letterCount; ++la)
        for (int lb = la + 1; lb < letterCount; ++lb) {
            const auto a = static_cast<Letter>(la);
            const auto b = static_cast<Letter>(lb);
            if (chunkOf(a) >= m_pipeline.chunks || chunkOf(b) >= m_pipeline.chunks) continue;
            const int stageA = m_pipeline.stageOf(rank, chunkOf(a));
            const int stageB = m_pipeline.stageOf(rank, chunkOf(b));
            const auto kindA = static_cast<std::size_t>(kindOf(a));
            const auto kindB = static_cast<std::size_t>(kindOf(b));
            const Nanos both = m_pipeline.time(kindOf(a), stageA) + m_pipeline.time(kindOf(b), stageB);
            const bool bNeedsA = needs(b, a, m_pipeline.chunks);
            const bool aNeedsB = needs(a, b, m_pipeline.chunks);
            // Windows rise with the microbatch: those of b that overlap a's are a range that rises, too.
            const Nanos* headA = &windows.head[kindA][m_relaxation.cell(stageA, 0)];
            const Nanos* headB = &windows.head[kindB][m_relaxation.cell(stageB, 0)];
            const Nanos* dueA = &windows.due[kindA][m_relaxation.cell(stageA, 0)];
            const Nanos* dueB = &windows.due[kindB][m_relaxation.cell(stageB, 0)];
            const int m = m_pipeline.microbatches;
            int low = 0;
            for (int i = 0; i < m; ++i) {
                while (low < m && dueB[low] - headA[i] < both)
                    ++low;
                for (int j = low; j < m && dueA[i] - headB[j] >= both; ++j) {
                    if ((bNeedsA && j >= i) || (aNeedsB && i >= j)) continue;
                    const Nanos aFirst = dueB[j] - headA[i] - both;
                    const Nanos bFirst = dueA[i] - headB[j] - both;
                    m_pairs.push_back({rank, {a, i}, {b, j}, aFirst, bFirst, 4 * std::min(aFirst, bFirst) + std::max(aFirst, bFirst)});
                }
            }
        }
}

// Both orders have a state left.
bool Brancher::open(const Pair& pair, const Windows& windows)
{
    bool aFirst = false;
    bool bFirst = false;
    m_result.work += 16;
    for (int state : windows.alive[static_cast<std::size_t>(pair.rank)]) {
        const bool a = m_relaxation.done(pair.rank, state, pair.a.letter) > pair.a.microbatch;
        const bool b = m_relaxation.done(pair.rank, state, pair.b.letter) > pair.b.microbatch;
        aFirst = aFirst || (a && !b);
        bFirst = bFirst || (b && !a);
        if (aFirst && bFirst) return true;
    }
    return false;
}

std::optional<Pair> Brancher::openPair(const Windows& windows)
{
    m_pairs.clear();
    for (int r = 0; r < m_pipeline.ranks; ++r)
        pairsOf(r, windows);
    // The pair with least room comes first: its branches drop most.
    auto later = [](const Pair& x, const Pair& y) { return x.score > y.score; };
    std::make_heap(m_pairs.begin(), m_pairs.end(), later);
    m_result.work += static_cast<std::int64_t>(m_pairs.size());
    while (!m_pairs.empty()) {
        std::pop_heap(m_pairs.begin(), m_pairs.end(), later);
        if (open(m_pairs.back(), windows)) return m_pairs.back();
        m_pairs.pop_back();
    }
    return {};
}

void Brancher::order(Windows& windows, int rank, Pass first, Pass second) const
{
    std::erase_if(windows.alive[static_cast<std::size_t>(rank)], [&](int state) {
        return m_relaxation.done(rank, state, second.letter) > second.microbatch && m_relaxation.done(rank, state, first.letter) <= first.microbatch;
    });
    windows.dirty[static_cast<std::size_t>(rank)] = 1;
}

Words Brancher::wordsOf(const Windows& windows) const
{
    Words out(windows.alive.size());
    for (int r = 0; r < m_pipeline.ranks; ++r) {
        const std::vector<int>& alive = windows.alive[static_cast<std::size_t>(r)];
        for (std::size_t at = 1; at < alive.size(); ++at)
            for (int l = 0; l < letterCount; ++l)
                if (m_relaxation.done(r, alive[at], static_cast<Letter>(l)) > m_relaxation.done(r, alive[at - 1], static_cast<Letter>(l)))
                    out[static_cast<std::size_t>(r)].push_back(static_cast<Letter>(l));
    }
    return out;
}

Branching::Outcome Brancher::visit(Windows& windows)
{
    if (over()) return Outcome::Open;
    ++m_result.nodes;
    for (const std::vector<int>& alive : windows.alive)
        m_result.work += static_cast<std::int64_t>(alive.size());
    if (!m_relaxation.propagate(windows, m_stop)) return Outcome::Refuted;
    if (m_stop && m_stop()) return Outcome::Open;
    const auto pair = openPair(windows);
    if (!pair) {
        m_result.words = wordsOf(windows);
        return Outcome::Solved;
    }
    const bool aFirst = pair->aFirst >= pair->bFirst; // the roomier order first
    std::size_t bytes = 6 * windows.head[0].size() * sizeof(Nanos);
    for (const std::vector<int>& alive : windows.alive)
        bytes += alive.size() * sizeof(int);
    if (m_waiting + bytes > mostWaiting) return Outcome::Open;
    m_waiting += bytes;
    {
        Windows branch = windows;
        order(branch, pair->rank, aFirst ? pair->a : pair->b, aFirst ? pair->b : pair->a);
        if (const Outcome outcome = visit(branch); outcome != Outcome::Refuted) return outcome;
    }
    m_waiting -= bytes;
    order(windows, pair->rank, aFirst ? pair->b : pair->a, aFirst ? pair->a : pair->b);
    return visit(windows);
}

} // namespace

Branching branch(const Pipeline& pipeline, RankRelaxation& relaxation, Nanos target, std::int64_t mostWork, const std::function<bool()>& stop)
{
    return Brancher(pipeline, relaxation, mostWork, stop).run(target);
}

} // namespace stagewright::planning
