// Twenty plans of large shapes at tight caps, stored: what bench_plan measures the gap of, and a test at a fixed amount
// of work.
#pragma once

#include <random>

#include "schedules/plan/plan.h"

namespace stagewright::testing {

struct LargePlan {
    int ranks;
    int microbatches;
    int chunks;
    double cap;       // in MiB, of every rank: microbatches whose activations fit, about
    double inputGrad; // F is 1 on average
    double weightGrad;
    double backward; // 0: I + W
    double freed;    // share that I frees
    double latency;
    int spread; // per cent by which stages differ in time and memory
    bool span;
};

inline constexpr LargePlan largePlans[] = {
    // clang-format off
    {8, 32, 1, 4.5, 1.1, 0.9, 0, 0, 0.1, 10, false},
    {8, 32, 1, 5.5, 1.1, 0.9, 0, 0.2, 0.05, 20, false},
    {8, 64, 1, 4.5, 1.1, 0.9, 0, 0, 0.1, 10, false},
    {8, 64, 1, 6.5, 1.3, 0.7, 0, 0.4, 0.2, 10, false},
    {12, 48, 1, 4.5, 1.1, 0.9, 0, 0, 0.05, 5, false},
    {12, 48, 1, 6.5, 1.1, 0.9, 0, 0.3, 0.1, 15, false},
    {16, 64, 1, 8.5, 1.1, 0.9, 0, 0.2, 0.1, 10, false},
    {16, 48, 1, 12.5, 1.2, 0.8, 0, 0.2, 0.1, 20, false},
    {8, 32, 2, 2.2, 1.1, 0.9, 0, 0, 0.05, 0, false},
    {8, 32, 2, 3.3, 1.1, 0.9, 0, 0.2, 0.05, 10, false},
    {8, 32, 2, 4.4, 1.1, 0.9, 0, 0, 0.05, 10, false},
    {8, 16, 2, 3.3, 1.1, 0.9, 0, 0.3, 0.1, 20, false},
    {12, 24, 2, 4.4, 1.1, 0.9, 0, 0.2, 0.05, 10, false},
    {8, 32, 1, 4.5, 1.1, 0.9, 1.7, 0, 0.1, 10, false},
    {12, 48, 1, 6.5, 1.1, 0.9, 1.8, 0.3, 0.1, 10, false},
    {8, 32, 2, 3.3, 1.1, 0.9, 1.7, 0.2, 0.05, 10, false},
    {12, 24, 2, 5.4, 1.1, 0.9, 1.7, 0, 0.05, 10, false},
    {6, 24, 2, 2.5, 1.1, 0.9, 0, 0.3, 0.1, 20, false},
    {8, 24, 1, 6.5, 1.5, 1.5, 2.7, 0, 0.2, 15, false},
    {24, 48, 1, 12.5, 1.1, 0.9, 0, 0, 0.1, 10, false},
    // clang-format on
};

// Times of a 1 ms forward, memory of a 1 MiB activation, of a rank.
inline PlanRequest requestOf(const LargePlan& plan)
{
    PlanRequest request;
    request.ranks = plan.ranks;
    request.microbatches = plan.microbatches;
    request.chunks = plan.chunks;
    request.objective = plan.span ? Objective::Span : Objective::Makespan;
    const int stages = plan.ranks * plan.chunks;
    request.costs = CostModel(stages, CostSource::Fitted);
    std::mt19937 engine(static_cast<std::uint32_t>(plan.ranks * 1000 + plan.microbatches * 10 + plan.chunks));
    auto vary = [&](double value) {
        const double part = static_cast<double>(engine() % 2001) / 1000 - 1;
        return static_cast<std::int64_t>(value * (1 + part * plan.spread / 100));
    };
    for (int s = 0; s < stages; ++s) {
        const double forward = 1000.0 / plan.chunks;
        request.costs.setDuration(OpKind::Forward, s, vary(forward) * 1000);
        const Nanos input = vary(forward * plan.inputGrad) * 1000;
        const Nanos weight = vary(forward * plan.weightGrad) * 1000;
        request.costs.setDuration(OpKind::InputGrad, s, input);
        request.costs.setDuration(OpKind::WeightGrad, s, weight);
        request.costs.setDuration(OpKind::Backward, s,
                                  plan.backward > 0 ? vary(forward * plan.backward) * 1000 : input + weight);
        StageMemory& memory = request.costs.memory[static_cast<std::size_t>(s)];
        memory.activation = vary(1024.0 / plan.chunks) * 1024;
        memory.freedAtInput = static_cast<Bytes>(plan.freed * static_cast<double>(memory.activation));
    }
    request.costs.links.all.latency = static_cast<Nanos>(plan.latency * 1'000'000);
    request.caps.assign(static_cast<std::size_t>(plan.ranks), static_cast<Bytes>(plan.cap * 1024 * 1024));
    return request;
}

} // namespace stagewright::testing
