// The inputs of simulating levers, taken from a run.
#include "traces/analysis/lever_subject.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "schedules/base/median.h"
#include "schedules/base/text.h"
#include "schedules/execute/perturb.h"
#include "schedules/messages/messages.h"
#include "schedules/timeline/message_view.h"
#include "traces/analysis/levers.h"
#include "traces/fit/fit_costs.h"
#include "traces/fit/residuals.h"
#include "traces/run/run_facts.h"
#include "traces/step/step_ops.h"

namespace stagewright {

namespace {

constexpr std::size_t mostDraws = 16;
constexpr std::size_t mostDrawnOps = 200'000; // ops simulated for each lever, at most, over all draws
constexpr double slowStepFactor = 1.25;       // of a rank's time in one step compared with its median, beyond the change of all ranks
constexpr std::size_t mostSlowSteps = 4;
constexpr std::size_t fewestSteps = 3; // for a median over steps

int configuredNumber(const Run& run, std::string_view key)
{
    return wholeOf<int>(configured(run, key)).value_or(0);
}

// Where sides wait for each other, or messages for a channel, the time from a producer's end to the arrival is not the link's: that is
// how long messages were in transit, by pair of ranks the median over at most this many messages.
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
    for (auto& [ends, of] : times) {
        costs.links.overrides[ends] = {std::max<Nanos>(0, lowerMedian(std::move(of))), 0};
    }
}

std::vector<std::pair<int, int>> emulatedLinks(const Run& run)
{
    std::vector<std::pair<int, int>> out;
    if (const auto asked = parsePerturbation(configured(run, "perturb"), std::max(1, run.info.ranks)))
        for (const auto& link : asked->links) out.emplace_back(std::min(link.from, link.to), std::max(link.from, link.to));
    return out;
}

// Sends and receives matter where they wait: then they are in the lists.
Result<void> addChannels(const Run& run, LeverSubject& out)
{
    if (configured(run, "sends") == "rendezvous") out.channels.sends = SendMode::Rendezvous;
    out.channels.perDirection = configuredNumber(run, "channels");
    const bool given = isLowered(out.schedule);
    if (out.channels == Channels{} && !given) return {};
    if (run.info.provenance != Provenance::Simulated) setWireTimes(run, out.costs);
    const std::string rule = configured(run, "lowering");
    out.lowering = Lowering{};
    if (auto parsed = parseLowering(rule)) out.lowering = *parsed;
    out.channels.receives = receivesOf(out.lowering->rule);
    if (const std::string receives = configured(run, "receives"); !receives.empty())
        out.channels.receives = receives == "posted" ? ReceiveMode::Posted : ReceiveMode::Blocking;
    if (given) return {};
    auto lowered = lower(out.schedule, *out.lowering);
    if (!lowered) return tl::unexpected(std::move(lowered.error()));
    out.schedule = std::move(*lowered);
    return {};
}

// Busy time by measured step and rank, and its outliers.
std::vector<SlowStep> slowStepsOf(const Run& run, const LeverSubject& subject)
{
    const Timeline& timeline = *run.timeline;
    const int first = std::max(0, run.info.warmupSteps);
    const auto ranks = static_cast<std::size_t>(std::max(0, timeline.ranks()));
    if (ranks < 2) return {};
    std::vector<int> present; // a large run's timeline lacks most of its steps
    for (const StepMark& mark : timeline.stepMarks())
        if (mark.step >= first && (present.empty() || present.back() != mark.step)) present.push_back(mark.step);
    if (present.size() < fewestSteps) return {};
    std::vector<std::vector<Nanos>> busy(ranks, std::vector<Nanos>(present.size(), 0));
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute || track.rank < 0 || static_cast<std::size_t>(track.rank) >= ranks) continue;
        for (const Span& span : timeline.spansOf(track)) {
            if (span.step < first || !isBusyOp(span.op) || (span.flags & SpanDiscarded) != 0) continue;
            const auto place = std::lower_bound(present.begin(), present.end(), span.step) - present.begin();
            busy[static_cast<std::size_t>(track.rank)][static_cast<std::size_t>(place)] += span.duration();
        }
    }
    std::vector<std::vector<double>> factor(ranks, std::vector<double>(present.size(), 1.0));
    std::vector<Nanos> usual(ranks, 0);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        usual[rank] = lowerMedian(busy[rank]);
        for (std::size_t step = 0; step < factor[rank].size() && usual[rank] > 0; ++step)
            factor[rank][step] = static_cast<double>(busy[rank][step]) / static_cast<double>(usual[rank]);
    }
    // A rank's time in a step within four times its deviation under jitter does not make a slow step.
    const double opsOfRank = static_cast<double>(std::max<std::size_t>(1, subject.schedule.opCount())) / static_cast<double>(ranks);
    const double jitter = subject.costs.jitter;
    const double threshold = std::max(slowStepFactor, 1 + 4 * std::sqrt(std::expm1(jitter * jitter) / std::max(1.0, opsOfRank)));
    std::vector<std::pair<double, SlowStep>> found; // by time lost
    for (std::size_t step = 0; step < present.size(); ++step) {
        std::vector<double> all;
        for (std::size_t rank = 0; rank < ranks; ++rank) all.push_back(factor[rank][step]);
        const double machine = std::max(1.0, lowerMedian(all));
        for (std::size_t rank = 0; rank < ranks; ++rank)
            if (all[rank] > threshold * machine)
                found.push_back({(all[rank] - 1) * static_cast<double>(usual[rank]), {static_cast<int>(rank), present[step], all[rank], false}});
    }
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<SlowStep> out;
    for (std::size_t i = 0; i < std::min(found.size(), mostSlowSteps); ++i) out.push_back(found[i].second);
    return out;
}

