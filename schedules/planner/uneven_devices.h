// Cephalo's division of a step over unequal devices (Guo et al. 2024, arXiv 2411.01075): each takes ℓ microbatches of m
// samples, so that the slowest is fastest, all samples are taken, and the training state fits into what activations leave
// free. Exact: over the times that may be the slowest by bisection, a dynamic program over samples.
#pragma once

#include <optional>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct UnevenDevice {
    double f1 = 0, f0 = 0, b1 = 0, b0 = 0; // forward and backward of m samples: f1 m + f0, b1 m + b0
    double a1 = 0, a0 = 0;                 // activations of m samples: a1 m + a0
    double cap = 0;                        // of memory
};
struct UnevenProblem {
    int samples = 1;
    double state = 0; // of all replicas together; it may be divided in any shares
    double gap = 0;   // between two microbatches
    bool recompute = true;
    // Authors' rule: activations and state together in at most so much of all caps; 0: each device by itself.
    double fraction = 0;
    std::vector<UnevenDevice> devices;
};
struct UnevenPlan {
    struct Pick {
        int samples = 0; // of a microbatch
        int count = 0;   // of microbatches
    };
    double time = 0;
    std::vector<Pick> picks;
    std::vector<double> shares; // of the state: even, but for devices that have less room
};
// Each none where it does not fit.
struct UnevenAnswer {
    std::optional<UnevenPlan> best;
    std::optional<double> even;  // the same samples and state on each
    std::optional<double> speed; // both in proportion to speed
};
double unevenTime(const UnevenProblem& problem, const UnevenDevice& device, UnevenPlan::Pick pick); // of its samples
Result<UnevenAnswer> planUneven(const UnevenProblem& problem);

} // namespace stagewright
