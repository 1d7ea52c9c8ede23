// CutSurvey: partial backward (SPB, arXiv 2111.10672; schedules/model/partial_backward.h) for a model's layers: which
// replicas send gradients of which layer, and what each replica's backward costs. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/survey/survey.h"

namespace stagewright {

struct CutQuestion {
    std::string model = "gpt-6.2b";
    std::string device = "a100";
    int replicas = 8;
    std::string cuts; // "0,8,16,24", a layer of each replica; empty: evenCuts()
    bool operator==(const CutQuestion&) const = default;

    static CutQuestion of(const SurveyQuestion& question);
    std::string setup() const; // in a sentence
};

// Replica k of N goes back through (N − k)/N of the layers: to layer ⌊k · layers / N⌋.
std::vector<int> evenCuts(int replicas, int layers);

struct CutReplica {
    int cut = 0;        // the first layer it goes back to
    double back = 1;    // share of the layers
    Nanos forward = 0;  // of a microbatch through all layers
    Nanos backward = 0; // down to the cut
};

struct CutLayer { // the embedding, the layers from 0, the head
    std::string name;
    int layer = 0;                 // a replica contributes where its cut is not above it
    std::vector<int> contributors; // replicas, ascending; all have the same part of the batch
};

struct CutAnswer {
    std::string error; // with what to do
    int layers = 0;
    std::vector<CutReplica> replicas;
    std::vector<CutLayer> rows;
    double mean = 1;     // of `back`
    double evenMean = 1; // (N + 1)/(2N)
};

// O(replicas · layers).
CutAnswer cutSurvey(const CutQuestion& question);
// "Mean backward: (N+1)/(2N) = 5/8 = 62.5 %"; empty where there is no answer.
std::string meanBackward(const CutAnswer& answer, const CutQuestion& question);
SurveyTable contributorTable(const CutAnswer& answer, const CutQuestion& question);
// By layer: above, how many replicas send gradients; below, which ones, with the cut of each. The ids of its items are rows
// of the answer.
Plot partialPlot(const CutAnswer& answer, const CutQuestion& question);

} // namespace stagewright
