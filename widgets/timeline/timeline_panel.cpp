#include "widgets/timeline/timeline_panel.h"

#include <algorithm>
#include <limits>
#include <set>

#include <QCoreApplication>

#include "traces/analysis/collective_uses.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/step_context.h"
#include "traces/report/run_report.h"
#include "traces/step/step_ops.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/timeline/device_bar.h"
#include "widgets/timeline/list_place.h"
#include "widgets/timeline/rank_tints.h"

namespace stagewright {

namespace {

struct SpanSlice {
    SpanId first;
    SpanId last;
};
// A part of the track that holds every span of the steps shown.
SpanSlice shownOf(const Timeline& timeline, const Track& track, const TimelinePanel& panel)
{
    if (panel.step < 0 && static_cast<int>(panel.steps.size()) == timeline.steps()) return {track.begin, track.end};
    SpanSlice shown{track.end, track.begin};
    for (const PanelStep& one : panel.steps) {
        const auto [first, last] = timeline.stepRange(track, one.step);
        if (last <= first) continue;
        shown = {std::min(shown.first, first), std::max(shown.last, last)};
    }
    return shown.first < shown.last ? shown : SpanSlice{track.begin, track.begin};
}

void fillCommunication(PanelRank& row, const Timeline& timeline, const TimelinePanel& panel)
{
    for (const Track& track : timeline.tracks()) {
        if (track.rank != row.rank || !isMessageLane(track.lane)) continue;
        const SpanSlice shown = shownOf(timeline, track, panel);
        const auto spans = timeline.spans().subspan(shown.first, shown.last - shown.first);
        const std::vector<std::uint16_t> lanes = sublanes(spans);
        const std::size_t first = row.communication.size();
        for (std::size_t i = 0; i < spans.size(); ++i) {
            if (!panel.shows(spans[i].step)) continue;
            const std::size_t at = first + lanes[i];
            if (row.communication.size() <= at) row.communication.resize(at + 1);
            row.communication[at].append(spans[i], shown.first + static_cast<SpanId>(i), panel.origin);
        }
    }
}

// Work without its own op takes kind and microbatch of the op that launched it; otherwise it counts as other work.
Span ownedBy(const Timeline& timeline, SpanId id)
{
    Span span = timeline.spans()[id];
    if (span.label == 0 || !(span.op == Op{})) return span;
    const SpanId owner = ownerOf(timeline, id);
    span.op = owner != noSpan ? timeline.spans()[owner].op : makeFiller(0, 0);
    return span;
}

// The number at the end of a name: streams are in the order of their numbers.
int numberIn(const std::string& name)
{
    std::size_t end = name.find_last_of("0123456789");
    if (end == std::string::npos) return -1;
    std::size_t begin = end;
    while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
    return QString::fromStdString(name.substr(begin, end + 1 - begin)).toInt();
}

std::vector<std::uint16_t> sublanesOfCollectives(std::span<const Span> spans)
{
    std::vector<Span> shown;
    for (const Span& span : spans)
        if (!isRelease(span.op.kind)) shown.push_back(span);
    const std::vector<std::uint16_t> lanes = sublanes(shown);
    std::vector<std::uint16_t> out(spans.size(), 0);
    for (std::size_t i = 0, at = 0; i < spans.size(); ++i)
        if (!isRelease(spans[i].op.kind)) out[i] = lanes[at++];
    return out;
}

void markExposed(TimelinePanel& panel, const CollectiveUses& uses)
{
    for (const ExposedPart& part : uses.exposed) {
        const auto rank = static_cast<std::size_t>(panel.timeline->trackOf(part.span).rank);
        for (PanelLane& lane : panel.ranks[rank].lanes)
            if (isCollectiveLane(lane.lane) && lane.data.sliceOf(part.span) < lane.data.size())
                lane.exposed.push_back({panel.toAxis(part.begin), panel.toAxis(part.end)});
    }
}

// Steps may overlap, so each is marked with its own causes.
void markExposedBySteps(TimelinePanel& panel, std::optional<Bytes> memoryCap)
{
    const auto isShared = [](const PanelRank& rank) {
        return std::any_of(rank.lanes.begin(), rank.lanes.end(),
                           [](const PanelLane& lane) { return isCollectiveLane(lane.lane); });
    };
    if (std::none_of(panel.ranks.begin(), panel.ranks.end(), isShared)) return;
    for (const PanelStep& shown : panel.steps)
        if (const auto report = analyseBubbles(*panel.timeline, shown.step, BubbleOptions{memoryCap}))
            markExposed(panel, collectiveUses(*panel.timeline, *report));
    for (PanelRank& rank : panel.ranks)
        for (PanelLane& lane : rank.lanes)
            std::sort(lane.exposed.begin(), lane.exposed.end(),
                      [](const TimeSpan& a, const TimeSpan& b) { return a.begin < b.begin; });
}

void fillLanes(PanelRank& row, const Timeline& timeline, TimelinePanel& panel, KernelClasses& classes)
{
    std::vector<LaneTraits> rows(allLanes().begin(), allLanes().end());
    std::erase_if(rows, [](const LaneTraits& traits) { return traits.place == 0; });
    std::ranges::sort(rows, {}, &LaneTraits::place);
    for (const LaneTraits& traits : rows) {
        const Lane lane = traits.lane;
        std::vector<const Track*> tracks;
        for (const Track& track : timeline.tracks())
            if (track.rank == row.rank && track.lane == lane) tracks.push_back(&track);
        if (panel.noOps && lane != Lane::Other)
            std::stable_sort(tracks.begin(), tracks.end(),
                             [](const Track* a, const Track* b) { return numberIn(a->name) < numberIn(b->name); });
        for (const Track* track : tracks) {
            const SpanSlice shown = shownOf(timeline, *track, panel);
            const auto spans = timeline.spans().subspan(shown.first, shown.last - shown.first);
            const std::vector<std::uint16_t> lanes =
                isCollectiveLane(lane) ? sublanesOfCollectives(spans) : sublanes(spans);
            const std::size_t first = row.lanes.size();
            for (std::size_t i = 0; i < spans.size(); ++i) {
                if (!panel.shows(spans[i].step) || isRelease(spans[i].op.kind)) continue;
                const std::size_t at = first + lanes[i];
                while (row.lanes.size() <= at) {
                    row.lanes.push_back({lane, {}, track->name, {}});
                    row.lanes.back().data.setLook(lookOf(panel.byClass, lane));
                }
                const SpanId id = shown.first + static_cast<SpanId>(i);
                row.lanes[at].data.append(ownedBy(timeline, id), id, panel.origin, 0,
                                          inkOfWork(panel, *track, spans[i].label, timeline.labelOf(spans[i]),
                                                    timeline.shapeOf(spans[i]), classes));
            }
        }
    }
}

Nanos busyTime(const LaneData& lane)
{
    Nanos busy = 0;
    for (const Slice& slice : lane.slices()) {
        if (isBusy(slice.opKind())) busy += slice.end() - slice.begin();
    }
    return busy;
}

void noteLooks(TimelinePanel& panel, const LaneData& lane)
{
    for (const Slice& slice : lane.slices()) {
        panel.kinds |= 1u << slice.kind;
        panel.hasTints = panel.hasTints || slice.tint != 0;
        panel.hasPairs = panel.hasPairs || slice.upper != 0;
    }
}

// Steps, origin and duration. For one step or some of the steps: from the first start to the last end.
void setExtent(TimelinePanel& panel, int first, int last)
{
    const Timeline& timeline = *panel.timeline;
    std::vector<PanelStep>& steps = panel.steps;
    for (const StepMark& mark : timeline.stepMarks()) { // by step
        if (mark.step < first || mark.step > last) continue;
        if (steps.empty() || steps.back().step != mark.step) steps.push_back({mark.step, mark.begin, mark.end});
        steps.back().begin = std::min(steps.back().begin, mark.begin);
        steps.back().end = std::max(steps.back().end, mark.end);
    }
    const bool whole = panel.step < 0 && first <= 0 && last >= timeline.steps() - 1;
    if (whole) {
        panel.origin = timeline.begin();
        panel.duration = timeline.end() - timeline.begin();
    } else if (!steps.empty()) {
        Nanos end = steps.front().end;
        panel.origin = steps.front().begin;
        for (const PanelStep& one : steps) {
            panel.origin = std::min(panel.origin, one.begin);
            end = std::max(end, one.end);
        }
        panel.duration = end - panel.origin;
    }
    for (PanelStep& one : steps) {
        one.begin -= panel.origin;
        one.end -= panel.origin;
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const PanelStep& a, const PanelStep& b) { return a.begin < b.begin; });
}

} // namespace

