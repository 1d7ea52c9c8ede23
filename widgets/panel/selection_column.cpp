#include "widgets/panel/selection_column.h"

#include <algorithm>
#include <utility>

#include <QHBoxLayout>
#include <QLabel>

#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/explain_gap.h"
#include "traces/analysis/kernels.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/style.h"
#include "widgets/timeline/span_card.h"

namespace stagewright {

namespace {

constexpr qsizetype mostNamed = 6; // ops of one row; the tooltip has all of them

// "I3 on rank 2, W0 on rank 1 and 12 more"
QString listed(const QStringList& names)
{
    if (names.isEmpty()) return u"nothing"_s;
    if (names.size() <= mostNamed + 1) return names.join(u", "_s);
    return u"%1 and %L2 more"_s.arg(names.first(mostNamed).join(u", "_s)).arg(names.size() - mostNamed);
}

QString listedTip(const QString& meaning, const QStringList& names)
{
    return names.size() <= mostNamed + 1 ? meaning : meaning + u'\n' + inLines(names.join(u", "_s));
}

// Where the axis is 0: the start, over all ranks, of the span's step, else of the one that the figures are of. None:
// there are no steps. The figures of an excerpt know it, as its timeline has a part.
std::optional<Nanos> startOfStep(const Timeline& timeline, const RunReport& figures, const Span& span)
{
    const int step = span.step == outsideSteps ? figures.step : span.step;
    std::optional<Nanos> begin;
    if (const BubbleReport& bubbles = figures.bubbles; step == figures.step && bubbles.windowEnd > bubbles.windowBegin)
        begin = bubbles.windowBegin;
    for (const StepMark& mark : timeline.stepMarks())
        if (mark.step == step) begin = std::min(begin.value_or(mark.begin), mark.begin);
    return begin;
}

} // namespace

QString opOnRank(const Timeline& timeline, SpanId span)
{
    const Span& s = timeline.spans()[span];
    return u"%1 on rank %2"_s.arg(shownName(timeline.nameOf(s))).arg(timeline.trackOf(span).rank);
}

SelectionColumn::SelectionColumn(QWidget* parent) : SectionColumn(parent)
{
    m_gap = addSection(u"Selected gap"_s);
    m_gap->hide();
    m_selection = addSection(u"Selection"_s);
    finish();
    fillSelection();
}

void SelectionColumn::setRun(std::shared_ptr<const Run> run, std::shared_ptr<const RunReport> figures)
{
    m_run = std::move(run);
    m_figures = std::move(figures);
    m_selected = noSpan;
    m_aggregation = {};
    m_slack.reset();
    fillSelection();
}

void SelectionColumn::setSelection(SpanId span)
{
    m_selected = span;
    fillSelection();
}

void SelectionColumn::setAggregation(const Aggregation& aggregation)
{
    m_aggregation = aggregation;
    fillSelection();
}

void SelectionColumn::setSlack(std::shared_ptr<const std::vector<Nanos>> slack)
{
    m_slack = std::move(slack);
    if (m_selected != noSpan) fillSelection();
}

void SelectionColumn::setTheme(const Theme& theme)
{
    SectionColumn::setTheme(theme);
    fillSelection(); // its swatch has the theme's colours
}

void SelectionColumn::fillSelection()
{
    m_selection->clear();
    const bool shown = m_run && m_run->timeline && m_figures;
    m_selection->setVisible(shown);
    if (!shown) return;
    m_units = Units{m_run->timeline->timeUnit(), m_run->timeline->memoryUnit()};
    if (!m_aggregation.empty()) {
        const Aggregation& a = m_aggregation;
        m_selection->setTitle(u"Selected range"_s);
        m_selection->addRow(
            u"Range"_s, (a.rows == 1 ? u"%1 on one row"_s : u"%1 on %2 rows"_s.arg(u"%1"_s, QString::number(a.rows)))
                            .arg(durationText(a.range.duration(), m_units)));
        if (!m_figures->noOps.empty()) { // ops, and so idle time, are unknown
            m_selection->addText(u"The table below the timeline has the kernels and copies in it, by class, name or "
                                 "rank; the figures under Summary are of the whole step."_s,
                                 "faint");
            return;
        }
        for (std::size_t k = 0; k < allKinds().size(); ++k)
            if (a.countByKind[k] > 0)
                m_selection->addRow(
                    u"%1 × %2"_s.arg(a.countByKind[k]).arg(sentence(ruleOf(static_cast<OpKind>(k)).title)),
                    durationText(a.timeByKind[k], m_units),
                    u"Ops that overlap the range; their time is trimmed to it."_s);
        m_selection->addRow(u"Busy"_s, durationText(a.busy, m_units),
                            u"F, B, I, W and recompute within the range, over its rows."_s);
        m_selection->addRow(u"Idle"_s, durationText(a.idle, m_units),
                            u"Rows × range minus everything on the compute lanes."_s);
        if (a.communication > 0)
            m_selection->addRow(u"Communication"_s, durationText(a.communication, m_units),
                                u"Transfers within the range; they may overlap."_s);
        return;
    }
    m_selection->setTitle(u"Selection"_s);
    m_selection->setVisible(m_selected != noSpan || m_gap->isHidden());
    if (m_selected == noSpan || m_selected >= m_run->timeline->spans().size())
        m_selection->addText(
            u"Click an op to see what it waits for and what it releases, and idle time to see its cause. Drag over "
            "empty space to sum up a range."_s,
            "faint");
    else
        describeSpan(m_selected);
}

void SelectionColumn::describeSpan(SpanId id)
{
    const Timeline& timeline = *m_run->timeline;
    const Span& span = timeline.spans()[id];
    const Track& track = timeline.trackOf(id);
    auto* head = new QWidget;
    auto* layout = new QHBoxLayout(head);
    layout->setContentsMargins(0, 0, 0, 3);
    layout->setSpacing(8);
    const WorkLook look = lookOfWork(timeline, !hasOps(timeline), id);
    const Fill& fill = look.fill(theme());
    const bool op = look.isOp;
    auto* swatch = new QLabel(op && span.op.microbatch >= 0 ? QString::number(span.op.microbatch) : u"·"_s);
    swatch->setAlignment(Qt::AlignCenter);
    swatch->setMinimumSize(18, 18);
    swatch->setStyleSheet(u"background:%1;color:%2;border-radius:3px;font-weight:600;padding:0 4px;"_s.arg(
        fill.fill.name(), fill.label.name()));
    layout->addWidget(swatch);
    const QString name = shownName(timeline.nameOf(span));
    auto* title = makeLabel(
        u"%1, rank %2"_s.arg(op ? sentence(ruleOf(span.op.kind).title) : breakable(look.name)).arg(track.rank), "value",
        head, true);
    title->setWordWrap(true);
    if (!op) { // a name of a program, in the face of those
        title->setText(breakable(look.name));
        setRole(title, "identifier");
    }
    layout->addWidget(title, 1);
    m_selection->addWidget(head);

    if (op)
        m_selection->addRow(u"Op"_s, u"%1 · stage %2"_s.arg(name).arg(span.op.stage),
                            u"Stage, kind and microbatch, as in the schedule. Zero-bubble papers write B for the "
                            "input gradient (I)."_s);
    const auto text = [](std::string_view of) {
        return QString::fromUtf8(of.data(), static_cast<qsizetype>(of.size()));
    };
    if (look.of) m_selection->addRow(u"Class"_s, text(titleOf(*look.of)), u"What kind of work it is, by its name."_s);
    if (!op) m_selection->addRow(u"Rank"_s, QString::number(track.rank), u"Whose device ran it."_s);
    if (const QString lane = laneTitle(track); !op && !lane.isEmpty())
        m_selection->addRow(track.lane == Lane::Other ? u"On"_s : u"Stream"_s, lane, u"The lane it is on."_s);
    const std::optional<Nanos> begin = startOfStep(timeline, *m_figures, span);
    m_selection->addRow(u"Start"_s, durationText(span.start - begin.value_or(timeline.begin()), m_units),
                        begin ? u"From the start of the step, as on the axis."_s : u"From the start of the run."_s);
    m_selection->addRow(u"Duration"_s, durationText(span.duration(), m_units),
                        u"From start to end on the run's clock."_s);
    if (timeline.hasCpuTime() && timeline.cpuTime(id) >= 0)
        m_selection->addRow(u"CPU time"_s, durationText(timeline.cpuTime(id), m_units),
                            u"Time its thread ran on a processor."_s);

    if (op)
        describeTies(id);
    else
        describeLaunch(id);
    if (track.lane != Lane::Compute) return;
    describeMemory(id);
    describeIdle(id);
}

// What it waits for and what it releases; of a gather or reduction also how much of it is hidden.
void SelectionColumn::describeTies(SpanId id)
{
    const Timeline& timeline = *m_run->timeline;
    QStringList waits;
    const auto beside = [&](SpanId of) { return isBesideLane(timeline.trackOf(of).lane); };
    for (const Edge& edge : timeline.edgesInto(id))
        if (edge.kind == EdgeKind::Data || (edge.kind == EdgeKind::Order && beside(edge.from)))
            waits << opOnRank(timeline, edge.from);
    m_selection->addRow(u"Waits for"_s, listed(waits), listedTip(u"Ops whose results it needs."_s, waits));
    QStringList releases;
    for (const Edge& edge : timeline.edgesFrom(id))
        if (edge.kind == EdgeKind::Data || (edge.kind == EdgeKind::Order && beside(id)))
            releases << opOnRank(timeline, edge.to);
    m_selection->addRow(u"Releases"_s, listed(releases), listedTip(u"Ops that need its result."_s, releases));
    if (const CollectiveUse* use = m_figures->collectiveUses.of(id)) {
        m_selection->addRow(u"Hidden"_s, durationText(use->hidden, m_units), u"Its rank runs an op meanwhile."_s);
        m_selection->addRow(u"Exposed"_s, durationText(use->exposed(), m_units),
                            u"Its rank waits for it, or it lies before the first or after the last op of the step."_s);
    }
}

// What launched a kernel or copy, and how long before.
void SelectionColumn::describeLaunch(SpanId id)
{
    const Timeline& timeline = *m_run->timeline;
    const Span& span = timeline.spans()[id];
    const WorkLook look = lookOfWork(timeline, !hasOps(timeline), id);
    const LaunchSeen launch = launchOf(timeline, id);
    if (launch.by != noSpan)
        m_selection->addRow(u"Launched by"_s, shownName(timeline.nameOf(timeline.spans()[launch.by])),
                            u"The op or named range that launched it."_s);
    if (launch.time)
        m_selection->addRow(u"Launch delay"_s, durationText(span.start - *launch.time, m_units),
                            u"From the call on the host until it started."_s);
    for (const FactRow& fact : collectiveFacts(timeline, id, m_units))
        m_selection->addRow(fact.title, fact.text, fact.tip);
    for (const auto& [title, sizes] : launchShape(timeline, span))
        m_selection->addRow(title, sizes, u"How it was launched."_s);
    if (const QString name = shownName(timeline.nameOf(span)); look.name != name)
        m_selection->addText(breakable(name), "identifier");
}

void SelectionColumn::describeMemory(SpanId id)
{
    const Timeline& timeline = *m_run->timeline;
    if (!timeline.hasMemory()) return;
    const Span& span = timeline.spans()[id];
    Bytes delta = 0;
    const auto events = timeline.memoryOf(timeline.trackOf(id).rank);
    auto at = std::lower_bound(events.begin(), events.end(), span.start,
                               [](const MemoryEvent& e, Nanos t) { return e.time < t; });
    for (; at != events.end() && at->time <= span.end; ++at)
        if (at->category == MemoryCategory::Activations && at->stage == span.op.stage &&
            at->microbatch == span.op.microbatch && (at->time > span.start || span.duration() == 0))
            delta += at->delta;
    if (delta != 0)
        m_selection->addRow(delta < 0 ? u"Frees"_s : u"Keeps"_s, bytesText(std::abs(delta), m_units),
                            u"Change in activation memory of its stage and microbatch, from its start to its end."_s);
}

void SelectionColumn::describeIdle(SpanId id)
{
    const Timeline& timeline = *m_run->timeline;
    Nanos idle = 0;
    QStringList reasons;
    for (const Gap& gap : m_figures->bubbles.gaps) {
        if (gap.next != id) continue;
        idle += gap.end - gap.start;
        reasons << sentence(explainGap(timeline, gap));
    }
    m_selection->addRow(u"Idle before"_s, durationText(idle, m_units), u"Idle time of its rank just before it."_s);
    if (m_slack && id < m_slack->size() && (*m_slack)[id] >= 0)
        m_selection->addRow(u"Slack"_s, durationText((*m_slack)[id], m_units),
                            u"How much later it could have started without a longer step, all else equal. Ops on the "
                            "critical path have none."_s);
    if (const std::string& missing = timeline.missingRanks(); !missing.empty())
        for (const QString& title : {u"Slack"_s, u"Critical path"_s})
            m_selection->addRow(title, u"unknown"_s, sentence(missing));
    const auto& path = m_figures->criticalPath;
    if (std::any_of(path.begin(), path.end(), [&](const CriticalLink& link) { return link.span == id; }))
        m_selection->addRow(u"Critical path"_s, u"yes"_s, u"The step would end earlier if this op were shorter."_s);
    for (const QString& reason : reasons) m_selection->addText(reason);
}

} // namespace stagewright
