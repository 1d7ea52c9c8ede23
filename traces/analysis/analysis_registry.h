// The analyses: one file each, one line each in analyses.def. Listed there, what an analysis says, its rows, figures,
// curves, sentence and marks, is in `report`, its JSON, the window's Tables and the HTML page, and its rows in SQL
// (traces/report/tables.h).
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/table.h"
#include "traces/report/document/document.h"
#include "traces/run/run.h"

namespace stagewright {

class StepContext; // step_context.h

struct AnalysisRows {
    std::vector<TableRow> rows;
    std::vector<SpanId> ops;                    // by row the span it is about, or noSpan; empty: rows are about none
    std::string sentence;                       // what it comes to, below the table; may be empty
    std::vector<document::Figure> figures = {}; // key figures, above the table: "share" is tables.NAME.figures.share
    document::Marks marks = {};                 // what of it a picture of the timeline shows
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

// What an analysis is about, by which long lists of them are grouped.
enum class AnalysisSubject {
    Ops,
    Communication,
    Devices,
    Training,
};
std::string_view titleOf(AnalysisSubject subject);

struct AnalysisInfo {
    std::string_view name;  // as in analyses.def: "bubbles"
    std::string_view title; // "Idle time by cause"
    std::vector<TableColumn> (*columns)();
    // Why the run has no such table: a clause, lower case; empty: it has.
    std::string (*unknown)(const Run& run);
    // Called where unknown() is empty. A step that is empty or does not exist gives no rows or zeros.
    Result<AnalysisRows> (*rows)(const StepContext& context);
    bool ofEveryStep = false; // its rows are made from all steps, whichever is asked for: a report must read them all
    ReportPart part = ReportPart::None;
    AnalysisCurves curves = {};
    bool leads = false; // of runs without ops the one to start with
};

std::span<const AnalysisInfo* const> allAnalyses();      // in the order of analyses.def
AnalysisSubject subjectOf(const AnalysisInfo& analysis); // of one of them
const AnalysisInfo* findAnalysis(std::string_view name); // nullptr: unknown

// unknown() of analyses that need ops, or what joins them.
std::string unknownWithoutOps(const Run& run);
std::string unknownWithoutAllRanks(const Run& run); // of the pipeline
std::string unknownWithoutMessages(const Run& run);

} // namespace stagewright
