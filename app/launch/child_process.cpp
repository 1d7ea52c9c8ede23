#include "app/launch/child_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "schedules/base/small_file.h"
#include "schedules/base/text.h"

extern char** environ;

namespace stagewright {

namespace {

struct Pipe {
    int read = -1;
    int write = -1;
    bool open()
    {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
        read = ends[0];
        write = ends[1];
        return true;
    }
    void close()
    {
        for (int* end : {&read, &write}) {
            if (*end >= 0) ::close(*end);
            *end = -1;
        }
    }
};

std::vector<std::string> environmentWith(const std::vector<std::pair<std::string, std::string>>& variables)
{
    std::map<std::string, std::string> all;
    for (char** at = environ; *at != nullptr; ++at) {
        const std::string entry = *at;
        if (const std::size_t equals = entry.find('='); equals != std::string::npos)
            all[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
    for (const auto& [name, value] : variables) all[name] = value;
    std::vector<std::string> out;
    out.reserve(all.size());
    for (const auto& [name, value] : all) out.push_back(fmt::format("{}={}", name, value));
    return out;
}

std::vector<char*> pointersTo(std::vector<std::string>& texts)
{
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

// What is there to be read; at its end the descriptor is closed.
std::string readAll(int& from)
{
    constexpr std::size_t most = std::size_t{16} << 20; // the rest the next time
    std::string text;
    std::array<char, 65536> bytes{};
    while (from >= 0 && text.size() < most) {
        const ssize_t count = ::read(from, bytes.data(), bytes.size());
        if (count > 0) {
            text.append(bytes.data(), static_cast<std::size_t>(count));
            continue;
        }
        if (count < 0 && errno == EINTR) continue;
        if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        ::close(from);
        from = -1;
    }
    return text;
}

} // namespace

std::string toText(const ChildEnd& end)
{
    if (end.signal > 0) return fmt::format("was ended by signal {} ({})", end.signal, ::strsignal(end.signal));
    return fmt::format("ended with code {}", end.code);
}

Result<ChildProcess> ChildProcess::start(const ChildStart& what)
{
    std::vector<std::string> arguments = what.arguments;
    std::vector<std::string> variables = environmentWith(what.variables);
    const std::vector<char*> argv = pointersTo(arguments);
    const std::vector<char*> envp = pointersTo(variables);
    Pipe in;
    Pipe out;
    Pipe err;
    Pipe problem; // the child's errno, where it can't become the program
    if (!in.open() || !out.open() || (what.ownErrors && !err.open()) || !problem.open()) {
        const int why = errno;
        in.close();
        out.close();
        err.close();
        problem.close();
        return fail(ErrorCode::Failed, fmt::format("{}: no pipe: {}", what.arguments.front(), std::strerror(why)));
    }
    const pid_t pid = ::fork();
    if (pid == 0) { // only what may be called after a fork of a program with threads
        ::setpgid(0, 0);
        ::dup2(in.read, STDIN_FILENO);
        ::dup2(out.write, STDOUT_FILENO);
        ::dup2(what.ownErrors ? err.write : out.write, STDERR_FILENO);
        sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) ::signal(signal, SIG_DFL);
        if (what.folder.empty() || ::chdir(what.folder.c_str()) == 0) ::execve(argv[0], argv.data(), envp.data());
        const int why = errno;
        if (::write(problem.write, &why, sizeof(why)) < 0) ::_exit(126);
        ::_exit(127);
    }
    const int forked = errno;
    if (pid > 0) ::setpgid(pid, pid); // whoever comes first
    ::close(in.read);
    ::close(out.write);
    if (what.ownErrors) ::close(err.write);
    ::close(problem.write);
    ChildProcess child;
    child.m_pid = pid;
    child.m_output = out.read;
    child.m_errors = err.read;
    child.m_input = in.write;
    int why = forked;
    const bool failed = pid < 0 || ::read(problem.read, &why, sizeof(why)) == sizeof(why);
    ::close(problem.read);
    if (failed)
        return fail(ErrorCode::Unavailable,
                    fmt::format("{}: it can't be started: {}", what.arguments.front(), std::strerror(why)));
    for (const int end : {child.m_output, child.m_errors})
        if (end >= 0) ::fcntl(end, F_SETFL, ::fcntl(end, F_GETFL) | O_NONBLOCK);
    return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : m_pid(std::exchange(other.m_pid, -1)), m_output(std::exchange(other.m_output, -1)),
      m_errors(std::exchange(other.m_errors, -1)), m_input(std::exchange(other.m_input, -1)), m_end(other.m_end)
{
}

ChildProcess::~ChildProcess()
{
    if (m_pid > 0 && !m_end) {
        signalGroup(SIGKILL);
        ::waitpid(m_pid, nullptr, 0);
    }
    for (const int end : {m_output, m_errors, m_input})
        if (end >= 0) ::close(end);
}

std::string ChildProcess::read() { return readAll(m_output); }

std::string ChildProcess::readErrors() { return readAll(m_errors); }

void ChildProcess::endInput()
{
    if (m_input >= 0) ::close(std::exchange(m_input, -1));
}

void ChildProcess::say(const std::string& text)
{
    if (m_input < 0 || m_end) return;
    const auto before = ::signal(SIGPIPE, SIG_IGN);
    for (std::size_t said = 0; said < text.size();) {
        const ssize_t count = ::write(m_input, text.data() + said, text.size() - said);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            ::close(m_input);
            m_input = -1;
            break;
        }
        said += static_cast<std::size_t>(count);
    }
    ::signal(SIGPIPE, before);
}

std::optional<ChildEnd> ChildProcess::poll()
{
    if (m_end || m_pid < 0) return m_end;
    int status = 0;
    if (::waitpid(m_pid, &status, WNOHANG) != m_pid) return std::nullopt;
    m_end = ChildEnd{WIFEXITED(status) ? WEXITSTATUS(status) : 0, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
    ::kill(-m_pid, SIGKILL); // what it left behind
    return m_end;
}

std::optional<double> ChildProcess::processorSeconds() const
{
    if (m_pid <= 0 || m_end) return std::nullopt;
    const std::string group = std::to_string(m_pid);
    std::optional<long long> ticks;
    std::error_code error;
    for (std::filesystem::directory_iterator at("/proc", error), last; !error && at != last; at.increment(error)) {
        const std::string name = at->path().filename().string();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        const auto text = readSmallFile(at->path().string() + "/stat");
        if (!text) continue;
        const std::size_t end = text->rfind(')'); // of its name, which may hold blanks
        const auto words = wordsOf(std::string_view(*text).substr(end == std::string::npos ? 0 : end + 1));
        constexpr std::size_t ofGroup = 2, inUser = 11, inSystem = 12;
        if (words.size() <= inSystem || words[ofGroup] != group) continue;
        for (const std::size_t word : {inUser, inSystem})
            ticks = ticks.value_or(0) + std::strtoll(std::string(words[word]).c_str(), nullptr, 10);
    }
    if (!ticks) return std::nullopt;
    return static_cast<double>(*ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

void ChildProcess::leave()
{
    m_pid = -1;
    for (int* end : {&m_output, &m_errors, &m_input})
        if (*end >= 0) ::close(std::exchange(*end, -1));
}

void ChildProcess::signalGroup(int signal)
{
    if (m_pid > 0 && !m_end) ::kill(-m_pid, signal);
}

Result<ChildOutput> runToEnd(const ChildStart& what, double seconds, std::size_t mostBytes)
{
    const std::string name = std::filesystem::path(what.arguments.front()).filename().string();
    STAGEWRIGHT_TRY(auto child, ChildProcess::start(what));
    ChildOutput said;
    const auto begin = std::chrono::steady_clock::now();
    while (secondsSince(begin) <= seconds) {
        if (child.atEnd() && child.errors() < 0) {
            if (const auto end = child.poll()) {
                said.end = *end;
                return said;
            }
            ::poll(nullptr, 0, 10);
            continue;
        }
        std::array<pollfd, 2> ready{{{child.output(), POLLIN, 0}, {child.errors(), POLLIN, 0}}};
        ::poll(ready.data(), ready.size(), 200);
        said.out += child.read();
        said.err += child.readErrors();
        if (said.out.size() + said.err.size() > mostBytes)
            return fail(ErrorCode::Failed, fmt::format("{} prints more than {} MiB", name, mostBytes >> 20),
                        "check which one is first on PATH");
    }
    return fail(ErrorCode::Unavailable, fmt::format("{} gives no answer within {:.0f} s", name, seconds));
}

} // namespace stagewright
