#include "schedules/layout/partition_bound.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <utility>

namespace stagewright {

namespace {

// What a message between two stages takes at least; none is behind the last layer.
double leastMessage(const PartitionProblem& problem)
{
    Bytes bytes = problem.layers.size() > 1 ? problem.layers.front().boundary : 0;
    for (std::size_t i = 0; i + 1 < problem.layers.size(); ++i) bytes = std::min(bytes, problem.layers[i].boundary);
    const double rate = problem.link.bytesPerSecond;
    return static_cast<double>(problem.link.latency) + (rate > 0 ? static_cast<double>(bytes) / rate * 1e9 : 0);
}

// The least time in which whole layers can be shared out to ranks that begin at given moments and do each of their
// layers so many times: no step is shorter. Exact where all layers but a few cost the same; else each rank takes the
// largest sum of layers that it has time for, which counts layers more than once and is a bound below that.
class LayerPacking {
public:
    LayerPacking(const std::vector<ModelLayer>& layers, std::vector<double> waits, int times)
        : m_waits(std::move(waits)), m_times(times)
    {
        std::map<Nanos, std::size_t> counts;
        for (const ModelLayer& layer : layers) {
            ++counts[layer.time()];
            m_all += static_cast<double>(layer.time());
        }
        const auto usual = std::max_element(counts.begin(), counts.end(),
                                            [](const auto& a, const auto& b) { return a.second < b.second; });
        m_usual = static_cast<double>(usual->first);
        m_usualCount = static_cast<double>(usual->second);
        for (const ModelLayer& layer : layers)
            if (layer.time() != usual->first) m_others.push_back(static_cast<double>(layer.time()));
        std::sort(m_others.rbegin(), m_others.rend());
        findSums(layers);
    }
    double least() const
    {
        double low = 0; // too short
        for (const double wait : m_waits) low += wait;
        low = (m_times * m_all + low) / static_cast<double>(m_waits.size()) - 1;
        double high = m_waits.back() + m_times * m_all;
        for (int round = 0; round < 60 && high - low > 0.5; ++round) {
            const double middle = (low + high) / 2;
            (fit(middle) ? high : low) = middle;
        }
        return low;
    }

private:
    static constexpr std::size_t mostSums = 200'000, mostOthers = 6;

    void findSums(const std::vector<ModelLayer>& layers)
    {
        std::set<Nanos> sums{0};
        for (const ModelLayer& layer : layers) {
            std::vector<Nanos> more;
            for (const Nanos sum : sums) more.push_back(sum + layer.time());
            sums.insert(more.begin(), more.end());
            if (sums.size() > mostSums) return; // there are so many that one is near
        }
        m_sums.assign(sums.begin(), sums.end());
    }
    bool fit(double time) const
    {
        std::vector<double> room;
        double sum = 0;
        for (const double wait : m_waits) {
            room.push_back(std::max(0.0, time - wait) / m_times);
            sum += m_sums.empty() ? room.back()
                                  : *std::prev(std::upper_bound(m_sums.begin(), m_sums.end(), room.back() + 1e-3));
        }
        if (sum < m_all) return false;
        return m_others.size() > mostOthers || place(room, 0);
    }
    // The layers that are unlike the others, the largest first, then the others into what is left.
    bool place(std::vector<double>& room, std::size_t next) const
    {
        double usual = 0;
        for (const double one : room) usual += m_usual > 0 ? std::floor(one / m_usual + 1e-9) : m_usualCount;
        if (usual < m_usualCount) return false;
        if (next == m_others.size()) return true;
        for (double& one : room) {
            if (one + 1e-3 < m_others[next]) continue;
            one -= m_others[next];
            const bool fits = place(room, next + 1);
            one += m_others[next];
            if (fits) return true;
        }
        return false;
    }

