// The document of a run's report: what `report`, `simulate` and `record` print and write as JSON, and the HTML page
// shows. The keys of its JSON are those of docs/cli.md; every one is there, null where it does not apply.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "traces/report/document/document.h"
#include "traces/report/run_report.h"
#include "traces/run/notes.h"

namespace stagewright {

struct RunDocumentOptions {
    const StepContext* context = nullptr;     // of the report: gaps are listed; null: they are not
    std::size_t explained = 0;                // so many of the longest, with sentence, chain and experiment
    const std::vector<Note>* notes = nullptr; // null: none are listed
    bool data = true;                         // false: what only JSON has may be left out, where it is much
    // What people are shown; JSON has all.
    bool memory = true;
    bool communication = true;
    bool criticalPath = true;
    bool titles = true; // of the timeline and the idle times
};
// Facts, figures, levers, timeline, idle time by cause, gaps, memory, communication, critical path.
document::Document runDocument(const Run& run, const RunReport& report, const RunDocumentOptions& options = {});

// Messages, and what ranks share: of it the figures of the rank with the most. figures: report.figures().
document::Section communicationSection(const RunReport& report, const std::vector<document::Figure>& figures);
// Longest gain first; what can't be simulated with its reason.
document::Section leversSection(const RunReport& report);
// What a run that trained has beside its times: contention, loss, whose weights; without keys. Steps that a run has differ from it in notes.
std::vector<document::Figure> trainingFigures(const Run& run, int step);
// Under "notes"; ranges in units of cost where that is the unit of the run's times.
document::Section notesSection(const std::vector<Note>& notes, Nanos timeUnit);
// What a run is listed with, under that place ("a."); not read: its damage is unknown.
void addInfo(document::Section& section, const RunInfo& info, bool read, const std::string& place = {});
// What the run was made under: its profiler, disturbance, links, contention; facts only.
void addConditions(document::Section& section, const Run& run);

} // namespace stagewright
