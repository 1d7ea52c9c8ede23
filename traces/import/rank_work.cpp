#include "traces/import/rank_work.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "schedules/base/release_items.h"
#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/kernel_class.h"
#include "traces/analysis/kernels.h"
#include "traces/import/stoppable_sort.h"

namespace stagewright {

namespace {

bool onComputeLane(OpKind kind) { return isCompute(kind) || isStageOp(kind); }

// Compute ops by thread and by start, to find the one that contains a time.
class Holders {
public:
    explicit Holders(const std::vector<OpRange>& ops) : m_ops(ops)
    {
        for (std::uint32_t i = 0; i < ops.size(); ++i) {
            if (!onComputeLane(ops[i].op.kind)) continue;
            m_byThread[ops[i].thread].push_back(i);
            const OpKind kind = ops[i].op.kind;
            if (isOfBackward(kind)) m_backwards.push_back(i);
        }
    }

    std::uint32_t on(std::uint32_t thread, Nanos time) const
    {
        const auto list = m_byThread.find(thread);
        return list == m_byThread.end() ? noOpRange : in(list->second, time);
    }
    std::uint32_t backward(Nanos time) const { return in(m_backwards, time); }

private:
    std::uint32_t in(const std::vector<std::uint32_t>& list, Nanos time) const
    {
        auto after = std::upper_bound(list.begin(), list.end(), time,
                                      [this](Nanos at, std::uint32_t op) { return at < m_ops[op].start; });
        if (after == list.begin()) return noOpRange;
        --after;
        return time <= m_ops[*after].end ? *after : noOpRange;
    }

