#include "schedules/plan/bound.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>

namespace stagewright::planning {

namespace {

constexpr Nanos longAgo = -1;
constexpr Nanos never = INT64_MAX / 4;
constexpr PassKind passKinds[] = {PassKind::Forward, PassKind::InputGrad, PassKind::WeightGrad};

// Passes of chunk c that may be unfreed at once, at most m.
int roomFor(const Pipeline& pipeline, int rank, Bytes each)
{
    const Bytes cap = pipeline.cap[static_cast<std::size_t>(rank)];
    if (each <= 0 || cap / each >= pipeline.microbatches) return pipeline.microbatches;
    return static_cast<int>(cap / each);
}

// No op of the rank but F's can run before `until`: the most work that the cap lets them do from the head on.
Nanos forwardWork(const Pipeline& pipeline, int rank, Nanos until)
{
    const Nanos open = std::max<Nanos>(until - pipeline.head(rank), 0);
    Nanos most = 0;
    if (pipeline.chunks == 1) {
        most = roomFor(pipeline, rank, pipeline.change(PassKind::Forward, rank)) * pipeline.time(PassKind::Forward, rank);
    } else { // as if every F had the best ratio of time to memory
        const int other = pipeline.stageOf(rank, 1);
        const Bytes small = std::min(pipeline.change(PassKind::Forward, rank), pipeline.change(PassKind::Forward, other));
        const Nanos longest = std::max(pipeline.time(PassKind::Forward, rank), pipeline.time(PassKind::Forward, other));
        const Bytes cap = pipeline.cap[static_cast<std::size_t>(rank)];
        const Nanos count = small <= 0 || cap / small >= 2 * pipeline.microbatches ? 2 * pipeline.microbatches : cap / small;
        most = count * longest;
    }
    return std::min(open, most);
}

} // namespace

Nanos gridOf(const Pipeline& pipeline)
{
    Nanos grid = 0;
    auto add = [&](const std::vector<Nanos>& values) {
        for (Nanos value : values)
            grid = std::gcd(grid, value);
    };
    for (const auto& durations : pipeline.duration)
        add(durations);
    add(pipeline.fromBelow);
    add(pipeline.fromAbove);
    add(pipeline.origin);
    return std::max<Nanos>(grid, 1);
}

Bound windowBound(const Pipeline& pipeline)
{
    Bound best;
    auto offer = [&](Nanos value, const char* what, int rank) {
        if (value > best.value) best = {value, fmt::format("{} of rank {}", what, rank)};
    };
    const int m = pipeline.microbatches;
    for (int r = 0; r < pipeline.ranks; ++r) {
        const Nanos origin = pipeline.origin[static_cast<std::size_t>(r)];
        const Nanos work = pipeline.work(r);
        const Nanos head = pipeline.head(r);
        offer(head + work - origin, "work", r);
        // The rank's first I is that of its deepest stage.
        const int deepest = pipeline.stageOf(r, pipeline.chunks - 1);
        const Nanos turn = pipeline.turn(deepest);
        const Nanos before = forwardWork(pipeline, r, turn);
        offer(turn + work - before - origin, "window", r);
        // Only W's follow the rank's last I, of stage r: what they can't take lies before it, and a chain to stage 0 follows.
        Nanos after = 0;
        for (int c = 0; c < pipeline.chunks; ++c) {
            const int stage = pipeline.stageOf(r, c);
            after += roomFor(pipeline, r, -pipeline.change(PassKind::WeightGrad, stage)) * pipeline.time(PassKind::WeightGrad, stage);
        }
        Nanos chain = 0;
        for (int s = r; s >= 0; --s) {
            if (s < r) chain += pipeline.fromAbove[static_cast<std::size_t>(s)] + pipeline.time(PassKind::InputGrad, s);
            const Nanos end = turn + work - before - after + chain + pipeline.time(PassKind::WeightGrad, s);
            offer(end - pipeline.origin[static_cast<std::size_t>(pipeline.rankOf(s))], "window", r);
        }
        // Round trip of stage s: F there, down, up, and back to the I there, then W if it holds a part.
        for (int c = 0; c < pipeline.chunks; ++c) {
            const int s = pipeline.stageOf(r, c);
            const bool rest = pipeline.change(PassKind::WeightGrad, s) < 0;
            const Bytes each = pipeline.change(PassKind::Forward, s);
            if (!rest || -pipeline.change(PassKind::InputGrad, s) > 0) continue; // partly freed at I: other counts
            const Nanos trip = pipeline.turn(s) - pipeline.head(s) + pipeline.time(PassKind::InputGrad, s) + pipeline.time(PassKind::WeightGrad, s);
            const int room = std::max(1, roomFor(pipeline, r, each));
            const int rounds = (m - 1) / room;
            const Nanos single = pipeline.duration[0][static_cast<std::size_t>(s)] + pipeline.duration[1][static_cast<std::size_t>(s)] +
                                 pipeline.duration[2][static_cast<std::size_t>(s)];
            const int left = m - rounds * room; // still to be done from the last round's start on, at least 1
            const Nanos last = trip + (left - 1) * (single - std::min(pipeline.time(PassKind::Forward, s), single));
            offer(pipeline.head(s) + rounds * trip + std::max(trip, last) - origin, "round trip", r);
        }
    }
    return best;
}

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

void RankRelaxation::spreadHeads()
{
    const int m = m_pipeline.microbatches;
    auto raise = [](Nanos& value, Nanos least) { value = std::max(value, least); };
    for (int s = 0; s < m_pipeline.stages(); ++s)
        for (int j = 0; j < m; ++j) {
            Nanos& own = m_head[0][cell(s, j)];
            if (s > 0) raise(own, m_head[0][cell(s - 1, j)] + m_pipeline.time(PassKind::Forward, s - 1) + m_pipeline.fromBelow[static_cast<std::size_t>(s)]);
            if (j > 0) raise(own, m_head[0][cell(s, j - 1)] + m_pipeline.time(PassKind::Forward, s));
        }
    for (int s = m_pipeline.stages() - 1; s >= 0; --s)
        for (int j = 0; j < m; ++j) {
            Nanos& own = m_head[1][cell(s, j)];
            raise(own, m_head[0][cell(s, j)] + m_pipeline.time(PassKind::Forward, s));
            if (s + 1 < m_pipeline.stages())
                raise(own, m_head[1][cell(s + 1, j)] + m_pipeline.time(PassKind::InputGrad, s + 1) + m_pipeline.fromAbove[static_cast<std::size_t>(s)]);
            if (j > 0) raise(own, m_head[1][cell(s, j - 1)] + m_pipeline.time(PassKind::InputGrad, s));
            Nanos& weight = m_head[2][cell(s, j)];
            raise(weight, own + m_pipeline.time(PassKind::InputGrad, s));
            if (j > 0) raise(weight, m_head[2][cell(s, j - 1)] + m_pipeline.time(PassKind::WeightGrad, s));
        }
}

void RankRelaxation::spreadDues()
{
    const int m = m_pipeline.microbatches;
    auto lower = [](Nanos& value, Nanos most) { value = std::min(value, most); };
    for (int s = 0; s < m_pipeline.stages(); ++s)
        for (int j = m - 1; j >= 0; --j) {
            Nanos& weight = m_due[2][cell(s, j)];
            if (j + 1 < m) lower(weight, m_due[2][cell(s, j + 1)] - m_pipeline.time(PassKind::WeightGrad, s));
            Nanos& own = m_due[1][cell(s, j)];
            lower(own, weight - m_pipeline.time(PassKind::WeightGrad, s));
            if (s > 0)
                lower(own, m_due[1][cell(s - 1, j)] - m_pipeline.time(PassKind::InputGrad, s - 1) - m_pipeline.fromAbove[static_cast<std::size_t>(s) - 1]);
            if (j + 1 < m) lower(own, m_due[1][cell(s, j + 1)] - m_pipeline.time(PassKind::InputGrad, s));
        }
    for (int s = m_pipeline.stages() - 1; s >= 0; --s)
        for (int j = m - 1; j >= 0; --j) {
            Nanos& own = m_due[0][cell(s, j)];
            lower(own, m_due[1][cell(s, j)] - m_pipeline.time(PassKind::InputGrad, s));
            if (s + 1 < m_pipeline.stages())
                lower(own, m_due[0][cell(s + 1, j)] - m_pipeline.time(PassKind::Forward, s + 1) - m_pipeline.fromBelow[static_cast<std::size_t>(s) + 1]);
            if (j + 1 < m) lower(own, m_due[0][cell(s, j + 1)] - m_pipeline.time(PassKind::Forward, s));
        }
}

bool RankRelaxation::tighten(int rank, bool& moved)
{
    RankStates& states = m_ranks[static_cast<std::size_t>(rank)];
    const std::size_t count = states.earliest.size();
    Nanos length[letterCount] = {};
    std::size_t base[letterCount] = {};
    for (std::size_t l = 0; l < letterCount; ++l) {
        const int c = chunkOf(static_cast<Letter>(l));
        if (c >= m_pipeline.chunks) continue;
        const int stage = m_pipeline.stageOf(rank, c);
        length[l] = m_pipeline.time(kindOf(static_cast<Letter>(l)), stage);
        base[l] = cell(stage, 0);
    }
    std::fill(states.earliest.begin(), states.earliest.end(), never);
    std::fill(states.latest.begin(), states.latest.end(), longAgo);
    states.earliest[0] = 0;
    for (std::size_t at = 0; at < count; ++at) {
        if (states.earliest[at] == never) continue;
        for (std::size_t l = 0; l < letterCount; ++l) {
            const int to = states.next[at * letterCount + l];
            if (to < 0) continue;
            const std::size_t pass = base[l] + states.ordinal[at * letterCount + l];
            const Nanos end = std::max(states.earliest[at], m_head[l / 2][pass]) + length[l];
            if (end <= m_due[l / 2][pass]) states.earliest[static_cast<std::size_t>(to)] = std::min(states.earliest[static_cast<std::size_t>(to)], end);
        }
    }
    if (states.earliest[count - 1] == never) return false;
    states.latest[count - 1] = never;
    for (std::size_t at = count - 1; at-- > 0;)
        for (std::size_t l = 0; l < letterCount; ++l) {
            const int to = states.next[at * letterCount + l];
            if (to < 0 || states.latest[static_cast<std::size_t>(to)] < 0) continue;
            const std::size_t pass = base[l] + states.ordinal[at * letterCount + l];
            const Nanos start = std::min(states.latest[static_cast<std::size_t>(to)], m_due[l / 2][pass]) - length[l];
            if (start >= m_head[l / 2][pass]) states.latest[at] = std::max(states.latest[at], start);
        }
    if (states.latest[0] < 0) return false;
    // What a pass can do on some path that is in time.
    std::vector<Nanos> first[letterCount];
    std::vector<Nanos> final[letterCount];
    const auto m = static_cast<std::size_t>(m_pipeline.microbatches);
    for (std::size_t l = 0; l < letterCount; ++l) {
        first[l].assign(m, never);
        final[l].assign(m, longAgo);
    }
    for (std::size_t at = 0; at < count; ++at) {
        if (states.earliest[at] > states.latest[at]) continue;
        for (std::size_t l = 0; l < letterCount; ++l) {
            const int to = states.next[at * letterCount + l];
            if (to < 0) continue;
            const std::size_t j = states.ordinal[at * letterCount + l];
            const Nanos start = std::max(states.earliest[at], m_head[l / 2][base[l] + j]);
            const Nanos end = std::min(states.latest[static_cast<std::size_t>(to)], m_due[l / 2][base[l] + j]);
            if (start + length[l] > end) continue;
            first[l][j] = std::min(first[l][j], start);
            final[l][j] = std::max(final[l][j], end);
        }
    }
    for (std::size_t l = 0; l < letterCount; ++l) {
        if (chunkOf(static_cast<Letter>(l)) >= m_pipeline.chunks) continue;
        for (std::size_t j = 0; j < m; ++j) {
            Nanos& head = m_head[l / 2][base[l] + j];
            Nanos& due = m_due[l / 2][base[l] + j];
            if (first[l][j] > head) {
                head = first[l][j];
                moved = true;
            }
            if (final[l][j] < due) {
                due = final[l][j];
                moved = true;
            }
        }
    }
    return true;
}

bool RankRelaxation::refutes(Nanos target, const std::function<bool()>& stop)
{
    const std::size_t cells = static_cast<std::size_t>(m_pipeline.stages()) * static_cast<std::size_t>(m_pipeline.microbatches);
    for (PassKind kind : passKinds) {
        m_head[static_cast<std::size_t>(kind)].assign(cells, 0);
        auto& due = m_due[static_cast<std::size_t>(kind)];
        due.resize(cells);
        for (int s = 0; s < m_pipeline.stages(); ++s)
            for (int j = 0; j < m_pipeline.microbatches; ++j)
                due[cell(s, j)] = target + m_pipeline.origin[static_cast<std::size_t>(m_pipeline.rankOf(s))];
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < m_pipeline.ranks; ++r) {
            if (stop && stop()) return false;
            spreadHeads();
            spreadDues();
            if (!tighten(r, moved)) return true;
        }
    }
    return false;
}

Bound provenBound(const Pipeline& pipeline, RankRelaxation& relaxation, Nanos best, const std::function<bool()>& stop)
{
    Bound bound = windowBound(pipeline);
    const Nanos grid = gridOf(pipeline);
    bound.value = (bound.value + grid - 1) / grid * grid; // ends lie on the grid, and so do origins
    if (!relaxation.usable() || bound.value >= best) return bound;
    Nanos low = bound.value; // not yet refuted below
    Nanos high = best;       // reached
    while (low < high) {
        if (stop && stop()) break;
        const Nanos middle = low + (high - low) / 2 / grid * grid;
        const bool refuted = relaxation.refutes(middle, stop);
        if (stop && stop()) break;
        if (refuted) {
            low = middle + grid;
            bound = {low, "relaxation of single ranks"};
        } else {
            high = middle;
        }
    }
    return bound;
}

} // namespace stagewright::planning
