#include "schedules/execute/simulate.h"

#include <algorithm>
#include <cmath>

#include "schedules/base/large_memory.h"
#include "schedules/execute/jitter.h"
#include "schedules/execute/perturb.h"
#include "schedules/execute/place_buckets.h"
#include "schedules/messages/message_delay.h"
#include "schedules/model/activation.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

// Overlapped pairs that take another time than the sum of both: each op gets its part of the interval.
void sharePairs(const Schedule& schedule, const CostModel& costs, std::vector<Nanos>& durations)
{
    std::size_t offset = 0;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const auto& ops = schedule.order[r];
        if (r < schedule.paired.size())
            for (const std::uint32_t i : schedule.paired[r]) {
                if (i + 1 >= ops.size() || isRecompute(ops[i].kind)) continue;
                const Nanos pair = costs.pairDuration(ops[i], ops[i + 1], static_cast<int>(r));
                if (pair < 0) continue;
                Nanos& first = durations[offset + i];
                Nanos& second = durations[offset + i + 1];
                const double sum = static_cast<double>(first + second);
                first =
                    sum > 0 ? std::llround(static_cast<double>(pair) * (static_cast<double>(first) / sum)) : pair / 2;
                second = pair - first;
            }
        offset += ops.size();
    }
}

void addJitter(const Schedule& schedule, const CostModel& costs, std::vector<Nanos>& durations)
{
    std::size_t id = 0;
    for (const auto& ops : schedule.order)
        for (const Op& op : ops) {
            Nanos& duration = durations[id++];
            if (isCompute(op.kind))
                duration =
                    std::llround(static_cast<double>(duration) * jitterFactor(costs.jitter, costs.jitterSeed, 0, op));
        }
}

} // namespace

std::vector<Nanos> durationsOf(const Schedule& schedule, const CostModel& costs)
{
    std::vector<Nanos> out;
    reserveLarge(out, schedule.opCount());
    const auto stages = static_cast<std::size_t>(std::max(schedule.stages, 0));
    const bool tabled = !costs.hasMicrobatchDurations();
    std::vector<Nanos> table(opKindRoom * stages, -1); // of one rank, filled on demand
    std::vector<std::size_t> filled;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        if (costs.hasRankDurations())
            for (; !filled.empty(); filled.pop_back()) table[filled.back()] = -1;
        for (const Op& op : schedule.order[r]) {
            const bool whole =
                tabled && op.count == 1 && op.half == 0 && op.slice < 0 && !isDelay(op.kind) && op.stage < stages;
            if (!whole) {
                out.push_back(costs.duration(op, static_cast<int>(r)));
                continue;
            }
            const std::size_t place = static_cast<std::size_t>(op.kind) * stages + op.stage;
            if (table[place] < 0) {
                table[place] = costs.duration(op.kind, op.stage, static_cast<int>(r));
                filled.push_back(place);
            }
            out.push_back(table[place]);
        }
    }
    if (costs.hasPairDurations()) sharePairs(schedule, costs, out);
    if (costs.jitter > 0) addJitter(schedule, costs, out);
    return out;
}

Nanos activationChangesAt(const Schedule& schedule, const SimResult& result, int rank, std::size_t position)
{
    const std::size_t id = result.indexOf(rank, position);
    const OpKind kind = schedule.order[static_cast<std::size_t>(rank)][position].kind;
    if (changesActivationAtStart(kind)) return result.start[id];
    const Nanos end = result.end[id];
    const bool overlapped = schedule.isPaired(rank, position) && !isRecompute(kind);
    return overlapped ? end - (end - result.start[id] + 1) / 2 : end;
}

namespace {

bool hasCopies(const Schedule& schedule)
{
    for (const auto& ops : schedule.order)
        if (std::any_of(ops.begin(), ops.end(), [](const Op& op) { return isCopy(op.kind); })) return true;
    return false;
}

struct TierPeaks {
    std::vector<Bytes> device, host; // by rank
};

// Where copies move activations while other ops run, peaks are those of moments: what is freed at one counts before
// what is taken. The host holds from the start of an offload to the end of the reload.
TierPeaks peaksInTime(const Schedule& schedule, const SimResult& result, const ActivationRule& rule)
{
    struct Change {
        Nanos time = 0;
        Bytes device = 0, host = 0;
    };
    TierPeaks peaks;
    std::vector<Change> changes;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        changes.clear();
        const auto& ops = schedule.order[r];
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const std::size_t id = result.offsets[r] + i;
            Bytes delta = 0;
            for (int k = 0; k < ops[i].count; ++k) delta += rule.deltaOf(ops[i], k);
            if (delta == 0) continue;
            changes.push_back({activationChangesAt(schedule, result, static_cast<int>(r), i), delta, 0});
            if (isCopy(ops[i].kind)) // on the other side at the other end
                changes.push_back({isReload(ops[i].kind) ? result.end[id] : result.start[id], 0, -delta});
        }
        const auto highest = [&](Bytes Change::*tier) {
            std::sort(changes.begin(), changes.end(), [&](const Change& a, const Change& b) {
                return a.time != b.time ? a.time < b.time : a.*tier < b.*tier;
            });
            Bytes held = 0, peak = 0;
            for (const Change& change : changes) peak = std::max(peak, held += change.*tier);
            return peak;
        };
        peaks.device.push_back(highest(&Change::device));
        peaks.host.push_back(highest(&Change::host));
    }
    return peaks;
}

} // namespace

