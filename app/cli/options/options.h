// Options that mean the same everywhere: written once, used by the verbs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/check/checked_schedule.h"
#include "schedules/execute/perturb.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

class OptionSet;
class Session;

struct ShapeOptions {
    int ranks = 4;
    int microbatches = 8;
    std::string chunks = "auto";
    GeneratorCosts costs; // for schedules that are made for their costs
    std::string overlap = "atomic";
    bool ranksGiven = false, microbatchesGiven = false, chunksGiven = false; // on the command line
};
void addShapeOptions(OptionSet& verb, ShapeOptions& options);

// --schedule NAME[,NAME…] or FILE.csv, also several times.
struct ScheduleOptions {
    std::vector<std::string> schedules;
    ShapeOptions shape;
};
void addScheduleOptions(OptionSet& verb, ScheduleOptions& options, const std::string& help);

struct CostOptions {
    std::string costs;     // "F=1,I=1,W=1" or FILE.json
    std::string document;  // read in place of that file's, where it is not empty
    std::string costsFrom; // F#RUN
    double comm = -1;      // < 0: not given
    std::string link;      // "LATENCY,BANDWIDTH"
    double freedAtInput = 0;
    double keep = 0; // share of an activation that recomputed stages keep: the stage's input
    // I's share of a measured full backward, where the costs have only that; < 0: from other runs or the model
    double inputShare = -1;
    std::vector<int> stageLayers;     // simulate: costs in proportion to them
    std::vector<std::string> perturb; // parts of schedules/execute/perturb.h
    std::int64_t seed = 1;            // of jitter
};
void addCostOptions(OptionSet& verb, CostOptions& options);
void addCommOptions(OptionSet& verb, double& comm, std::string& link);
void addPerturbOption(OptionSet& verb, std::vector<std::string>& perturb);
void addSeedOption(OptionSet& verb, std::int64_t& seed); // of jitter, where nothing is trained
void addWhatIfOption(OptionSet& verb, std::vector<std::string>& questions);
Result<Perturbation> choosePerturbation(const std::vector<std::string>& parts, int ranks);

// --recompute all|none|0-2, --hoist
struct RecomputeOptions {
    std::string stages = "none";
    bool hoisted = false;
};
void addRecomputeOptions(OptionSet& verb, RecomputeOptions& options);
// notes where --hoist has no effect
Result<Schedule> recomputed(const Schedule& schedule, const RecomputeOptions& options, Session& session);

// A library schedule for the shape, a CSV read and recognised, or a building block (.block) repeated for the
// microbatches. Notes where --chunks or the shape is not used. Valid schedules only: a CSV with faults is the first
// fault as an error (Invalid). Who trains it passes it on as that; where other options change its lists,
// CheckedSchedule::after().
Result<std::shared_ptr<const CheckedSchedule>> chooseSchedule(const std::string& nameOrFile, const ShapeOptions& shape,
                                                              Session& session);
// The same without the check: for `validate` and for what simulates a broken schedule's cycle.
// Notes which of the options of shape a file leaves without effect; of a block all but the microbatches.
void noteOwnShape(const std::string& path, const ShapeOptions& shape, bool block, Session& session);
// As --overlap has it, with a note where the schedule has no overlapped pairs.
Schedule overlapping(Schedule schedule, const ShapeOptions& shape, Session& session);
Result<Schedule> readSchedule(const std::string& nameOrFile, const ShapeOptions& shape, Session& session);
bool namesFile(const std::string& nameOrFile); // ends in .csv or .block, or holds a slash

// "demo.stagewright#3" → file and run; without # the run is "".
struct RunReference {
    std::string file;
    std::string run;
};
RunReference parseRunReference(const std::string& text);

} // namespace stagewright