    const std::vector<OpRange>& m_ops; // by start
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> m_byThread;
    std::vector<std::uint32_t> m_backwards;
};

bool namesLibrary(std::string_view name) { return name.starts_with("nccl:") || name.starts_with("rccl:"); }

// Asked once in some thousand items, so that work on millions of them stops within milliseconds.
bool stopsAt(std::size_t item, const std::stop_token& stop) { return (item & 0x3fff) == 0 && stop.stop_requested(); }

} // namespace

void tieLaunches(ForeignRank& rank, const std::stop_token& stop)
{
    auto& launches = rank.launches;
    const auto before = [](const Launch& a, const Launch& b) {
        return std::tie(a.correlation, a.time) < std::tie(b.correlation, b.time);
    };
    if (!std::is_sorted(launches.begin(), launches.end(), before))
        sortStoppable(launches.begin(), launches.end(), before, stop);
    for (std::size_t i = 0; i < rank.device.size() && !launches.empty(); ++i) {
        if (stopsAt(i, stop)) return;
        DeviceSpan& span = rank.device[i];
        if (span.correlation < 0 || span.launchedFrom != noThread) continue;
        const auto launch = std::lower_bound(launches.begin(), launches.end(), span.correlation,
                                             [](const Launch& a, std::int64_t b) { return a.correlation < b; });
        if (launch == launches.end() || launch->correlation != span.correlation) continue;
        span.launched = launch->time;
        span.launchedFrom = launch->thread;
    }
    std::vector<std::int64_t> ofMessages;
    for (const ForeignMessage& message : rank.messages)
        if (message.correlation >= 0) ofMessages.push_back(message.correlation);
    std::sort(ofMessages.begin(), ofMessages.end());
    std::vector<Launch> kept;
    for (const Launch& launch : launches)
        if (std::binary_search(ofMessages.begin(), ofMessages.end(), launch.correlation)) kept.push_back(launch);
    launches = std::move(kept);
}

RankWork placeWork(const ForeignRank& rank, RankOps& ops, const std::stop_token& stop)
{
    RankWork work;
    work.opOfDevice.assign(rank.device.size(), noOpRange);
    const Holders holders(ops.ops);
    const bool deviceRanges = !ops.ops.empty() && ops.ops.front().device;
    std::vector<std::pair<Nanos, Nanos>> extent(ops.ops.size(), {0, -1});
    for (std::size_t i = 0; i < rank.device.size(); ++i) {
        if (stopsAt(i, stop)) return work;
        const DeviceSpan& span = rank.device[i];
        std::uint32_t op = noOpRange;
        if (deviceRanges) {
            op = holders.on(span.thread, span.start);
        } else if (span.launchedFrom != noThread) {
            op = holders.on(span.launchedFrom, span.launched);
            if (op == noOpRange) op = holders.backward(span.launched);
        }
        work.opOfDevice[i] = op;
        if (op == noOpRange) continue;
        ++work.launched;
        if (span.copy || span.collective || deviceRanges) continue;
        auto& [begin, end] = extent[op];
        const bool first = end < begin;
        begin = first ? span.start : std::min(begin, span.start);
        end = first ? span.end : std::max(end, span.end);
    }
    std::set<std::uint32_t> computing; // threads
    for (const OpRange& range : ops.ops)
        if (isCompute(range.op.kind)) computing.insert(range.thread);
    for (std::uint32_t i = 0; i < ops.ops.size(); ++i) {
        OpRange& range = ops.ops[i];
        if (extent[i].second >= extent[i].first) {
            std::tie(range.start, range.end) = extent[i];
            ++work.projected;
        }
        if (isCollective(range.op.kind) && !computing.contains(range.thread))
            work.beside.push_back(i);
        else if (onComputeLane(range.op.kind))
            work.compute.push_back(i);
    }
    // The second of an overlapped pair has no kernels of its own: the range covered both.
    for (std::size_t k = 1; k < work.compute.size(); ++k) {
        OpRange& first = ops.ops[work.compute[k - 1]];
        OpRange& second = ops.ops[work.compute[k]];
        if (!first.paired || !second.paired ||
            (k >= 2 && ops.ops[work.compute[k - 2]].paired && ops.ops[work.compute[k - 2]].start == first.start))
            continue;
        const auto& given = extent[work.compute[k - 1]].second >= extent[work.compute[k - 1]].first ? first : second;
        const Nanos start = given.start;
        const Nanos end = given.end;
        first.start = second.start = start;
        first.end = second.end = end;
    }
    // In the order in which the host named them, which is the order in which a stream runs them.
    Nanos until = 0;
    for (std::size_t k = 0; k < work.compute.size(); ++k) {
        OpRange& range = ops.ops[work.compute[k]];
        const OpRange* before = k > 0 ? &ops.ops[work.compute[k - 1]] : nullptr;
        const bool pair = before != nullptr && range.paired && before->paired && before->end == range.end &&
                          before->start >= range.start;
        const bool onDevice = extent[work.compute[k]].second >= extent[work.compute[k]].first;
        if (pair) {
            range.start = before->start;
        } else if (k > 0 && range.start < until) {
            if (onDevice || work.projected == 0) { // beside kernels a time of the host says little
                ++work.clipped;
                work.overlap += until - range.start;
            }
            range.start = until;
            range.end = std::max(range.end, until);
        }
        until = k == 0 ? range.end : std::max(until, range.end);
    }
    return work;
}

DeviceRanges placeRanges(const ForeignRank& rank, const std::stop_token& stop)
{
    DeviceRanges out;
    out.extent.assign(rank.annotations.size(), {0, -1});
    out.rangeOfDevice.assign(rank.device.size(), noOpRange);
    if (rank.annotations.empty()) return out;
    std::vector<std::uint32_t> order(rank.annotations.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto keyOf = [&](std::uint32_t i) {
        const ForeignSpan& span = rank.annotations[i];
        return std::tuple(span.thread, span.start, -span.end);
    };
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return keyOf(a) < keyOf(b); });
    std::vector<std::uint32_t> parent(order.size(), noOpRange); // by place in order
    std::vector<std::uint32_t> open;
    for (std::uint32_t k = 0; k < order.size(); ++k) {
        const ForeignSpan& span = rank.annotations[order[k]];
        while (!open.empty()) {
            const ForeignSpan& outer = rank.annotations[order[open.back()]];
            if (outer.thread == span.thread && outer.end >= span.end) break;
            open.pop_back();
        }
        if (!open.empty()) parent[k] = open.back();
        open.push_back(k);
    }
    for (std::size_t i = 0; i < rank.device.size(); ++i) {
        if (stopsAt(i, stop)) return out;
        const DeviceSpan& span = rank.device[i];
        if (span.launchedFrom == noThread) continue;
        const auto after =
            std::upper_bound(order.begin(), order.end(), std::pair(span.launchedFrom, span.launched),
                             [&](const auto& at, std::uint32_t range) {
                                 return at < std::pair(rank.annotations[range].thread, rank.annotations[range].start);
                             });
        if (after == order.begin()) continue;
        bool innermost = true, wanted = span.collective;
        for (auto k = static_cast<std::uint32_t>(after - order.begin() - 1); k != noOpRange; k = parent[k]) {
            const ForeignSpan& range = rank.annotations[order[k]];
            if (range.thread != span.launchedFrom) break;
            if (range.end < span.launched) continue;
            auto& [begin, end] = out.extent[order[k]];
            const bool first = end < begin;
            begin = first ? span.start : std::min(begin, span.start);
            end = first ? span.end : std::max(end, span.end);
            if (innermost) out.rangeOfDevice[i] = order[k];
            innermost = false;
            if (!wanted || !namesLibrary(rank.names[range.name])) continue;
            wanted = false;
            out.ofLibrary.emplace_back(static_cast<std::uint32_t>(i), order[k]);
        }
    }
    return out;
}

