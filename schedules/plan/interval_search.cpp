#include "schedules/plan/interval_search.h"

#include <algorithm>

#include "schedules/plan/branch.h"

namespace stagewright::planning {

namespace {

constexpr std::int64_t workOfInterval = 150'000;
constexpr std::size_t mostStatesOfInterval = 60'000;
constexpr Nanos stepsOfObjective = 2000; // an order must be shorter by this part of the objective
constexpr double shorter = 0.93;         // intervals that take too much work
constexpr double longer = 1.05;          // and those soon done with

} // namespace

IntervalSearch::IntervalSearch(const Pipeline& pipeline, std::uint64_t seed) : m_pipeline(pipeline), m_random(seed)
{
    double unit = 0; // a microbatch's work on a rank
    for (int r = 0; r < pipeline.ranks; ++r)
        unit += static_cast<double>(pipeline.work(r)) / pipeline.microbatches / pipeline.ranks;
    m_length = 3 * unit;
}

// False: the order can't run.
bool IntervalSearch::follow(const Found& order)
{
    WordRunner runner(m_pipeline);
    if (!runner.time(order.words).feasible) return false;
    m_path.assign(order.words.size(), {});
    m_passes.clear();
    for (int r = 0; r < m_pipeline.ranks; ++r) {
        const auto rank = static_cast<std::size_t>(r);
        Counts done{};
        m_path[rank].push_back(done);
        for (std::size_t at = 0; at < order.words[rank].size(); ++at) {
            const Letter letter = order.words[rank][at];
            const PassKind kind = kindOf(letter);
            const auto chunk = static_cast<std::size_t>(chunkOf(letter));
            const std::size_t event = kind == PassKind::Forward      ? forwardEvent
                                      : kind == PassKind::WeightGrad ? releaseEvent
                                                                     : gradientEvent;
            const Nanos start = runner.starts()[rank][at];
            const Nanos end = start + m_pipeline.time(kind, m_pipeline.stageOf(r, chunkOf(letter)));
            m_passes.push_back({start, end, r, letter, static_cast<int>(at), done[2 * event + chunk]});
            ++done[2 * event + chunk];
            if (kind == PassKind::Backward) ++done[2 * releaseEvent + chunk];
            m_path[rank].push_back(done);
        }
    }
    // A pass of no length starts with the one after it: places keep a rank's order.
    std::stable_sort(m_passes.begin(), m_passes.end(), [](const Pass& a, const Pass& b) {
        return a.start != b.start ? a.start < b.start : a.end < b.end;
    });
    return true;
}

// By place in m_passes: when each pass must end for the target if the order stays as it is.
std::vector<Nanos> IntervalSearch::latestEnds(Nanos target) const
{
    std::vector<Nanos> out(m_passes.size());
    std::vector<Nanos> free(static_cast<std::size_t>(m_pipeline.ranks)); // by rank: latest start of the pass after
    for (std::size_t r = 0; r < free.size(); ++r) free[r] = target + m_pipeline.origin[r];
    const auto m = static_cast<std::size_t>(m_pipeline.microbatches);
    std::vector<Nanos> starts[2]; // latest, of forwards and gradients, by stage and microbatch
    for (auto& table : starts) table.assign(static_cast<std::size_t>(m_pipeline.stages()) * m, INT64_MAX / 4);
    for (std::size_t at = m_passes.size(); at-- > 0;) {
        const Pass& pass = m_passes[at];
        const int stage = m_pipeline.stageOf(pass.rank, chunkOf(pass.letter));
        const PassKind kind = kindOf(pass.letter);
        Nanos end = free[static_cast<std::size_t>(pass.rank)];
        const std::size_t cell = static_cast<std::size_t>(stage) * m + static_cast<std::size_t>(pass.microbatch);
        if (kind == PassKind::Forward) {
            end = std::min(end, starts[1][cell]);
            if (stage + 1 < m_pipeline.stages())
                end = std::min(end, starts[0][cell + m] - m_pipeline.fromBelow[static_cast<std::size_t>(stage) + 1]);
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

// By rank: how many of its letters start before that time.
std::vector<std::size_t> IntervalSearch::placesAt(Nanos time) const
{
    std::vector<std::size_t> out(static_cast<std::size_t>(m_pipeline.ranks));
    for (const Pass& pass : m_passes)
        if (pass.start < time) out[static_cast<std::size_t>(pass.rank)] = static_cast<std::size_t>(pass.place) + 1;
    return out;
}

// Passes that start before `from` start as they do, those that start at `to` or later end in time for the target.
Windows IntervalSearch::windowsWithin(const RankRelaxation& relaxation, Nanos from, Nanos to, Nanos target) const
{
    Windows out = relaxation.windowsFor(target);
    const std::vector<Nanos> ends = latestEnds(target);
    for (std::size_t at = 0; at < m_passes.size(); ++at) {
        const Pass& pass = m_passes[at];
        const PassKind kind = kindOf(pass.letter);
        const auto rank = static_cast<std::size_t>(pass.rank);
        if (pass.start < from) out.begin[rank] = std::max(out.begin[rank], pass.end);
        if (pass.start >= to) out.end[rank] = std::min(out.end[rank], ends[at] - (pass.end - pass.start));
        if (kind == PassKind::WeightGrad) continue;
        const std::size_t cell = relaxation.cell(m_pipeline.stageOf(pass.rank, chunkOf(pass.letter)), pass.microbatch);
        const std::size_t event = kind == PassKind::Forward ? forwardEvent : gradientEvent;
        if (pass.start < from) {
            out.head[event][cell] = pass.start;
            if (event == gradientEvent) out.soon[cell] = pass.end;
        } else if (pass.start >= to) {
            out.due[event][cell] = ends[at];
            if (event == gradientEvent) out.late[cell] = ends[at] - (pass.end - pass.start);
        }
    }
    return out;
}

// The order with what is between `from` and the interval's end put better; not feasible where branching finds nothing.
Found IntervalSearch::searchAt(const Found& best, Nanos from, const IntervalLimits& limits)
{
    const Nanos to = from + static_cast<Nanos>(m_length);
    const Nanos step = std::max(best.objective / stepsOfObjective / limits.grid, Nanos{1}) * limits.grid;
    const Nanos target = std::max(best.objective - step, limits.enough);
    const std::vector<std::size_t> first = placesAt(from);
    const std::vector<std::size_t> last = placesAt(to);
    std::vector<Counts> low;
    std::vector<Counts> high;
    for (std::size_t r = 0; r < first.size(); ++r) {
        low.push_back(m_path[r][first[r]]);
        high.push_back(m_path[r][last[r]]);
    }
    ++m_tries;
    RankRelaxation relaxation(m_pipeline, low, high, mostStatesOfInterval);
    m_work += static_cast<std::int64_t>(2 * relaxation.stateCount());
    if (!relaxation.usable()) {
        m_work += static_cast<std::int64_t>(mostStatesOfInterval);
        m_length *= shorter;
        return {};
    }
    const Branching result = branchWithin(m_pipeline, relaxation, windowsWithin(relaxation, from, to, target),
                                          workOfInterval, limits.stop, static_cast<std::uint64_t>(m_tries));
    m_nodes += result.nodes;
    m_work += result.work;
    if (result.outcome == Branching::Outcome::Open) m_length *= shorter;
    if (result.outcome == Branching::Outcome::Refuted && result.work < workOfInterval / 4)
        m_length = std::min(m_length * longer, static_cast<double>(best.makespan));
    if (result.outcome != Branching::Outcome::Solved) return {};
    Found out;
    for (std::size_t r = 0; r < first.size(); ++r) {
        const Word& word = best.words[r];
        Word& joined = out.words.emplace_back(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(first[r]));
        joined.insert(joined.end(), result.words[r].begin(), result.words[r].end());
        joined.insert(joined.end(), word.begin() + static_cast<std::ptrdiff_t>(last[r]), word.end());
    }
    WordRunner runner(m_pipeline);
    const Timing& timing = runner.time(out.words);
    if (!timing.feasible) return {};
    out.objective = timing.objective;
    out.makespan = timing.makespan;
    return out;
}

Found IntervalSearch::improve(const Found& start, const IntervalLimits& limits)
{
    Found best = start;
    if (!best.feasible() || !follow(best)) return best;
    const std::int64_t end = m_work + limits.work;
    while (m_work < end && best.objective > limits.enough && !(limits.stop && limits.stop())) {
        const auto from =
            static_cast<Nanos>(m_random.unit() * (static_cast<double>(best.makespan) + m_length) - m_length);
        Found found = searchAt(best, from, limits);
        if (!found.feasible() || found.objective >= best.objective) continue;
        best = std::move(found);
        follow(best);
    }
    return best;
}

} // namespace stagewright::planning
