// Field numbers of Perfetto's trace messages, as far as they are written here.
#pragma once

#include <cstdint>

#include <protozero/types.hpp>

namespace stagewright::perfetto {

enum class Trace : protozero::pbf_tag_type { packet = 1 };
enum class Packet : protozero::pbf_tag_type {
    chromeEvents = 5,
    clockSnapshot = 6,
    timestamp = 8,
    sequence = 10,
    trackEvent = 11,
    internedData = 12,
    sequenceFlags = 13,
    defaults = 59,
    trackDescriptor = 60,
    firstOnSequence = 87,
};
enum class Defaults : protozero::pbf_tag_type { timestampClock = 58 };
enum class Track : protozero::pbf_tag_type {
    uuid = 1,
    name = 2,
    process = 3,
    parent = 5,
    counter = 8,
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
enum class Counter : protozero::pbf_tag_type {
    unit = 3,
    unitName = 6,
    shareKey = 7,
};
enum class Event : protozero::pbf_tag_type {
    categoryIid = 3,
    annotation = 4,
    type = 9,
    nameIid = 10,
    track = 11,
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
};
enum class Interned : protozero::pbf_tag_type {
    categories = 1,
    names = 2,
    annotationNames = 3,
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
    boottime = 6,
};
inline constexpr std::int32_t orderedExplicitly = 3; // TrackDescriptor.child_ordering
inline constexpr std::int32_t explicitRanks = 1;     // process_ordering, thread_ordering
inline constexpr std::int32_t neverMerged = 2;       // sibling_merge_behavior
inline constexpr std::int32_t inBytes = 3;           // CounterDescriptor.unit
inline constexpr std::int32_t aCount = 2;

} // namespace stagewright::perfetto
