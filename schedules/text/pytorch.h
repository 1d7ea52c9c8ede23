// What torch.distributed.pipelining can run of a schedule, and in which form it takes it. Its CSV has F, B, I and W of
// stages that are on one rank each, and overlapped pairs; weights are synchronous.
#pragma once

#include <compare>
#include <optional>
#include <string>

#include "schedules/base/result.h"
#include "schedules/model/schedule.h"

namespace stagewright {

struct TorchVersion {
    int major = 0;
    int minor = 0;
    auto operator<=>(const TorchVersion&) const = default;
};
std::string toText(const TorchVersion& version); // "2.6"

inline constexpr TorchVersion oldestTorch{2, 6};      // the letters of today: I, W and B
inline constexpr TorchVersion torchWithPairs{2, 9};   // overlapped pairs: the DualPipeV schedule
inline constexpr TorchVersion torchWithReduce{2, 10}; // REDUCE_GRAD in a list
// The first that takes these lists, with the messages and reductions in them: "2.9". Precondition: pytorchObstacle()
// names none.
TorchVersion torchNeeded(const Schedule& schedule);

// The first thing that PyTorch can't express: "rank 0, op 3 (0R0): recompute is unknown to PyTorch"; none: it can.
std::optional<std::string> pytorchObstacle(const Schedule& schedule);

// A schedule that PyTorch can express, for one that it can't.
struct PyTorchNearest {
    std::string name; // of the library; "" where it is the given order without some ops
    // "the nearest it can run: dualpipev, 27 against 26 units, 4.5 against 5 activations (F=I=W=1)"
    std::string sentence;
    Schedule schedule;
};
// The same order without its recompute, optimizer, reduction, offload and delay ops, where that is what is in the way;
// else the library's schedule of these ranks and microbatches whose time and peak memory at unit costs are closest,
// both relative; of equal ones the first. None where the shape fits none, or the schedule has more than 200,000 ops.
std::optional<PyTorchNearest> nearestForPyTorch(const Schedule& schedule);

struct PyTorchForms {
    std::string computeOnly;  // what _load_csv takes
    std::string withMessages; // format="compute_comms": PyTorch's own lowering, so that it can be viewed and changed
};
// Both forms. Messages in the schedule are dropped first. Errors: what PyTorch can't express (Invalid; the remedy names
// the nearest), an order that is not valid.
Result<PyTorchForms> pytorchForms(const Schedule& schedule);

// What builds the stages where they are: a class name for TorchTitan's pipeline_parallel_schedule. Errors (Invalid):
// TorchTitan knows loop placement, one or more stages per rank, and V placement with two stages per rank.
Result<std::string> torchTitanSchedule(const Schedule& schedule);

} // namespace stagewright
