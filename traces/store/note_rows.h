// Notes, bookmarks and saved queries of a run file.
#pragma once

#include "traces/store/run_store.h"

namespace stagewright {

std::string allNotes();                        // a statement: their runs, then the columns of a note, by run and number
Note noteOf(const Statement& row, int column); // from that column on
Result<bool> hasNotes(Database& database);     // not in a file of version 1 or 2
// Empty for a file of version 1 or 2. carried: also op notes of other runs of the same schedule.
Result<std::vector<Note>> readNotes(RunStore& store, std::int64_t run, bool carried);
Result<void> writeNotes(Database& database, std::int64_t run, const std::vector<Note>& notes); // within a transaction
Result<std::vector<Bookmark>> readBookmarks(RunStore& store);
Result<void> writeBookmark(RunStore& store, const Bookmark& bookmark);
Result<std::vector<SavedQuery>> readSavedQueries(RunStore& store);
Result<void> writeSavedQuery(RunStore& store, const SavedQuery& query);
Result<void> removeSavedQuery(RunStore& store, const std::string& name);

} // namespace stagewright
