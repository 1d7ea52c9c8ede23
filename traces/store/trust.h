// What is looked at before anything of a run file is read: it may come from anywhere.
#pragma once

#include <string>
#include <vector>

#include "schedules/base/result.h"
#include "traces/store/database.h"

namespace stagewright {

// Lengths, depths and memory that reading a file of that many bytes may need; cells and pages are checked as they are
// read. temporaryFor: of how many bytes, if other than fileBytes, its temporary files may be for.
Result<void> limitFor(Database& database, std::int64_t fileBytes);
Result<void> limitFor(Database& database, std::int64_t fileBytes, std::int64_t temporaryFor);

// Compares the schema with that of the version, word for word. A trigger, a view or a generated column that is not
// ours, a table of ours that is missing or differs, and a table with the name of a virtual one are refused by name
// (Unreadable). Returns the names of tables and indexes that are not ours; they are not read.
Result<std::vector<std::string>> checkSchema(Database& database, int version);

// How many rows of blocks there can be in a file of that many bytes. One of spans, edges, memory events or samples
// takes more than two bytes, unless all of them are the same; those of small files may be.
std::int64_t mostRowsFor(std::int64_t fileBytes);

// How many seconds a reader may compute before it has something of a file of that many bytes to show: 4, and 0.1 for
// each MB.
double secondsFor(std::int64_t fileBytes);
// And a query of the user's own: a minute, and a second for each MB.
double secondsForQuery(std::int64_t fileBytes);

// The tree of pages, without what indexes hold; all: those too. Unreadable with the first thing that is wrong.
Result<void> checkPages(Database& database, bool all);

// Ends whatever SQLite does on the connection once the calling thread has computed for so many seconds, while it lives.
// Waiting does not count: a busy machine or a slow disk is not held against the file. Made and asked on one thread.
class Deadline {
public:
    Deadline(Database& database, double seconds);
    bool passed() const;
    void renew(); // as many seconds from now on

private:
    double m_seconds;
    double m_until;
    Watch m_watch;
};

} // namespace stagewright
