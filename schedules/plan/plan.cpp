#include "schedules/plan/plan.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/execute/simulate.h"
#include "schedules/heuristic/improve.h"
#include "schedules/model/kinds.h"
#include "schedules/plan/bound.h"
#include "schedules/plan/branch.h"
#include "schedules/plan/candidates.h"
#include "schedules/plan/fewer_bound.h"
#include "schedules/plan/interval_search.h"
#include "schedules/plan/policy.h"
#include "schedules/plan/stretch.h"

namespace stagewright {

namespace {

using namespace planning;

// Work in units of about 10 ns: a state or pair of branching, a letter timed; following rules takes three a letter.
constexpr std::int64_t workOfFirstRound = 500'000;    // of branching to one target
constexpr std::int64_t workOfSecondRound = 4'000'000; // then twice as much each round
constexpr std::int64_t mostWork = 1'000'000'000'000;
// from the bound up and from the best down each: so many times the work of one target
constexpr std::int64_t branchingPerRound = 3;
// where less than this part of the objective is open, proofs are what is left
constexpr Nanos closeGap = 100;
constexpr std::int64_t closeWork = 8;          // and get so many times the work
constexpr std::int64_t searchPerBranching = 2; // rules and local search each get so many times the work of one target
constexpr std::int64_t leastSearch = 12'000'000;
constexpr std::int64_t intervalsPerSearch = 2; // and intervals so many times as much
constexpr std::size_t manyStates = 100'000;    // a bound for them takes long: orders first
constexpr std::int64_t workAtTighterCap = 1'500'000;
constexpr std::int64_t mostRules = 4096; // tried in one go, and orders by local search: small shapes need less
constexpr std::int64_t mostMoves = 16384;
constexpr std::int64_t mostRulesAtTighterCap = 128;
constexpr std::int64_t mostMovesAtTighterCap = 1024;
constexpr Nanos finestSteps = 2000; // targets are not set closer than this part of the best objective

std::int64_t lettersOf(const Pipeline& pipeline) { return std::int64_t{3} * pipeline.stages() * pipeline.microbatches; }

// For usual times; where no time for a full backward is given, it is I then W.
PlanRequest completed(const PlanRequest& request)
{
    PlanRequest out = request;
    out.costs.jitter = 0;
    for (int s = 0; s < request.costs.stages(); ++s) {
        const int rank = s < request.ranks ? s : 2 * request.ranks - 1 - s;
        const Nanos apart =
            request.costs.duration(OpKind::InputGrad, s, rank) + request.costs.duration(OpKind::WeightGrad, s, rank);
        if (request.costs.duration(OpKind::Backward, s, rank) == 0 && apart > 0)
            out.costs.setDuration(OpKind::Backward, s, rank, apart);
    }
    return out;
}

class Search {
public:
    Search(const PlanRequest& request, const Progress& progress)
        : m_request(completed(request)), m_leftOut(leftOutOf(request)), m_progress(progress), m_begin(now())
    {
    }
    Result<Plan> run();

private:
    double now() const
    {
        return m_request.clock
                   ? m_request.clock()
                   : std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    }
    double elapsed() const { return now() - m_begin; }
    bool over();
    void tell();
    void offer(Found found, const char* by);
    void offer(Candidate candidate);
    Result<void> prepare();
    std::vector<std::vector<Bytes>> tighterCaps() const;
    void orderAt(const std::vector<Bytes>& caps);
    void climb();
    void firstGuesses();
    void offerKnown();
    void followRules(std::int64_t work, std::int64_t most);
    void raiseBound(const Bound& bound);
    void moveFrom(const Found& start, std::int64_t work, std::int64_t most);
    void searchFewer(std::int64_t work);
    void searchIntervals(IntervalSearch& intervals, std::int64_t work);
    void proveFewer(FewerBound& fewer, RankRelaxation& relaxation, std::int64_t work);
    void branchAndBound(RankRelaxation& relaxation, std::int64_t work);
    bool branchTo(RankRelaxation& relaxation, Nanos target, std::int64_t work, std::uint64_t seed);
    bool exhausted() const { return m_tries + m_nodes >= m_request.tries; }
    bool done() const { return m_best && m_best->objective <= m_bound.value; }
    Plan finished() const;

