#include "traces/compare/device_changes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "traces/analysis/device_idle.h"
#include "traces/analysis/device_time.h"
#include "traces/analysis/kernels.h"
#include "traces/run/quantity.h"

namespace stagewright {

namespace {

RankDeviceTime summed(const std::vector<RankDeviceTime>& ranks)
{
    RankDeviceTime sum; // window: from 0 to the sum of windows
    for (const RankDeviceTime& rank : ranks) {
        sum.last += rank.window();
        sum.computing += rank.computing;
        sum.communicating += rank.communicating;
        sum.copying += rank.copying;
        sum.busy += rank.busy;
        sum.hidden += rank.hidden;
        sum.calls += rank.calls;
    }
    return sum;
}

std::array<Nanos, deviceStateCount> idleOf(const Timeline& timeline, int step)
{
    std::array<Nanos, deviceStateCount> sum{};
    for (const RankDeviceIdle& rank : analyseDeviceIdle(timeline, step))
        for (std::size_t s = 0; s < deviceStateCount; ++s) sum[s] += rank.time[s];
    return sum;
}

std::string lowered(std::string_view title)
{
    std::string text(title);
    if (!text.empty()) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
    return text;
}

} // namespace

DeviceChanges compareDevices(const Timeline& a, int stepA, const Timeline& b, int stepB)
{
    DeviceChanges out;
    const RankDeviceTime x = summed(analyseDeviceTime(a, stepA));
    const RankDeviceTime y = summed(analyseDeviceTime(b, stepB));
    const auto figure = [&](const char* key, const char* title, Nanos ofA, Nanos ofB) { out.figures.push_back({key, title, ofA, ofB}); };
    figure("window_ns", "First to last", x.window(), y.window());
    figure("computing_ns", "Computing", x.computing, y.computing);
    figure("communicating_ns", "Communicating", x.communicating, y.communicating);
    figure("exposed_ns", "Communication exposed", x.exposed(), y.exposed());
    figure("copying_ns", "Copying", x.copying, y.copying);
    figure("idle_ns", "Idle", x.idle(), y.idle());
    const auto idleA = idleOf(a, stepA), idleB = idleOf(b, stepB);
    for (const DeviceState state : {DeviceState::Launch, DeviceState::Sync, DeviceState::Queued, DeviceState::Unknown}) {
        const auto s = static_cast<std::size_t>(state);
        if (idleA[s] != 0 || idleB[s] != 0) out.figures.push_back({fmt::format("idle.{}_ns", toText(state)), fmt::format("Idle: {}", lowered(titleOf(state))), idleA[s], idleB[s]});
    }
    std::array<std::pair<Nanos, Nanos>, kernelClassCount> classes{};
    for (const ClassTime& time : analyseKernelClasses(a, stepA)) classes[static_cast<std::size_t>(time.of)].first = time.running;
    for (const ClassTime& time : analyseKernelClasses(b, stepB)) classes[static_cast<std::size_t>(time.of)].second = time.running;
    for (std::size_t of = 0; of < kernelClassCount; ++of) {
        const auto kind = static_cast<KernelClass>(of);
        const auto& [ofA, ofB] = classes[of];
        if (ofA != 0 || ofB != 0) out.figures.push_back({fmt::format("class.{}_ns", toText(kind)), fmt::format("Running: {}", lowered(titleOf(kind))), ofA, ofB});
    }
    std::map<std::pair<Lane, std::string>, KernelChange> byName;
    const auto add = [&](const Timeline& timeline, int step, bool first) {
        for (const KernelRow& row : analyseKernels(timeline, step).rows) {
            KernelChange& change = byName[{row.lane, row.name}];
            change.name = row.name;
            change.lane = row.lane;
            (first ? change.callsA : change.callsB) += row.calls;
            (first ? change.totalA : change.totalB) += row.total;
        }
    };
    add(a, stepA, true);
    add(b, stepB, false);
    for (auto& [key, change] : byName) out.kernels.push_back(std::move(change));
    std::stable_sort(out.kernels.begin(), out.kernels.end(), [](const KernelChange& p, const KernelChange& q) { return std::llabs(p.change()) > std::llabs(q.change()); });
    out.headline = fmt::format("devices are busy {} of {} in A and {} of {} in B, summed over ranks", formatDuration(x.busy), formatDuration(x.window()), formatDuration(y.busy),
                               formatDuration(y.window()));
    return out;
}

} // namespace stagewright
