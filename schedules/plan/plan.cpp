#include "schedules/plan/plan.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "schedules/plan/bound.h"
#include "schedules/plan/branch.h"
#include "schedules/plan/candidates.h"
#include "schedules/plan/improve.h"
#include "schedules/simulate.h"

namespace stagewright {

namespace {

using namespace planning;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t triesPerRound = 8192;
constexpr std::int64_t workOfFirstRound = 4'000'000; // of branching, four times as much each round
constexpr std::int64_t mostWork = 1'000'000'000'000;
constexpr Nanos finestSteps = 2000;                  // targets are not set closer than this part of the best objective

// Where no time for a full backward is given, it is I then W.
PlanRequest completed(const PlanRequest& request)
{
    PlanRequest out = request;
    for (int s = 0; s < request.costs.stages(); ++s) {
        const int rank = s < request.ranks ? s : 2 * request.ranks - 1 - s;
        const Nanos apart = request.costs.duration(OpKind::InputGrad, s, rank) + request.costs.duration(OpKind::WeightGrad, s, rank);
        if (request.costs.duration(OpKind::Backward, s, rank) == 0 && apart > 0) out.costs.setDuration(OpKind::Backward, s, rank, apart);
    }
    return out;
}

class Search
{
public:
    Search(const PlanRequest& request, const Progress& progress)
        : m_request(completed(request)), m_progress(progress), m_begin(Clock::now())
    {
    }
    Result<Plan> run();

private:
    double elapsed() const { return std::chrono::duration<double>(Clock::now() - m_begin).count(); }
    bool over() const { return m_progress.cancelled() || elapsed() >= m_request.seconds; }
    void tell() const;
    void offer(Found found, const char* by);
    void offer(Candidate candidate);
    void firstGuesses();
    void raiseBound(const Bound& bound);
    void localSearch(std::int64_t tries);
    void branchAndBound(RankRelaxation& relaxation, std::int64_t work);
    bool branchTo(RankRelaxation& relaxation, Nanos target, std::int64_t work);
    bool exhausted() const { return m_tries + m_nodes >= m_request.tries; }
    bool done() const { return m_best && m_best->objective <= m_bound.value; }
    Plan finished() const;

