// Figures of lessons, as data and as SVG. The text forms:
//
//   sweep comm 0..2 step 0.125 for gpipe, 1f1b, eager-1f1b        a line per schedule, makespan over a setting; also
//                                                                 microbatches, chunks; "sweep … of bubble_fraction for
//                                                                 …" for another figure
//   timelines gpipe, 1f1b                                         one above the other on one axis
//   memory gpipe, 1f1b                                            peak activation by rank, bars
//   bars makespan of 1f1b, zb-h1                                  one bar per schedule
//   idle gpipe                                                    bars of idle time by cause
//   pareto of 1f1b, v-min, …                                      peak against span
//   …; points from ID                                             also the measured figures of a run block
#pragma once

#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "traces/lessons/grading.h"

namespace stagewright::lessons {

struct FigureSeries {
    std::string name;
    std::vector<std::pair<double, double>> points; // lines: x, y; bars: index, value
    bool measured = false;
};

struct FigureRow { // of a timeline: one rank of one schedule
    std::string name;
    struct Box {
        double begin = 0, end = 0;
        OpKind kind{};
        int microbatch = -1;
    };
    std::vector<Box> boxes;
};

struct FigureData {
    enum class Kind {
        Lines,
        Bars,
        Points,
        Timelines,
    };
    Kind kind = Kind::Lines;
    std::string xTitle, yTitle;
    std::vector<std::string> labels; // of bars
    std::vector<FigureSeries> series;
    std::vector<FigureRow> rows;
    std::string caption;

    bool empty() const;
};

// Errors (Usage) name the part that is not understood or can't be simulated.
Result<FigureData> figureOf(const StepState& state, const Lesson& lesson, const Figure& figure,
                            const Learner& learner = {});

// Colours (as SVG writes them) and width of a drawn figure; the default is the light palette of the window, for print.
struct FigureLook {
    double width = 720; // pixels; text has 11
    std::string font = "Inter, sans-serif";
    std::string ground = "#FFFFFF", text = "#1B1F27", secondary = "#5A6270", grid = "#DDE0E6";
    struct Ink {
        std::string fill, label;
    };
    Ink forward{"#2F5D9C", "#FFFFFF"}, backward{"#EE8F2A", "#14171C"}, weight{"#45C794", "#14171C"},
        message{"#D19FCC", "#14171C"}, other{"#32343E", "#FFFFFF"};
    const Ink& of(OpKind kind) const;
};
std::string figureSvg(const FigureData& data, const FigureLook& look = {});

} // namespace stagewright::lessons
