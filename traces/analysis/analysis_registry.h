// The analyses as tables, for programs that show any of them: one file each, one line each in analyses.def.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/timeline/timeline.h"

namespace stagewright {

struct AnalysisColumn {
    std::string key;   // "idle_ns"
    std::string title; // "Idle"
    std::string unit;  // "ns", "bytes", "" for counts, names and texts
};
using AnalysisCell = std::variant<std::int64_t, std::string>;

struct AnalysisTable {
    std::vector<AnalysisColumn> columns;
    std::vector<std::vector<AnalysisCell>> rows; // each as long as columns
};

struct AnalysisInfo {
    std::string_view name;  // "bubbles"
    std::string_view title; // "Idle time by cause"
    std::string_view needs; // as text: "memory events"
    bool (*applies)(const Timeline& timeline); // whether the timeline has what it needs
    // A pure function. An empty timeline or step gives a table without rows or with zeros, never an error.
    Result<AnalysisTable> (*run)(const Timeline& timeline, int step);
};

std::span<const AnalysisInfo* const> allAnalyses(); // in the order of analyses.def
const AnalysisInfo* findAnalysis(std::string_view name); // nullptr: unknown

} // namespace stagewright