    const PlanRequest m_request;
    const Progress& m_progress;
    Clock::time_point m_begin;
    Pipeline m_pipeline;
    std::optional<Candidate> m_best;
    Found m_start; // what the local search goes on from
    Bound m_bound;
    std::int64_t m_tries = 0;
    std::int64_t m_nodes = 0;
    Nanos m_grid = 1;
    std::uint64_t m_round = 0;
};

void Search::tell() const
{
    const auto total = static_cast<std::int64_t>(std::max(m_request.seconds, 0.001) * 1000);
    const auto done = std::min(static_cast<std::int64_t>(elapsed() * 1000), total);
    const auto unit = static_cast<double>(m_request.costs.timeUnit);
    m_progress.tell(fmt::format("best {:.6g}, bound {:.6g}", m_best ? static_cast<double>(m_best->objective) / unit : 0.0,
                                static_cast<double>(m_bound.value) / unit),
                    done, total);
}

void Search::offer(Candidate candidate)
{
    if (!m_best || candidate.betterThan(*m_best)) m_best = std::move(candidate);
}

void Search::offer(Found found, const char* by)
{
    if (!found.feasible()) return;
    const bool promising = !m_best || found.objective < m_best->objective || (found.objective == m_best->objective && found.makespan < m_best->makespan);
    if (promising)
        if (auto candidate = candidateOf(m_request, m_pipeline, found.words, by)) offer(std::move(*candidate));
    if (found.betterThan(m_start)) m_start = std::move(found);
}

void Search::firstGuesses()
{
    for (Guess& guess : firstOrders(m_pipeline)) {
        offer(std::move(guess.found), guess.by);
        ++m_tries;
    }
    tell();
    for (Candidate& candidate : libraryCandidates(m_request)) {
        ++m_tries;
        if (!candidate.keeps(m_pipeline.cap)) continue;
        if (auto words = wordsOf(m_pipeline, candidate.schedule)) {
            WordRunner runner(m_pipeline);
            const Timing& timing = runner.time(*words);
            Found found{std::move(*words), timing.objective, timing.makespan};
            if (timing.feasible && found.betterThan(m_start)) m_start = std::move(found);
        }
        offer(std::move(candidate));
    }
    tell();
}

void Search::raiseBound(const Bound& bound)
{
    if (bound.value > m_bound.value) m_bound = bound;
}

void Search::localSearch(std::int64_t tries)
{
    ImproveLimits limits;
    limits.tries = tries;
    limits.enough = m_bound.value;
    limits.seed = m_request.seed + 0x51ed2701 * m_round++;
    limits.stop = [this] { return over(); };
    m_tries += tries;
    offer(improve(m_pipeline, m_start, limits), "local search");
    tell();
}

// True: the target is refuted, or an order within it was found; the bound or the best have moved.
bool Search::branchTo(RankRelaxation& relaxation, Nanos target, std::int64_t work)
{
    const Branching result = branch(m_pipeline, relaxation, target, work, [this] { return over(); });
    m_nodes += result.nodes;
    if (result.outcome == Branching::Outcome::Refuted) {
        raiseBound({target + m_grid, "branch and bound"});
        tell();
        return true;
    }
    if (result.outcome == Branching::Outcome::Open) return false;
    const Nanos before = m_best->objective;
    WordRunner runner(m_pipeline);
    const Timing& timing = runner.time(result.words);
    if (timing.feasible) offer({result.words, timing.objective, timing.makespan}, "branch and bound");
    tell();
    return m_best->objective < before;
}

// Targets from the bound up and from the best down, by steps that double where they succeed and halve where the work does not do.
void Search::branchAndBound(RankRelaxation& relaxation, std::int64_t work)
{
    auto onGrid = [this](Nanos step) { return std::max<Nanos>(step / m_grid, 1) * m_grid; };
    for (const bool fromBelow : {true, false}) {
        const Nanos least = onGrid(m_best->objective / finestSteps);
        Nanos step = fromBelow ? least : onGrid((m_best->objective - m_bound.value) / 2);
        while (!done() && !over() && !exhausted()) {
            const Nanos below = m_best->objective - m_grid; // the largest target that means something
            const Nanos target = std::clamp(fromBelow ? m_bound.value + step - m_grid : m_best->objective - step, m_bound.value, std::max(below, m_bound.value));
            if (branchTo(relaxation, target, work))
                step *= 2;
            else if (step > least)
                step = std::max(least, onGrid(step / 2));
            else
                break;
        }
    }
}

Plan Search::finished() const
{
    Plan out;
    out.schedule = m_best->schedule;
    out.schedule.name = "plan";
    out.objective = m_best->objective;
    out.makespan = m_best->makespan;
    out.span = m_best->span;
    out.peaks = m_best->peaks;
    out.bound = std::min(m_bound.value, m_best->objective);
    out.gap = out.objective > 0 ? static_cast<double>(out.objective - out.bound) / static_cast<double>(out.objective) : 0;
    out.optimal = out.objective == out.bound;
    out.provenBy = m_bound.by;
    out.foundBy = m_best->by;
    out.tries = m_tries;
    out.nodes = m_nodes;
    out.interrupted = m_progress.cancelled();
    return out;
}

Result<Plan> Search::run()
{
    auto pipeline = pipelineOf(m_request.ranks, m_request.chunks, m_request.microbatches, m_request.costs, m_request.caps, m_request.objective);
    if (!pipeline) return tl::unexpected(std::move(pipeline.error()));
    m_pipeline = std::move(*pipeline);
    for (int r = 0; r < m_pipeline.ranks; ++r) {
        const Bytes least = leastMemory(m_pipeline, r);
        const Bytes cap = m_pipeline.cap[static_cast<std::size_t>(r)];
        const auto unit = static_cast<double>(m_request.costs.memoryUnit);
        if (cap < least)
            return fail(ErrorCode::Invalid, fmt::format("plan, rank {}: a cap of {:.6g} is below the {:.6g} that one microbatch needs", r,
                                                        static_cast<double>(cap) / unit, static_cast<double>(least) / unit),
                        fmt::format("the least cap that works is {:.6g}", static_cast<double>(least) / unit));
    }
    raiseBound(windowBound(m_pipeline));
    firstGuesses();
    if (!m_best) return fail(ErrorCode::Failed, "plan: no first order was found", "report this request");
    if (done() || over()) return finished();
    m_grid = gridOf(m_pipeline);
    RankRelaxation relaxation(m_pipeline);
    raiseBound(provenBound(m_pipeline, relaxation, m_best->objective, [this] { return over(); }));
    tell();
    for (std::int64_t work = workOfFirstRound; !done() && !over() && !exhausted(); work = std::min(4 * work, mostWork)) {
        if (relaxation.usable()) branchAndBound(relaxation, work);
        if (!done() && !over() && work == workOfFirstRound) {
            offer(searchBlocks(m_pipeline, [this] { return over(); }), "search of building blocks");
            tell();
        }
        if (!done() && !over()) localSearch(triesPerRound);
    }
    return finished();
}

} // namespace

Result<Plan> plan(const PlanRequest& request, const Progress& progress)
{
    return Search(request, progress).run();
}

Result<Pareto> pareto(const PlanRequest& request, int points, const Progress& progress, const CostsFor& costsFor)
{
    if (points < 2) return fail(ErrorCode::Usage, fmt::format("pareto: {} points; two are the least", points));
    PlanRequest own = completed(request);
    own.caps.clear();
    own.seconds = request.seconds / (points + 1);
    Progress quiet;
    quiet.stop = progress.stop;
    auto free = plan(own, quiet);
    if (!free) return tl::unexpected(std::move(free.error()));
    auto pipeline = pipelineOf(own.ranks, own.chunks, own.microbatches, own.costs, {}, own.objective);
    if (!pipeline) return tl::unexpected(std::move(pipeline.error()));
    Bytes least = 0;
    Bytes step = 0;
    for (int r = 0; r < own.ranks; ++r) {
        least = std::max(least, leastMemory(*pipeline, r));
        for (int c = 0; c < own.chunks; ++c)
            step = std::max(step, pipeline->change(PassKind::Forward, pipeline->stageOf(r, c)));
    }
    const Bytes most = std::max(least, *std::max_element(free->peaks.begin(), free->peaks.end()));
    // Whole activations more than the least: the memory of a rank moves in such steps where stages are even.
    step = std::max<Bytes>(step, 1);
    const Bytes stepsBetween = (most - least + step - 1) / step;
    const Bytes stride = std::max<Bytes>(1, (stepsBetween + points - 2) / (points - 1)) * step;
    Pareto out;
    addLibraryPoints(own, costsFor, out);
    for (Bytes cap = least; ; cap = std::min(cap + stride, most)) {
        progress.tell(fmt::format("cap {:.6g}", static_cast<double>(cap) / static_cast<double>(own.costs.memoryUnit)), cap - least, most - least);
        own.caps.assign(static_cast<std::size_t>(own.ranks), cap);
        auto next = plan(own, quiet);
        if (!next) return tl::unexpected(std::move(next.error()));
        ParetoPoint point{cap, std::move(*next)};
        if (!out.curve.empty() && out.curve.back().plan.objective < point.plan.objective) {
            const Plan& smaller = out.curve.back().plan; // keeps this cap as well
            const Nanos bound = point.plan.bound;
            const std::string provenBy = point.plan.provenBy;
            point.plan = smaller;
            point.plan.bound = std::min(bound, smaller.objective);
            point.plan.provenBy = provenBy;
            point.plan.gap = static_cast<double>(point.plan.objective - point.plan.bound) / static_cast<double>(std::max<Nanos>(point.plan.objective, 1));
            point.plan.optimal = point.plan.objective == point.plan.bound;
        }
        out.interrupted = out.interrupted || point.plan.interrupted;
        out.curve.push_back(std::move(point));
        if (cap == most || progress.cancelled()) break;
    }
    out.interrupted = progress.cancelled();
    return out;
}

} // namespace stagewright
