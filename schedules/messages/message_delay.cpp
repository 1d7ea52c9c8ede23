#include "schedules/messages/message_delay.h"

#include <algorithm>
#include <numeric>

namespace stagewright {

std::vector<Bytes> boundaryOf(const CostModel& costs)
{
    std::vector<Bytes> out;
    for (std::size_t replica = 0; replica < std::max<std::size_t>(1, costs.sizes.size()); ++replica)
        for (const StageMemory& memory : costs.memory) out.push_back(costs.sized(memory.boundary, static_cast<int>(replica)));
    return out;
}

Nanos messageDelay(const Schedule& schedule, const Links& links, std::span<const Bytes> boundary, const Op& op,
                   int stage, int offset, int rank, int slices)
{
    if (offset == 0) return 0;
    auto lower = static_cast<std::size_t>(std::min<int>(op.stage, stage));
    const auto stages = static_cast<std::size_t>(schedule.stages);
    if (boundary.size() > stages && lower < stages) lower += stages * static_cast<std::size_t>(schedule.replicaOf(rank));
    Bytes bytes = lower < boundary.size() ? boundary[lower] * op.count : 0;
    if (op.slice >= 0 && bytes > 0) { // its part, so that the parts sum to the whole
        const auto& lengths = schedule.sliceLengths;
        const auto slice = static_cast<std::size_t>(op.slice);
        if (slice < lengths.size()) {
            const auto before = std::accumulate(lengths.begin(), lengths.begin() + op.slice, Bytes{0});
            const auto whole = std::accumulate(lengths.begin(), lengths.end(), Bytes{0});
            bytes = bytes * (before + lengths[slice]) / whole - bytes * before / whole;
        } else if (op.slice < slices) {
            bytes = bytes * (op.slice + 1) / slices - bytes * op.slice / slices;
        }
    }
    if (op.half > 0) bytes = op.half == 1 ? bytes / 2 : bytes - bytes / 2;
    return links.delay(schedule.placement.rankOf(stage, op.microbatch), rank, bytes);
}

} // namespace stagewright
