#include "schedules/plan/dispatch.h"

#include <algorithm>

namespace stagewright::planning {

namespace {

std::size_t eventOf(PassKind kind)
{
    if (kind == PassKind::Forward) return forwardEvent;
    return kind == PassKind::WeightGrad ? releaseEvent : gradientEvent;
}

} // namespace

Dispatcher::Dispatcher(const Pipeline& pipeline, const RankRelaxation& relaxation)
    : m_pipeline(pipeline), m_relaxation(relaxation), m_ranks(static_cast<std::size_t>(pipeline.ranks)),
      m_alive(static_cast<std::size_t>(pipeline.ranks)), m_words(static_cast<std::size_t>(pipeline.ranks))
{
    for (int r = 0; r < pipeline.ranks; ++r) m_alive[static_cast<std::size_t>(r)].resize(relaxation.stateCount(r));
}

Nanos Dispatcher::arrival(int stage, int microbatch, bool gradient) const
{
    auto at = [&](std::size_t table, int s) { return m_end[table][m_relaxation.cell(s, microbatch)]; };
    if (!gradient) {
        if (stage == 0) return 0;
        const Nanos before = at(0, stage - 1);
        return before == never ? never : before + m_pipeline.fromBelow[static_cast<std::size_t>(stage)];
    }
    const Nanos own = at(0, stage);
    if (own == never || stage + 1 == m_pipeline.stages()) return own;
    const Nanos after = at(1, stage + 1);
    return after == never ? never : std::max(own, after + m_pipeline.fromAbove[static_cast<std::size_t>(stage)]);
}

void Dispatcher::perform(int r, Letter letter, int to)
{
    Rank& rank = m_ranks[static_cast<std::size_t>(r)];
    const PassKind kind = kindOf(letter);
    const int stage = m_pipeline.stageOf(r, chunkOf(letter));
    const Nanos end = rank.clock + m_pipeline.time(kind, stage);
    if (kind != PassKind::WeightGrad) {
        const std::size_t event = eventOf(kind);
        const int microbatch = m_relaxation.done(r, rank.state, 2 * static_cast<int>(event) + chunkOf(letter));
        m_end[event][m_relaxation.cell(stage, microbatch)] = end;
        const int neighbour = kind == PassKind::Forward ? stage + 1 : stage - 1;
        if (neighbour >= 0 && neighbour < m_pipeline.stages()) {
            Rank& other = m_ranks[static_cast<std::size_t>(m_pipeline.rankOf(neighbour))];
            // it waits: look again
            if (&other != &rank && other.wake > other.clock) other.wake = std::max(other.clock, rank.clock);
        }
    }
    m_words[static_cast<std::size_t>(r)].push_back(letter);
    rank.state = to;
    rank.clock = rank.wake = end;
}

bool Dispatcher::decide(int r, const Windows& windows)
{
    const auto index = static_cast<std::size_t>(r);
    Rank& rank = m_ranks[index];
    rank.clock = std::max(rank.clock, rank.wake);
    if (rank.state == windows.last[index]) {
        rank.wake = never;
        return rank.clock <= windows.end[index];
    }
    // The next of each event must start in time, whatever comes before it.
    Nanos due[eventCount];
    Nanos first = never; // of them all, and of all others
    Nanos second = never;
    int firstEvent = -1;
    for (int e = 0; e < eventCount; ++e) {
        due[e] = never;
        if (e % 2 >= m_pipeline.chunks) continue;
        const int count = m_relaxation.done(r, rank.state, e);
        if (count >= m_relaxation.done(r, windows.last[index], e)) continue;
        const int stage = m_pipeline.stageOf(r, e % 2);
        const std::size_t cell = m_relaxation.cell(stage, count);
        const auto event = static_cast<std::size_t>(e / 2);
        due[e] =
            event == gradientEvent ? windows.late[cell] : windows.due[event][cell] - m_relaxation.least(event, stage);
        if (event == releaseEvent && m_pipeline.usesFull(stage)) due[e] = never; // a B may see to it
        if (due[e] < first) {
            second = first;
            first = due[e];
            firstEvent = e;
        } else {
            second = std::min(second, due[e]);
        }
    }
    int letter = -1;
    int to = -1;
    Nanos latest = never;
    Nanos next = never; // when a pass can start that can't now
    for (int l = 0; l < letterCount; ++l) {
        const auto candidate = static_cast<Letter>(l);
        if (chunkOf(candidate) >= m_pipeline.chunks) continue;
        const int then = m_relaxation.next(r, rank.state, candidate);
        if (then < 0 || m_alive[index][static_cast<std::size_t>(then)] != m_run) continue;
        const PassKind kind = kindOf(candidate);
        const int stage = m_pipeline.stageOf(r, chunkOf(candidate));
        const std::size_t event = eventOf(kind);
        const int place = 2 * static_cast<int>(event) + chunkOf(candidate);
        const int count = m_relaxation.done(r, rank.state, place);
        Nanos ready = windows.head[event][m_relaxation.cell(stage, count)];
        if (kind != PassKind::WeightGrad) ready = std::max(ready, arrival(stage, count, givesGradient(kind)));
        if (ready > rank.clock) {
            next = std::min(next, ready);
            continue;
        }
        const Nanos end = rank.clock + m_pipeline.time(kind, stage);
        const bool way = !givesGradient(kind) || !m_pipeline.usesFull(stage) ||
                         (windows.ways[m_relaxation.cell(stage, count)] &
                          (kind == PassKind::Backward ? Windows::atOnce : Windows::apart)) != 0;
        if (!way || end > windows.due[event][m_relaxation.cell(stage, count)]) continue;
        if (end > (place == firstEvent ? second : first)) continue; // another would come too late
        if (letter >= 0 && due[place] >= latest) continue;
        letter = l;
        to = then;
        latest = due[place];
    }
    if (letter >= 0) {
        perform(r, static_cast<Letter>(letter), to);
        return true;
    }
    rank.wake = next;
    return std::max(rank.clock, next == never ? 0 : next) <= first || next == never;
}

bool Dispatcher::run(const Windows& windows)
{
    ++m_run;
    const std::size_t cells = windows.head[0].size();
    for (auto& table : m_end) table.assign(cells, never);
    for (int r = 0; r < m_pipeline.ranks; ++r) {
        const auto index = static_cast<std::size_t>(r);
        for (int state : windows.alive[index]) m_alive[index][static_cast<std::size_t>(state)] = m_run;
        const int first = windows.first[index];
        m_ranks[index] = {windows.begin[index], windows.begin[index], first};
        m_words[index].clear();
        for (int c = 0; c < m_pipeline.chunks; ++c) {
            const int stage = m_pipeline.stageOf(r, c);
            const std::size_t base = m_relaxation.cell(stage, 0);
            const int forwards = m_relaxation.done(r, first, 2 * static_cast<int>(forwardEvent) + c);
            const int gradients = m_relaxation.done(r, first, 2 * static_cast<int>(gradientEvent) + c);
            for (int j = 0; j < forwards; ++j)
                m_end[0][base + static_cast<std::size_t>(j)] =
                    windows.head[forwardEvent][base + static_cast<std::size_t>(j)] +
                    m_pipeline.time(PassKind::Forward, stage);
            for (int j = 0; j < gradients; ++j)
                m_end[1][base + static_cast<std::size_t>(j)] = windows.soon[base + static_cast<std::size_t>(j)];
        }
    }
    for (;;) {
        std::size_t r = 0;
        for (std::size_t other = 1; other < m_ranks.size(); ++other)
            if (m_ranks[other].wake < m_ranks[r].wake) r = other;
        if (m_ranks[r].wake >= never) break;
        if (!decide(static_cast<int>(r), windows)) return false;
    }
    for (std::size_t r = 0; r < m_ranks.size(); ++r)
        if (m_ranks[r].state != windows.last[r]) return false;
    return true;
}

} // namespace stagewright::planning
