// What a collective over the ranks that share a stage takes: α-β costs of the usual algorithms. D is the whole vector
// in bytes, n the members, each step a latency α and a part of D at the link's bandwidth.
//   ring       gather or scatter   (n−1)·α + (n−1)·s/BW, s the largest piece (D/n where even)       all-reduce: both
//   tree       gather or scatter   ⌈log₂ n⌉·α + (D−D/n)/BW                                          all-reduce: both
//   two-level  a ring over the h hosts on the link between them (of which a host has one), then a ring within each host
//              of g ranks: (h−1)·α₂ + (h−1)·D/h/BW₂ + (g−1)·α₁ + (g−1)·D/g/BW₁
// A ring or tree that leaves a host takes the slower of both links.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

enum class CollectiveAlgorithm : std::uint8_t {
    Ring,
    Tree,
    TwoLevel,
};
std::string_view toText(CollectiveAlgorithm algorithm); // "ring", "tree", "two-level"
Result<CollectiveAlgorithm> parseCollectiveAlgorithm(std::string_view text);

struct CollectiveCosts {
    CollectiveAlgorithm algorithm = CollectiveAlgorithm::Ring;
    Link within;                 // of a host
    std::optional<Link> between; // of hosts; none: as within
    int perHost = 0;             // members of the stage on one host; 0: all
    bool operator==(const CollectiveCosts&) const = default;

    // bytes of the whole vector; largest: of the largest piece, 0: even ones. One gather, or one reduce-scatter. 1
    // member: 0.
    Nanos gather(Bytes bytes, int members, Bytes largest = 0) const;
    Nanos allReduce(Bytes bytes, int members) const; // a reduce-scatter and a gather
};

// Bytes that one member receives in a step, by kind: what transports count. Per gather D less what it owns; the same
// for a reduce-scatter that adds on the way (each owner receives its own piece from every other member).
struct CollectiveVolume {
    Bytes gathered = 0;
    Bytes reduced = 0;
    int gathers = 0; // UNSHARD ops
    int reductions = 0;
    bool operator==(const CollectiveVolume&) const = default;
};

// Elements by stage and layer, for a division by layer; empty: a stage is one layer of as many elements as its weights
// have bytes.
using LayerElements = std::vector<std::vector<std::int64_t>>;

// Sets what follows from the costs' sharding and replicas: times of UNSHARD, REDUCE_GRAD and the optimizer by shard,
// for lists that addShardOps() made. Members of a stage are the ranks that hold it, in every replica; where replicas go
// back to different layers only its contributors send gradients (schedules/model/partial_backward.h), each as many as
// ever, and all of them take the sums: that saves bytes, not time. The optimizer takes its rank's share of its time;
// where one replica stands for all, the largest owner's.
void setCollectiveTimes(CostModel& costs, const Schedule& schedule, const CollectiveCosts& collectives,
                        const LayerElements& layers = {});

// What the lists move, by rank, in bytes of the model's weights and gradients. Without sharding a reduction is a
// reduce-scatter and a gather of sums.
std::vector<CollectiveVolume> collectiveVolumes(const Schedule& schedule, const CostModel& costs,
                                                const LayerElements& layers = {});

// What a rank holds of a stage between steps, in bytes: the parts that it owns, of what is not sharded all. Where one
// replica stands for all, of the first of them.
struct HeldState {
    Bytes weights = 0;
    Bytes gradients = 0;
    Bytes optimizer = 0;
    Bytes sum() const { return weights + gradients + optimizer; }
};
HeldState heldState(const CostModel& costs, const Schedule& schedule, int stage, int rank,
                    const LayerElements& layers = {});

} // namespace stagewright
