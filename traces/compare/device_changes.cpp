#include "traces/compare/device_changes.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

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
