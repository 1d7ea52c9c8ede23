// The explorer's request: one shape with costs, latency and a cap, and which of these vary. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <QString>

#include "schedules/base/progress.h"
#include "schedules/plan/sweep.h"

namespace stagewright {

enum class ExploreParameter {
    Ranks,
    Microbatches,
    Chunks,
    Forward,
    InputGrad,
    WeightGrad,
    Latency,
    Cap,
};
inline constexpr int exploreParameterCount = 8;
enum class ExploreMeasure {
    StepTime,
    Bubble,
    SpanBubble,
};

struct ExploreQuestion {
    int ranks = 8;
    int microbatches = 32;
    int chunks = 0;                                    // stages per rank if the schedule allows a choice; 0: default
    double forward = 1, inputGrad = 1, weightGrad = 1; // rank shares
    double latency = 0;                                // rank shares
    // activations a rank may hold, in microbatches of 1/p of the model; 0: none
    double cap = 0;
    bool operator==(const ExploreQuestion&) const = default;

    double value(ExploreParameter parameter) const;
    ExploreQuestion with(ExploreParameter parameter, double value) const;
    CostModel::UnitCosts units() const;
    SweepPoint point(const std::string& schedule) const;
    QString text() const; // "p=8, m=32, F=1 I=1 W=1, latency 0, no cap"
};

struct ExploreRange {
    double least = 0, most = 0, step = 1;
    bool whole = true;
};
ExploreRange rangeOf(ExploreParameter parameter);
QString titleOf(ExploreParameter parameter); // "Ranks, p"
QString meaningOf(ExploreParameter parameter);
QString valueText(ExploreParameter parameter, double value); // "auto" and "none" if 0 means that
// About `count` values over a useful range around the question's value, which is one of them.
std::vector<double> valuesAround(const ExploreQuestion& question, ExploreParameter parameter, int count);

// Every library schedule, with each of its variants.
std::vector<std::string> exploredSchedules();
bool searches(const std::string& schedule); // takes milliseconds to generate

double measureOf(const SweepRow& row, ExploreMeasure measure); // rank shares, or a fraction
QString titleOf(ExploreMeasure measure);
QString measureText(double value, ExploreMeasure measure);
// Why the row is over the question's cap: "rank 0 holds 8.0, the cap is 6.0"; empty if it is within.
QString overCap(const SweepRow& row, const ExploreQuestion& question);

// No order with one stage per rank (chunks 1), or two in V placement, that holds at most `cap` is shorter.
struct ExploreBound {
    int chunks = 1;
    double cap = 0;      // microbatch activations
    double makespan = 0; // rank shares
    std::string by;      // what proves it
};
// By chunks, then rising cap; makespans never rise. Bounds the planner proves without a search; empty if that takes too
// long (over 1,024 ranks × microbatches).
std::vector<ExploreBound> boundsOf(const ExploreQuestion& question, const Progress& progress = {});
double workBound(const ExploreQuestion& question); // for every schedule that spreads the work evenly: m (F + I + W)

} // namespace stagewright
