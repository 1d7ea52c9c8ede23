#include "schedules/tiers/optimizer_buckets.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/core.h>

namespace stagewright {

namespace {

std::int64_t bucketsOf(std::int64_t parameters, std::int64_t bucket) { return (parameters + bucket - 1) / bucket; }
std::int64_t elementsOf(const BucketTimes& times, std::int64_t index)
{
    return std::min(times.bucket, times.parameters - index * times.bucket);
}

} // namespace

std::span<const StateLayout> stateLayouts()
{
    static constexpr std::array layouts{StateLayout{"axonn fp16", 4, 16, 12, 20},
                                        StateLayout{"engine fp32", 8, 8, 8, 16},
                                        StateLayout{"engine bf16", 6, 12, 12, 18}};
    return layouts;
}

BucketMemory bucketMemory(std::int64_t parameters, std::int64_t bucket, int buffers, const StateLayout& layout)
{
    BucketMemory out;
    out.buckets = bucketsOf(parameters, bucket);
    out.deviceWithout = parameters * layout.without;
    out.device = std::min(out.deviceWithout, parameters * layout.onDevice + bucket * buffers * layout.inBucket);
    out.host = out.in = out.out = parameters * layout.onHost;
    return out;
}

Result<std::vector<BucketRow>> timeBuckets(const BucketTimes& times, std::span<const Nanos> ready)
{
    if (times.parameters < 1 || times.bucket < 1 || times.buffers < 1)
        return fail(ErrorCode::Usage, "parameters, bucket and buffers are at least 1");
    const std::int64_t count = bucketsOf(times.parameters, times.bucket);
    if (count > 1'000'000)
        return fail(ErrorCode::Usage, fmt::format("{} buckets; at most 1000000 are timed", count),
                    "use larger buckets");
    std::vector<BucketRow> out(static_cast<std::size_t>(count));
    constexpr Nanos never = std::numeric_limits<Nanos>::max();
    std::array<Nanos, 2> lane{}; // in, out: one for both where the link is half duplex
    Nanos optimizer = 0;
    std::size_t in = 0, stored = 0;
    while (stored < out.size()) {
        Nanos canLoad = never, canStore = never;
        const auto buffers = static_cast<std::size_t>(times.buffers);
        if (in < out.size() && in < stored + buffers)
            canLoad =
                std::max({lane[0], in >= buffers ? out[in - buffers].out.second : 0, ready.empty() ? 0 : ready[in]});
        if (stored < in) canStore = std::max(lane[1], out[stored].step.second);
        const bool load = canLoad <= canStore;
        const auto index = load ? in : stored;
        const Nanos elements = elementsOf(times, static_cast<std::int64_t>(index));
        const Nanos start = load ? canLoad : canStore,
                    end = start + times.latency + elements * (load ? times.in : times.out);
        lane[load ? 0 : 1] = end;
        if (!times.fullDuplex) lane = {end, end};
        BucketRow& row = out[index];
        if (load) {
            row.in = {start, end};
            row.step = {std::max(optimizer, end), std::max(optimizer, end) + elements * times.step};
            optimizer = row.step.second;
            ++in;
        } else {
            row.out = {start, end};
            ++stored;
        }
    }
    return out;
}

std::vector<Nanos> reducedBy(const BucketTimes& times, int bucketsOfChunk, Nanos latency, Nanos ofElement)
{
    std::vector<Nanos> out;
    const std::int64_t count = bucketsOf(times.parameters, times.bucket);
    Nanos end = 0;
    for (std::int64_t first = 0; first < count; first += bucketsOfChunk) {
        const std::int64_t last = std::min<std::int64_t>(first + bucketsOfChunk, count);
        end += latency + ofElement * (std::min(last * times.bucket, times.parameters) - first * times.bucket);
        out.insert(out.end(), static_cast<std::size_t>(last - first), end);
    }
    return out;
}

} // namespace stagewright
