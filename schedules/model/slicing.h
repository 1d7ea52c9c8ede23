// Cutting sequences into slices (TeraPipe, Li et al. 2021, arXiv 2102.07988, section 3.3). A slice of l tokens behind c
// earlier ones takes t(l, c) on a stage; a pipeline of K stages takes Σ t + (K−1)·max t for what runs through it. The
// dynamic program tries each possible max t, least first, and fills the sequence at least cost below it.
#pragma once

#include <functional>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct SliceTask {
    int tokens = 1;      // of a sequence
    int stages = 1;      // K
    int granularity = 1; // slices are multiples of it; divides tokens
    int sequences = 1;   // that run through one after the other, cut alike
    double step = 0;     // candidates for max t closer than this to the last one tried are skipped; 0: all are tried
};

struct Slicing {
    double time = 0;          // sequences · Σ t + (K−1) · max t
    std::vector<int> lengths; // in order, in tokens
};

// O(n² · candidates) for n = tokens / granularity, candidates ≤ n². Of equally fast slicings the one with the longer
// first slices. Errors (Usage): numbers below one, a granularity that doesn't divide the tokens, a negative time.
Result<Slicing> sliceSequence(const SliceTask& task, const std::function<double(int length, int before)>& time);

} // namespace stagewright
