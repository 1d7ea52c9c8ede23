#include "traces/analysis/collective_uses.h"

#include <algorithm>

#include "schedules/model/collective_costs.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/kernel_class.h"
#include "traces/analysis/kernels.h"

namespace stagewright {

namespace {

// as a recorder names them
constexpr std::string_view weightsReceived = "weights received", gradientsReceived = "gradients received";

struct Interval {
    Nanos begin;
    Nanos end;
};

// What a rank runs in a step, without intended delays: sorted and apart.
std::vector<std::vector<Interval>> running(const Timeline& timeline, int step)
{
    std::vector<std::vector<Interval>> out(static_cast<std::size_t>(std::max(0, timeline.ranks())));
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute) continue;
        auto& own = out[static_cast<std::size_t>(track.rank)];
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (isDelay(span.op.kind) || span.end <= span.start) continue;
            own.push_back({span.start, span.end});
        }
    }
    // A rank without ops: kernels that compute.
    KernelClasses classes;
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Kernel || isCollectiveTrack(track) ||
            timeline.trackOf(track.rank, Lane::Compute) != nullptr)
            continue;
        auto& own = out[static_cast<std::size_t>(track.rank)];
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step == step && span.end > span.start && !isCommunication(classes.of(timeline, track, span)))
                own.push_back({span.start, span.end});
        }
    }
    for (auto& own : out) {
        std::sort(own.begin(), own.end(), [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
        std::size_t last = 0;
        for (std::size_t i = 1; i < own.size(); ++i) {
            if (own[i].begin <= own[last].end)
                own[last].end = std::max(own[last].end, own[i].end);
            else
                own[++last] = own[i];
        }
        if (!own.empty()) own.resize(last + 1);
    }
    return out;
}

// The parts of [begin, end) that no interval covers.
template <typename Take>
void uncovered(const std::vector<Interval>& intervals, Nanos begin, Nanos end, Take take)
{
    auto at =
        std::partition_point(intervals.begin(), intervals.end(), [&](const Interval& one) { return one.end <= begin; });
    for (; begin < end; ++at) {
        const Nanos until = at == intervals.end() ? end : std::min(end, at->begin);
        if (until > begin) take(begin, until);
        if (at == intervals.end()) return;
        begin = std::max(begin, at->end);
    }
}

// What a real run's transport counted: its counters start from 0 in every step.
std::optional<Bytes> countedBytes(const Timeline& timeline, int step, int rank, std::string_view name)
{
    const auto counter = std::find_if(timeline.counters().begin(), timeline.counters().end(),
                                      [&](const Counter& each) { return each.rank == rank && each.name == name; });
    const auto mark = std::find_if(timeline.stepMarks().begin(), timeline.stepMarks().end(),
                                   [&](const StepMark& each) { return each.rank == rank && each.step == step; });
    if (counter == timeline.counters().end() || mark == timeline.stepMarks().end()) return {};
    double most = 0;
    for (const CounterSample& sample : counter->samples)
        if (sample.time >= mark->begin && sample.time <= mark->end) most = std::max(most, sample.value);
    return static_cast<Bytes>(most);
}

} // namespace

bool isTakenLater(const Timeline& timeline, const Span& span)
{
    if (span.label == 0 || !isCollective(span.op.kind)) return false;
    const std::string_view label = timeline.labelOf(span);
    return label == "copies" || label == "additions";
}

const CollectiveUse* CollectiveUses::of(SpanId span) const
{
    const auto found = std::lower_bound(uses.begin(), uses.end(), span,
                                        [](const CollectiveUse& use, SpanId id) { return use.span < id; });
    return found != uses.end() && found->span == span ? &*found : nullptr;
}

