#include "schedules/plan/relaxation.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace stagewright::planning {

namespace {

constexpr Nanos longAgo = -1;
constexpr int mostMicrobatches = 1000; // six counts in a key of 64 bits

Bytes heldAt(const Pipeline& pipeline, int rank, const Counts& counts)
{
    Bytes held = 0;
    for (int c = 0; c < pipeline.chunks; ++c) {
        const int stage = pipeline.stageOf(rank, c);
        const auto at = static_cast<std::size_t>(c);
        held += counts[at] * pipeline.change(PassKind::Forward, stage) +
                counts[2 + at] * pipeline.change(PassKind::InputGrad, stage) +
                counts[4 + at] * pipeline.change(PassKind::WeightGrad, stage);
    }
    return held;
}

} // namespace

RankRelaxation::RankRelaxation(const Pipeline& pipeline, std::size_t mostStates, const std::function<bool()>& stop)
    : m_pipeline(pipeline)
{
    m_ranks.resize(static_cast<std::size_t>(pipeline.ranks));
    Counts all{};
    for (std::size_t e = 0; e < eventCount; ++e)
        if (static_cast<int>(e % 2) < pipeline.chunks)
            all[e] = static_cast<std::uint16_t>(std::min(pipeline.microbatches, mostMicrobatches + 1));
    std::size_t left = mostStates;
    for (int r = 0; r < pipeline.ranks && m_usable; ++r) {
        m_usable = number(r, {}, all, left, stop);
        if (m_usable) left -= m_ranks[static_cast<std::size_t>(r)].earliest.size();
    }
}

RankRelaxation::RankRelaxation(const Pipeline& pipeline, const std::vector<Counts>& from, const std::vector<Counts>& to,
                               std::size_t mostStates)
    : m_pipeline(pipeline)
{
    m_ranks.resize(static_cast<std::size_t>(pipeline.ranks));
    std::size_t left = mostStates;
    for (std::size_t r = 0; r < m_ranks.size() && m_usable; ++r) {
        m_usable = number(static_cast<int>(r), from[r], to[r], left, {});
        if (m_usable) left -= m_ranks[r].earliest.size();
    }
}

