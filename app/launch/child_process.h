// A program in a process group of its own, so that Ctrl+C of the terminal reaches only who started it, and so that
// everything it started ends with it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "schedules/base/result.h"

namespace stagewright {

struct ChildStart {
    std::vector<std::string> arguments;                         // the program's path first; never a shell's text
    std::vector<std::pair<std::string, std::string>> variables; // set in addition to, or instead of, this program's
    std::string folder;                                         // it runs there
    bool ownErrors = false;                                     // standard error apart from standard output
};

// How a program ended.
struct ChildEnd {
    int code = 0;
    int signal = 0; // > 0: it was ended by this signal
    bool good() const { return code == 0 && signal == 0; }
};
std::string toText(const ChildEnd& end); // "ended with code 1", "was ended by signal 9 (Killed)"

// How long something has taken: patience is in seconds.
inline double secondsSince(std::chrono::steady_clock::time_point begin)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// One thread at a time. The destructor ends it.
class ChildProcess {
public:
    // Errors: no pipe or process (Failed); the program can't be started (Unavailable, with the system's reason).
    static Result<ChildProcess> start(const ChildStart& what);
    ChildProcess(ChildProcess&& other) noexcept;
    ChildProcess& operator=(ChildProcess&&) = delete;
    ~ChildProcess();

    int output() const { return m_output; } // standard output and, but for ownErrors, error together, to poll() for
    // Whatever it has written since; at the end of its output nothing, and atEnd().
    std::string read();
    bool atEnd() const { return m_output < 0; }
    int errors() const { return m_errors; } // with ownErrors, to poll() for
    std::string readErrors();
    void endInput();
    void say(const std::string& text); // to its standard input; dropped where it no longer listens
    // Empty: it runs. Its group is ended with it.
    std::optional<ChildEnd> poll();
    void signalGroup(int signal);
    // What its group has computed so far, of the processes that still run; nothing where the system does not say.
    std::optional<double> processorSeconds() const;
    void leave(); // it is not ended with this object; its input and output end

private:
    ChildProcess() = default;
    pid_t m_pid = -1;
    int m_output = -1;
    int m_errors = -1;
    int m_input = -1;
    std::optional<ChildEnd> m_end;
};

// What a program said, and how it ended.
struct ChildOutput {
    ChildEnd end;
    std::string out;
    std::string err; // with ownErrors
};
// Runs a program that answers at once. Unavailable where it can't be started or has not ended within so many seconds;
// Failed where it says more than so many bytes. It is ended with the call. Blocks.
Result<ChildOutput> runToEnd(const ChildStart& what, double seconds, std::size_t mostBytes);

} // namespace stagewright