void nameOperations(ForeignRank& rank, const DeviceRanges& ranges)
{
    const auto name = [&rank](std::size_t device, std::string_view text) {
        DeviceSpan& work = rank.device[device];
        const std::string& kernel = rank.names[work.name];
        const std::string_view operation = operationCalled(text);
        if (operation.empty() || operation == collectiveOfKernel(kernel) || !hidesOperation(kernel) ||
            !operationInShape(rank.names.shapeOf(work.name)).empty())
            return;
        work.name = rank.names.shaped(work.name, withOperation(rank.names.shapeOf(work.name), operation));
    };
    for (const ForeignMessage& message : rank.messages)
        if (message.device && message.work >= 0) name(static_cast<std::size_t>(message.work), rank.names[message.name]);
    for (const auto& [device, range] : ranges.ofLibrary) name(device, rank.names[rank.annotations[range].name]);
}

// No later than its start: the clocks of a host and a device differ.
static Nanos launchOf(const DeviceSpan& work)
{
    return work.launchedFrom == noThread ? notLaunched : std::min(work.launched, work.start);
}

std::vector<DeviceTrack> takeDevice(ForeignRank& rank, RankWork& work, DeviceRanges& ranges,
                                    const std::stop_token& stop)
{
    auto& device = rank.device;
    std::vector<std::size_t> counts(2 * rank.threads.size(), 0); // by thread, kernels and copies
    const auto slotOf = [](const DeviceSpan& span) { return 2 * std::size_t{span.thread} + (span.copy ? 1 : 0); };
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (stopsAt(i, stop)) return {};
        ++counts[slotOf(device[i])];
    }
    std::map<std::pair<bool, std::string>, std::size_t> sizes; // of tracks, in order
    for (std::size_t slot = 0; slot < counts.size(); ++slot)
        if (counts[slot] > 0) sizes[{slot % 2 == 1, rank.threads[slot / 2].name}] += counts[slot];
    std::vector<DeviceTrack> tracks;
    std::vector<std::size_t> trackOf(counts.size(), 0);
    for (const auto& [key, size] : sizes) {
        for (std::size_t slot = 0; slot < counts.size(); ++slot)
            if ((slot % 2 == 1) == key.first && rank.threads[slot / 2].name == key.second)
                trackOf[slot] = tracks.size();
        tracks.push_back({key.first, key.second, {}});
        tracks.back().work.reserve(size);
    }
    for (std::size_t i = 0; i < device.size(); ++i) {
        if (stopsAt(i, stop)) return {};
        const DeviceSpan& span = device[i];
        tracks[trackOf[slotOf(span)]].work.push_back({span.start, span.end, span.name, work.opOfDevice[i],
                                                      ranges.rangeOfDevice[i], static_cast<std::uint32_t>(i),
                                                      launchOf(span)});
        constexpr std::size_t atOnce = 1 << 16;
        if ((i + 1) % atOnce != 0) continue;
        releaseItems(device, i + 1 - atOnce, i + 1); // most of the kept data of a large trace
        releaseItems(work.opOfDevice, i + 1 - atOnce, i + 1);
        releaseItems(ranges.rangeOfDevice, i + 1 - atOnce, i + 1);
    }
    std::vector<DeviceSpan>().swap(device);
    work = {};
    std::vector<std::uint32_t>().swap(ranges.rangeOfDevice);
    for (DeviceTrack& track : tracks)
        sortStoppable(
            track.work.begin(), track.work.end(),
            [](const ForeignWork& a, const ForeignWork& b) {
                return std::tie(a.start, a.end) < std::tie(b.start, b.end);
            },
            stop);
    return tracks;
}

