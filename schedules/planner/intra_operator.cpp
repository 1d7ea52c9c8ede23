#include "schedules/planner/intra_operator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "schedules/planner/integer_program.h"

namespace stagewright {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr std::size_t largestTable = 1 << 22;
constexpr std::int64_t mostSearchNodes = 500'000;
constexpr int solverSeconds = 120;

// Costs by the strategies of some operators, the first one's outermost.
struct Table {
    std::vector<int> of; // ascending
    std::vector<double> cost;
};

class Elimination {
public:
    explicit Elimination(const IntraOperatorProblem& problem) : m_problem(problem)
    {
        const auto count = static_cast<int>(problem.cost.size());
        std::vector<Table> tables;
        for (int op = 0; op < count; ++op) tables.push_back({{op}, problem.cost[static_cast<std::size_t>(op)]});
        for (const auto& edge : problem.edges) {
            Table table{{edge.from, edge.to}, edge.cost};
            if (edge.from > edge.to) {
                std::swap(table.of[0], table.of[1]);
                const auto a = choices(edge.from), b = choices(edge.to);
                for (std::size_t x = 0; x < a; ++x)
                    for (std::size_t y = 0; y < b; ++y) table.cost[y * a + x] = edge.cost[x * b + y];
            }
            tables.push_back(std::move(table));
        }
        std::vector<std::set<int>> near(problem.cost.size());
        for (const auto& edge : problem.edges) {
            near[static_cast<std::size_t>(edge.from)].insert(edge.to);
            near[static_cast<std::size_t>(edge.to)].insert(edge.from);
        }
        std::vector<bool> gone(problem.cost.size(), false);
        for (int step = 0; step < count; ++step) {
            // the operator whose table with its neighbours is smallest
            int best = -1;
            double least = infinite;
            for (int op = 0; op < count; ++op) {
                if (gone[static_cast<std::size_t>(op)]) continue;
                auto size = static_cast<double>(choices(op));
                for (const int other : near[static_cast<std::size_t>(op)]) size *= static_cast<double>(choices(other));
                if (best < 0 || size < least) best = op, least = size;
            }
            if (least > static_cast<double>(largestTable)) return;
            gone[static_cast<std::size_t>(best)] = true;
            const auto& scope = near[static_cast<std::size_t>(best)];
            for (const int one : scope) {
                near[static_cast<std::size_t>(one)].insert(scope.begin(), scope.end());
                near[static_cast<std::size_t>(one)].erase(one);
                near[static_cast<std::size_t>(one)].erase(best);
            }
            eliminate(tables, best, {scope.begin(), scope.end()});
        }
        m_done = true;
    }

    bool done() const { return m_done; }
    double least() const { return m_least; }
    // In this order, backwards, each operator's bucket depends on those that are chosen already.
    struct Bucket {
        int op = 0;
        Table table;              // its neighbours and itself, itself innermost
        std::vector<double> best; // by the neighbours' strategies
    };
    const std::vector<Bucket>& buckets() const { return m_buckets; }
    std::size_t placeOf(const Bucket& bucket, const std::vector<int>& pick) const
    {
        std::size_t place = 0;
        for (std::size_t i = 0; i + 1 < bucket.table.of.size(); ++i)
            place = place * choices(bucket.table.of[i]) +
                    static_cast<std::size_t>(pick[static_cast<std::size_t>(bucket.table.of[i])]);
        return place;
    }
    std::vector<int> pick() const
    {
        std::vector<int> out(m_problem.cost.size(), 0);
        for (auto bucket = m_buckets.rbegin(); bucket != m_buckets.rend(); ++bucket) {
            const auto n = static_cast<std::ptrdiff_t>(choices(bucket->op));
            const auto from = bucket->table.cost.begin() + static_cast<std::ptrdiff_t>(placeOf(*bucket, out)) * n;
            out[static_cast<std::size_t>(bucket->op)] = static_cast<int>(std::min_element(from, from + n) - from);
        }
        return out;
    }

private:
    std::size_t choices(int op) const { return m_problem.cost[static_cast<std::size_t>(op)].size(); }

