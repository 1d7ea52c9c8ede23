// Schedule: what every rank does, in order. A value: copy, compare, hash, diff, print. It holds no times and no idle:
// start times always follow from the order; an intended delay is an op of kind Filler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/model/op.h"
#include "schedules/model/placement.h"
#include "schedules/model/stage_graph.h"

namespace stagewright {

// Which version of its weights a stage computes with. All but Synchronous change the mathematics: such a schedule
// carries its own Optimizer ops, and no barrier ends its step.
enum class WeightRule : std::uint8_t {
    Synchronous, // one version per step. Optimizer ops in the order, if any, step each stage at their place, without a
                 // barrier, and are validated afterwards (zero bubble's post-validation); else the step ends with a
                 // barrier
    Stashed,     // PipeDream: F uses the newest version and keeps it for its own B; an Optimizer op after every B
    TwoVersions, // PipeDream-2BW: gradients of all microbatches of a step, applied one step late
    Predicted,   // PipeOptim: F uses weights predicted for the time of its B; B uses the current ones
};

std::string_view toText(WeightRule rule);                      // "synchronous", "stashed", "two_versions", "predicted"
std::optional<WeightRule> weightRuleOf(std::string_view text); // none: no such rule

struct Schedule {
    std::string name; // library name with its parameters, or a file's name; a label, not part of equality
    int ranks = 0;    // replicas × pipelineRanks()
    int stages = 0;
    int microbatches = 0; // of all replicas: numbered on from replica to replica
    // Pipelines that train one model together (schedules/model/replicas.h): rank = replica × pipelineRanks() + pipeline
    // rank.
    int replicas = 1;
    Placement placement;
    std::vector<std::vector<Op>> order; // by rank
    // Positions that are issued together with the next one (overlapped pairs), by rank, ascending. Usually all empty.
    std::vector<std::vector<std::uint32_t>> paired;
    WeightRule weights = WeightRule::Synchronous;
    // Relative lengths of the sequence slices, by slice; empty: equal ones. Only where ops name slices.
    std::vector<std::uint32_t> sliceLengths;
    StageGraph graph; // sends and receives say no partner: lists with them need the chain

    bool operator==(const Schedule& other) const;
    int pipelineRanks() const { return replicas > 0 ? ranks / replicas : ranks; }
    int replicaOf(int rank) const { return pipelineRanks() > 0 ? rank / pipelineRanks() : 0; }
    int pipelineRankOf(int rank) const { return pipelineRanks() > 0 ? rank % pipelineRanks() : rank; }
    std::size_t opCount() const;
    bool isPaired(int rank, std::size_t position) const;
    bool splitsBackward() const; // has I or W
};

// Where each sequence slice starts, in relative lengths, and their sum last; empty where no op names a slice. Slices
// beyond sliceLengths count 1.
std::vector<std::int64_t> sliceStartsOf(const Schedule& schedule);
// The slice's part of a whole, rounded so that the parts of all slices sum to it; the whole where starts know no such
// slice.
std::int64_t shareOfSlice(std::int64_t whole, const std::vector<std::int64_t>& starts, int slice);

// Whether any two compute ops overlap. A recomputation that waits with its backward does not, and messages posted
// together are not a pair.
bool overlapsOps(const Schedule& schedule);
// The same orders without overlapped pairs: what a device does that can't overlap. A recomputation still waits for what
// its backward needs, and messages posted together stay so.
Schedule serialised(Schedule schedule);

std::uint64_t hashOf(const Schedule& schedule); // stable across machines; name not included

// One line per rank, ops separated by spaces; for messages and tests.
std::string toText(const Schedule& schedule);

// The costs a generator may plan with (zb-auto, terapipe, the V family); units as in CostModel::UnitCosts. Fixed orders
// ignore them. What needs costs by stage is a plan (schedules/plan).
struct GeneratorCosts {
    double forward = 1;
    double inputGrad = 1;
    double weightGrad = 1;
    double latency = 0;
    double memoryLimit = 0;  // microbatch activations of a rank; 0: the schedule's own default
    double freedAtInput = 0; // part of an activation that I frees, 0 … 1
};

// What a schedule's generator needs to know.
struct Shape {
    Shape() = default;
    Shape(int someRanks, int someMicrobatches, int someChunks = 0)
        : ranks(someRanks), microbatches(someMicrobatches), chunks(someChunks)
    {
    }

    int ranks = 4;
    int microbatches = 8;
    int chunks = 0; // stages per rank; 0: the schedule's own default
    GeneratorCosts costs;
    // Set by makeSchedule: every parameter of the schedule, in the order of ScheduleInfo::parameters.
    std::vector<std::pair<std::string, std::string>> parameters;

    const std::string& parameter(std::string_view name) const; // "" where there is none
    int number(std::string_view name, int otherwise) const;    // of a parameter that is a whole number
};

} // namespace stagewright
