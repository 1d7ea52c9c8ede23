#include "schedules/heuristic/fill.h"

#include <algorithm>

namespace stagewright::planning {

WordRunner::WordRunner(const Pipeline& pipeline)
    : m_pipeline(pipeline), m_ranks(static_cast<std::size_t>(pipeline.ranks)),
      m_out(static_cast<std::size_t>(pipeline.ranks)), m_starts(static_cast<std::size_t>(pipeline.ranks))
{
}

void WordRunner::reset(const Words& words)
{
    const std::size_t cells =
        static_cast<std::size_t>(m_pipeline.stages()) * static_cast<std::size_t>(m_pipeline.microbatches);
    for (auto& table : m_end) table.assign(cells, -1);
    for (auto& table : m_at) table.resize(cells);
    for (std::size_t r = 0; r < m_ranks.size(); ++r) {
        Rank& rank = m_ranks[r];
        auto pending = std::move(rank.pending);
        pending.clear();
        rank = Rank{};
        rank.pending = std::move(pending);
        m_out[r].clear();
        m_starts[r].clear();
        const std::size_t letters = static_cast<std::size_t>(3 * m_pipeline.chunks * m_pipeline.microbatches);
        m_out[r].reserve(std::max(words[r].size(), letters));
        m_starts[r].reserve(std::max(words[r].size(), letters));
    }
}

Nanos WordRunner::arrival(int r, Letter letter) const
{
    const Rank& rank = m_ranks[static_cast<std::size_t>(r)];
    const int chunk = chunkOf(letter);
    const int stage = m_pipeline.stageOf(r, chunk);
    const PassKind kind = kindOf(letter);
    if (kind == PassKind::WeightGrad) return rank.apart[chunk] > 0 ? rank.clock : -1;
    const int j = kind == PassKind::Forward ? rank.forwards[chunk] : rank.gradients[chunk];
    if (j >= m_pipeline.microbatches) return -1;
    const auto m = static_cast<std::size_t>(m_pipeline.microbatches);
    auto at = [&](int table, int s) {
        return m_end[table][static_cast<std::size_t>(s) * m + static_cast<std::size_t>(j)];
    };
    if (kind == PassKind::Forward) {
        if (stage == 0) return 0;
        const Nanos before = at(0, stage - 1);
        return before < 0 ? -1 : before + m_pipeline.fromBelow[static_cast<std::size_t>(stage)];
    }
    const Nanos own = at(0, stage);
    if (own < 0 || stage + 1 == m_pipeline.stages()) return own;
    const Nanos after = at(1, stage + 1);
    return after < 0 ? -1 : std::max(own, after + m_pipeline.fromAbove[static_cast<std::size_t>(stage)]);
}

int WordRunner::microbatchOf(const Rank& rank, Letter letter) const
{
    const int chunk = chunkOf(letter);
    if (kindOf(letter) == PassKind::Forward) return rank.forwards[chunk];
    if (kindOf(letter) != PassKind::WeightGrad) return rank.gradients[chunk];
    const auto next = static_cast<std::size_t>(rank.weights[chunk]);
    return next < rank.apartOf[chunk].size() ? rank.apartOf[chunk][next] : m_pipeline.microbatches;
}

OwnPass WordRunner::passOf(int r, Letter letter) const
{
    const PassKind kind = kindOf(letter);
    const int stage = m_pipeline.stageOf(r, chunkOf(letter));
    if (!m_pipeline.alike())
        if (const int j = microbatchOf(m_ranks[static_cast<std::size_t>(r)], letter); j < m_pipeline.microbatches)
            return m_pipeline.ownPass(kind, stage, j);
    return {m_pipeline.time(kind, stage), m_pipeline.change(kind, stage)};
}

void WordRunner::perform(int r, Letter letter, Nanos start)
{
    Rank& rank = m_ranks[static_cast<std::size_t>(r)];
    const int chunk = chunkOf(letter);
    const int stage = m_pipeline.stageOf(r, chunk);
    const PassKind kind = kindOf(letter);
    if (rank.first < 0)
        rank.first = start;
    else
        rank.idle += start - rank.clock;
    const OwnPass pass = passOf(r, letter);
    const Nanos end = start + pass.duration;
    rank.clock = end;
    rank.held += pass.delta;
    if (!m_pipeline.alike()) {
        if (kind == PassKind::InputGrad) rank.apartOf[chunk].push_back(rank.gradients[chunk]);
        if (kind == PassKind::WeightGrad) ++rank.weights[chunk];
    }
    rank.peak = std::max(rank.peak, rank.held);
    auto cell = [&](int j) {
        return static_cast<std::size_t>(stage) * static_cast<std::size_t>(m_pipeline.microbatches) +
               static_cast<std::size_t>(j);
    };
    if (kind != PassKind::WeightGrad) {
        const std::size_t table = kind == PassKind::Forward ? 0 : 1;
        const std::size_t at = cell(kind == PassKind::Forward ? rank.forwards[chunk]++ : rank.gradients[chunk]++);
        m_end[table][at] = end;
        m_at[table][at] = static_cast<int>(m_out[static_cast<std::size_t>(r)].size());
    }
    if (kind == PassKind::InputGrad) {
        ++rank.apart[chunk];
        rank.pending.push_back(chunk);
    }
    if (kind == PassKind::WeightGrad) {
        --rank.apart[chunk];
        if (hasPending(rank)) ++rank.pendingHead;
    }
    m_out[static_cast<std::size_t>(r)].push_back(letter);
    m_starts[static_cast<std::size_t>(r)].push_back(start);
}

bool WordRunner::fits(int r, Letter letter) const
{
    const Rank& rank = m_ranks[static_cast<std::size_t>(r)];
    return rank.held + passOf(r, letter).delta <= m_pipeline.cap[static_cast<std::size_t>(r)];
}

bool WordRunner::makeRoom(int r)
{
    Rank& rank = m_ranks[static_cast<std::size_t>(r)];
    if (hasPending(rank)) { // its I is done: it can start now
        perform(r, nextPending(rank), rank.clock);
        return true;
    }
    Word& word = m_rest[static_cast<std::size_t>(r)];
    const auto from = word.begin() + static_cast<std::ptrdiff_t>(rank.head);
    const auto next = std::find_if(from, word.end(), [](Letter letter) { return givesGradient(kindOf(letter)); });
    if (next == word.end()) return false;
    if (!fits(r, *next) && m_pipeline.usesFull(m_pipeline.stageOf(r, chunkOf(*next))))
        *next = letterOf(PassKind::Backward, chunkOf(*next));
    if (!fits(r, *next)) return false;
    std::rotate(from, next, next + 1);
    return true;
}

bool WordRunner::advance(int r, const Words& words, const FillRule* rule)
{
    Rank& rank = m_ranks[static_cast<std::size_t>(r)];
    const Word& word = rule ? m_rest[static_cast<std::size_t>(r)] : words[static_cast<std::size_t>(r)];
    bool moved = false;
    while (rank.head < word.size() && !rank.blocked) {
        if (!fits(r, word[rank.head])) {
            if (!rule || !makeRoom(r)) {
                rank.blocked = true;
                break;
            }
            moved = true;
            continue;
        }
        const Letter letter = word[rank.head];
        const Nanos ready = arrival(r, letter);
        if (ready < 0) break;
        while (rule && hasPending(rank) && rank.clock < ready) {
            const Letter filler = nextPending(rank);
            const Nanos length = m_pipeline.time(PassKind::WeightGrad, m_pipeline.stageOf(r, chunkOf(filler)));
            const Nanos wait = ready - rank.clock;
            if (length > wait) {
                if (static_cast<double>(wait) < rule->partial * static_cast<double>(length)) break;
                if (rule->balance) {
                    Nanos worst = 0;
                    for (const Rank& other : m_ranks) worst = std::max(worst, other.idle);
                    if (wait < worst - rank.idle) break;
                }
            }
            perform(r, filler, rank.clock);
            moved = true;
        }
        perform(r, letter, std::max(rank.clock, ready));
        ++rank.head;
        moved = true;
    }
    if (rule && rank.head == word.size())
        while (hasPending(rank)) perform(r, nextPending(rank), rank.clock);
    return moved;
}

const Timing& WordRunner::finish(const Words& words)
{
    m_timing.feasible = true;
    m_timing.objective = m_timing.makespan = m_timing.span = 0;
    m_timing.end.clear();
    m_timing.peak.clear();
    for (std::size_t r = 0; r < m_ranks.size(); ++r) {
        const Rank& rank = m_ranks[r];
        if (rank.head < words[r].size()) m_timing.feasible = false;
        m_timing.end.push_back(rank.clock);
        m_timing.peak.push_back(rank.peak);
        m_timing.makespan = std::max(m_timing.makespan, rank.clock);
        m_timing.span = std::max(m_timing.span, rank.clock - std::max<Nanos>(rank.first, 0));
        m_timing.objective = std::max(m_timing.objective, rank.clock - m_pipeline.origin[r]);
    }
    return m_timing;
}

void WordRunner::criticalPath(std::vector<Place>& out) const
{
    out.clear();
    int r = 0;
    for (int other = 1; other < m_pipeline.ranks; ++other)
        if (m_timing.end[static_cast<std::size_t>(other)] - m_pipeline.origin[static_cast<std::size_t>(other)] >
            m_timing.end[static_cast<std::size_t>(r)] - m_pipeline.origin[static_cast<std::size_t>(r)])
            r = other;
    // By rank: how many letters other than W are before each.
    std::vector<std::vector<int>> core(m_out.size());
    std::vector<std::vector<int>> own(m_out.size()); // which of its kind and chunk each is, gradients counted together
    for (std::size_t rank = 0; rank < m_out.size(); ++rank) {
        int count = 0;
        int seen[4] = {};
        for (Letter letter : m_out[rank]) {
            core[rank].push_back(count);
            const PassKind kind = kindOf(letter);
            own[rank].push_back(
                kind == PassKind::WeightGrad ? 0 : seen[(kind == PassKind::Forward ? 0 : 2) + chunkOf(letter)]++);
            if (kind != PassKind::WeightGrad) ++count;
        }
    }
    int at = static_cast<int>(m_out[static_cast<std::size_t>(r)].size()) - 1;
    while (at >= 0) {
        const auto rank = static_cast<std::size_t>(r);
        const auto index = static_cast<std::size_t>(at);
        const Letter letter = m_out[rank][index];
        const PassKind kind = kindOf(letter);
        if (kind != PassKind::WeightGrad) out.push_back({r, core[rank][index]});
        const int stage = m_pipeline.stageOf(r, chunkOf(letter));
        const Nanos free = at == 0 ? 0
                                   : m_starts[rank][index - 1] +
                                         m_pipeline.time(kindOf(m_out[rank][index - 1]),
                                                         m_pipeline.stageOf(r, chunkOf(m_out[rank][index - 1])));
        if (at > 0 && m_starts[rank][index] <= free) {
            --at;
            continue;
        }
        const int before = kind == PassKind::Forward ? stage - 1 : stage + 1;
        if (kind == PassKind::WeightGrad || before < 0 || before >= m_pipeline.stages()) return;
        r = m_pipeline.rankOf(before);
        at = m_at[kind == PassKind::Forward ? 0 : 1]
                 [static_cast<std::size_t>(before) * static_cast<std::size_t>(m_pipeline.microbatches) +
                  static_cast<std::size_t>(own[rank][index])];
    }
}

const Timing& WordRunner::time(const Words& words)
{
    reset(words);
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < m_pipeline.ranks; ++r) moved = advance(r, words, nullptr) || moved;
        for (int r = m_pipeline.ranks - 2; r >= 0; --r) moved = advance(r, words, nullptr) || moved;
    }
    return finish(words);
}

const Timing& WordRunner::fill(const Words& words, const FillRule& rule)
{
    reset(words);
    m_rest = words;
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < m_pipeline.ranks; ++r) moved = advance(r, m_rest, &rule) || moved;
        for (int r = m_pipeline.ranks - 2; r >= 0; --r) moved = advance(r, m_rest, &rule) || moved;
    }
    return finish(m_rest);
}

} // namespace stagewright::planning
