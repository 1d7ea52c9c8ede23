// The blocks of the run file: spans, memory events, edges, samples. Each function encodes or decodes up to
// blockRows rows; decoders check every field's range and return false if a block is damaged.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "schedules/timeline/timeline.h"
#include "traces/store/codec.h"

namespace stagewright {

struct StoredSpan {
    Span span;
    Nanos cpu = -1; // −1: unknown
};

// spans: of one track and one step. cpu: empty, or one per span. The step is in the row.
std::span<const std::byte> encodeSpans(BlockEncoder& encoder, std::span<const Span> spans, std::span<const Nanos> cpu);
bool decodeSpans(std::span<const std::byte> bytes, std::size_t rows, int step, std::vector<StoredSpan>& out);

// events: of one rank.
std::span<const std::byte> encodeMemory(BlockEncoder& encoder, std::span<const MemoryEvent> events);
bool decodeMemory(std::span<const std::byte> bytes, std::size_t rows, int rank, std::vector<MemoryEvent>& out);

// Memory in use at a moment: one event for each rank, stage and category, delta the bytes, time its last change.
std::span<const std::byte> encodeMemoryBase(BlockEncoder& encoder, std::span<const MemoryEvent> events);
bool decodeMemoryBase(std::span<const std::byte> bytes, std::size_t rows, std::vector<MemoryEvent>& out);

// Span ids within their segment.
std::span<const std::byte> encodeEdges(BlockEncoder& encoder, std::span<const Edge> edges);
bool decodeEdges(std::span<const std::byte> bytes, std::size_t rows, std::vector<Edge>& out);
// The span that the first edge leads to, of a block that is not checked otherwise; noSpan: unknown.
SpanId firstEdgeTarget(std::span<const std::byte> bytes, std::size_t rows);

std::span<const std::byte> encodeSamples(BlockEncoder& encoder, std::span<const CounterSample> samples);
bool decodeSamples(std::span<const std::byte> bytes, std::size_t rows, std::vector<CounterSample>& out);

} // namespace stagewright
