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
#include "schedules/model/collective_costs.h"
#include "schedules/text/link_text.h"
#include "schedules/timeline/message_view.h"
#include "traces/analysis/step_context.h"
#include "traces/run/run_facts.h"
#include "traces/step/whole_step.h"

namespace stagewright {

namespace {

// of a rank's time in one step compared with its median, beyond the change of all ranks
constexpr double slowStepFactor = 1.25;
constexpr std::size_t mostSlowSteps = 4;
constexpr std::size_t fewestSteps = 3; // for a median over steps

std::vector<std::pair<int, int>> emulatedLinks(const Run& run)
{
    std::vector<std::pair<int, int>> out;
    if (const auto asked = parsePerturbation(configured(run, "perturb"), std::max(1, run.info.ranks)))
        for (const auto& link : asked->links)
            out.emplace_back(std::min(link.from, link.to), std::max(link.from, link.to));
    return out;
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
    const double opsOfRank =
        static_cast<double>(std::max<std::size_t>(1, subject.schedule.opCount())) / static_cast<double>(ranks);
    const double jitter = subject.costs.jitter;
    const double threshold =
        std::max(slowStepFactor, 1 + 4 * std::sqrt(std::expm1(jitter * jitter) / std::max(1.0, opsOfRank)));
    std::vector<std::pair<double, SlowStep>> found; // by time lost
    for (std::size_t step = 0; step < present.size(); ++step) {
        std::vector<double> all;
        for (std::size_t rank = 0; rank < ranks; ++rank) all.push_back(factor[rank][step]);
        const double machine = std::max(1.0, lowerMedian(all));
        for (std::size_t rank = 0; rank < ranks; ++rank)
            if (all[rank] > threshold * machine)
                found.push_back({(all[rank] - 1) * static_cast<double>(usual[rank]),
                                 {static_cast<int>(rank), present[step], all[rank], false}});
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
        if (transient.step == step + 1 && transient.factor > 1)
            out.push_back({transient.rank, step, transient.factor, true});
    return out;
}

// What the buckets of a reduction add to it, by stage: each takes the latency of its own steps. By the formulas of
// docs/numbers.md over the link that was asked for.
std::vector<Nanos> bucketingOf(const Run& run, const LeverSubject& subject)
{
    const auto bucket = wholeOf<Bytes>(configured(run, "bucket_bytes"));
    if (!bucket || *bucket <= 0) return {};
    CostModel bucketed = subject.costs;
    if (auto sharding = parseSharding(configured(run, "shard"))) bucketed.sharding = std::move(*sharding);
    bucketed.sharding.bucket = *bucket;
    CollectiveCosts collectives;
    if (auto way = parseCollectives(configured(run, "collectives"))) collectives = way->costs;
    collectives.within = run.info.provenance == Provenance::Simulated
                             ? subject.costs.links.all
                             : askedLink(run).value_or(subject.costs.links.all);
    CostModel whole = bucketed;
    whole.sharding.bucket = 0;
    setCollectiveTimes(bucketed, subject.schedule, collectives);
    setCollectiveTimes(whole, subject.schedule, collectives);
    std::vector<Nanos> out;
    for (int stage = 0; stage < subject.costs.stages(); ++stage)
        out.push_back(bucketed.reduction(stage, -1) - whole.reduction(stage, -1));
    return out;
}

} // namespace

Result<LeverSubject> leverSubjectOf(const StepContext& context)
{
    const Run& run = context.run();
    const int step = context.step();
    STAGEWRIGHT_TRY(auto executed, context.executed());
    LeverSubject out;
    out.step = step;
    out.costs = std::move(executed.costs);
    out.schedule = std::move(executed.schedule);
    out.channels = executed.channels;
    out.lowering = executed.lowering;
    if (out.schedule.opCount() > mostLeverOps)
        return fail(ErrorCode::Usage,
                    fmt::format("a step of {} ops is too large to simulate here, at most {} are simulated",
                                out.schedule.opCount(), mostLeverOps));
    if (out.costs.stages() < out.schedule.stages)
        return fail(ErrorCode::Usage, fmt::format("the run's costs are for {} stages, its schedule has {}",
                                                  out.costs.stages(), out.schedule.stages));
    out.cap = context.options().memoryCap;
    out.emulatedLinks = emulatedLinks(run);
    out.noArrivals = whyNoArrivals(*run.timeline);
    out.slowSteps = run.info.provenance == Provenance::Simulated ? askedSlowSteps(run, step) : slowStepsOf(run, out);
    if (!context.ops().empty()) {
        const StepExtent whole = wholeStep(*run.timeline, step);
        out.measured = whole.length();
        if (run.info.provenance != Provenance::Simulated)
            out.behind = whole.length() - listedStep(*run.timeline, step, *run.schedule).length();
    }
    out.layers = wholesOf(configured(run, "stage_layers")).value_or(std::vector<int>());
    out.bucketing = bucketingOf(run, out);
    if (context.bubbles()) out.idle = context.bubbles()->byCause;
    return out;
}

} // namespace stagewright
