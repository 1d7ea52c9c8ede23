// List scheduling for one or two chunks under memory caps: the rank that can go on first decides, gradients before
// activations, W's into waits. Internal to schedules/plan.
#pragma once

#include "schedules/heuristic/fill.h"

namespace stagewright::planning {

// An order with its times.
struct Found {
    Words words; // W's included; empty: nothing that keeps the caps
    Nanos objective = INT64_MAX;
    Nanos makespan = INT64_MAX;

    bool feasible() const { return !words.empty(); }
    bool betterThan(const Found& other) const
    {
        return objective != other.objective ? objective < other.objective : makespan < other.makespan;
    }
};

struct GreedyRule {
    FillRule fill;
    bool overshoot = true;  // a warm-up F may end after the first gradient can be there
    bool falling = false;   // warm-up F's of a rank stay below those of the rank before
    bool hold = false;      // also later no more microbatches are under way on a rank than in its warm-up
    double patience = 0;    // a gradient known to come within this part of an F is waited for
    bool upperFirst = true; // two chunks: F of the second chunk before F of the first; else the one that came first
    bool full = false;      // full backwards where Pipeline::full has them; else only where an I doesn't fit
};

// Times of all passes follow from the decisions. Empty where a cap is below leastMemory() or the rule gets stuck.
// O(letters × chunks + letters × log ranks).
Found greedy(const Pipeline& pipeline, const GreedyRule& rule);

// Runs words of F, I and B (W's are put in by the rule) and lets a later letter jump ahead where its rank would be
// idle, if it can start at once, delays nothing that is known to come, and the microbatches under way up to its old
// place leave room. The result may be longer than the words as they are: compare.
Found greedyFrom(const Pipeline& pipeline, const Words& words, const FillRule& rule);

} // namespace stagewright::planning
