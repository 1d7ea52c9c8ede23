#include "widgets/timeline/span_card.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>

#include "schedules/base/step_number.h"
#include "traces/analysis/collective_groups.h"
#include "traces/analysis/collective_uses.h"
#include "traces/analysis/device_idle.h"
#include "traces/analysis/explain_gap.h"
#include "traces/analysis/kernels.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/timeline/lane_painter.h"
#include "widgets/timeline/rank_busy.h"

namespace stagewright {

namespace {

constexpr std::size_t mostReports = 64;

QString named(const std::string& text) { return shownName(text); }

// The idle intervals that end at a span, and the longest of them.
struct Before {
    Nanos idle = 0;
    const Gap* longest = nullptr;
};
Before idleBefore(const BubbleReport& report, SpanId span)
{
    Before before;
    for (const Gap& gap : report.gaps) {
        if (gap.next != span) continue;
        before.idle += gap.end - gap.start;
        if (before.longest == nullptr || gap.end - gap.start > before.longest->end - before.longest->start)
            before.longest = &gap;
    }
    return before;
}

// An op of a step without loaded spans.
CardText sliceCard(const TimelinePanel& panel, const PanelRank& rank, std::size_t at)
{
    CardText card;
    const Slice& slice = rank.compute.slices()[at];
    const TimeSpan drawn = rank.compute.drawn(at);
    card.title = sentence(ruleOf(slice.opKind()).title);
    if (slice.microbatchOr(-1) >= 0) card.title += u" · microbatch %1"_s.arg(slice.microbatchOr(-1));
    card.title += u" · rank %1"_s.arg(rank.rank);
    const double resolution = static_cast<double>(std::max<Nanos>(1, panel.duration)) / 5000;
    if (panel.isPart()) card.rows.emplace_back(u"Step"_s, QString::number(panel.stepNumberAt(slice.begin())));
    card.rows.emplace_back(u"Start"_s, momentText(drawn.begin, resolution, panel.units));
    card.rows.emplace_back(u"Duration"_s, durationText(drawn.end - drawn.begin, panel.units));
    card.note = u"Click to load its step: causes, arrows and figures."_s;
    return card;
}

// How much of a gather or reduction is exposed, and which op needs it.
void addCollective(CardText& card, const TimelinePanel& panel, SpanId span, CauseCache& causes)
{
    const Timeline& timeline = *panel.timeline;
    if (const BubbleReport* report = causes.of(panel, timeline.spans()[span].step)) {
        const CollectiveUses uses = collectiveUses(timeline, *report);
        if (const CollectiveUse* use = uses.of(span)) {
            card.rows.emplace_back(u"Hidden by ops"_s, durationText(use->hidden, panel.units));
            card.rows.emplace_back(u"Exposed"_s, durationText(use->exposed(), panel.units));
        }
    }
    const auto needing = timeline.edgesFrom(span);
    if (!needing.empty())
        card.rows.emplace_back(u"Needed by"_s, named(timeline.nameOf(timeline.spans()[needing.front().to])));
}

} // namespace

const Fill& WorkLook::fill(const Theme& theme) const { return fillOf(theme, look, kind); }

WorkLook lookOfWork(const Timeline& timeline, bool byClass, SpanId id)
{
    const Span& span = timeline.spans()[id];
    const Track& track = timeline.trackOf(id);
    WorkLook out;
    const bool named = span.label != 0 && span.op == Op{};
    out.isOp = !named && (track.lane == Lane::Compute || isMessageLane(track.lane) || track.lane == Lane::Wait ||
                          isBesideLane(track.lane));
    out.name = nameOfWork(timeline, id);
    out.look = lookOf(byClass, track.lane);
    if (track.lane == Lane::Kernel) out.of = classOfKernel(timeline.labelOf(span), timeline.shapeOf(span));
    if (track.lane == Lane::Copy) out.of = classOfCopy(timeline.labelOf(span));
    if (isCollectiveTrack(track) && !isCommunication(*out.of)) out.of = KernelClass::Collective;
    const bool work = isDeviceLane(track.lane) || track.lane == Lane::Other;
    out.kind = static_cast<unsigned>(named || work ? firstOf(ColourClass::Other) : span.op.kind);
    if (out.look == LaneLook::Ranges)
        out.kind = rangeInkOf(timeline.labelOf(span));
    else if (out.look == LaneLook::Classes && out.of)
        out.kind = static_cast<unsigned>(*out.of);
    else if (const SpanId owner = out.of ? ownerOf(timeline, id) : noSpan; owner != noSpan)
        out.kind = static_cast<unsigned>(timeline.spans()[owner].op.kind);
    return out;
}

std::vector<FactRow> collectiveFacts(const Timeline& timeline, SpanId span, const Units& units)
{
    const auto parts = collectivePartsOf(timeline, span);
    if (!parts) return {};
    const QString tip =
        u"Nothing is transferred until the last of the %1 ranks in the traces has entered."_s.arg(parts->ranks);
    const FactRow transfer{u"Transfers for"_s, durationText(parts->transfer, units), u"From then on, until its end."_s};
    if (parts->last == span)
        return {{u"Others wait"_s, durationText(othersWaitFor(timeline, span), units),
                 u"This rank enters last. Summed over the other %1 ranks of the collective."_s.arg(parts->ranks - 1)},
                transfer};
    return {{u"Waits for"_s,
             u"rank %1, %2"_s.arg(timeline.trackOf(parts->last).rank).arg(durationText(parts->waiting, units)), tip},
            transfer};
}

std::vector<std::pair<QString, QString>> launchShape(const Timeline& timeline, const Span& work)
{
    // of "collective AllToAll, grid 8×2×1, block 128×1×1, inputs [[64,512]], graph 3, node 17"
    std::vector<std::pair<QString, QString>> out;
    for (const QString& part : named(std::string(timeline.shapeOf(work))).split(u", "_s, Qt::SkipEmptyParts)) {
        constexpr qsizetype most = 48; // inputs can be long lists
        const QString sizes = part.section(u' ', 1);
        const QString title = part.startsWith("grid"_L1)         ? u"Grid"_s
                              : part.startsWith("block"_L1)      ? u"Block"_s
                              : part.startsWith("collective"_L1) ? u"Operation"_s
                              : part.startsWith("graph"_L1)      ? u"CUDA graph"_s
                              : part.startsWith("node"_L1)       ? u"Graph node"_s
                                                                 : u"Inputs"_s;
        out.emplace_back(title, sizes.size() <= most ? sizes : sizes.left(most - 1) + u"…"_s);
    }
    if (timeline.labelOf(work) == wholeGraph) out.emplace_back(u"Content"_s, u"unknown: traced as a whole"_s);
    return out;
}

const BubbleReport* CauseCache::of(const TimelinePanel& panel, int step)
{
    if (panel.bubbles && panel.bubbles->step == step) return &*panel.bubbles;
    const auto key = std::make_pair(panel.timeline.get(), step);
    auto at = m_reports.find(key);
    if (at == m_reports.end()) {
        if (m_reports.size() >= mostReports) m_reports.clear();
        std::optional<BubbleReport> report;
        if (auto made = analyseBubbles(*panel.timeline, step)) report = std::move(*made);
        at = m_reports.emplace(key, std::move(report)).first;
    }
    return at->second ? &*at->second : nullptr;
}

CardText spanCard(const TimelinePanel& panel, SpanId span, const Theme& theme, CauseCache& causes, TimeOrigin from)
{
    CardText card;
    const Timeline& timeline = *panel.timeline;
    if (span >= timeline.spans().size()) return card;
    const Span& s = timeline.spans()[span];
    const Track& track = timeline.trackOf(span);
    const WorkLook look = lookOfWork(timeline, panel.byClass, span);
    card.swatch = look.fill(theme).fill;
    card.title = s.label != 0 ? look.name : sentence(ruleOf(s.op.kind).title);
    if (s.op.microbatch >= 0) {
        card.title += s.op.count > 1
                          ? u" · microbatches %1–%2"_s.arg(s.op.microbatch).arg(s.op.microbatch + s.op.count - 1)
                          : u" · microbatch %1"_s.arg(s.op.microbatch);
    }
    card.title += u" · rank %1"_s.arg(track.rank);
    const auto add = [&card](const QString& name, const QString& value) { card.rows.emplace_back(name, value); };
    if (look.isOp) add(u"Op"_s, named(timeline.nameOf(s)) + u", stage %1"_s.arg(s.op.stage));
    if (look.of)
        add(u"Class"_s, QString::fromUtf8(titleOf(*look.of).data(), static_cast<qsizetype>(titleOf(*look.of).size())));
    if (const QString title = laneTitle(track); !look.isOp && !title.isEmpty())
        add(track.lane == Lane::Other ? u"On"_s : u"Stream"_s, title);
    if (timeline.steps() > 1) add(u"Step"_s, s.step == outsideSteps ? u"none"_s : QString::number(s.step + 1));
    const double resolution = static_cast<double>(std::max<Nanos>(1, panel.duration)) / 5000;
    add(u"Start"_s, momentText(panel.shownTime(panel.toAxis(s.start), from), resolution, panel.units));
    add(u"Duration"_s, durationText(s.duration(), panel.units));
    if (timeline.hasCpuTime() && timeline.cpuTime(span) >= 0)
        add(u"CPU time"_s, durationText(timeline.cpuTime(span), panel.units));
    if ((s.flags & SpanDiscarded) != 0) add(u"Discarded"_s, u"yes"_s);
    if (isCollectiveLane(track.lane)) {
        addCollective(card, panel, span, causes);
        return card;
    }
    if (track.lane != Lane::Compute) {
        const LaunchSeen launch = launchOf(timeline, span);
        if (launch.by != noSpan) add(u"Launched by"_s, named(timeline.nameOf(timeline.spans()[launch.by])));
        if (launch.time)
            add(u"Launch delay"_s, durationText(s.start - *launch.time, panel.units));
        else if (launch.by != noSpan && ownerOf(timeline, span) == launch.by)
            add(u"After its start"_s, durationText(s.start - timeline.spans()[launch.by].start, panel.units));
        for (const FactRow& fact : collectiveFacts(timeline, span, panel.units)) add(fact.title, fact.text);
        for (const auto& [title, sizes] : launchShape(timeline, s)) add(title, sizes);
        if (look.of && look.name != named(timeline.nameOf(s))) card.note = named(timeline.nameOf(s).substr(0, 300));
        return card;
    }
    if (const BubbleReport* report = causes.of(panel, s.step)) {
        const Before before = idleBefore(*report, span);
        add(u"Idle before"_s, durationText(before.idle, panel.units));
        if (before.longest != nullptr) card.note = sentence(explainGap(timeline, *before.longest));
    }
    return card;
}

CardText deviceCard(const TimelinePanel& panel, int rankIndex, Nanos axisTime, TimeOrigin from)
{
    CardText card;
    if (rankIndex < 0 || rankIndex >= static_cast<int>(panel.ranks.size()) || axisTime < 0 ||
        axisTime >= panel.duration)
        return card;
    const PanelRank& rank = panel.ranks[static_cast<std::size_t>(rankIndex)];
    card.title = u"Devices of rank %1"_s.arg(rank.rank);
    const double resolution = static_cast<double>(std::max<Nanos>(1, panel.duration)) / 5000;
    card.rows.emplace_back(u"At"_s, momentText(panel.shownTime(axisTime, from), resolution, panel.units));
    if (rank.deviceBusy)
        card.rows.emplace_back(rank.gpus.empty() ? u"Busy"_s : u"Busy, mean"_s, percentText(*rank.deviceBusy));
    for (const PanelRank::Gpu& one : rank.gpus)
        card.rows.emplace_back(u"GPU %1 busy"_s.arg(one.gpu), percentText(one.busy));
    bool runs = false;
    for (const PanelLane& lane : rank.lanes) {
        if (!isDeviceLane(lane.lane)) continue;
        const std::size_t at = lane.data.firstEndingAfter(axisTime);
        if (at >= lane.data.size() || lane.data.slices()[at].begin() > axisTime || lane.data.spanOf(at) == noSpan)
            continue;
        card.rows.emplace_back(laneTitle({rank.rank, lane.lane, lane.track}),
                               nameOfWork(*panel.timeline, lane.data.spanOf(at)));
        runs = true;
    }
    if (!runs)
        card.note = u"Nothing runs."_s;
    else if (rank.gpus.empty())
        card.note = u"The bar shows one class at a time: computing covers communication, and both cover copies."_s;
    else
        card.note = u"The bar shows what runs on any of the rank's GPUs, one class at a time: "
                    "computing covers communication, and both cover copies."_s;
    return card;
}

CardText idleCard(const TimelinePanel& panel, int rankIndex, Nanos axisTime, CauseCache& causes, TimeOrigin from)
{
    CardText card;
    if (rankIndex < 0 || rankIndex >= static_cast<int>(panel.ranks.size()) || axisTime < 0 ||
        axisTime >= panel.duration)
        return card;
    const PanelRank& rank = panel.ranks[static_cast<std::size_t>(rankIndex)];
    const LaneData& lane = rank.compute;
    if (lane.isOverview()) return card;
    const std::size_t next = lane.firstEndingAfter(axisTime);
    if (next < lane.size() && lane.slices()[next].begin() <= axisTime)
        return lane.spanOf(next) == noSpan ? sliceCard(panel, rank, next) : card;
    const Nanos begin = next > 0 ? lane.slices()[next - 1].end() : 0;
    const Nanos end = next < lane.size() ? lane.slices()[next].begin() : panel.duration;
    card.title = u"Idle · rank %1"_s.arg(rank.rank);
    const double resolution = static_cast<double>(std::max<Nanos>(1, panel.duration)) / 5000;
    card.rows.emplace_back(u"Start"_s, momentText(panel.shownTime(begin, from), resolution, panel.units));
    card.rows.emplace_back(u"Duration"_s, durationText(end - begin, panel.units));
    const SpanId neighbour = lane.spanOf(next < lane.size() ? next : next > 0 ? next - 1 : 0);
    if (neighbour == noSpan) return card;
    const BubbleReport* report = causes.of(panel, panel.timeline->spans()[neighbour].step);
    if (report == nullptr) return card;
    const Nanos t = axisTime + panel.origin;
    for (const Gap& gap : report->gaps) {
        if (gap.rank != rank.rank || t < gap.start || t >= gap.end) continue;
        const std::string_view title = titleOf(*panel.timeline, gap);
        card.rows.emplace_back(u"Cause"_s, QString::fromUtf8(title.data(), static_cast<qsizetype>(title.size())));
        if (gap.end - gap.start != end - begin) {
            card.rows.emplace_back(u"This cause"_s, durationText(gap.end - gap.start, panel.units));
        }
        card.note = sentence(explainGap(*panel.timeline, gap));
        break;
    }
    return card;
}

CardText groupCard(const TimelinePanel& panel, const RankGroup& group, Nanos axisTime)
{
    CardText card;
    if (axisTime < 0 || axisTime >= panel.duration) return card;
    card.title = group.name();
    card.rows.emplace_back(u"Ranks"_s, QString::number(group.ranks.size()));
    card.rows.emplace_back(u"Busy, mean"_s, busyText(group.busyMean));
    if (!std::isnan(group.busyMean))
        card.rows.emplace_back(u"Minimum, maximum"_s,
                               percentText(group.busyLeast) + u" – "_s + percentText(group.busyMost));
    const auto working = std::count_if(group.ranks.begin(), group.ranks.end(), [&](int rank) {
        const LaneData& lane = panel.ranks[static_cast<std::size_t>(rank)].compute;
        const std::size_t at = lane.firstEndingAfter(axisTime);
        return at < lane.size() && lane.slices()[at].begin() <= axisTime;
    });
    card.rows.emplace_back(u"Busy now"_s, u"%1 of %2"_s.arg(working).arg(group.ranks.size()));
    card.note =
        group.expanded ? u"Click the gutter to fold these ranks."_s : u"Double click to show them one by one."_s;
    return card;
}

} // namespace stagewright
