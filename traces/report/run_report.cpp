#include "traces/report/run_report.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/slow_replicas.h"
#include "traces/run/run_facts.h"

namespace stagewright {

std::string_view meaningOfFigure(std::string_view key)
{
    if (key == "whole_step")
        return "from the start of the first op, gather or reduction of any rank to the end of the last, the optimizer "
               "included";
    if (key == "makespan") return "from the start of the first to the end of the last busy span over all ranks";
    if (key == "span") return "the longest time of a rank from its first op to its last";
    if (key == "bubble_fraction") return "idle time over all ranks ÷ (ranks × the time of the ops)";
    if (key == "peak_activation") return "the highest of any rank at any time in the step";
    if (key == "weight_bytes") return "bytes of weights held by the rank that holds most";
    if (key == "overlap.messages") return "messages between ranks in this step: activations and gradients";
    if (key.starts_with("overlap."))
        return "a transfer lasts from its producer's end to its arrival; it is hidden while the receiving rank is "
               "busy, "
               "exposed while it is not";
    if (key.starts_with("sharing.gather"))
        return "how often a rank gathers a stage's weights from the ranks that share it, and the bytes it receives in "
               "them; of the rank with the most";
    if (key.starts_with("sharing.reduc"))
        return "how often a rank sums a stage's gradients with the ranks that share it, and the bytes it receives in "
               "them; of the rank with the most";
    if (key == "sharing.hidden_time")
        return "time of gathers and reductions in which their rank runs an op or, without ops, a kernel that computes";
    if (key == "sharing.exposed_time")
        return "time of gathers and reductions that their rank waits for, or that is before the first or after the "
               "last "
               "op of the step; what the timeline hatches";
    if (key == "sharing.awaited_time") return "the exposed time between the ops: idle time that waits for them";
    return key == "sharing.outside_time" ? "the exposed time before the first and after the last op of the step" : "";
}

ColumnKind kindOfSample(std::string_view key)
{
    if (key == "peak_activation") return ColumnKind::Size;
    return key.starts_with("bubble_") ? ColumnKind::Share : ColumnKind::Time;
}

namespace {

// "median of 8 steps 28.7 ms, 95 %: 28.1 ms to 29.4 ms"; below six steps "from 28.1 ms to 29.4 ms".
std::string sampleText(const StepSamples& samples, std::string_view key, const Units& units)
{
    const FigureSample* sample = samples.find(key);
    if (sample == nullptr) return {};
    if (sample->low == sample->high) return fmt::format("the same in {}", counted(sample->steps, "step"));
    const document::Column column({{}, {}, ColumnKind::Real});
    const auto text = [&](double value) {
        return textOf(column, {{}, document::Tone::Plain, kindOfSample(key)}, value, units);
    };
    return fmt::format("median of {} {}, {}{} to {}", counted(sample->steps, "step"), text(sample->median),
                       sample->interval() ? "95 %: " : "from ", text(sample->low), text(sample->high));
}

} // namespace

std::vector<Bytes> RunReport::peaks(MemoryCategory category) const
{
    std::vector<Bytes> out;
    for (const RankMemory& rank : memory) out.push_back(rank.peak[static_cast<std::size_t>(category)]);
    return out;
}

Bytes RunReport::largestPeak(MemoryCategory category) const
{
    const auto of = peaks(category);
    return of.empty() ? 0 : std::max<Bytes>(0, *std::max_element(of.begin(), of.end()));
}

std::optional<Nanos> RunReport::linkLatency() const
{
    return costs && costs->links.overrides.empty() && bubbles.noArrivals.empty()
               ? std::optional(costs->links.all.latency)
               : std::nullopt;
}

// Adds figures by rank and their largest value; they are parts of the group "sharing".
void RunReport::addCollectives(std::vector<document::Figure>& out) const
{
    const auto add = [&](const char* key, const char* title, ColumnKind kind, const auto& of,
                         const char* unknown = "") {
        document::Figure figure{key, title, kind, 0, {}, "Collectives", unknown};
        for (const RankCollectives& rank : collectives) figure.byRank.push_back(static_cast<double>(of(rank)));
        if (figure.unknown.empty()) figure.value = *std::max_element(figure.byRank.begin(), figure.byRank.end());
        if (!figure.unknown.empty()) figure.byRank.clear();
        out.push_back(std::move(figure));
    };
    const char* unsized =
        collectives.front().gathered ? "" : "the sizes of the stages' weights and gradients are not known";
    add("sharing.gathers", "Gathers a step", ColumnKind::Count,
        [](const RankCollectives& rank) { return rank.gathers; });
    add("sharing.reductions", "Reductions a step", ColumnKind::Count,
        [](const RankCollectives& rank) { return rank.reductions; });
    add(
        "sharing.gathered_bytes", "Received in gathers", ColumnKind::Size,
        [](const RankCollectives& rank) { return rank.gathered.value_or(0); }, unsized);
    add(
        "sharing.reduced_bytes", "Received in reductions", ColumnKind::Size,
        [](const RankCollectives& rank) { return rank.reduced.value_or(0); }, unsized);
    Nanos hidden = 0, awaited = 0, outside = 0;
    for (const CollectiveUse& use : collectiveUses.uses)
        hidden += use.hidden, awaited += use.awaited, outside += use.outside;
    for (const auto& [key, title, time] :
         {std::tuple("sharing.hidden_time", "Hidden gathers and reductions", hidden),
          std::tuple("sharing.exposed_time", "Exposed gathers and reductions", awaited + outside),
          std::tuple("sharing.awaited_time", "Exposed between the ops", awaited),
          std::tuple("sharing.outside_time", "Exposed outside the ops", outside)})
        out.push_back({key,
                       title,
                       ColumnKind::Time,
                       static_cast<double>(time),
                       {},
                       "Collectives",
                       collectiveUses.uses.empty() ? "none runs beside compute" : ""});
}

std::vector<document::Figure> RunReport::figures() const
{
    std::vector<document::Figure> out;
    const auto add = [&](std::string key, std::string title, ColumnKind kind, double value,
                         const char* formula) -> document::Figure& {
        return out.emplace_back(document::Figure{std::move(key), std::move(title), kind, value, {}, formula, {}});
    };
    const auto time = [&](std::string key, std::string title, Nanos value, const char* formula) -> document::Figure& {
        return add(std::move(key), std::move(title), ColumnKind::Time, static_cast<double>(value), formula);
    };
    // Without ops only what the trace itself names; a memory snapshot names nothing.
    const bool used =
        noOps.empty() ? !memory.empty() : std::any_of(memory.begin(), memory.end(), [](const RankMemory& rank) {
            for (std::size_t c = 0; c < memoryCategoryCount; ++c)
                if (static_cast<MemoryCategory>(c) != MemoryCategory::Workspace && rank.peak[c] > 0) return true;
            return false;
        });
    const auto peak = [&](const char* key, const char* title, MemoryCategory category) {
        document::Figure& figure =
            add(key, title, ColumnKind::Size, static_cast<double>(largestPeak(category)), "Memory");
        for (const Bytes bytes : peaks(category)) figure.byRank.push_back(static_cast<double>(bytes));
        if (!used) figure.unknown = noMemory.empty() ? std::string(noMemoryUses) : noMemory;
    };
    time("whole_step", "Step time", bubbles.stepTime(), "A step");
    time("makespan", bubbles.outside() > 0 ? "Its ops alone" : "Step time", bubbles.makespan(), "A step");
    time("span", "Span of a rank", bubbles.span, "A step");
    add("bubble_fraction", "Bubble ratio", ColumnKind::Share, bubbles.bubbleFraction, "Bubble");
    add("bubble_rate_span", "Bubble in the span", ColumnKind::Share, bubbles.bubbleRateSpan, "Bubble");
    peak("peak_activation", "Peak activation", MemoryCategory::Activations);
    time("busy", "Busy", bubbles.busy, "A step");
    Nanos contention = 0;
    std::array<Nanos, opKindRoom> byKind{};
    for (const RankBubbles& rank : bubbles.ranks) {
        contention += rank.contention;
        for (std::size_t k = 0; k < byKind.size(); ++k) byKind[k] += rank.busyByKind[k];
    }
    for (const KindTraits& rule : allKinds())
        if (rule.busy)
            time(fmt::format("busy_by_kind.{}", rule.text), fmt::format("Busy: {}", rule.title),
                 byKind[static_cast<std::size_t>(rule.kind)], "A step");
    time("busy_by_cause.processing", "Busy: processing", bubbles.busy - contention, "Contention");
    document::Figure& off = time("busy_by_cause.contention", "Busy: contention", contention, "Contention");
    if (!cpuTime) off.unknown = "the run doesn't say how long its ops were on the processor";
    time("idle", "Idle", bubbles.idle, "Bubble");
    for (std::size_t c = 0; c < idleCauseCount; ++c) {
        const auto cause = static_cast<IdleCause>(c);
        document::Figure& part = time("idle_by_cause." + std::string(toText(cause)),
                                      fmt::format("Idle: {}", titleOf(cause)), bubbles.byCause[c], "Idle by cause");
        if (!bubbles.knows(cause)) part.unknown = bubbles.noArrivals;
    }
    const auto noArrivals = out.size();
    time("overlap.comm_time", "Communication", overlap.commTime, "Communication");
    time("overlap.hidden_time", "Hidden communication", overlap.hiddenTime, "Communication");
    time("overlap.exposed_time", "Exposed communication", overlap.exposedTime, "Communication");
    add("overlap.messages", "Messages", ColumnKind::Count, static_cast<double>(overlap.messages), "Communication");
    if (!bubbles.noArrivals.empty())
        for (std::size_t i = noArrivals; i < out.size(); ++i) out[i].unknown = bubbles.noArrivals;
    peak("weight_bytes", "Weights", MemoryCategory::Weights);
    if (!collectives.empty()) addCollectives(out);
    for (document::Figure& figure : out) {
        if (bubbles.partial &&
            (figure.key == "bubble_fraction" || figure.key == "bubble_rate_span" || figure.key == "idle"))
            figure.unknown = bubbles.noArrivals;
        if (!noOps.empty() && figure.kind != ColumnKind::Size) figure.unknown = noOps;
        figure.meaning = meaningOfFigure(figure.key);
        figure.moreIsBetter = figure.key.ends_with(".hidden_time");
        figure.summed = figure.key != "whole_step" && figure.key != "makespan" && figure.key != "span";
    }
    const auto sampled = [&](std::string_view key, std::string_view sample, const char* before = "") {
        const auto figure = std::find_if(out.begin(), out.end(), [key](const auto& one) { return one.key == key; });
        if (const std::string text = sampleText(overSteps, sample, units); !text.empty()) figure->note = before + text;
    };
    for (const char* key : {"whole_step", "makespan", "span", "bubble_fraction"}) sampled(key, key);
    sampled("peak_activation", "peak_activation", "the fullest rank: ");
    sampled("overlap.exposed_time", "exposed_time");
    return out;
}

std::vector<std::string> RunReport::sentences() const
{
    std::vector<std::string> out;
    if (noOps.empty() && bubbles.partial)
        out.push_back(bubbles.noArrivals + ": bubbles, messages and the critical path of the job are unknown");
    else if (noOps.empty() && !bubbles.noArrivals.empty())
        out.push_back(bubbles.noArrivals +
                      ": inputs count as there once they were made, and the time of messages is in Launch");
    if (std::string straggler = stragglerSentence(bubbles, units.time); !straggler.empty())
        out.push_back(std::move(straggler));
    if (!slowReplicas.empty()) out.push_back(slowReplicas);
    return out;
}

namespace {

std::string whyWithoutOps(const StepContext& context)
{
    const Timeline& timeline = context.timeline();
    if (!context.ops().empty()) return {};
    if (timeline.steps() == 0) return "the run has no complete step";
    return hasOps(timeline) ? fmt::format("step {} has no ops", stepNumber(context.step()))
                            : std::string(whyNoOps(timeline));
}

} // namespace

Result<std::shared_ptr<const StepContext>> contextOf(const Run& run, const ReportOptions& options)
{
    if (!run.timeline)
        return fail(ErrorCode::Invalid, fmt::format("run {} has no timeline", run.info.name), "record it again");
    const int steps = run.timeline->steps();
    if (options.step >= std::max(1, steps))
        return fail(
            ErrorCode::Usage,
            fmt::format("there is no step {}; the run has {}", stepNumber(options.step), counted(steps, "step")),
            steps > 0 ? fmt::format("steps are 1 to {}, warm-up included", steps) : std::string());
    if (steps == 0 && !options.withoutSteps)
        return fail(ErrorCode::Invalid, "the run has no complete step", "record it again with more steps");
    const int step = options.step >= 0 ? options.step : std::clamp(run.representativeStep(), 0, std::max(0, steps - 1));
    const bool capped = options.memoryCap || options.ownCap;
    return std::make_shared<const StepContext>(
        run, step, capped ? bubbleOptionsOf(run, options.memoryCap) : BubbleOptions{}, options.stop);
}

Result<RunReport> reportOf(const Run& run, const ReportOptions& options)
{
    STAGEWRIGHT_TRY(const auto context, contextOf(run, options));
    return reportOf(*context, options);
}

Result<RunReport> reportOf(const StepContext& context, const ReportOptions& options)
{
    const Run& run = context.run();
    const Timeline& timeline = context.timeline();
    const auto cancelled = [&context] { return context.stop().stop_requested(); };
    RunReport report;
    report.step = context.step();
    report.units = {timeline.timeUnit(), timeline.memoryUnit()};
    report.cpuTime = timeline.hasCpuTime();
    report.simulated = run.info.provenance == Provenance::Simulated;
    report.memoryCap = context.options().memoryCap;
    report.schedule = run.schedule;
    if (!report.schedule)
        if (auto read = scheduleOfRun(run)) report.schedule = std::make_shared<const Schedule>(std::move(*read));
    if (context.costs()) report.costs = *context.costs();
    STAGEWRIGHT_TRY(report.bubbles, context.bubbles());
    if (cancelled()) return fail(ErrorCode::Cancelled, "the report was cancelled");
    report.noOps = whyWithoutOps(context);
    if (hasKernels(timeline) && !report.noOps.empty())
        for (const AnalysisInfo* analysis : allAnalyses())
            if (analysis->part == ReportPart::Device) report.devices.push_back(reportTable(*analysis, context));
    report.overlap = context.overlap();
    report.collectives =
        rankCollectives(timeline, report.step, report.schedule.get(), report.costs ? &*report.costs : nullptr);
    report.collectiveUses = collectiveUses(timeline, report.bubbles);
    report.slowReplicas = slowReplicaSentence(timeline, report.step);
    report.criticalPath = context.criticalPath();
    report.noMemory = whyNoMemory(run);
    if (!cancelled()) report.memory = context.memory();
    for (const Track& track : timeline.tracks()) {
        const auto [first, last] = timeline.stepRange(track, report.step);
        for (SpanId id = first; id < last; ++id) report.spans += timeline.spans()[id].step == report.step ? 1U : 0U;
    }
    if (options.levers) {
        report.levers = leversOf(context);
        report.overSteps = sampleSteps(context);
    }
    if (cancelled()) return fail(ErrorCode::Cancelled, "the report was cancelled");
    if (options.baseline && report.schedule && report.costs)
        report.baseline = baselineOf(*report.schedule, *report.costs);
    return report;
}

Result<Schedule> scheduleOfRun(const Run& run)
{
    if (run.schedule) return *run.schedule;
    if (!run.timeline || run.timeline->empty())
        return fail(ErrorCode::Invalid, "run " + run.info.name + " holds no schedule and no spans", "record it again");
    return scheduleOf(*run.timeline, std::max(0, run.representativeStep()));
}

DeviceShare deviceShareOf(const Run& run)
{
    const std::string sharing = configured(run, "sharing");
    if (run.info.clock != "wall") return {};
    if (sharing == "partitions") return {DeviceShare::How::Partitions, 0};
    const int devices = wholeOf<int>(configured(run, "devices")).value_or(run.info.ranks);
    if (sharing != "queues" || devices >= run.info.ranks) return {};
    return {DeviceShare::How::Interleaved, devices};
}

std::string clockText(const Run& run)
{
    const std::string& clock = run.info.clock;
    if (clock == "virtual") return fmt::format("virtual clock: projected for {}", counted(run.info.ranks, "device"));
    if (clock == "wall") {
        const DeviceShare share = deviceShareOf(run);
        if (share.how == DeviceShare::How::Interleaved)
            return fmt::format("wall clock: {} interleaved on {}, ops slow each other down",
                               counted(run.info.ranks, "rank"), counted(share.devices, "GPU"));
        if (share.how == DeviceShare::How::Partitions)
            return "wall clock: each rank on a part of a GPU, slower than a whole one, memory bandwidth shared";
        return "wall clock";
    }
    if (clock == "model") {
        std::string text = "model time";
        if (run.costs && !run.costs->origin.empty()) text += ": " + run.costs->origin;
        return text;
    }
    return clock.empty() ? "clock unknown" : clock + " clock";
}

} // namespace stagewright
