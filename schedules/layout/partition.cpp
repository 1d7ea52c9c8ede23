#include "schedules/layout/partition.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/foreign_json.h"
#include "schedules/base/json_input.h"
#include "schedules/base/text.h"
#include "schedules/execute/simulate.h"
#include "schedules/heuristic/list_order.h"
#include "schedules/heuristic/random.h"
#include "schedules/layout/cluster.h"
#include "schedules/layout/parallelism.h"
#include "schedules/layout/partition_bound.h"
#include "schedules/library/registry.h"
#include "schedules/plan/plan.h"

namespace stagewright {

namespace {

constexpr int mostModelLayers = 10'000;
constexpr std::size_t searchedSchedules = 6; // of each number of chunks
constexpr std::size_t orderedDivisions = 4;
constexpr double opsPerSecond = 4e6;      // about so many ops are simulated
constexpr double stepsPerSecond = 2e8;    // of the search of the bound
constexpr int kickedBounds = 3;           // that move at random before bounds are improved again, at most
constexpr Nanos overCap = Nanos(1) << 60; // steps of divisions over the cap are above all others
using Kind = ModelLayer::Kind;
constexpr std::array<std::string_view, 4> kindNames{"embedding", "block", "mtp", "loss"};

tl::unexpected<Error> notLayers(std::string what)
{
    return fail(ErrorCode::Unreadable, std::move(what),
                "write {\"layers\": [{\"kind\": \"embedding|block|mtp|loss\", \"count\": …, \"forward_ns\": …, "
                "\"input_grad_ns\": …, \"weight_grad_ns\": …}]} (docs/cli.md)");
}

// Parts, none empty, whose largest is least; a dynamic program over (parts, layers).
std::vector<int> minMax(const std::vector<double>& costs, int parts)
{
    const auto n = static_cast<int>(costs.size());
    std::vector<double> sums{0};
    for (const double cost : costs) sums.push_back(sums.back() + cost);
    const auto at = [n](int part, int end) { return static_cast<std::size_t>(part * (n + 1) + end); };
    std::vector<double> best(static_cast<std::size_t>((parts + 1) * (n + 1)), INFINITY);
    std::vector<int> from(best.size(), 0);
    best[at(0, 0)] = 0;
    for (int part = 1; part <= parts; ++part)
        for (int end = part; end <= n - (parts - part); ++end)
            for (int begin = end - 1; begin >= part - 1; --begin) {
                const double own = sums[static_cast<std::size_t>(end)] - sums[static_cast<std::size_t>(begin)];
                if (own >= best[at(part, end)]) break;
                if (const double all = std::max(best[at(part - 1, begin)], own); all < best[at(part, end)]) {
                    best[at(part, end)] = all;
                    from[at(part, end)] = begin;
                }
            }
    std::vector<int> bounds(static_cast<std::size_t>(parts + 1), n);
    for (int part = parts; part > 0; --part)
        bounds[static_cast<std::size_t>(part - 1)] = from[at(part, bounds[static_cast<std::size_t>(part)])];
    return bounds;
}

// As many blocks each, the first stages one more; the embedding is with the first, the rest with the last.
std::optional<std::vector<int>> evenBounds(const std::vector<ModelLayer>& layers, int stages)
{
    const auto isBlock = [](const ModelLayer& layer) { return layer.kind == Kind::Block; };
    const auto blocks = static_cast<int>(std::count_if(layers.begin(), layers.end(), isBlock));
    if (blocks < stages) return std::nullopt;
    std::vector<int> bounds{0};
    int next = 0, seen = 0;
    for (int stage = 0; stage + 1 < stages; ++stage) {
        next += blocks / stages + (stage < blocks % stages ? 1 : 0);
        int end = bounds.back();
        while (seen < next) seen += isBlock(layers[static_cast<std::size_t>(end++)]) ? 1 : 0;
        bounds.push_back(end);
    }
    bounds.push_back(static_cast<int>(layers.size()));
    return bounds;
}

class Divider {
public:
    Divider(const PartitionProblem& problem, double seconds, const Progress& progress)
        : m_problem(problem), m_seconds(seconds), m_effort(opsPerSecond * seconds / 5), m_progress(progress)
    {
    }

