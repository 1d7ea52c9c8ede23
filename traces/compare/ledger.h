// Ledger: the critical path of a step, cut into classes. The classes sum to the makespan to the nanosecond, so the
// differences of two ledgers sum to the change of the makespan. If there are several critical paths, the one is used
// that stays longest on a single rank, the bottleneck, so that two runs of the same time have the same ledger if
// possible.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "traces/step/step_ops.h"

namespace stagewright {

enum class PathClass : std::uint8_t {
    Work,      // busy ops on the bottleneck rank
    Fill,      // ops on other ranks before the path first reaches the bottleneck
    Return,    // … after it has left it for the last time
    Detour,    // … in between
    Wire,      // from a producer's end to the arrival on another rank
    Order,     // an op of another rank that the path's next op only queues behind, without needing it
    Straggler, // the time of a busy op beyond the median of its kind, stage and rank over the measured steps
    Apart,     // optimizer, collectives, fillers
    Launch,    // everything was ready, but the op had not started
};
inline constexpr std::size_t pathClassCount = 9;
std::string_view toText(PathClass part);    // "work", "fill" … the JSON keys
std::string_view titleOf(PathClass part);   // "Work of the bottleneck rank"
std::string_view meaningOf(PathClass part); // one sentence

using TimeByClass = std::array<Nanos, pathClassCount>;

struct PathLedger {
    Nanos makespan = 0;
    int bottleneck = -1; // rank; −1: an empty step
    TimeByClass byClass{};
    int wires = 0;            // how often the path goes over a link
    std::vector<SpanId> path; // in time order

    Nanos of(PathClass part) const { return byClass[static_cast<std::size_t>(part)]; }
};

// firstStep: medians are over the steps from there on (warm-up is left out). O(spans + ranks × spans of the step); if
// that product exceeds 40 million, the critical path of traces/analysis is used unchanged.
PathLedger ledgerOf(const Timeline& timeline, const StepOps& ops, int firstStep = 0);

} // namespace stagewright
