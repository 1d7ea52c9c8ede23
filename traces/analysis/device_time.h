// Where the time of a rank's devices goes in a step, from its kernels and copies alone: the definitions are those that
// HolisticTraceAnalysis publishes for its temporal breakdown and its overlap (docs/numbers.md, "Device time"). Needs no
// ops.
#pragma once

#include <string>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

inline constexpr int everyStep = -2; // −1: work outside of steps

struct RankDeviceTime {
    int rank = 0;
    int gpu = -1;            // where the rank has several; −1: the only one
    Nanos first = 0;         // start of the step's first kernel or copy, on any GPU of the rank
    Nanos last = 0;          // end of the last
    Nanos computing = 0;     // time in which a kernel runs whose class is not communication
    Nanos communicating = 0; // time in which a kernel runs whose class is collective or send, receive
    Nanos copying = 0;       // time in which a copy or a fill runs
    Nanos busy = 0;          // time in which any of them runs
    Nanos hidden = 0;        // communicating while computing
    // of computing: CUDA graphs traced as a whole, of which nobody knows what computes and what communicates
    Nanos graphs = 0;
    std::int64_t calls = 0; // kernels and copies

    Nanos window() const { return last - first; }
    Nanos idle() const { return window() - busy; }
    Nanos exposed() const { return communicating - hidden; }
};

// By rank, and by GPU where a rank has several; one without kernels and copies in the step has calls 0. O(kernels of
// the step × log).
std::vector<RankDeviceTime> analyseDeviceTime(const Timeline& timeline, int step);
// "12 of 40 kernels and copies are nodes of 2 CUDA graphs"; empty: none is known to be. O(kernels).
std::string graphSentence(const Timeline& timeline, int step);
// "devices compute 41.2 %, communicate 8.1 % (5.0 % exposed), are idle 45.3 % of 812.3 ms"; empty where nothing ran.
std::string deviceTimeSentence(const std::vector<RankDeviceTime>& ranks);

// What can't be right, or can't be known, of the work that a trace shows on devices: sentences on kernels of one stream
// that contain each other, which a stream can't run, or overlap (dependent launches, and those of one CUDA graph, may),
// by how much sums of durations then exceed the time, and on CUDA graphs traced as a whole (if `graphs`). Empty: there
// is nothing to say. O(kernels).
std::vector<std::string> deviceDoubts(const Timeline& timeline, int step = everyStep, bool graphs = true);

} // namespace stagewright
