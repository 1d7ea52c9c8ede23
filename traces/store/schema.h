// The tables of the run file and its versions (docs/database.md).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "schedules/base/result.h"
#include "traces/store/database.h"

namespace stagewright {

inline constexpr std::int64_t runFileApplicationId = 0x53575254; // "SWRT" in PRAGMA application_id

// One step from version − 1 to version. Steps are never changed once shipped.
struct Migration {
    int version;
    std::string_view sql;
    Result<void> (*then)(Database& database) = nullptr; // what SQL can't do
};
std::span<const Migration> migrations();
int runFileVersion(); // that of the last migration

// Every table with rows of a run: its columns besides the first one, `run`. Used to remove and to merge runs.
struct RunTable {
    std::string_view name;
    std::string_view columns;
};
std::span<const RunTable> runTables();

// Checks application id and version of an open file: a foreign, damaged or newer one is an Error with its remedy.
// Returns the version.
Result<int> checkRunFile(Database& database);
// Upgrades a file to the last version, each step in its own transaction; version 0 is an empty database.
Result<void> migrate(Database& database, int from, std::span<const Migration> steps);
// A new run can have a number; else an Error. SQLite would say that the disk is full.
Result<void> runNumbersAreLeft(Database& database);
// The views for queries, of this connection only: those of the file with the current columns (step_number), empty if a
// file of `version` lacks their data.
Result<void> addQueryViews(Database& database, int version);

} // namespace stagewright