    const PlanRequest m_request;
    const std::vector<CostLeftOut> m_leftOut;
    const Progress& m_progress;
    const double m_begin;
    Pipeline m_pipeline;
    std::optional<Candidate> m_best;
    Found m_start;   // what the local search goes on from
    Policy m_policy; // the best rules, likewise
    Nanos m_policyObjective = INT64_MAX;
    Bound m_bound;
    std::int64_t m_tries = 0;
    std::int64_t m_nodes = 0;
    std::int64_t m_work = 0; // of branching
    Nanos m_grid = 1;
    std::uint64_t m_round = 0;
    std::vector<std::pair<int, Found>> m_fewer; // the best orders of fewer microbatches, by their number
    std::string m_limit;                        // Plan::limit
    double m_told = 0;                          // when, in seconds of the search
};

// Called often: also reports every second.
bool Search::over()
{
    if (elapsed() >= m_told + 1) tell();
    return m_progress.cancelled() || elapsed() >= m_request.seconds;
}

void Search::tell()
{
    m_told = elapsed();
    const auto total = static_cast<std::int64_t>(std::max(m_request.seconds, 0.001) * 1000);
    const auto done = std::min(static_cast<std::int64_t>(elapsed() * 1000), total);
    const auto unit = static_cast<double>(m_request.costs.timeUnit);
    m_progress.tell(fmt::format("best {:.6g}, bound {:.6g}",
                                m_best ? static_cast<double>(m_best->objective) / unit : 0.0,
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
    const bool promising = !m_best || found.objective < m_best->objective ||
                           (found.objective == m_best->objective && found.makespan < m_best->makespan);
    if (promising)
        if (auto candidate = candidateOf(m_request, m_pipeline, found.words, by);
            candidate && candidate->keeps(m_request.caps))
            offer(std::move(*candidate));
    if (found.betterThan(m_start)) m_start = std::move(found);
}

// Rules that need no search, at the pipeline's caps.
void Search::firstGuesses()
{
    for (Guess& guess : firstOrders(m_pipeline)) {
        offer(std::move(guess.found), guess.by);
        ++m_tries;
    }
    tell();
}

void Search::offerKnown()
{
    std::vector<Candidate> candidates = libraryCandidates(m_request);
    m_tries += static_cast<std::int64_t>(candidates.size());
    for (const Schedule& schedule : m_request.known) {
        const auto words = wordsOf(m_pipeline, schedule);
        if (!words) continue;
        ++m_tries;
        if (auto candidate = candidateOf(m_request, m_pipeline, *words, "an order known before"))
            candidates.push_back(std::move(*candidate));
    }
    WordRunner runner(m_pipeline);
    for (Candidate& candidate : candidates) {
        if (!candidate.keeps(m_pipeline.cap)) continue;
        if (auto words = wordsOf(m_pipeline, candidate.schedule)) {
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

void Search::followRules(std::int64_t work, std::int64_t most)
{
    PolicyLimits limits;
    limits.tries = std::clamp<std::int64_t>(work / 3 / lettersOf(m_pipeline), 16, most);
    limits.enough = m_bound.value;
    limits.seed = m_request.seed + 0x2545f491 * m_round++;
    limits.stop = [this] { return over(); };
    // Every other time from the first rules on: the best ones may be a dead end.
    PolicyFound found = searchPolicies(m_pipeline, m_round % 2 == 0 ? Policy{} : m_policy, limits);
    m_tries += found.tries;
    if (!found.found.feasible()) return;
    if (found.found.objective < m_policyObjective) {
        m_policy = std::move(found.policy);
        m_policyObjective = found.found.objective;
    }
    WordRunner runner(m_pipeline);
    const Timing& timing = runner.time(found.found.words); // passes may start sooner than the rules decided
    if (!timing.feasible) return;
    Found order{std::move(found.found.words), timing.objective, timing.makespan};
    offer(order, "search of rules");
    moveFrom(order, work / 2, most);
}

// Local search from an order that need not be the best: several starts end in several places.
void Search::moveFrom(const Found& start, std::int64_t work, std::int64_t most)
{
    if (done() || over()) return;
    ImproveLimits limits;
    limits.tries = std::clamp<std::int64_t>(work / lettersOf(m_pipeline), 64, most);
    limits.enough = m_bound.value;
    limits.seed = m_request.seed + 0x51ed2701 * m_round++;
    limits.stop = [this] { return over(); };
    m_tries += limits.tries;
    offer(improve(m_pipeline, start, limits), "local search");
    tell();
}

// From the best order: each interval of time by itself, which is small enough to branch in.
void Search::searchIntervals(IntervalSearch& intervals, std::int64_t work)
{
    if (done() || over() || exhausted() || !m_pipeline.alike()) return; // it knows stages' times only
    IntervalLimits limits;
    limits.work = work;
    limits.enough = m_bound.value;
    limits.grid = m_grid;
    limits.stop = [this] { return over(); };
    const std::int64_t tries = intervals.tries();
    const std::int64_t nodes = intervals.nodes();
    offer(intervals.improve(m_start, limits), "search of intervals");
    m_tries += intervals.tries() - tries;
    m_nodes += intervals.nodes() - nodes;
    tell();
}

// Orders fewer microbatches, where a search gets further, and stretches the best of them.
void Search::searchFewer(std::int64_t work)
{
    if (!m_pipeline.alike()) return; // an order repeated has others in it
    if (m_fewer.empty())
        for (int few : {8, 12, 16, 24, 32})
            if (3 * few <= 2 * m_pipeline.microbatches && few > m_pipeline.ranks / 2)
                m_fewer.emplace_back(few, Found{});
    if (m_fewer.empty()) return;
    auto& [few, best] = m_fewer[m_round++ % m_fewer.size()];
    const Pipeline small = withMicrobatches(m_pipeline, few);
    const std::uint64_t seed = m_request.seed + 0x9e3779b1 * m_round;
    auto stop = [this] { return over(); };
    PolicyLimits rules;
    rules.tries = std::clamp<std::int64_t>(work / 6 / lettersOf(small), 16, mostRules);
    rules.seed = seed;
    rules.stop = stop;
    PolicyFound found = searchPolicies(small, {}, rules);
    m_tries += found.tries;
    if (found.found.betterThan(best)) best = std::move(found.found);
    if (!best.feasible())
        for (Guess& guess : firstOrders(small))
            if (guess.found.feasible() && guess.found.betterThan(best)) best = std::move(guess.found);
    ImproveLimits limits;
    limits.tries = std::clamp<std::int64_t>(work / 2 / lettersOf(small), 64, 2 * mostMoves);
    limits.seed = seed;
    limits.stop = stop;
    best = improve(small, best, limits);
    const Stretched longer = bestStretch(small, best.words, m_pipeline);
    m_tries += limits.tries + longer.tries;
    if (longer.words.empty()) return;
    const Found order{longer.words, longer.objective, longer.makespan};
    offer(order, "an order of fewer microbatches, repeated");
    moveFrom(order, work / 2, mostMoves);
}

// Caps below the request's: so many activations of the fullest chunk on every rank, the same numbers for every request,
// but no more than the rank's own cap. A request with looser caps tries all that one with tighter caps does.
std::vector<std::vector<Bytes>> Search::tighterCaps() const
{
    std::vector<std::vector<Bytes>> out;
    const int most = 2 * m_pipeline.stages();
    for (int count = 1; count <= most; count += count < 8 ? 1 : count < 16 ? 2 : count < 32 ? 4 : count / 4) {
        std::vector<Bytes> caps;
        bool possible = true;
        for (int r = 0; r < m_pipeline.ranks; ++r) {
            Bytes each = 0;
            for (int c = 0; c < m_pipeline.chunks; ++c)
                each = std::max(each, m_pipeline.change(PassKind::Forward, m_pipeline.stageOf(r, c)));
            caps.push_back(std::min(m_pipeline.cap[static_cast<std::size_t>(r)], count * each));
            possible = possible && caps.back() >= leastMemory(m_pipeline, r);
        }
        if (caps == m_pipeline.cap) break;
        if (possible) out.push_back(std::move(caps));
    }
    return out;
}

// The search of one cap without proofs.
void Search::orderAt(const std::vector<Bytes>& caps)
{
    std::vector<Bytes> own = caps;
    std::swap(m_pipeline.cap, own);
    firstGuesses();
    m_policyObjective = INT64_MAX;
    m_round = 0;
    if (!done() && !over()) followRules(workAtTighterCap, mostRulesAtTighterCap);
    m_round = 0;
    if (!done() && !over()) moveFrom(Found(m_start), workAtTighterCap, mostMovesAtTighterCap);
    std::swap(m_pipeline.cap, own);
}

// True: the target is refuted, or an order within it was found; the bound or the best have moved.
bool Search::branchTo(RankRelaxation& relaxation, Nanos target, std::int64_t work, std::uint64_t seed)
{
    const Branching result = branch(
        m_pipeline, relaxation, target, work, [this] { return over(); }, seed);
    m_nodes += result.nodes;
    m_work += result.work;
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

// Targets from the bound up and from the best down, by steps that double where they succeed and halve where the work
// does not do.
void Search::branchAndBound(RankRelaxation& relaxation, std::int64_t work)
{
    auto onGrid = [this](Nanos step) { return std::max<Nanos>(step / m_grid, 1) * m_grid; };
    for (const bool fromBelow : {true, false}) {
        const Nanos least = onGrid(m_best->objective / finestSteps);
        Nanos step = fromBelow ? least : onGrid((m_best->objective - m_bound.value) / 2);
        const std::int64_t enough = m_work + branchingPerRound * work;
        while (!done() && !over() && !exhausted() && (m_work < enough || work == workOfFirstRound)) {
            const Nanos below = m_best->objective - m_grid; // the largest target that means something
            const Nanos target = std::clamp(fromBelow ? m_bound.value + step - m_grid : m_best->objective - step,
                                            m_bound.value, std::max(below, m_bound.value));
            if (branchTo(relaxation, target, work, fromBelow || work <= 4 * workOfSecondRound ? 0 : ++m_round))
                step *= 2;
            else if (step > least)
                step = std::max(least, onGrid(step / 2));
            else
                break;
        }
    }
}

// With two chunks it costs more than it gives.
void Search::proveFewer(FewerBound& fewer, RankRelaxation& relaxation, std::int64_t work)
{
    if (m_pipeline.chunks != 1 || done() || over() || exhausted()) return;
    auto stop = [this] { return over(); };
    const std::int64_t nodes = fewer.nodes();
    fewer.prove(work, m_best->objective, stop);
    m_nodes += fewer.nodes() - nodes;
    relaxation.limitStarts(fewer.restsOf(m_pipeline.microbatches));
    raiseBound(provenBound(m_pipeline, relaxation, m_best->objective, stop, m_bound));
    tell();
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
    out.gap =
        out.objective > 0 ? static_cast<double>(out.objective - out.bound) / static_cast<double>(out.objective) : 0;
    out.leftOut = m_leftOut;
    out.optimal = out.objective == out.bound && out.leftOut.empty();
    out.provenBy = m_bound.by;
    out.limit = out.objective == out.bound ? std::string() : m_limit;
    out.foundBy = m_best->by;
    out.tries = m_tries;
    out.nodes = m_nodes;
    out.interrupted = m_progress.cancelled();
    return out;
}

// From the least memory up to the request's own caps. What was found before has no part in it, so that it is the same
// for all requests.
void Search::climb()
{
    Found before = std::exchange(m_start, {});
    for (const std::vector<Bytes>& caps : tighterCaps())
        if (!done() && !over()) orderAt(caps);
    if (!done() && !over()) orderAt(m_pipeline.cap);
    if (before.betterThan(m_start)) m_start = std::move(before);
}

Result<void> Search::prepare()
{
    STAGEWRIGHT_TRY(m_pipeline, pipelineOf(m_request.ranks, m_request.chunks, m_request.microbatches, m_request.costs,
                                           m_request.caps, m_request.objective));
    for (int r = 0; r < m_pipeline.ranks; ++r) {
        const Bytes least = leastMemory(m_pipeline, r);
        const Bytes cap = m_pipeline.cap[static_cast<std::size_t>(r)];
        const Units units{1, m_request.costs.memoryUnit};
        if (cap < least)
            return fail(ErrorCode::Invalid,
                        fmt::format("plan, rank {}: a cap of {} is below the {} that one microbatch needs", r,
                                    units.memoryText(cap), units.memoryText(least)),
                        units.memory == 1
                            ? fmt::format("the smallest cap that works is {}B", least)
                            : fmt::format("the smallest cap that works is {:.6g}", units.memoryValue(least)));
    }
    return {};
}

Result<Plan> Search::run()
{
    STAGEWRIGHT_CHECK(prepare());
    raiseBound(windowBound(m_pipeline));
    raiseBound(workBound(m_pipeline));
    firstGuesses();
    offerKnown();
    if (!m_best) return fail(ErrorCode::Failed, "plan: no first order was found", "report this request");
    if (done() || over()) return finished();
    m_grid = gridOf(m_pipeline);
    climb();
    RankRelaxation relaxation(m_pipeline, RankRelaxation::defaultMostStates, [this] { return over(); });
    if (!relaxation.usable() && !over())
        m_limit = fmt::format("the ranks of this shape have more than {} million states together, or over 1,000 "
                              "microbatches: the bound is that of time windows and may be weak",
                              RankRelaxation::defaultMostStates / 1'000'000);
    IntervalSearch intervals(m_pipeline, m_request.seed);
    if (relaxation.stateCount() > manyStates) searchIntervals(intervals, intervalsPerSearch * leastSearch);
    if (!done() && !over())
        raiseBound(provenBound(m_pipeline, relaxation, m_best->objective, [this] { return over(); }));
    tell();
    FewerBound fewer(m_pipeline);
    for (std::int64_t work = workOfFirstRound, fold = 1; !done() && !over() && !exhausted(); ++fold) {
        if (relaxation.usable()) {
            // every other round without: other pairs come first, and branching gets lost elsewhere
            relaxation.limitStarts({});
            if (fold % 2 == 0) proveFewer(fewer, relaxation, work);
            const bool close = closeGap * (m_best->objective - m_bound.value) <= m_best->objective;
            branchAndBound(relaxation, close && fold > 1 ? closeWork * work : work);
        }
        if (!done() && !over() && work == workOfFirstRound) {
            offer(searchBlocks(m_pipeline, [this] { return over(); }), "search of building blocks");
            tell();
        }
        const std::int64_t search = std::max(searchPerBranching * work, leastSearch);
        if (!done() && !over() && !exhausted()) searchFewer(search);
        if (!done() && !over() && !exhausted()) followRules(search, fold * mostRules);
        if (!done() && !over() && !exhausted()) moveFrom(Found(m_start), search, fold * mostMoves);
        searchIntervals(intervals, intervalsPerSearch * search);
        work = std::clamp(2 * work, workOfSecondRound, mostWork);
    }
    return finished();
}

} // namespace

std::vector<CostLeftOut> leftOutOf(const PlanRequest& request)
{
    const CostModel& costs = request.costs;
    std::vector<CostLeftOut> out;
    if (costs.jitter > 0) out.push_back({"jitter", "an order is planned for usual times"});
    if (costs.hasPairDurations()) out.push_back({"pairs", "planned orders issue no two ops together"});
    for (const auto& [kind, reason] : {std::pair(OpKind::Optimizer, "planned orders end with the last gradient"),
                                       std::pair(OpKind::Unshard, "planned orders gather no weights"),
                                       std::pair(OpKind::ReduceGrad, "planned orders reduce no gradients")})
        for (int stage = 0; stage < costs.stages(); ++stage)
            if (costs.duration(kind, stage, stage < request.ranks ? stage : 2 * request.ranks - 1 - stage) > 0) {
                out.push_back({std::string(ruleOf(kind).text), reason});
                break;
            }
    if (costs.sharding.level != ShardLevel::None || costs.replicas > 1)
        out.push_back({"sharding", "one pipeline is planned, which holds its whole stages"});
    if (!costs.sizes.empty())
        out.push_back({"microbatch_sizes", "one pipeline is planned, with the microbatches that its costs are of"});
    return out;
}

Result<Plan> plan(const PlanRequest& request, const Progress& progress) { return Search(request, progress).run(); }

namespace {

// What an order for less memory shows of a plan for more: nothing longer is worth having.
void take(const Plan& smaller, Plan& larger)
{
    if (smaller.objective >= larger.objective) return;
    Plan out = smaller;
    out.bound = std::min(larger.bound, smaller.objective);
    out.provenBy = larger.provenBy;
    out.gap = static_cast<double>(out.objective - out.bound) / static_cast<double>(std::max<Nanos>(out.objective, 1));
    out.optimal = out.objective == out.bound && out.leftOut.empty();
    larger = std::move(out);
}

class Curve {
public:
    Curve(PlanRequest request, int most, const Progress& progress)
        : m_request(std::move(request)), m_points(most), m_progress(progress)
    {
        m_share = m_request.seconds / (most + 1);
    }
    Result<void> run();
    std::vector<ParetoPoint> points; // by rising cap

private:
    Result<void> ends();
    Result<Plan> planFor(Bytes cap);
    Result<void> add(Bytes cap);
    Bytes nextCap() const; // 0: none

    PlanRequest m_request;
    int m_points;
    const Progress& m_progress;
    double m_share = 0;
    int m_planned = 0;
    Bytes m_step = 1; // the memory of a rank moves by whole activations where stages are even
};

Result<Plan> Curve::planFor(Bytes cap)
{
    PlanRequest own = m_request;
    own.seconds = m_share;
    if (cap > 0) own.caps.assign(static_cast<std::size_t>(own.ranks), cap);
    for (const ParetoPoint& point : points) own.known.push_back(point.plan.schedule);
    const double unit = static_cast<double>(own.costs.memoryUnit);
    const std::string where = cap > 0 ? fmt::format("cap {:.6g}", static_cast<double>(cap) / unit) : "no cap";
    const auto before = static_cast<std::int64_t>(1000 * m_share * m_planned++);
    const auto total = static_cast<std::int64_t>(1000 * m_share * (m_points + 1));
    Progress inner;
    inner.stop = m_progress.stop;
    inner.report = [&](std::string_view what, std::int64_t done, std::int64_t) {
        m_progress.tell(fmt::format("{}: {}", where, what), std::min(before + done, total), total);
    };
    return plan(own, inner);
}

Result<void> Curve::add(Bytes cap)
{
    STAGEWRIGHT_TRY(auto planned, planFor(cap));
    const auto at =
        std::find_if(points.begin(), points.end(), [cap](const ParetoPoint& point) { return point.cap > cap; });
    points.insert(at, {cap, std::move(planned)});
    for (std::size_t i = 1; i < points.size(); ++i) take(points[i - 1].plan, points[i].plan);
    return {};
}

Result<void> Curve::ends()
{
    STAGEWRIGHT_TRY(auto free, planFor(0));
    auto pipeline =
        pipelineOf(m_request.ranks, m_request.chunks, m_request.microbatches, m_request.costs, {}, m_request.objective);
    if (!pipeline) return tl::unexpected(std::move(pipeline.error()));
    Bytes least = 0;
    for (int r = 0; r < m_request.ranks; ++r) {
        least = std::max(least, leastMemory(*pipeline, r));
        for (int c = 0; c < m_request.chunks; ++c)
            m_step = std::max(m_step, pipeline->change(PassKind::Forward, pipeline->stageOf(r, c)));
    }
    const Bytes most = std::max(least, *std::max_element(free.peaks.begin(), free.peaks.end()));
    if (auto added = add(least); !added) return added;
    if (most == least) return {};
    m_request.known.push_back(free.schedule);
    return add(most);
}

Bytes Curve::nextCap() const
{
    const Bytes range = points.back().cap - points.front().cap;
    for (const bool whole : {true, false}) { // whole activations first, then parts of one where they matter
        double widest = 0;
        Bytes cap = 0;
        for (std::size_t i = 1; i < points.size(); ++i) {
            const Bytes low = points[i - 1].cap;
            const Bytes between = points[i].cap - low;
            const Bytes step = whole ? m_step : std::max<Bytes>(1, m_step / 4);
            if (between <= step || between <= range / 1000) continue;
            const double area = static_cast<double>(between) *
                                static_cast<double>(points[i - 1].plan.objective - points[i].plan.objective);
            if (area <= widest) continue;
            widest = area;
            cap = low + std::max<Bytes>(1, between / 2 / step) * step;
        }
        if (cap > 0) return cap;
    }
    return 0;
}

Result<void> Curve::run()
{
    if (auto ended = ends(); !ended) return ended;
    while (static_cast<int>(points.size()) < m_points && !m_progress.cancelled()) {
        const Bytes cap = nextCap();
        if (cap == 0) break;
        if (auto added = add(cap); !added) return added;
    }
    return {};
}

} // namespace

Result<Pareto> pareto(const PlanRequest& request, int points, const Progress& progress, const CostsFor& costsFor)
{
    if (points < 2) return fail(ErrorCode::Usage, fmt::format("pareto: {} points; at least two are needed", points));
    PlanRequest own = request;
    own.caps.clear();
    Curve curve(own, points, progress);
    STAGEWRIGHT_CHECK(curve.run());
    Pareto out;
    out.curve = std::move(curve.points);
    addLibraryPoints(completed(own), costsFor, out);
    out.interrupted = progress.cancelled();
    return out;
}

} // namespace stagewright
