// What lies below every connection of SQLite: which files beside a database it may see, write and delete, and how much
// it may keep on disk meanwhile.
//
// A file may come from anywhere, with a journal or log beside it. SQLite puts both into the file when it opens it, and
// deletes any file that a journal names. So each of our files has marks in its header (bytes 72 to 87, which SQLite
// leaves free): of the last change's journal and of the last log, and of the ones before. A journal has the same mark
// in its first sector, a log its salts. What does not agree is not of this file as it is now, and is not there for
// SQLite.
#pragma once

#include <cstdint>

#include <sqlite3.h>

namespace stagewright {

const char* guardedFiles(); // its name, for sqlite3_open_v2

// A journal or log beside a database.
enum class Leftover : std::uint8_t {
    None,     // or empty
    Ours,     // of the file as it is, or of a program that writes to it now
    Unmarked, // a log, and the file has no mark: of an earlier version or of another program
    Foreign,  // never read, written or deleted
};
struct Leftovers {
    Leftover journal = Leftover::None;
    Leftover log = Leftover::None;
};
Leftovers leftoversOf(sqlite3* handle);
bool isInWal(sqlite3* handle); // as the header of the file says

// SQLite's temporary files, of the whole program: 64 MB, or more once it was allowed. Beyond it writing fails as on a
// full disk.
inline constexpr std::int64_t leastTemporaryBytes = 64'000'000;
void allowTemporaryFiles(std::int64_t bytes); // at least
bool temporaryFilesWereFull();                // on this thread, since it was asked last
// errno of the last one that failed on this thread since it was asked last; 0: none
int problemOfLastWrite();
// Without that limit on this thread, for what is known to need a copy of the file.
class UnlimitedTemporaryFiles {
public:
    UnlimitedTemporaryFiles();
    UnlimitedTemporaryFiles(const UnlimitedTemporaryFiles&) = delete;
    UnlimitedTemporaryFiles& operator=(const UnlimitedTemporaryFiles&) = delete;
    ~UnlimitedTemporaryFiles();
};

} // namespace stagewright
