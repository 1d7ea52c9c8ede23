#include "app/launch/hosts/host_install.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gnu/libc-version.h>
#include <link.h>
#include <poll.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>

#include "app/launch/child_process.h"
#include "app/launch/hosts/host_test.h"
#include "app/launch/hosts/serve.h"
#include "app/launch/hosts/ssh.h"
#include "app/launch/shell_words.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

namespace fs = std::filesystem;

constexpr double nodePatience = 60;
constexpr double installPatience = 1800; // seconds, for slow lines
// The C library and drivers are not copied to a host, because each system has its own.
constexpr auto systemLibraries = std::to_array<std::string_view>(
    {"ld-linux", "libc.so", "libm.so", "libpthread.so", "libdl.so", "librt.so", "libresolv.so", "libutil.so", "libnss_",
     "libcuda.so", "libnvidia", "linux-vdso", "linux-gate"});
constexpr auto modules = std::to_array<std::string_view>(
    {"libstagewright_mpi.so", "libstagewright_mpich.so", "libstagewright_cuda.so", "libstagewright_cupti.so"});

constexpr const char* starter =
    "#!/bin/sh\n"
    "# The program with the libraries that came with it; written by 'stagewright hosts install'.\n"
    "here=$(cd \"$(dirname \"$0\")/..\" && pwd) || exit 1\n"
    "export STAGEWRIGHT_PROGRAM=\"$here/bin/stagewright\"\n"
    "export LD_LIBRARY_PATH=\"$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"\n"
    "exec \"$here/lib/stagewright\" \"$@\"\n";

// The libraries of this process under the names that the loader looks for.
std::vector<std::string> loadedLibraries()
{
    std::vector<std::string> paths;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
            const std::string path = info->dlpi_name ? info->dlpi_name : "";
            const std::string name = path.substr(path.rfind('/') + 1);
            const bool system = std::any_of(systemLibraries.begin(), systemLibraries.end(),
                                            [&](std::string_view one) { return name.starts_with(one); });
            if (path.starts_with('/') && !system) static_cast<std::vector<std::string>*>(data)->push_back(path);
            return 0;
        },
        &paths);
    return paths;
}

// A folder for what is sent; goes with the object.
class Staged {
public:
    Staged() : m_path((fs::temp_directory_path() / "stagewright-XXXXXX").string())
    {
        if (::mkdtemp(m_path.data()) == nullptr) m_path.clear();
    }
    Staged(const Staged&) = delete;
    Staged& operator=(const Staged&) = delete;
    ~Staged()
    {
        std::error_code ignored;
        if (!m_path.empty()) fs::remove_all(m_path, ignored);
    }
    const std::string& path() const { return m_path; }

private:
    std::string m_path;
};

Result<void> stage(const std::string& folder, InstallReport& report)
{
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    std::vector<std::pair<std::string, std::string>> files{{program.string(), "stagewright"}};
    for (const std::string& library : loadedLibraries())
        files.emplace_back(library, library.substr(library.rfind('/') + 1));
    for (const std::string_view module : modules)
        for (const fs::path& place :
             {program.parent_path() / module, program.parent_path() / "../lib/stagewright" / module})
            if (fs::exists(place, error)) {
                files.emplace_back(place.string(), std::string(module));
                break;
            }
    const fs::path root = folder;
    fs::create_directories(root / "bin", error);
    fs::create_directories(root / "lib", error);
    for (const auto& [from, name] : files) {
        fs::copy_file(from, root / "lib" / name, fs::copy_options::overwrite_existing, error);
        if (error)
            return fail(ErrorCode::Failed, fmt::format("{} can't be copied: {}", from, error.message()),
                        "free some space in the folder for temporary files");
        report.files.push_back(name);
        report.bytes += static_cast<std::int64_t>(fs::file_size(root / "lib" / name, error));
    }
    std::ofstream(root / "bin" / "stagewright") << starter;
    fs::permissions(root / "bin" / "stagewright", fs::perms::owner_all, error);
    return {};
}

bool isOlderLibc(const std::string& there, const std::string& here)
{
    const auto a = split(there, ".");
    const auto b = split(here, ".");
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        const int x = wholeOf<int>(a[i]).value_or(0);
        const int y = wholeOf<int>(b[i]).value_or(0);
        if (x != y) return x < y;
    }
    return false;
}

// Whether this program would run there.
Result<void> mayInstall(const Host& host, const HostReport& report)
{
    utsname here{};
    ::uname(&here);
    const std::string build =
        fmt::format("build it there: copy the source, run './bootstrap.sh' and 'cmake --preset release && cmake "
                    "--build --preset release', then copy build/release/bin/stagewright to {}/bin",
                    host.folder);
    if (report.system != "Linux" || report.machine != here.machine)
        return fail(ErrorCode::Unavailable,
                    fmt::format("host {} is {} on {}, this program is for {} on {}", host.name, report.system,
                                report.machine, here.sysname, here.machine),
                    build);
    const std::string own = ::gnu_get_libc_version();
    if (report.libc.empty())
        return fail(ErrorCode::Unavailable,
                    fmt::format("host {} has no GNU C library, which this program needs", host.name), build);
    if (isOlderLibc(report.libc, own))
        return fail(ErrorCode::Unavailable,
                    fmt::format("host {}: its C library {} is older than {}, for which this program was built",
                                host.name, report.libc, own),
                    build);
    return {};
}