QString laneTitle(const Track& track)
{
    QString name = shownName(track.name);
    const QString rank = u"rank %1 "_s.arg(track.rank);
    if (name.startsWith(rank)) name.remove(0, rank.size());
    if (name.endsWith(" on the device"_L1)) return u"ranges on the device"_s;
    // the stream above says which
    if (track.lane == Lane::Copy && name.startsWith("GPU "_L1)) name = name.mid(name.indexOf(u' ', 4) + 1);
    if (track.lane == Lane::Copy) return name.isEmpty() ? u"copies"_s : u"%1, copies"_s.arg(name);
    return name;
}

LaneLook lookOf(bool byClass, Lane lane)
{
    if (!byClass || lane == Lane::Wait || isBesideLane(lane)) return LaneLook::Ops;
    return lane == Lane::Other ? LaneLook::Ranges : LaneLook::Classes;
}

int inkOfWork(TimelinePanel& panel, const Track& track, std::uint32_t label, std::string_view name,
              std::string_view shape, KernelClasses& classes)
{
    switch (lookOf(panel.byClass, track.lane)) {
    case LaneLook::Ranges: return static_cast<int>(rangeInkOf(name));
    case LaneLook::Classes: {
        const auto of = static_cast<int>(classes.of(track, label, name, shape));
        panel.classes |= 1u << of;
        return of;
    }
    case LaneLook::Ops:
        if (isCollectiveLane(track.lane))
            return static_cast<int>((track.lane == Lane::Gather ? makeGather(0) : makeReduction(0)).kind);
        break;
    }
    return -1;
}

