// The tables of Nsight Systems' SQLite export, wherever they come from.
#pragma once

#include <memory>
#include <string>

#include "schedules/base/progress.h"
#include "traces/format/format_registry.h"
#include "traces/store/database.h"

namespace stagewright {

// `bytes` of the file, which bound what reading it may take; `path` is named in messages.
Result<ForeignFile> readNsightTables(std::unique_ptr<Database> database, const std::string& path, std::int64_t bytes,
                                     const ImportOptions& options, const Progress& progress);

} // namespace stagewright
