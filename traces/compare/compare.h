// Compare: runs aligned by (rank, stage, op, microbatch) in their representative steps. For two runs: figures, the
// exact split of the change, the ledger of the critical path, the ladder of single changes, ops with their spread
// between steps, and sentences.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/compare/device_changes.h"
#include "traces/compare/ladder.h"
#include "traces/compare/ledger.h"
#include "traces/compare/step_noise.h"
#include "traces/report/run_report.h"
#include "traces/run/run.h"

namespace stagewright {

struct MetricDelta {
    std::string key;   // "makespan_ns", "bubble_fraction", "peak_activation_bytes.rank0"
    std::string title; // "Step time"
    std::string unit;  // "ns", "fraction", "bytes"
    double a = 0;
    double b = 0;
    double delta() const { return b - a; }
};

// A figure that one of the runs does not have: not compared.
struct UnknownMetric {
    std::string key;   // as MetricDelta::key
    std::string title; // "Peak activation"
    std::string why;   // "run B: the run has no memory events"
};

struct OpDelta {
    Op op;
    int rank = 0;
    SpanId a = noSpan; // noSpan: not in that run
    SpanId b = noSpan;
    Nanos startDelta = 0; // relative to each step's window begin
    Nanos durationDelta = 0;
    NoiseVerdict start{}; // whether it exceeds the op's spread between steps
    NoiseVerdict duration{};

    bool inBoth() const { return a != noSpan && b != noSpan; }
};

// The change of the step, and that of its ops split exactly: ranks × Δmakespan = Δbusy + Δapart + Σ Δidle by cause
// (same number of ranks). All 0 if the runs are in different units.
struct ChangeSplit {
    Nanos stepDelta = 0;     // of the whole step
    Nanos makespanDelta = 0; // of its ops
    Nanos busyDelta = 0;
    Nanos apartDelta = 0;
    IdleByCause idleDelta{}; // signed
    Nanos unexplained = 0;   // 0 if both have the same number of ranks
};

// A difference in setup between the runs, other than the schedule, which is what is compared.
struct RunDifference {
    std::string key;   // as RunFact::key
    std::string title; // "model"
    std::string a;
    std::string b;
};

struct Comparison {
    int stepA = 0;
    int stepB = 0;
    // What the headline compares. Between two engines one of which was traced by a profiler: its time without that.
    Nanos stepTimeA = 0;
    Nanos stepTimeB = 0;
    bool withoutProfilerA = false;
    bool withoutProfilerB = false;
    bool sameUnits = true; // else times are compared only as shares of ranks × makespan: no sums over both
    // Spread of the step time between steps (step_noise.h); empty if either run is measured and has fewer than four
    // measured steps. A smaller change can't be distinguished from noise.
    std::optional<Nanos> spread;
    bool withinSpread = false;
    bool tooFewSteps = false; // a measured run has fewer than four measured steps: no difference is claimed
    bool shows() const { return !withinSpread && !tooFewSteps; }
    std::vector<RunDifference> differences;
    RunReport reportA; // of stepA, without a memory cap
    RunReport reportB;
    // If the units differ: keys and units of shares ("idle_share.drain", "fraction") instead of times, and no sizes.
    std::vector<MetricDelta> metrics;
    std::vector<UnknownMetric> unknownMetrics;
    ChangeSplit change;
    PathLedger ledgerA;
    PathLedger ledgerB;
    std::vector<LadderRung> ladder;            // empty if there is none
    std::string noLadder;                      // the reason then
    std::vector<OpDelta> ops;                  // largest |startDelta| first
    std::shared_ptr<const OpHistory> historyA; // null: fewer than two measured steps, or too many ops
    std::shared_ptr<const OpHistory> historyB;
    // why ops, bubbles and times of steps can't be compared: "run A: …"; then all of the above is empty but the setups'
    // differences
    std::string unknown;
    std::optional<DeviceChanges> devices; // then, if both runs have kernels
    std::string headline;                 // "B is 16.7 % faster: 279.3 ms against 335.2 ms"
    std::vector<std::string> why;         // sentences, the most important first
};

// Runs of different shapes compare by what they share; ops without a partner are counted in the sentences.
// Steps −1: the representative ones. Cancelled: stopped.
Result<Comparison> compareRuns(const Run& a, const Run& b, int stepA = -1, int stepB = -1,
                               const Progress& progress = {});

} // namespace stagewright