namespace {

// The last step of [begin, end) that began at `time` or before, if it holds the time.
using Steps = std::vector<StepTimes>::const_iterator;
Steps stepHolding(Steps begin, Steps end, Nanos time)
{
    const auto after =
        std::upper_bound(begin, end, time, [](Nanos at, const StepTimes& step) { return at < step.begin; });
    return after == begin || (after - 1)->end < time ? end : after - 1;
}

} // namespace

int stepAt(const RankOps& ops, Nanos time)
{
    if (ops.steps.empty() && !ops.markedSteps) return 0;
    const auto step = stepHolding(ops.steps.begin(), ops.steps.end(), time);
    return step == ops.steps.end() ? outsideSteps : step->step;
}

int stepOf(const RankOps& ops, const ForeignRank& rank, const ForeignSpan& work, Nanos launched)
{
    if (!ops.stepsOnDevice && launched != notLaunched) return stepAt(ops, launched);
    if (ops.stepsOnDevice && !ops.markedSteps) return stepAt(ops, work.start);
    if (!ops.markedSteps) return ops.steps.empty() ? 0 : ops.steps.size() == 1 ? ops.steps.front().step : outsideSteps;
    const auto gpuOf = [&rank](std::uint32_t thread) {
        return thread < rank.threads.size() ? rank.threads[thread].gpu : -1;
    };
    int found = outsideSteps;
    for (auto begin = ops.deviceSteps.begin(); begin != ops.deviceSteps.end();) { // stream by stream
        const std::uint32_t thread = begin->thread;
        const auto end = std::upper_bound(begin, ops.deviceSteps.end(), thread,
                                          [](std::uint32_t at, const StepTimes& step) { return at < step.thread; });
        const auto step = stepHolding(begin, end, work.start);
        begin = end;
        if (step == end || gpuOf(thread) != gpuOf(work.thread)) continue;
        if (thread == work.thread) return step->step;
        if (found != outsideSteps && found != step->step) found = -2; // they don't agree
        if (found == outsideSteps) found = step->step;
    }
    return found < 0 ? outsideSteps : found;
}

int stepOf(const RankOps& ops, const ForeignRank& rank, const DeviceSpan& work)
{
    return stepOf(ops, rank, work, launchOf(work));
}

int stepOf(const RankOps& ops, const ForeignRank& rank, const ForeignMessage& message)
{
    const bool known =
        message.device && message.work >= 0 && static_cast<std::size_t>(message.work) < rank.device.size();
    return known ? stepOf(ops, rank, rank.device[static_cast<std::size_t>(message.work)]) : stepAt(ops, message.start);
}

