// Pictures of schedules/tiers: residency by moment, chunks, copies of buckets, owners, filled gaps. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schedules/planner/pictures.h"
#include "schedules/tiers/fill_gaps.h"
#include "schedules/tiers/optimizer_buckets.h"
#include "schedules/tiers/owners.h"
#include "schedules/tiers/residency.h"

namespace stagewright {

// Loads by cap of the three policies.
struct LoadsByCap {
    std::vector<int> caps;
    std::vector<std::int64_t> loads[std::size(evictions)]; // −1: a moment needs more
};
// The pieces (up) that are on the device in each moment (across) under capByMoment by the known future, and below it
// loads over caps, where there are any; shown: the cap of the picture there, 0: none of them.
PlannerPicture residencyPicture(const AccessTrace& trace, std::span<const int> capByMoment, bool cyclic,
                                const LoadsByCap& byCap, int shown);
// Tensors in their chunks.
PlannerPicture packPicture(std::span<const std::int64_t> sizes, std::int64_t chunk,
                           const std::optional<std::vector<std::vector<int>>>& chunks);
// What fills a device up to its cap, with `count` chunks of optimizer state.
PlannerPicture deviceChunksPicture(Bytes cap, Bytes other, Bytes fp16, Bytes optimizer, std::int64_t count);
// Lanes in, optimizer and out.
PlannerPicture bucketPicture(std::span<const BucketRow> rows);
PlannerPicture bucketMemoryPicture(const BucketMemory& memory);
// What each member has, by rule.
PlannerPicture ownersPicture(std::span<const std::int64_t> cost, int members);
// A lane for each step of a round.
PlannerPicture fillPicture(std::span<const BusyOp> busy, Nanos step, std::span<const FillerWork> works,
                           const FilledGaps& filled);

} // namespace stagewright
