#include "schedules/planner/inter_operator.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

namespace stagewright {

namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max() / 4;

// The least sum of stages for layers from `first` on with so many devices left, of so many stages, and how many plans have
// it; every stage takes `most` or less.
struct Cell {
    std::int64_t sum = never;
    std::int64_t plans = 0;
    int option = -1;
};

class Stages {
public:
    explicit Stages(const InterOperatorProblem& problem)
        : m_problem(problem), m_from(static_cast<std::size_t>(problem.layers))
    {
        for (std::size_t i = 0; i < problem.options.size(); ++i)
            m_from[static_cast<std::size_t>(problem.options[i].first)].push_back(static_cast<int>(i));
    }

    // Fills the table for stages of at most this time.
    void fill(std::int64_t most)
    {
        const int layers = m_problem.layers, devices = m_problem.hosts * m_problem.perHost;
        const int stages = std::min(layers, devices);
        m_cells.assign(static_cast<std::size_t>(stages + 1) * (layers + 1) * (devices + 1), Cell());
        at(0, layers, 0) = {0, 1, -1};
        for (int count = 1; count <= stages; ++count)
            for (int first = layers - 1; first >= 0; --first)
                for (const int option : m_from[static_cast<std::size_t>(first)]) {
                    const StageOption& stage = m_problem.options[static_cast<std::size_t>(option)];
                    if (stage.time > most || stage.successors < count - 1) continue;
                    const int needs = m_problem.submeshes[static_cast<std::size_t>(stage.submesh)].devices();
                    for (int left = needs; left <= devices; ++left) {
                        const Cell& rest = at(count - 1, stage.last + 1, left - needs);
                        if (rest.sum >= never) continue;
                        Cell& cell = at(count, first, left);
                        const std::int64_t sum = rest.sum + stage.time;
                        if (sum < cell.sum) cell = {sum, 0, option};
                        if (sum == cell.sum) cell.plans += rest.plans;
                    }
                }
    }

    Cell& at(int count, int first, int left)
    {
        const int layers = m_problem.layers, devices = m_problem.hosts * m_problem.perHost;
        return m_cells[(static_cast<std::size_t>(count) * (layers + 1) + first) * (devices + 1) + left];
    }

    std::vector<StageOption> planOf(int count)
    {
        std::vector<StageOption> out;
        int first = 0, left = m_problem.hosts * m_problem.perHost;
        for (; count > 0; --count) {
            const StageOption& stage = m_problem.options[static_cast<std::size_t>(at(count, first, left).option)];
            out.push_back(stage);
            first = stage.last + 1;
            left -= m_problem.submeshes[static_cast<std::size_t>(stage.submesh)].devices();
        }
        return out;
    }

private:
    const InterOperatorProblem& m_problem;
    std::vector<std::vector<int>> m_from; // options by first layer
    std::vector<Cell> m_cells;
};

// The fewest boundaries that leave a host: stages on whole hosts always do, the others are put into hosts in every way that
// differs, hosts with as much room left being alike.
class Hosts {
public:
    Hosts(const InterOperatorProblem& problem, const std::vector<StageOption>& stages) : m_problem(problem)
    {
        for (const StageOption& stage : stages)
            m_meshes.push_back(problem.submeshes[static_cast<std::size_t>(stage.submesh)]);
    }

    int fewest()
    {
        return from(0, std::vector<int>(static_cast<std::size_t>(m_problem.hosts), m_problem.perHost), 0, true);
    }

