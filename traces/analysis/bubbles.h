// Idle time by cause (docs/numbers.md). The window of a step runs from its first to its last busy span over all ranks.
// Busy is F, B, I, W and R; optimizer, communication and collectives are counted apart. The causes of all gaps sum to
// idle = ranks × window − busy − apart, to the last nanosecond.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/timeline/timeline.h"
#include "traces/analysis/idle_cause.h"
#include "traces/step/slow_ranks.h"

namespace stagewright {

// A maximal idle interval of a rank, cut where the cause changes.
struct Gap {
    int rank = 0;
    Nanos start = 0;
    Nanos end = 0;
    IdleCause cause = IdleCause::Dependency;
    SpanId next = noSpan; // the span that ends the wait; noSpan in the drain
    // Dependency, Transfer, RecomputeWait: the producer waited for; Imbalance, Straggler, Microbatch: the op that takes
    // too long; ReloadWait: the reload; PeerWait before a reduction: the previous op of the last rank to reach it,
    // before one beside compute itself; Order, Memory: see readyOp
    SpanId blamed = noSpan;
    Op readyOp; // Order, Memory: the op that could have run
    bool hasReadyOp = false;
    double microbatchFactor = 0; // Microbatch: that of `blamed` takes this many times as long as the others
    // Straggler: the rank of `blamed` takes this many times as long as others; 0: only the op is slow
    double rankFactor = 0;
    // the message of its own that the rank waited in, on lane Wait; blamed is then that message's producer
    SpanId wait = noSpan;
    bool unsure = false; // Launch: inputs from other ranks may not have been there (BubbleReport::noArrivals)
};

struct RankBubbles {
    Nanos busy = 0;
    std::array<Nanos, opKindRoom> busyByKind{};
    Nanos apart = 0; // optimizer, collectives inside the window
    Nanos idle = 0;
    Nanos contention = 0; // inside busy: wall time without CPU time, where CPU time is known
    IdleByCause byCause{};
};

struct BubbleReport {
    int step = 0;
    Nanos windowBegin = 0;
    Nanos windowEnd = 0;
    Nanos stepBegin = 0; // of the whole step, with gathers, reductions and the optimizer (traces/step/whole_step.h)
    Nanos stepEnd = 0;
    Nanos span = 0;            // longest first-start-to-last-end of busy spans of any one rank
    double bubbleFraction = 0; // idle / (ranks × window)
    double bubbleRateSpan = 0; // 1 − ideal / span; ideal: busy time of the rank with the longest span
    Nanos busy = 0;
    Nanos idle = 0;
    IdleByCause byCause{};
    std::vector<RankBubbles> ranks;
    std::vector<Gap> gaps;              // by rank, start
    std::vector<RankSlowness> slowness; // by rank, in the step's medians; empty in an empty report
    std::vector<double> longer;         // by microbatch: StepLevels::longer
    std::vector<Nanos> longerBy;        // by rank: what the step's long microbatches take beyond the others
    // Why it is not known when inputs from other ranks arrived (whyNoArrivals()); "": it is. Then they count as there
    // once they were made, and the time until they were there is of cause Launch.
    std::string noArrivals;
    // Ranks of the pipeline are not in the run (Timeline::missingRanks(), which is noArrivals then): what any idle time waited
    // for is unknown.
    bool partial = false;
    bool knows(IdleCause cause) const; // false: it has no time because nothing is known of messages, or is partial

    Nanos makespan() const { return windowEnd - windowBegin; } // of the ops alone
    Nanos stepTime() const { return stepEnd > stepBegin ? stepEnd - stepBegin : makespan(); }
    Nanos outside() const { return stepTime() - makespan(); } // before the first op and after the last
};

struct Run; // traces/run/run.h

struct BubbleOptions {
    std::optional<Bytes> memoryCap;   // per rank, activations: turns Order into Memory where running would exceed it
    std::vector<Bytes> rankCaps = {}; // the same by rank, where ranks have different ones; else empty

    std::optional<Bytes> capOf(int rank) const
    {
        if (static_cast<std::size_t>(rank) < rankCaps.size()) return rankCaps[static_cast<std::size_t>(rank)];
        return memoryCap;
    }
};
// cap: what was asked for, for all ranks; none: the run's own.
BubbleOptions bubbleOptionsOf(const Run& run, std::optional<Bytes> cap = {});

class StepContext; // step_context.h

// Empty timeline or step: an empty report. O(spans of the step + edges). Cancelled: the context's stop.
Result<BubbleReport> analyseBubbles(const StepContext& context);
Result<BubbleReport> analyseBubbles(const Timeline& timeline, int step, const BubbleOptions& options = {});

// The rank that is busy longest, if that is more than 5 % above the median over ranks and not because one of its stages
// costs more while another one, or a copy elsewhere, does not; empty: no rank stands out.
std::optional<int> stragglerRank(const BubbleReport& report);
// "rank 2 is busy 36 units, 50.0 % longer than the median rank, and takes 1.50× as long as others for the same stage";
// without one "microbatch 2 takes 4.00× as long as the others …" where one does; else "".
std::string stragglerSentence(const BubbleReport& report, Nanos timeUnit);

} // namespace stagewright