// Numbers the states that keep cap and order by rising number of events, so that every pass leads to a higher number.
bool RankRelaxation::number(int rank, const Counts& from, const Counts& to, std::size_t most,
                            const std::function<bool()>& stop)
{
    if (m_pipeline.microbatches > mostMicrobatches) return false;
    const int chunks = m_pipeline.chunks;
    const Bytes cap = m_pipeline.cap[static_cast<std::size_t>(rank)];
    RankStates& out = m_ranks[static_cast<std::size_t>(rank)];
    struct Layer // of states with as many events
    {
        std::vector<Counts> counts;
        std::vector<Bytes> held;
        std::unordered_map<std::uint64_t, int> known;
    };
    auto key = [](const Counts& c) {
        std::uint64_t k = 0;
        for (std::uint16_t count : c) k = k * 1024 + count;
        return k;
    };
    const int layers = std::accumulate(to.begin(), to.end(), 0) - std::accumulate(from.begin(), from.end(), 0);
    Layer here; // at its length, and the two after it
    Layer one;
    Layer two;
    here.counts.push_back(from);
    here.held.push_back(heldAt(m_pipeline, rank, from));
    std::size_t number = 0;
    std::vector<std::size_t> jumps; // entries of next that are still places in their layer: B's of the layer before
    for (int length = 0; length <= layers; ++length) {
        const std::size_t begin = number;
        const std::size_t end = begin + here.counts.size();
        if (end > most || (length == layers && here.counts.size() != 1) || (stop && stop())) return false;
        out.next.resize(end * letterCount, -1);
        out.ordinal.resize(end * eventCount);
        std::vector<std::size_t> fresh;
        for (std::size_t at = begin; at < end; ++at) {
            const Counts& now = here.counts[at - begin];
            for (std::size_t e = 0; e < eventCount; ++e) out.ordinal[at * eventCount + e] = now[e];
            for (int l = 0; l < letterCount; ++l) {
                const auto letter = static_cast<Letter>(l);
                const auto c = static_cast<std::size_t>(chunkOf(letter));
                if (chunkOf(letter) >= chunks) continue;
                const PassKind kind = kindOf(letter);
                const int stage = m_pipeline.stageOf(rank, chunkOf(letter));
                const int forwards = now[c];
                const int gradients = now[2 + c];
                const int released = now[4 + c];
                Counts then = now;
                if (kind == PassKind::Forward) {
                    if (forwards >= to[c] || (c == 1 && forwards >= now[0])) continue;
                    ++then[c];
                } else if (givesGradient(kind)) {
                    if (gradients >= std::min<int>(forwards, to[2 + c]) ||
                        (c == 0 && chunks == 2 && gradients >= now[3]))
                        continue;
                    if (kind == PassKind::Backward && (!m_pipeline.usesFull(stage) || released >= to[4 + c])) continue;
                    ++then[2 + c];
                    if (kind == PassKind::Backward) ++then[4 + c];
                } else {
                    if (released >= std::min<int>(gradients, to[4 + c])) continue;
                    ++then[4 + c];
                }
                const Bytes after = here.held[at - begin] + m_pipeline.change(kind, stage);
                if (after > cap) continue;
                Layer& layer = kind == PassKind::Backward ? two : one;
                const auto [found, isNew] = layer.known.try_emplace(key(then), static_cast<int>(layer.counts.size()));
                if (isNew) {
                    layer.counts.push_back(then);
                    layer.held.push_back(after);
                }
                const std::size_t entry = at * letterCount + static_cast<std::size_t>(l);
                out.next[entry] = found->second + (kind == PassKind::Backward ? 0 : static_cast<int>(end));
                if (kind == PassKind::Backward) fresh.push_back(entry);
            }
        }
        for (std::size_t entry : jumps) out.next[entry] += static_cast<int>(end);
        jumps = std::move(fresh);
        number = end;
        here = std::move(one);
        one = std::move(two);
        two = Layer{};
    }
    out.last = static_cast<int>(number) - 1;
    out.earliest.resize(number);
    out.latest.assign(number, longAgo);
    return true;
}

std::size_t RankRelaxation::stateCount() const
{
    std::size_t sum = 0;
    for (const RankStates& states : m_ranks) sum += states.earliest.size();
    return sum;
}

int RankRelaxation::doneInAll(int rank, int state) const
{
    const auto& ordinal = m_ranks[static_cast<std::size_t>(rank)].ordinal;
    const auto begin = ordinal.begin() + static_cast<std::ptrdiff_t>(state) * eventCount;
    return std::accumulate(begin, begin + eventCount, 0);
}

Nanos RankRelaxation::least(std::size_t event, int stage) const
{
    if (event == forwardEvent) return m_pipeline.time(PassKind::Forward, stage);
    if (event == gradientEvent) return m_pipeline.gradientTime(stage);
    const Nanos weight = m_pipeline.time(PassKind::WeightGrad, stage);
    return m_pipeline.usesFull(stage) ? std::min(weight, m_pipeline.time(PassKind::Backward, stage)) : weight;
}

