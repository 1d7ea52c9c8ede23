// From a setup to what runs: the schedule by its name, its recomputation, its replicas, its messages, its costs. The
// one way to all of them; what is simulated and what is trained differ only in SharedBy.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/check/checked_schedule.h"
#include "schedules/check/validate.h"
#include "schedules/execute/perturb.h"
#include "schedules/messages/channels.h"
#include "schedules/messages/lower.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"
#include "schedules/plan/fill_plan.h"
#include "schedules/setup/replica_lists.h"
#include "schedules/setup/setup.h"

namespace stagewright {

// What a setup names that a value can't hold, and where notes go of what it has no use for. All may be empty.
struct SetupSources {
    std::function<Result<Schedule>(const std::string& path)> csv;     // a schedule file
    std::function<Result<std::string>(const std::string& path)> text; // any other file
    // Costs of another run or of a cost file, with every duration that the schedule needs.
    std::function<Result<CostModel>(const Schedule& schedule, const Setup& setup)> measured;
    std::function<void(const std::string& sentence)> note;
    std::function<void(const Schedule& lists)> cyclic; // lists of a file that wait for each other

    void tell(const std::string& sentence) const
    {
        if (note) note(sentence);
    }
};

bool namesFile(const std::string& nameOrFile); // ends in .csv or .block, or holds a slash
// Notes which of the setup's shape a file leaves without effect; of a block all but the microbatches.
void noteOwnShape(const std::string& path, const Setup& setup, bool block, const SetupSources& sources);
// As --overlap has it, with a note where the schedule has no overlapped pairs.
Schedule overlapping(Schedule schedule, const Setup& setup, const SetupSources& sources);
Shape shapeOf(const Setup& setup); // with generatorCosts()
// A library schedule for the shape, a CSV read and recognised, or a building block (.block) repeated for the
// microbatches. Notes where --chunks or the shape is not used. costs: for schedules that are made for them.
Result<Schedule> readSchedule(const std::string& nameOrFile, const Setup& setup, const SetupSources& sources,
                              const GeneratorCosts& costs = {});
// Valid ones only: a file with faults is the first fault as an error (Invalid).
Result<std::shared_ptr<const CheckedSchedule>> chooseSchedule(const std::string& nameOrFile, const Setup& setup,
                                                              const SetupSources& sources);
Result<Schedule> recomputed(const Schedule& schedule, const Setup& setup, const SetupSources& sources);

// How the messages of a schedule travel, and by which rule its sends and receives are inserted, with notes on what is
// not used: all that who trains a CheckedSchedule needs, which lowers itself.
struct ChannelChoice {
    Channels channels;
    std::optional<Lowering> lowering; // none: its lists stay as given
};
bool limitsMessages(const Setup& setup); // beyond what links carry
Result<ChannelChoice> chooseChannels(const Schedule& schedule, bool lowered, const Setup& setup,
                                     const SetupSources& sources);
// Says which of the given options a schedule has no use for because it has a single rank.
void noteUnusedAlone(const Schedule& schedule, std::initializer_list<std::pair<const char*, bool>> given,
                     const SetupSources& sources);
// A schedule that need not be valid, as it is run: lowered by the rule, or by the just-in-time rule where the
// channels matter and it is not lowered yet (with a note). One that can't be lowered (it is not valid) comes back as it
// is.
struct LoweredChoice {
    Schedule schedule;
    Channels channels;
    std::optional<Lowering> lowering; // none: its lists are as given
};
Result<LoweredChoice> chooseLowering(const Schedule& schedule, const Setup& setup, const SetupSources& sources);

// --cluster: the links of its devices, one for each rank, and in words whose they are. Precondition: it is given. Usage:
// it has fewer devices; --comm is given, too.
struct ClusterLinks {
    Links links;
    std::string words;
};
Result<ClusterLinks> clusterLinksOf(const Schedule& schedule, const Setup& setup, const SetupSources& sources);

// --copies; none: it is not given.
Result<std::optional<Copies>> copiesOf(const Setup& setup);

Result<Perturbation> choosePerturbation(const std::vector<std::string>& parts, int ranks);
// --costs in units: those of a rank's ops, and of what replicas share.
struct SetupUnits : CostModel::UnitCosts {
    double gather = 0; // UNSHARD
    double reduce = 0; // REDUCE_GRAD
};
// "F=1,B=2" over others; Usage names the part. Back: those that differ from others, but for a B that is I + W.
Result<SetupUnits> parseUnitCosts(std::string_view text, SetupUnits costs = {});
// Those of a setup with its latency and --free-at-input.
Result<SetupUnits> unitsOf(const Setup& setup);
std::string unitCostsText(const SetupUnits& costs, const SetupUnits& from = {});

// What schedules that are searched may plan with: --costs where they are in units, --comm, --free-at-input,
// --memory-limit where it is a number; else unit costs.
GeneratorCosts generatorCosts(const Setup& setup);
// Its layout as layers of each stage and chunks. Errors: readMegatronLayout()'s; other chunks are given; it has
// multi-token prediction, which nothing here computes.
Result<Setup> withLayout(Setup setup);
// Costs of a pipeline, disturbed as the setup says, without what its replicas share.
Result<CostModel> chooseCosts(const Schedule& schedule, const Setup& setup, const SetupSources& sources);

// The lists of a simulation before its messages; those of a training, whose schedule was chosen by the name. layersOf:
// of a model.
Result<ReplicaLists> simulatedLists(const std::string& name, const Setup& setup, const SetupSources& sources);
Result<ReplicaLists> trainedLists(const Schedule& chosen, const std::string& name, const Setup& setup,
                                  const SetupSources& sources,
                                  const std::function<Result<std::vector<int>>(int stages)>& layersOf);

// What is simulated.
struct Prepared {
    ReplicaLists state;
    LoweredChoice lists;   // as they run
    Validation validation; // of those; where it fails there are no costs
    CostModel costs;
    std::optional<FilledCycle> fill; // --fill: `lists` are a step of it
};
Result<Prepared> prepare(const std::string& name, const Setup& setup, const SetupSources& sources);
// Costs alone of such lists, such as those of another setup.
Result<CostModel> costsOf(const ReplicaLists& state, const Schedule& lists, const Setup& setup,
                          const SetupSources& sources);

} // namespace stagewright
