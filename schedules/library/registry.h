// The library of schedules: one file each in library/, one line each in library/schedules.def.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// Closed forms at unit costs for a shape (docs/numbers.md); in rank shares.
struct ClosedForm {
    double makespan = -1;               // < 0: no closed form for this shape
    std::vector<double> peakActivation; // by rank; empty: none
};

// What may follow a schedule's name: "chimera:f=2:join=doubling".
struct ScheduleParameter {
    std::string_view name;     // "join"
    std::string_view fallback; // its default, "direct"
    std::string_view values;   // alternatives "direct|doubling|halving", of which
                               // "whole" stands for a whole number from 1 and "real" for a number ≥ 0: "auto|whole"
    std::string_view meaning;  // "how units of p microbatches are joined"
    std::string_view shown = "2"; // the whole number that pages and tests try
    // how titles say a value: "doubling=doubled forwards|halving=halved backwards", or "{} waves" of a number
    std::string_view words = {};
};

struct ScheduleInfo {
    std::string_view name;        // "zb-h1"
    std::string_view title;       // "ZB-H1 (zero bubble, 1F1B memory)"
    std::string_view summary;     // one line
    std::string_view paper;       // "Qi et al. 2024, arXiv 2401.10241, section 2"
    std::string_view constraints; // "any ranks; microbatches >= ranks for the closed form"
    std::string_view formulas;    // one per line: makespan, bubble, peak
    std::string_view drawing;     // four ranks, ASCII
    std::string_view aliases;     // other tools' names, comma separated: "zb1p, ZB-1p, InterleavedZeroBubble (v=1)"
    int fixedChunks;              // > 0: --chunks is ignored, with a note
    int defaultChunks;
    Result<Schedule> (*make)(const Shape& shape);
    ClosedForm (*closedForm)(const Shape& shape, double forward, double inputGrad, double weightGrad);
    std::span<const ScheduleParameter> parameters = {};
    int drawnMicrobatches = 4; // of the drawing
    bool searches = false;     // make() searches: too slow to try on large shapes
};

std::span<const ScheduleInfo> allSchedules(); // in the order of schedules.def
// Case-insensitive, accepts aliases; an unknown name's error lists the valid ones and the nearest.
Result<const ScheduleInfo*> findSchedule(std::string_view name);
Result<const ScheduleInfo*> scheduleInfoOf(std::string_view asked); // of "zb-h1" or "bfs:order=descending"
// As figures and tables name it: "ZB-H1" of "zb-h1", "BFS, descending order" of "bfs:order=descending"; other names as they
// may be shown (schedules/base/shown_text.h).
std::string shownTitle(std::string_view asked);
// Makes "zb-h1" or "bfs:order=descending" for a shape. Constraints not met: an error naming the nearest shape that
// works.
Result<Schedule> makeSchedule(std::string_view name, const Shape& shape);
// The closed forms of "zb-h1" or "2bp-1f1b:w=last" for a shape at the costs of F, I and W; the errors are
// makeSchedule's.
Result<ClosedForm> closedFormOf(std::string_view name, const Shape& shape, double forward, double inputGrad,
                                double weightGrad);
// The library schedule with the same orders of compute ops, with its parameters where they are not the defaults
// ("bfs:order=descending"), "" if none: recognises a CSV, with or without messages and shared state, of one replica or
// several alike ones. Of several with the same orders the first, with the fewest parameters. Over 10,000 ops those that
// search are skipped, and parameters once 30 million ops were compared. GPipe's other form, as its paper draws it, is
// "gpipe, backwards in falling order"; TeraPipe cut by costs other than its defaults "terapipe:slices=4, slices of
// 6,4,3,3".
std::string recognise(const Schedule& schedule);

} // namespace stagewright
