// Writing a file completely or not at all: under a temporary name beside it, then renamed.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "schedules/base/result.h"

namespace stagewright {

using Sink = std::function<bool(std::string_view)>; // false: the bytes could not be written

// Calls write with a sink; renames to `path` if both succeed and asks the disk to keep file and name, else removes the temporary file. A full disk is an Error
// (Failed) that names the file; a missing or read-only folder is Unreadable. An existing file is replaced, a link
// followed; a device or pipe is written directly. A replaced file's mode stays, a new one has what the umask leaves.
// Parts that a killed export left for the same path are removed. A run file or another database, and what belongs to
// one, is never replaced (Usage).
Result<void> writeFileAtomically(const std::string& path, const std::function<Result<void>(const Sink&)>& write);
Result<void> writeFileAtomically(const std::string& path, std::string_view text);
// What a killed writeFileAtomically() of this user left beside `path`; a part that is being written stays.
void removeLeftParts(const std::string& path);
// A device or pipe is being opened or written, which may wait for its reader without end. Safe in a signal's handler.
bool writingDirectly() noexcept;
// The same for a folder of files: write gets the path of a folder beside it, which is then renamed. An existing folder
// must be empty.
Result<void> writeFolderAtomically(const std::string& path,
                                   const std::function<Result<void>(const std::string& folder)>& write);

// A new folder beside `path` with the files that become it, or one of them: locked while it lives, then removed with
// all that is in it. Those that a killed program left there for the same path are removed first.
class PartFolder {
public:
    explicit PartFolder(const std::string& path);
    PartFolder(const PartFolder&) = delete;
    PartFolder& operator=(const PartFolder&) = delete;
    ~PartFolder();
    int problem() const { return m_problem; } // errno where it could not be made; 0: it is there
    const std::string& path() const { return m_path; }
    bool renameTo(const std::string& path); // false: errno; then it goes

private:
    std::string m_path; // "": there is none
    int m_lock = -1;
    int m_problem = 0;
};

// The error with the name that the user knows instead of that of a temporary file.
Error renamed(Error error, const std::string& temporary, const std::string& known);

} // namespace stagewright
