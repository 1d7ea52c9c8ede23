// Formats that runs are written to for other tools: one file each, one line each in formats.def.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/run.h"

namespace stagewright {

struct FormatInfo {
    std::string_view name;   // "chrome"
    std::string_view title;  // "Chrome JSON trace"
    std::string_view suffix; // ".json"
    // To a temporary name, then renamed. Gives a sentence on what was written: "112 spans, 49 bubbles, 80 flows, …".
    Result<std::string> (*write)(const Run& run, const std::string& path, const Progress& progress);
};

std::span<const FormatInfo* const> allFormats(); // in the order of formats.def
const FormatInfo* findFormat(std::string_view name); // nullptr: unknown

} // namespace stagewright
