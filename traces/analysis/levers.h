// Levers: what would help. A step is simulated with its run's own costs, and again with one thing at a time removed:
// slow links and ranks, stages of different cost, launch delays, jitter, a memory cap … docs/numbers.md has the formula
// of each.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/messages/channels.h"
#include "schedules/messages/lower.h"
#include "schedules/messages/sim_result.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "traces/analysis/bubbles.h"
#include "traces/run/run.h"

namespace stagewright {

// A rank that took longer than usual in one step.
struct SlowStep {
    int rank = 0;
    int step = 0;         // from 0
    double factor = 1;    // > 1, against the rank's other steps
    bool inCosts = false; // the costs are from that step itself
};

// What is simulated.
struct LeverSubject {
    Schedule schedule; // as executed, with its sends and receives where they matter
    CostModel costs;
    Channels channels;
    std::optional<Lowering> lowering; // if the lists contain sends and receives: the rule that inserts them again
    std::optional<Bytes> cap;         // of a rank's activations
    std::vector<SlowStep> slowSteps;
    std::vector<std::pair<int, int>> emulatedLinks; // lower rank first: slow on request
    int step = 0;
    Nanos measured = 0; // the recorded step, whole
    // the part of it that the lists don't have: a recorder's own gradient norm and optimizer behind them
    Nanos behind = 0;
    std::vector<int> layers;      // of each stage; empty: not known
    std::vector<Nanos> bucketing; // by stage: how much longer its reduction takes in buckets; empty: there are none
    // why what transfers and launches take is not known apart (BubbleReport::noArrivals); "": it is
    std::string noArrivals;
    IdleByCause idle{}; // of the recorded step: a lever counts for the largest of the causes that it removes
};

enum class LeverKind : std::uint8_t {
    Transient,    // a rank's slowness in one step
    Microbatches, // that take longer or shorter than the others
    Replica,      // of every rank of a pipeline
    Rank,         // a rank's slowness
    Link,         // a slow link
    LaunchRank,   // a rank's launch delay
    Launch,
    Links,
    Collectives, // beside compute
    Gathers,     // of them
    Gather,      // a slow one: over a slow link
    Reductions,  // late ones
    Buckets,
    Jitter,
    Sends,
    Channels,
    Recompute,
    Offload,
    Cap,
    Stages, // layers, head
    Order,
};

struct Lever {
    LeverKind kind = LeverKind::Order;
    std::string name;              // the JSON key: "rank:2", "replica:1", "link:0-1", "transient:1@4" (step from 1)
    std::string title;             // "rank 2 as fast as the others"
    int step = -1;                 // Transient: the step it is about, from 0
    std::optional<Nanos> makespan; // of the whole step with the lever; empty: it can't be simulated
    Nanos gain = 0;                // the simulated step − makespan; negative: it would take longer
    std::optional<Bytes> peak;     // largest activations of a rank then; empty: the costs have no sizes
    std::string reason;            // why makespan is unknown
    std::vector<int> layers;       // Stages: of each stage, as --stage-layers takes them; empty: no whole ones
};
// The same question as --what-if asks it; "": it can't.
std::string whatIfOf(const Lever& lever);

struct LeverTable {
    int step = 0;
    Nanos measured = 0;             // the recorded step
    std::optional<Nanos> simulated; // with the run's costs: the reference of gains; empty: see reason
    Nanos behind = 0;               // of it what the lists don't have: as recorded
    std::string reason;
    // All that apply, largest gain first, of other steps what they cost there; among equals the more specific first;
    // unknown ones last.
    std::vector<Lever> levers;
    IdleByCause idle{}; // of the recorded step

    // The first two of this step that can be simulated at once. What they share is counted in the gain of each.
    struct Together {
        std::string first, second; // their names
        Nanos makespan = 0;
        Nanos gain = 0;
        Nanos shared = 0; // the sum of their gains − gain; negative: together they gain more
    };
    std::optional<Together> together;

    double error() const; // (simulated − measured) / measured
    bool ofOtherStep(const Lever& lever) const { return lever.step >= 0 && lever.step != step; }
    // Levers with a gain, and those that can't be simulated; all of this step if none of it has a gain.
    std::vector<Lever> shown() const;
    // The lever with the largest gain against a cause of idle time. One that removes several causes counts for the
    // one that has most idle time, so that no gain counts twice. Null: there is none, or none that is known gains.
    const Lever* leverAgainst(IdleCause cause) const;
    // Its gain, at least 0. Empty: no lever is about the cause, its levers count for another cause, or none that is
    // known gains.
    std::optional<Nanos> gainOf(IdleCause cause) const;
};

// The causes with any time, largest gain first, then largest total. table: null or unknown: by total.
std::vector<IdleCause> causesByGain(const IdleByCause& byCause, const LeverTable* table);

// O(levers × ops), and a plan where there is a cap. Jitter is the one draw that every simulation with these costs has.
// stopped: what follows is not simulated. base: simulate() of the subject, where it is there already.
LeverTable leversOf(const LeverSubject& subject, const std::stop_token& stop = {}, const SimResult* base = nullptr);

// The levers of a run's step; a failure to build the subject becomes the table's reason. Steps of more than mostLeverOps ops are
// not simulated.
inline constexpr std::size_t mostLeverOps = 2'000'000;
LeverTable leversOf(const StepContext& context);

} // namespace stagewright