// A simulation of one step can't show that a rank is slow only in it: its requested disturbances do.
std::vector<SlowStep> askedSlowSteps(const Run& run, int step)
{
    std::vector<SlowStep> out;
    const auto asked = parsePerturbation(configured(run, "perturb"), run.info.ranks);
    if (!asked) return out;
    for (const auto& transient : asked->transients)
        if (transient.step == step + 1 && transient.factor > 1) out.push_back({transient.rank, step, transient.factor, true});
    return out;
}

} // namespace

Result<LeverSubject> leverSubjectOf(const Run& run, int step, std::optional<Bytes> cap)
{
    if (!run.timeline) return fail(ErrorCode::Usage, fmt::format("run {} has no timeline", run.info.name));
    if (!run.schedule) return fail(ErrorCode::Usage, fmt::format("run {} has no schedule to simulate", run.info.name));
    auto costs = costsOf(run);
    if (!costs) return tl::unexpected(std::move(costs.error()));
    LeverSubject out;
    out.step = step;
    out.costs = std::move(*costs);
    out.schedule = asExecuted(*run.schedule, *run.timeline);
    if (out.schedule.opCount() > mostLeverOps)
        return fail(ErrorCode::Usage, fmt::format("a step of {} ops is too large to simulate here, at most {} are simulated", out.schedule.opCount(), mostLeverOps));
    if (out.costs.stages() < out.schedule.stages)
        return fail(ErrorCode::Usage, fmt::format("the run's costs are for {} stages, its schedule has {}", out.costs.stages(), out.schedule.stages));
    if (auto done = addChannels(run, out); !done) return tl::unexpected(std::move(done.error()));
    out.cap = cap ? cap : memoryCapOf(run);
    out.emulatedLinks = emulatedLinks(run);
    out.noArrivals = whyNoArrivals(*run.timeline);
    out.slowSteps = run.info.provenance == Provenance::Simulated ? askedSlowSteps(run, step) : slowStepsOf(run, out);
    out.seeds = {out.costs.jitterSeed};
    if (out.costs.jitter > 0 && run.info.provenance != Provenance::Simulated) {
        const std::size_t draws = std::clamp<std::size_t>(mostDrawnOps / std::max<std::size_t>(1, out.schedule.opCount()), 1, mostDraws);
        out.seeds.clear();
        for (std::size_t i = 1; i <= draws; ++i) out.seeds.push_back(i);
    }
    const StepOps ops(*run.timeline, step);
    out.measured = ops.empty() ? 0 : ops.windowEnd() - ops.windowBegin();
    return out;
}

} // namespace stagewright
