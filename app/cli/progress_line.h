// ProgressLine: how long work reports its progress on stderr: a bar on a terminal, or one JSON object per line
// (--progress jsonl) for the window and remote callers, whose first line is a handshake with protocol and version. The
// objects may go to a file. Thread safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace stagewright {

class Json;

class ProgressLine {
public:
    enum class Mode {
        Silent,
        Bar,
        JsonLines,
    };
    // file: JsonLines are appended to it; "", or where it can't be opened: to stderr.
    ProgressLine(Mode mode, std::string verb, bool colour, const std::string& file = {});
    ~ProgressLine();

    Mode mode() const { return m_mode; }
    // The bar's line at most 20 times a second, and always the last; detail follows the bar.
    void tell(std::string_view what, std::int64_t done, std::int64_t total, std::string_view detail = {});
    // JsonLines only.
    void event(const Json& object);
    void eventLine(const std::string& object); // one that is text already
    void clear();                              // wipes the bar before other output

private:
    Mode m_mode;
    bool m_colour;
    bool m_drawn = false;
    std::FILE* m_file = nullptr;
    std::mutex m_mutex;
    std::chrono::steady_clock::time_point m_last;
    std::chrono::steady_clock::time_point m_begin;
};

} // namespace stagewright
