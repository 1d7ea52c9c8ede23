#include "engine/device/machine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "schedules/base/text.h"

extern char** environ;

namespace stagewright {

namespace {

cpu_set_t affinity()
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
    return set;
}

struct CoreTimes {
    int core = 0;
    double idle = 0;
    double total = 0;
};

std::vector<CoreTimes> readCoreTimes(const cpu_set_t& set)
{
    std::vector<CoreTimes> times;
    std::ifstream stat("/proc/stat");
    std::string line;
    while (std::getline(stat, line)) {
        if (line.rfind("cpu", 0) != 0 || line.size() < 4 || line[3] < '0' || line[3] > '9') continue;
        std::istringstream fields(line.substr(3));
        CoreTimes core;
        fields >> core.core;
        double value = 0;
        for (int i = 0; i < 8 && fields >> value; ++i) { // user nice system idle iowait irq softirq steal
            core.total += value;
            if (i == 3 || i == 4) core.idle += value;
        }
        if (core.core < CPU_SETSIZE && CPU_ISSET(static_cast<std::size_t>(core.core), &set)) times.push_back(core);
    }
    return times;
}

} // namespace

int usableCores()
{
    const cpu_set_t set = affinity();
    return std::max(1, CPU_COUNT(&set));
}

int idleCores()
{
    const cpu_set_t set = affinity();
    const std::vector<CoreTimes> before = readCoreTimes(set);
    std::this_thread::sleep_for(std::chrono::milliseconds(120));
    const std::vector<CoreTimes> after = readCoreTimes(set);
    if (before.empty() || before.size() != after.size()) return usableCores();
    double idle = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
        const double total = after[i].total - before[i].total;
        idle += total > 0 ? (after[i].idle - before[i].idle) / total : 1.0;
    }
    // The sum over cores: a thread that wanders between two cores takes one of them, not both.
    return static_cast<int>(std::floor(idle + 0.25));
}

std::vector<std::pair<std::string, std::string>> machineFacts()
{
    std::vector<std::pair<std::string, std::string>> facts;
    utsname system{};
    if (uname(&system) == 0) {
        facts.emplace_back("system", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
    }
    facts.emplace_back("usable_cores", fmt::format("{}", usableCores()));
#if defined(__clang__)
    facts.emplace_back("compiler", fmt::format("clang {}", __clang_version__));
#else
    facts.emplace_back("compiler", fmt::format("gcc {}", __VERSION__));
#endif
    facts.emplace_back("stagewright", STAGEWRIGHT_VERSION);
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
        const KeyValue pair = keyValueOf(*variable);
        const bool chooses = pair.key.starts_with("NCCL_") || pair.key.starts_with("GLOO_") ||
                             pair.key == "UCX_NET_DEVICES" || pair.key == "OMPI_MCA_btl_tcp_if_include";
        if (chooses && pair.value) facts.emplace_back(pair.key, *pair.value);
    }
    return facts;
}

} // namespace stagewright
