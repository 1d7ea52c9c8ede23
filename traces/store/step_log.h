// Steps as a recording writes them: one row of `step_log` each, with all rows of the step's tables in it, so that a step writes little more than it
// stores. At the end, or by RunFile::compact(), they are folded into the tables. Readers see both alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "traces/store/database.h"
#include "traces/store/step_blocks.h"

namespace stagewright {

// The bytes of a row: CRC-32 of what follows, form (0: as they are, 1: zlib), length of the rows (4 bytes each but the form), the rows.
std::vector<std::byte> packStep(std::span<const std::byte> rows);
bool unpackStep(std::span<const std::byte> data, std::vector<std::byte>& rows); // false: damaged

// Takes the run's rows out of every table that a step grows.
Result<void> takeStepRows(Database& database, std::int64_t run, RowWriter& rows);
// Adds them to the tables of that prefix ("main.", "temp.log_"); what is there already stays. False: the rows are damaged.
Result<bool> addStepRows(Database& database, std::string_view prefix, std::int64_t run, std::span<const std::byte> rows);

struct LoggedStep {
    std::int64_t segment = 0;
    std::int64_t steps = 0; // the run's totals with it
    std::int64_t spans = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool empty = true; // no span so far: begin and end are unknown
};
// The totals of the run's row.
Result<LoggedStep> totalsOf(Database& database, std::int64_t run);
Result<void> setTotals(Database& database, std::int64_t run, const LoggedStep& totals);
Result<void> logStep(Database& database, std::int64_t run, const LoggedStep& step, std::span<const std::byte> rows); // within a transaction

// Folds the run's steps into the tables, some hundred in a transaction: a kill or full disk in between loses none. True: no step is left; damaged
// ones stay where they are.
Result<bool> foldSteps(Database& database, std::int64_t run, const Progress& progress = {});
Result<std::vector<std::int64_t>> runsWithLoggedSteps(Database& database);

// The steps of a file that are not folded, for a connection that reads: temporary tables, and views over them and the file's.
class UnfoldedSteps {
public:
    // Within the snapshot that is read then. readOnly: the connection has query_only set.
    Result<void> catchUp(Database& database, bool readOnly);
    std::int64_t damaged(std::int64_t run) const; // steps whose bytes are not those that were written

private:
    struct Place {
        std::int64_t first = 0, last = 0; // ids
        std::int64_t damaged = 0;
    };
    Result<void> makeViews(Database& database);
    Result<bool> stillThere(Database& database) const;
    Result<void> add(Database& database);

    std::map<std::int64_t, Place> m_runs;
    std::int64_t m_last = 0;
    bool m_views = false;
};

} // namespace stagewright
