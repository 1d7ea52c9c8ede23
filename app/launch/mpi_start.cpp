#include "app/launch/mpi_start.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "app/launch/program_path.h"
#include "schedules/base/text.h"

extern char** environ;

namespace stagewright {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds patience{10}; // after a stop request
constexpr int interrupted = 130;             // this program's exit code, not mpirun's for SIGINT

} // namespace

Result<std::vector<std::string>> mpirunArguments(const MpiStart& start)
{
    const std::string mpirun = programOnPath("mpirun");
    if (mpirun.empty()) return fail(ErrorCode::Unavailable, "ranks as processes are started by mpirun, which is not on PATH", "install Open MPI (Debian: apt install openmpi-bin)");
    std::vector<std::string> arguments{mpirun, "-q", "--oversubscribe", "--bind-to", "none"};
    if (::geteuid() == 0) arguments.emplace_back("--allow-run-as-root");
    // When one process ends the others get SIGTERM, and so many seconds to keep what is complete.
    for (const char* word : {"--mca", "odls_base_sigkill_timeout", "2"}) arguments.emplace_back(word);
    arguments.emplace_back("-n");
    arguments.push_back(std::to_string(start.processes));
    arguments.insert(arguments.end(), start.arguments.begin(), start.arguments.end());
    return arguments;
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
    if (error || arguments.empty()) return fail(ErrorCode::Failed, "this program's own arguments can't be read from /proc/self");
    arguments.front() = program.string();
    return arguments;
}

Result<ChildEnd> runUnderMpi(const std::vector<std::string>& mpirun, const std::stop_token& stop)
{
    std::vector<std::string> words = mpirun;
    std::vector<char*> argv;
    argv.reserve(words.size() + 1);
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::array<int, 2> input{};
    if (::pipe2(input.data(), O_CLOEXEC) != 0) return fail(ErrorCode::Failed, fmt::format("no pipe: {}", std::strerror(errno)));
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
        return fail(ErrorCode::Unavailable, fmt::format("{} can't be started: {}", mpirun.front(), std::strerror(failed)));
    }
    using Clock = std::chrono::steady_clock;
    std::optional<Clock::time_point> asked;
    bool ended = false;
    int status = 0;
    for (;;) {
        const pid_t waited = ::waitpid(child, &status, WNOHANG);
        if (waited == child || (waited < 0 && errno != EINTR)) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        if (stop.stop_requested() && !asked) {
            asked = Clock::now();
            ::close(std::exchange(input[1], -1));
        }
        if (asked && !ended && Clock::now() - *asked > patience) {
            ended = true;
            ::kill(child, SIGTERM);
        }
    }
    if (input[1] >= 0) ::close(input[1]);
    if (!WIFEXITED(status)) return fail(ErrorCode::Failed, fmt::format("mpirun {}", toText(ChildEnd{0, WTERMSIG(status)})));
    constexpr int bySignal = 128; // of one of the processes: mpirun adds the signal
    const int code = WEXITSTATUS(status);
    if (code <= bySignal || code == interrupted) return ChildEnd{code, 0};
    return ChildEnd{0, code - bySignal};
}

} // namespace stagewright
