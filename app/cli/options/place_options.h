// Where a verb's work is done: this computer, a host of the user's, a cluster's queue. And how its own call travels
// there.
#pragma once

#include <string>
#include <vector>

#include "app/cli/option_set.h"
#include "app/launch/hosts/follow.h"
#include "app/launch/slurm/slurm_option.h"
#include "schedules/base/result.h"
#include "schedules/setup/setup.h"

namespace stagewright {

// Usage where options of record contradict the place.
Result<void> placeHonours(const Setup& setup);
// NAME=VALUE of --interface and --env, which wins.
std::vector<std::string> rankEnvironment(const Setup& setup);
Result<std::vector<SlurmOption>> slurmOptions(const Setup& setup);
Result<std::vector<SlurmOption>> srunOptions(const Setup& setup);

// The call as it was given, for the other end: without what says where and how it is shown here; files
// that it reads are sent along.
struct TravelCall {
    std::vector<std::string> arguments; // the verb first
    std::vector<std::string> shown;     // as typed, for lists of jobs
    std::vector<SentFile> files;
};
// leftOut: more options that don't travel, such as "--processes".
Result<TravelCall> travelCall(const std::string& verb, const std::vector<TypedOption>& typed,
                              const std::vector<std::string>& leftOut = {});

} // namespace stagewright
