// Field numbers of Perfetto's trace messages (protos of v58), as far as they are written or read here.
#pragma once

#include <cstdint>

#include <protozero/types.hpp>

namespace stagewright::perfetto {

enum class Trace : protozero::pbf_tag_type { packet = 1 };
enum class Packet : protozero::pbf_tag_type {
    trustedUser = 3,
    chromeEvents = 5,
    clockSnapshot = 6,
    timestamp = 8,
    sequence = 10,
    trackEvent = 11,
    internedData = 12,
    sequenceFlags = 13,
    config = 33,
    previousDropped = 42,
    compressed = 50,
    gpuCounters = 52,
    renderStage = 53,
    timestampClock = 58,
    defaults = 59,
    trackDescriptor = 60,
    firstOnSequence = 87,
    uuid = 89,
    zstdCompressed = 133,
};
enum class Defaults : protozero::pbf_tag_type {
    trackEvent = 11, // its track
    timestampClock = 58,
};
enum class Track : protozero::pbf_tag_type {
    uuid = 1,
    name = 2,
    process = 3,
    thread = 4,
    parent = 5,
    counter = 8,
    staticName = 10,
    childOrdering = 11,
    orderRank = 12,
    description = 14,
    siblingMerge = 15,
    processOrdering = 19,
    threadOrdering = 20,
};
enum class Process : protozero::pbf_tag_type {
    pid = 1,
    name = 6,
};
enum class Thread : protozero::pbf_tag_type {
    pid = 1,
    tid = 2,
    name = 5,
};
enum class Counter : protozero::pbf_tag_type {
    unit = 3,
    multiplier = 4,
    isIncremental = 5,
    unitName = 6,
    shareKey = 7,
};
enum class Event : protozero::pbf_tag_type {
    categoryIid = 3,
    annotation = 4,
    legacy = 6,
    type = 9,
    nameIid = 10,
    track = 11,
    category = 22,
    name = 23,
    counterValue = 30,
    doubleCounterValue = 44,
    flow = 47,
    terminatingFlow = 48,
    correlation = 52,
};
enum class Annotation : protozero::pbf_tag_type {
    nameIid = 1,
    boolean = 2,
    unsignedInt = 3,
    signedInt = 4,
    number = 5,
    text = 6,
    pointer = 7,
    legacyJson = 9,
    name = 10,
    entries = 11,
    values = 12,
    textIid = 17,
};
enum class Interned : protozero::pbf_tag_type {
    categories = 1,
    names = 2,
    annotationNames = 3,
    graphicsContexts = 23,
    gpuSpecifications = 24,
    annotationTexts = 29,
    gpuCounterDescriptors = 47,
};
enum class InternedName : protozero::pbf_tag_type {
    iid = 1,
    name = 2,
};
enum class ClockSnapshot : protozero::pbf_tag_type {
    clock = 1,
    primary = 2,
};
enum class Clock : protozero::pbf_tag_type {
    id = 1,
    timestamp = 2,
    isIncremental = 3,
    multiplier = 4,
};
// GpuRenderStageEvent and what belongs to it
enum class RenderStage : protozero::pbf_tag_type {
    eventId = 1,
    duration = 2,
    context = 5,
    extraData = 6,
    gpu = 11,
    queueIid = 13,
    stageIid = 14,
    name = 17,
    nameIid = 20,
    launch = 21,
};
enum class ExtraData : protozero::pbf_tag_type {
    name = 1,
    value = 2,
};
enum class KernelLaunch : protozero::pbf_tag_type {
    grid = 1,
    workgroup = 2,
};
enum class Extent : protozero::pbf_tag_type {
    x = 1,
    y = 2,
    z = 3,
};
enum class GraphicsContext : protozero::pbf_tag_type {
    iid = 1,
    pid = 2,
};
enum class GpuCounters : protozero::pbf_tag_type {
    descriptor = 1,
    counters = 2,
    gpu = 3,
    descriptorIid = 4,
};
enum class GpuCounter : protozero::pbf_tag_type {
    id = 1,
    whole = 2,
    number = 3,
};
enum class InternedGpuCounters : protozero::pbf_tag_type {
    iid = 1,
    descriptor = 2,
    gpu = 3,
};
enum class GpuCounterDescriptor : protozero::pbf_tag_type { specs = 1 };
enum class GpuCounterSpec : protozero::pbf_tag_type {
    id = 1,
    name = 2,
};
enum class ChromeEvents : protozero::pbf_tag_type { metadata = 2 };
enum class ChromeMetadata : protozero::pbf_tag_type {
    name = 1,
    text = 2,
    integer = 4,
};

enum EventType : std::int32_t {
    sliceBegin = 1,
    sliceEnd = 2,
    instant = 3,
    counterValue = 4,
};
enum SequenceFlag : std::uint32_t {
    stateCleared = 1,
    needsState = 2,
};
enum Clocks : std::uint32_t {
    realtime = 1,
    monotonic = 3,
    boottime = 6,
};
inline constexpr std::int32_t orderedExplicitly = 3; // TrackDescriptor.child_ordering
inline constexpr std::int32_t explicitRanks = 1;     // process_ordering, thread_ordering
inline constexpr std::int32_t neverMerged = 2;       // sibling_merge_behavior
inline constexpr std::int32_t inNanos = 1;           // CounterDescriptor.unit
inline constexpr std::int32_t inBytes = 3;
inline constexpr std::int32_t aCount = 2;

} // namespace stagewright::perfetto
