// Work that can wait as ops of a schedule: K-FAC's factors and their inversion in the gaps of its ranks, over as many
// steps as they take (PipeFisher, arXiv 2211.14133). Where the pieces lie: tiers/fill_gaps.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "schedules/tiers/fill_gaps.h"

namespace stagewright {

struct FillRule {
    bool any = false; // else nothing is filled in
    int pieces =
        2; // that a stage's inversion is cut into: the first half of the inputs' factors, the rest of the others'
    bool cyclic = false;
    int step = 1;       // of the cycle, which is shown; counted from 1
    bool apart = false; // at the end of the same steps instead of in gaps
    bool both = false;  // an inversion of either kind of factor waits for both, as their damping does where ranks train
};
// "kfac", with ":pieces=K", ":cyclic", ":apart", ":step=N"; "none". Usage.
Result<FillRule> parseFill(std::string_view text);

struct FillPiece {
    int rank = 0;
    int step = 0;
    Op op;
    Nanos start = 0, end = 0; // in its step, before it is simulated
};
// A gap of one step: what it holds, and why the rest stays idle.
struct FilledGap {
    int rank = 0;
    int step = 0;
    Nanos start = 0, end = 0;
    std::vector<Op> holds = {};
    IdleRest::Why why = IdleRest::Why::NothingLeft;
    Nanos rest = 0;
    std::string next = {}; // the op that the rest waits for or is too short for
    Nanos takes = 0;       // that op
};

struct FilledCycle {
    int steps = 1;                   // until each stage has had all of its pieces; schedules differ in them alone
    std::vector<Schedule> schedules; // by step of the cycle
    std::vector<int> rankSteps;      // by rank: how many of them it needs
    std::vector<int> leastSteps;     // by rank: fewer are impossible
    std::vector<FillPiece> placed;
    std::vector<FillPiece> unplaced; // longer than every gap, or behind one that is: at the end of the last step
    std::vector<Nanos> longestGap;   // by rank
    std::vector<FilledGap> gaps;     // by step, rank and time
    Nanos makespan = 0;              // of a step without them
    Nanos idle = 0, work = 0;        // of all ranks: in a step without them, and in one refresh
    int late = 0;                    // factors behind a weight gradient or backward of what they need
};
// costs: with durations of its F, B, I, W and of the pieces. Usage where these have none, or the schedule has such ops.
Result<FilledCycle> fillSchedule(const Schedule& schedule, const CostModel& costs, const FillRule& rule);

// "holds 4 of 6 pieces; 1.3 ms stay idle because the next takes 2.1 ms"; unit: of times that are written.
std::string describe(const FilledCycle& cycle, const FilledGap& gap, Nanos unit);
// "rank 2: 0INVERT.0 takes 63.4 ms, longer than every gap (31.5 ms at most); it is at the end of step 3 and makes it
// longer"
std::string unplacedSentence(const FilledCycle& cycle, const FillPiece& piece, Nanos unit);

} // namespace stagewright
