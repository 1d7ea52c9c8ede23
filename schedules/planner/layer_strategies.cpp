#include "schedules/planner/layer_strategies.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace stagewright {

namespace {

struct State {
    std::int64_t memory = 0, time = 0, choices = 0;
    int before = -1;      // the strategy of the layer before
    std::size_t from = 0; // its state
};

// States of equal memory and time become one with all their choices; one that another beats in both goes.
std::vector<State> best(std::vector<State> states)
{
    std::stable_sort(states.begin(), states.end(), [](const State& a, const State& b) {
        return std::pair(a.memory, a.time) < std::pair(b.memory, b.time);
    });
    std::vector<State> out;
    for (const State& one : states) {
        if (!out.empty() && one.memory == out.back().memory && one.time == out.back().time)
            out.back().choices += one.choices;
        else if (out.empty() || one.time <= out.back().time) // as fast with more memory is another choice
            out.push_back(one);
    }
    return out;
}

} // namespace

Result<std::optional<LayerStrategyPlan>> chooseStrategies(const LayerStrategyProblem& problem)
{
    const std::size_t layers = problem.time.size(), strategies = problem.change.size();
    const auto wrong = [](std::string what) { return fail(ErrorCode::Usage, std::move(what), "see docs/planners.md"); };
    if (layers == 0 || strategies == 0 || problem.memory.size() != layers)
        return wrong("time and memory have a row for each layer");
    for (const auto* table : {&problem.time, &problem.memory, &problem.change})
        for (const auto& row : *table) {
            if (row.size() != strategies)
                return wrong(fmt::format("a row has {} numbers for {} strategies", row.size(), strategies));
            if (*std::min_element(row.begin(), row.end()) < 0) return wrong("numbers are 0 or more");
        }
    std::vector<std::vector<std::vector<State>>> states(layers, std::vector<std::vector<State>>(strategies));
    for (std::size_t layer = 0; layer < layers; ++layer)
        for (std::size_t s = 0; s < strategies; ++s) {
            std::vector<State> all;
            const auto add = [&](std::int64_t memory, std::int64_t time, std::int64_t choices, int before,
                                 std::size_t from) {
                memory += problem.memory[layer][s];
                if (memory <= problem.budget)
                    all.push_back({memory, time + problem.time[layer][s], choices, before, from});
            };
            if (layer == 0) add(0, 0, 1, -1, 0);
            for (std::size_t before = 0; layer > 0 && before < strategies; ++before)
                for (std::size_t i = 0; i < states[layer - 1][before].size(); ++i) {
                    const State& one = states[layer - 1][before][i];
                    add(one.memory, one.time + problem.change[before][s], one.choices, static_cast<int>(before), i);
                }
            states[layer][s] = best(std::move(all));
        }
    std::optional<LayerStrategyPlan> out;
    std::pair<int, std::size_t> end;
    for (std::size_t s = 0; s < strategies; ++s)
        for (std::size_t i = 0; i < states.back()[s].size(); ++i) {
            const State& one = states.back()[s][i];
            if (out && one.time > out->time) continue;
            const bool faster = !out || one.time < out->time;
            const std::int64_t choices = one.choices + (faster ? 0 : out->choices);
            if (faster || one.memory < out->memory) {
                out = LayerStrategyPlan{one.time, one.memory, 0, {}};
                end = {static_cast<int>(s), i};
            }
            out->choices = choices;
        }
    if (!out) return out;
    for (std::size_t layer = layers; layer-- > 0;) {
        out->strategies.insert(out->strategies.begin(), end.first);
        const State& one = states[layer][static_cast<std::size_t>(end.first)][end.second];
        end = {one.before, one.from};
    }
    return out;
}

} // namespace stagewright