    PartitionAnswer run()
    {
        PartitionAnswer out;
        std::optional<PartitionFound> even, parameters, longest, best, planned;
        for (const int chunks : m_problem.chunks) {
            const int stages = chunks * m_problem.ranks;
            if (stages > static_cast<int>(m_problem.layers.size())) continue;
            const auto schedules = schedulesOf(chunks);
            m_placements.push_back(Placement::loop(m_problem.ranks, stages));
            for (const Schedule& one : schedules)
                if (std::find(m_placements.begin(), m_placements.end(), one.placement) == m_placements.end())
                    m_placements.push_back(one.placement);
            const auto keep = [&](std::optional<PartitionFound>& place, std::string_view method,
                                  const std::vector<int>& bounds, const std::vector<Schedule>& all) {
                for (const Schedule& schedule : all) {
                    auto one = evaluated(method, bounds, schedule);
                    if (one && (!place || better(*one, *place))) place = std::move(one);
                }
            };
            if (const auto bounds = evenBounds(m_problem.layers, stages))
                keep(even, "even", *bounds, named(schedules, chunks == 1 ? "1f1b" : "interleaved-1f1b"));
            std::vector<double> weights;
            for (const ModelLayer& layer : m_problem.layers) weights.push_back(static_cast<double>(layer.weights));
            if (std::any_of(weights.begin(), weights.end(), [](double one) { return one > 0; }))
                keep(parameters, "parameters", minMax(weights, stages), schedules);
            const auto balanced = minMax(layerTimes(), stages);
            keep(longest, "longest stage", balanced, schedules);
            std::vector<std::vector<int>> starts{balanced};
            if (const auto bounds = evenBounds(m_problem.layers, stages)) starts.push_back(*bounds);
            if (auto one = searched(starts, schedules); one && (!best || better(*one, *best))) best = std::move(one);
        }
        out.bound = bound(best ? best->step : planning::ListOrder::never);
        planned = listed();
        if (auto one = ordered(); one && (!planned || better(*one, *planned))) planned = std::move(one);
        if (planned && best && !better(*planned, *best)) planned.reset();
        for (auto* one : {&even, &parameters, &longest, &best, &planned})
            if (*one) out.found.push_back(std::move(**one));
        out.interrupted = m_progress.cancelled();
        return out;
    }

private:
    // Fits where the other does not, lacks less, or is faster.
    bool better(const PartitionFound& a, const PartitionFound& b) const
    {
        return std::pair(a.over(m_problem), a.step) < std::pair(b.over(m_problem), b.step);
    }

    const ModelLayer& layer(int index) const { return m_problem.layers[static_cast<std::size_t>(index)]; }

    // No step of any placement that is tried is shorter. What each allows is where its search of orders starts.
    Nanos bound(Nanos reached)
    {
        const Nanos packed = packingBound(m_problem);
        Nanos out = reached;
        auto effort = static_cast<std::int64_t>(stepsPerSecond * m_seconds / 10);
        for (std::size_t i = 0; i < m_placements.size(); ++i) {
            const auto rounds = roundsOf(m_placements[i], m_problem.ranks);
            if (!rounds) { // of which only that is known
                out = packed;
                continue;
            }
            DivisionBound divisions(m_problem, *rounds);
            auto share = effort / static_cast<std::int64_t>(m_placements.size() - i);
            effort -= share;
            const Nanos least = divisions.least(packed, reached, share);
            effort += share;
            auto more = effort;
            out = std::min(out, least);
            m_starts.push_back({least, &m_placements[i], divisions.within(least + least / 2000, more)});
        }
        return std::max(packed, out);
    }

    std::vector<Schedule> schedulesOf(int chunks) const
    {
        std::vector<Schedule> out;
        for (const ScheduleInfo& info : allSchedules()) {
            if (info.searches || (info.fixedChunks > 0 && info.fixedChunks != chunks)) continue;
            auto schedule = makeSchedule(info.name, {m_problem.ranks, m_problem.microbatches, chunks});
            if (!schedule || schedule->ranks != m_problem.ranks || schedule->placement.hasCopies() ||
                schedule->stages != m_problem.ranks * chunks || schedule->weights != WeightRule::Synchronous ||
                !sliceStartsOf(*schedule).empty())
                continue;
            schedule->name = info.name;
            out.push_back(std::move(*schedule));
        }
        return out;
    }
    static std::vector<Schedule> named(const std::vector<Schedule>& all, std::string_view name)
    {
        std::vector<Schedule> out;
        for (const Schedule& one : all)
            if (one.name == name) out.push_back(one);
        return out;
    }

