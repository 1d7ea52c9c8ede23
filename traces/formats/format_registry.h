// Formats that runs are written to for other tools and that their traces are read from: one file each, one line each in
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

struct ForeignFile { // what a file held
    std::vector<ForeignRank> ranks;
    std::optional<Schedule> schedule; // of a format that holds an order without times; then there are no ranks
};

struct FormatInfo {
    std::string_view name;   // "chrome"
    std::string_view title;  // "Chrome JSON trace"
    std::string_view suffix; // ".json"
    // To a temporary name, then renamed. Gives a sentence on what was written: "112 spans, 49 bubbles, 80 flows, …". May be null.
    Result<std::string> (*write)(const Run& run, const std::string& path, const Progress& progress) = nullptr;
    // Whether a file that begins like this (uncompressed) is of this format. Null where it is not read.
    bool (*sniff)(std::string_view head) = nullptr;
    // Damage within is counted in the ranks; an Error where nothing can be read.
    Result<ForeignFile> (*read)(const std::string& path, const ImportOptions& options, const Progress& progress) = nullptr;
};

std::span<const FormatInfo* const> allFormats(); // in the order of formats.def
const FormatInfo* findFormat(std::string_view name); // nullptr: unknown
const FormatInfo* formatOfHead(std::string_view head); // the first that is read and takes it; nullptr: none

} // namespace stagewright