// The C library of the nodes of a cluster, asked by one short task; "": there is no Slurm, or no node is free now.
Result<std::string> libcOfNodes(const Host& host, const std::function<void(const std::string&)>& tell,
                                const std::stop_token& stop)
{
    tell(fmt::format("asking a node of {}'s cluster for its C library", host.name));
    STAGEWRIGHT_TRY(auto said,
                    runOverSsh(host,
                               "echo stagewright-node\ncommand -v srun >/dev/null || exit 0\nsrun --quiet --nodes=1 "
                               "--ntasks=1 --mpi=none --time=1 --immediate=20 ldd --version 2>&1 | head -n 3",
                               nodePatience, stop));
    const std::size_t at = said.out.find("stagewright-node");
    const std::string_view answer =
        at == std::string::npos ? std::string_view() : std::string_view(said.out).substr(at);
    for (const std::string_view line : split(answer, "\n"))
        if (line.starts_with("ldd ")) return std::string(trimmed(line.substr(line.rfind(' '))));
    if (const auto lines = split(answer, "\n"); lines.size() > 1 && !trimmed(lines[1]).empty())
        tell(fmt::format("no node answers ({}): their C library must be {} or later", plainText(trimmed(lines[1]), 200),
                         ::gnu_get_libc_version()));
    return std::string();
}

std::string unpackScript(const Host& host)
{
    return fmt::format(
        "umask 077\nd={}\nmkdir -p \"$d\" || exit 3\nrm -rf \"$d/new\" && mkdir \"$d/new\" && tar -xzf - -C \"$d/new\" "
        "|| exit 3\n"
        "for x in lib bin; do\n  rm -rf \"$d/$x.old\"\n  [ ! -e \"$d/$x\" ] || mv \"$d/$x\" \"$d/$x.old\" || exit 3\n  "
        "mv \"$d/new/$x\" \"$d/$x\" || exit 3\n  rm -rf \"$d/$x.old\"\ndone\n"
        "rmdir \"$d/new\"\nprintf 'stagewright-program %s\\n' \"$d/bin/stagewright\"\n\"$d/bin/stagewright\" --version",
        shellPath(host.folder));
}

} // namespace

Result<InstallReport> installOnHost(const Host& host, const std::function<void(const std::string&)>& progress,
                                    const std::stop_token& stop)
{
    const auto tell = [&](const std::string& what) {
        if (progress) progress(what);
    };
    tell(fmt::format("asking {} what it is", host.name));
    STAGEWRIGHT_TRY(auto tested, testHost(host, stop));
    STAGEWRIGHT_CHECK(mayInstall(host, tested));
    const bool cluster = std::any_of(tested.facts.begin(), tested.facts.end(),
                                     [](const HostFact& fact) { return fact.key == "slurm" && !fact.value.empty(); });
    if (cluster) {
        STAGEWRIGHT_TRY(const auto libc, libcOfNodes(host, tell, stop));
        if (!libc.empty() && isOlderLibc(libc, ::gnu_get_libc_version()))
            return fail(ErrorCode::Unavailable,
                        fmt::format("host {}: the C library {} of its nodes is older than {}, for which this program "
                                    "was built",
                                    host.name, libc, ::gnu_get_libc_version()),
                        "build it on a node, or run it in a container: --container IMAGE");
    }
    InstallReport report;
    const Staged staged;
    if (staged.path().empty())
        return fail(ErrorCode::Failed, "no folder for temporary files can be made", "check $TMPDIR");
    STAGEWRIGHT_CHECK(stage(staged.path(), report));
    tell(fmt::format("copying {} files, {:.1f} MB", report.files.size(), static_cast<double>(report.bytes) / 1e6));
    STAGEWRIGHT_TRY(auto tar,
                    ChildProcess::start({{"/bin/tar", "-C", staged.path(), "-czf", "-", "bin", "lib"}, {}, "/", true}));
    const auto packed = [&]() -> std::string {
        for (;;) {
            std::string bytes = tar.read();
            if (!bytes.empty() || tar.atEnd() || stop.stop_requested()) return bytes;
            pollfd ready{tar.output(), POLLIN, 0};
            ::poll(&ready, 1, 100);
        }
    };
    STAGEWRIGHT_TRY(auto said, runOverSsh(host, unpackScript(host), installPatience, stop, packed));
    const std::size_t at = said.out.find("stagewright-program ");
    if (!said.end.good() || at == std::string::npos)
        return fail(
            ErrorCode::Failed,
            fmt::format("host {}: it can't be installed in {}: {}", host.name, host.folder,
                        plainText(trimmed(said.err + said.out), 600)),
            "check free space and permissions there, or choose another folder with 'stagewright hosts add … --folder'");
    const auto lines = split(std::string_view(said.out).substr(at), "\n");
    report.program = plainText(lines.front().substr(std::string_view("stagewright-program ").size()), 400);
    const auto version = wordsOf(lines.size() > 1 ? lines[1] : std::string_view()); // stagewright 0.1.0 (e243aefb9)
    report.version = version.size() > 1 ? plainText(version[1], 60) : std::string();
    return report;
}

} // namespace stagewright