    std::optional<Nanos> stepOf(const std::vector<int>& bounds, const Schedule& schedule)
    {
        m_used += static_cast<double>(schedule.opCount());
        const auto result = simulate(schedule, partitionCosts(m_problem, bounds));
        if (!result) return std::nullopt;
        return figuresOf(schedule, *result).makespan;
    }

    std::vector<PartitionFound::Held> heldBy(const std::vector<int>& bounds, const Schedule& schedule) const
    {
        std::vector<PartitionFound::Held> out(static_cast<std::size_t>(m_problem.ranks));
        const CostModel costs = partitionCosts(m_problem, bounds);
        for (int stage = 0; stage < schedule.stages; ++stage)
            out[static_cast<std::size_t>(schedule.placement.rankOf(stage, 0))].state += std::llround(
                m_problem.state * static_cast<double>(costs.memory[static_cast<std::size_t>(stage)].weight));
        if (const auto peaks = activationPeaks(schedule, costs); peaks.size() == out.size())
            for (std::size_t rank = 0; rank < out.size(); ++rank) out[rank].activations = peaks[rank];
        return out;
    }

    // The step where the division fits the cap; else a time above all, more the more it lacks.
    std::optional<Nanos> fittingStepOf(const std::vector<int>& bounds, const Schedule& schedule)
    {
        if (m_problem.cap > 0) {
            m_used += static_cast<double>(schedule.opCount());
            Bytes over = 0;
            for (const auto& one : heldBy(bounds, schedule)) over = std::max(over, one.sum() - m_problem.cap);
            if (over > 0) return overCap + over;
        }
        return stepOf(bounds, schedule);
    }

    std::optional<PartitionFound> evaluated(std::string_view method, const std::vector<int>& bounds,
                                            const Schedule& schedule)
    {
        const auto step = stepOf(bounds, schedule);
        if (!step) return std::nullopt;
        PartitionFound out{std::string(method), schedule, bounds, 0, *step, heldBy(bounds, schedule)};
        for (int stage = 0; stage < schedule.stages; ++stage) {
            Nanos time = m_problem.perOp.time();
            for (int i = bounds[static_cast<std::size_t>(stage)]; i < bounds[static_cast<std::size_t>(stage) + 1]; ++i)
                time += layer(i).time();
            out.longest = std::max(out.longest, time);
        }
        return out;
    }

    // Bounds are moved by one layer, one alone or several in a row, as long as the step gets shorter.
    std::optional<PartitionFound> searched(const std::vector<std::vector<int>>& starts,
                                           const std::vector<Schedule>& schedules)
    {
        struct Candidate {
            Nanos step;
            const Schedule* schedule;
            std::vector<int> bounds;
        };
        std::vector<Candidate> all;
        for (const Schedule& schedule : schedules)
            for (const auto& bounds : starts)
                if (const auto step = fittingStepOf(bounds, schedule)) all.push_back({*step, &schedule, bounds});
        std::stable_sort(all.begin(), all.end(),
                         [](const Candidate& a, const Candidate& b) { return a.step < b.step; });
        const double share = m_effort / static_cast<double>(m_problem.chunks.size() * searchedSchedules);
        std::optional<Candidate> best;
        std::set<const Schedule*> tried;
        for (Candidate& start : all) {
            if (tried.size() == searchedSchedules) break;
            if (!tried.insert(start.schedule).second) continue;
            const double until = m_used + share;
            improve(start.bounds, start.step, until,
                    [&](const auto& bounds) { return fittingStepOf(bounds, *start.schedule); });
            m_improved.push_back({start.step, *start.schedule, start.bounds});
            if (!best || start.step < best->step) best = start;
            m_progress.tell("partitions", static_cast<std::int64_t>(tried.size()),
                            static_cast<std::int64_t>(std::min(searchedSchedules, schedules.size())));
        }
        if (!best) return std::nullopt;
        return evaluated("step", best->bounds, *best->schedule);
    }

