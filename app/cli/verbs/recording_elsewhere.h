// Recording on a host or in a cluster's queue: starts the job, shows it while it runs, and has its runs in the file
// here.
#pragma once

#include "app/cli/options/place_options.h"
#include "app/cli/verbs/recording.h"
#include "schedules/base/result.h"

namespace stagewright {

class Session;

// As recordRuns(): a job that ends early is in Recording::stopped, also one whose connection is lost for good.
// typed: the call as it was given.
Result<Recording> recordElsewhere(const RecordSettings& settings, const Setup& setup,
                                  const std::vector<TypedOption>& typed, Session& session);
// --detach and --script-only: returns once it has started, or the script is printed.
Result<int> startElsewhere(const RecordSettings& settings, const Setup& setup, const std::vector<TypedOption>& typed,
                           Session& session);

// `hosts attach`, `fetch` and `stop` share it: shows what comes and returns the job's runs as a Recording.
Result<Recording> followElsewhere(HostJob& job, const FollowOptions& options, Session& session);

} // namespace stagewright
