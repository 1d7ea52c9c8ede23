// Optimizer state on the host, stepped on the device bucket by bucket (AxoNN, IPDPS 2022, section V; formulas: its
// program).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"

namespace stagewright {

// Bytes of a parameter: on the device for good, in a bucket's buffers, on the host.
struct StateLayout {
    std::string_view name;
    int onDevice, inBucket, onHost;
    int without; // all of it on the device
};
std::span<const StateLayout> stateLayouts(); // "axonn fp16", "engine fp32", "engine bf16"

struct BucketMemory {
    std::int64_t buckets = 0;
    Bytes device = 0, host = 0, in = 0, out = 0, deviceWithout = 0; // in, out: copied each step
};
// With no more parameters than a bucket everything stays as it is, with one bucket.
BucketMemory bucketMemory(std::int64_t parameters, std::int64_t bucket, int buffers, const StateLayout& layout);

struct BucketTimes {
    std::int64_t parameters = 0, bucket = 1;
    int buffers = 1;                              // a bucket is loaded when the one so many before it has been stored
    Nanos in = 0, step = 0, out = 0, latency = 0; // of an element; of a copy
    bool fullDuplex = true;
};
struct BucketRow {
    std::pair<Nanos, Nanos> in, step, out; // start, end
};
// ready, by bucket: when its gradient is there (empty: from the start). Copies take their lane as soon as it and they
// are ready; of two that could start at once the load does. Usage: nothing to do, or more than a million buckets.
Result<std::vector<BucketRow>> timeBuckets(const BucketTimes& times, std::span<const Nanos> ready = {});
// When the all-reduces of chunks of so many buckets end, one behind the other; by bucket.
std::vector<Nanos> reducedBy(const BucketTimes& times, int bucketsOfChunk, Nanos latency, Nanos ofElement);

} // namespace stagewright
