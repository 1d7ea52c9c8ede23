#include "schedules/planner/mesh_resharding.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string_view>

#include <fmt/format.h>

namespace stagewright {

namespace {

constexpr std::int64_t mostChoices = 30'000'000;
constexpr int mostHosts = 16, mostPerHost = 64, mostTasks = 1024, mostDimensions = 8;
constexpr std::int64_t mostElements = std::int64_t(1) << 48;

Result<void> check(const DeviceMesh& mesh, const std::vector<std::vector<int>>& layout, std::size_t dimensions,
                   std::string_view name)
{
    if (mesh.hosts < 1 || mesh.hosts > mostHosts || mesh.perHost < 1 || mesh.perHost > mostPerHost)
        return fail(ErrorCode::Usage,
                    fmt::format("{} has {} hosts of {} devices; up to {} of {} are possible", name, mesh.hosts,
                                mesh.perHost, mostHosts, mostPerHost),
                    "choose a smaller mesh");
    if (layout.size() != dimensions)
        return fail(ErrorCode::Usage,
                    fmt::format("{}_layout has {} lists for {} dimensions", name, layout.size(), dimensions),
                    "give each dimension the axes that cut it, [] for none");
    std::array<bool, 2> used{};
    for (const auto& axes : layout)
        for (const int axis : axes) {
            if (axis < 0 || axis > 1 || used[static_cast<std::size_t>(axis)])
                return fail(ErrorCode::Usage,
                            axis < 0 || axis > 1 ? fmt::format("{}_layout: there is no axis {}", name, axis)
                                                 : fmt::format("{}_layout: axis {} cuts twice", name, axis),
                            "axes are 0, the hosts, and 1, the devices of a host; each cuts once");
            used[static_cast<std::size_t>(axis)] = true;
        }
    return {};
}

int extentOf(const DeviceMesh& mesh, int axis) { return axis == 0 ? mesh.hosts : mesh.perHost; }

// Where a dimension is cut, both ends included.
std::vector<std::int64_t> cutsOf(std::int64_t size, const std::vector<int>& axes, const DeviceMesh& mesh)
{
    std::int64_t parts = 1;
    for (const int axis : axes) parts *= extentOf(mesh, axis);
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i <= parts; ++i) out.push_back(i * size / parts);
    return out;
}

// How many devices of each host have the cell.
std::vector<int> holdersOf(const UnitTask& cell, const std::vector<std::vector<std::int64_t>>& cuts,
                           const std::vector<std::vector<int>>& layout, const DeviceMesh& mesh)
{
    std::vector<int> out(static_cast<std::size_t>(mesh.hosts), 0);
    for (int host = 0; host < mesh.hosts; ++host)
        for (int device = 0; device < mesh.perHost; ++device) {
            bool all = true;
            for (std::size_t d = 0; all && d < layout.size(); ++d) {
                std::size_t part = 0;
                for (const int axis : layout[d])
                    part = part * static_cast<std::size_t>(extentOf(mesh, axis)) +
                           static_cast<std::size_t>(axis == 0 ? host : device);
                all = cuts[d][part] <= cell.first[d] && cell.first[d] + cell.size[d] <= cuts[d][part + 1];
            }
            out[static_cast<std::size_t>(host)] += all ? 1 : 0;
        }
    return out;
}

std::vector<UnitTask> tasksOf(const ReshardingProblem& problem)
{
    const std::size_t dimensions = problem.shape.size();
    std::vector<std::vector<std::int64_t>> from, to, both;
    for (std::size_t d = 0; d < dimensions; ++d) {
        from.push_back(cutsOf(problem.shape[d], problem.fromLayout[d], problem.from));
        to.push_back(cutsOf(problem.shape[d], problem.toLayout[d], problem.to));
        std::vector<std::int64_t> all;
        std::merge(from[d].begin(), from[d].end(), to[d].begin(), to[d].end(), std::back_inserter(all));
        all.erase(std::unique(all.begin(), all.end()), all.end());
        both.push_back(std::move(all));
    }
    std::vector<UnitTask> out;
    std::vector<std::size_t> at(dimensions, 0);
    for (bool more = true; more;) {
        UnitTask cell;
        cell.elements = 1;
        for (std::size_t d = 0; d < dimensions; ++d) {
            cell.first.push_back(both[d][at[d]]);
            cell.size.push_back(both[d][at[d] + 1] - both[d][at[d]]);
            cell.elements *= cell.size[d];
        }
        const auto senders = holdersOf(cell, from, problem.fromLayout, problem.from);
        for (std::size_t host = 0; host < senders.size(); ++host)
            if (senders[host] > 0) cell.senders.push_back(static_cast<int>(host));
        const auto receivers = holdersOf(cell, to, problem.toLayout, problem.to);
        for (std::size_t host = 0; host < receivers.size(); ++host)
            if (receivers[host] > 0) {
                cell.receivers.push_back(static_cast<int>(host));
                cell.devices.push_back(receivers[host]);
            }
        out.push_back(std::move(cell));
        if (out.size() > mostTasks) return out;
        more = false;
        for (std::size_t d = dimensions; d-- > 0 && !more;) {
            more = ++at[d] + 1 < both[d].size();
            if (!more) at[d] = 0;
        }
    }
    return out;
}

bool less(const Fraction& a, const Fraction& b) { return a.numerator * b.denominator < b.numerator * a.denominator; }

// The least that the busiest sender can send: of all sets of hosts the largest share of what only they can send.
Fraction busiestSender(const std::vector<UnitTask>& tasks, int hosts, const std::vector<std::int64_t>& weights)
{
    std::vector<std::int64_t> only(std::size_t(1) << hosts, 0);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        std::size_t set = 0;
        for (const int host : tasks[i].senders) set |= std::size_t(1) << host;
        only[set] += weights[i];
    }
    for (int host = 0; host < hosts; ++host) // sums over subsets
        for (std::size_t set = 0; set < only.size(); ++set)
            if ((set >> host & 1U) != 0) only[set] += only[set ^ (std::size_t(1) << host)];
    Fraction out;
    for (std::size_t set = 1; set < only.size(); ++set)
        if (const Fraction share{only[set], std::popcount(set)}; less(out, share)) out = share;
    return out;
}