Nanos RankRelaxation::gradientTime(const Windows& windows, int stage, int microbatch) const
{
    switch (windows.ways[cell(stage, microbatch)]) {
    case Windows::apart: return m_pipeline.time(PassKind::InputGrad, stage);
    case Windows::atOnce: return m_pipeline.time(PassKind::Backward, stage);
    default: return m_pipeline.gradientTime(stage);
    }
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
            if (s > 0)
                raise(own, head[0][cell(s - 1, j)] + m_pipeline.time(PassKind::Forward, s - 1) +
                               m_pipeline.fromBelow[static_cast<std::size_t>(s)]);
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
        const bool full = m_pipeline.usesFull(s);
        for (int j = 0; j < m; ++j) {
            Nanos& own = head[1][cell(s, j)];
            raise(own, head[0][cell(s, j)] + m_pipeline.time(PassKind::Forward, s));
            if (s + 1 < m_pipeline.stages())
                raise(own, windows.soon[cell(s + 1, j)] + m_pipeline.fromAbove[static_cast<std::size_t>(s)]);
            if (j > 0) raise(own, windows.soon[cell(s, j - 1)]);
            raise(windows.soon[cell(s, j)], own + gradientTime(windows, s, j));
            // Release j is a W after gradient j, or a B that makes gradient j or a later one.
            Nanos& release = head[2][cell(s, j)];
            raise(release, full ? own : windows.soon[cell(s, j)]);
            if (j > 0) raise(release, head[2][cell(s, j - 1)] + least(releaseEvent, s));
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
        const bool full = m_pipeline.usesFull(s);
        for (int j = m - 1; j >= 0; --j) {
            Nanos& release = due[2][cell(s, j)];
            if (j + 1 < m) lower(release, due[2][cell(s, j + 1)] - least(releaseEvent, s));
            Nanos& own = due[1][cell(s, j)];
            lower(own, full ? release : release - m_pipeline.time(PassKind::WeightGrad, s));
            if (s > 0) lower(own, windows.late[cell(s - 1, j)] - m_pipeline.fromAbove[static_cast<std::size_t>(s) - 1]);
            if (j + 1 < m) lower(own, windows.late[cell(s, j + 1)]);
            lower(windows.late[cell(s, j)], own - gradientTime(windows, s, j));
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
            lower(own, windows.late[cell(s, j)]);
            if (s + 1 < m_pipeline.stages())
                lower(own, due[0][cell(s + 1, j)] - m_pipeline.time(PassKind::Forward, s + 1) -
                               m_pipeline.fromBelow[static_cast<std::size_t>(s) + 1]);
            if (j + 1 < m) lower(own, due[0][cell(s, j + 1)] - m_pipeline.time(PassKind::Forward, s));
        }
        if (moved) windows.dirty[static_cast<std::size_t>(m_pipeline.rankOf(s))] = 1;
    }
}

// One pass of the rank at a state: how long, when it may start, when it must end.
struct RankRelaxation::Step {
    std::size_t letter = 0;
    std::size_t events[2] = {};  // by state's place; the same twice where there is one
    std::size_t base = 0;        // first cell of its stage
    const Nanos* head = nullptr; // of the first event, by its count
    const Nanos* due = nullptr;
    Nanos length = 0;
    std::uint8_t way = 0; // of Windows, 0: any
};

std::vector<RankRelaxation::Step> RankRelaxation::stepsOf(int rank) const
{
    std::vector<Step> out;
    for (std::size_t l = 0; l < letterCount; ++l) {
        const auto letter = static_cast<Letter>(l);
        const auto c = static_cast<std::size_t>(chunkOf(letter));
        if (chunkOf(letter) >= m_pipeline.chunks) continue;
        const int stage = m_pipeline.stageOf(rank, chunkOf(letter));
        const PassKind kind = kindOf(letter);
        if (kind == PassKind::Backward && !m_pipeline.usesFull(stage)) continue;
        Step step;
        step.letter = l;
        step.base = cell(stage, 0);
        step.length = m_pipeline.time(kind, stage);
        const std::size_t event = kind == PassKind::Forward      ? forwardEvent
                                  : kind == PassKind::WeightGrad ? releaseEvent
                                                                 : gradientEvent;
        step.events[0] = 2 * event + c;
        step.events[1] = kind == PassKind::Backward ? 2 * releaseEvent + c : step.events[0];
        if (givesGradient(kind) && m_pipeline.usesFull(stage))
            step.way = kind == PassKind::Backward ? Windows::atOnce : Windows::apart;
        out.push_back(step);
    }
    return out;
}

