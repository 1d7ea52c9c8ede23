#include "schedules/messages/message_delay.h"

#include <algorithm>
#include <numeric>

namespace stagewright {

std::vector<Bytes> boundaryOf(const Schedule& schedule, const CostModel& costs)
{
    std::vector<Bytes> out;
    if (costs.sizes.empty() && !costs.hasRelativeSizes()) {
        for (const StageMemory& memory : costs.memory) out.push_back(memory.boundary);
        return out;
    }
    for (int microbatch = 0; microbatch < schedule.microbatches; ++microbatch)
        for (int stage = 0; stage < schedule.stages; ++stage)
            out.push_back(stage < costs.stages() ? costs.memoryOf(schedule, stage, microbatch).boundary : 0);
    return out;
}

Nanos messageDelay(const Schedule& schedule, const Links& links, std::span<const Bytes> boundary, const Op& op,
                   int stage, int rank, int slices)
{
    return messageTransit(schedule, links, boundary, op, stage, rank, slices).delay;
}

Transit messageTransit(const Schedule& schedule, const Links& links, std::span<const Bytes> boundary, const Op& op,
                       int stage, int rank, int slices)
{
    if (stage == op.stage) return {};
    const auto lower = static_cast<std::size_t>(std::min<int>(op.stage, stage));
    const auto stages = static_cast<std::size_t>(schedule.stages);
    Bytes bytes = 0;
    if (boundary.size() > stages && lower < stages) { // by microbatch
        for (int k = 0; k < op.count; ++k)
            if (const auto at = lower + stages * static_cast<std::size_t>(std::max(0, op.microbatch + k));
                at < boundary.size())
                bytes += boundary[at];
    } else if (lower < boundary.size()) {
        bytes = boundary[lower] * op.count;
    }
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
    return links.transit(schedule.placement.rankOf(stage, op.microbatch), rank, bytes);
}

bool sharesBandwidth(const Links& links, std::span<const Bytes> boundary, const Channels& channels)
{
    return !channels.apart && links.haveBandwidth() &&
           std::any_of(boundary.begin(), boundary.end(), [](Bytes bytes) { return bytes > 0; });
}

std::vector<Message> messagesBySender(const Schedule& schedule, const OpIndex& index)
{
    std::vector<Message> out = messagesOf(schedule, index);
    std::stable_sort(out.begin(), out.end(), [](const Message& a, const Message& b) {
        return a.producer != b.producer ? a.producer < b.producer : a.send < b.send;
    });
    return out;
}

} // namespace stagewright