    // An order of its own for the best divisions of one stage a rank, or two in a V.
    std::optional<PartitionFound> ordered()
    {
        std::stable_sort(m_improved.begin(), m_improved.end(),
                         [](const Improved& a, const Improved& b) { return a.step < b.step; });
        std::vector<const Improved*> plannable;
        std::set<std::vector<int>> seen;
        for (const Improved& one : m_improved) {
            const int chunks = one.schedule.stages / m_problem.ranks;
            bool fits = chunks <= 2;
            for (int stage = m_problem.ranks; fits && stage < one.schedule.stages; ++stage)
                fits = one.schedule.placement.rankOf(stage, 0) == 2 * m_problem.ranks - 1 - stage;
            if (fits && plannable.size() < orderedDivisions && seen.insert(one.bounds).second)
                plannable.push_back(&one);
        }
        std::optional<PartitionFound> best;
        for (const Improved* one : plannable) {
            if (m_progress.cancelled()) break;
            PlanRequest request;
            request.ranks = m_problem.ranks;
            request.microbatches = m_problem.microbatches;
            request.chunks = one->schedule.stages / m_problem.ranks;
            request.costs = partitionCosts(m_problem, one->bounds);
            request.seconds = m_seconds / 2 / static_cast<double>(plannable.size());
            request.known = {one->schedule};
            if (m_problem.cap > 0) // planning without room for one microbatch is refused
                for (const auto& held : heldBy(one->bounds, one->schedule))
                    request.caps.push_back(std::max<Bytes>(0, m_problem.cap - held.state));
            const auto found = plan(request, m_progress);
            if (!found) continue;
            auto own = evaluated("step and order", one->bounds, found->schedule);
            if (own && (!best || better(*own, *best))) best = std::move(own);
        }
        return best;
    }

    // timeOf: nothing where it is not shorter than the step.
    template <typename TimeOf>
    void improve(std::vector<int>& bounds, Nanos& step, double until, const TimeOf& timeOf)
    {
        for (bool better = true; better && m_used < until && !m_progress.cancelled();) {
            better = false;
            for (std::size_t first = 1; first + 1 < bounds.size(); ++first)
                for (std::size_t last = first; last + 1 < bounds.size(); ++last)
                    for (const int by : {-1, 1}) {
                        if (m_used >= until || m_progress.cancelled()) return;
                        auto other = bounds;
                        for (std::size_t k = first; k <= last; ++k) other[k] += by;
                        if (other[first] <= other[first - 1] || other[last] >= other[last + 1]) continue;
                        const std::optional<Nanos> found = timeOf(other);
                        if (!found || *found >= step) continue;
                        bounds = std::move(other);
                        step = *found;
                        better = true;
                    }
        }
    }

