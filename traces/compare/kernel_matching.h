// Which kernels and copies of one run's step are which of another's: by name, then by size and shape of
// the launch where they are known, then by order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

// The n-th call of a kernel on a rank in either run.
struct MatchedCall {
    int rank = 0;
    std::int64_t place = 1; // from 1: which of the kernel's calls on this rank, by their start
    std::int64_t calls = 1; // of the kernel on this rank
    SpanId spanA = noSpan;
    SpanId spanB = noSpan;
    Nanos a = 0; // duration
    Nanos b = 0;

    Nanos change() const { return b - a; }
};

// Calls of one name (with its template arguments, which hold the shapes of tiles), one lane and, where known, one size
// and one shape.
struct KernelChange {
    std::string name;
    Lane lane = Lane::Kernel;
    // The shape of the launch, as Timeline::shapeOf() has it; "": the shape of some call of that name is unknown, or it
    // doesn't run there. Calls whose shape is in one run only are one row if the other has such calls too: "3 shapes"
    // where they differ.
    std::string shapeA;
    std::string shapeB;
    // of each call; nothing: the size of some call of that name is unknown, then all of them are one row
    std::optional<Bytes> bytes;
    std::int64_t callsA = 0;
    std::int64_t callsB = 0;
    Nanos totalA = 0; // sum of durations over all ranks
    Nanos totalB = 0;
    bool byOrder = false; // as many calls in both on every rank: the n-th of one is the n-th of the other
    // if so: the call that changed most in the direction of change(), or at all where that is 0; the first of them
    std::optional<MatchedCall> most;

    Nanos change() const { return totalB - totalA; }
    bool inBoth() const { return callsA > 0 && callsB > 0; }
    bool byShape() const { return inBoth() && !shapeA.empty() && shapeA == shapeB; }
    std::string shapeText() const; // "grid 1×1×1, block 64×1×1", "grid 1×1×1 → 2×1×1, block 64×1×1", "" if unknown
    const char* matchedBy() const; // "shape and order", "shape", "order", "name", "only A", "only B"
    // `most` stands out: it has at least twice the part of the change that calls on the average have.
    bool placed() const;
};

// Largest change first, then lane, name, size and shape. Where some call of a name was recorded without its inputs,
// shapes are those of the grid and block alone. O(kernels of both steps × log).
std::vector<KernelChange> matchKernels(const Timeline& a, int stepA, const Timeline& b, int stepB);

} // namespace stagewright
