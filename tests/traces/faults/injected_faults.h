// Faults at a counted place: the N-th allocation of operator new or of SQLite, or the N-th call that creates, reads,
// writes, syncs, locks, renames, links or removes a file or folder below a folder. And a log of those calls, from which
// the disk after a loss of power is made. A program that links this has its own operator new and file calls, which do
// as usual while nothing is armed.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace stagewright::faults {

enum class Place {
    Allocation, // not while the stack unwinds, nor of new (std::nothrow), nor in libraries that can't report it
    SqliteAllocation,
    FileCall,
};

void installInSqlite();                                        // before SQLite's first call
void watchFolder(const std::string& folder);                   // whose files' calls count
void arm(Place place, std::int64_t number, bool andAllBehind); // from 1; 0: only count
std::int64_t disarm();                                         // how many calls there were
bool hit();                                                    // since arm(): the fault was there

// Calls that change files, in order.
struct FileCall {
    enum class Kind {
        Create,
        Write,
        Truncate,
        Sync,
        Remove,
        SyncFolder,
    };
    Kind kind = Kind::Write;
    std::string path;
    std::int64_t at = 0; // of a write; the new size of a file that is cut
    std::string bytes;
    std::int64_t announced = 0; // steps, at that time
};
void startLog();
void announce(std::int64_t steps);
std::vector<FileCall> takeLog();

// Writes into `folder` what may be on the disk if the power is lost after `calls` first calls: what was synced, and of
// the rest some, in whole sectors and in any order. Files that were removed may be there again until their folder is
// synced. `from` is the folder of the log.
void writeDisk(const std::vector<FileCall>& log, std::size_t calls, const std::string& from, const std::string& folder,
               std::mt19937& random);

} // namespace stagewright::faults
