// Planning: the best order for given costs, latencies and memory caps, with a proven lower bound.
//
// The plan is the best of: the zero-bubble heuristic (one chunk) or list scheduling in the V and the building blocks
// (two chunks), every library schedule of that placement that keeps the caps, rules for each rank
// (schedules/plan/policy.h), branch and bound (schedules/plan/branch.h), also within intervals of time
// (schedules/plan/interval_search.h), a search of building blocks (two chunks) and local search. All but the library
// mix full backwards with I and W by microbatch. Tighter caps are tried first, with rules and local search, and their
// orders kept: a looser cap starts from what the tighter ones gave. Bounds are in schedules/plan/bound.h. Same request,
// same plan, wherever the search ends by itself (optimal, or the tries are used up); where the time budget ends it, the
// plan depends on the machine's speed.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "schedules/heuristic/objective.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

struct PlanRequest {
    int ranks = 4;
    int microbatches = 8;
    int chunks = 1; // 1: stage r on rank r; 2: V placement, stages r and 2·ranks−1−r on rank r
    // of ranks × chunks stages: F, I, W and B, also by microbatch, links, launch delays, activation and the part of it
    // that I frees
    CostModel costs;
    std::vector<Bytes> caps; // activations, by rank, in the cost model's bytes or shares; empty: none
    Objective objective = Objective::Makespan;
    double seconds = 5; // the search ends then with the best so far; ≤ 0: first guesses and their bound only
    std::uint64_t seed = 1;
    std::int64_t tries = 20'000'000; // no round of search starts after so many orders timed and relaxations solved
    std::vector<Schedule> known;     // orders to start with; those of other shapes and those over a cap are not used
    // what the budget is measured by, in seconds from any moment on; empty: the steady clock
    std::function<double()> clock;
};

struct CostLeftOut {
    std::string what;   // "jitter", "pairs": a key of cost files, or a kind of op
    std::string reason; // "an order is planned for usual times"
};

struct Plan {
    Schedule schedule; // named "plan"
    Nanos objective = 0;
    Nanos makespan = 0;
    Nanos span = 0;
    std::vector<Bytes> peaks; // activations by rank
    Nanos bound = 0;          // no order within the caps has a smaller objective
    double gap = 0;           // (objective − bound) / objective
    bool optimal = false;     // objective == bound, for exactly the request's costs: nothing of them is left out
    std::string provenBy;     // what gave the bound: "work of rank 3", "relaxation of single ranks", "branch and bound"
    std::string limit;        // a sentence on why the shape is too large for the bound's best part; empty: it is not
    // what gave the order: "zero-bubble heuristic", "library: zb-h1", "branch and bound", "search of building blocks",
    // …
    std::string foundBy;
    std::int64_t tries = 0;   // orders timed
    std::int64_t nodes = 0;   // relaxations that branch and bound solved
    bool interrupted = false; // cancelled; the plan is the best until then
    std::vector<CostLeftOut> leftOut;
};

// What the request's costs say that no plan takes into account: orders are searched, timed and bounded without it.
// Empty: all is.
std::vector<CostLeftOut> leftOutOf(const PlanRequest& request);

// progress reports the best and the bound, done and total in ms of the budget, where they move and every second.
// Cancelling ends the search with the best so far. Fails (Usage) where costs, caps and shape don't fit together,
// (Invalid) where a cap is below what one microbatch needs.
Result<Plan> plan(const PlanRequest& request, const Progress& progress = {});

// A library schedule at its defaults on the plane of largest activation peak and objective.
struct LibraryPoint {
    std::string name; // "zb-h1", "v-half"
    Bytes peak = 0;   // of the fullest rank
    Nanos objective = 0;
    bool planned = false;      // an order of F, I, W and B in the request's placement: no plan at its peak is longer
    bool asynchronous = false; // stale weights, no end of the step to wait for
    bool copies = false;       // ranks hold a second copy of stages: twice the weights
};

struct ParetoPoint {
    Bytes cap = 0; // on every rank
    Plan plan;
};

struct Pareto {
    std::vector<ParetoPoint> curve;                           // by rising cap; objectives never rise
    std::vector<LibraryPoint> library;                        // in the registry's order, caps or not
    std::vector<std::pair<std::string, std::string>> leftOut; // library schedules without a point, and why
    bool interrupted = false;
};

// The costs of a schedule with other stages than the request's (interleaved, bidirectional); an error leaves its point
// out.
using CostsFor = std::function<Result<CostModel>(const Schedule&)>;

// Plans for at most `points` caps between the least with which a step is possible and the peak of a plan without caps;
// request.caps is not used. After both ends, the next cap halves the two neighbours between which the curve may still
// bend most (the larger the product of their distances in memory and time, the sooner); fewer points where no
// neighbours differ in time. Each gets an equal part of the request's seconds; what is found for a smaller cap counts
// for the larger ones too. Library schedules in other placements have points where costsFor is given.
Result<Pareto> pareto(const PlanRequest& request, int points, const Progress& progress = {},
                      const CostsFor& costsFor = {});

} // namespace stagewright