// The busiest card of either side, with copies for each device or one for each host.
Fraction copies(const std::vector<UnitTask>& tasks, const ReshardingProblem& problem, bool eachDevice, bool sendOnce)
{
    std::vector<std::int64_t> in(static_cast<std::size_t>(problem.to.hosts), 0), out;
    for (const UnitTask& task : tasks) {
        std::int64_t all = 0;
        for (std::size_t i = 0; i < task.receivers.size(); ++i) {
            const std::int64_t count = eachDevice ? task.devices[i] : 1;
            in[static_cast<std::size_t>(task.receivers[i])] += task.elements * count;
            all += count;
        }
        out.push_back(task.elements * (sendOnce ? 1 : all));
    }
    const Fraction receiver{*std::max_element(in.begin(), in.end()), 1};
    const Fraction sender = busiestSender(tasks, problem.from.hosts, out);
    return less(receiver, sender) ? sender : receiver;
}

// Tasks one after the other, each at the first time at which its sender and all its receivers are free.
class Cards {
public:
    explicit Cards(const ReshardingProblem& problem)
        : m_out(static_cast<std::size_t>(problem.from.hosts), 0), m_in(static_cast<std::size_t>(problem.to.hosts), 0)
    {
    }
    std::int64_t startOf(const UnitTask& task, int sender) const
    {
        std::int64_t start = m_out[static_cast<std::size_t>(sender)];
        for (const int host : task.receivers) start = std::max(start, m_in[static_cast<std::size_t>(host)]);
        return start;
    }
    void take(const UnitTask& task, int sender, std::int64_t end)
    {
        m_out[static_cast<std::size_t>(sender)] = end;
        for (const int host : task.receivers) m_in[static_cast<std::size_t>(host)] = end;
    }
    const std::vector<std::int64_t>& out() const { return m_out; }
    const std::vector<std::int64_t>& in() const { return m_in; }

private:
    std::vector<std::int64_t> m_out, m_in;
};

std::int64_t endOf(const std::vector<PlacedTask>& placed)
{
    std::int64_t end = 0;
    for (const PlacedTask& one : placed) end = std::max(end, one.end);
    return end;
}

