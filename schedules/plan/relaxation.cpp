#include "schedules/plan/relaxation.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>

namespace stagewright::planning {

namespace {

constexpr Nanos longAgo = -1;
constexpr Nanos never = INT64_MAX / 4;

} // namespace

RankRelaxation::RankRelaxation(const Pipeline& pipeline, std::size_t mostStates) : m_pipeline(pipeline)
{
    m_ranks.resize(static_cast<std::size_t>(pipeline.ranks));
    std::size_t left = mostStates;
    for (int r = 0; r < pipeline.ranks && m_usable; ++r) {
        m_usable = number(r, left);
        if (m_usable) left -= m_ranks[static_cast<std::size_t>(r)].earliest.size();
    }
}

// Numbers the states that keep cap and order, in an order in which every pass leads to a higher number. Word length is the rank.
bool RankRelaxation::number(int rank, std::size_t most)
{
    const int m = m_pipeline.microbatches;
    if (m > 1000) return false;
    const int chunks = m_pipeline.chunks;
    const Bytes cap = m_pipeline.cap[static_cast<std::size_t>(rank)];
    RankStates& out = m_ranks[static_cast<std::size_t>(rank)];
    using Counts = std::array<std::uint16_t, letterCount>;
    auto key = [&](const Counts& c) {
        std::uint64_t k = 0;
        for (std::uint16_t count : c)
            k = k * 1024 + count;
        return k;
    };
    std::vector<Counts> states{Counts{}};
    std::vector<Bytes> held{0};
    std::unordered_map<std::uint64_t, int> known; // of the layer being made
    std::size_t layerBegin = 0;
    for (int length = 0; length < 3 * chunks * m; ++length) {
        const std::size_t layerEnd = states.size();
        known.clear();
        out.next.resize(layerEnd * letterCount, -1);
        for (std::size_t at = layerBegin; at < layerEnd; ++at)
            for (int l = 0; l < letterCount; ++l) {
                const auto letter = static_cast<Letter>(l);
                const int c = chunkOf(letter);
                if (c >= chunks) continue;
                const Counts& now = states[at];
                const int count = now[static_cast<std::size_t>(l)];
                if (count >= m) continue;
                if (kindOf(letter) != PassKind::Forward && count >= now[static_cast<std::size_t>(l) - 2]) continue;
                if (letter == letterOf(PassKind::Forward, 1) && count >= now[letterOf(PassKind::Forward, 0)]) continue;
                if (letter == letterOf(PassKind::InputGrad, 0) && chunks == 2 && count >= now[letterOf(PassKind::InputGrad, 1)]) continue;
                const Bytes after = held[at] + m_pipeline.change(kindOf(letter), m_pipeline.stageOf(rank, c));
                if (after > cap) continue;
                Counts then = now;
                ++then[static_cast<std::size_t>(l)];
                const auto [found, fresh] = known.try_emplace(key(then), static_cast<int>(states.size()));
                if (fresh) {
                    if (states.size() >= most) return false;
                    states.push_back(then);
                    held.push_back(after);
                }
                out.next[at * letterCount + static_cast<std::size_t>(l)] = found->second;
            }
        layerBegin = layerEnd;
        if (states.size() == layerEnd) return false; // stuck before the end
    }
    out.next.resize(states.size() * letterCount, -1);
    out.ordinal.resize(states.size() * letterCount);
    for (std::size_t at = 0; at < states.size(); ++at)
        for (std::size_t l = 0; l < letterCount; ++l)
            out.ordinal[at * letterCount + l] = states[at][l];
    out.last = static_cast<int>(states.size()) - 1; // the last layer has one state
    out.earliest.resize(states.size());
    out.latest.resize(states.size());
    return true;
}

std::size_t RankRelaxation::stateCount() const
{
    std::size_t sum = 0;
    for (const RankStates& states : m_ranks)
        sum += states.earliest.size();
    return sum;
}

void RankRelaxation::spreadHeads(Windows& windows) const
{
    const int m = m_pipeline.microbatches;
    auto& head = windows.head;
    for (int s = 0; s < m_pipeline.stages(); ++s) {
        bool moved = false;
        auto raise = [&](Nanos& value, Nanos least) {
            if (value >= least) return;
            value = least;
            moved = true;
        };
        for (int j = 0; j < m; ++j) {
            Nanos& own = head[0][cell(s, j)];
            if (s > 0) raise(own, head[0][cell(s - 1, j)] + m_pipeline.time(PassKind::Forward, s - 1) + m_pipeline.fromBelow[static_cast<std::size_t>(s)]);
            if (j > 0) raise(own, head[0][cell(s, j - 1)] + m_pipeline.time(PassKind::Forward, s));
        }
        if (moved) windows.dirty[static_cast<std::size_t>(m_pipeline.rankOf(s))] = 1;
    }
    for (int s = m_pipeline.stages() - 1; s >= 0; --s) {
        bool moved = false;
        auto raise = [&](Nanos& value, Nanos least) {
            if (value >= least) return;
            value = least;
            moved = true;
        };
        for (int j = 0; j < m; ++j) {
            Nanos& own = head[1][cell(s, j)];
            raise(own, head[0][cell(s, j)] + m_pipeline.time(PassKind::Forward, s));
            if (s + 1 < m_pipeline.stages())
                raise(own, head[1][cell(s + 1, j)] + m_pipeline.time(PassKind::InputGrad, s + 1) + m_pipeline.fromAbove[static_cast<std::size_t>(s)]);
            if (j > 0) raise(own, head[1][cell(s, j - 1)] + m_pipeline.time(PassKind::InputGrad, s));
            Nanos& weight = head[2][cell(s, j)];
            raise(weight, own + m_pipeline.time(PassKind::InputGrad, s));
            if (j > 0) raise(weight, head[2][cell(s, j - 1)] + m_pipeline.time(PassKind::WeightGrad, s));
        }
        if (moved) windows.dirty[static_cast<std::size_t>(m_pipeline.rankOf(s))] = 1;
    }
}

void RankRelaxation::spreadDues(Windows& windows) const
{
    const int m = m_pipeline.microbatches;
    auto& due = windows.due;
    for (int s = 0; s < m_pipeline.stages(); ++s) {
        bool moved = false;
        auto lower = [&](Nanos& value, Nanos most) {
            if (value <= most) return;
            value = most;
            moved = true;
        };
        for (int j = m - 1; j >= 0; --j) {
            Nanos& weight = due[2][cell(s, j)];
            if (j + 1 < m) lower(weight, due[2][cell(s, j + 1)] - m_pipeline.time(PassKind::WeightGrad, s));
            Nanos& own = due[1][cell(s, j)];
            lower(own, weight - m_pipeline.time(PassKind::WeightGrad, s));
            if (s > 0)
                lower(own, due[1][cell(s - 1, j)] - m_pipeline.time(PassKind::InputGrad, s - 1) - m_pipeline.fromAbove[static_cast<std::size_t>(s) - 1]);
            if (j + 1 < m) lower(own, due[1][cell(s, j + 1)] - m_pipeline.time(PassKind::InputGrad, s));
        }
        if (moved) windows.dirty[static_cast<std::size_t>(m_pipeline.rankOf(s))] = 1;
    }
    for (int s = m_pipeline.stages() - 1; s >= 0; --s) {
        bool moved = false;
        auto lower = [&](Nanos& value, Nanos most) {
            if (value <= most) return;
            value = most;
            moved = true;
        };
        for (int j = m - 1; j >= 0; --j) {
            Nanos& own = due[0][cell(s, j)];
            lower(own, due[1][cell(s, j)] - m_pipeline.time(PassKind::InputGrad, s));
            if (s + 1 < m_pipeline.stages())
                lower(own, due[0][cell(s + 1, j)] - m_pipeline.time(PassKind::Forward, s + 1) - m_pipeline.fromBelow[static_cast<std::size_t>(s) + 1]);
            if (j + 1 < m) lower(own, due[0][cell(s, j + 1)] - m_pipeline.time(PassKind::Forward, s));
        }
        if (moved) windows.dirty[static_cast<std::size_t>(m_pipeline.rankOf(s))] = 1;
    }
}

bool RankRelaxation::solve(int rank, Windows& windows, bool& moved)
{
    RankStates& states = m_ranks[static_cast<std::size_t>(rank)];
    std::vector<int>& alive = windows.alive[static_cast<std::size_t>(rank)];
    Nanos length[letterCount] = {};
    const Nanos* head[letterCount] = {};
    const Nanos* due[letterCount] = {};
    const auto m = static_cast<std::size_t>(m_pipeline.microbatches);
    std::size_t letters[letterCount];
    std::size_t used = 0;
    for (std::size_t l = 0; l < letterCount; ++l) {
        const int c = chunkOf(static_cast<Letter>(l));
        if (c >= m_pipeline.chunks) continue;
        const int stage = m_pipeline.stageOf(rank, c);
        length[l] = m_pipeline.time(kindOf(static_cast<Letter>(l)), stage);
        head[l] = &windows.head[l / 2][cell(stage, 0)];
        due[l] = &windows.due[l / 2][cell(stage, 0)];
        letters[used++] = l;
    }
    if (alive.empty() || alive.front() != 0 || alive.back() != states.last) return false;
    // States that were dropped have latest < 0 throughout this call and are never entered.
    std::fill(states.latest.begin(), states.latest.end(), longAgo);
    for (int at : alive) {
        states.earliest[static_cast<std::size_t>(at)] = never;
        states.latest[static_cast<std::size_t>(at)] = 0;
    }
    states.earliest[0] = 0;
    for (int state : alive) {
        const auto at = static_cast<std::size_t>(state);
        const Nanos now = states.earliest[at];
        if (now == never) continue;
        for (std::size_t k = 0; k < used; ++k) {
            const std::size_t l = letters[k];
            const int to = states.next[at * letterCount + l];
            if (to < 0 || states.latest[static_cast<std::size_t>(to)] < 0) continue;
            const std::size_t j = states.ordinal[at * letterCount + l];
            const Nanos end = std::max(now, head[l][j]) + length[l];
            if (end <= due[l][j]) states.earliest[static_cast<std::size_t>(to)] = std::min(states.earliest[static_cast<std::size_t>(to)], end);
        }
    }
    const auto last = static_cast<std::size_t>(states.last);
    if (states.earliest[last] == never) return false;
    // What a pass can do on some path that is in time.
    std::vector<Nanos> first[letterCount];
    std::vector<Nanos> final[letterCount];
    for (std::size_t k = 0; k < used; ++k) {
        first[letters[k]].assign(m, never);
        final[letters[k]].assign(m, longAgo);
    }
    for (int state : alive)
        states.latest[static_cast<std::size_t>(state)] = longAgo;
    states.latest[last] = never;
    for (std::size_t index = alive.size() - 1; index-- > 0;) {
        const auto at = static_cast<std::size_t>(alive[index]);
        if (states.earliest[at] == never) continue;
        for (std::size_t k = 0; k < used; ++k) {
            const std::size_t l = letters[k];
            const int to = states.next[at * letterCount + l];
            if (to < 0 || states.latest[static_cast<std::size_t>(to)] < 0) continue;
            const std::size_t j = states.ordinal[at * letterCount + l];
            const Nanos end = std::min(states.latest[static_cast<std::size_t>(to)], due[l][j]);
            const Nanos start = end - length[l];
            if (start < head[l][j]) continue;
            states.latest[at] = std::max(states.latest[at], start);
            const Nanos soonest = std::max(states.earliest[at], head[l][j]);
            if (soonest > start) continue;
            first[l][j] = std::min(first[l][j], soonest);
            final[l][j] = std::max(final[l][j], end);
        }
        if (states.earliest[at] > states.latest[at]) states.latest[at] = longAgo; // on no path in time
    }
    if (states.latest[0] < 0) return false;
    std::erase_if(alive, [&](int state) { return states.latest[static_cast<std::size_t>(state)] < 0; });
    for (std::size_t k = 0; k < used; ++k) {
        const std::size_t l = letters[k];
        const std::size_t base = cell(m_pipeline.stageOf(rank, chunkOf(static_cast<Letter>(l))), 0);
        for (std::size_t j = 0; j < m; ++j) {
            Nanos& start = windows.head[l / 2][base + j];
            Nanos& end = windows.due[l / 2][base + j];
            if (first[l][j] > start) {
                start = first[l][j];
                moved = true;
            }
            if (final[l][j] < end) {
                end = final[l][j];
                moved = true;
            }
        }
    }
    return true;
}

Windows RankRelaxation::windowsFor(Nanos target) const
{
    Windows out;
    const std::size_t cells = static_cast<std::size_t>(m_pipeline.stages()) * static_cast<std::size_t>(m_pipeline.microbatches);
    for (std::size_t k = 0; k < 3; ++k) {
        out.head[k].assign(cells, 0);
        out.due[k].resize(cells);
        for (int s = 0; s < m_pipeline.stages(); ++s)
            for (int j = 0; j < m_pipeline.microbatches; ++j)
                out.due[k][cell(s, j)] = target + m_pipeline.origin[static_cast<std::size_t>(m_pipeline.rankOf(s))];
    }
    for (const RankStates& states : m_ranks) {
        out.alive.emplace_back(states.earliest.size());
        std::iota(out.alive.back().begin(), out.alive.back().end(), 0);
    }
    out.dirty.assign(m_ranks.size(), 1);
    return out;
}

bool RankRelaxation::propagate(Windows& windows, const std::function<bool()>& stop)
{
    spreadHeads(windows);
    spreadDues(windows);
    for (bool again = true; again;) {
        again = false;
        for (std::size_t r = 0; r < m_ranks.size(); ++r) {
            if (!windows.dirty[r]) continue;
            if (stop && stop()) return true;
            windows.dirty[r] = 0;
            bool moved = false;
            if (!solve(static_cast<int>(r), windows, moved)) return false;
            if (!moved) continue;
            windows.dirty[r] = 1;
            again = true;
            spreadHeads(windows);
            spreadDues(windows);
        }
        again = again || std::any_of(windows.dirty.begin(), windows.dirty.end(), [](std::uint8_t dirty) { return dirty != 0; });
    }
    return true;
}

bool RankRelaxation::refutes(Nanos target, const std::function<bool()>& stop)
{
    Windows windows = windowsFor(target);
    return !propagate(windows, stop);
}

} // namespace stagewright::planning