    std::vector<double> m_waits;
    int m_times;
    double m_all = 0, m_usual = 0, m_usualCount = 0;
    std::vector<double> m_others, m_sums;
};

} // namespace

Nanos packingBound(const PartitionProblem& problem)
{
    const auto m = static_cast<double>(problem.microbatches);
    const double hop = leastMessage(problem);
    std::vector<double> before{0}, times, waits;
    for (std::size_t k = 0; k < problem.layers.size(); ++k) {
        const ModelLayer& one = problem.layers[k];
        before.push_back(before.back() + static_cast<double>(one.forward));
        times.push_back(static_cast<double>(one.time()));
    }
    for (int k = 0; k < problem.ranks; ++k) waits.push_back(before[static_cast<std::size_t>(k)] + k * hop);
    double out = LayerPacking(problem.layers, waits, problem.microbatches).least();
    std::vector<std::size_t> longest(times.size());
    std::iota(longest.begin(), longest.end(), 0);
    std::stable_sort(longest.begin(), longest.end(), [&](auto a, auto b) { return times[a] > times[b]; });
    for (std::size_t i = 0; i < std::min<std::size_t>(longest.size(), 50); ++i) {
        const std::size_t layer = longest[i];
        double least = before[layer] + m * times[layer];
        for (std::size_t first = 0; first < layer; ++first)
            least = std::min(least, before[first] + m * (times[layer] + times[first]));
        out = std::max(out, least);
    }
    return static_cast<Nanos>(out);
}

std::optional<Rounds> roundsOf(const Placement& placement, int ranks)
{
    if (placement.hasCopies() || placement.stages() % ranks != 0) return std::nullopt;
    Rounds out;
    for (int first = 0; first < placement.stages(); first += ranks) {
        out.push_back(placement.rankOf(first, -1) != 0);
        for (int k = 0; k < ranks; ++k)
            if (placement.rankOf(first + k, -1) != (out.back() ? ranks - 1 - k : k)) return std::nullopt;
    }
    if (out.empty() || out.front()) return std::nullopt;
    return out;
}

DivisionBound::DivisionBound(const PartitionProblem& problem, Rounds rounds)
    : m_message(leastMessage(problem) + static_cast<double>(problem.perOp.forward)),
      m_perRank(static_cast<double>(rounds.size()) * static_cast<double>(problem.perOp.time())),
      m_layers(static_cast<int>(problem.layers.size())), m_ranks(problem.ranks), m_microbatches(problem.microbatches),
      m_rounds(std::move(rounds))
{
    for (const ModelLayer& one : problem.layers) {
        m_forward.push_back(m_forward.back() + static_cast<double>(one.forward));
        m_time.push_back(m_time.back() + static_cast<double>(one.time()));
    }
}

double DivisionBound::sumOf(std::size_t round, int taken) const
{
    const auto at = [&](int layer) { return m_time[static_cast<std::size_t>(layer)]; };
    const int first = m_cuts[round], end = m_cuts[round + 1];
    return m_rounds[round] ? at(end) - at(end - taken) : at(first + taken) - at(first);
}

// The rank takes layers from this round and those behind it; `to` is the state that it comes to.
bool DivisionBound::take(double room, std::size_t round, std::size_t to, double used, bool all, std::int64_t& effort)
{
    const bool last = m_rounds.size() > 1 && round + 1 == m_rounds.size();
    const int had = m_rank + (last ? m_states[static_cast<std::size_t>(m_rank)][m_state].last : m_at[round]);
    const int most = m_more[round] + m_rank + 1 - had;
    const double before = sumOf(round, had);
    if (last) {
        int count = 0;
        while (count < most && used + sumOf(round, had + count + 1) - before <= room) ++count;
        effort -= count + 1;
        State& state = m_states[static_cast<std::size_t>(m_rank) + 1][to];
        if (const int now = had + count - m_rank - 1; count > 0 && now > state.last)
            state = {now, static_cast<int>(m_state)};
        return effort > 0;
    }
    for (int count = all ? std::max(1, most) : 1; count <= most; ++count) {
        const double sum = used + sumOf(round, had + count) - before;
        if (sum > room) break;
        const std::size_t next = to + m_strides[round] * static_cast<std::size_t>(had + count - m_rank - 1);
        if (m_rounds.size() == 1) {
            State& state = m_states[static_cast<std::size_t>(m_rank) + 1][next];
            if (state.last < 0) state = {0, static_cast<int>(m_state)};
            if (--effort <= 0) return false;
        } else if (!take(room, round + 1, next, sum, all, effort)) {
            return false;
        }
    }
    return effort > 0;
}

DivisionBound::Reach DivisionBound::divide(double time, std::int64_t& effort)
{
    const std::size_t tables = std::max<std::size_t>(1, m_rounds.size() - 1);
    m_more.clear();
    m_strides.clear();
    std::size_t size = 1;
    for (std::size_t round = 0; round < m_rounds.size(); ++round) {
        m_more.push_back(m_cuts[round + 1] - m_cuts[round] - m_ranks);
        if (round >= tables) continue;
        m_strides.push_back(size);
        size *= static_cast<std::size_t>(m_more.back()) + 1;
    }
    m_states.resize(static_cast<std::size_t>(m_ranks) + 1);
    for (auto& states : m_states) states.assign(size, {});
    m_states[0][0].last = 0;
    m_at.assign(tables, 0);
    for (m_rank = 0; m_rank < m_ranks; ++m_rank) {
        const auto& states = m_states[static_cast<std::size_t>(m_rank)];
        for (m_state = 0; m_state < size; ++m_state) {
            if (states[m_state].last < 0) continue;
            double taken = m_rounds.size() > 1 ? sumOf(tables, m_rank + states[m_state].last) : 0;
            for (std::size_t round = 0; round < tables; ++round) {
                m_at[round] = static_cast<int>(m_state / m_strides[round]) % (m_more[round] + 1);
                taken += sumOf(round, m_rank + m_at[round]);
            }
            const double head = m_forward[static_cast<std::size_t>(m_rank + m_at[0])] + m_rank * m_message;
            const double room = (time - head) / m_microbatches - m_perRank + 1e-6;
            if (m_time.back() - taken > room * (m_ranks - m_rank)) continue; // those behind it have less room each
            if (!take(room, 0, 0, 0, m_rank + 1 == m_ranks, effort)) return Reach::Unknown;
        }
    }
    return m_states.back().back().last == (m_rounds.size() > 1 ? m_more.back() : 0) ? Reach::Yes : Reach::No;
}

DivisionBound::Reach DivisionBound::reach(double time, std::int64_t& effort)
{
    const auto rounds = static_cast<int>(m_rounds.size());
    if (rounds * m_ranks > m_layers) return Reach::No;
    m_cuts.clear();
    for (int round = 0; round < rounds; ++round) m_cuts.push_back(round * m_ranks);
    m_cuts.push_back(m_layers);
    while (true) {
        if (const Reach one = divide(time, effort); one != Reach::No) return one;
        // the next choice: the last start that can move, and those behind it as early as they can be
        int round = rounds - 1;
        while (round > 0 && m_cuts[static_cast<std::size_t>(round)] == m_layers - (rounds - round) * m_ranks) --round;
        if (round == 0) return Reach::No;
        const int start = m_cuts[static_cast<std::size_t>(round)] + 1;
        for (int k = round; k < rounds; ++k) m_cuts[static_cast<std::size_t>(k)] = start + (k - round) * m_ranks;
    }
}

Nanos DivisionBound::least(Nanos low, Nanos high, std::int64_t& effort)
{
    if (low >= high || reach(static_cast<double>(high), effort) == Reach::No) return high;
    while (high - low > low / 5000 + 1 && effort > 0) {
        const Nanos middle = low + (high - low) / 2;
        (reach(static_cast<double>(middle), effort) == Reach::No ? low : high) = middle;
    }
    return low;
}

std::vector<int> DivisionBound::within(Nanos time, std::int64_t& effort)
{
    if (reach(static_cast<double>(time), effort) != Reach::Yes) return {};
    const std::size_t rounds = m_rounds.size(), tables = std::max<std::size_t>(1, rounds - 1);
    std::vector<int> out(rounds * static_cast<std::size_t>(m_ranks) + 1, m_layers);
    std::size_t state = m_states.back().size() - 1;
    for (int rank = m_ranks; rank-- > 0;) {
        const auto from = static_cast<std::size_t>(m_states[static_cast<std::size_t>(rank) + 1][state].from);
        for (std::size_t round = 0; round < rounds; ++round) {
            const bool down = m_rounds[round];
            // upwards the rank's stage starts behind what the ranks before it took, downwards before its own
            const std::size_t of = down ? state : from;
            const int ranks = down ? rank + 1 : rank;
            const int taken = ranks + (round < tables ? static_cast<int>(of / m_strides[round]) % (m_more[round] + 1)
                                                      : m_states[static_cast<std::size_t>(ranks)][of].last);
            out[round * static_cast<std::size_t>(m_ranks) +
                static_cast<std::size_t>(down ? m_ranks - 1 - rank : rank)] =
                down ? m_cuts[round + 1] - taken : m_cuts[round] + taken;
        }
        state = from;
    }
    return out;
}

} // namespace stagewright
