// Branch and bound on what the rank relaxation leaves open. Internal to schedules/plan.
//
// Two events of a rank that may still come in either order give two branches; in each the states that contradict it are
// dropped and the relaxation is solved again. Without an open pair, a gradient that may still be made by I or by B
// gives two. All ranks without either: the earliest starts are an order within the target.
#pragma once

#include <cstdint>
#include <functional>

#include "schedules/plan/relaxation.h"

namespace stagewright::planning {

struct Branching {
    enum class Outcome : std::uint8_t {
        Refuted, // no order has an objective ≤ target
        Solved,  // words has one that does
        Open,    // the work or the memory was used up, or stop fired
    };
    Outcome outcome = Outcome::Open;
    Words words;
    std::int64_t nodes = 0; // relaxations solved
    std::int64_t work = 0;  // states and pairs looked at in them
};

// Depth first; ends when mostWork is done (about 10 ns a unit) or 256 MiB of branches wait. stop may be empty. Other
// seeds take pairs in other turns: where one gets lost another may not. Same input, same result unless stop fires.
Branching branch(const Pipeline& pipeline, RankRelaxation& relaxation, Nanos target, std::int64_t mostWork,
                 const std::function<bool()>& stop = {}, std::uint64_t seed = 0);

// Only among the orders that the windows leave: Refuted says nothing about others.
Branching branchWithin(const Pipeline& pipeline, RankRelaxation& relaxation, Windows windows, std::int64_t mostWork,
                       const std::function<bool()>& stop = {}, std::uint64_t seed = 0);

} // namespace stagewright::planning
