// Where a verb's work is done: this computer, a host of the user's, a cluster's queue. And how its own call travels
// there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/cli/option_set.h"
#include "app/launch/hosts/follow.h"
#include "app/launch/slurm/slurm_script.h"
#include "schedules/base/result.h"

namespace stagewright {

struct PlaceOptions {
    std::string host;               // its name; "": this computer
    std::vector<std::string> slurm; // KEY=VALUE, each an option of sbatch
    bool scriptOnly = false;        // print the batch script, start nothing
    bool detach = false;            // start it and return
    std::vector<TypedOption> typed; // the call as it was given
    bool elsewhere() const { return !host.empty() || !slurm.empty() || scriptOnly; }
    bool followed() const { return !scriptOnly && !detach; }
};
void addPlaceOptions(OptionSet& verb, PlaceOptions& options);                 // of record
void addHostOption(OptionSet& verb, PlaceOptions& options, const char* what); // of check and devices

// Usage where options of record contradict the place.
Result<void> placeHonours(const PlaceOptions& place, const std::map<std::string, std::string>& given);
Result<std::vector<SlurmOption>> slurmOptions(const PlaceOptions& place);

// The call for the other end: without what says where and how it is shown here; files that it reads are sent along.
struct TravelCall {
    std::vector<std::string> arguments; // the verb first
    std::vector<std::string> shown;     // as typed, for lists of jobs
    std::vector<SentFile> files;
};
// leftOut: more options that don't travel, such as "--processes".
Result<TravelCall> travelCall(const std::string& verb, const PlaceOptions& place,
                              const std::vector<std::string>& leftOut = {});

} // namespace stagewright
