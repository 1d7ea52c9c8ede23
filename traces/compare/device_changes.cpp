#include "traces/compare/device_changes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "traces/analysis/device_idle.h"
#include "traces/analysis/device_time.h"
#include "traces/analysis/exposed_communication.h"
#include "traces/analysis/kernel_classes.h"
#include "traces/analysis/kernels.h"

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
        sum.graphs += rank.graphs;
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

constexpr int mostSteps = 16; // that noise is measured over

// The figures of device_time, in the order of DeviceChanges::figures.
std::array<Nanos, 6> figuresOf(const RankDeviceTime& sum)
{
    return {sum.window(), sum.computing, sum.communicating, sum.exposed(), sum.copying, sum.idle()};
}

// How far they lie apart over the steps; nothing: fewer than two have kernels.
std::optional<std::array<Nanos, 6>> spreadOf(const Timeline& timeline, const std::stop_token& stop)
{
    std::array<Nanos, 6> least{}, most{};
    least.fill(std::numeric_limits<Nanos>::max());
    int seen = 0;
    for (int step = 0; step < std::min(timeline.steps(), mostSteps) && !stop.stop_requested(); ++step) {
        const RankDeviceTime sum = summed(analyseDeviceTime(timeline, step));
        if (sum.calls == 0) continue;
        ++seen;
        const auto figures = figuresOf(sum);
        for (std::size_t i = 0; i < figures.size(); ++i)
            least[i] = std::min(least[i], figures[i]), most[i] = std::max(most[i], figures[i]);
    }
    if (seen < 2) return std::nullopt;
    for (std::size_t i = 0; i < most.size(); ++i) most[i] -= least[i];
    return most;
}

std::map<std::string, Nanos> collectivesOf(const Timeline& timeline, int step)
{
    std::map<std::string, Nanos> byName;
    for (const ExposedCommunication& row : analyseExposedCommunication(timeline, step)) byName[row.name] += row.total;
    return byName;
}

std::string signedText(Nanos change)
{
    return fmt::format("{}{}", change < 0 ? "−" : "+", formatDuration(std::llabs(change)));
}

// "attention +31.6 ms, copy +8.36 ms": the parts that changed as the whole did, at most three, with 10 % of its change
// or more.
std::string partsText(const std::vector<DeviceFigure>& figures, std::string_view keys, const char* prefix, Nanos whole)
{
    std::vector<const DeviceFigure*> parts;
    for (const DeviceFigure& one : figures)
        if (const auto change = one.change(); change && one.key.starts_with(keys) && (*change < 0) == (whole < 0) &&
                                              std::llabs(*change) * 10 >= std::llabs(whole))
            parts.push_back(&one);
    std::stable_sort(parts.begin(), parts.end(),
                     [](const auto* p, const auto* q) { return std::llabs(*p->change()) > std::llabs(*q->change()); });
    std::string text;
    for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 3); ++i)
        text += fmt::format("{}{} {}", i == 0 ? ": " : ", ", parts[i]->title.substr(std::string_view(prefix).size()),
                            signedText(*parts[i]->change()));
    return text;
}

void explain(DeviceChanges& out)
{
    const auto of = [&](std::string_view key) -> const DeviceFigure& {
        return *std::find_if(out.figures.begin(), out.figures.end(),
                             [&](const DeviceFigure& one) { return one.key == key; });
    };
    const Nanos window = of("window_ns").a.value_or(0);
    const auto counts = [&](const DeviceFigure& one) {
        return one.change().value_or(0) != 0 && std::llabs(*one.change()) * 100 >= window && one.beyondNoise();
    };
    const auto text = [](const char* what, Nanos change, const std::string& parts) {
        return fmt::format("devices {} {} {} in B{}", what, formatDuration(std::llabs(change)),
                           change < 0 ? "less" : "more", parts);
    };
    if (const DeviceFigure& one = of("computing_ns"); counts(one)) {
        std::vector<DeviceFigure> classes; // communication is counted by itself
        for (const DeviceFigure& figure : out.figures)
            if (figure.key != "class.collective_ns" && figure.key != "class.send_receive_ns") classes.push_back(figure);
        out.why.push_back(text("compute", *one.change(), partsText(classes, "class.", "Running: ", *one.change())));
    }
    if (const DeviceFigure& one = of("communicating_ns"); counts(one))
        out.why.push_back(text("communicate", *one.change(),
                               partsText(out.figures, "communication.", "Communication: ", *one.change())));
    if (const DeviceFigure& one = of("idle_ns"); counts(one))
        out.why.push_back(text("are idle", *one.change(), partsText(out.figures, "idle.", "Idle: ", *one.change())));
    if (out.kernels.empty() || std::llabs(out.kernels.front().change()) * 100 < window) return;
    const KernelChange& most = out.kernels.front();
    const auto mean = [](Nanos total, std::int64_t calls) {
        return formatDuration(total / std::max<std::int64_t>(1, calls));
    };
    const std::string shape = most.shapeText();
    constexpr std::size_t mostOfShape = 120; // inputs can be lists of hundreds of sizes; tables have them whole
    std::string kernel =
        fmt::format("{}{}{} {}", briefKernelName(most.name), most.bytes ? " of " + formatBytes(*most.bytes) : "",
                    shape.empty() || shape.size() > mostOfShape ? "" : " (" + shape + ")", signedText(most.change()));
    if (most.callsA == 0 || most.callsB == 0)
        kernel += fmt::format(": it runs in {} only", most.callsA == 0 ? "B" : "A");
    else
        kernel += fmt::format(
            ": {} {} {}, {} each {} {}", counted(most.callsB, "call"),
            most.callsA == most.callsB ? "as well as" : "instead of", most.callsA, mean(most.totalB, most.callsB),
            mean(most.totalA, most.callsA) == mean(most.totalB, most.callsB) ? "as well as" : "instead of",
            mean(most.totalA, most.callsA));
    if (most.placed())
        kernel +=
            fmt::format("; most of all call {} of {} on rank {}: {} instead of {}", most.most->place, most.most->calls,
                        most.most->rank, formatDuration(most.most->b), formatDuration(most.most->a));
    out.why.push_back(std::move(kernel));
}

} // namespace

