// Files that several programs read, change and write back: one after the other, so that no change is lost.
#pragma once

#include <string>

#include "schedules/base/result.h"

namespace stagewright {

// Held from before the reading until after the writing. It is a lock on the file's folder, which leaves nothing behind.
class ChangeLock {
public:
    // Waits for those before, 10 s at most: then Unavailable. Where the folder can't be opened or locked there is no
    // lock, and the writing says why.
    static Result<ChangeLock> take(const std::string& file);
    ChangeLock(ChangeLock&& other) noexcept;
    ChangeLock& operator=(ChangeLock&&) = delete;
    ~ChangeLock();

private:
    explicit ChangeLock(int descriptor) : m_descriptor(descriptor) {}
    int m_descriptor = -1;
};

} // namespace stagewright
