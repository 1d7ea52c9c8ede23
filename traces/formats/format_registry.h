// Formats to which runs are exported for other tools, and from which their traces are imported: one file each, one line each in
// formats.def.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/import/foreign_trace.h"
#include "traces/import/import_options.h"
#include "traces/run.h"

namespace stagewright {

struct ForeignFile { // the content of a file
    std::vector<ForeignRank> ranks;
    std::optional<Schedule> schedule; // for a format that contains an order without times; then ranks is empty
};

struct FormatInfo {
    std::string_view name;   // "chrome"
    std::string_view title;  // "Chrome JSON trace"
    std::string_view suffix; // ".json"
    // To a temporary name, then renamed. Returns a summary of what was written: "112 spans, 49 bubbles, 80 flows, …". May be null.
    Result<std::string> (*write)(const Run& run, const std::string& path, const Progress& progress) = nullptr;
    // Whether a file that starts like this (uncompressed) has this format. Null if the format can't be imported.
    bool (*sniff)(std::string_view head) = nullptr;
    // Damage within is counted in the ranks; an Error if nothing can be read.
    Result<ForeignFile> (*read)(const std::string& path, const ImportOptions& options, const Progress& progress) = nullptr;
};

std::span<const FormatInfo* const> allFormats(); // in the order of formats.def
const FormatInfo* findFormat(std::string_view name); // nullptr: unknown
const FormatInfo* formatOfHead(std::string_view head); // the first importable one that accepts it; nullptr: none

} // namespace stagewright
