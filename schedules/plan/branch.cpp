#include "schedules/plan/branch.h"

#include <algorithm>
#include <optional>

#include "schedules/heuristic/random.h"
#include "schedules/plan/dispatch.h"

namespace stagewright::planning {

namespace {

constexpr std::size_t mostWaiting = std::size_t{256} << 20;

// The count-th of an event on a rank.
struct Moment {
    int event = 0; // 2 · kind of event + chunk
    int count = 0;
};

// Two events of one rank and how much time is left over in either order.
struct Pair {
    int rank = 0;
    Moment a;
    Moment b;
    Nanos aFirst = 0;
    Nanos bFirst = 0;
    Nanos score = 0; // small: one order leaves little room, the other not much more
};

// Event j of `before` never ends after event j of `after`.
bool needs(int after, int before, int chunks)
{
    auto place = [chunks](int event) { // along the chain of a microbatch on its rank
        if (event / 2 == forwardEvent) return event % 2;
        return chunks == 2 ? 3 - event % 2 : 2;
    };
    if (before / 2 == releaseEvent) return false;
    if (after / 2 == releaseEvent) return place(before) <= place(2 * gradientEvent + after % 2);
    return place(before) < place(after);
}

// A state of a rank that a B may lead over.
struct Choice {
    int rank = 0;
    int state = 0;
    bool overFirst = false;
};

// States that all paths of a rank have: before and after all that is open.
struct Forks {
    int first = 0;
    int last = 0;
};

class Brancher {
public:
    Brancher(const Pipeline& pipeline, RankRelaxation& relaxation, std::int64_t mostWork,
             const std::function<bool()>& stop, std::uint64_t seed)
        : m_pipeline(pipeline), m_relaxation(relaxation), m_mostWork(mostWork), m_stop(stop), m_seed(seed),
          m_random(seed), m_dispatcher(pipeline, relaxation),
          m_most(static_cast<std::size_t>(pipeline.ranks * eventCount * eventCount))
    {
    }
    Branching run(Windows windows)
    {
        m_result.outcome = visit(windows);
        return std::move(m_result);
    }

private:
    using Outcome = Branching::Outcome;
    bool over() const { return m_result.work >= m_mostWork || (m_stop && m_stop()); }
    Outcome visit(Windows& windows);
    std::optional<Pair> openPair(const Windows& windows);
    bool findForks(int rank, const Windows& windows, Forks& forks) const; // false: one path
    void pairsOf(int rank, const Windows& windows);
    bool open(const Pair& pair, const Windows& windows);
    void fillMost(int rank, int event, int other, const Windows& windows, std::vector<int>& most) const;
    void order(Windows& windows, int rank, Moment first, Moment second) const;
    std::optional<Choice> openWay(const Windows& windows) const;
    bool reserve(const Windows& windows);
    Words wordsOf(const Windows& windows) const;

