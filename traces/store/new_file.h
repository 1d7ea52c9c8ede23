// A run file that is not there yet.
#pragma once

#include <string>

namespace stagewright {

// Creates it empty, with the mode that the umask leaves, which SQLite's log and its index get from it: SQLite's own is
// 644 at most. It is removed again, if nothing was put into it, unless it is kept. Nothing happens where a file is
// there or can't be created: opening it says why.
class NewFile {
public:
    explicit NewFile(std::string path);
    NewFile(const NewFile&) = delete;
    NewFile& operator=(const NewFile&) = delete;
    ~NewFile();
    void keep() { m_made = false; }

private:
    std::string m_path;
    bool m_made = false;
};

} // namespace stagewright