bool RankRelaxation::solve(int rank, Windows& windows, bool& moved)
{
    RankStates& states = m_ranks[static_cast<std::size_t>(rank)];
    std::vector<int>& alive = windows.alive[static_cast<std::size_t>(rank)];
    const auto m = static_cast<std::size_t>(m_pipeline.microbatches);
    std::vector<Step> steps = stepsOf(rank);
    for (Step& step : steps) {
        step.head = &windows.head[step.events[0] / 2][step.base];
        step.due = &windows.due[step.events[0] / 2][step.base];
    }
    const std::vector<std::uint8_t>& stops = windows.stops[static_cast<std::size_t>(rank)];
    const int begin = windows.first[static_cast<std::size_t>(rank)];
    if (alive.empty() || alive.front() != begin || alive.back() != windows.last[static_cast<std::size_t>(rank)])
        return false;
    // Earliest start and latest end of a pass from a state; false: the way is closed.
    auto limits = [&](const Step& step, std::size_t at, Nanos& start, Nanos& end) {
        const std::size_t count = states.ordinal[at * eventCount + step.events[0]];
        start = step.head[count];
        end = step.due[count];
        if (step.way == 0) return true;
        if ((windows.ways[step.base + count] & step.way) == 0) return false;
        if (step.events[1] != step.events[0]) {
            if (stops[static_cast<std::size_t>(doneInAll(rank, static_cast<int>(at))) + 1]) return false;
            const std::size_t two = step.base + states.ordinal[at * eventCount + step.events[1]];
            start = std::max(start, windows.head[2][two]);
            end = std::min(end, windows.due[2][two]);
        }
        return true;
    };
    // States that were dropped have latest < 0 throughout this call and are never entered.
    for (int at : alive) {
        states.earliest[static_cast<std::size_t>(at)] = never;
        states.latest[static_cast<std::size_t>(at)] = 0;
    }
    m_looked += 2 * static_cast<std::int64_t>(alive.size());
    states.earliest[static_cast<std::size_t>(begin)] = windows.begin[static_cast<std::size_t>(rank)];
    Nanos soonest = 0;
    Nanos latestEnd = 0;
    for (int state : alive) {
        const auto at = static_cast<std::size_t>(state);
        const Nanos now = states.earliest[at];
        if (now == never) continue;
        for (const Step& step : steps) {
            const int to = states.next[at * letterCount + step.letter];
            if (to < 0 || states.latest[static_cast<std::size_t>(to)] < 0 || !limits(step, at, soonest, latestEnd))
                continue;
            const Nanos end = std::max(now, soonest) + step.length;
            if (end <= latestEnd)
                states.earliest[static_cast<std::size_t>(to)] =
                    std::min(states.earliest[static_cast<std::size_t>(to)], end);
        }
    }
    const auto last = static_cast<std::size_t>(alive.back());
    auto forget = [&] {
        for (int state : alive) states.latest[static_cast<std::size_t>(state)] = longAgo;
    };
    if (states.earliest[last] > windows.end[static_cast<std::size_t>(rank)]) {
        forget();
        return false;
    }
    // What an event can do on some path that is in time.
    struct Reach {
        Nanos start = never;
        Nanos soon = never;
        Nanos late = longAgo;
        Nanos end = longAgo;
        std::uint8_t ways = 0;
    };
    std::vector<Reach> reach(eventCount * m);
    forget();
    states.latest[last] = windows.end[static_cast<std::size_t>(rank)];
    for (std::size_t index = alive.size() - 1; index-- > 0;) {
        const auto at = static_cast<std::size_t>(alive[index]);
        if (states.earliest[at] == never) continue;
        for (const Step& step : steps) {
            const int to = states.next[at * letterCount + step.letter];
            if (to < 0 || states.latest[static_cast<std::size_t>(to)] < 0 || !limits(step, at, soonest, latestEnd))
                continue;
            const Nanos end = std::min(states.latest[static_cast<std::size_t>(to)], latestEnd);
            const Nanos start = end - step.length;
            if (start < soonest) continue;
            states.latest[at] = std::max(states.latest[at], start);
            soonest = std::max(states.earliest[at], soonest);
            if (soonest > start) continue;
            for (std::size_t e = 0; e < 2; ++e) {
                Reach& event = reach[step.events[e] * m + states.ordinal[at * eventCount + step.events[e]]];
                event.start = std::min(event.start, soonest);
                event.soon = std::min(event.soon, soonest + step.length);
                event.late = std::max(event.late, start);
                event.end = std::max(event.end, end);
                event.ways |= step.way;
                if (step.events[1] == step.events[0]) break;
            }
        }
        if (states.earliest[at] > states.latest[at]) states.latest[at] = longAgo; // on no path in time
    }
    if (states.latest[static_cast<std::size_t>(begin)] < 0) {
        forget();
        return false;
    }
    std::erase_if(
        alive, [&](int state) { return std::exchange(states.latest[static_cast<std::size_t>(state)], longAgo) < 0; });
    auto narrow = [&](Nanos& value, Nanos own, bool upwards) {
        if (upwards ? own <= value : own >= value) return;
        value = own;
        moved = true;
    };
    for (int c = 0; c < m_pipeline.chunks; ++c)
        for (std::size_t e = 0; e < 3; ++e) {
            const int stage = m_pipeline.stageOf(rank, c);
            const std::size_t place = 2 * e + static_cast<std::size_t>(c);
            const std::size_t beyond = states.ordinal[last * eventCount + place];
            for (std::size_t j = states.ordinal[static_cast<std::size_t>(begin) * eventCount + place]; j < beyond;
                 ++j) {
                const std::size_t at = cell(stage, 0) + j;
                const Reach& event = reach[place * m + j];
                narrow(windows.head[e][at], event.start, true);
                narrow(windows.due[e][at], event.end, false);
                if (e != gradientEvent) continue;
                narrow(windows.soon[at], event.soon, true);
                narrow(windows.late[at], event.late, false);
                if (m_pipeline.usesFull(stage)) windows.ways[at] &= event.ways;
            }
        }
    return true;
}