    void eliminate(std::vector<Table>& tables, int op, const std::vector<int>& scope)
    {
        Bucket bucket{op, {scope, {}}, {}};
        bucket.table.of.push_back(op);
        std::size_t size = 1;
        for (const int other : bucket.table.of) size *= choices(other);
        bucket.table.cost.assign(size, 0);
        std::vector<int> pick(m_problem.cost.size(), 0);
        const auto others = std::stable_partition(tables.begin(), tables.end(), [&](const Table& table) {
            return std::find(table.of.begin(), table.of.end(), op) == table.of.end();
        });
        for (std::size_t place = 0; place < size; ++place) {
            std::size_t rest = place;
            for (std::size_t i = bucket.table.of.size(); i-- > 0; rest /= choices(bucket.table.of[i]))
                pick[static_cast<std::size_t>(bucket.table.of[i])] =
                    static_cast<int>(rest % choices(bucket.table.of[i]));
            for (auto table = others; table != tables.end(); ++table) {
                std::size_t at = 0;
                for (const int other : table->of)
                    at = at * choices(other) + static_cast<std::size_t>(pick[static_cast<std::size_t>(other)]);
                bucket.table.cost[place] += table->cost[at];
            }
        }
        tables.erase(others, tables.end());
        const std::size_t n = choices(op);
        for (std::size_t at = 0; at < size; at += n)
            bucket.best.push_back(*std::min_element(bucket.table.cost.begin() + static_cast<std::ptrdiff_t>(at),
                                                    bucket.table.cost.begin() + static_cast<std::ptrdiff_t>(at + n)));
        if (scope.empty())
            m_least += bucket.best[0];
        else
            tables.push_back({scope, bucket.best});
        m_buckets.push_back(std::move(bucket));
    }

    const IntraOperatorProblem& m_problem;
    std::vector<Bucket> m_buckets;
    double m_least = 0;
    bool m_done = false;
};

double heldBy(const IntraOperatorProblem::Row& row, const std::vector<int>& pick)
{
    double sum = 0;
    for (const auto& [op, memory] : row.memory)
        sum += memory[static_cast<std::size_t>(pick[static_cast<std::size_t>(op)])];
    return sum;
}

// Rows' sums are compared with the cap with this much of slack, as CBC does.
double slackOf(double cap) { return 1e-9 * std::max(1.0, std::abs(cap)); }

bool fits(const IntraOperatorProblem& problem, const std::vector<int>& pick)
{
    return std::all_of(problem.rows.begin(), problem.rows.end(),
                       [&](const auto& row) { return heldBy(row, pick) <= problem.cap + slackOf(problem.cap); });
}

// Choices in the order of elimination, backwards; what the rest costs at least is known exactly but for the memory rows.
class MemorySearch {
public:
    MemorySearch(const IntraOperatorProblem& problem, const Elimination& elimination, const Progress& progress)
        : m_problem(problem), m_elimination(elimination), m_progress(progress), m_pick(problem.cost.size(), 0),
          m_uses(problem.cost.size())
    {
        for (std::size_t row = 0; row < problem.rows.size(); ++row) {
            double sum = 0;
            for (const auto& [op, memory] : problem.rows[row].memory) {
                const double least = *std::min_element(memory.begin(), memory.end());
                sum += least;
                auto more = memory;
                for (double& one : more) one -= least;
                m_uses[static_cast<std::size_t>(op)].push_back({row, std::move(more)});
            }
            m_held.push_back(sum);
            m_possible = m_possible && sum <= problem.cap + slackOf(problem.cap);
        }
        if (m_possible) search(elimination.buckets().size(), elimination.least());
    }
    bool possible() const { return m_possible; } // each row by itself
    bool cut() const { return m_cut; }
    const std::optional<std::vector<int>>& best() const { return m_best; }

private:
    struct Use {
        std::size_t row;
        std::vector<double> more; // by strategy, than the least
    };

