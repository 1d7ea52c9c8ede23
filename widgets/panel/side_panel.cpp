#include "widgets/panel/side_panel.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <QHBoxLayout>
#include <QPushButton>
#include <QScrollBar>
#include <QTimer>
#include <QVBoxLayout>

#include "schedules/model/kinds.h"
#include "traces/analysis/kernel_classes.h"
#include "traces/analysis/kernels.h"
#include "traces/report/run_document.h"
#include "traces/step/step_ops.h"
#include "widgets/literals.h"
#include "widgets/runs/runs_model.h"
#include "widgets/sentence.h"
#include "widgets/style.h"
#include "widgets/timeline/span_card.h"

namespace stagewright {

QString opOnRank(const Timeline& timeline, SpanId span)
{
    const Span& s = timeline.spans()[span];
    return u"%1 on rank %2"_s.arg(shownName(timeline.nameOf(s))).arg(timeline.trackOf(span).rank);
}

namespace definition {
QString bubbleRatio()
{
    return u"Bubble ratio: idle time over all ranks ÷ (ranks × window). The window of a step runs from the start "
           "of its first to the end of its last busy span; busy is F, B, I, W and recompute."_s;
}
QString makespan() { return u"From the start of the first to the end of the last busy span over all ranks."_s; }
QString wholeStep()
{
    return u"Step time: from the start of the first op, gather or reduction over all ranks to the end of "
           "the last, the optimizer included."_s;
}
QString idleOfRank()
{
    return u"Share of the step's window in which this rank is idle: not busy and not in the optimizer or a collective."_s;
}
QString peakActivation()
{
    return u"Largest activation memory in use at any moment of the step, sampled at op ends."_s;
}
QString loss() { return u"Mean cross-entropy over the step's microbatches, in nats per token."_s; }
} // namespace definition

static constexpr std::size_t mostLevers = 8;
static constexpr std::size_t mostRankRows = 32;

static QString leverText(const Lever& lever)
{
    QString name = QString::fromStdString(lever.name);
    const QString place = name.section(u':', 1);
    switch (lever.kind) {
    case LeverKind::Transient:
        return u"Rank %1 in step %2 as usual"_s.arg(place.section(u'@', 0, 0), place.section(u'@', 1));
    case LeverKind::Replica: return u"Replica %1 as fast as others"_s.arg(place);
    case LeverKind::Rank: return u"Rank %1 as fast as others"_s.arg(place);
    case LeverKind::Link: return u"Link %1 as fast as others"_s.arg(place);
    case LeverKind::LaunchRank: return u"No launch delay, rank %1"_s.arg(place);
    case LeverKind::Launch: return u"No launch delay"_s;
    case LeverKind::Links: return u"Free links"_s;
    case LeverKind::Collectives: return u"Free gathers and reductions"_s;
    case LeverKind::Gathers: return u"Free gathers"_s;
    case LeverKind::Gather: return u"Stage %1's gather as fast as others"_s.arg(place);
    case LeverKind::Reductions: return u"Earlier reductions"_s;
    case LeverKind::Buckets: return u"Reductions without buckets"_s;
    case LeverKind::Jitter: return u"No jitter"_s;
    case LeverKind::Microbatches: return u"Microbatches alike"_s;
    case LeverKind::Sends: return u"Buffered sends"_s;
    case LeverKind::Channels: return u"Unlimited channels"_s;
    case LeverKind::Recompute: return u"No recompute"_s;
    case LeverKind::Cap: return u"No memory cap"_s;
    case LeverKind::Stages: return u"Even stages"_s;
    case LeverKind::Order: return u"Next forwards first"_s;
    }
    return name;
}

// By rank, not by length: the rows are found by their number.
static std::vector<std::size_t> idlestRanks(const BubbleReport& report)
{
    std::vector<std::size_t> rows(report.ranks.size());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    if (rows.size() <= mostRankRows) return rows;
    std::stable_sort(rows.begin(), rows.end(),
                     [&](std::size_t a, std::size_t b) { return report.ranks[a].idle > report.ranks[b].idle; });
    rows.resize(mostRankRows);
    std::sort(rows.begin(), rows.end());
    return rows;
}

SidePanel::SidePanel(QWidget* parent) : SectionColumn(parent)
{
    m_filter = addSection(u"Filtered"_s);
    m_levers = addSection(u"What would help"_s);
    m_schedule = addSection(u"Schedule"_s);
    m_bubble = addSection(u"Bubble ratio"_s);
    m_devices = addSection(u"Devices"_s);
    m_gaps = new GapSections(this);
    m_memory = addSection(u"Memory"_s);
    m_communication = addSection(u"Communication"_s);
    m_training = addSection(u"Training"_s);
    m_selection = addSection(u"Selection"_s);
    finish();
    setRun(nullptr, nullptr);
}

void SidePanel::setRun(std::shared_ptr<const Run> run, std::shared_ptr<const RunReport> figures)
{
    m_run = std::move(run);
    m_figures = std::move(figures);
    m_stepFigures.reset();
    m_filterNote.clear();
    m_selected = noSpan;
    m_aggregation = {};
    const bool shown = m_run && m_figures && m_run->timeline;
    m_units = shown ? Units{m_run->timeline->timeUnit(), m_run->timeline->memoryUnit()} : Units{};
    for (PanelSection* section :
         {m_levers, m_schedule, m_bubble, m_devices, m_memory, m_communication, m_training, m_selection}) {
        section->clear();
        section->setVisible(shown);
    }
    m_headline.clear();
    m_slack.reset();
    m_gaps->setReport(shown ? m_run->timeline : nullptr, shown ? m_figures : nullptr, levers());
    pairMeasure();
    fillFilter();
    if (!shown) return;
    fillFigures();
    fillTraining();
    fillSelection();
}

void SidePanel::fillFigures()
{
    for (PanelSection* section : {m_levers, m_schedule, m_bubble, m_devices, m_memory, m_communication})
        section->clear();
    m_all = m_figures->figures();
    fillLevers();
    fillSchedule();
    m_bubble->setVisible(m_figures->noOps.empty());
    if (m_figures->noOps.empty()) fillBubble();
    fillDevices();
    fillMemory();
    fillCommunication();
}

const document::Figure& SidePanel::figure(std::string_view key) const { return *document::findFigure(m_all, key); }

void SidePanel::addFigure(PanelSection& section, const document::Figure& figure, const QString& meaning,
                          const QString& of, const QString& more)
{
    const bool known = figure.unknown.empty();
    const QString value = shownFigure(figure, m_units);
    section.addRow(QString::fromStdString(figure.title) + (known ? of : QString()), known ? value + more : value,
                   (known ? QString() : u"Unknown: %1."_s.arg(QString::fromStdString(figure.unknown)) + u'\n') +
                       meaning);
    section.setFigure(QString::fromStdString(figure.key), value);
}

void SidePanel::fillFilter()
{
    m_filter->clear();
    m_filter->setVisible(filtered());
    if (!filtered()) return;
    m_filter->addText(m_filterNote, "value");
    auto* button = new QPushButton(u"Show the whole step"_s);
    button->setObjectName(u"link"_s);
    button->setToolTip(u"Clears the selected range (Esc in the timeline)"_s);
    connect(button, &QPushButton::clicked, this, &SidePanel::unfilterAsked, Qt::QueuedConnection);
    m_filter->addWidget(button);
}

void SidePanel::setFilter(std::shared_ptr<const RunReport> figures, const QString& note)
{
    if (!m_run || !m_figures || (!figures && !filtered())) return;
    if (figures) {
        if (!filtered()) m_stepFigures = m_figures;
        m_figures = std::move(figures);
    } else {
        m_figures = std::exchange(m_stepFigures, nullptr);
    }
    m_filterNote = note;
    m_gaps->setReport(m_run->timeline, m_figures, levers());
    pairMeasure();
    fillFilter();
    fillFigures();
}

void SidePanel::pairMeasure()
{
    m_paired = m_measure && m_run && m_run->timeline ? m_measure->against(*m_run, m_withinNoise) : nullptr;
    m_gaps->setMeasure(filtered() ? nullptr : m_paired);
}

void SidePanel::setMeasure(std::shared_ptr<const FigureMeasure> measure, bool withinNoise)
{
    if (measure == m_measure && (!measure || withinNoise == m_withinNoise)) return;
    m_measure = std::move(measure);
    m_withinNoise = withinNoise;
    pairMeasure();
    if (!m_run || !m_figures || !m_run->timeline) return;
    fillFigures();
    fillTraining();
}

void SidePanel::setSelection(SpanId span)
{
    m_selected = span;
    fillSelection();
    if (span == noSpan) return;
    // Laid out first, then scrolled to.
    QTimer::singleShot(40, m_selection, [this] { ensureWidgetVisible(m_selection, 0, 12); });
}

void SidePanel::setSlack(std::shared_ptr<const std::vector<Nanos>> slack)
{
    m_slack = std::move(slack);
    if (m_selected != noSpan) fillSelection();
}

void SidePanel::showGap()
{
    QTimer::singleShot(40, this,
                       [this] { ensureWidgetVisible(const_cast<PanelSection*>(m_gaps->selectedSection()), 0, 12); });
}

void SidePanel::setAggregation(const Aggregation& aggregation)
{
    m_aggregation = aggregation;
    fillSelection();
}

void SidePanel::setBudget(std::optional<Bytes> budget)
{
    m_budget = budget;
    if (m_run && m_figures) fillMemory();
}

void SidePanel::fillLevers()
{
    const bool shown = !filtered() && m_figures->levers && m_figures->noOps.empty();
    m_levers->setVisible(shown);
    if (!shown) return;
    const LeverTable& table = *m_figures->levers;
    if (!table.simulated) {
        m_levers->addText(u"Not simulated: %1."_s.arg(QString::fromStdString(table.reason)), "secondary");
        return;
    }
    const QString base = u"The step is simulated with the run's own costs (%1) and again with this one change."_s.arg(
        durationText(*table.simulated, m_units));
    const QString nothing =
        u"None of these would shorten the step: free links, equally fast ranks and stages, another order."_s;
    std::size_t rows = 0;
    bool others = false;
    for (const Lever& lever : table.shown()) {
        if (!lever.makespan || lever.gain <= 0) continue;
        if (++rows > mostLevers) break;
        if (table.ofOtherStep(lever) && !others) {
            if (rows == 1) m_levers->addText(nothing, "secondary");
            m_levers->addText(u"In other steps:"_s, "faint");
            others = true;
        }
        const Nanos before = *lever.makespan + lever.gain;
        m_levers->addRow(leverText(lever),
                         u"%1 (%2\u00a0%)"_s.arg(signedDurationText(-lever.gain, m_units),
                                                 signedFixed(-100.0 * static_cast<double>(lever.gain) /
                                                                 static_cast<double>(std::max<Nanos>(1, before)),
                                                             1)),
                         (lever.peak ? u"%1: the step then takes %2 and holds at most %3 on a rank."_s.arg(
                                           QString::fromStdString(lever.title), durationText(*lever.makespan, m_units),
                                           bytesText(*lever.peak, m_units))
                                     : u"%1: the step then takes %2."_s.arg(QString::fromStdString(lever.title),
                                                                            durationText(*lever.makespan, m_units))) +
                             u'\n' + base,
                         PanelSection::Tone::Better);
        m_levers->setFigure(u"levers."_s + QString::fromStdString(lever.name),
                            signedDurationText(-lever.gain, m_units));
    }
    if (rows == 0) m_levers->addText(nothing, "secondary");
    if (table.measured > 0)
        m_levers->addText(u"Simulated: %1; actual: %2 (%3\u00a0%)"_s.arg(durationText(*table.simulated, m_units),
                                                                         durationText(table.measured, m_units),
                                                                         signedFixed(100 * table.error(), 1)),
                          "faint");
}

// Median and interval of a figure over the measured steps, below its row. key: of the sample.
void SidePanel::tellOverSteps(PanelSection& section, std::string_view of, const char* key, const QString& tooltip)
{
    const FigureSample* sample = filtered() ? nullptr : m_figures->overSteps.find(key);
    if (sample == nullptr || sample->low == sample->high) return;
    const auto text = [&](double value) {
        document::Figure shown = figure(of);
        shown.value = value;
        return shownFigure(shown, m_units);
    };
    const QString value = u"%1 (%2 to %3)"_s.arg(text(sample->median), text(sample->low), text(sample->high));
    section.addRow(u"Over %1 steps"_s.arg(sample->steps), value,
                   u"Median over measured steps, and %1."_s.arg(
                       sample->interval() ? u"its 95 % interval by order statistics"_s
                                          : u"minimum and maximum; an interval needs six steps"_s) +
                       u'\n' + tooltip,
                   PanelSection::Tone::Faint);
    section.setFigure(u"over_steps."_s + QLatin1String(key), value);
}

void SidePanel::fillSchedule()
{
    const RunInfo& info = m_run->info;
    const auto& chunks = info.ranks > 0 ? info.stages / info.ranks : 0;
    if (!m_figures->noOps.empty()) {
        for (const char* key : {"whole_step", "bubble_fraction"})
            addFigure(*m_schedule, figure(key),
                      key == std::string_view("whole_step") ? definition::wholeStep() : definition::bubbleRatio());
        m_schedule->addText(u"Unknown: %1."_s.arg(QString::fromStdString(m_figures->noOps)));
        m_schedule->addRow(u"Clock"_s, clockText(info.clock), provenanceText(info));
        return;
    }
    m_schedule->addRow(u"Name"_s, scheduleTitle(info.scheduleName),
                       shownTip(QString::fromStdString(info.scheduleName)));
    m_schedule->addRow(u"Stages × microbatches"_s, u"%1 × %2"_s.arg(info.stages).arg(info.microbatches),
                       u"%1 ranks, stages on each: %2"_s.arg(info.ranks).arg(chunks));
    if (filtered())
        m_schedule->addRow(u"Range time"_s, shownFigure(figure("makespan"), m_units), definition::makespan());
    else
        addFigure(*m_schedule, figure("whole_step"), definition::wholeStep());
    if (const FigureMeasure* m = measure())
        m->tellTime(*m_schedule, m_figures->bubbles.stepTime(), m->figures().bubbles.stepTime(), true);
    tellOverSteps(*m_schedule, "whole_step", "whole_step", definition::wholeStep());
    if (!filtered() && m_figures->bubbles.outside() > 0)
        addFigure(*m_schedule, figure("makespan"), definition::makespan());
    if (!filtered())
        for (const std::string& said : m_figures->sentences()) m_schedule->addText(sentence(said), "secondary");
    m_schedule->addRow(u"Clock"_s, clockText(info.clock), provenanceText(info));
    if (const QString place = placeText(*m_run); !place.isEmpty()) m_schedule->addText(sentence(place), "secondary");
}

void SidePanel::fillBubble()
{
    const BubbleReport& report = m_figures->bubbles;
    m_headline = shownFigure(figure("bubble_fraction"), m_units);
    auto* row = new QWidget;
    auto* layout = new QHBoxLayout(row);
    layout->setContentsMargins(0, 0, 0, 6);
    layout->setSpacing(8);
    auto* big = makeLabel(m_headline, "headline", row, true);
    big->setFont(fontOf(FontRole::Headline));
    big->setToolTip(definition::bubbleRatio());
    layout->addWidget(big);
    layout->addStretch(1);
    auto* notes = new QVBoxLayout;
    notes->setSpacing(2);
    layout->addLayout(notes);
    if (const FigureMeasure* m = measure()) {
        const FigureMeasure::Change change = m->share(report.bubbleFraction, m->figures().bubbles.bubbleFraction);
        QLabel* against =
            new RowLabel(u"Baseline: %1"_s.arg(percentText(m->figures().bubbles.bubbleFraction)), "secondary", row);
        auto* delta = makeLabel(change.text, change.role(), row, true);
        for (QLabel* label : {against, delta}) {
            label->setAlignment(Qt::AlignRight);
            label->setToolTip(m->words());
            notes->addWidget(label);
        }
    } else if (m_figures->baseline) {
        const Baseline& base = *m_figures->baseline;
        const double points = (report.bubbleFraction - base.bubbleFraction) * 100;
        const QString name = QString::fromStdString(base.name);
        QLabel* against =
            new RowLabel(u"%1, simulated: %2"_s.arg(name, percentText(base.bubbleFraction)), "secondary", row);
        // Better or worse only beyond the noise of the measured steps.
        const FigureSample* sample = filtered() ? nullptr : m_figures->overSteps.find("bubble_fraction");
        const bool noise = std::abs(points) < 0.05 || (sample != nullptr && sample->low <= base.bubbleFraction &&
                                                       base.bubbleFraction <= sample->high);
        auto* delta = makeLabel(u"%1 points"_s.arg(signedFixed(points, 1)),
                                noise ? "secondary" : (points < 0 ? "better" : "worse"), row);
        const QString why =
            u"%1 with one stage per rank, simulated with this run's own costs (median time of each kind and "
            "stage): %2."_s.arg(name, durationText(base.makespan, m_units)) +
            (noise ? u'\n' + u"The difference is within the noise of the measured steps."_s : QString());
        for (QLabel* label : {against, delta}) {
            label->setAlignment(Qt::AlignRight);
            label->setToolTip(why);
            notes->addWidget(label);
        }
    }
    m_bubble->addWidget(row);
    m_bubble->setFigure(u"bubble_fraction"_s, m_headline);
    tellOverSteps(*m_bubble, "bubble_fraction", "bubble_fraction", definition::bubbleRatio());
    const double window = std::max<double>(1, static_cast<double>(report.makespan()));
    const std::vector<std::size_t> rows = idlestRanks(report);
    for (const std::size_t r : rows) {
        const RankBubbles& rank = report.ranks[r];
        std::array<double, paintCount> shares{};
        for (std::size_t k = 0; k < allKinds().size(); ++k)
            shares[static_cast<std::size_t>(paintOf(static_cast<OpKind>(k)))] +=
                static_cast<double>(rank.busyByKind[k]) / window;
        std::vector<ShareBar::Part> parts;
        for (std::size_t p = 0; p < paintCount; ++p)
            if (shares[p] > 0) parts.push_back({static_cast<Paint>(p), shares[p]});
        if (rank.apart > 0) parts.push_back({Paint::Optimizer, static_cast<double>(rank.apart) / window});
        auto* bar = new ShareBar;
        bar->setParts(std::move(parts));
        const QString idle = percentText(static_cast<double>(rank.idle) / window, 0);
        m_bubble->addBar(
            u"Rank %1"_s.arg(r), bar, idle,
            u"%1 busy, %2 idle of %3\n%4"_s.arg(durationText(rank.busy, m_units), durationText(rank.idle, m_units),
                                                durationText(report.makespan(), m_units), definition::idleOfRank()));
        m_bubble->setFigure(u"by_rank.%1.idle"_s.arg(r), idle);
        if (const FigureMeasure* m = measure(); m != nullptr && r < m->figures().bubbles.ranks.size()) {
            const BubbleReport& before = m->figures().bubbles;
            const double then =
                static_cast<double>(before.ranks[r].idle) / std::max<double>(1, static_cast<double>(before.makespan()));
            m->tell(*m_bubble, m->share(static_cast<double>(rank.idle) / window, then, 0));
        }
    }
    if (rows.size() < report.ranks.size())
        m_bubble->addText(
            u"The %L1 ranks of %L2 that are idle longest. The gutter of the timeline has every rank."_s.arg(rows.size())
                .arg(report.ranks.size()),
            "faint");
}

void SidePanel::fillMemory()
{
    m_memory->clear();
    m_memory->setVisible(true);
    const document::Figure &peak = figure("peak_activation"), &weights = figure("weight_bytes");
    const Bytes most = std::llround(peak.value);
    QString byRank;
    for (std::size_t r = 0; peak.unknown.empty() && r < peak.byRank.size(); ++r)
        byRank += u'\n' + u"rank %1: %2"_s.arg(r).arg(bytesText(std::llround(peak.byRank[r]), m_units));
    addFigure(*m_memory, peak, definition::peakActivation() + byRank, u" (rank %1)"_s.arg(peak.fullestRank()));
    if (!peak.unknown.empty()) return;
    if (const FigureMeasure* m = measure()) m->tellBytes(*m_memory, most, m->figures().peaks());
    tellOverSteps(*m_memory, "peak_activation", "peak_activation", definition::peakActivation());
    if (m_figures->baseline && !m_figures->baseline->peakActivation.empty()) {
        const auto& base = m_figures->baseline->peakActivation;
        const Bytes same = *std::max_element(base.begin(), base.end());
        if (same > 0)
            m_memory->addRow(u"Same in %1, simulated"_s.arg(QString::fromStdString(m_figures->baseline->name)),
                             bytesText(same, m_units),
                             u"Largest peak of any rank under 1F1B with this run's activation sizes."_s);
    }
    if (weights.unknown.empty() && weights.value > 0) {
        addFigure(*m_memory, weights, u"Bytes of weights held by the rank that holds most."_s,
                  u" (rank %1)"_s.arg(weights.fullestRank()));
        if (const FigureMeasure* m = measure())
            m->tellBytes(*m_memory, std::llround(weights.value), m->figures().peaks(MemoryCategory::Weights));
    }
    if (m_budget) {
        const Bytes left = *m_budget - most;
        m_memory->addRow(
            u"Budget per rank"_s, bytesText(*m_budget, m_units),
            u"The dashed line in the charts. Idle time that only more memory would fill counts as memory."_s);
        m_memory->addRow(u"Headroom to budget"_s, bytesText(left, m_units),
                         u"Budget %1 minus the largest peak."_s.arg(bytesText(*m_budget, m_units)),
                         left < 0 ? PanelSection::Tone::Worse : PanelSection::Tone::Plain);
    }
    auto* button = new QPushButton(m_budget ? u"Change the budget…"_s : u"Set a budget…"_s);
    button->setObjectName(u"link"_s);
    button->setToolTip(u"How much activation memory a rank may use"_s);
    connect(button, &QPushButton::clicked, this, &SidePanel::budgetAsked);
    m_memory->addWidget(button);
}

// Traces whose ops are not known show what their devices did instead.
void SidePanel::fillDevices()
{
    const bool shown = !m_figures->noOps.empty() && !m_figures->devices.empty() && !filtered();
    m_devices->setVisible(shown);
    if (!shown) return;
    RankDeviceTime sum;
    Nanos window = 0;
    std::int64_t devices = 0;
    for (const RankDeviceTime& rank : m_figures->devices) {
        window += rank.window();
        devices += rank.calls > 0 ? 1 : 0;
        sum.computing += rank.computing;
        sum.communicating += rank.communicating;
        sum.copying += rank.copying;
        sum.busy += rank.busy;
        sum.hidden += rank.hidden;
        sum.graphs += rank.graphs;
    }
    if (const std::string unknown = unknownWithoutKernels(*m_run); !unknown.empty())
        m_devices->addText(u"Unknown: %1."_s.arg(QString::fromStdString(unknown)), "secondary");
    if (window <= 0) return;
    // key: table and column of the report, summed over its rows
    const auto row = [&](const QString& title, const QString& key, Nanos time, const QString& meaning) {
        m_devices->addRow(title,
                          u"%1 (%2)"_s.arg(percentText(static_cast<double>(time) / static_cast<double>(window)),
                                           durationText(time, m_units)),
                          meaning);
        m_devices->setFigure(key, durationText(time, m_units));
    };
    m_devices->addRow(
        u"First to last kernel"_s, durationText(window / std::max<std::int64_t>(1, devices), m_units),
        u"From the start of the step's first kernel or copy to the end of the last; mean over devices."_s);
    if (sum.graphs > 0) {
        row(u"CUDA graphs"_s, u"device_time.graphs_ns"_s, sum.graphs,
            u"Graphs traced as a whole: what computes and what communicates in them is unknown. Record again with "
            "--cuda-graph-trace=node."_s);
        m_devices->addRow(u"Computing, communicating"_s, u"Unknown"_s, u"CUDA graphs were traced as a whole."_s);
    } else {
        row(u"Computing"_s, u"device_time.computing_ns"_s, sum.computing,
            u"A kernel runs whose class is not communication. Summed over devices, as a share of their time from "
            "first to last."_s);
        row(u"Communicating"_s, u"device_time.communicating_ns"_s, sum.communicating,
            u"A kernel runs whose class is collective or send, receive."_s);
        row(u"of which exposed"_s, u"device_time.exposed_ns"_s, sum.exposed(),
            u"Communicating while nothing computes."_s);
    }
    row(u"Copying"_s, u"device_time.copying_ns"_s, sum.copying, u"A copy or a fill runs."_s);
    row(u"Idle"_s, u"device_time.idle_ns"_s, window - sum.busy, u"Nothing runs."_s);
    RankDeviceIdle why;
    for (const RankDeviceIdle& rank : m_figures->idle)
        for (std::size_t s = 0; s < deviceStateCount; ++s) why.time[s] += rank.time[s];
    const auto part = [&](DeviceState state, const QString& title, const QString& meaning) {
        // from 0.5 %
        if (why.of(state) * 200 >= window)
            row(title,
                u"device_idle.%1_ns"_s.arg(
                    QString::fromUtf8(toText(state).data(), static_cast<qsizetype>(toText(state).size()))),
                why.of(state), meaning);
    };
    part(DeviceState::Launch, u"of which late launches"_s,
         u"What runs next was launched after everything before it had ended: the host is the limit."_s);
    part(DeviceState::Sync, u"of which host waits"_s,
         u"The host was in a synchronising call and could launch nothing."_s);
    part(DeviceState::Queued, u"of which queued"_s,
         u"What runs next was launched in time and waited for an event, or for its launch to arrive."_s);
    part(DeviceState::Unknown, u"of which unknown"_s, u"The trace does not say when what runs next was launched."_s);
    QStringList classes;
    Nanos total = 0;
    for (const ClassTime& time : m_figures->classes) total += time.total;
    for (const ClassTime& time : m_figures->classes) {
        const auto title = titleOf(time.of);
        if (classes.size() < 6 && time.total * 100 >= total)
            classes << u"%1 %2"_s.arg(QString::fromUtf8(title.data(), static_cast<qsizetype>(title.size())).toLower(),
                                      percentText(static_cast<double>(time.total) / static_cast<double>(total), 0));
    }
    if (!classes.isEmpty()) m_devices->addText(wholeQuantities(u"Kernel time: %1."_s.arg(classes.join(u"; "_s))));
    m_devices->addText(
        u"The tables Device time, Why devices do not compute and Time by kernel class show them by rank."_s, "faint");
}

void SidePanel::fillCommunication()
{
    const document::Section section = communicationSection(*m_figures, m_all);
    bool any = false;
    for (const document::Element& element : section.elements) {
        const auto* one = std::get_if<document::Figure>(&element);
        if (one == nullptr || !one->shown) continue;
        any = true;
        const QString note = one->note.empty() ? QString() : u'\n' + sentence(QString::fromStdString(one->note));
        addFigure(*m_communication, *one, sentence(QString::fromStdString(one->meaning)) + note);
        if (measure() != nullptr) measure()->tell(*m_communication, *one);
    }
    m_communication->setVisible(any);
    const auto latency = m_figures->linkLatency();
    const document::Figure& time = figure("overlap.comm_time");
    if (!any || !latency || !time.unknown.empty() || time.value == 0) return;
    m_communication->addRow(u"Latency per hop"_s, durationText(*latency, m_units),
                            u"From the run's cost model: given, or fitted as the median time between a producer's "
                            "end and the arrival."_s);
    m_communication->setFigure(u"link_latency"_s, durationText(*latency, m_units));
}

void SidePanel::fillTraining()
{
    m_training->clear();
    const Metric* loss = m_run->metric("loss");
    const Metric* contention = m_run->metric("contention");
    const QString weights = QString::fromStdString(weightsText(*m_run));
    const bool any = (loss != nullptr && !loss->values.empty()) ||
                     (contention != nullptr && !contention->values.empty()) || !weights.isEmpty();
    m_training->setVisible(any);
    if (!any) return;
    const auto step = static_cast<std::size_t>(m_figures->step);
    const auto addOwn = [this](const QString& title, const QString& key, const QString& value, const QString& meaning) {
        m_training->addRow(title, value, meaning);
        m_training->setFigure(key, value);
    };
    if (loss != nullptr && !loss->values.empty()) {
        if (step < loss->values.size())
            addOwn(u"Loss of this step"_s, u"loss.step"_s, fixed(loss->values[step], 4), definition::loss());
        addOwn(u"Loss over the run"_s, u"loss.run"_s,
               u"%1 → %2"_s.arg(fixed(loss->values.front(), 3), fixed(loss->values.back(), 3)), definition::loss());
        if (const FigureMeasure* m = measure(); m != nullptr && m->lastLoss())
            m->tell(*m_training, m->difference(loss->values.back(), *m->lastLoss(), 3));
    }
    if (!weights.isEmpty()) {
        const Metric* deviation = m_run->metric("deviation");
        const bool measured = deviation != nullptr && !deviation->values.empty();
        addOwn(u"Deviation of the weights"_s, u"deviation"_s,
               measured ? QString::number(deviation->values.back(), 'e', 2) : u"not measured"_s,
               u"This schedule's training results differ from synchronous training. Weights: %1."_s.arg(weights));
    }
    if (contention != nullptr && step < contention->values.size())
        addOwn(u"Contention"_s, u"contention.step"_s, percentText(contention->values[step]),
               u"1 − processor time ÷ wall-clock time of the busy ops: time taken by other work on this computer."_s);
}

} // namespace stagewright
