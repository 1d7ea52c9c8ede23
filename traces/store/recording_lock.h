// One writer per run file: an advisory lock on a small file beside it ("x.stagewright-lock"), which the system releases
// when the holder dies. Readers use it to check whether a run in state Recording is still alive.
#pragma once

#include <string>

#include "schedules/base/result.h"

namespace stagewright {

class RecordingLock {
public:
    explicit RecordingLock(std::string runFile);
    ~RecordingLock();
    RecordingLock(const RecordingLock&) = delete;
    RecordingLock& operator=(const RecordingLock&) = delete;

    // Counted: one release per acquire. Held by another process: an Error (Unavailable).
    Result<void> acquire();
    void release(); // the last one removes the file
    // The file that is locked is still the one at its path. If it was removed, it is made again; false: another process
    // has it now.
    bool restore();
    bool heldHere() const { return m_holds > 0; }
    bool heldElsewhere() const;

private:
    std::string m_runFile;
    std::string m_path;
    int m_descriptor = -1;
    int m_holds = 0;
};

// acquire() for a scope.
class RecordingLockHold {
public:
    explicit RecordingLockHold(RecordingLock& lock) : m_lock(&lock) {}
    RecordingLockHold(const RecordingLockHold&) = delete;
    RecordingLockHold& operator=(const RecordingLockHold&) = delete;
    ~RecordingLockHold() { m_lock->release(); }

private:
    RecordingLock* m_lock;
};

} // namespace stagewright
