// The least objective over all orders of F, B, I and W that keep the caps, found without the planner or the simulator:
// what plans and their bounds are compared with. Dynamic programming over how many ops of each stage are done; of all
// ways to get there, those are kept that are not later than another in everything that matters from then on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace stagewright::testing {

// One stage's costs. gives: the part of an activation that I frees; W frees the rest, B everything.
struct BestOrderStage {
    std::int64_t forward = 1;
    std::int64_t inputGrad = 1;
    std::int64_t weightGrad = 1;
    std::int64_t backward = 2;
    std::int64_t activation = 1;
    std::int64_t freed = 0;
    std::int64_t activationDelay = 0; // to the next stage
    std::int64_t gradientDelay = 0;   // to the stage before
    int rank = 0;
};

struct BestOrderProblem {
    std::vector<BestOrderStage> stages;
    std::vector<std::int64_t> caps; // by rank; empty: none
    int ranks = 1;
    int microbatches = 1;
    bool span = false; // the longest time of a rank from its own first start; else the end of the last op
};

class BestOrder {
public:
    explicit BestOrder(const BestOrderProblem& problem) : m_problem(problem), m_stages(problem.stages.size()) {}

    // −1: no order keeps the caps (and ends by `atMost`).
    std::int64_t solve(std::int64_t atMost = INT64_MAX / 4)
    {
        const std::size_t layers = 3 * m_stages * static_cast<std::size_t>(m_problem.microbatches);
        std::vector<Layer> open(layers + 3);
        m_first.assign(static_cast<std::size_t>(m_problem.ranks), -1);
        for (std::size_t s = 0, at = 0; s < m_stages; ++s) { // the first op of a rank is its first stage's first F
            auto& first = m_first[static_cast<std::size_t>(stage(s).rank)];
            if (first < 0) first = static_cast<std::int64_t>(at);
            at += static_cast<std::size_t>(stage(s).forward + stage(s).activationDelay);
        }
        open[0][0].push_back(
            {Counts(3 * m_stages), std::vector<std::int64_t>(static_cast<std::size_t>(m_problem.ranks)), {}, {}});
        auto& begin = open[0][0].front();
        begin.ends.resize(m_stages);
        begin.gradients.resize(m_stages);
        for (std::size_t layer = 0; layer < layers; ++layer) {
            for (auto& [key, states] : open[layer])
                for (const State& state : states)
                    for (std::size_t s = 0; s < m_stages; ++s)
                        for (int kind = 0; kind < 4; ++kind)
                            extend(state, s, kind, open[layer + (kind == backward ? 2 : 1)], atMost);
            open[layer].clear();
        }
        std::int64_t best = -1;
        for (const auto& [key, states] : open[layers])
            for (const State& state : states) {
                std::int64_t objective = 0;
                for (std::size_t r = 0; r < state.clock.size(); ++r)
                    objective = std::max(objective, state.clock[r] - origin(r));
                if (best < 0 || objective < best) best = objective;
            }
        return best;
    }

private:
    enum {
        forward,
        inputGrad,
        weightGrad,
        backward,
    };
    using Counts = std::vector<std::uint8_t>; // by stage: forwards, gradients, microbatches released
    struct State {
        Counts done;
        std::vector<std::int64_t> clock; // by rank
        // by stage: when the activations that the next stage has not used are there
        std::vector<std::vector<std::int64_t>> ends;
        std::vector<std::vector<std::int64_t>> gradients; // the same for the previous stage
    };
    using Layer = std::unordered_map<std::uint64_t, std::vector<State>>;

    const BestOrderStage& stage(std::size_t s) const { return m_problem.stages[s]; }
    std::int64_t origin(std::size_t rank) const { return m_problem.span ? m_first[rank] : 0; }

    std::int64_t held(const Counts& done, int rank) const
    {
        std::int64_t sum = 0;
        for (std::size_t s = 0; s < m_stages; ++s)
            if (stage(s).rank == rank)
                sum += (done[3 * s] - done[3 * s + 1]) * stage(s).activation +
                       (done[3 * s + 1] - done[3 * s + 2]) * (stage(s).activation - stage(s).freed);
        return sum;
    }