std::vector<PlacedTask> inOrder(const std::vector<UnitTask>& tasks, const ReshardingProblem& problem)
{
    Cards cards(problem);
    std::vector<std::int64_t> sent(static_cast<std::size_t>(problem.from.hosts), 0);
    std::vector<PlacedTask> out;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        const auto& senders = tasks[i].senders;
        const int sender = *std::min_element(senders.begin(), senders.end(), [&](int a, int b) {
            return sent[static_cast<std::size_t>(a)] < sent[static_cast<std::size_t>(b)];
        });
        const std::int64_t start = cards.startOf(tasks[i], sender), end = start + tasks[i].elements;
        sent[static_cast<std::size_t>(sender)] += tasks[i].elements;
        cards.take(tasks[i], sender, end);
        out.push_back({static_cast<int>(i), sender, start, end});
    }
    return out;
}

// The task that can start first goes next, ties at random, larger ones more often first.
std::vector<PlacedTask> anyOrder(const std::vector<UnitTask>& tasks, const ReshardingProblem& problem,
                                 std::mt19937& random)
{
    Cards cards(problem);
    std::vector<std::size_t> left(tasks.size());
    std::iota(left.begin(), left.end(), 0);
    std::vector<PlacedTask> out;
    while (!left.empty()) {
        std::size_t best = 0;
        PlacedTask next{0, 0, std::numeric_limits<std::int64_t>::max(), 0};
        std::uint64_t rank = 0;
        for (std::size_t i = 0; i < left.size(); ++i)
            for (const int sender : tasks[left[i]].senders) {
                const std::int64_t start = cards.startOf(tasks[left[i]], sender);
                const std::uint64_t chance = static_cast<std::uint64_t>(tasks[left[i]].elements) * (random() % 1024);
                if (start > next.start || (start == next.start && chance <= rank)) continue;
                best = i, rank = chance;
                next = {static_cast<int>(left[i]), sender, start, start + tasks[left[i]].elements};
            }
        cards.take(tasks[left[best]], next.sender, next.end);
        out.push_back(next);
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
    }
    return out;
}

// All orders in which starts do not decrease.
class OrderSearch {
public:
    OrderSearch(const std::vector<UnitTask>& tasks, const ReshardingProblem& problem, std::int64_t bound,
                std::vector<PlacedTask> known, const Progress& progress)
        : m_tasks(tasks), m_bound(bound), m_progress(progress), m_best(std::move(known)), m_end(endOf(m_best)),
          m_left(tasks.size(), true), m_out(static_cast<std::size_t>(problem.from.hosts), 0),
          m_in(static_cast<std::size_t>(problem.to.hosts), 0)
    {
        for (const UnitTask& task : tasks) {
            m_all += task.elements;
            if (task.senders.size() == 1) m_out[static_cast<std::size_t>(task.senders[0])] += task.elements;
            for (const int host : task.receivers) m_in[static_cast<std::size_t>(host)] += task.elements;
        }
        search(Cards(problem), 0, 0);
    }
    bool proven() const { return m_end <= m_bound || !m_cut; }
    const std::vector<PlacedTask>& best() const { return m_best; }

private:
    bool hopeless(const Cards& cards) const
    {
        std::int64_t sum = m_all;
        for (std::size_t host = 0; host < m_out.size(); ++host) {
            sum += cards.out()[host];
            if (cards.out()[host] + m_out[host] >= m_end) return true;
        }
        for (std::size_t host = 0; host < m_in.size(); ++host)
            if (cards.in()[host] + m_in[host] >= m_end) return true;
        const auto hosts = static_cast<std::int64_t>(m_out.size());
        return (sum + hosts - 1) / hosts >= m_end;
    }
    void count(const UnitTask& task, std::int64_t by)
    {
        m_all += by * task.elements;
        if (task.senders.size() == 1) m_out[static_cast<std::size_t>(task.senders[0])] += by * task.elements;
        for (const int host : task.receivers) m_in[static_cast<std::size_t>(host)] += by * task.elements;
    }
    void search(const Cards& cards, std::int64_t last, std::size_t lastTask)
    {
        if (m_end <= m_bound || m_cut) return;
        if (m_tried > mostChoices || (++m_nodes % 4096 == 0 && m_progress.cancelled())) {
            m_cut = true;
            return;
        }
        if (m_placed.size() == m_tasks.size()) {
            if (const auto end = endOf(m_placed); end < m_end) m_best = m_placed, m_end = end;
            return;
        }
        if (hopeless(cards)) return;
        struct Choice {
            std::int64_t start;
            std::size_t task;
            int sender;
        };
        std::vector<Choice> choices;
        for (std::size_t i = 0; i < m_tasks.size(); ++i)
            if (m_left[i])
                for (const int sender : m_tasks[i].senders)
                    if (const auto start = cards.startOf(m_tasks[i], sender);
                        start > last || (start == last && i >= lastTask))
                        choices.push_back({start, i, sender});
        m_tried += static_cast<std::int64_t>(choices.size() + m_tasks.size());
        std::stable_sort(choices.begin(), choices.end(),
                         [](const Choice& a, const Choice& b) { return a.start < b.start; });
        for (const Choice& one : choices) {
            const UnitTask& task = m_tasks[one.task];
            Cards next = cards;
            next.take(task, one.sender, one.start + task.elements);
            m_left[one.task] = false;
            count(task, -1);
            m_placed.push_back({static_cast<int>(one.task), one.sender, one.start, one.start + task.elements});
            search(next, one.start, one.task);
            m_placed.pop_back();
            count(task, 1);
            m_left[one.task] = true;
        }
    }

