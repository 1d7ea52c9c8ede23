// ShardRules: where the ops of a sharded state go in any schedule's lists, and the pass that puts them there.
//
// 1F1B, rank 0 of 2, 2 microbatches, weights sharded:
//   batch, late              0UNSHARD 0F0 0F1 0B0 0B1 0RESHARD 0REDUCE_GRAD 0OPT
//   microbatch, overlapped   0UNSHARD0 0F0 0RESHARD0 0UNSHARD1 0F1 0RESHARD1 0UNSHARD0 0B0 … 0B1 0RESHARD1 0REDUCE_GRAD
//                            0OPT
// optimizer or gradients sharded, late:   0F0 0F1 0B0 0B1 0REDUCE_GRAD 0OPT 0UNSHARD
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/model/schedule.h"
#include "schedules/model/state_sharding.h"

namespace stagewright {

enum class GatherRule : std::uint8_t {
    Batch,      // breadth-first: a stage stays gathered while its rank's next prefetch + 1 distinct stages include it
    Microbatch, // depth-first: before each op that needs the weights, and released after it
};

enum class ReduceRule : std::uint8_t {
    Late,       // every stage's at the end of the list
    Overlapped, // as each stage's last weight gradient ends
    Microbatch, // after each weight gradient: whoever owns a piece accumulates it
    Stepped,    // Overlapped, and OPT of a stage behind the next stage's reduction, while the rank goes back on
};

struct ShardRules {
    GatherRule gather = GatherRule::Batch;
    int prefetch = 0; // gathers issued so many stages (Batch) or ops (Microbatch) ahead
    ReduceRule reduce = ReduceRule::Late;
    bool operator==(const ShardRules&) const = default;
};

// "batch", "batch:prefetch=2", "microbatch" into gather and prefetch.
Result<void> parseGather(std::string_view text, ShardRules& rules);
// "late", "overlapped", "microbatch", "stepped".
Result<ReduceRule> parseReduce(std::string_view text);
std::string gatherText(const ShardRules& rules);
std::string_view toText(ReduceRule rule);

// The lists with UNSHARD and RESHARD (weights sharded), REDUCE_GRAD of every stage, OPT of every stage behind all
// reductions, and the gather of the stepped weights behind OPT (optimizer or gradients sharded). Kinds that the lists
// already have are left where they are, and pairs stay together. A stage with copies in one pipeline is gathered from
// the start to the end of the lists, as a gather in the middle would let copies wait for each other in turn, and its
// gradients are reduced at the end. Of one replica's schedule or of one over replicas. Usage: weights that are not
// synchronous; stepped, replicas whose ranks finish their stages in different orders. O(ops · stages of a rank).
Result<Schedule> addShardOps(const Schedule& schedule, ShardLevel level, const ShardRules& rules);

// Whether an op that does not settle its step (KindTraits::settles; messages aside) comes behind an OPT: optimizers that
// step before all gradients are known. Of a rank's list; of any list of a schedule.
bool stepsOnArrival(std::span<const Op> list);
bool stepsOnArrival(const Schedule& schedule);

// Whether the ranks of a stage share its state op by op when the lists are trained: synchronous weights, stages with
// copies, and REDUCE_GRAD and OPT in the lists, as addShardOps() gives them. Without OPT copies sum their gradients and
// each steps all of them.
bool sharesState(const Schedule& schedule);

// A list with UNSHARD and RESHARD so that before each op for which `needs` holds the next `active` distinct stages are
// gathered, others released; PyTorch does it with 3 and every op. Internal to schedules.
struct GatheredRow {
    std::vector<Op> ops;
    std::vector<std::uint32_t> paired;
};
GatheredRow gatherStages(const Schedule& schedule, std::size_t rank, std::size_t active,
                         const std::function<bool(const Op&)>& needs);

} // namespace stagewright
