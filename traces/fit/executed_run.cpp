#include "traces/fit/executed_run.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include <fmt/format.h>

#include "schedules/base/median.h"
#include "schedules/messages/channel_facts.h"
#include "schedules/messages/messages.h"
#include "schedules/timeline/message_view.h"
#include "traces/fit/fit_costs.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

// Where sides wait for each other, or messages for a channel, the time from a producer's end to the arrival is not the
// link's: that is how long messages were in transit, by pair of ranks the median over at most this many messages.
void setWireTimes(const Run& run, CostModel& costs)
{
    constexpr std::size_t mostMessages = 4096;
    const Timeline& timeline = *run.timeline;
    std::map<std::pair<int, int>, std::vector<Nanos>> times;
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Send) continue;
        std::size_t seen = 0;
        for (SpanId id = track.begin; id < track.end && seen < mostMessages; ++id) {
            if (timeline.spans()[id].step < run.info.warmupSteps) continue;
            const auto message = messageOfSend(timeline, id);
            if (!message || message->receive == noSpan) continue;
            times[{track.rank, timeline.trackOf(message->receive).rank}].push_back(message->arrival - message->begin);
            ++seen;
        }
    }
    for (auto& [ends, of] : times) costs.links.overrides[ends] = {std::max<Nanos>(0, lowerMedian(std::move(of))), 0};
}

// "5000 ns, 1000000000 bytes/s" as a recording keeps it.
std::optional<Link> emulatedLink(const std::string& text)
{
    long long latency = 0;
    double rate = 0;
    if (std::sscanf(text.c_str(), "%lld ns, %lf bytes/s", &latency, &rate) != 2 || latency < 0 || rate <= 0)
        return std::nullopt;
    return Link{latency, rate};
}

// A fitted link knows no bandwidth; a recording says which ones it emulated. Messages then share them again.
bool setEmulatedLinks(const Run& run, CostModel& costs)
{
    const auto all = emulatedLink(configured(run, "link"));
    if (!all || costs.source != CostSource::Fitted) return false;
    costs.links.all = *all;
    costs.links.overrides.clear();
    for (int from = 0; from < run.info.ranks; ++from)
        for (const int to : {from - 1, from + 1})
            if (const auto own = emulatedLink(configured(run, fmt::format("link_{}_{}", from, to))))
                costs.links.overrides[{from, to}] = *own;
    return true;
}

} // namespace

Schedule asExecuted(const Schedule& schedule, const Timeline& timeline)
{
    if (!overlapsOps(schedule)) return schedule;
    for (const Track& track : timeline.tracks()) {
        const auto spans = timeline.spansOf(track);
        if (track.lane != Lane::Compute) continue;
        for (std::size_t i = 1; i < spans.size(); ++i)
            if (spans[i].end > spans[i].start && spans[i].start == spans[i - 1].start &&
                spans[i].end == spans[i - 1].end)
                return schedule;
    }
    return serialised(schedule);
}

Result<ExecutedRun> executedRun(const Run& run)
{
    if (!run.schedule) return fail(ErrorCode::Usage, fmt::format("run {} has no schedule to simulate", run.info.name));
    STAGEWRIGHT_TRY(auto costs, costsOf(run));
    return executedRun(run, std::move(costs), CostsAre::Own);
}

Result<ExecutedRun> executedRun(const Run& run, CostModel costs, CostsAre whose)
{
    if (!run.schedule) return fail(ErrorCode::Usage, fmt::format("run {} has no schedule to simulate", run.info.name));
    const bool own = whose == CostsAre::Own;
    ExecutedRun out;
    out.schedule = asExecuted(*run.schedule, *run.timeline);
    out.costs = std::move(costs);
    const ChannelFacts facts = readChannelFacts([&](std::string_view key) { return configured(run, key); });
    out.channels = facts.channels;
    const bool emulated = own && run.info.provenance != Provenance::Simulated && setEmulatedLinks(run, out.costs);
    const bool given = isLowered(out.schedule);
    if (!given && out.channels.sends == SendMode::Buffered && !out.channels.limited()) return out;
    if (own && !emulated && run.info.provenance != Provenance::Simulated) setWireTimes(run, out.costs);
    out.lowering = facts.lowering;
    if (given) {
        if (!out.lowering) out.lowering = loweringOf(out.schedule);
        return out;
    }
    if (!out.lowering) out.lowering = Lowering{};
    STAGEWRIGHT_TRY(out.schedule, lower(out.schedule, *out.lowering));
    return out;
}

Result<ExecutedRun> usualRun(const Run& run)
{
    auto out = executedRun(run);
    if (out && out->costs.jitterSeed == 0) out->costs.jitter = 0;
    return out;
}

} // namespace stagewright
