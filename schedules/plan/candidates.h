// What a search starts with: rules, building blocks, the library. Internal to schedules/plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/heuristic/greedy.h"
#include "schedules/plan/plan.h"

namespace stagewright::planning {

struct Guess {
    Found found;
    const char* by;
};

// One microbatch after the other (keeps every cap of at least leastMemory()), then the rules: one chunk: zeroBubble()
// and 1F1B-like words; two chunks: list scheduling by several rules and the blocks of the V family.
std::vector<Guess> firstOrders(const Pipeline& pipeline);

// Two chunks: the V search. Blocks of the family below the largest cap, reordered; the best of them. stop may be empty.
Found searchBlocks(const Pipeline& pipeline, const std::function<bool()>& stop);

// A schedule timed with the request's own costs.
struct Candidate {
    Schedule schedule;
    std::string by;
    Nanos objective = 0;
    Nanos makespan = 0;
    Nanos span = 0;
    std::vector<Bytes> peaks;

    bool betterThan(const Candidate& other) const
    {
        return objective != other.objective ? objective < other.objective : makespan < other.makespan;
    }
    bool keeps(const std::vector<Bytes>& caps) const;
};

// The words as a schedule; none where it can't be simulated.
std::optional<Candidate> candidateOf(const PlanRequest& request, const Pipeline& pipeline, const Words& words,
                                     const std::string& by);

// Every library schedule of F, I, W and B in the request's placement, synchronous, pairs one after the other; by is
// "library: NAME".
std::vector<Candidate> libraryCandidates(const PlanRequest& request);

// Points of all library schedules at their defaults; see plan.h.
void addLibraryPoints(const PlanRequest& request, const CostsFor& costsFor, Pareto& pareto);

} // namespace stagewright::planning
