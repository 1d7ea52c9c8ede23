// Compare: two runs aligned by (rank, stage, op, microbatch) in their representative steps.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "traces/analysis/bubbles.h"
#include "traces/run.h"

namespace stagewright {

struct MetricDelta {
    std::string key;   // "makespan_ns", "bubble_fraction", "peak_activation_bytes.rank0"
    std::string title; // "Time"
    std::string unit;  // "ns", "fraction", "bytes"
    double a = 0;
    double b = 0;
    double delta() const { return b - a; }
};

struct OpDelta {
    Op op;
    int rank = 0;
    SpanId a = noSpan; // noSpan: not in that run
    SpanId b = noSpan;
    Nanos startDelta = 0; // relative to each step's window begin
    Nanos durationDelta = 0;
};

// The makespan change split exactly: ranks × Δmakespan = Δbusy + Δapart + Σ Δidle by cause (same number of ranks).
struct ChangeSplit {
    Nanos makespanDelta = 0;
    Nanos busyDelta = 0;
    Nanos apartDelta = 0;
    IdleByCause idleDelta{}; // signed
    Nanos unexplained = 0;   // 0 where the ranks are equal in number
};

struct Comparison {
    int stepA = 0;
    int stepB = 0;
    // From step to step: the larger interquartile range of step times of the two runs; nothing where either has fewer than
    // four measured steps. A change of the makespan smaller than that can't be told from noise.
    std::optional<Nanos> spread;
    bool withinSpread = false;
    BubbleReport bubblesA;
    BubbleReport bubblesB;
    std::vector<MetricDelta> metrics;
    ChangeSplit change;
    std::vector<OpDelta> ops; // largest |startDelta| first
    std::string headline;           // "B is 16.7 % faster: 279.3 ms against 335.2 ms"
    std::vector<std::string> why;   // sentences, the most important first
};

// Runs of different shapes compare by what they share; ops without a partner are counted in the sentences.
// Steps −1: the representative ones.
Result<Comparison> compareRuns(const Run& a, const Run& b, int stepA = -1, int stepB = -1);

} // namespace stagewright