int PanelRank::workLanes() const
{
    return static_cast<int>(
        std::find_if(lanes.begin(), lanes.end(), [](const PanelLane& lane) { return lane.lane == Lane::Wait; }) -
        lanes.begin());
}

void setReplicas(TimelinePanel& panel, const Schedule* schedule)
{
    if (schedule == nullptr || schedule->replicas < 2 || schedule->ranks != static_cast<int>(panel.ranks.size()))
        return;
    panel.replicas = schedule->replicas;
    for (std::size_t rank = 0; rank < panel.ranks.size(); ++rank)
        panel.ranks[rank].replica = schedule->replicaOf(static_cast<int>(rank));
}

bool TimelinePanel::isCritical(SpanId span) const { return std::binary_search(critical.begin(), critical.end(), span); }

bool TimelinePanel::shows(int ofStep) const
{
    if (step >= 0) return ofStep == step;
    if (static_cast<int>(steps.size()) == timeline->steps()) return true;
    return std::any_of(steps.begin(), steps.end(), [ofStep](const PanelStep& one) { return one.step == ofStep; });
}

const PanelStep* TimelinePanel::stepAt(Nanos axisTime) const
{
    const auto after = std::upper_bound(steps.begin(), steps.end(), axisTime,
                                        [](Nanos t, const PanelStep& one) { return t < one.begin; });
    return after == steps.begin() ? nullptr : &*(after - 1);
}

Nanos TimelinePanel::shownTime(Nanos axisTime, TimeOrigin from) const
{
    if (from == TimeOrigin::Run) return axisTime + origin - timeline->begin();
    const PanelStep* one = stepAt(axisTime);
    return one != nullptr ? axisTime - one->begin : axisTime;
}

int TimelinePanel::positionOf(SpanId span) const
{
    if (span >= timeline->spans().size()) return -1;
    const Track& track = timeline->trackOf(span);
    if (hasListPlaces(*this, track.rank)) return listPlaceOf(*this, span);
    if (track.lane != Lane::Compute) return -1;
    const int ofStep = timeline->spans()[span].step;
    const auto [first, last] = timeline->stepRange(track, ofStep);
    int position = 0;
    for (SpanId id = first; id < last && id < span; ++id) {
        const Span& other = timeline->spans()[id];
        if (other.step == ofStep && (other.flags & SpanDiscarded) == 0 && ruleOf(other.op.kind).computeOnly) ++position;
    }
    return position;
}

