#include "schedules/planner/pictures.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/planner/picture_parts.h"

namespace stagewright {

namespace {

// Equal layers on equal submeshes, the fastest of those that are possible.
std::optional<InterOperatorPlan> uniformStages(const InterOperatorProblem& problem)
{
    std::optional<InterOperatorPlan> best;
    const int devices = problem.hosts * problem.perHost;
    for (std::size_t mesh = 0; mesh < problem.submeshes.size(); ++mesh) {
        const int each = problem.submeshes[mesh].devices(), count = devices / each;
        if (devices % each != 0 || problem.layers % count != 0) continue;
        InterOperatorPlan plan;
        std::int64_t sum = 0, most = 0;
        for (int stage = 0; stage < count; ++stage) {
            const int first = stage * (problem.layers / count), last = first + problem.layers / count - 1;
            const StageOption* quickest = nullptr;
            for (const StageOption& one : problem.options)
                if (one.first == first && one.last == last && one.submesh == static_cast<int>(mesh) &&
                    one.successors >= count - 1 - stage && (quickest == nullptr || one.time < quickest->time))
                    quickest = &one;
            if (quickest == nullptr) break;
            plan.stages.push_back(*quickest);
            sum += quickest->time;
            most = std::max(most, quickest->time);
        }
        if (static_cast<int>(plan.stages.size()) < count) continue;
        plan.time = sum + (problem.microbatches - 1) * most;
        if (!best || plan.time < best->time) best = std::move(plan);
    }
    return best;
}

Plot stagesPlot(const InterOperatorProblem& problem, const InterOperatorPlan& plan, const std::string& title)
{
    Plot plot{"Layer", title + ": devices of each stage, and its time", {}};
    plot.across.least = 0;
    plot.across.most = problem.layers;
    plot.up.least = 0;
    plot.up.most = problem.hosts * problem.perHost;
    plot.up.downwards = true;
    std::int64_t slowest = 0;
    for (const StageOption& one : plan.stages) slowest = std::max(slowest, one.time);
    PlotSeries boxes{"", {}, PlotMark::Boxes};
    double device = 0;
    for (std::size_t stage = 0; stage < plan.stages.size(); ++stage) {
        const StageOption& one = plan.stages[stage];
        const Submesh& mesh = problem.submeshes[static_cast<std::size_t>(one.submesh)];
        const double next = device + mesh.devices();
        const bool slow = one.time == slowest;
        boxes.points.push_back(laneBox((device + next) / 2, one.first, one.last + 1, std::to_string(one.time),
                                       slow ? PlotInk{PlotHue::Critical} : partInk(stage % 2 == 0 ? 0 : 2),
                                       mesh.devices() / 2.0 - 0.04));
        plot.items.push_back(
            {static_cast<double>(one.first), one.last + 1.0, device, next,
             fmt::format("Stage {}: layers {} to {} on {} of {}, option {}, time {}{}; {} may follow.", stage,
                         one.first, one.last, counted(mesh.hosts, "host"), counted(mesh.perHost, "device"), one.option,
                         one.time, slow ? ", the slowest" : "", counted(one.successors, "stage")),
             static_cast<int>(stage), static_cast<int>(stage), static_cast<int>(stage)});
        device = next;
    }
    plot.series.push_back(std::move(boxes));
    for (int host = 1; host < problem.hosts; ++host)
        plot.rules.push_back(
            {static_cast<double>(host * problem.perHost), false, {}, {PlotHue::Secondary}, PlotDash::Dot});
    return plot;
}

std::int64_t mostSuccessors(const InterOperatorProblem& problem)
{
    std::int64_t most = std::numeric_limits<std::int64_t>::min();
    for (const StageOption& one : problem.options) most = std::max<std::int64_t>(most, one.successors);
    return most;
}

// Which constraint no choice of strategies keeps, and by how much; of several rows the one that lacks most.
std::string whyNoStrategies(const IntraOperatorProblem& problem)
{
    double lacks = 0, needs = 0;
    std::size_t where = 0;
    for (std::size_t row = 0; row < problem.rows.size(); ++row) {
        double least = 0;
        for (const auto& [op, bytes] : problem.rows[row].memory)
            least += bytes.empty() ? 0 : *std::min_element(bytes.begin(), bytes.end());
        if (least - problem.cap <= lacks) continue;
        lacks = least - problem.cap;
        needs = least;
        where = row;
    }
    if (lacks > 0)
        return fmt::format("No choice of strategies fits: memory row {} needs {} at least, {} more than the cap of {}.",
                           where, shortNumber(needs), shortNumber(lacks), shortNumber(problem.cap));
    for (const IntraOperatorProblem::Edge& edge : problem.edges)
        if (std::none_of(edge.cost.begin(), edge.cost.end(), [](double cost) { return std::isfinite(cost); }))
            return fmt::format("No strategies of operators {} and {} go together.", edge.from, edge.to);
    return "No choice of strategies keeps to all that goes together and to the memory, though each row by itself fits.";
}

} // namespace

PlannerPicture pictureOf(const InterOperatorProblem& problem, const std::optional<InterOperatorPlan>& plan)
{
    if (!plan) {
        std::string why = "No plan uses all devices within their memory.";
        const auto all = std::count_if(problem.options.begin(), problem.options.end(),
                                       [](const StageOption& one) { return one.successors < 0; });
        if (all > 0)
            why += fmt::format(" {} of {} more than a device has.", all,
                               problem.options.size() == 1 ? "1 stage needs"
                                                           : fmt::format("{} stages need", problem.options.size()));
        if (all > 0 && all == static_cast<std::ptrdiff_t>(problem.options.size()))
            why += fmt::format(" The nearest lacks room for {}.", counted(-mostSuccessors(problem), "microbatch"));
        return {why, nothingPlot("no plan")};
    }
    PlannerPicture out;
    out.sentence = fmt::format(
        "{} take {} for {}; {} between them {} a host.", counted(static_cast<long long>(plan->stages.size()), "stage"),
        plan->time, counted(problem.microbatches, "microbatch"),
        plan->crossings == 1 ? std::string("1 boundary") : fmt::format("{} boundaries", plan->crossings),
        plan->crossings == 1 ? "leaves" : "leave");
    out.plot = stagesPlot(problem, *plan, fmt::format("The plan: {}", plan->time));
    if (const auto uniform = uniformStages(problem)) {
        const double longer = static_cast<double>(uniform->time) / static_cast<double>(plan->time);
        out.sentence += fmt::format(" The best uniform stages take {}×.", shortNumber(longer, 2));
        out.plot.below.push_back(stagesPlot(
            problem, *uniform, fmt::format("Uniform stages: {}, {}×", uniform->time, shortNumber(longer, 2))));
        out.plot.share = 0.5;
        out.plot.below.front().share = 0.5;
        out.plot.tall = 1.6;
    }
    return out;
}

PlannerPicture pictureOf(const IntraOperatorProblem& problem, const std::optional<IntraOperatorPlan>& plan)
{
    if (!plan) return {whyNoStrategies(problem), nothingPlot("no plan")};
    PlannerPicture out;
    double edges = plan->cost;
    for (std::size_t op = 0; op < plan->pick.size(); ++op)
        edges -= problem.cost[op][static_cast<std::size_t>(plan->pick[op])];
    out.sentence = fmt::format("The operators cost {}, of which resharding between them is {}. Found by {}{}.",
                               shortNumber(plan->cost, 2), shortNumber(std::max(0.0, edges), 2), plan->method,
                               plan->proven ? ", proven" : ", not proven to be the least");
    if (plan->bound < plan->cost * (1 - 1e-9))
        out.sentence += fmt::format(" Without the memory's rows {} were possible.", shortNumber(plan->bound, 2));
    Plot& plot = out.plot;
    plot = {"Operator", "Strategy", {}};
    plot.legend = PlotLegend::None;
    plot.up.downwards = true;
    std::size_t most = 0;
    double dearest = 0;
    for (std::size_t op = 0; op < problem.cost.size(); ++op) {
        plot.across.names.push_back(std::to_string(op));
        most = std::max(most, problem.cost[op].size());
        for (const double cost : problem.cost[op])
            if (std::isfinite(cost)) dearest = std::max(dearest, cost);
    }
    for (std::size_t strategy = 0; strategy < most; ++strategy) plot.up.names.push_back(std::to_string(strategy));
    PlotSeries cells{"", {}, PlotMark::Cells}, path{"", {}, PlotMark::Line, PlotInk{PlotHue::Critical}};
    path.dash = PlotDash::Solid;
    path.dots = true;
    const bool few = problem.cost.size() <= 24;
    for (std::size_t op = 0; op < problem.cost.size(); ++op)
        for (std::size_t strategy = 0; strategy < problem.cost[op].size(); ++strategy) {
            const double cost = problem.cost[op][strategy];
            const auto x = static_cast<double>(op), y = static_cast<double>(strategy);
            PlotPoint point{x, y, few ? shortNumber(cost, cost < 100 ? 1 : 0) : ""};
            point.ink = PlotInk{PlotHue::Accent, static_cast<float>(0.08 + (dearest > 0 ? 0.62 * cost / dearest : 0))};
            cells.points.push_back(std::move(point));
            const bool picked = plan->pick[op] == static_cast<int>(strategy);
            plot.items.push_back(PlotItem::cell(static_cast<int>(op), static_cast<int>(strategy),
                                                fmt::format("Operator {}, strategy {}: {}{}.", op, strategy,
                                                            shortNumber(cost, 2), picked ? ", chosen" : ""),
                                                static_cast<int>(op)));
            if (picked) path.points.push_back({x, y + 0.3});
        }
    plot.series.push_back(std::move(cells));
    plot.series.push_back(std::move(path));
    return out;
}

PlannerPicture pictureOf(const PerceptronProblem& problem, const PerceptronPlan& plan)
{
    constexpr int around = 5; // powers of two to each side
    const auto nameOf = [](const PerceptronPlan& one) {
        std::string name;
        for (const auto& [first, second] : one.choices)
            name += (name.empty() ? "" : " or ") + (first == second ? first : first + " + " + second);
        return name;
    };
    PlannerPicture out;
    out.sentence =
        fmt::format("At {} tokens and an inner size of {} the least costs {}: {}. Tensor parallelism wins where "
                    "the tokens are fewer than the inner size.",
                    shortNumber(problem.tokens), shortNumber(problem.inner), shortNumber(plan.cost, 2), nameOf(plan));
    Plot& plot = out.plot;
    plot = {"Tokens, b", "Inner size, f", {}};
    plot.legend = PlotLegend::Right;
    std::map<std::string, PlotSeries> ways;
    for (int y = -around; y <= around; ++y)
        for (int x = -around; x <= around; ++x) {
            PerceptronProblem other = problem;
            other.tokens = problem.tokens * std::exp2(x);
            other.inner = problem.inner * std::exp2(y);
            if (y == -around) plot.across.names.push_back(shortNumber(other.tokens));
            if (x == -around) plot.up.names.push_back(shortNumber(other.inner));
            const auto answer = planPerceptron(other);
            if (!answer) continue;
            const std::string name = nameOf(*answer);
            PlotSeries& series = ways.try_emplace(name, PlotSeries{name, {}, PlotMark::Cells}).first->second;
            series.points.push_back(
                {static_cast<double>(x + around), static_cast<double>(y + around), x == 0 && y == 0 ? "here" : ""});
            plot.items.push_back(
                PlotItem::cell(x + around, y + around,
                               fmt::format("b = {}, f = {}: {} costs {}.", shortNumber(other.tokens),
                                           shortNumber(other.inner), name, shortNumber(answer->cost, 2))));
        }
    for (auto& [name, series] : ways) plot.series.push_back(std::move(series));
    return out;
}

PlannerPicture pictureOf(const ReshardingProblem& problem, const ReshardingPlan& plan)
{
    const auto whole = static_cast<double>(plan.elements);
    const auto shareOf = [&](const Fraction& part) {
        return static_cast<double>(part.numerator) / static_cast<double>(part.denominator) / whole;
    };
    PlannerPicture out;
    const double best = static_cast<double>(plan.best) / whole, bound = shareOf(plan.bound);
    out.sentence = fmt::format(
        "{} {} {} of what one network card takes for the tensor, {} with a copy for each device; {}.",
        counted(static_cast<long long>(plan.tasks.size()), "task"), plan.tasks.size() == 1 ? "takes" : "take",
        shortNumber(best), shortNumber(shareOf(plan.sendReceive)),
        plan.proven ? "no order of broadcasts is faster" : "the bound is " + shortNumber(bound));
    std::vector<std::string> rows;
    for (int host = 0; host < problem.from.hosts; ++host) rows.push_back(fmt::format("host {} out", host));
    for (int host = 0; host < problem.to.hosts; ++host)
        rows.push_back(fmt::format("host {} in", problem.from.hosts + host));
    Plot& plot = out.plot;
    plot = lanesPlot("Time, in that of the whole tensor over one card", std::move(rows));
    PlotSeries boxes{"", {}, PlotMark::Boxes};
    for (std::size_t i = 0; i < plan.placed.size(); ++i) {
        const PlacedTask& one = plan.placed[i];
        const UnitTask& task = plan.tasks[static_cast<std::size_t>(one.task)];
        const double from = static_cast<double>(one.start) / whole, to = static_cast<double>(one.end) / whole;
        const PlotInk ink = partInk(static_cast<std::size_t>(one.task)); // of one sender they follow each other
        const std::string text = fmt::format(
            "Task {}: {} elements from host {} to {}, from {} to {}.", one.task, task.elements, one.sender,
            task.receivers.size() == 1 ? "one host" : "hosts in a chain", shortNumber(from), shortNumber(to));
        std::vector<int> lanes{one.sender};
        for (const int receiver : task.receivers) lanes.push_back(problem.from.hosts + receiver);
        for (const int lane : lanes) {
            boxes.points.push_back(laneBox(lane, from, to, std::to_string(one.task), ink));
            plot.items.push_back(laneItem(lane, from, to, text, static_cast<int>(i), one.task));
        }
    }
    plot.series.push_back(std::move(boxes));
    Plot strategies{"Strategy", "Time", {}};
    strategies.across.names = {"a copy for each device", "one copy for each host", "broadcasts as they come",
                               "broadcasts in the best order"};
    PlotSeries bars{"", {}, PlotMark::Bars};
    const double times[] = {shareOf(plan.sendReceive), shareOf(plan.oneCopy),
                            static_cast<double>(plan.balanced) / whole, best};
    for (std::size_t i = 0; i < std::size(times); ++i) {
        bars.points.push_back(
            {static_cast<double>(i), times[i], {}, i == 3 ? PlotInk{PlotHue::Better} : PlotInk{PlotHue::Faint}});
        strategies.items.push_back(PlotItem::band(
            static_cast<double>(i) - 0.5, static_cast<double>(i) + 0.5,
            fmt::format("{}: {}.", strategies.across.names[i], shortNumber(times[i])), static_cast<int>(i)));
    }
    strategies.series.push_back(std::move(bars));
    strategies.rules.push_back({bound, false, "bound"});
    plot.share = 0.6;
    strategies.share = 0.4;
    plot.tall = 1.4;
    plot.below.push_back(std::move(strategies));
    return out;
}

PlannerPicture pictureOf(const LayerStrategyProblem& problem, const std::optional<LayerStrategyPlan>& plan)
{
    if (!plan) {
        std::int64_t least = 0;
        for (const auto& layer : problem.memory)
            if (!layer.empty()) least += *std::min_element(layer.begin(), layer.end());
        return {fmt::format("The layers need at least {}, {} more than the budget of {}.", least,
                            least - problem.budget, problem.budget),
                nothingPlot("nothing fits the budget")};
    }
    PlannerPicture out;
    out.sentence =
        fmt::format("The layers take {} in {} of {} memory; {} as fast.", plan->time, plan->memory, problem.budget,
                    plan->choices == 1 ? "no other choice is" : fmt::format("{} choices are", plan->choices));
    std::size_t strategies = 0;
    for (const auto& layer : problem.time) strategies = std::max(strategies, layer.size());
    Plot& plot = out.plot;
    plot = {"", "Time", {}};
    plot.across.hidden = true;
    Plot memory{"Layer", "Memory", {}};
    for (std::size_t layer = 0; layer < problem.time.size(); ++layer) {
        plot.across.names.push_back(std::to_string(layer));
        const auto pick = static_cast<std::size_t>(plan->strategies[layer]);
        plot.items.push_back(PlotItem::band(static_cast<double>(layer) - 0.5, static_cast<double>(layer) + 0.5,
                                            fmt::format("Layer {}: strategy {}, time {}, memory {}.", layer, pick,
                                                        problem.time[layer][pick], problem.memory[layer][pick]),
                                            static_cast<int>(layer), static_cast<int>(layer)));
    }
    memory.across.names = plot.across.names;
    for (auto* of : {&plot, &memory})
        for (std::size_t strategy = 0; strategy < strategies; ++strategy) {
            PlotSeries bars{
                of == &plot ? fmt::format("strategy {}", strategy) : "", {}, PlotMark::Bars, partInk(strategy)};
            for (std::size_t layer = 0; layer < problem.time.size(); ++layer)
                if (plan->strategies[layer] == static_cast<int>(strategy))
                    bars.points.push_back(
                        {static_cast<double>(layer),
                         static_cast<double>((of == &plot ? problem.time : problem.memory)[layer][strategy])});
            of->series.push_back(std::move(bars));
        }
    memory.legend = PlotLegend::None;
    plot.share = 0.55;
    memory.share = 0.45;
    plot.tall = 1.3;
    plot.below.push_back(std::move(memory));
    return out;
}

} // namespace stagewright
