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
#include <thread>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "schedules/base/text.h"

extern char** environ;

namespace stagewright {

namespace {

namespace fs = std::filesystem;

constexpr int interrupted = 130; // this program's exit code, not mpirun's for SIGINT

// Never from the current folder.
std::string onPath(const std::string& program)
{
    const char* path = std::getenv("PATH");
    for (const std::string_view folder : split(path ? path : "/usr/bin:/bin", ":")) {
        if (folder.empty() || folder.front() != '/') continue;
        const std::string file = std::string(folder) + "/" + program;
        if (::access(file.c_str(), X_OK) == 0) return file;
    }
    return {};
}

} // namespace

Result<std::vector<std::string>> mpirunArguments(const MpiStart& start)
{
    const std::string mpirun = onPath("mpirun");
    if (mpirun.empty()) return fail(ErrorCode::Unavailable, "ranks as processes are started by mpirun, which is not on PATH", "install Open MPI (Debian: apt install openmpi-bin)");
    std::vector<std::string> arguments{mpirun, "-q", "--oversubscribe", "--bind-to", "none"};
    if (::geteuid() == 0) arguments.emplace_back("--allow-run-as-root");
    // When one process ends the others get SIGTERM, and so many seconds to keep what is complete.
    for (const char* word : {"--mca", "odls_base_sigkill_timeout", "1"}) arguments.emplace_back(word);
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
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    // In this program's process group, so that it has the terminal; signals act on it as on any program.
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    sigset_t none;
    sigset_t usual;
    ::sigemptyset(&none);
    ::sigemptyset(&usual);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP, SIGXFSZ}) ::sigaddset(&usual, signal);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &usual);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t child = -1;
    const int failed = ::posix_spawn(&child, argv[0], nullptr, &attributes, argv.data(), environ);
    ::posix_spawnattr_destroy(&attributes);
    if (failed != 0) return fail(ErrorCode::Unavailable, fmt::format("{} can't be started: {}", mpirun.front(), std::strerror(failed)));
    bool asked = false;
    int status = 0;
    for (;;) {
        const pid_t ended = ::waitpid(child, &status, WNOHANG);
        if (ended == child || (ended < 0 && errno != EINTR)) break;
        if (stop.stop_requested() && !asked) {
            asked = true;
            ::kill(child, SIGTERM);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (!WIFEXITED(status)) return fail(ErrorCode::Failed, fmt::format("mpirun {}", toText(ChildEnd{0, WTERMSIG(status)})));
    constexpr int bySignal = 128; // of one of the processes: mpirun adds the signal
    const int code = WEXITSTATUS(status);
    if (code <= bySignal || code == interrupted) return ChildEnd{code, 0};
    return ChildEnd{0, code - bySignal};
}

} // namespace stagewright