CollectiveUses collectiveUses(const Timeline& timeline, const BubbleReport& report)
{
    CollectiveUses out;
    const auto tracks = timeline.tracks();
    if (std::none_of(tracks.begin(), tracks.end(), [](const Track& track) { return isCollectiveLane(track.lane); }))
        return out;
    const auto busy = running(timeline, report.step);
    const bool window = report.windowEnd > report.windowBegin;
    for (const Track& track : tracks) {
        if (!isCollectiveLane(track.lane)) continue;
        const auto& own = busy[static_cast<std::size_t>(track.rank)];
        const auto [first, last] = timeline.stepRange(track, report.step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != report.step || isRelease(span.op.kind)) continue;
            CollectiveUse use;
            use.span = id;
            use.hidden = span.duration();
            uncovered(own, span.start, span.end, [&](Nanos begin, Nanos end) { use.hidden -= end - begin; });
            const auto outside = [&](Nanos begin, Nanos end) {
                use.outside += end - begin;
                out.exposed.push_back({id, begin, end});
            };
            if (window) {
                uncovered(own, span.start, std::min(span.end, report.windowBegin), outside);
                uncovered(own, std::max(span.start, report.windowEnd), span.end, outside);
            } else { // no op is known
                uncovered(own, span.start, span.end, outside);
            }
            out.uses.push_back(use);
        }
    }
    std::sort(out.uses.begin(), out.uses.end(),
              [](const CollectiveUse& a, const CollectiveUse& b) { return a.span < b.span; });
    for (const Gap& gap : report.gaps) {
        if (gap.cause != IdleCause::Collective || gap.blamed == noSpan) continue;
        const auto use = std::lower_bound(out.uses.begin(), out.uses.end(), gap.blamed,
                                          [](const CollectiveUse& one, SpanId id) { return one.span < id; });
        if (use == out.uses.end() || use->span != gap.blamed) continue;
        const Span& span = timeline.spans()[gap.blamed];
        const Nanos begin = std::max(gap.start, span.start), end = std::min(gap.end, span.end);
        if (begin >= end) continue;
        use->awaited += end - begin;
        out.exposed.push_back({gap.blamed, begin, end});
    }
    std::sort(out.exposed.begin(), out.exposed.end(), [](const ExposedPart& a, const ExposedPart& b) {
        return a.span != b.span ? a.span < b.span : a.begin < b.begin;
    });
    return out;
}

std::vector<RankCollectives> rankCollectives(const Timeline& timeline, int step, const Schedule* schedule,
                                             const CostModel* costs)
{
    std::vector<RankCollectives> out(static_cast<std::size_t>(std::max(0, timeline.ranks())));
    bool any = false;
    for (const Track& track : timeline.tracks()) {
        if (!isCollectiveLane(track.lane) && track.lane != Lane::Compute) continue;
        RankCollectives& rank = out[static_cast<std::size_t>(track.rank)];
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            if (span.step != step || isRelease(span.op.kind) ||
                (isCollectiveLane(track.lane) ? isTakenLater(timeline, span) : span.label != 0))
                continue;
            rank.gathers +=
                track.lane == Lane::Gather || (!isCollectiveLane(track.lane) && isGather(span.op.kind)) ? 1 : 0;
            rank.reductions +=
                track.lane == Lane::Reduce || (!isCollectiveLane(track.lane) && isReduction(span.op.kind)) ? 1 : 0;
        }
        any = any || rank.gathers > 0 || rank.reductions > 0;
    }
    if (!any) return {};
    for (std::size_t rank = 0; rank < out.size(); ++rank) {
        out[rank].gathered = countedBytes(timeline, step, static_cast<int>(rank), weightsReceived);
        out[rank].reduced = countedBytes(timeline, step, static_cast<int>(rank), gradientsReceived);
    }
    const auto shares = [](const std::vector<Op>& ops) {
        return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return isCollective(op.kind); });
    };
    const bool sized = schedule != nullptr && costs != nullptr && schedule->ranks == timeline.ranks() &&
                       std::any_of(schedule->order.begin(), schedule->order.end(), shares) &&
                       std::any_of(costs->memory.begin(), costs->memory.end(),
                                   [](const StageMemory& memory) { return memory.weight > 0; });
    if (!sized) return out;
    const std::vector<CollectiveVolume> volumes = collectiveVolumes(*schedule, *costs);
    for (std::size_t rank = 0; rank < out.size() && rank < volumes.size(); ++rank) {
        if (!out[rank].gathered) out[rank].gathered = volumes[rank].gathered;
        if (!out[rank].reduced) out[rank].reduced = volumes[rank].reduced;
    }
    return out;
}

std::vector<Counter> receivedCounters(const Run& run)
{
    const Timeline& timeline = *run.timeline;
    std::vector<Counter> out;
    for (const Counter& counter : timeline.counters())
        if (counter.name == weightsReceived || counter.name == gradientsReceived) out.push_back(counter);
    if (!out.empty() || timeline.steps() != 1) return out;
    const auto ranks = rankCollectives(timeline, 0, run.schedule.get(), run.costs ? &*run.costs : nullptr);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const auto mark = std::find_if(timeline.stepMarks().begin(), timeline.stepMarks().end(),
                                       [&](const StepMark& each) { return each.rank == static_cast<int>(rank); });
        if (mark == timeline.stepMarks().end()) continue;
        const auto add = [&](std::string_view name, const std::optional<Bytes>& bytes) {
            if (bytes)
                out.push_back(
                    {static_cast<int>(rank), std::string(name), "bytes", {{mark->end, static_cast<double>(*bytes)}}});
        };
        add(weightsReceived, ranks[rank].gathered);
        add(gradientsReceived, ranks[rank].reduced);
    }
    return out;
}

} // namespace stagewright
