// Offloading as a pass over a schedule: an OFFLOAD behind the forward of each chosen microbatch of a stage, and the
// RELOAD in front of the op that needs it. Costs and moments of both: kinds.cpp, Copies in cost_model.h; idea and the
// rule "the longer-lived half" from PipeOffload (Wan et al. 2025, arXiv 2503.01328).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/schedule.h"

namespace stagewright {

struct OffloadRule {
    enum class Which : std::uint8_t {
        None,
        All,
        Longest, // of a rank's stages the half, rounded up, whose microbatches are held longest
        Cap,     // what a cap asks for (schedules/plan/offload_plan.h)
    };
    Which which = Which::None;
    int ahead = 1;          // compute ops between a reload and the op that needs it
    std::string cap;        // of Cap: as --memory-limit, "3" or "26MiB"
    bool recompute = false; // of Cap: stages may be recomputed instead, or as well
};
// "none", "all", "longest", "cap=3", "cap=26MiB"; the second and third with ":ahead=N", caps with ":recompute". Usage.
Result<OffloadRule> parseOffload(std::string_view text);

// A forward whose activation can be offloaded: some compute op of its rank lies between it and the first op that needs
// the activation, which covers the same microbatches, slice and half, and neither of the two is part of another.
struct Offloadable {
    int rank = 0;
    std::size_t forward = 0; // positions in the rank's list
    std::size_t user = 0;    // a B, I or R
    int between = 0;         // compute ops
    int stage = 0;
};
// In the order of the lists. What is offloaded already is left out.
std::vector<Offloadable> offloadableOf(const Schedule& schedule);

// ahead[i]: how many compute ops the reload of all[i] comes before its user, behind its OFFLOAD at the earliest; −1: it
// is not offloaded. Pairs stay together.
Schedule withOffloads(const Schedule& schedule, const std::vector<Offloadable>& all, const std::vector<int>& ahead);
// By a rule that needs no costs; Cap and None leave the schedule as it is.
Schedule withOffloads(const Schedule& schedule, const OffloadRule& rule);

} // namespace stagewright