    void search(std::size_t left, double bound)
    {
        if (m_cut || (m_best && bound >= m_cost - slackOf(m_cost))) return;
        if (++m_nodes > mostSearchNodes || (m_nodes % 4096 == 0 && m_progress.cancelled())) {
            m_cut = true;
            return;
        }
        if (left == 0) {
            m_best = m_pick;
            m_cost = bound;
            return;
        }
        const auto& bucket = m_elimination.buckets()[left - 1];
        const std::size_t place = m_elimination.placeOf(bucket, m_pick),
                          n = bucket.table.cost.size() / bucket.best.size();
        const auto op = static_cast<std::size_t>(bucket.op);
        std::vector<std::size_t> order(n);
        std::iota(order.begin(), order.end(), 0);
        const double* costs = &bucket.table.cost[place * n];
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return costs[a] < costs[b]; });
        for (const std::size_t choice : order) {
            bool room = std::isfinite(costs[choice]);
            for (const Use& use : m_uses[op]) m_held[use.row] += use.more[choice];
            for (const Use& use : m_uses[op]) room = room && m_held[use.row] <= m_problem.cap + slackOf(m_problem.cap);
            m_pick[op] = static_cast<int>(choice);
            if (room) search(left - 1, bound + costs[choice] - bucket.best[place]);
            for (const Use& use : m_uses[op]) m_held[use.row] -= use.more[choice];
        }
    }

    const IntraOperatorProblem& m_problem;
    const Elimination& m_elimination;
    const Progress& m_progress;
    std::vector<int> m_pick;
    std::vector<std::vector<Use>> m_uses; // by operator
    std::vector<double> m_held;           // by row, at least
    std::optional<std::vector<int>> m_best;
    double m_cost = infinite;
    std::int64_t m_nodes = 0;
    bool m_cut = false, m_possible = true;
};

// One column for each strategy of an operator, and for each pair of an edge.
Result<std::optional<std::vector<int>>> byInteger(const IntraOperatorProblem& problem, bool& proven)
{
    IntegerProgram program;
    std::vector<int> first;
    for (const auto& costs : problem.cost) {
        first.push_back(static_cast<int>(program.cost.size()));
        IntegerProgram::Row one{1, 1, {}};
        for (std::size_t s = 0; s < costs.size(); ++s) {
            one.terms.emplace_back(static_cast<int>(program.cost.size()), 1.0);
            program.cost.push_back(costs[s]);
            program.whole.push_back(true);
        }
        program.rows.push_back(std::move(one));
    }
    for (const auto& edge : problem.edges) {
        if (std::all_of(edge.cost.begin(), edge.cost.end(), [](double cost) { return cost == 0; })) continue;
        const auto n = problem.cost[static_cast<std::size_t>(edge.from)].size();
        const auto m = problem.cost[static_cast<std::size_t>(edge.to)].size();
        std::vector<IntegerProgram::Row> from(n), to(m);
        for (std::size_t x = 0; x < n; ++x)
            from[x].terms.emplace_back(first[static_cast<std::size_t>(edge.from)] + static_cast<int>(x), -1.0);
        for (std::size_t y = 0; y < m; ++y)
            to[y].terms.emplace_back(first[static_cast<std::size_t>(edge.to)] + static_cast<int>(y), -1.0);
        for (std::size_t x = 0; x < n; ++x)
            for (std::size_t y = 0; y < m; ++y) {
                if (!std::isfinite(edge.cost[x * m + y])) continue;
                const auto column = static_cast<int>(program.cost.size());
                program.cost.push_back(edge.cost[x * m + y]);
                program.whole.push_back(false);
                from[x].terms.emplace_back(column, 1.0);
                to[y].terms.emplace_back(column, 1.0);
            }
        program.rows.insert(program.rows.end(), from.begin(), from.end());
        program.rows.insert(program.rows.end(), to.begin(), to.end());
    }
    for (const auto& row : problem.rows) {
        IntegerProgram::Row held{-infinite, problem.cap, {}};
        for (const auto& [op, memory] : row.memory)
            for (std::size_t s = 0; s < memory.size(); ++s)
                if (memory[s] != 0)
                    held.terms.emplace_back(first[static_cast<std::size_t>(op)] + static_cast<int>(s), memory[s]);
        program.rows.push_back(std::move(held));
    }
    STAGEWRIGHT_TRY(const auto solution, solveInteger(program, solverSeconds));
    if (!solution) return std::nullopt;
    proven = solution->proven;
    std::vector<int> pick;
    for (std::size_t op = 0; op < problem.cost.size(); ++op) {
        const auto from = solution->values.begin() + first[op];
        pick.push_back(static_cast<int>(
            std::max_element(from, from + static_cast<std::ptrdiff_t>(problem.cost[op].size())) - from));
    }
    return pick;
}

