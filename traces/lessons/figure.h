// Figures of lessons, as plots. The text forms:
//
//   sweep comm 0..2 step 0.125 for gpipe, 1f1b, eager-1f1b        a line per schedule, makespan over a setting; also
//                                                                 microbatches, chunks; "sweep … of bubble_fraction for
//                                                                 …" for another figure
//   timelines gpipe, 1f1b                                         one above the other on one axis
//   memory gpipe, 1f1b                                            peak activation by rank, bars
//   bars makespan of 1f1b, zb-h1                                  one bar per schedule
//   idle gpipe                                                    bars of idle time by cause
//   pareto of 1f1b, v-min, …                                      peak against span
//   bytes mine                                                    state of rank 0: nothing shared, and as it is shared
//   …; points from ID                                             also the measured figures of a run block
#pragma once

#include <string>

#include "schedules/base/plot.h"
#include "schedules/base/result.h"
#include "traces/lessons/grading.h"

namespace stagewright::lessons {

struct FigureData {
    Plot plot;
    std::string caption;

    bool empty() const { return plot.empty(); }
    double height(double width) const; // pixels
};

// Errors (Usage) name the part that is not understood or can't be simulated.
Result<FigureData> figureOf(const StepState& state, const Lesson& lesson, const Figure& figure,
                            const Learner& learner = {});

std::string figureSvg(const FigureData& data); // light, 720 pixels wide, with its caption

} // namespace stagewright::lessons