DeviceChanges compareDevices(const Timeline& a, int stepA, const Timeline& b, int stepB, const std::stop_token& stop)
{
    DeviceChanges out;
    const RankDeviceTime x = summed(analyseDeviceTime(a, stepA));
    const RankDeviceTime y = summed(analyseDeviceTime(b, stepB));
    const auto figure = [&](std::string key, std::string title, std::optional<Nanos> ofA, std::optional<Nanos> ofB) {
        out.figures.push_back({std::move(key), std::move(title), ofA, ofB, {}});
    };
    // What a graph that was traced as a whole holds is unknown, so what a run with one computes and communicates is,
    // too.
    const auto split = [&](std::string key, std::string title, Nanos ofA, Nanos ofB) {
        figure(std::move(key), std::move(title), x.graphs > 0 ? std::nullopt : std::optional(ofA),
               y.graphs > 0 ? std::nullopt : std::optional(ofB));
    };
    figure("window_ns", "First to last", x.window(), y.window());
    split("computing_ns", "Computing", x.computing, y.computing);
    split("communicating_ns", "Communicating", x.communicating, y.communicating);
    split("exposed_ns", "Communication exposed", x.exposed(), y.exposed());
    figure("copying_ns", "Copying", x.copying, y.copying);
    figure("idle_ns", "Idle", x.idle(), y.idle());
    const auto spreadA = spreadOf(a, stop), spreadB = spreadOf(b, stop);
    if (stop.stop_requested()) return out;
    for (std::size_t i = 0; i < 6 && (spreadA || spreadB); ++i)
        out.figures[i].noise = std::max(spreadA ? (*spreadA)[i] : 0, spreadB ? (*spreadB)[i] : 0);
    const auto idleA = idleOf(a, stepA), idleB = idleOf(b, stepB);
    for (const DeviceState state :
         {DeviceState::Launch, DeviceState::Sync, DeviceState::Queued, DeviceState::Unknown}) {
        const auto s = static_cast<std::size_t>(state);
        if (idleA[s] != 0 || idleB[s] != 0)
            figure(fmt::format("idle.{}_ns", toText(state)), fmt::format("Idle: {}", lowered(titleOf(state))), idleA[s],
                   idleB[s]);
    }
    std::array<std::pair<Nanos, Nanos>, kernelClassCount> classes{};
    for (const ClassTime& time : analyseKernelClasses(a, stepA))
        classes[static_cast<std::size_t>(time.of)].first = time.running;
    for (const ClassTime& time : analyseKernelClasses(b, stepB))
        classes[static_cast<std::size_t>(time.of)].second = time.running;
    for (std::size_t of = 0; of < kernelClassCount; ++of) {
        const auto kind = static_cast<KernelClass>(of);
        const auto& [ofA, ofB] = classes[of];
        if (ofA != 0 || ofB != 0)
            split(fmt::format("class.{}_ns", toText(kind)), fmt::format("Running: {}", lowered(titleOf(kind))), ofA,
                  ofB);
    }
    const auto operationsA = collectivesOf(a, stepA), operationsB = collectivesOf(b, stepB);
    auto operations = operationsA;
    operations.insert(operationsB.begin(), operationsB.end());
    const auto timeIn = [](const std::map<std::string, Nanos>& times, const std::string& name) {
        const auto found = times.find(name);
        return found == times.end() ? 0 : found->second;
    };
    for (const auto& [name, time] : operations)
        split(fmt::format("communication.{}_ns", name), "Communication: " + name, timeIn(operationsA, name),
              timeIn(operationsB, name));
    if (stop.stop_requested()) return out;
    out.kernels = matchKernels(a, stepA, b, stepB);
    out.headline =
        fmt::format("devices are busy {} of {} in A and {} of {} in B, summed over ranks", formatDuration(x.busy),
                    formatDuration(x.window()), formatDuration(y.busy), formatDuration(y.window()));
    explain(out);
    if (x.graphs > 0 || y.graphs > 0)
        out.why.push_back(fmt::format("what computes and what communicates is unknown in {}: CUDA graphs were traced "
                                      "as a whole; record again with --cuda-graph-trace=node",
                                      y.graphs == 0   ? "A"
                                      : x.graphs == 0 ? "B"
                                                      : "A and B"));
    return out;
}

} // namespace stagewright
