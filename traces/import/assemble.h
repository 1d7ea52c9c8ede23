// Runs from the ranks of a job that another tool traced.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/foreign/foreign_trace.h"
#include "traces/foreign/import_options.h"
#include "traces/import/rule_draft.h"
#include "traces/run/run.h"

namespace stagewright {

struct ImportedRun {
    Run run;
    std::string format;             // "kineto", "nsight", "chrome", "csv"
    std::vector<std::string> files; // by rank
    std::string dialect;            // the dialect of the names, "" if none matched
    std::string recognised;         // the library's name of the schedule, "" if it is not in the library
    std::string notRebuilt;         // why the schedule is missing, "" if there is one
    std::string clocks;             // as text: "one clock, ± 12.0 µs"
    Nanos clockError = -1;          // −1: not known
    std::int64_t events = 0;
    std::int64_t ops = 0;
    std::int64_t kernels = 0; // device spans
    std::int64_t kernelsUnderOps = 0;
    std::int64_t kernelsUnderRanges = 0; // launched within a named range, an op or another
    // launched before the first, after the last or between marked steps: in no step
    std::int64_t launchedOutside = 0;
    // of an unknown step: neither a launch nor a step's range on the device says it
    std::int64_t stepUnknown = 0;
    std::int64_t messages = 0; // sends with their receive
    std::int64_t unpaired = 0;
    std::int64_t collectives = 0;        // of two ranks or more
    std::int64_t collectivesAlone = 0;   // of the job: of which one rank's side is in the traces
    std::int64_t collectivesLacking = 0; // of several ranks, but not of all that their group has
    std::int64_t damaged = 0;
    std::vector<std::pair<std::string, std::int64_t>> leftOut;
    std::vector<std::string> notes; // sentences; also the run's note
    // of the job, where no range is named like an op, or if asked for; else null
    std::shared_ptr<const RangeNames> rangeNames;

    // The note that says how many events were skipped.
    std::string damageNote() const;
};

// One run for each pipeline of the job (data-parallel copies are runs of their own). Ranks without a number are
// numbered in the order given. Fails (Invalid) if the spans can't be put on a timeline, and Cancelled.
Result<std::vector<ImportedRun>> assemble(std::vector<ForeignRank> ranks, const std::string& name,
                                          const ImportOptions& options, const Progress& progress = {});

} // namespace stagewright