    // The devices of each stage, in one of the placements with fewest crossings.
    std::vector<std::vector<int>> devices()
    {
        std::vector<std::vector<int>> out;
        std::vector<int> room(static_cast<std::size_t>(m_problem.hosts), m_problem.perHost);
        std::size_t current = room.size(); // none
        for (std::size_t stage = 0; stage < m_meshes.size(); ++stage) {
            const bool apart = current == room.size();
            const int least = from(stage, room, apart ? 0 : room[current], apart);
            if (least >= nowhere) return {};
            const Submesh& mesh = m_meshes[stage];
            auto& own = out.emplace_back();
            const auto take = [&](std::size_t host, int count) {
                for (int k = 0; k < count; ++k)
                    own.push_back(static_cast<int>(host) * m_problem.perHost + m_problem.perHost - room[host] + k);
                room[host] -= count;
            };
            if (mesh.hosts > 1 || mesh.perHost == m_problem.perHost) {
                int taken = 0;
                for (std::size_t host = 0; host < room.size() && taken < mesh.hosts; ++host)
                    if (room[host] == m_problem.perHost) take(host, mesh.perHost), ++taken;
                current = room.size();
                continue;
            }
            std::size_t chosen = room.size();
            for (std::size_t host = 0; host < room.size() && chosen == room.size(); ++host) {
                if (room[host] < mesh.perHost) continue;
                auto rest = room;
                rest[host] -= mesh.perHost;
                const int left = rest[host], boundary = stage > 0 && host != current ? 1 : 0;
                if (boundary + from(stage + 1, std::move(rest), left, false) == least) chosen = host;
            }
            take(chosen, mesh.perHost);
            current = chosen;
        }
        return out;
    }

private:
    // current: the room that the host of the stage before has left; apart: no stage can share its host
    int from(std::size_t stage, std::vector<int> room, int current, bool apart)
    {
        if (stage == m_meshes.size()) return 0;
        std::sort(room.begin(), room.end());
        const auto key = std::tuple(stage, room, apart ? -1 : current);
        if (const auto known = m_known.find(key); known != m_known.end()) return known->second;
        const int boundary = stage > 0 ? 1 : 0;
        const Submesh& mesh = m_meshes[stage];
        int best = nowhere;
        if (mesh.hosts > 1 || mesh.perHost == m_problem.perHost) {
            auto rest = room;
            int taken = 0;
            for (auto& one : rest)
                if (one == m_problem.perHost && taken < mesh.hosts) one = 0, ++taken;
            if (taken == mesh.hosts) best = boundary + from(stage + 1, rest, 0, true);
        } else {
            if (!apart && current >= mesh.perHost) {
                auto rest = room;
                *std::find(rest.begin(), rest.end(), current) -= mesh.perHost;
                best = from(stage + 1, rest, current - mesh.perHost, false);
            }
            std::set<int> tried;
            for (const int one : room) {
                if (one < mesh.perHost || !tried.insert(one).second) continue;
                auto rest = room;
                *std::find(rest.begin(), rest.end(), one) -= mesh.perHost;
                best = std::min(best, boundary + from(stage + 1, rest, one - mesh.perHost, false));
            }
        }
        return m_known[key] = best;
    }

    static constexpr int nowhere = 1 << 20; // no placement

    const InterOperatorProblem& m_problem;
    std::vector<Submesh> m_meshes;
    std::map<std::tuple<std::size_t, std::vector<int>, int>, int> m_known;
};

Result<void> check(const InterOperatorProblem& problem)
{
    const auto wrong = [](std::string what) { return fail(ErrorCode::Usage, std::move(what), "see docs/planners.md"); };
    if (problem.layers < 1 || problem.layers > 512 || problem.hosts < 1 || problem.perHost < 1 ||
        problem.hosts > 4096 / problem.perHost || problem.microbatches < 1 || problem.microbatches > 1'000'000)
        return wrong("layers are 1 to 512, devices 1 to 4096, microbatches 1 to 1000000");
    for (const Submesh& mesh : problem.submeshes)
        if (mesh.hosts < 1 || mesh.perHost < 1 || mesh.hosts > problem.hosts || mesh.perHost > problem.perHost ||
            (mesh.hosts > 1 && mesh.perHost != problem.perHost))
            return wrong(fmt::format("submesh {} × {} is not in the cluster", mesh.hosts, mesh.perHost));
    for (const StageOption& one : problem.options)
        if (one.first < 0 || one.last < one.first || one.last >= problem.layers || one.submesh < 0 ||
            one.submesh >= static_cast<int>(problem.submeshes.size()) || one.time < 0 ||
            one.time > (1LL << 60) / (problem.microbatches + 512)) // whose sums can be counted
            return wrong(fmt::format("a stage of layers {} to {} on submesh {} is not possible", one.first, one.last,
                                     one.submesh));
    return {};
}

} // namespace

Result<std::optional<InterOperatorPlan>> planInterOperator(const InterOperatorProblem& problem,
                                                           const Progress& progress)
{
    STAGEWRIGHT_CHECK(check(problem));
    std::set<std::int64_t> times;
    for (const StageOption& one : problem.options) times.insert(one.time);
    // With one microbatch only the sum counts. With more, a plan that is best under a limit has a stage as slow as that: with a
    // faster one it would be better still. So no plan counts twice.
    if (problem.microbatches == 1 && !times.empty()) times = {*times.rbegin()};
    Stages stages(problem);
    std::optional<InterOperatorPlan> best;
    const int devices = problem.hosts * problem.perHost;
    std::int64_t done = 0;
    for (const std::int64_t most : times) {
        if (progress.cancelled()) return fail(ErrorCode::Cancelled, "interrupted");
        progress.tell("slowest stages", done++, static_cast<std::int64_t>(times.size()));
        if (best && most * (problem.microbatches - 1) > best->time) break; // the others are slower still
        stages.fill(most);
        for (int count = 1; count <= std::min(problem.layers, devices); ++count) {
            const Cell& cell = stages.at(count, 0, devices);
            if (cell.sum >= never) continue;
            const std::int64_t time = cell.sum + (problem.microbatches - 1) * most;
            if (best && time > best->time) continue;
            if (!best || time < best->time) best = InterOperatorPlan{time, stages.planOf(count), 0, 0, {}};
            best->plans += cell.plans;
        }
    }
    if (best) {
        Hosts hosts(problem, best->stages);
        best->crossings = hosts.fewest();
        best->devices = hosts.devices();
    }
    return best;
}

} // namespace stagewright
