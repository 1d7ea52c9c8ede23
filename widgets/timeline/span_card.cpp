#include "widgets/timeline/span_card.h"

#include <algorithm>

#include <QCoreApplication>

#include "schedules/base/step_number.h"
#include "traces/analysis/collective_uses.h"
#include "traces/analysis/explain_gap.h"
#include "traces/analysis/kernels.h"
#include "widgets/sentence.h"
#include "widgets/timeline/lane_painter.h"

namespace stagewright {

namespace {

struct SpanCardWords {
    Q_DECLARE_TR_FUNCTIONS(stagewright::SpanCard)
};

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
    if (slice.microbatchOr(-1) >= 0) card.title += SpanCardWords::tr(" · microbatch %1").arg(slice.microbatchOr(-1));
    card.title += SpanCardWords::tr(" · rank %1").arg(rank.rank);
    const double resolution = static_cast<double>(std::max<Nanos>(1, panel.duration)) / 5000;
    if (panel.isPart())
        card.rows.emplace_back(SpanCardWords::tr("Step"), QString::number(panel.stepNumberAt(slice.begin())));
    card.rows.emplace_back(SpanCardWords::tr("Start"), momentText(drawn.begin, resolution, panel.units));
    card.rows.emplace_back(SpanCardWords::tr("Duration"), durationText(drawn.end - drawn.begin, panel.units));
    card.note = QObject::tr("Click to load its step: causes, arrows and figures.");
    return card;
}

// How much of a gather or reduction is exposed, and which op needs it.
void addCollective(CardText& card, const TimelinePanel& panel, SpanId span, CauseCache& causes)
{
    const Timeline& timeline = *panel.timeline;
    if (const BubbleReport* report = causes.of(panel, timeline.spans()[span].step)) {
        const CollectiveUses uses = collectiveUses(timeline, *report);
        if (const CollectiveUse* use = uses.of(span)) {
            card.rows.emplace_back(SpanCardWords::tr("Hidden by ops"), durationText(use->hidden, panel.units));
            card.rows.emplace_back(SpanCardWords::tr("Exposed"), durationText(use->exposed(), panel.units));
        }
    }
    const auto needing = timeline.edgesFrom(span);
    if (!needing.empty())
        card.rows.emplace_back(SpanCardWords::tr("Needed by"),
                               named(timeline.nameOf(timeline.spans()[needing.front().to])));
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

std::vector<std::pair<QString, QString>> launchShape(const Timeline& timeline, const Span& work)
{
    // of "collective AllToAll, grid 8×2×1, block 128×1×1, inputs [[64,512]]"
    std::vector<std::pair<QString, QString>> out;
    for (const QString& part :
         named(std::string(timeline.shapeOf(work))).split(QStringLiteral(", "), Qt::SkipEmptyParts)) {
        constexpr qsizetype most = 48; // inputs can be long lists
        const QString sizes = part.section(QLatin1Char(' '), 1);
        const QString title = part.startsWith(QLatin1String("grid"))         ? SpanCardWords::tr("Grid")
                              : part.startsWith(QLatin1String("block"))      ? SpanCardWords::tr("Block")
                              : part.startsWith(QLatin1String("collective")) ? SpanCardWords::tr("Operation")
                                                                             : SpanCardWords::tr("Inputs");
        out.emplace_back(title, sizes.size() <= most ? sizes : sizes.left(most - 1) + QStringLiteral("…"));
    }
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
        card.title +=
            s.op.count > 1
                ? SpanCardWords::tr(" · microbatches %1–%2").arg(s.op.microbatch).arg(s.op.microbatch + s.op.count - 1)
                : SpanCardWords::tr(" · microbatch %1").arg(s.op.microbatch);
    }
    card.title += SpanCardWords::tr(" · rank %1").arg(track.rank);
    const auto add = [&card](const QString& name, const QString& value) { card.rows.emplace_back(name, value); };
    if (look.isOp)
        add(SpanCardWords::tr("Op"), named(timeline.nameOf(s)) + SpanCardWords::tr(", stage %1").arg(s.op.stage));
    if (look.of)
        add(SpanCardWords::tr("Class"),
            QString::fromUtf8(titleOf(*look.of).data(), static_cast<qsizetype>(titleOf(*look.of).size())));
    if (const QString title = laneTitle(track); !look.isOp && !title.isEmpty())
        add(track.lane == Lane::Other ? SpanCardWords::tr("On") : SpanCardWords::tr("Stream"), title);
    if (timeline.steps() > 1)
        add(SpanCardWords::tr("Step"),
            s.step == outsideSteps ? SpanCardWords::tr("none") : QString::number(s.step + 1));
    const double resolution = static_cast<double>(std::max<Nanos>(1, panel.duration)) / 5000;
    add(SpanCardWords::tr("Start"), momentText(panel.shownTime(panel.toAxis(s.start), from), resolution, panel.units));
    add(SpanCardWords::tr("Duration"), durationText(s.duration(), panel.units));
    if (timeline.hasCpuTime() && timeline.cpuTime(span) >= 0)
        add(SpanCardWords::tr("CPU time"), durationText(timeline.cpuTime(span), panel.units));
    if ((s.flags & SpanDiscarded) != 0) add(SpanCardWords::tr("Discarded"), SpanCardWords::tr("yes"));
    if (isCollectiveLane(track.lane)) {
        addCollective(card, panel, span, causes);
        return card;
    }
    if (track.lane != Lane::Compute) {
        const LaunchSeen launch = launchOf(timeline, span);
        if (launch.by != noSpan)
            add(SpanCardWords::tr("Launched by"), named(timeline.nameOf(timeline.spans()[launch.by])));
        if (launch.time)
            add(SpanCardWords::tr("Launched before its start"), durationText(s.start - *launch.time, panel.units));
        else if (launch.by != noSpan && ownerOf(timeline, span) == launch.by)
            add(SpanCardWords::tr("After its start"),
                durationText(s.start - timeline.spans()[launch.by].start, panel.units));
        for (const auto& [title, sizes] : launchShape(timeline, s)) add(title, sizes);
        if (look.of && look.name != named(timeline.nameOf(s))) card.note = named(timeline.nameOf(s).substr(0, 300));
        return card;
    }
    if (const BubbleReport* report = causes.of(panel, s.step)) {
        const Before before = idleBefore(*report, span);
        add(SpanCardWords::tr("Idle before"), durationText(before.idle, panel.units));
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
    card.title = SpanCardWords::tr("Devices of rank %1").arg(rank.rank);
    const double resolution = static_cast<double>(std::max<Nanos>(1, panel.duration)) / 5000;
    card.rows.emplace_back(SpanCardWords::tr("At"),
                           momentText(panel.shownTime(axisTime, from), resolution, panel.units));
    if (rank.deviceBusy)
        card.rows.emplace_back(rank.gpus.empty() ? SpanCardWords::tr("Busy") : SpanCardWords::tr("Busy, mean"),
                               percentText(*rank.deviceBusy));
    for (const PanelRank::Gpu& one : rank.gpus)
        card.rows.emplace_back(SpanCardWords::tr("GPU %1 busy").arg(one.gpu), percentText(one.busy));
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
        card.note = SpanCardWords::tr("Nothing runs.");
    else if (rank.gpus.empty())
        card.note = SpanCardWords::tr(
            "The bar shows one class at a time: computing covers communication, and both cover copies.");
    else
        card.note = SpanCardWords::tr("The bar shows what runs on any of the rank's GPUs, one class at a time: "
                                      "computing covers communication, and both cover copies.");
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
    card.title = SpanCardWords::tr("Idle · rank %1").arg(rank.rank);
    const double resolution = static_cast<double>(std::max<Nanos>(1, panel.duration)) / 5000;
    card.rows.emplace_back(SpanCardWords::tr("Start"),
                           momentText(panel.shownTime(begin, from), resolution, panel.units));
    card.rows.emplace_back(SpanCardWords::tr("Duration"), durationText(end - begin, panel.units));
    const SpanId neighbour = lane.spanOf(next < lane.size() ? next : next > 0 ? next - 1 : 0);
    if (neighbour == noSpan) return card;
    const BubbleReport* report = causes.of(panel, panel.timeline->spans()[neighbour].step);
    if (report == nullptr) return card;
    const Nanos t = axisTime + panel.origin;
    for (const Gap& gap : report->gaps) {
        if (gap.rank != rank.rank || t < gap.start || t >= gap.end) continue;
        const std::string_view title = titleOf(gap.cause);
        card.rows.emplace_back(SpanCardWords::tr("Cause"),
                               QString::fromUtf8(title.data(), static_cast<qsizetype>(title.size())));
        if (gap.end - gap.start != end - begin) {
            card.rows.emplace_back(SpanCardWords::tr("This cause"), durationText(gap.end - gap.start, panel.units));
        }
        card.note = sentence(explainGap(*panel.timeline, gap));
        break;
    }
    return card;
}

} // namespace stagewright
