// The analyses as tables: one file each, one line each in analyses.def. Listed there, an analysis is a table of
// `report`, its JSON, SQL, the window's Tables and the HTML page (traces/report/tables.h).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "schedules/base/result.h"
#include "traces/run/run.h"

namespace stagewright {

enum class ColumnKind {
    Text,
    Whole, // a rank, stage or position: a number that is not added up
    Count,
    Time,  // in ns of the timeline, which counts rank shares in them where timeUnit() > 1
    Size,  // likewise in bytes, with memoryUnit()
    Share, // 1 is 100 %
    Real,
};
struct AnalysisColumn {
    std::string key;   // "idle_ns"
    std::string title; // "Idle"
    ColumnKind kind = ColumnKind::Text;
    std::string meaning = {};                                   // one sentence; may be empty
    std::string_view (*words)(std::string_view text) = nullptr; // a text of it as people say it; null: as it is
    // "ns", "bytes", "fraction", "" for names, counts and numbers (their titles name a unit)
    std::string_view unit() const;
};
using AnalysisCell = std::variant<std::monostate, std::int64_t, double, std::string>; // monostate: unknown
template <typename Value>
AnalysisCell cellOf(const std::optional<Value>& value)
{
    return value ? AnalysisCell(*value) : AnalysisCell();
}

struct AnalysisRows {
    std::vector<std::vector<AnalysisCell>> rows; // each as long as the columns
    std::vector<SpanId> ops;                     // by row the span it is about, or noSpan; empty: rows are about none
    std::string sentence;                        // what it comes to, below the table; may be empty
};

// What is drawn of the rows as lines over the first column, such as the loss by step: columns of one unit.
struct AnalysisCurves {
    std::string_view up; // title of their axis; empty: nothing is drawn
    std::array<std::string_view, 2> columns = {};
};

// The part of a report that prints a table without its being named.
enum class ReportPart {
    None,
    Device,  // of runs without ops
    Kernels, // by --kernels, and of runs without ops
};

struct AnalysisInfo {
    std::string_view name;  // as in analyses.def: "bubbles"
    std::string_view title; // "Idle time by cause"
    std::vector<AnalysisColumn> (*columns)();
    // Why the run has no such table: a clause, lower case; empty: it has.
    std::string (*unknown)(const Run& run);
    // A pure function, called where unknown() is empty. A step that is empty or does not exist gives no rows or zeros.
    Result<AnalysisRows> (*rows)(const Run& run, int step);
    bool ofEveryStep = false; // its rows are made from all steps, whichever is asked for: a report must read them all
    ReportPart part = ReportPart::None;
    AnalysisCurves curves = {};
};

std::span<const AnalysisInfo* const> allAnalyses();      // in the order of analyses.def
const AnalysisInfo* findAnalysis(std::string_view name); // nullptr: unknown

// unknown() of analyses that need ops, or what joins them.
std::string unknownWithoutOps(const Run& run);
std::string unknownWithoutMessages(const Run& run);

} // namespace stagewright