Result<void> check(const IntraOperatorProblem& problem)
{
    const auto wrong = [](std::string what) { return fail(ErrorCode::Usage, std::move(what), "see docs/planners.md"); };
    if (problem.cost.empty() || problem.cost.size() > 2000)
        return wrong(fmt::format("{} operators; 1 to 2000 are possible", problem.cost.size()));
    const auto known = [&](int op) { return op >= 0 && static_cast<std::size_t>(op) < problem.cost.size(); };
    const auto number = [](double value) { return std::isfinite(value) && std::abs(value) <= 1e15; };
    for (std::size_t op = 0; op < problem.cost.size(); ++op) {
        if (problem.cost[op].empty() || problem.cost[op].size() > 1000)
            return wrong(
                fmt::format("operator {} has {} strategies; 1 to 1000 are possible", op, problem.cost[op].size()));
        if (!std::all_of(problem.cost[op].begin(), problem.cost[op].end(), number))
            return wrong(fmt::format("operator {}: a cost is not a number up to 10^15", op));
    }
    for (const auto& edge : problem.edges) {
        if (!known(edge.from) || !known(edge.to) || edge.from == edge.to)
            return wrong(fmt::format("edge {} → {}: two different operators of {} are expected", edge.from, edge.to,
                                     problem.cost.size()));
        const std::size_t pairs = problem.cost[static_cast<std::size_t>(edge.from)].size() *
                                  problem.cost[static_cast<std::size_t>(edge.to)].size();
        if (edge.cost.size() != pairs)
            return wrong(fmt::format("edge {} → {} has {} costs for {} pairs of strategies", edge.from, edge.to,
                                     edge.cost.size(), pairs));
        for (const double cost : edge.cost)
            if (!number(cost) && cost != infinite)
                return wrong(fmt::format("edge {} → {}: a cost is not a number up to 10^15", edge.from, edge.to));
    }
    for (std::size_t row = 0; row < problem.rows.size(); ++row)
        for (const auto& [op, memory] : problem.rows[row].memory) {
            if (!known(op) || memory.size() != problem.cost[static_cast<std::size_t>(op)].size())
                return wrong(fmt::format("memory row {}: operator {} with {} sizes is not in the graph", row, op,
                                         memory.size()));
            for (const double size : memory)
                if (!number(size) || size < 0)
                    return wrong(fmt::format("memory row {}: a size of operator {} is not 0 to 10^15", row, op));
        }
    return {};
}

} // namespace

double costOf(const IntraOperatorProblem& problem, const std::vector<int>& pick)
{
    double sum = 0;
    const auto chosen = [&](int op) { return static_cast<std::size_t>(pick[static_cast<std::size_t>(op)]); };
    for (std::size_t op = 0; op < pick.size(); ++op) sum += problem.cost[op][static_cast<std::size_t>(pick[op])];
    for (const auto& edge : problem.edges)
        sum += edge.cost[chosen(edge.from) * problem.cost[static_cast<std::size_t>(edge.to)].size() + chosen(edge.to)];
    return sum;
}

