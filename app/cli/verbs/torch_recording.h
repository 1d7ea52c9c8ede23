// Recording under PyTorch: a job folder for each schedule, one after the other, and their traces as runs of the file.
#pragma once

#include "app/cli/verbs/recording.h"
#include "engine/torch/torch_job.h"
#include "schedules/base/result.h"
#include "schedules/setup/setup.h"

namespace stagewright {

class Session;

// The job of a schedule, for its folder.
Result<TorchJob> torchJobOf(const RecordSettings& settings, const Setup& setup, const Schedule& schedule);

// As recordRuns(): fails where nothing could start (no PyTorch, a schedule that it can't run, a job folder that is in
// use), and reports an end before the last step in Recording::stopped; the job folders are kept and named.
Result<Recording> recordWithTorch(const RecordSettings& settings, const Setup& setup, Session& session);

// The same by a TorchTitan job of the user's, whose configuration is setup.config.
Result<Recording> recordWithTitan(const RecordSettings& settings, const Setup& setup, Session& session);
// The job's configuration as its run.sh takes it: the absolute path of a TOML file, or MODULE:FUNCTION; else Usage.
Result<std::string> titanConfig(const std::string& named);

} // namespace stagewright