    // Orders by list scheduling, for divisions that are improved from the bound's and the even one, and after random
    // moves again.
    std::optional<PartitionFound> listed()
    {
        std::stable_sort(m_starts.begin(), m_starts.end(),
                         [](const Start& a, const Start& b) { return a.least < b.least; });
        std::optional<PartitionFound> best;
        const double effort = m_effort;
        for (std::size_t i = 0; i < m_starts.size() && !m_progress.cancelled(); ++i) {
            const Placement& placement = *m_starts[i].placement;
            if (best && best->step <= m_starts[i].least) break;
            const double before = m_used, until = m_used + effort / static_cast<double>(m_starts.size());
            planning::ListOrder order(placement, m_problem.ranks, m_problem.microbatches);
            planning::ListRule rule;
            const auto timeOf = [&](const std::vector<int>& bounds, Nanos limit) {
                const Nanos time = order.run(stageTimes(bounds), rule, limit);
                m_used = before + static_cast<double>(order.ops());
                return time < limit ? std::optional<Nanos>(time) : std::nullopt;
            };
            std::vector<std::vector<int>> starts{minMax(layerTimes(), placement.stages())};
            if (!m_starts[i].bounds.empty()) starts.push_back(m_starts[i].bounds);
            Nanos step = planning::ListOrder::never;
            std::vector<int> bounds;
            bool later = true;
            for (const auto& start : starts)
                for (const bool one : {true, false}) {
                    if (!bounds.empty() && m_used >= until) break;
                    rule.laterForward = one;
                    Nanos time = planning::ListOrder::never;
                    auto own = start;
                    if (const auto first = timeOf(own, time)) time = *first;
                    improve(own, time, m_used + (until - m_used) / 8,
                            [&](const auto& other) { return timeOf(other, time); });
                    if (time >= step) continue;
                    step = time;
                    bounds = std::move(own);
                    later = one;
                }
            if (bounds.empty()) continue;
            rule.laterForward = later;
            planning::Random random(1);
            while (bounds.size() > 2 && m_used < until && step > m_starts[i].least && !m_progress.cancelled()) {
                auto own = bounds;
                for (std::size_t kick = 1 + random.below(kickedBounds); kick > 0; --kick) {
                    const std::size_t k = 1 + random.below(own.size() - 2);
                    const int to = own[k] + (random.below(2) == 0 ? -1 : 1);
                    if (own[k - 1] < to && to < own[k + 1]) own[k] = to;
                }
                const auto first = timeOf(own, step + step / 20);
                if (!first) continue;
                Nanos time = *first;
                improve(own, time, until, [&](const auto& other) { return timeOf(other, time); });
                if (time > step) continue;
                step = time;
                bounds = std::move(own);
            }
            int open = m_problem.microbatches; // as few activations as do not cost time
            for (int least = 1; least < open && m_used < until + effort;) {
                rule.open = least + (open - least) / 2;
                if (timeOf(bounds, step + 1))
                    open = rule.open;
                else
                    least = rule.open + 1;
            }
            rule.open = open;
            if (!timeOf(bounds, step + 1)) {
                rule.open = 0;
                if (!timeOf(bounds, step + 1)) continue;
            }
            auto one = evaluated("step and order", bounds, order.schedule());
            for (int fewer = open - 1; fewer > 0 && one && one->over(m_problem) > 0; --fewer) {
                rule.open = fewer;
                if (!timeOf(bounds, planning::ListOrder::never)) break;
                one = evaluated("step and order", bounds, order.schedule());
            }
            if (!one) continue;
            m_improved.push_back({one->step + (one->over(m_problem) > 0 ? overCap : 0), one->schedule, bounds});
            if (!best || better(*one, *best)) best = std::move(one);
            m_progress.tell("orders", static_cast<std::int64_t>(i + 1), static_cast<std::int64_t>(m_starts.size()));
        }
        return best;
    }
    std::vector<double> layerTimes() const
    {
        std::vector<double> out;
        for (const ModelLayer& one : m_problem.layers) out.push_back(static_cast<double>(one.time()));
        return out;
    }
    std::vector<planning::StageTimes> stageTimes(const std::vector<int>& bounds) const
    {
        std::vector<planning::StageTimes> out(bounds.size() - 1);
        const double rate = m_problem.link.bytesPerSecond;
        for (std::size_t stage = 0; stage < out.size(); ++stage) {
            planning::StageTimes& one = out[stage];
            one = {m_problem.perOp.forward, m_problem.perOp.input, m_problem.perOp.weight, 0};
            for (int i = bounds[stage]; i < bounds[stage + 1]; ++i) {
                one.forward += layer(i).forward;
                one.input += layer(i).input;
                one.weight += layer(i).weight;
            }
            one.message = m_problem.link.latency;
            if (rate > 0)
                one.message +=
                    static_cast<Nanos>(static_cast<double>(layer(bounds[stage + 1] - 1).boundary) / rate * 1e9);
        }
        return out;
    }

    struct Improved {
        Nanos step;
        Schedule schedule;
        std::vector<int> bounds;
    };