std::vector<MemoryEvent> memoryOf(ForeignRank& rank, const std::vector<OpRange>& hostOps, const RankOps& ops,
                                  int rankNumber, const std::stop_token& stop)
{
    std::vector<MemoryChangeSeen> changes;
    changes.swap(rank.memory);
    const bool device =
        std::any_of(changes.begin(), changes.end(), [](const MemoryChangeSeen& change) { return change.device; });
    std::erase_if(changes,
                  [&](const MemoryChangeSeen& change) { return change.device != device || change.delta == 0; });
    sortStoppable(
        changes.begin(), changes.end(),
        [](const MemoryChangeSeen& a, const MemoryChangeSeen& b) { return a.time < b.time; }, stop);
    std::vector<MemoryEvent> out;
    if (changes.empty()) return out;
    const Holders holders(hostOps);
    const auto holder = [&](const MemoryChangeSeen& change) {
        const std::uint32_t op = holders.on(change.thread, change.time);
        return op != noOpRange ? op : holders.backward(change.time);
    };
    const auto stepNear = [&](Nanos time) { // the last that began, else the first: memory is held from step to step
        const auto after = std::upper_bound(ops.steps.begin(), ops.steps.end(), time,
                                            [](Nanos at, const StepTimes& step) { return at < step.begin; });
        return ops.steps.empty() ? 0 : after == ops.steps.begin() ? after->step : (after - 1)->step;
    };
    const auto eventOf = [&](const MemoryChangeSeen& change, std::uint32_t op) {
        MemoryEvent event;
        event.time = change.time;
        event.delta = change.delta;
        event.rank = static_cast<std::uint16_t>(rankNumber);
        event.step = op == noOpRange ? stepNear(change.time) : hostOps[op].step;
        event.stage = op == noOpRange ? 0 : hostOps[op].op.stage;
        event.category = MemoryCategory::Workspace;
        return event;
    };
    // When each step's last pass ends on the host: memory that outlives it is not that pass's.
    std::map<int, Nanos> passesEnd;
    for (const OpRange& range : hostOps)
        if (isCompute(range.op.kind)) passesEnd[range.step] = std::max(passesEnd[range.step], range.end);
    // What memory is, by who made it, and who frees it when.
    const auto categoryOf = [&](std::uint32_t maker, std::uint32_t freer, int freedIn, Nanos freed) {
        if (maker == noOpRange || maker == freer) return MemoryCategory::Workspace;
        const OpRange& made = hostOps[maker];
        if (isForward(made.op.kind)) return MemoryCategory::Activations;
        const bool later = freedIn > made.step;
        if (isOptimizer(made.op.kind)) return later ? MemoryCategory::Optimizer : MemoryCategory::Workspace;
        // Gradients are used by the optimizer and freed by it, after it, or where the next step sets them to none.
        const bool byOptimizer = freer != noOpRange && isOptimizer(hostOps[freer].op.kind);
        return later || byOptimizer || (freer == noOpRange && freed >= passesEnd[made.step])
                   ? MemoryCategory::Gradients
                   : MemoryCategory::Workspace;
    };
    const Nanos firstOp = hostOps.empty() ? 0 : hostOps.front().start;
    Bytes inUse = 0; // before the first change of each GPU
    std::set<int> gpus;
    for (const MemoryChangeSeen& change : changes)
        if (gpus.insert(change.gpu).second && change.total >= 0 && change.total > change.delta)
            inUse += change.total - change.delta;
    if (inUse > 0) {
        MemoryEvent before = eventOf(changes.front(), noOpRange);
        before.delta = inUse;
        before.category = MemoryCategory::Weights;
        out.push_back(before);
    }
    const auto keyOf = [](const MemoryChangeSeen& change) {
        return change.address ^ (static_cast<std::uint64_t>(change.gpu + 1) << 56);
    };
    // by GPU and address: its event, its op
    std::unordered_map<std::uint64_t, std::pair<std::size_t, std::uint32_t>> held;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        if (stopsAt(i, stop)) return out;
        const MemoryChangeSeen& change = changes[i];
        const std::uint32_t op = holder(change);
        MemoryEvent event = eventOf(change, op);
        if (change.category) {
            event.category = *change.category;
            event.stage = change.stage;
            event.microbatch = change.microbatch;
            out.push_back(event);
            continue;
        }
        if (change.delta > 0) {
            held[keyOf(change)] = {out.size(), op};
        } else if (const auto found = held.find(keyOf(change)); found != held.end()) {
            auto& [index, maker] = found->second;
            MemoryEvent& made = out[index];
            made.category = categoryOf(maker, op, event.step, change.time);
            if (made.category == MemoryCategory::Activations) made.microbatch = hostOps[maker].op.microbatch;
            event.category = made.category;
            event.microbatch = made.microbatch;
            event.stage = made.stage;
            held.erase(found);
        } else if (!out.empty() && out.front().category == MemoryCategory::Weights) {
            event.category = MemoryCategory::Weights; // it was there before
        } else {
            continue;
        }
        out.push_back(event);
    }
    for (const auto& [address, kept] : held) {
        MemoryEvent& made = out[kept.first];
        if (kept.second == noOpRange) {
            // made before the first pass, and never freed
            if (!hostOps.empty() && made.time < firstOp) made.category = MemoryCategory::Weights;
            continue;
        }
        const Op& op = hostOps[kept.second].op;
        if (isForward(op.kind)) {
            made.category = MemoryCategory::Activations;
            made.microbatch = op.microbatch;
        } else {
            made.category = isOptimizer(op.kind) ? MemoryCategory::Optimizer : MemoryCategory::Gradients;
        }
    }
    return out;
}

} // namespace stagewright
