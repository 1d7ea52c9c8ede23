#include "app/ui/runs/run_lanes.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "schedules/base/step_number.h"
#include "traces/report/range_report.h"
#include "traces/run/rank_places.h"
#include "widgets/timeline/run_panel.h"

namespace stagewright {
namespace {

Result<std::unique_ptr<RunFile>> fileOf(const LargeRun& large)
{
    return RunFile::open(large.ref.file.toStdString(), OpenMode::Read);
}

// What every part has, read once. null: it can't be read, which the part then says.
const Run* headerOf(const LargeRun& large, RunFile& file)
{
    std::call_once(large.headerOnce, [&] {
        if (auto header = file.readHeader(large.ref.id)) large.header = std::make_shared<const Run>(std::move(*header));
    });
    return large.header.get();
}

// If no step's spans are loaded: figures from the lanes. Idle time as a whole, without causes.
RunReport figuresOf(const LargeRun& large, const TimelinePanel& lanes)
{
    RunReport figures;
    BubbleReport& report = figures.bubbles;
    report.windowBegin = large.content.begin;
    report.windowEnd = large.content.end;
    report.bubbleFraction = lanes.bubbleFraction;
    figures.spans = static_cast<std::size_t>(std::max<std::int64_t>(0, large.content.info.spanCount));
    const auto window = static_cast<double>(report.makespan());
    for (const PanelRank& rank : lanes.ranks) {
        RankBubbles row;
        row.busy = static_cast<Nanos>(rank.busyFraction * window);
        row.idle = report.makespan() - row.busy;
        report.busy += row.busy;
        report.idle += row.idle;
        report.ranks.push_back(row);
        if (rank.activations.points.empty()) continue;
        figures.memory.emplace_back().activations() = rank.activations.peak;
    }
    if (figures.memory.size() != lanes.ranks.size()) figures.memory.clear();
    return figures;
}

std::shared_ptr<RunView> undetailed(const LargeRun& large, const TimelinePanel& lanes)
{
    auto view = std::make_shared<RunView>();
    auto run = std::make_shared<Run>();
    run->info = large.content.info;
    run->schedule = large.content.schedule;
    run->metrics = large.content.metrics;
    run->timeline = lanes.timeline;
    view->run = std::move(run);
    view->ref = large.ref;
    view->step = large.median;
    view->figures = std::make_shared<const RunReport>(figuresOf(large, lanes));
    view->partial = true;
    return view;
}

std::shared_ptr<const RunView> withPanel(const LargeRun& large, const std::shared_ptr<const RunView>& detail,
                                         const TimelinePanel& lanes, qint64 damaged)
{
    auto view = detail ? std::make_shared<RunView>(*detail) : undetailed(large, lanes);
    if (damaged > view->run->info.damagedBlocks) {
        auto run = std::make_shared<Run>(*view->run);
        run->info.damagedBlocks = damaged;
        view->run = std::move(run);
    }
    view->stepCount = large.steps.back().step + 1;
    view->median = large.median;
    view->steps = ShownSteps{0, view->stepCount - 1};
    view->panel = detail ? withDetails(lanes, *detail->panel) : std::make_shared<const TimelinePanel>(lanes);
    return view;
}

} // namespace

LargeLimits largeLimits()
{
    LargeLimits limits;
    const QByteArray text = qgetenv("STAGEWRIGHT_LARGE_RUN");
    long long whole = 0, step = 0, lanes = 0, excerpt = 0;
    if (std::sscanf(text.constData(), "%lld,%lld,%lld,%lld", &whole, &step, &lanes, &excerpt) == 4 && whole > 0 &&
        step > 0 && lanes >= 0 && excerpt > 0)
        limits = {whole, step, lanes, excerpt, limits.buckets};
    return limits;
}

qint64 LargeRun::spansIn(Nanos begin, Nanos end) const
{
    double spans = 0;
    for (const RunFile::BlockBounds& block : blocks) {
        if (block.begin >= end || block.end <= begin) continue;
        const Nanos inside = std::min(block.end, end) - std::max(block.begin, begin);
        spans += static_cast<double>(block.spans) * static_cast<double>(inside) /
                 static_cast<double>(std::max<Nanos>(1, block.end - block.begin));
    }
    return static_cast<qint64>(spans);
}

Result<std::shared_ptr<const LargeRun>> openLargeRun(const RunRef& ref)
{
    STAGEWRIGHT_TRY(auto file, RunFile::open(ref.file.toStdString(), OpenMode::Read));
    STAGEWRIGHT_TRY(auto content, file->content(ref.id));
    STAGEWRIGHT_TRY(auto blocks, file->blocks(ref.id));
    STAGEWRIGHT_TRY(auto steps, file->steps(ref.id));
    if (steps.empty())
        return fail(ErrorCode::Invalid, "run " + content.info.name + " has no complete step",
                    "record it again, or choose another run");
    auto large = std::make_shared<LargeRun>();
    large->ref = ref;
    large->content = std::move(content);
    large->steps = std::move(steps);
    std::vector<std::pair<Nanos, Nanos>> bounds(static_cast<std::size_t>(large->steps.back().step) + 1, {0, -1});
    for (const RunFile::StepBounds& step : large->steps) {
        bounds[static_cast<std::size_t>(step.step)] = {step.begin, step.end};
        large->longest = std::max<qint64>(large->longest, step.spans);
    }
    large->limits = largeLimits();
    if (!large->detailed()) large->blocks = std::move(blocks);
    large->median = representativeStep(bounds, large->content.metrics, large->content.info.warmupSteps);
    return std::shared_ptr<const LargeRun>(std::move(large));
}

Result<std::shared_ptr<const RunView>> readStepView(const LargeRun& large, int step, const ViewChoices& choices)
{
    STAGEWRIGHT_TRY(auto file, fileOf(large));
    const int wanted = step < 0 ? large.median : std::min(step, large.steps.back().step);
    STAGEWRIGHT_TRY(auto run, file->readStep(large.ref.id, wanted));
    auto made = makeRunView(large.ref, std::make_shared<const Run>(std::move(run)), wanted, choices);
    if (!made) return made;
    auto view = std::make_shared<RunView>(**made);
    view->stepCount = large.steps.back().step + 1;
    view->median = large.median;
    view->large = true;
    return std::shared_ptr<const RunView>(std::move(view));
}

Result<std::shared_ptr<const RunView>> readOverviewView(const LargeRun& large,
                                                        const std::shared_ptr<const RunView>& detail, bool fine)
{
    STAGEWRIGHT_TRY(auto file, fileOf(large));
    STAGEWRIGHT_TRY(auto overview,
                    file->overview(large.ref.id, overviewBuckets(large.content, fine ? large.limits.buckets : 0),
                                   overviewLane(large.content)));
    const auto panel = overviewPanel(large.content, large.steps, overview, runTitle(large.content.info));
    return withPanel(large, detail, *panel, 0);
}

Result<RunLanes> readLanes(const LargeRun& large, bool kernelsByClass, const Progress& progress)
{
    STAGEWRIGHT_TRY(auto file, fileOf(large));
    // It may have grown since, but must be the same run.
    STAGEWRIGHT_TRY(const auto now, file->content(large.ref.id));
    if (now.tracks.size() < large.content.tracks.size() || now.info.spanCount < large.content.info.spanCount)
        return fail(ErrorCode::Unreadable,
                    "file " + large.ref.file.toStdString() + ": run " + std::to_string(large.ref.id) +
                        " has changed: " + std::to_string(now.info.spanCount) + " spans, " +
                        std::to_string(large.content.info.spanCount) + " when it was opened",
                    "read the file again");
    RunPanelBuilder builder(large.content, large.steps, runTitle(large.content.info));
    builder.setKernelsByClass(kernelsByClass);
    STAGEWRIGHT_TRY(const auto spans, file->streamSpans(
                                          large.ref.id,
                                          [&](const RunFile::SpanBlock& block) {
                                              if (block.track < large.content.tracks.size()) builder.add(block);
                                              return true;
                                          },
                                          progress));
    STAGEWRIGHT_TRY(const auto memory, file->streamMemory(
                                           large.ref.id,
                                           [&](std::span<const MemoryEvent> events) {
                                               builder.addMemory(events);
                                               return true;
                                           },
                                           progress));
    return RunLanes{builder.build(), spans + memory};
}

std::shared_ptr<const RunView> everyStepView(const LargeRun& large, const RunLanes& lanes,
                                             const std::shared_ptr<const RunView>& detail)
{
    return withPanel(large, detail, *lanes.panel, lanes.damagedBlocks);
}

Result<std::shared_ptr<const RunView>> readExcerptView(const LargeRun& large, const TimelinePanel& base, Nanos begin,
                                                       Nanos end, const ViewChoices& choices, const Progress& progress)
{
    STAGEWRIGHT_TRY(auto file, fileOf(large));
    Nanos beside = std::max<Nanos>(1, (end - begin) / 4);
    // a close view's neighbours are further away
    const qint64 enough = std::min<qint64>(20'000, large.limits.excerpt / 10);
    while (beside < large.content.end - large.content.begin && large.spansIn(begin - beside, end + beside) < enough)
        beside *= 2;
    std::vector<RunFile::BlockBounds> rows;
    for (const RunFile::BlockBounds& block : large.blocks)
        if (block.begin < end + beside && block.end > begin - beside) rows.push_back(block);
    if (rows.empty())
        return fail(ErrorCode::Invalid, "nothing ran in the part of the run in view", "move to a part with ops");
    STAGEWRIGHT_TRY(
        auto run, file->readRange(large.ref.id, begin - beside, end + beside, progress, rows, headerOf(large, *file)));
    if (!run.timeline || run.timeline->empty())
        return fail(ErrorCode::Invalid, "nothing ran in the part of the run in view", "move to a part with ops");
    auto view = std::make_shared<RunView>();
    const Timeline& timeline = *run.timeline;
    std::map<int, qint64> spans; // in view, by step
    for (const Span& span : timeline.spans())
        // what is in no step is shown with the first one's figures
        if (span.start < end && span.end > begin) ++spans[std::max(0, span.step)];
    if (spans.empty())
        return fail(ErrorCode::Invalid, "nothing ran in the part of the run in view", "move to a part with ops");
    view->ref = large.ref;
    view->step = std::max_element(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
                     return a.second < b.second;
                 })->first;
    const auto memoryCap = choices.budget.of({timeline.timeUnit(), timeline.memoryUnit()});
    STAGEWRIGHT_TRY(auto whole, reportOf(run, {.step = view->step, .memoryCap = memoryCap, .withoutSteps = true}));
    view->figures = std::make_shared<const RunReport>(reportIn(whole, timeline, begin, end));
    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
    PanelOptions options;
    options.step = view->step;
    options.name = runTitle(run.info);
    options.memoryCap = memoryCap;
    options.report = &whole;
    options.kernelsByClass = choices.kernelsByClass;
    options.places = placesOf(run);
    if (!large.keepsLanes()) options.axis = PanelAxis{base.origin, base.duration, base.steps};
    const auto detail = makePanel(run.timeline, options);
    view->panel = large.keepsLanes() ? withDetails(base, *detail) : detail;
    view->steps = ShownSteps{0, large.steps.back().step};
    view->stepCount = large.steps.back().step + 1;
    view->median = large.median;
    view->large = true;
    view->excerpt = TimeRange{begin, end};
    view->run = std::make_shared<const Run>(std::move(run));
    return std::shared_ptr<const RunView>(std::move(view));
}

Result<int> findStep(const LargeRun& large, const OpQuery& query, int from, bool backward, const Progress& progress)
{
    STAGEWRIGHT_TRY(auto file, fileOf(large));
    TimelineBuilder builder(large.content.info.provenance, large.content.info.clock, large.content.info.ranks);
    builder.setUnits(large.content.timeUnit, large.content.memoryUnit);
    // Labels are numbered as in the file, where a text is there once for each shape.
    for (std::size_t label = 1; label < large.content.labels.size(); ++label)
        (void)builder.intern(large.content.labels[label], std::to_string(label));
    STAGEWRIGHT_TRY(const auto names, builder.build());
    int nearest = -1, around = -1; // beyond `from`; from the other end
    STAGEWRIGHT_CHECK(file->streamSpans(
        large.ref.id,
        [&](const RunFile::SpanBlock& block) {
            if (block.step == outsideSteps) return true;
            const bool beyond = backward ? block.step < from : block.step > from;
            int& best = beyond ? nearest : around;
            const bool better = best < 0 || (backward ? block.step > best : block.step < best);
            if (!better || block.track >= large.content.tracks.size()) return true;
            const Track& track = large.content.tracks[block.track];
            for (const Span& span : block.spans) {
                if (span.label >= large.content.labels.size() || !query.matches(*names, track, span)) continue;
                best = block.step;
                break;
            }
            return backward || nearest < 0; // steps come in order
        },
        progress));
    return nearest >= 0 ? nearest : around;
}

} // namespace stagewright
