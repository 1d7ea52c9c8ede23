// Runs by reference: "FILE#RUN", or FILE and RUN; without a run the newest of the file.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/run/run.h"
#include "traces/store/run_file.h"

namespace stagewright {

class Session;

// "demo.stagewright#3" → file and run; without # the run is "".
struct RunReference {
    std::string file;
    std::string run;
};
RunReference parseRunReference(const std::string& text);

struct StoredRun {
    std::string file;
    Run run;
    std::vector<Note> notes; // its own, then those carried over from runs of the same schedule
};

// Says once of each file what of it is missing or not read.
Result<std::unique_ptr<RunFile>> openRunFile(const std::string& path, OpenMode mode = OpenMode::Read,
                                             std::stop_token stop = {});
// Damaged blocks are left out; a run without a readable span is an error (Unreadable).
Result<StoredRun> readRun(const RunReference& reference, const Progress& progress = {});
Result<StoredRun> readRun(const RunFile& file, const std::string& idOrName, const Progress& progress = {});
// The same for a report of one step (from 0; −1: the representative one): of a large run only the steps that it is made
// from.
Result<StoredRun> readRunForReport(const RunReference& reference, int step, const Progress& progress = {});
Result<StoredRun> readRunForReport(const RunFile& file, const std::string& idOrName, int step,
                                   const Progress& progress = {});
void warnOfDamage(const StoredRun& stored, Session& session); // where blocks were left out
std::string describe(const StoredRun& stored);                // "demo.stagewright#3 zb-h1"

} // namespace stagewright