    const Pipeline& m_pipeline;
    RankRelaxation& m_relaxation;
    std::int64_t m_mostWork;
    const std::function<bool()>& m_stop;
    std::uint64_t m_seed;
    Random m_random;
    Branching m_result;
    struct Most {
        std::int64_t node = -1;
        std::vector<int> a; // by b's count: the most of a that were while so many of b were
        std::vector<int> b;
    };
    Dispatcher m_dispatcher;
    std::vector<Pair> m_pairs;
    std::vector<Most> m_most;  // by rank, event and other event
    std::size_t m_waiting = 0; // bytes of branches to come back to
};

// Only between events of one part of the rank's paths is anything open: after the last state that all have before the
// first fork, up to the first state that all have after the last one.
bool Brancher::findForks(int rank, const Windows& windows, Forks& forks) const
{
    const std::vector<int>& alive = windows.alive[static_cast<std::size_t>(rank)];
    bool full = false;
    for (int c = 0; c < m_pipeline.chunks; ++c) full = full || m_pipeline.usesFull(m_pipeline.stageOf(rank, c));
    int met = alive.front(); // the last state that all paths have
    bool open = false;
    bool any = false;
    int jumped = -1; // events done in the states that a B leads over
    for (std::size_t at = 0; at < alive.size();) {
        const int done = m_relaxation.doneInAll(rank, alive[at]);
        std::size_t end = at + 1;
        while (end < alive.size() && m_relaxation.doneInAll(rank, alive[end]) == done) ++end;
        const bool all = end == at + 1 && jumped != done;
        if (!all && !any) forks.first = met;
        any = any || !all;
        if (all) {
            met = alive[at];
            if (open) forks.last = met;
        }
        open = !all;
        for (std::size_t k = at; full && k < end; ++k)
            for (int c = 0; c < m_pipeline.chunks; ++c) {
                const int over = m_relaxation.next(rank, alive[k], letterOf(PassKind::Backward, c));
                if (over >= 0 && std::binary_search(alive.begin(), alive.end(), over)) jumped = done + 1;
            }
        at = end;
    }
    return any;
}

void Brancher::pairsOf(int rank, const Windows& windows)
{
    Forks forks;
    if (!findForks(rank, windows, forks)) return;
    for (int a = 0; a < eventCount; ++a)
        for (int b = a + 1; b < eventCount; ++b) {
            if (a % 2 >= m_pipeline.chunks || b % 2 >= m_pipeline.chunks) continue;
            const int stageA = m_pipeline.stageOf(rank, a % 2);
            const int stageB = m_pipeline.stageOf(rank, b % 2);
            const auto kindA = static_cast<std::size_t>(a / 2);
            const auto kindB = static_cast<std::size_t>(b / 2);
            const Nanos both = m_relaxation.least(kindA, stageA) + m_relaxation.least(kindB, stageB);
            const bool bNeedsA = needs(b, a, m_pipeline.chunks);
            const bool aNeedsB = needs(a, b, m_pipeline.chunks);
            // Windows rise with the microbatch: those of b that overlap a's are a range that rises, too.
            const Nanos* headA = &windows.head[kindA][m_relaxation.cell(stageA, 0)];
            const Nanos* headB = &windows.head[kindB][m_relaxation.cell(stageB, 0)];
            const Nanos* dueA = &windows.due[kindA][m_relaxation.cell(stageA, 0)];
            const Nanos* dueB = &windows.due[kindB][m_relaxation.cell(stageB, 0)];
            const int beyondA = m_relaxation.done(rank, forks.last, a);
            const int beyondB = m_relaxation.done(rank, forks.last, b);
            int low = m_relaxation.done(rank, forks.first, b);
            for (int i = m_relaxation.done(rank, forks.first, a); i < beyondA; ++i) {
                while (low < beyondB && dueB[low] - headA[i] < both) ++low;
                for (int j = low; j < beyondB && dueA[i] - headB[j] >= both; ++j) {
                    if ((bNeedsA && j >= i) || (aNeedsB && i >= j)) continue;
                    const Nanos aFirst = dueB[j] - headA[i] - both;
                    const Nanos bFirst = dueA[i] - headB[j] - both;
                    m_pairs.push_back({rank,
                                       {a, i},
                                       {b, j},
                                       aFirst,
                                       bFirst,
                                       4 * std::min(aFirst, bFirst) + std::max(aFirst, bFirst)});
                }
            }
        }
}

// By how many of one event were: the most of another in states that are alive.
void Brancher::fillMost(int rank, int event, int other, const Windows& windows, std::vector<int>& most) const
{
    most.assign(static_cast<std::size_t>(m_pipeline.microbatches) + 1, -1);
    for (int state : windows.alive[static_cast<std::size_t>(rank)]) {
        int& value = most[static_cast<std::size_t>(m_relaxation.done(rank, state, event))];
        value = std::max(value, m_relaxation.done(rank, state, other));
    }
    for (std::size_t k = 1; k < most.size(); ++k) most[k] = std::max(most[k], most[k - 1]);
}

// Both orders have a state left.
bool Brancher::open(const Pair& pair, const Windows& windows)
{
    const auto index = static_cast<std::size_t>((pair.rank * eventCount + pair.a.event) * eventCount + pair.b.event);
    Most& most = m_most[index];
    if (most.node != m_result.nodes) {
        most.node = m_result.nodes;
        fillMost(pair.rank, pair.b.event, pair.a.event, windows, most.a);
        fillMost(pair.rank, pair.a.event, pair.b.event, windows, most.b);
        m_result.work += 2 * static_cast<std::int64_t>(windows.alive[static_cast<std::size_t>(pair.rank)].size());
    }
    return most.a[static_cast<std::size_t>(pair.b.count)] > pair.a.count &&
           most.b[static_cast<std::size_t>(pair.a.count)] > pair.b.count;
}

std::optional<Pair> Brancher::openPair(const Windows& windows)
{
    m_pairs.clear();
    for (int r = 0; r < m_pipeline.ranks; ++r) pairsOf(r, windows);
    if (m_seed != 0)
        for (Pair& pair : m_pairs) pair.score += static_cast<Nanos>(static_cast<double>(pair.score) * m_random.unit());
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

// Drops the states in which the second event was and the first was not.
void Brancher::order(Windows& windows, int rank, Moment first, Moment second) const
{
    std::erase_if(windows.alive[static_cast<std::size_t>(rank)], [&](int state) {
        return m_relaxation.done(rank, state, second.event) > second.count &&
               m_relaxation.done(rank, state, first.event) <= first.count;
    });
    windows.dirty[static_cast<std::size_t>(rank)] = 1;
}

// States are a chain when no pair is open; what is left is a B that leads over a state between an I or W and the other.
std::optional<Choice> Brancher::openWay(const Windows& windows) const
{
    for (int r = 0; r < m_pipeline.ranks; ++r) {
        const std::vector<int>& alive = windows.alive[static_cast<std::size_t>(r)];
        for (std::size_t at = 0; at + 2 < alive.size(); ++at)
            for (int c = 0; c < m_pipeline.chunks; ++c) {
                if (m_relaxation.next(r, alive[at], letterOf(PassKind::Backward, c)) != alive[at + 2]) continue;
                if (windows.stops[static_cast<std::size_t>(r)]
                                 [static_cast<std::size_t>(m_relaxation.doneInAll(r, alive[at + 1]))])
                    continue;
                const int stage = m_pipeline.stageOf(r, c);
                return Choice{r, alive[at + 1],
                              m_pipeline.time(PassKind::Backward, stage) == m_pipeline.backTime(stage)};
            }
    }
    return {};
}

Words Brancher::wordsOf(const Windows& windows) const
{
    Words out(windows.alive.size());
    for (int r = 0; r < m_pipeline.ranks; ++r) {
        const std::vector<int>& alive = windows.alive[static_cast<std::size_t>(r)];
        for (std::size_t at = 1; at < alive.size(); ++at)
            for (int l = 0; l < letterCount; ++l)
                if (m_relaxation.next(r, alive[at - 1], static_cast<Letter>(l)) == alive[at])
                    out[static_cast<std::size_t>(r)].push_back(static_cast<Letter>(l));
    }
    return out;
}

// Counts a branch that waits; false: there are too many.
bool Brancher::reserve(const Windows& windows)
{
    std::size_t bytes = 9 * windows.head[0].size() * sizeof(Nanos);
    for (const std::vector<int>& alive : windows.alive) bytes += alive.size() * sizeof(int);
    if (m_waiting + bytes > mostWaiting) return false;
    m_waiting += bytes;
    return true;
}

Branching::Outcome Brancher::visit(Windows& windows)
{
    if (over()) return Outcome::Open;
    ++m_result.nodes;
    const std::int64_t before = m_relaxation.looked();
    const bool left = m_relaxation.propagate(windows, m_stop);
    m_result.work += m_relaxation.looked() - before;
    if (!left) return Outcome::Refuted;
    if (m_stop && m_stop()) return Outcome::Open;
    if (m_dispatcher.run(windows)) {
        m_result.words = m_dispatcher.words();
        return Outcome::Solved;
    }
    const auto pair = openPair(windows);
    const auto way = pair ? std::optional<Choice>() : openWay(windows);
    if (!pair && !way) {
        m_result.words = wordsOf(windows);
        return Outcome::Solved;
    }
    const std::size_t waiting = m_waiting;
    if (!reserve(windows)) return Outcome::Open;
    auto narrow = [&](Windows& to, bool first) {
        if (pair) {
            const bool aFirst = (pair->aFirst >= pair->bFirst) == first; // the roomier order first
            order(to, pair->rank, aFirst ? pair->a : pair->b, aFirst ? pair->b : pair->a);
        } else {
            const auto rank = static_cast<std::size_t>(way->rank);
            if (way->overFirst == first)
                std::erase(to.alive[rank], way->state);
            else
                to.stops[rank][static_cast<std::size_t>(m_relaxation.doneInAll(way->rank, way->state))] = 1;
            to.dirty[rank] = 1;
        }
    };
    {
        Windows branch = windows;
        narrow(branch, true);
        if (const Outcome outcome = visit(branch); outcome != Outcome::Refuted) return outcome;
    }
    m_waiting = waiting;
    narrow(windows, false);
    return visit(windows);
}

} // namespace

Branching branch(const Pipeline& pipeline, RankRelaxation& relaxation, Nanos target, std::int64_t mostWork,
                 const std::function<bool()>& stop, std::uint64_t seed)
{
    return branchWithin(pipeline, relaxation, relaxation.windowsFor(target), mostWork, stop, seed);
}

Branching branchWithin(const Pipeline& pipeline, RankRelaxation& relaxation, Windows windows, std::int64_t mostWork,
                       const std::function<bool()>& stop, std::uint64_t seed)
{
    return Brancher(pipeline, relaxation, mostWork, stop, seed).run(std::move(windows));
}

} // namespace stagewright::planning