Result<std::optional<IntraOperatorPlan>> planIntraOperator(const IntraOperatorProblem& problem,
                                                           const Progress& progress, bool solver)
{
    STAGEWRIGHT_CHECK(check(problem));
    const Elimination elimination(problem);
    IntraOperatorPlan out;
    if (elimination.done()) {
        out.bound = elimination.least();
        if (!std::isfinite(out.bound)) return std::nullopt;
        out.pick = elimination.pick();
        out.method = "elimination";
        if (!fits(problem, out.pick)) {
            const MemorySearch search(problem, elimination, progress);
            if (progress.cancelled()) return fail(ErrorCode::Cancelled, "interrupted");
            if (!search.possible() || (!search.best() && !search.cut())) return std::nullopt;
            out.method = "search";
            out.proven = !search.cut();
            out.pick = search.best().value_or(std::vector<int>());
        }
    }
    if (!elimination.done() || !out.proven) {
        bool proven = false;
        if (solver && hasIntegerSolver()) {
            STAGEWRIGHT_TRY(const auto pick, byInteger(problem, proven));
            if (!pick) return std::nullopt;
            out.pick = *pick;
            out.proven = proven;
            out.method = integerSolver();
        } else if (out.pick.empty()) {
            return fail(ErrorCode::Unavailable,
                        fmt::format("{} operators with {} memory rows need COIN-OR CBC, which is not there",
                                    problem.cost.size(), problem.rows.size()),
                        "apt-get install coinor-libcbc3");
        }
    }
    out.cost = costOf(problem, out.pick);
    return out;
}

Result<PerceptronPlan> planPerceptron(const PerceptronProblem& problem)
{
    for (const double size : {problem.tokens, problem.hidden, problem.inner, problem.devices, problem.bytes})
        if (!(size >= 1 && size <= 1e9))
            return fail(ErrorCode::Usage, fmt::format("b, h, f, n and bytes are 1 to 10^9, not {}", size),
                        "see docs/planners.md");
    for (const double cost : {problem.alpha, problem.beta, problem.operation})
        if (!(cost >= 0 && cost <= 1e15))
            return fail(ErrorCode::Usage, fmt::format("alpha, beta and flop_cost are 0 to 10^15, not {}", cost),
                        "see docs/planners.md");
    enum Cut {
        Tokens,
        Features,
        Whole,
    };
    struct Strategy {
        std::string_view name;
        Cut in, out; // how its input and its output are cut
    };
    constexpr std::array<Strategy, 4> strategies{{{"batch", Tokens, Tokens},
                                                  {"column", Whole, Features},
                                                  {"replicated", Whole, Whole},
                                                  {"row", Features, Whole}}};
    const double n = problem.devices, share = (n - 1) / n;
    const auto gather = [&](double numbers) {
        return n == 1 ? 0 : problem.alpha + problem.beta * share * numbers * problem.bytes;
    };
    const auto reduce = [&](double numbers) {
        return n == 1 ? 0 : problem.alpha + problem.beta * 2 * share * numbers * problem.bytes;
    };
    const auto exchange = [&](double numbers) {
        return n == 1 ? 0 : problem.alpha + problem.beta * share / n * numbers * problem.bytes;
    };
    const double wide = problem.tokens * problem.inner, narrow = problem.tokens * problem.hidden;
    const double products = 3 * narrow * problem.inner * problem.operation; // of a layer, forward and backward
    const auto layer = [&](const Strategy& one, double in, double out) {
        if (one.name == "replicated") return products;
        return products / n + reduce(one.name == "batch"    ? problem.hidden * problem.inner
                                     : one.name == "column" ? in
                                                            : out);
    };
    // The activation forward, its gradient backward.
    const auto between = [&](Cut from, Cut to) {
        if (from == to) return 0.0;
        if (from == Whole || to == Whole) return gather(wide);
        return 2 * exchange(wide);
    };
    IntraOperatorProblem graph;
    graph.cost.resize(2);
    graph.edges.push_back({0, 1, {}});
    for (const Strategy& one : strategies) {
        graph.cost[0].push_back(layer(one, narrow, wide));
        graph.cost[1].push_back(layer(one, wide, narrow));
        for (const Strategy& other : strategies) graph.edges[0].cost.push_back(between(one.out, other.in));
    }
    PerceptronPlan out{Elimination(graph).least(), {}};
    for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b)
            if (costOf(graph, {a, b}) <= out.cost + slackOf(out.cost))
                out.choices.emplace_back(strategies[static_cast<std::size_t>(a)].name,
                                         strategies[static_cast<std::size_t>(b)].name);
    return out;
}

} // namespace stagewright
