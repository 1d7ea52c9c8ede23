// A digest of every table of a run, kept in the file and renewed by every change within its transaction: the sum of the
// hashes of its rows, so that a change costs what it changes. `runs --verify` adds them up again. Which digests there
// are has one, too.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "schedules/base/result.h"
#include "traces/store/database.h"

namespace stagewright {

// Rows that were added to or taken from a connection's tables since its last commit.
class TableDigests {
public:
    struct Sum {
        std::int64_t rows = 0;
        std::uint64_t hash = 0;
    };
    using Changes = std::map<std::pair<std::int64_t, std::string>, Sum>; // by run (0: of the file) and table

    // From now on every change of the connection is counted. The connection must outlive this.
    explicit TableDigests(sqlite3* handle);
    ~TableDigests();
    TableDigests(const TableDigests&) = delete;
    TableDigests& operator=(const TableDigests&) = delete;

    // Into the file; before every commit. Of runs that have none, since an earlier version wrote them, nothing.
    Result<void> flush(Database& database);
    // The run `to`, whose rows were copied in this transaction, has the digests of run `from` of the attached database
    // `other`: if it was damaged there, it is here. With the difference that its state may have changed.
    Result<void> takeOver(Database& database, std::int64_t from, std::int64_t to);

private:
    static void changed(void* self, sqlite3* handle, int operation, const char* schema, const char* table,
                        sqlite3_int64 before, sqlite3_int64 after);
    static void rolledBack(void* self);
    void count(sqlite3* handle, int operation, const char* schema, const char* table);
    Result<Sum> after(Database& database, std::int64_t run, std::string_view table, const Sum& change,
                      const std::optional<Sum>& before);
    Result<void> put(Database& database, std::int64_t run, std::string_view table, const Sum& sum, bool isNew);
    Result<void> removeAll(Database& database, std::int64_t run);
    Result<void> flushSequence(Database& database);
    Result<void> flushNames(Database& database);
    sqlite3* m_handle;
    Changes m_changes;
    Sum m_names;          // of digests that were added or removed
    bool m_lost = false;  // changes that there was no memory to count
    bool m_taken = false; // digests came from elsewhere
};

// Whether all tables of the run are what they were; empty: an earlier version wrote it, so there are no digests.
// recording: somebody appends steps to the file, so those that are not folded are left to their own checksums.
Result<std::optional<bool>> tablesHold(Database& database, std::int64_t run, bool recording);
// The same of what is the file's own, and that there are the digests of its runs that were written, and no others.
// Unreadable where not.
Result<void> checkFileDigests(Database& database);
Result<void> countDigests(Database& database); // which there are, from now on

} // namespace stagewright
