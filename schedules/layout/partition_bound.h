// No division of layers into stages is faster, in whatever order: layers stay whole and in their order, each stage is of
// layers in a row, and stages are on ranks in rounds, upwards or downwards. Internal to schedules/layout.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/layout/partition.h"

namespace stagewright {

// Where stages are: round k has stages k × ranks … (k + 1) × ranks − 1, on ranks upwards, or downwards where it is true.
// The first is upwards.
using Rounds = std::vector<bool>;
// None: some round is neither, or a stage has copies.
std::optional<Rounds> roundsOf(const Placement& placement, int ranks);

// Whatever the rounds and the layers of a stage: the least time in which all layers fit, whole, on ranks that start one
// after the other.
//  - The k-th rank's first layer has no layer before the k-th, and is behind k messages.
//  - For each layer the work of its rank, whose first layer it may be, or an earlier one, behind what comes before.
Nanos packingBound(const PartitionProblem& problem);

// Divisions for one placement. A rank whose first stage starts with layer a can't start before the forwards of all
// layers before a, and a message for each rank before it; then it has all of its stages' work to do, of each microbatch:
//
//     step ≥ forward(0 … a − 1) + r × message + microbatches × Σ F + I + W of the rank's layers
//
// where a forward and a rank's work have what each pass takes beyond its layers, too.
//
// A time is within reach if layers can be cut into stages so that each rank keeps it. That is decided exactly: for every
// choice of where the rounds begin, rank after rank takes layers in a row from each round; of those that took equally
// many from all rounds but the last, the one that took most from the last leaves the least to the ranks behind it.
class DivisionBound {
public:
    DivisionBound(const PartitionProblem& problem, Rounds rounds);

    // No division keeps less: exact to 1/5000 of it, and below that where `effort` (steps of the search, counted down)
    // ends first. Between `low`, which holds already, and `high`, beyond which nothing is looked for.
    Nanos least(Nanos low, Nanos high, std::int64_t& effort);
    // Each stage's layers in a division that keeps the time; empty: there is none, or effort ended.
    std::vector<int> within(Nanos time, std::int64_t& effort);

private:
    enum class Reach { Yes, No, Unknown };
    struct State {
        int last = -1; // layers that the ranks so far took from the last round, beyond one each; −1: none get here
        int from = 0;  // the state of the rank before
    };
    Reach reach(double time, std::int64_t& effort);
    Reach divide(double time, std::int64_t& effort); // with rounds that start at m_cuts
    bool take(double room, std::size_t round, std::size_t to, double used, bool all, std::int64_t& effort);
    double sumOf(std::size_t round, int taken) const; // of the first layers in the order of ranks

    std::vector<double> m_forward{0}, m_time{0}; // sums before each layer
    double m_message = 0;                        // with what a forward takes beyond its layers
    double m_perRank = 0;                        // what a rank's passes take beyond their layers, of a microbatch
    int m_layers, m_ranks;
    double m_microbatches;
    Rounds m_rounds;
    std::vector<int> m_cuts; // where each round starts, and the number of layers
    std::vector<int> m_more; // by round: layers beyond one each
    std::vector<std::size_t> m_strides;
    std::vector<std::vector<State>> m_states; // by ranks that have taken theirs
    std::vector<int> m_at;                    // by round: what was taken beyond one each
    int m_rank = 0;
    std::size_t m_state = 0;
};

} // namespace stagewright
