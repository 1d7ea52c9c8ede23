// Session: one call of the program. Results go to stdout through out() or answer(); everything else to stderr.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"

namespace stagewright {

enum class LogLevel {
    Error,
    Warning,
    Info,
    Debug,
};

class Interrupt;
class Json;
class ProgressLine;

class Session {
public:
    Session();
    ~Session();

    // Set by main() from the options every verb has.
    bool json = false;
    bool markdown = false; // documents as Markdown
    bool stdinControl = false;
    bool silent = false; // says nothing: a process that another one speaks for
    // events go to a file there, and a file "stop" there is a stop request; "": none. Set before any is used
    std::string jobFolder;
    std::string progressMode = "auto"; // auto, jsonl, none
    LogLevel logLevel = LogLevel::Info;
    std::string verb;

    bool colourOut() const { return m_colourOut; } // a terminal, and NO_COLOR unset
    int columns() const { return m_columns; }      // of the terminal; 100 where stdout is none

    void out(std::string_view text); // stdout; nothing with --json
    void answer(const Json& object); // the one object of --json
    // The same with one more member at its end: a list that is too long to be kept, whose items are written as they
    // come. Its error is that of `items`.
    using ItemSink = std::function<void(const Json&)>;
    Result<void> answer(const Json& object, std::string_view key,
                        const std::function<Result<void>(const ItemSink&)>& items);
    bool answered() const { return m_answered; }
    void note(std::string_view text);  // stderr, level info; each text once
    void warn(std::string_view text);  // stderr, level warning
    void unmet(std::string_view text); // stderr at every level: "error: …"; the verb goes on and ends with code 1
    void complain(const Error& error); // stderr, or the object of --json; and an event of --progress jsonl

    // The stop token of SIGINT, SIGTERM and, with --stdin-control, of the end of stdin. A second signal kills. Signals
    // are caught from the first call on, so only verbs that listen ask for it.
    std::stop_token stop();
    ProgressLine& progress();                 // made on the first call
    Progress reporter(std::string_view what); // stop token and progress line for a library's long work

    // Flushes stdout. A reader that went away is its own choice; a full disk is an error.
    Result<void> finish();

private:
    void write(std::string_view text); // to stdout

    std::unique_ptr<Interrupt> m_interrupt;
    std::set<std::string, std::less<>> m_noted;
    std::unique_ptr<ProgressLine> m_progress;
    bool m_colourOut = false;
    bool m_colourErr = false;
    bool m_terminalErr = false;
    bool m_answered = false;
    bool m_writeFailed = false;
    int m_writeErrno = 0;
    int m_columns = 100;
};

} // namespace stagewright