    // What the rank still has to do, each microbatch in the shorter way.
    std::int64_t left(const Counts& done, int rank) const
    {
        std::int64_t sum = 0;
        for (std::size_t s = 0; s < m_stages; ++s) {
            if (stage(s).rank != rank) continue;
            const BestOrderStage& c = stage(s);
            sum += (m_problem.microbatches - done[3 * s]) * c.forward +
                   (done[3 * s + 1] - done[3 * s + 2]) * c.weightGrad +
                   (m_problem.microbatches - done[3 * s + 1]) * std::min(c.inputGrad + c.weightGrad, c.backward);
        }
        return sum;
    }

    void extend(const State& from, std::size_t s, int kind, Layer& layer, std::int64_t atMost) const
    {
        const BestOrderStage& own = stage(s);
        const int f = from.done[3 * s];
        const int g = from.done[3 * s + 1];
        const int w = from.done[3 * s + 2];
        const auto rank = static_cast<std::size_t>(own.rank);
        std::int64_t start = from.clock[rank];
        const bool gradient = kind == inputGrad || kind == backward;
        if (kind == forward) {
            if (f == m_problem.microbatches || (s > 0 && from.ends[s - 1].empty())) return;
            if (s > 0) start = std::max(start, from.ends[s - 1].front());
        } else if (gradient) {
            if (g == f || (s + 1 < m_stages && from.gradients[s + 1].empty())) return;
            if (s + 1 < m_stages) start = std::max(start, from.gradients[s + 1].front());
        } else if (w == g) {
            return;
        }
        State to = from;
        if (kind == forward) ++to.done[3 * s];
        if (gradient) ++to.done[3 * s + 1];
        if (kind == weightGrad || kind == backward) ++to.done[3 * s + 2];
        if (!m_problem.caps.empty() && held(to.done, own.rank) > m_problem.caps[rank]) return;
        const std::int64_t lengths[] = {own.forward, own.inputGrad, own.weightGrad, own.backward};
        const std::int64_t end = start + lengths[kind];
        to.clock[rank] = end;
        if (end + left(to.done, own.rank) - origin(rank) > atMost) return;
        if (kind == forward) {
            if (s > 0) to.ends[s - 1].erase(to.ends[s - 1].begin());
            if (s + 1 < m_stages) to.ends[s].push_back(end + own.activationDelay);
        }
        if (gradient) {
            if (s + 1 < m_stages) to.gradients[s + 1].erase(to.gradients[s + 1].begin());
            if (s > 0) to.gradients[s].push_back(end + own.gradientDelay);
        }
        for (std::size_t t = 0; t < m_stages; ++t) { // nothing can be used before its rank is free
            if (t + 1 < m_stages)
                for (auto& at : to.ends[t]) at = std::max(at, to.clock[static_cast<std::size_t>(stage(t + 1).rank)]);
            if (t > 0)
                for (auto& at : to.gradients[t])
                    at = std::max(at, to.clock[static_cast<std::size_t>(stage(t - 1).rank)]);
        }
        std::vector<State>& states = layer[keyOf(to.done)];
        keep(states, std::move(to));
    }

    std::uint64_t keyOf(const Counts& done) const
    {
        std::uint64_t key = 0;
        for (std::uint8_t count : done) key = key * 5 + count; // up to 4 microbatches, 9 stages
        return key;
    }

    static bool notLater(const State& a, const State& b)
    {
        auto all = [](const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& y) {
            for (std::size_t i = 0; i < x.size(); ++i)
                if (x[i] > y[i]) return false;
            return true;
        };
        if (!all(a.clock, b.clock)) return false;
        for (std::size_t s = 0; s < a.ends.size(); ++s)
            if (!all(a.ends[s], b.ends[s]) || !all(a.gradients[s], b.gradients[s])) return false;
        return true;
    }

    static void keep(std::vector<State>& states, State state)
    {
        for (const State& other : states)
            if (notLater(other, state)) return;
        std::erase_if(states, [&](const State& other) { return notLater(state, other); });
        states.push_back(std::move(state));
    }

    const BestOrderProblem& m_problem;
    std::size_t m_stages;
    std::vector<std::int64_t> m_first; // by rank: start of its first op
};

} // namespace stagewright::testing
