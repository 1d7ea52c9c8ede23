// A step's work folded by what it was done for: stacks of nested named ranges with the kernels that were launched in
// them, over all ranks, as a flame graph draws them. Of a step without kernels the time of the host's ranges.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "schedules/timeline/timeline.h"
#include "traces/analysis/kernel_class.h"

namespace stagewright {

struct StackNode {
    std::string name;                             // of the range, op or kernel
    int parent = -1;                              // of RangeStacks::nodes, before this one; −1: at the bottom
    int depth = 0;                                // from 0
    std::optional<KernelClass> of = std::nullopt; // of a kernel or copy; else it is a range or an op
    std::optional<OpKind> kind = std::nullopt;    // of an op
    std::int64_t count = 0;                       // times it occurs
    Nanos total = 0;                              // of what is in it, itself included; simultaneous work counts twice
    Nanos self = 0;                               // of itself alone
    SpanId longest = noSpan;                      // the first of the longest of them
};

struct RangeStacks {
    // parents first; children of one node in the order of their total, largest first; none of no time
    std::vector<StackNode> nodes;
    Nanos total = 0;     // of all nodes at the bottom
    bool device = false; // times are of kernels and copies; else of the host's ranges
    bool empty() const { return nodes.empty(); }
    std::string pathOf(int node) const; // "step › forward › gemm"
};

// What of the step lies in [begin, end), trimmed to it, on these ranks (empty: all). A kernel lies in the innermost
// range, or in the op, that launched it; by none of them it is at the bottom. O(spans of the step × log).
RangeStacks foldRanges(const Timeline& timeline, int step, Nanos begin = std::numeric_limits<Nanos>::min(),
                       Nanos end = std::numeric_limits<Nanos>::max(), const std::vector<int>& ranks = {});

} // namespace stagewright
