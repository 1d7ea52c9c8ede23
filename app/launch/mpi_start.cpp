#include "app/launch/mpi_start.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "app/launch/launcher.h"
#include "app/launch/program_path.h"
#include "schedules/base/open_files.h"
#include "schedules/base/quantity.h"
#include "schedules/base/text.h"

extern char** environ;

namespace stagewright {

namespace {

namespace fs = std::filesystem;

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds patience{10}; // after a stop request
constexpr std::chrono::seconds afterTerm{2}; // after SIGTERM
constexpr double lookEvery = 0.2;
constexpr double beginSeconds = 6; // for all processes to meet, where a limit is low
constexpr int interrupted = 130;   // this program's exit code, not mpirun's for SIGINT

// Open MPI 4.1 needs 34 files at once for two processes, and may wait for ever where it gets fewer.
bool fewFiles(int processes)
{
    rlimit limit{};
    return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < 25 + 5 * static_cast<rlim_t>(processes);
}

// What mpirun may have too little of, with what came of it; nothing: neither limit is low. It makes files of 4 MiB, and
// may wait for ever without them.
std::optional<Error> tooLowLimit(int processes, const std::string& what)
{
    constexpr std::uint64_t enough = std::uint64_t{64} << 20;
    if (fewFiles(processes)) return tooManyOpenFiles(EMFILE, what);
    if (const auto most = largestFile(); most && *most < enough)
        return Error{ErrorCode::Unavailable,
                     fmt::format("{}: files may have {} here, and mpirun makes some of 4 MiB and more", what,
                                 formatBytes(static_cast<Bytes>(*most))),
                     "raise the limit: ulimit -f unlimited"};
    return std::nullopt;
}

// Ends a process and its group after this program, however that ends: a process of its own, which waits for the end of
// a pipe. mpirun passes the end of its input on and ends then by itself; one that hangs does not.
class GroupGuard {
public:
    explicit GroupGuard(pid_t leader)
    {
        std::array<int, 2> ends{};
        if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
        const auto process = static_cast<int>(::syscall(SYS_pidfd_open, leader, 0));
        m_guard = ::fork();
        if (m_guard == 0) watch(leader, process, ends[0]);
        if (process >= 0) ::close(process);
        ::close(ends[0]);
        m_alive = ends[1];
    }
    GroupGuard(const GroupGuard&) = delete;
    GroupGuard& operator=(const GroupGuard&) = delete;
    ~GroupGuard()
    {
        if (m_guard > 0) {
            ::kill(m_guard, SIGKILL);
            ::waitpid(m_guard, nullptr, 0);
        }
        if (m_alive >= 0) ::close(m_alive);
    }

private:
    // only what may be called after a fork of a program with threads
    [[noreturn]] static void watch(pid_t leader, int process, int alive)
    {
        ::setsid();
        // not one of the next two; -1: not known when it ends
        const int kept = ::fcntl(process, F_DUPFD, STDERR_FILENO + 1);
        ::dup2(alive, STDIN_FILENO);
        process = kept < 0 ? -1 : ::dup2(kept, STDOUT_FILENO);
        ::close_range(STDERR_FILENO, ~0U, 0); // who reads this program's output sees its end
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
        char byte = 0;
        while (::read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
        }
        const auto endsWithin = [&](std::chrono::milliseconds time) {
            pollfd end{process, POLLIN, 0};
            return ::poll(&end, 1, static_cast<int>(time.count())) > 0;
        };
        if (!endsWithin(patience)) ::kill(-leader, SIGTERM);
        if (!endsWithin(afterTerm)) ::kill(-leader, SIGKILL);
        ::_exit(0);
    }
    pid_t m_guard = -1;
    int m_alive = -1;
};

} // namespace

Result<std::vector<std::string>> launchedWords(std::vector<std::string> launcher,
                                               const std::vector<std::string>& program)
{
    const std::string name = launcher.front();
    if (name.find('/') == std::string::npos) launcher.front() = programOnPath(name);
    if (launcher.front().empty())
        return fail(ErrorCode::Unavailable,
                    fmt::format("ranks as processes are started by {}, which is not on PATH", name),
                    name == "mpirun" ? "install Open MPI (Debian: apt install openmpi-bin)"
                                     : "load its module, or choose another --launcher");
    launcher.insert(launcher.end(), program.begin(), program.end());
    return launcher;
}

std::vector<std::string> asMpirunTakes(std::vector<std::string> launcher, int processes)
{
    constexpr double answersWithin = 20;
    constexpr std::size_t mostSaid = std::size_t{1} << 20;
    const std::string path = launcher.front() == "mpirun" ? programOnPath("mpirun") : std::string();
    if (path.empty()) return launcher;
    const auto said = runToEnd({{path, "--version"}, {}, "/"}, answersWithin, mostSaid);
    const bool mpich =
        said && (said->out.find("HYDRA") != std::string::npos || said->out.find("Intel(R) MPI") != std::string::npos);
    return mpich ? mpiexecWords("mpirun", processes) : std::move(launcher);
}

Result<std::vector<std::string>> ownArguments()
{
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::vector<std::string> arguments;
    for (std::size_t begin = 0; begin < bytes.size();) {
        const std::size_t end = std::min(bytes.find('\0', begin), bytes.size());
        arguments.push_back(bytes.substr(begin, end - begin));
        begin = end + 1;
    }
    if (error || arguments.empty())
        return fail(ErrorCode::Failed, "this program's own arguments can't be read from /proc/self");
    arguments.front() = program.string();
    return arguments;
}

Result<ChildEnd> runUnderMpi(const MpiRun& run, const std::stop_token& stop)
{
    std::vector<std::string> words = run.words;
    const std::string name = fs::path(words.front()).filename().string();
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::array<int, 2> input{};
    if (::pipe2(input.data(), O_CLOEXEC) != 0) {
        if (auto full = tooManyOpenFiles(errno, name)) return tl::unexpected(std::move(*full));
        return fail(ErrorCode::Failed, fmt::format("no pipe: {}", std::strerror(errno)));
    }
    // In a process group of its own: Ctrl+C of the terminal reaches this program, which passes it on.
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, input[0], STDIN_FILENO);
    sigset_t none;
    sigset_t usual;
    ::sigemptyset(&none);
    ::sigemptyset(&usual);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGXFSZ}) ::sigaddset(&usual, signal);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &usual);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    pid_t child = -1;
    const int failed = ::posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
    ::close(input[0]);
    if (failed != 0) {
        ::close(input[1]);
        return fail(ErrorCode::Unavailable,
                    fmt::format("{} can't be started: {}", run.words.front(), std::strerror(failed)));
    }
    const GroupGuard guard(child);
    const auto begin = Clock::now();
    const bool low = tooLowLimit(run.processes, {}).has_value();
    std::optional<Clock::time_point> asked;
    std::optional<Clock::time_point> ended;
    bool begun = false;
    bool late = false;
    double looked = 0;
    std::optional<Error> stuck;
    int status = 0;
    for (;;) {
        const pid_t waited = ::waitpid(child, &status, WNOHANG);
        if (waited == child || (waited < 0 && errno != EINTR)) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        begun = begun || !low || !run.joined || run.joined();
        if (!begun && !asked && secondsSince(begin) > beginSeconds) late = true;
        if ((late || stop.stop_requested()) && !asked) {
            asked = Clock::now();
            ::close(std::exchange(input[1], -1));
        }
        if (const double now = secondsSince(begin); run.stuck && !stuck && now > looked + lookEvery) {
            looked = now;
            stuck = run.stuck();
        }
        // before its processes have begun there is nothing that could end in good order
        if (stuck && !ended) asked = ended = Clock::now(), ::kill(-child, SIGTERM);
        if (asked && !ended && (!begun || Clock::now() - *asked > patience)) {
            ended = Clock::now();
            ::kill(-child, SIGTERM);
        }
        if (ended && Clock::now() - *ended > afterTerm) ::kill(-child, SIGKILL);
    }
    ::kill(-child, SIGKILL); // what it left behind
    if (input[1] >= 0) ::close(input[1]);
    if (stuck) return tl::unexpected(std::move(*stuck));
    if (late)
        return tl::unexpected(
            *tooLowLimit(run.processes, fmt::format("mpirun has not brought {} processes together within {:.0f} s",
                                                    run.processes, beginSeconds)));
    if (!WIFEXITED(status))
        return fail(ErrorCode::Failed, fmt::format("{} {}", name, toText(ChildEnd{0, WTERMSIG(status)})));
    constexpr int ofMpirun = 1; // its own code, where a process has none
    const bool met = !run.joined || run.joined();
    const bool ran = !run.started || run.started();
    if (!met && !stop.stop_requested() && WEXITSTATUS(status) != 0 &&
        (low || !ran || WEXITSTATUS(status) == ofMpirun)) {
        const std::string what = fmt::format("{} ended with code {} {}", name, WEXITSTATUS(status),
                                             ran ? "before its processes had met" : "and started no process");
        if (auto limit = tooLowLimit(run.processes, what)) return tl::unexpected(std::move(*limit));
        return fail(ErrorCode::Unavailable, what,
                    "see what it printed above; limits of processes, files and memory are shown by ulimit -a");
    }
    constexpr int bySignal = 128; // of one of the processes: mpirun adds the signal
    const int code = WEXITSTATUS(status);
    if (code <= bySignal || code == interrupted) return ChildEnd{code, 0};
    return ChildEnd{0, code - bySignal};
}

} // namespace stagewright
