#include "app/cli/session.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/commands.h"
#include "app/cli/interrupt.h"
#include "app/cli/progress_line.h"
#include "app/cli/text/json.h"
#include "app/launch/hosts/job_folder.h"
#include "schedules/base/shown_text.h"
#include "schedules/base/standard_streams.h"

namespace stagewright {

namespace {

bool wantsColour(int descriptor)
{
    const char* noColour = std::getenv("NO_COLOR");
    if (noColour && *noColour) return false;
    const char* terminal = std::getenv("TERM");
    if (terminal && std::strcmp(terminal, "dumb") == 0) return false;
    return isatty(descriptor) == 1;
}

int terminalColumns()
{
    winsize size{};
    if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return std::clamp<int>(size.ws_col, 40, 400);
    if (const char* columns = std::getenv("COLUMNS")) {
        const int value = std::atoi(columns);
        if (value > 0) return std::clamp(value, 40, 400);
    }
    return 100;
}

} // namespace

Session::Session()
    : m_colourOut(wantsColour(STDOUT_FILENO)), m_colourErr(wantsColour(STDERR_FILENO)),
      m_terminalErr(isatty(STDERR_FILENO) == 1), m_columns(terminalColumns())
{
}

Session::~Session() = default;

void Session::out(std::string_view text)
{
    if (json || silent || text.empty()) return;
    write(forTerminal(text, m_colourOut));
}

void Session::write(std::string_view text)
{
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() || m_writeFailed) return;
    m_writeFailed = true;
    m_writeErrno = errno;
}

void Session::answer(const Json& object)
{
    if (m_answered) return;
    m_answered = true;
    if (!silent) write(object.page() + "\n");
}

Result<void> Session::answer(const Json& object, std::string_view key,
                             const std::function<Result<void>(const ItemSink&)>& items)
{
    if (m_answered || silent) return {};
    m_answered = true;
    constexpr int itemDepth = 2;
    Json whole = object;
    whole[key] = Json::array();
    std::string head = whole.page();
    const std::size_t end = head.rfind(']'); // of the empty list
    write(std::string_view(head).substr(0, end));
    bool any = false;
    auto done = items([&](const Json& item) {
        write(fmt::format("{}\n{:{}}{}", any ? "," : "", "", 2 * itemDepth, item.page(itemDepth)));
        any = true;
    });
    write(fmt::format("{}{}\n", any ? "\n  " : "", std::string_view(head).substr(end)));
    return done;
}

void Session::note(std::string_view text)
{
    if (silent || logLevel < LogLevel::Info || progressMode == "jsonl") return;
    if (!m_noted.emplace(text).second) return;
    if (m_progress) m_progress->clear();
    sayOnStandardError(forTerminal(text, m_colourErr) + "\n");
}

void Session::warn(std::string_view text)
{
    if (silent) return;
    // stderr holds objects only
    if (progressMode == "jsonl") progress().event({{"event", "warning"}, {"message", text}});
    if (logLevel < LogLevel::Warning || progressMode == "jsonl") return;
    if (m_progress) m_progress->clear();
    sayOnStandardError(fmt::format("{}warning:{} {}\n", m_colourErr ? "\033[33m" : "", m_colourErr ? "\033[0m" : "",
                                   forTerminal(text, m_colourErr)));
}

void Session::unmet(std::string_view text)
{
    if (silent) return;
    // stderr holds objects only
    if (progressMode == "jsonl") return progress().event({{"event", "warning"}, {"message", text}});
    if (m_progress) m_progress->clear();
    sayOnStandardError(fmt::format("{}error:{} {}\n", m_colourErr ? "\033[31m" : "", m_colourErr ? "\033[0m" : "",
                                   forTerminal(text, m_colourErr)));
}

void Session::complain(const Error& error)
{
    if (silent) return;
    const int code = exitCodeOf(error.code);
    if (m_progress || progressMode == "jsonl") {
        progress().clear();
        progress().event({{"event", "error"}, {"code", code}, {"message", error.message}, {"remedy", error.remedy}});
    }
    if (json && !m_answered) {
        answer({{"error", {{"code", code}, {"message", error.message}, {"remedy", textOrNull(error.remedy)}}}});
    }
    if (progressMode == "jsonl") return; // stderr holds objects only
    const char* red = m_colourErr ? "\033[31m" : "";
    const char* plain = m_colourErr ? "\033[0m" : "";
    sayOnStandardError(fmt::format("{}stagewright:{} {}\n", red, plain, shownText(error.message)));
    if (!error.remedy.empty()) sayOnStandardError(fmt::format("  {}\n", shownText(error.remedy)));
}

std::stop_token Session::stop()
{
    if (!m_interrupt)
        m_interrupt = std::make_unique<Interrupt>(stdinControl,
                                                  jobFolder.empty() ? std::string() : jobFolder + "/" + jobfile::stop);
    return m_interrupt->token();
}

ProgressLine& Session::progress()
{
    if (!m_progress) {
        const auto mode = silent                                    ? ProgressLine::Mode::Silent
                          : progressMode == "jsonl"                 ? ProgressLine::Mode::JsonLines
                          : progressMode == "auto" && m_terminalErr ? ProgressLine::Mode::Bar
                                                                    : ProgressLine::Mode::Silent;
        m_progress = std::make_unique<ProgressLine>(
            mode, verb, m_colourErr, jobFolder.empty() ? std::string() : jobFolder + "/" + jobfile::events);
    }
    return *m_progress;
}

Progress Session::reporter(std::string_view what)
{
    Progress progress;
    progress.stop = stop();
    progress.report = [this, title = std::string(what)](std::string_view detail, std::int64_t done,
                                                        std::int64_t total) {
        this->progress().tell(detail.empty() ? std::string_view(title) : detail, done, total);
    };
    return progress;
}

Result<void> Session::finish()
{
    if (m_progress) m_progress->clear();
    errno = 0;
    if (std::fflush(stdout) != 0 && !m_writeFailed) {
        m_writeFailed = true;
        m_writeErrno = errno;
    }
    if (m_writeFailed && m_writeErrno != EPIPE)
        return fail(ErrorCode::Failed, fmt::format("standard output can't be written: {}", std::strerror(m_writeErrno)),
                    "free some space or write elsewhere");
    return {};
}

} // namespace stagewright
