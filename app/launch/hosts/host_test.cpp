#include "app/launch/hosts/host_test.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <sys/utsname.h>

#include "app/launch/hosts/serve.h"
#include "app/launch/hosts/ssh.h"
#include "app/launch/shell_words.h"
#include "app/version/version.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

constexpr double testPatience = 120; // seconds: importing PyTorch takes long on a cold disk
constexpr std::string_view begins = "stagewright-facts";
constexpr double clockTolerance = 2; // seconds
constexpr double littleSpace = 1.0;  // GiB

// Asks with what every Linux has; "key=value" lines.
std::string questions(const Host& host)
{
    const std::string scratch = host.scratch.empty() ? std::string("~/.local/state/stagewright/hosted") : host.scratch;
    return fmt::format(R"sh(echo {}
say() {{ printf '%s=%s\n' "$1" "$2"; }}
say system "$(uname -s)"
say machine "$(uname -m)"
say libc "$(getconf GNU_LIBC_VERSION 2>/dev/null)"
say release "$(. /etc/os-release 2>/dev/null; echo "$PRETTY_NAME")"
p={}/bin/stagewright
[ -x "$p" ] || p=$(command -v stagewright)
say program "$p"
[ -z "$p" ] || say version "$("$p" --version 2>&1 | head -n 1)"
say cpus "$(nproc 2>/dev/null)"
say cpu "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null | head -n 1)"
say memory "$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo 2>/dev/null)"
say gpus "$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | tr '\n' ';')"
say driver "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)"
say cuda "$( (ldconfig -p || /sbin/ldconfig -p) 2>/dev/null | sed -n 's/.*libcudart\.so\.\([0-9.]*\) .*/\1/p' | head -n 1)"
say mpi "$(mpirun --version 2>/dev/null | head -n 1)"
say slurm "$(sbatch --version 2>/dev/null)"
say python "$(command -v python3)"
say torch "$(python3 -c 'import torch; print(torch.__version__)' 2>/dev/null </dev/null)"
d={}
while [ ! -d "$d" ] && [ "$d" != / ]; do d=$(dirname "$d"); done
say writable "$([ -w "$d" ] && echo yes)"
say space "$(df -Pk "$d" 2>/dev/null | awk 'NR == 2 {{ print $4 }}')"
say clock "$(date +%s.%N)"
)sh",
                       begins, shellPath(host.folder), shellPath(scratch));
}

std::string first(std::string_view text) { return plainText(text.substr(0, text.find('\n')), 200); }

struct Answers {
    std::map<std::string, std::string, std::less<>> values;
    std::string of(std::string_view key) const
    {
        const auto found = values.find(key);
        return found == values.end() ? std::string() : found->second;
    }
};

std::string countedGpus(const std::string& list)
{
    std::map<std::string, int> byName;
    for (const std::string_view name : split(list, ";"))
        if (!trimmed(name).empty()) ++byName[std::string(trimmed(name))];
    std::vector<std::string> parts;
    parts.reserve(byName.size());
    for (const auto& [name, count] : byName) parts.push_back(fmt::format("{} × {}", count, name));
    return joined(parts);
}

HostFact versionFact(const Host& host, const Answers& answers, HostReport& report)
{
    HostFact fact{"stagewright", "stagewright", {}, {}, true};
    const std::string said = answers.of("version");
    const std::string_view name = "stagewright ";
    const std::string full = said.starts_with(name) ? said.substr(name.size()) : std::string();
    report.version = full.substr(0, full.find(' ')); // without its commit
    if (answers.of("program").empty()) {
        fact.remedy = fmt::format("stagewright hosts install {}", host.name);
    } else if (report.version.empty()) {
        fact.remedy = fmt::format("{} does not run there: {}; stagewright hosts install {}", answers.of("program"),
                                  said, host.name);
    } else {
        fact.value = fmt::format("{}, {}", full, answers.of("program"));
        if (report.version != programVersion())
            fact.remedy = fmt::format("this computer has {}: both ends need the same; stagewright hosts install {}",
                                      versionText(), host.name);
    }
    return fact;
}

