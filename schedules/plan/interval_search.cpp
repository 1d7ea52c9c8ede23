#include "schedules/plan/interval_search.h"

#include <algorithm>

#include "schedules/plan/branch.h"

namespace stagewright::planning {

namespace {

constexpr std::int64_t workOfInterval = 150'000;

} // namespace

IntervalSearch::IntervalSearch(const Pipeline& pipeline, RankRelaxation& relaxation, std::uint64_t seed)
    : m_pipeline(pipeline), m_relaxation(relaxation), m_random(seed)
{
    double unit = 0; // a microbatch's work on a rank
    for (int r = 0; r < pipeline.ranks; ++r)
        unit += static_cast<double>(pipeline.work(r)) / pipeline.microbatches / pipeline.ranks;
    m_length = 3 * unit;
}

// False: the order has no path through the states, or can't run.
bool IntervalSearch::follow(const Found& order)
{
    WordRunner runner(m_pipeline);
    if (!runner.time(order.words).feasible) return false;
    m_path.assign(order.words.size(), {});
    m_passes.clear();
    for (int r = 0; r < m_pipeline.ranks; ++r) {
        const auto rank = static_cast<std::size_t>(r);
        std::vector<int>& path = m_path[rank];
        path.push_back(0);
        for (std::size_t at = 0; at < order.words[rank].size(); ++at) {
            const Letter letter = order.words[rank][at];
            const PassKind kind = kindOf(letter);
            const std::size_t event = kind == PassKind::Forward ? forwardEvent : kind == PassKind::WeightGrad ? releaseEvent : gradientEvent;
            const Nanos start = runner.starts()[rank][at];
            const Nanos end = start + m_pipeline.time(kind, m_pipeline.stageOf(r, chunkOf(letter)));
            m_passes.push_back({start, end, r, letter, static_cast<int>(at), m_relaxation.done(r, path.back(), 2 * static_cast<int>(event) + chunkOf(letter))});
            path.push_back(m_relaxation.next(r, path.back(), letter));
            if (path.back() < 0) return false;
        }
    }
    // A pass of no length starts with the one after it: places keep a rank's order.
    std::stable_sort(m_passes.begin(), m_passes.end(), [](const Pass& a, const Pass& b) { return a.start != b.start ? a.start < b.start : a.end < b.end; });
    return true;
}

// By place in m_passes: when each pass must end for the target if the order stays as it is.
std::vector<Nanos> IntervalSearch::latestEnds(Nanos target) const
{
    std::vector<Nanos> out(m_passes.size());
    std::vector<Nanos> free(static_cast<std::size_t>(m_pipeline.ranks)); // by rank: latest start of the pass after
    for (std::size_t r = 0; r < free.size(); ++r)
        free[r] = target + m_pipeline.origin[r];
    const auto m = static_cast<std::size_t>(m_pipeline.microbatches);
    std::vector<Nanos> starts[2]; // latest, of forwards and gradients, by stage and microbatch
    for (auto& table : starts)
        table.assign(static_cast<std::size_t>(m_pipeline.stages()) * m, INT64_MAX / 4);
    for (std::size_t at = m_passes.size(); at-- > 0;) {
        const Pass& pass = m_passes[at];
        const int stage = m_pipeline.stageOf(pass.rank, chunkOf(pass.letter));
        const PassKind kind = kindOf(pass.letter);
        Nanos end = free[static_cast<std::size_t>(pass.rank)];
        const std::size_t cell = static_cast<std::size_t>(stage) * m + static_cast<std::size_t>(pass.microbatch);
        if (kind == PassKind::Forward) {
            end = std::min(end, starts[1][cell]);
            if (stage + 1 < m_pipeline.stages()) end = std::min(end, starts[0][cell + m] - m_pipeline.fromBelow[static_cast<std::size_t>(stage) + 1]);
        } else if (givesGradient(kind) && stage > 0) {
            end = std::min(end, starts[1][cell - m] - m_pipeline.fromAbove[static_cast<std::size_t>(stage) - 1]);
        }
        out[at] = end;
        const Nanos start = end - (pass.end - pass.start);
        free[static_cast<std::size_t>(pass.rank)] = start;
        if (kind != PassKind::WeightGrad) starts[kind == PassKind::Forward ? 0 : 1][cell] = start;
    }
    return out;
}

// All states between the order's own at `from` and at `to`. Passes that start before start as they do, those that start after end in
// time for the target.
Windows IntervalSearch::windowsWithin(Nanos from, Nanos to, Nanos target) const
{
    std::vector<std::vector<int>> alive(static_cast<std::size_t>(m_pipeline.ranks));
    std::vector<std::size_t> first(alive.size());
    std::vector<std::size_t> last(alive.size());
    for (const Pass& pass : m_passes) {
        const auto rank = static_cast<std::size_t>(pass.rank);
        if (pass.start < from) first[rank] = static_cast<std::size_t>(pass.place) + 1;
        if (pass.start <= to) last[rank] = static_cast<std::size_t>(pass.place) + 1;
    }
    for (int r = 0; r < m_pipeline.ranks; ++r) {
        const auto rank = static_cast<std::size_t>(r);
        const std::vector<int>& path = m_path[rank];
        last[rank] = std::max(last[rank], first[rank]);
        std::vector<int>& states = alive[rank];
        states.push_back(path[first[rank]]);
        const int low = path[first[rank]];
        const int high = path[last[rank]];
        for (int state = low + 1; state < high; ++state) {
            bool between = true;
            for (int e = 0; e < eventCount && between; ++e) {
                const int done = m_relaxation.done(r, state, e);
                between = done >= m_relaxation.done(r, low, e) && done <= m_relaxation.done(r, high, e);
            }
            if (between) states.push_back(state);
        }
        if (high != low) states.push_back(high);
    }
    Windows out = m_relaxation.windowsFor(target, std::move(alive));
    const std::vector<Nanos> ends = latestEnds(target);
    for (std::size_t at = 0; at < m_passes.size(); ++at) {
        const Pass& pass = m_passes[at];
        const PassKind kind = kindOf(pass.letter);
        const auto rank = static_cast<std::size_t>(pass.rank);
        if (pass.start < from) out.begin[rank] = std::max(out.begin[rank], pass.end);
        if (pass.start > to) out.end[rank] = std::min(out.end[rank], ends[at] - (pass.end - pass.start));
        if (kind == PassKind::WeightGrad) continue;
        const std::size_t cell = m_relaxation.cell(m_pipeline.stageOf(pass.rank, chunkOf(pass.letter)), pass.microbatch);
        const std::size_t event = kind == PassKind::Forward ? forwardEvent : gradientEvent;
        if (pass.start < from) {
            out.head[event][cell] = pass.start;
            if (event == gradientEvent) out.soon[cell] = pass.end;
        } else if (pass.start > to) {
            out.due[event][cell] = ends[at];
            if (event == gradientEvent) out.late[cell] = ends[at] - (pass.end - pass.start);
        }
    }
    return out;
}

Found IntervalSearch::improve(const Found& start, const IntervalLimits& limits)
{
    Found best = start;
    if (!best.feasible() || !m_relaxation.usable() || !follow(best)) return best;
    WordRunner runner(m_pipeline);
    const std::int64_t end = m_work + limits.work;
    while (m_work < end && best.objective > limits.enough && !(limits.stop && limits.stop())) {
        const auto from = static_cast<Nanos>(m_random.unit() * (static_cast<double>(best.makespan) + m_length) - m_length);
        const Nanos to = from + static_cast<Nanos>(m_length);
        const Nanos step = std::max(best.objective / 2000 / limits.grid, Nanos{1}) * limits.grid;
        const Nanos target = std::max(best.objective - step, limits.enough);
        const Windows windows = windowsWithin(from, to, target);
        const Branching result = branchWithin(m_pipeline, m_relaxation, windows, workOfInterval, limits.stop, static_cast<std::uint64_t>(m_tries));
        ++m_tries;
        m_nodes += result.nodes;
        m_work += result.work;
        if (result.outcome == Branching::Outcome::Open) m_length *= 0.93;
        if (result.outcome == Branching::Outcome::Refuted && result.work < workOfInterval / 4) m_length = std::min(m_length * 1.05, static_cast<double>(best.makespan));
        if (result.outcome != Branching::Outcome::Solved) continue;
        Words words = best.words;
        for (int r = 0; r < m_pipeline.ranks; ++r) {
            const auto rank = static_cast<std::size_t>(r);
            const auto place = [&](int state) { return std::lower_bound(m_path[rank].begin(), m_path[rank].end(), state) - m_path[rank].begin(); };
            Word word(best.words[rank].begin(), best.words[rank].begin() + place(windows.first[rank]));
            word.insert(word.end(), result.words[rank].begin(), result.words[rank].end());
            word.insert(word.end(), best.words[rank].begin() + place(windows.last[rank]), best.words[rank].end());
            words[rank] = std::move(word);
        }
        const Timing& timing = runner.time(words);
        if (!timing.feasible || timing.objective >= best.objective) continue;
        best = {std::move(words), timing.objective, timing.makespan};
        follow(best);
    }
    return best;
}

} // namespace stagewright::planning
