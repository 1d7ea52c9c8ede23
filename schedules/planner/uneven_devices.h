// Cephalo's division of a step over unequal devices (Guo et al. 2024, arXiv 2411.01075): each takes ℓ microbatches of m
// samples, so that the slowest is fastest, all samples are taken, and the training state fits into what activations leave
// free. Exact: over the times that may be the slowest by bisection, a dynamic program over samples. For each time
// O(devices · samples · most samples of a device within it), devices that are alike are read once.
#pragma once

#include <optional>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"

namespace stagewright {

struct UnevenDevice {
    double f1 = 0, f0 = 0, b1 = 0, b0 = 0; // forward and backward of m samples: f1 m + f0, b1 m + b0
    double a1 = 0, a0 = 0;                 // activations while m samples are worked on: a1 m + a0
    double cap = 0;                        // of memory
    double kept = 0;                       // of each sample of the step, whatever the microbatches
    bool operator==(const UnevenDevice&) const = default;
};
struct UnevenProblem {
    int samples = 1;
    double state = 0; // of all replicas together; it may be divided in any shares
    double gap = 0;   // between two microbatches
    bool recompute = true;
    // Authors' rule: activations and state together in at most so much of all caps; 0: each device by itself.
    double fraction = 0;
    int least = 0; // samples of each device
    std::vector<UnevenDevice> devices;
    bool operator==(const UnevenProblem&) const = default;
};
struct UnevenPlan {
    struct Pick {
        int samples = 0; // of a microbatch
        int count = 0;   // of microbatches
        int all() const { return samples * count; }
    };
    double time = 0; // of the slowest
    std::vector<Pick> picks;
    std::vector<double> shares; // of the state
    bool fits = true;           // each device by itself
};
struct UnevenAnswer {
    std::optional<UnevenPlan> best; // shares are even, but for devices that have less room; none where nothing fits
    UnevenPlan even;                // the same samples and state on each
    UnevenPlan speed;               // both in proportion to speed, which counts samples and nothing that is fixed
    // The most that any division leaves for the state; none where not even the samples have room. Where nothing fits.
    std::optional<double> room;
};
double unevenTime(const UnevenProblem& problem, const UnevenDevice& device, UnevenPlan::Pick pick); // of its samples
double unevenMemory(const UnevenDevice& device, UnevenPlan::Pick pick);                             // without state
std::vector<double> unevenSpeeds(const UnevenProblem& problem); // samples a unit of time, by device
// Each part of `total` by weight, largest remainders first, each at least `least`. Precondition: total ≥ least ·
// weights.
std::vector<int> dividedBy(const std::vector<double>& weights, int total, int least);
// Usage: numbers out of their ranges; Cancelled.
Result<UnevenAnswer> planUneven(const UnevenProblem& problem, const Progress& progress = {});

} // namespace stagewright