    const PartitionProblem& m_problem;
    double m_seconds, m_effort, m_used = 0;
    std::vector<Improved> m_improved;
    struct Start {
        Nanos least;
        const Placement* placement;
        std::vector<int> bounds; // of a division that keeps nearly that; empty: unknown
    };
    std::vector<Placement> m_placements;
    std::vector<Start> m_starts;
    const Progress& m_progress;
};

} // namespace

const PartitionFound::Held& PartitionFound::fullest() const
{
    return *std::max_element(ranks.begin(), ranks.end(),
                             [](const Held& a, const Held& b) { return a.sum() < b.sum(); });
}

Bytes PartitionFound::over(const PartitionProblem& problem) const
{
    return problem.cap > 0 ? std::max<Bytes>(0, fullest().sum() - problem.cap) : 0;
}

double PartitionAnswer::gap() const
{
    return found.empty() || bound <= 0 ? 0 : static_cast<double>(found.back().step) / static_cast<double>(bound) - 1;
}

Result<PartitionProblem> parseModelLayers(std::string_view text)
{
    const auto json = readForeignJson<JsonInput::Json>(text);
    if (!json.is_object()) return notLayers("it is not a JSON object");
    JsonInput in(json);
    PartitionProblem out;
    for (const auto& one : in.list("layers")) {
        const std::size_t number = out.layers.size();
        if (!one.is_object()) return notLayers(fmt::format("layer {} is not an object", number));
        JsonInput of(one);
        ModelLayer layer;
        const auto kind = of.get<std::string>("kind", std::string("block"));
        const auto name = std::find(kindNames.begin(), kindNames.end(), kind);
        if (name == kindNames.end())
            of.wrong(fmt::format("kind is embedding, block, mtp or loss, not '{}'", kind.substr(0, 40)));
        else
            layer.kind = static_cast<Kind>(name - kindNames.begin());
        const int count = of.get<int>("count", 1);
        const auto number64 = [&](const char* key, bool needed) {
            const auto value = of.get<std::int64_t>(key, needed ? std::nullopt : std::optional<std::int64_t>(0));
            if (value < 0 || value > std::int64_t(1) << 50)
                of.wrong(fmt::format("{} is 0 to 2^50, not {}", key, value));
            return value;
        };
        layer.forward = number64("forward_ns", true);
        layer.input = number64("input_grad_ns", true);
        layer.weight = number64("weight_grad_ns", true);
        layer.weights = number64("weight_bytes", false);
        layer.activation = number64("activation_bytes", false);
        layer.boundary = number64("boundary_bytes", false);
        if (count < 1 || count > mostModelLayers)
            of.wrong(fmt::format("count is 1 to {}, not {}", mostModelLayers, count));
        if (!of.problem().empty()) return notLayers(fmt::format("layer {}: {}", number, of.problem()));
        out.layers.insert(out.layers.end(), static_cast<std::size_t>(count), layer);
        if (out.layers.size() > mostModelLayers) return notLayers(fmt::format("more than {} layers", mostModelLayers));
    }
    out.link.latency = in.get<Nanos>("latency_ns", Nanos(0));
    out.link.bytesPerSecond = in.get<double>("bytes_per_second", 0.0);
    if (out.link.latency < 0 || !(out.link.bytesPerSecond >= 0)) in.wrong("latency_ns or bytes_per_second is below 0");
    if (!in.problem().empty()) return notLayers(in.problem());
    if (out.layers.empty()) return notLayers("there are no layers");
    out.origin = fmt::format("{} layers", out.layers.size());
    return out;
}

Result<PartitionProblem> modelLayersOf(std::string_view text)
{
    const auto [what, options] = keyValueOf(text, ':');
    const auto [name, device] = keyValueOf(what, '@');
    if (!device)
        return fail(ErrorCode::Usage, fmt::format("'{}' is not a model on a device", what),
                    "write gpt3-13b@a100, or the name of a file of layers, NAME.json");
    STAGEWRIGHT_TRY(const auto model, parseModelShape(name));
    STAGEWRIGHT_TRY(const auto cluster, parseCluster(fmt::format("8@{}", *device)));
    Parallelism way;
    way.samples = model.microbatchSize;
    int predictions = 0;
    for (const std::string_view option : itemsOf(options.value_or(""), ":")) {
        const auto [key, value] = keyValueOf(option);
        int* place = key == "b" ? &way.samples : key == "t" ? &way.tensor : key == "mtp" ? &predictions : nullptr;
        if (place == nullptr || !readNumber(value.value_or(""), *place) || *place < (key == "mtp" ? 0 : 1) ||
            *place > 1024)
            return fail(ErrorCode::Usage, fmt::format("'{}' is not an option of a model's layers", option),
                        "options are b=1, t=1, mtp=1");
    }
    if (way.tensor > 8 || model.heads % way.tensor != 0)
        return fail(ErrorCode::Usage,
                    fmt::format("t={} does not divide {} heads, or is above 8", way.tensor, model.heads),
                    "choose another");
    const StepConstants constants;
    const LayerFigures block = layerFigures(model, cluster, way, constants);
    const double head = headSeconds(model, cluster, way, constants);
    const auto nanos = [](double seconds) { return static_cast<Nanos>(std::llround(seconds * 1e9)); };
    const auto bytes = [](double count) { return static_cast<Bytes>(std::llround(count)); };
    const Bytes boundary = bytes(messageBytes(model, way));
    const double table = 2.0 * model.vocabulary * model.hidden / way.tensor;
    PartitionProblem out;
    const ModelLayer one{Kind::Block,
                         nanos(block.forward),
                         nanos(block.input),
                         nanos(block.weight),
                         bytes(2 * block.parameters),
                         bytes(block.kept),
                         boundary};
    ModelLayer prediction = one, loss{Kind::Loss, nanos(head), nanos(head), nanos(head), bytes(table), boundary, 0};
    prediction.kind = Kind::Prediction;
    prediction.forward += loss.forward;
    prediction.input += loss.input;
    prediction.weight += loss.weight;
    out.layers.push_back({Kind::Embedding, 1, 0, 1, bytes(table), boundary, boundary});
    out.layers.insert(out.layers.end(), static_cast<std::size_t>(model.layers), one);
    out.layers.insert(out.layers.end(), static_cast<std::size_t>(predictions), prediction);
    out.layers.push_back(loss);
    out.link = linkOf(cluster, constants, 2 * cluster.perHost);
    out.cap = bytes(cluster.memory);
    out.origin = fmt::format("{} on {}, t{} b{}", model.name, cluster.device.title, way.tensor, way.samples);
    if (predictions > 0) out.origin += fmt::format(", {} of multi-token prediction", predictions);
    return out;
}

Result<PartitionAnswer> planPartition(const PartitionProblem& problem, double seconds, const Progress& progress)
{
    if (problem.ranks > static_cast<int>(problem.layers.size()))
        return fail(ErrorCode::Usage, fmt::format("{} layers for {} ranks", problem.layers.size(), problem.ranks),
                    "choose fewer ranks");
    PartitionAnswer out = Divider(problem, seconds, progress).run();
    if (out.found.empty())
        return fail(ErrorCode::Usage,
                    fmt::format("no schedule has {} ranks and {} microbatches with these chunks", problem.ranks,
                                problem.microbatches),
                    "choose microbatches in whole groups of the ranks, or one chunk");
    return out;
}

CostModel partitionCosts(const PartitionProblem& problem, const std::vector<int>& bounds)
{
    CostModel out(static_cast<int>(bounds.size()) - 1, CostSource::Analytic);
    for (std::size_t stage = 0; stage + 1 < bounds.size(); ++stage) {
        Nanos forward = problem.perOp.forward, input = problem.perOp.input, weight = problem.perOp.weight;
        StageMemory& memory = out.memory[stage];
        for (int i = bounds[stage]; i < bounds[stage + 1]; ++i) {
            const ModelLayer& layer = problem.layers[static_cast<std::size_t>(i)];
            forward += layer.forward;
            input += layer.input;
            weight += layer.weight;
            memory.activation += layer.activation;
            memory.weight += layer.weights;
            memory.boundary = layer.boundary;
        }
        out.setPasses(static_cast<int>(stage), std::max<Nanos>(1, forward), std::max<Nanos>(1, input),
                      std::max<Nanos>(1, weight));
    }
    out.links.all = problem.link;
    out.origin = problem.origin;
    return out;
}

Result<std::string> megatronText(const PartitionProblem& problem, const std::vector<int>& bounds, int ranks)
{
    MegatronLayout layout{ranks, {}};
    for (std::size_t stage = 0; stage + 1 < bounds.size(); ++stage) {
        auto& one = layout.stages.emplace_back();
        for (int i = bounds[stage]; i < bounds[stage + 1]; ++i) {
            switch (problem.layers[static_cast<std::size_t>(i)].kind) {
            case Kind::Embedding: one.embedding = true; break;
            case Kind::Block: ++one.layers; break;
            case Kind::Prediction: ++one.predictions; break;
            case Kind::Loss: one.loss = true; break;
            }
        }
    }
    const std::string text = toText(layout);
    STAGEWRIGHT_CHECK(readMegatronLayout(text, ranks));
    return text;
}

} // namespace stagewright