    const std::vector<UnitTask>& m_tasks;
    std::int64_t m_bound;
    const Progress& m_progress;
    std::vector<PlacedTask> m_best, m_placed;
    std::int64_t m_end, m_all = 0;
    std::vector<bool> m_left;
    std::vector<std::int64_t> m_out, m_in; // what is left that only this host sends, and that it receives
    std::int64_t m_nodes = 0, m_tried = 0;
    bool m_cut = false;
};

// Senders such that none has more than `most` tasks; none: there are no such ones.
std::optional<std::vector<int>> sendersOf(const std::vector<UnitTask>& tasks, int hosts, std::size_t most)
{
    std::vector<std::vector<std::size_t>> has(static_cast<std::size_t>(hosts));
    std::vector<int> sender(tasks.size(), -1);
    std::vector<bool> seen;
    const auto give = [&](const auto& again, std::size_t task) -> bool {
        for (const int host : tasks[task].senders) {
            auto& mine = has[static_cast<std::size_t>(host)];
            if (seen[static_cast<std::size_t>(host)]) continue;
            seen[static_cast<std::size_t>(host)] = true;
            if (mine.size() < most) {
                mine.push_back(task);
                sender[task] = host;
                return true;
            }
            for (std::size_t& other : mine)
                if (const std::size_t moved = other; again(again, moved)) {
                    other = task;
                    sender[task] = host;
                    return true;
                }
        }
        return false;
    };
    for (std::size_t task = 0; task < tasks.size(); ++task) {
        seen.assign(static_cast<std::size_t>(hosts), false);
        if (!give(give, task)) return std::nullopt;
    }
    return sender;
}

// Equal tasks of one receiver each: the times are colours of a bipartite graph's edges, of which it needs no more than the
// most edges of a node (König).
std::vector<PlacedTask> coloured(const std::vector<UnitTask>& tasks, const ReshardingProblem& problem)
{
    std::vector<std::size_t> degree(static_cast<std::size_t>(problem.to.hosts), 0);
    for (const UnitTask& task : tasks) ++degree[static_cast<std::size_t>(task.receivers[0])];
    std::size_t most = 1;
    auto sender = sendersOf(tasks, problem.from.hosts, most);
    while (!sender) sender = sendersOf(tasks, problem.from.hosts, ++most);
    const std::size_t colours = std::max(most, *std::max_element(degree.begin(), degree.end()));
    constexpr int none = -1;
    const auto senders = static_cast<std::size_t>(problem.from.hosts);
    // By node, first the senders, and colour: the task.
    std::vector<std::vector<int>> at(senders + degree.size(), std::vector<int>(colours, none));
    std::vector<std::size_t> colour(tasks.size(), 0);
    const auto ends = [&](std::size_t task) {
        return std::pair{static_cast<std::size_t>((*sender)[task]),
                         senders + static_cast<std::size_t>(tasks[task].receivers[0])};
    };
    for (std::size_t task = 0; task < tasks.size(); ++task) {
        const auto [from, to] = ends(task);
        const auto free = [&](std::size_t node) {
            return static_cast<std::size_t>(std::find(at[node].begin(), at[node].end(), none) - at[node].begin());
        };
        const std::size_t a = free(from), b = free(to);
        // The receiver's path of edges in a and b alternately changes colours; it does not reach the sender.
        std::vector<std::size_t> path;
        for (std::size_t node = to, looked = a; at[node][looked] != none; looked = looked == a ? b : a) {
            path.push_back(static_cast<std::size_t>(at[node][looked]));
            const auto [x, y] = ends(path.back());
            node = node == x ? y : x;
        }
        for (const std::size_t one : path) {
            const auto [x, y] = ends(one);
            at[x][colour[one]] = at[y][colour[one]] = none;
        }
        for (const std::size_t one : path) {
            colour[one] = colour[one] == a ? b : a;
            const auto [x, y] = ends(one);
            at[x][colour[one]] = at[y][colour[one]] = static_cast<int>(one);
        }
        colour[task] = a;
        at[from][a] = at[to][a] = static_cast<int>(task);
    }
    std::vector<PlacedTask> out;
    for (std::size_t task = 0; task < tasks.size(); ++task) {
        const std::int64_t size = tasks[task].elements, start = static_cast<std::int64_t>(colour[task]) * size;
        out.push_back({static_cast<int>(task), (*sender)[task], start, start + size});
    }
    return out;
}

} // namespace

