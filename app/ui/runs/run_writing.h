// Writing run files for the window. For any thread; errors name file and remedy.
#pragma once

#include <memory>
#include <vector>

#include <QString>

#include "schedules/base/result.h"
#include "traces/run/notes.h"
#include "traces/run/run.h"

namespace stagewright {

// Runs with their notes as a file `target`: under a temporary name, which replaces an older file only when it is whole.
Result<void> writeRuns(const QString& target, const std::vector<std::shared_ptr<const Run>>& runs,
                       const std::vector<std::vector<Note>>& notes);
// The same with every run of the file `path`.
Result<void> copyRuns(const QString& path, const QString& target);
// Adds the runs of the file `other` to `path`, each under a name that is free there; their ids in it.
Result<std::vector<qint64>> adoptRuns(const QString& path, const QString& other);

} // namespace stagewright
