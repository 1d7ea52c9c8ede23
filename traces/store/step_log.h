// Steps as a recording writes them: one row of `step_log` each, with all rows of the step's tables in it, so that a
// step writes little more than it stores. At the end, or by RunFile::compact(), they are folded into the tables.
// Readers see both alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/store/database.h"
#include "traces/store/step_blocks.h"

namespace stagewright {

// The bytes of a row: CRC-32 of what follows, form (0: as they are, 1: zlib), length of the rows (4 bytes each but the
// form), the rows.
std::vector<std::byte> packStep(std::span<const std::byte> rows);
bool unpackStep(std::span<const std::byte> data, std::vector<std::byte>& rows); // false: damaged

// A step's rows: facts that reading any part of the run needs (tracks, labels, counters, metrics and their values), and
// its blocks.
struct StepRows {
    RowWriter facts;
    RowWriter blocks;
};
// Takes the run's rows out of every table that a step grows.
Result<void> takeStepRows(Database& database, std::int64_t run, StepRows& rows);
// Adds them to the tables of that prefix ("main.", "temp.log_"); what is there already stays. False: the rows are
// damaged, and none is added.
Result<bool> addStepRows(Database& database, std::string_view prefix, std::int64_t run,
                         std::span<const std::byte> rows);

struct LoggedStep {
    std::int64_t segment = 0;
    std::int64_t firstStep = 0; // the lowest that the segment has spans of
    std::int64_t steps = 0;     // from here the run's totals with it
    std::int64_t spans = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool empty = true; // no span so far: begin and end are unknown
};
// The totals of the run's row.
Result<LoggedStep> totalsOf(Database& database, std::int64_t run);
Result<void> setTotals(Database& database, std::int64_t run, const LoggedStep& totals);
// within a transaction
Result<void> logStep(Database& database, std::int64_t run, const LoggedStep& step, const StepRows& rows);

// Folds the run's steps into the tables, some hundred in a transaction: a kill or full disk in between loses none.
// True: no step is left; damaged ones stay where they are.
Result<bool> foldSteps(Database& database, std::int64_t run, const Progress& progress = {});
Result<std::vector<std::int64_t>> runsWithLoggedSteps(Database& database);

// The steps of a file that are not folded, for a connection that reads: temporary tables, and views over them and the
// file's.
class UnfoldedSteps {
public:
    // Within the snapshot that is read then: facts of every step, blocks of none. readOnly: the connection has
    // query_only set. True: there is more, as `enough` ended it.
    Result<bool> catchUp(Database& database, bool readOnly, const std::function<bool()>& enough);
    // The blocks of the run's segments that may hold something of these steps, and of those before that share a segment
    // with them. True: there is more, as `enough` ended it, which is asked up to the step of that id.
    static constexpr std::int64_t everyRun = -1;
    Result<bool> load(Database& database, bool readOnly, std::int64_t run, std::int64_t firstStep,
                      std::int64_t lastStep, std::int64_t askedUntil, const std::function<bool()>& enough);
    std::int64_t last() const { return m_last; } // id of the newest step
    // steps whose bytes are not those that were written, of those that were looked at
    std::int64_t damaged(std::int64_t run) const;
    // The table of blocks without their data, where looking for some.
    std::string_view bounds() const { return m_views ? "temp.span_bounds" : "main.span_block"; }

    // The views and tables beside those of the file, which VACUUM takes for them; loading makes them again.
    Result<void> dropViews(Database& database);

private:
    struct Row {
        std::int64_t id = 0, run = 0;
        std::int64_t firstStep = 0, steps = 0;
        bool loaded = false;
    };
    Result<void> makeViews(Database& database);
    Result<bool> stillThere(Database& database) const;
    Result<bool> add(Database& database, const std::function<bool()>& enough);
    Result<void> load(Database& database, Row& row);

    std::vector<Row> m_rows;
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> m_runs; // first and last id
    std::map<std::int64_t, std::int64_t> m_damaged;
    std::int64_t m_last = 0;
    bool m_views = false;
};

} // namespace stagewright
