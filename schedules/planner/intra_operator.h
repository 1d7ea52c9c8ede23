// Alpa's intra-operator choice (Zheng et al. 2022, arXiv 2201.12023, section 4): one strategy for each operator of a graph,
// so that the sum of the operators' costs and of the edges' (resharding between two choices) is least. Exact: operators are
// eliminated one after the other, the one with the smallest table first, which is fast as such graphs are nearly trees.
// Where memory rows make that choice impossible, a search that the eliminated tables bound; beyond its limit COIN-OR CBC.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"

namespace stagewright {

struct IntraOperatorProblem {
    struct Edge {
        int from = 0, to = 0;
        std::vector<double> cost; // by strategy of `from`, then of `to`; infinite: the two don't go together
    };
    struct Row {                                                 // what is alive at one time
        std::vector<std::pair<int, std::vector<double>>> memory; // operator, bytes by strategy
    };
    std::vector<std::vector<double>> cost; // by operator and strategy
    std::vector<Edge> edges;
    std::vector<Row> rows;
    double cap = 0; // of each row's sum
};
struct IntraOperatorPlan {
    double cost = 0;
    std::vector<int> pick; // strategy by operator
    bool proven = true;
    double bound = 0;   // the least without memory rows
    std::string method; // "elimination", "search" or "CBC 2.10.8"
};
double costOf(const IntraOperatorProblem& problem, const std::vector<int>& pick);
// None: no choice is possible. Usage: sizes that differ. Unavailable: it is too large without CBC. Cancelled.
// `solver`: whether CBC may be used.
Result<std::optional<IntraOperatorPlan>> planIntraOperator(const IntraOperatorProblem& problem,
                                                           const Progress& progress = {}, bool solver = true);

// A perceptron of two layers h → f → h over b tokens on n devices: each layer's product is replicated, or cut by tokens
// (an all-reduce of its weights' gradient), by columns (of its input's gradient) or by rows (of its output). An all-reduce
// takes alpha + beta × 2 (n − 1)/n × bytes, an all-gather half of that, an all-to-all an n-th of the latter.
struct PerceptronProblem {
    double tokens = 0, hidden = 0, inner = 0, devices = 1;
    double alpha = 0, beta = 0, bytes = 4; // of a number
    double operation = 0;                  // of one of the 6 b h f products of a step
};
struct PerceptronPlan {
    double cost = 0;
    std::vector<std::pair<std::string, std::string>> choices; // of both layers, all that are as fast, by name
};
Result<PerceptronPlan> planPerceptron(const PerceptronProblem& problem);

} // namespace stagewright