Result<ReshardingPlan> planResharding(const ReshardingProblem& problem, const Progress& progress)
{
    ReshardingPlan out;
    out.elements = 1;
    if (problem.shape.empty() || problem.shape.size() > mostDimensions)
        return fail(ErrorCode::Usage,
                    fmt::format("shape has {} dimensions; 1 to {} are possible", problem.shape.size(), mostDimensions),
                    "join dimensions that are not cut");
    for (const std::int64_t size : problem.shape) {
        if (size < 1 || size > mostElements / out.elements)
            return fail(ErrorCode::Usage, fmt::format("shape: {} is not a size, or the tensor is too large", size),
                        "choose a tensor of up to 2^48 elements");
        out.elements *= size;
    }
    STAGEWRIGHT_CHECK(check(problem.from, problem.fromLayout, problem.shape.size(), "src"));
    STAGEWRIGHT_CHECK(check(problem.to, problem.toLayout, problem.shape.size(), "dst"));
    auto made = tasksOf(problem);
    if (made.size() > mostTasks)
        return fail(ErrorCode::Usage, fmt::format("the layouts cut the tensor into more than {} tasks", mostTasks),
                    "cut it less");
    const std::int64_t elements = out.elements;
    STAGEWRIGHT_TRY(auto plan, planTasks(std::move(made), problem.from.hosts, problem.to.hosts, progress));
    plan.elements = elements;
    return plan;
}

Result<ReshardingPlan> planTasks(std::vector<UnitTask> known, int fromHosts, int toHosts, const Progress& progress)
{
    ReshardingPlan out;
    ReshardingProblem problem; // only its hosts count
    problem.from.hosts = fromHosts;
    problem.to.hosts = toHosts;
    out.tasks = std::move(known);
    const auto& tasks = out.tasks;
    out.sendReceive = copies(tasks, problem, true, false);
    out.oneCopy = copies(tasks, problem, false, false);
    out.bound = copies(tasks, problem, false, true);
    out.placed = inOrder(tasks, problem);
    out.balanced = endOf(out.placed);
    const std::int64_t bound = (out.bound.numerator + out.bound.denominator - 1) / out.bound.denominator;
    const bool equal = std::all_of(tasks.begin(), tasks.end(), [&](const UnitTask& task) {
        return task.elements == tasks[0].elements && task.receivers.size() == 1;
    });
    if (equal) {
        out.placed = coloured(tasks, problem);
        out.proven = true;
    } else {
        std::mt19937 random(1);
        const auto rounds = std::clamp<std::size_t>(10'000'000 / (tasks.size() * tasks.size()), 4, 400);
        for (std::size_t round = 0; round < rounds && endOf(out.placed) > bound && !progress.cancelled(); ++round)
            if (auto other = anyOrder(tasks, problem, random); endOf(other) < endOf(out.placed))
                out.placed = std::move(other);
        const OrderSearch search(tasks, problem, bound, std::move(out.placed), progress);
        out.placed = search.best();
        out.proven = search.proven();
    }
    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "interrupted");
    out.best = endOf(out.placed);
    std::stable_sort(out.placed.begin(), out.placed.end(),
                     [](const PlacedTask& a, const PlacedTask& b) { return a.start < b.start; });
    return out;
}

} // namespace stagewright
