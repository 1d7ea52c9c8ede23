// A folder for a TorchTitan job that runs a schedule: the CSV, the settings to paste, and the requirements for that
// job.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// Files by name: schedule.csv, schedule_comms.csv, stagewright_job.py (TorchTitan since 2026), settings.toml (before),
// run.sh, README.md. Errors (Invalid): what PyTorch or
// TorchTitan can't express, with the nearest schedule that it can run.
Result<std::vector<std::pair<std::string, std::string>>> torchTitanFolder(const Schedule& schedule,
                                                                          const std::string& source);

// Writes them as a folder, completely or not at all (writeFolderAtomically).
Result<void> writeTorchTitanFolder(const std::vector<std::pair<std::string, std::string>>& files,
                                   const std::string& folder);

} // namespace stagewright
