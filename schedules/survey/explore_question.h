// The explorer's request: one shape with costs, latency and a cap, and which of these vary. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/survey/survey.h"
#include "schedules/survey/sweep.h"

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
    Setup point(const std::string& schedule) const;
    // The fields of the parameters; others stay at their defaults.
    static ExploreQuestion of(const SurveyQuestion& question);
    std::string text() const; // "p=8, m=32, F=1 I=1 W=1, latency 0, no cap"
};

const SurveyField& fieldOf(ExploreParameter parameter);
std::vector<SurveyField> parameterFields(); // of all of them
std::optional<ExploreParameter> parameterOf(std::string_view field);
std::string valueText(ExploreParameter parameter, double value); // "auto" and "none" if 0 means that
// About `count` values over a useful range around the question's value, which is one of them.
std::vector<double> valuesAround(const ExploreQuestion& question, ExploreParameter parameter, int count);

// Every library schedule, with each of its variants.
std::vector<std::string> exploredSchedules();
bool searches(const std::string& schedule); // takes milliseconds to generate

double measureOf(const SweepRow& row, ExploreMeasure measure); // rank shares, or a fraction
std::string titleOf(ExploreMeasure measure);
std::string measureText(double value, ExploreMeasure measure);
SurveyField measureField(); // what the plots show
ExploreMeasure measureAsked(const SurveyQuestion& question);
// Why the row is over the question's cap: "rank 0 holds 8.0, the cap is 6.0"; empty if it is within.
std::string overCap(const SweepRow& row, const ExploreQuestion& question);
// Why a schedule is impossible or over the cap, and what else it changes.
std::string noteOf(const SweepRow& row, const ExploreQuestion& question);
// The library's, without those that search for too long: above 4,096 ranks × microbatches their reason says so.
SweepSource exploreSource();
// "gpipe,zb-h1" or "" for `fallback`. Usage: an unknown schedule, or none.
Result<std::vector<std::string>> schedulesAsked(const SurveyQuestion& question, std::vector<std::string> fallback);
SurveyField schedulesField(std::string fallback, std::string none);
// What the charts over parameters draw where nothing else is chosen.
inline constexpr const char* usualSchedules = "1f1b,interleaved-1f1b,zb-h1,zbv,dualpipev";
SurveyField parameterField(std::string name, std::string title, std::string fallback); // one of the parameters
TableColumn parameterColumn(ExploreParameter parameter);                               // its key: "input_grad"
TableCell parameterCell(ExploreParameter parameter, double value);
// Key and title of what a table of simulated schedules says of each, beside what its rows are about; the last is the
// note. Their units are exploreUnits.
std::vector<TableColumn> figureColumns();
void addFigures(TableRow& cells, const SweepRow& row, const ExploreQuestion& question);
inline constexpr Units exploreUnits{rankShare, activationShare};
inline std::string setupOf(const ExploreQuestion& question)
{
    return "Simulated with unit costs: " + question.text() + ".";
}

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