HostFact clockFact(const Answers& answers, double now, HostReport& report)
{
    HostFact fact{"clock", "clock", {}, {}, false};
    const auto there = numberOf(answers.of("clock"));
    if (!there) return fact;
    report.clockOffsetSeconds = *there - now;
    const double offset = std::abs(report.clockOffsetSeconds);
    fact.value = offset < clockTolerance ? std::string("agrees with this computer's")
                                         : fmt::format("{:.0f} s {} of this computer's", offset,
                                                       report.clockOffsetSeconds > 0 ? "ahead" : "behind");
    if (offset >= clockTolerance)
        fact.remedy = "set it with NTP: times of runs will not fit; steps and durations are not affected";
    return fact;
}

} // namespace

bool HostReport::usable() const
{
    return std::none_of(facts.begin(), facts.end(),
                        [](const HostFact& fact) { return fact.needed && !fact.remedy.empty(); });
}

Result<HostReport> testHost(const Host& host, const std::stop_token& stop)
{
    STAGEWRIGHT_TRY(auto said, runOverSsh(host, questions(host), testPatience, stop));
    const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    const std::size_t at = said.out.find(begins);
    if (at == std::string::npos)
        return fail(ErrorCode::Unavailable,
                    fmt::format("host {}: its shell gives no answer: {}", host.name,
                                plainText(trimmed(said.err + said.out), 300)),
                    "a POSIX shell at /bin/sh is needed there; check the setup lines with 'stagewright hosts list'");
    Answers answers;
    for (const std::string_view line : split(std::string_view(said.out).substr(at), "\n"))
        if (const KeyValue pair = keyValueOf(line); pair.value)
            answers.values.emplace(std::string(pair.key), first(trimmed(*pair.value)));
    HostReport report;
    report.system = answers.of("system");
    report.machine = answers.of("machine");
    if (const std::string libc = answers.of("libc"); libc.starts_with("glibc ")) report.libc = libc.substr(6);
    const auto add = [&](std::string key, std::string label, std::string value, std::string remedy,
                         bool needed = false) {
        const bool missing = value.empty();
        report.facts.push_back(
            {std::move(key), std::move(label), std::move(value), missing ? std::move(remedy) : std::string(), needed});
    };
    report.facts.push_back(versionFact(host, answers, report));
    add("system", "system",
        joined({answers.of("release").empty() ? report.system : answers.of("release"), report.machine,
                answers.of("libc")}),
        {});
    if (report.system != "Linux") report.facts.back().remedy = "only Linux can record";
    const auto memory = numberOf(answers.of("memory")).value_or(0) / 1024 / 1024;
    add("cpus", "processors",
        answers.of("cpus").empty() ? ""
                                   : fmt::format("{} × {}, {:.0f} GiB of memory", answers.of("cpus"),
                                                 answers.of("cpu").empty() ? "processor" : answers.of("cpu"), memory),
        "nproc is not there");
    add("gpus", "GPUs", countedGpus(answers.of("gpus")),
        "no NVIDIA driver answers (nvidia-smi): record with --backend cpu, or install the driver");
    if (!answers.of("gpus").empty()) {
        report.facts.back().value += ", driver " + answers.of("driver");
        add("cuda", "CUDA", answers.of("cuda"),
            "the CUDA runtime is not found: install CUDA 12 or later, or load its module in a setup line");
    }
    add("mpi", "MPI", answers.of("mpi"),
        "for --processes: install Open MPI (Debian: apt install openmpi-bin), or load its module in a setup line");
    add("pytorch", "PyTorch",
        answers.of("torch").empty() ? "" : fmt::format("{} ({})", answers.of("torch"), answers.of("python")),
        answers.of("python").empty()
            ? "for --engine torch: install Python 3 and PyTorch"
            : fmt::format(
                  "for --engine torch: {} can't import torch; install it, or name another interpreter with --python",
                  answers.of("python")));
    add("slurm", "Slurm", answers.of("slurm"), "for --slurm: use the login node of a cluster");
    const double space = numberOf(answers.of("space")).value_or(0) / 1024 / 1024;
    add("space", "free space for jobs", answers.of("writable").empty() ? "" : fmt::format("{:.1f} GiB", space),
        "the folder can't be written: choose another with 'stagewright hosts add … --scratch'", true);
    if (!answers.of("writable").empty() && space < littleSpace)
        report.facts.back().remedy =
            "free some space, or choose another folder with 'stagewright hosts add … --scratch'";
    report.facts.push_back(clockFact(answers, now, report));
    return report;
}

} // namespace stagewright