std::vector<Bytes> activationPeaks(const Schedule& schedule, const CostModel& costs)
{
    if (hasCopies(schedule))
        if (auto result = simulate(schedule, costs)) return std::move(result->peakActivation);
    return peaksOf(schedule, ActivationRule(schedule, costs));
}

namespace {

Result<SimResult> simulate(const Schedule& schedule, const CostModel& costs, const Channels& channels,
                           PlacePolicy policy)
{
    const std::vector<Bytes> boundary = boundaryOf(schedule, costs);
    std::vector<Nanos> durations = durationsOf(schedule, costs);
    addLaunch(schedule, costs.launch, durations);
    std::vector<int> buckets; // by stage
    if (costs.sharding.bucket > 0)
        for (const StageMemory& memory : costs.memory)
            buckets.push_back(static_cast<int>(std::clamp<Bytes>(
                (memory.gradient + costs.sharding.bucket - 1) / costs.sharding.bucket, 1, 1'000'000)));
    auto result = placeBuckets(schedule, durations, costs.links, buckets, boundary, channels, policy);
    if (result) takeLaunch(schedule, costs.launch, *result);
    const Unheld unheld = policy == PlacePolicy::Relaxed ? Unheld::LeftOut : Unheld::Counted;
    if (!result) return result;
    const ActivationRule rule(schedule, costs, unheld);
    if (hasCopies(schedule)) {
        TierPeaks peaks = peaksInTime(schedule, *result, rule);
        result->peakActivation = std::move(peaks.device);
        result->peakOnHost = std::move(peaks.host);
    } else {
        result->peakActivation = peaksOf(schedule, rule);
    }
    return result;
}

} // namespace

Result<SimResult> simulate(const Schedule& schedule, const CostModel& costs, const Channels& channels)
{
    return simulate(schedule, costs, channels, PlacePolicy::Strict);
}

SimResult simulateRelaxed(const Schedule& schedule, const CostModel& costs)
{
    return simulate(schedule, costs, {}, PlacePolicy::Relaxed).value_or(SimResult{});
}

SimFigures figuresOf(const Schedule& schedule, const SimResult& result)
{
    SimFigures figures;
    Nanos begin = -1, end = 0; // the window: from the first busy start to the last busy end
    Nanos longestSpan = -1;
    Nanos ideal = 0;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const auto& ops = schedule.order[r];
        Nanos busy = 0;
        Nanos first = -1;
        Nanos last = 0;
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (!isBusy(ops[i].kind)) continue;
            const std::size_t id = result.offsets[r] + i;
            const bool second = i > 0 && schedule.isPaired(static_cast<int>(r), i - 1) &&
                                !isRecompute(ops[i - 1].kind); // its time is in the first's interval
            if (!second) busy += result.end[id] - result.start[id];
            if (first < 0) first = result.start[id];
            last = result.end[id];
        }
        figures.busy += busy;
        if (first < 0) continue;
        begin = begin < 0 ? first : std::min(begin, first);
        end = std::max(end, last);
        if (last - first > longestSpan) {
            longestSpan = last - first;
            ideal = busy;
        }
    }
    Nanos stepBegin = begin, stepEnd = end;
    for (std::size_t r = 0; r < schedule.order.size() && begin >= 0; ++r)
        for (std::size_t i = 0; i < schedule.order[r].size(); ++i) {
            const OpKind kind = schedule.order[r][i].kind;
            if (!isOptimizer(kind) && !isCollective(kind) && !fillsGaps(kind)) continue;
            const std::size_t id = result.offsets[r] + i;
            stepBegin = std::min(stepBegin, result.start[id]);
            stepEnd = std::max(stepEnd, result.end[id]);
        }
    figures.step = stepEnd - std::max<Nanos>(0, stepBegin);
    Nanos apart = 0;
    for (std::size_t r = 0; r < schedule.order.size(); ++r)
        for (std::size_t i = 0; i < schedule.order[r].size(); ++i) {
            const OpKind kind = schedule.order[r][i].kind;
            if (isBusy(kind) || isMessage(kind) || isDelay(kind)) continue;
            if (runsApart(kind) || (result.collectivesBeside && isCollective(kind))) continue;
            const std::size_t id = result.offsets[r] + i;
            apart += std::max<Nanos>(0, std::min(result.end[id], end) - std::max(result.start[id], begin));
        }
    if (begin >= 0) figures.makespan = end - begin;
    if (figures.makespan > 0)
        figures.bubbleFraction =
            1.0 - static_cast<double>(figures.busy + apart) /
                      (static_cast<double>(schedule.ranks) * static_cast<double>(figures.makespan));
    if (longestSpan > 0) figures.bubbleRateSpan = 1.0 - static_cast<double>(ideal) / static_cast<double>(longestSpan);
    return figures;
}

} // namespace stagewright