Windows RankRelaxation::windowsFor(Nanos target) const
{
    Windows out;
    const std::size_t cells =
        static_cast<std::size_t>(m_pipeline.stages()) * static_cast<std::size_t>(m_pipeline.microbatches);
    for (std::size_t k = 0; k < 3; ++k) {
        out.head[k].assign(cells, 0);
        out.due[k].resize(cells);
        for (int s = 0; s < m_pipeline.stages(); ++s)
            for (int j = 0; j < m_pipeline.microbatches; ++j)
                out.due[k][cell(s, j)] = target + m_pipeline.origin[static_cast<std::size_t>(m_pipeline.rankOf(s))];
    }
    out.soon.assign(cells, 0);
    out.late = out.due[1];
    out.ways.assign(cells, Windows::apart | Windows::atOnce);
    for (int s = 0; s < m_pipeline.stages(); ++s)
        for (int j = 0; j < m_pipeline.microbatches && !m_pipeline.usesFull(s); ++j)
            out.ways[cell(s, j)] = Windows::apart;
    for (const RankStates& states : m_ranks) {
        out.alive.emplace_back(states.earliest.size());
        std::iota(out.alive.back().begin(), out.alive.back().end(), 0);
        out.first.push_back(0);
        out.last.push_back(states.last);
    }
    out.begin.assign(m_ranks.size(), 0);
    out.end.assign(m_ranks.size(), never);
    out.stops.assign(
        m_ranks.size(),
        std::vector<std::uint8_t>(static_cast<std::size_t>(3 * m_pipeline.chunks * m_pipeline.microbatches) + 1));
    out.dirty.assign(m_ranks.size(), 1);
    lower(out, target);
    return out;
}

void RankRelaxation::lower(Windows& windows, Nanos target) const
{
    for (int s = 0; s < m_pipeline.stages(); ++s) {
        const Nanos end = target + m_pipeline.origin[static_cast<std::size_t>(m_pipeline.rankOf(s))];
        for (int j = 0; j < m_pipeline.microbatches; ++j)
            for (auto& due : windows.due) due[cell(s, j)] = std::min(due[cell(s, j)], end);
    }
    for (std::size_t k = 0; k < m_rest.size(); ++k)
        windows.due[forwardEvent][k] =
            std::min(windows.due[forwardEvent][k], target - m_rest[k] + m_pipeline.time(PassKind::Forward, 0));
    windows.dirty.assign(m_ranks.size(), 1);
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
        again = again ||
                std::any_of(windows.dirty.begin(), windows.dirty.end(), [](std::uint8_t dirty) { return dirty != 0; });
    }
    return true;
}

bool RankRelaxation::refutes(Nanos target, const std::function<bool()>& stop)
{
    Windows windows = windowsFor(target);
    return !propagate(windows, stop);
}

} // namespace stagewright::planning