std::shared_ptr<const TimelinePanel> makePanel(std::shared_ptr<const Timeline> timeline, const PanelOptions& options)
{
    auto panel = std::make_shared<TimelinePanel>();
    panel->timeline = std::move(timeline);
    panel->step = options.axis ? -1 : options.step;
    panel->name = options.name;
    const Timeline& t = *panel->timeline;
    panel->units = {t.timeUnit(), t.memoryUnit()};
    if (options.axis) {
        panel->origin = options.axis->origin;
        panel->duration = options.axis->duration;
        panel->steps = options.axis->steps;
        panel->part = true;
        panel->detailStep = options.step;
    } else if (options.step >= 0) {
        setExtent(*panel, options.step, options.step);
    } else {
        setExtent(*panel, options.firstStep, options.lastStep < 0 ? t.steps() - 1 : options.lastStep);
    }
    panel->lead = std::max<Nanos>(0, options.lead);
    panel->origin -= panel->lead;
    panel->duration += panel->lead;
    for (PanelStep& shown : panel->steps) {
        shown.begin += panel->lead;
        shown.end += panel->lead;
    }

    const int analysed = options.step >= 0 ? options.step : t.steps() == 1 ? 0 : -1;
    if (options.causes && analysed >= 0 && !t.empty()) {
        const RunReport* known =
            options.report != nullptr && options.report->step == analysed && options.report->noOps.empty()
                ? options.report
                : nullptr;
        const StepContext context(t, analysed, BubbleOptions{options.memoryCap});
        if (known != nullptr)
            panel->bubbles = known->bubbles;
        else if (context.bubbles())
            panel->bubbles = *context.bubbles();
        for (const CriticalLink& link : known != nullptr ? known->criticalPath : context.criticalPath())
            panel->critical.push_back(link.span);
        std::sort(panel->critical.begin(), panel->critical.end());
    }

    if (options.report != nullptr) panel->noMemory = options.report->noMemory;
    panel->noOps = !t.empty() && !stagewright::hasOps(t);
    panel->byClass = panel->noOps || options.kernelsByClass;
    KernelClasses classes;
    Nanos busy = 0;
    panel->ranks.resize(static_cast<std::size_t>(t.ranks()));
    setReplicas(*panel, t.schedule().get());
    for (int rank = 0; rank < t.ranks(); ++rank) {
        PanelRank& row = panel->ranks[static_cast<std::size_t>(rank)];
        row.rank = rank;
        row.title = u"Rank %1"_s.arg(rank);
        if (static_cast<std::size_t>(rank) < options.places.size())
            row.place = options.places[static_cast<std::size_t>(rank)];
        std::set<int> stages;
        if (const Track* track = t.trackOf(rank, Lane::Compute)) {
            const SpanSlice shown = shownOf(t, *track, *panel);
            row.compute.reserve(shown.last - shown.first);
            for (SpanId id = shown.first; id < shown.last; ++id) {
                const Span& span = t.spans()[id];
                if (!panel->shows(span.step)) continue;
                if (isCompute(span.op.kind) && (stages.empty() || *stages.rbegin() != span.op.stage))
                    stages.insert(span.op.stage);
            }
            const RankTints tintOf(t.schedule().get(), rank, stages);
            for (SpanId id = shown.first; id < shown.last; ++id) {
                const Span& span = t.spans()[id];
                if (!panel->shows(span.step)) continue;
                row.compute.append(span, id, panel->origin, tintOf(span.op));
            }
        }
        fillCommunication(row, t, *panel);
        fillLanes(row, t, *panel, classes);
        if (panel->noOps) fillDevice(row, options.axis ? t.end() - t.begin() : panel->duration);
        row.subtitle = row.gpus.empty() ? stagesText(stages) : gpusText(row);
        if (options.pyramids) {
            row.compute.buildPyramid();
            for (LaneData& lane : row.communication) lane.buildPyramid();
            for (PanelLane& lane : row.lanes) lane.data.buildPyramid();
            row.device.buildPyramid();
        }
        noteLooks(*panel, row.compute);
        const Nanos rankBusy = busyTime(row.compute);
        busy += rankBusy;
        Nanos window = panel->duration - panel->lead;
        if (panel->bubbles) window = panel->bubbles->makespan();
        row.busyFraction = options.hangs ? std::numeric_limits<double>::quiet_NaN()
                           : window > 0  ? static_cast<double>(rankBusy) / static_cast<double>(window)
                                         : 0;
        row.activations = memorySeries(t, rank, options.step);
        panel->peak = std::max(panel->peak, row.activations.peak);
        panel->sliceCount += static_cast<std::int64_t>(row.compute.size());
        for (const LaneData& lane : row.communication) panel->sliceCount += static_cast<std::int64_t>(lane.size());
        for (const PanelLane& lane : row.lanes)
            panel->sliceCount += lane.lane == Lane::Wait ? 0 : static_cast<std::int64_t>(lane.data.size());
    }
    if (panel->bubbles)
        markExposed(*panel, collectiveUses(t, *panel->bubbles));
    else if (options.causes)
        markExposedBySteps(*panel, options.memoryCap);
    if (panel->bubbles) {
        panel->bubbleFraction = panel->bubbles->bubbleFraction;
    } else if (panel->duration > panel->lead && t.ranks() > 0) {
        panel->bubbleFraction =
            1 - static_cast<double>(busy) / (static_cast<double>(panel->duration - panel->lead) * t.ranks());
    }
    return panel;
}

} // namespace stagewright
