#include "widgets/panel/side_panel.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <QHBoxLayout>
#include <QPushButton>
#include <QVBoxLayout>

#include "schedules/model/kinds.h"
#include "traces/analysis/kernels.h"
#include "traces/report/run_document.h"
#include "traces/report/table_document.h"
#include "traces/run/run_facts.h"
#include "traces/step/step_ops.h"
#include "widgets/literals.h"
#include "widgets/runs/runs_model.h"
#include "widgets/sentence.h"
#include "widgets/style.h"
#include "widgets/timeline/span_card.h"

namespace stagewright {

static constexpr std::size_t mostLevers = 8;
static constexpr std::size_t mostRankRows = 8;

SidePanel::SidePanel(QWidget* parent)
    : QStackedWidget(parent), m_summary(new SectionColumn(this)), m_selection(new SelectionColumn(this))
{
    addWidget(m_summary);
    addWidget(m_selection);
    m_summary->setAccessibleName(u"Figures of the run"_s);
    m_selection->setAccessibleName(u"What is selected"_s);
    m_heading = m_summary->addSection({});
    m_heading->setRuled(false);
    m_filter = m_summary->addSection(u"Filtered"_s);
    m_levers = m_summary->addSection(u"What would help"_s);
    m_schedule = m_summary->addSection(u"Schedule"_s);
    m_bubble = m_summary->addSection(u"Bubble ratio"_s);
    m_devices = m_summary->addSection(u"Devices"_s);
    m_gaps = new GapSections(m_summary, m_selection->gapSection());
    m_memory = m_summary->addSection(u"Memory"_s);
    m_communication = m_summary->addSection(u"Communication"_s);
    m_training = m_summary->addSection(u"Training"_s);
    m_summary->finish();
    connect(m_gaps, &GapSections::selectedChanged, this, [this] {
        m_selection->refresh();
        emit selectionShown(anySelected());
    });
    makeCopyable(this, [this] { return table(); });
    setRun(nullptr, nullptr);
}

void SidePanel::setRun(std::shared_ptr<const Run> run, std::shared_ptr<const RunReport> figures, bool acts,
                       const QString& heading)
{
    if (run != m_run) m_everyRank = false;
    m_run = std::move(run);
    m_figures = std::move(figures);
    m_stepFigures.reset();
    m_filterNote.clear();
    const bool shown = m_run && m_figures && m_run->timeline;
    m_units = shown ? Units{m_run->timeline->timeUnit(), m_run->timeline->memoryUnit()} : Units{};
    for (PanelSection* section :
         {m_heading, m_levers, m_schedule, m_bubble, m_devices, m_memory, m_communication, m_training}) {
        section->clear();
        section->setVisible(shown);
    }
    m_heading->setVisible(shown && !heading.isEmpty());
    if (!heading.isEmpty()) m_heading->addText(heading, "value");
    m_headline.clear();
    m_selection->setRun(shown ? m_run : nullptr, shown ? m_figures : nullptr);
    m_gaps->setActs(acts);
    m_gaps->setReport(shown ? m_run->timeline : nullptr, shown ? m_figures : nullptr, levers());
    pairMeasure();
    fillFilter();
    if (!shown) return;
    fillFigures();
    fillTraining();
}

void SidePanel::setTheme(const Theme& theme)
{
    m_summary->setTheme(theme);
    m_selection->setTheme(theme);
}

QString SidePanel::plainText() const { return m_summary->plainText() + u"\n\n"_s + m_selection->plainText(); }

TableText SidePanel::table() const
{
    return currentWidget() == m_selection ? m_selection->table() : m_summary->table();
}

void SidePanel::setSelection(SpanId span)
{
    m_selection->setSelection(span);
    emit selectionShown(anySelected());
}

void SidePanel::fillFigures()
{
    for (PanelSection* section : {m_levers, m_schedule, m_bubble, m_devices, m_memory, m_communication})
        section->clear();
    m_all = m_figures->figures();
    for (document::Figure& figure : m_all) // what every step has needs no second line
        if (const FigureSample* steps = m_figures->overSteps.find(figure.key); steps && steps->low == steps->high)
            figure.note.clear();
    fillLevers();
    fillSchedule();
    m_bubble->setVisible(m_figures->noOps.empty());
    if (m_figures->noOps.empty()) fillBubble();
    fillDevices();
    fillMemory();
    fillCommunication();
}

const document::Figure& SidePanel::figure(std::string_view key) const { return *document::findFigure(m_all, key); }

SectionRows SidePanel::rows() const { return {m_units, measure(), {}, {}}; }

void SidePanel::addFigure(PanelSection& section, std::string_view key) { rows().add(section, figure(key)); }

void SidePanel::fillFilter()
{
    m_filter->clear();
    m_filter->setVisible(filtered());
    if (!filtered()) return;
    m_filter->addText(m_filterNote, "value");
    auto* button = new LinkButton(u"Show the whole step"_s, u"Clears the selected range (Esc in the timeline)"_s);
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

void SidePanel::setBudget(std::optional<Bytes> budget)
{
    m_budget = budget;
    if (m_run && m_figures) fillMemory();
}

namespace {

// Whether nothing but its warm-up has been recorded so far: memory and caches are first used there, so what is slow in
// it says nothing about the steps that follow.
bool warmsUp(const RunInfo& info) { return info.state == RunState::Recording && info.steps <= info.warmupSteps; }

} // namespace

void SidePanel::fillLevers()
{
    const bool shown = !filtered() && m_figures->levers && m_figures->noOps.empty();
    m_levers->setVisible(shown);
    if (!shown) return;
    if (warmsUp(m_run->info)) {
        m_levers->addText(u"The warm-up is running. What would help is shown from the first measured step on."_s);
        return;
    }
    document::Section section = leversSection(*m_figures);
    for (document::Element& element : section.elements)
        if (auto* table = std::get_if<document::Table>(&element)) {
            table->mostShown = mostLevers;
            std::erase_if(table->rows, [](const document::Row& row) { return row.tone != document::Tone::Good; });
        }
    SectionRows shownRows = rows();
    shownRows.act = [this](const QString& lever) { emit leverAsked(lever); };
    shownRows.add(*m_levers, section);
    auto* plan = new LinkButton(u"Plan a better order…"_s,
                                u"Searches for the shortest order within a memory cap, with a proven lower bound"_s);
    connect(plan, &QPushButton::clicked, this, &SidePanel::planAsked, Qt::QueuedConnection);
    m_levers->addWidget(plan);
}

void SidePanel::fillSchedule()
{
    const RunInfo& info = m_run->info;
    const auto& chunks = info.ranks > 0 ? info.stages / info.ranks : 0;
    if (!m_figures->noOps.empty()) {
        m_schedule->addText(
            u"Step time and bubble ratio are unknown: %1."_s.arg(QString::fromStdString(m_figures->noOps)));
        m_schedule->addRow(u"Clock"_s, clockText(info.clock), provenanceText(info));
        return;
    }
    const std::string& missing = m_run->timeline->missingRanks();
    const QString why = missing.empty() ? u"The run has no schedule."_s : QString(sentence(missing));
    const QString name = !info.scheduleName.empty() ? scheduleTitle(info.scheduleName)
                         : m_run->schedule          ? u"custom order"_s
                                                    : u"unknown"_s;
    m_schedule->addRow(
        u"Name"_s, name,
        info.scheduleName.empty() && !m_run->schedule ? why : shownTip(QString::fromStdString(info.scheduleName)));
    m_schedule->addRow(u"Stages × microbatches"_s,
                       info.stages == 0 ? u"unknown"_s : u"%L1 × %L2"_s.arg(info.stages).arg(info.microbatches),
                       info.stages == 0 ? why : u"%1 ranks, stages on each: %2"_s.arg(info.ranks).arg(chunks));
    if (filtered())
        m_schedule->addRow(u"Range time"_s, shownFigure(figure("makespan"), m_units), figureMeaning("makespan"));
    else
        addFigure(*m_schedule, "whole_step");
    if (!filtered() && m_figures->bubbles.outside() > 0) addFigure(*m_schedule, "makespan");
    if (!filtered() && !warmsUp(info))
        for (const std::string& said : m_figures->sentences()) m_schedule->addText(sentence(said), "secondary");
    if (const std::string disturbance = configured(*m_run, "perturb"); !disturbance.empty())
        m_schedule->addRow(u"Disturbance"_s, shownName(disturbance), u"It was recorded so on purpose."_s);
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
    big->setToolTip(figureMeaning("bubble_fraction"));
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
    if (const std::string& note = figure("bubble_fraction").note; !note.empty())
        m_bubble->addText(wholeQuantities(sentence(note)), "faint");
    if (report.partial)
        m_bubble->addText(u"Unknown: %1."_s.arg(QString::fromStdString(report.noArrivals)), "secondary");
    else
        addRankRows();
}

// Where ranks are many, those with the same share, one after the other, are one row; of many rows the idlest are shown,
// and the others on demand.
void SidePanel::addRankRows()
{
    const BubbleReport& report = m_figures->bubbles;
    const double window = std::max<double>(1, static_cast<double>(report.makespan()));
    const auto shown = [&](std::size_t rank) {
        return percentText(static_cast<double>(report.ranks[rank].idle) / window, 0);
    };
    struct Rows {
        std::size_t first, last;
    };
    const bool many = report.ranks.size() > mostRankRows;
    std::vector<Rows> rows;
    for (std::size_t r = 0; r < report.ranks.size(); ++r)
        if (many && !m_everyRank && !rows.empty() && shown(rows.back().last) == shown(r))
            rows.back().last = r;
        else
            rows.push_back({r, r});
    const std::size_t all = rows.size();
    const auto idleOf = [&](const Rows& row) { return report.ranks[row.first].idle; };
    if (many && !m_everyRank && all > mostRankRows) {
        std::stable_sort(rows.begin(), rows.end(), [&](const Rows& a, const Rows& b) { return idleOf(a) > idleOf(b); });
        rows.resize(mostRankRows);
        std::sort(rows.begin(), rows.end(), [](const Rows& a, const Rows& b) { return a.first < b.first; });
    }
    for (const Rows& row : rows) addRankRow(row.first, row.last);
    if (!many) return;
    const bool summed = all < report.ranks.size();
    const QString what = m_everyRank                   ? u"Fewer rows"_s
                         : rows.size() < all || summed ? u"Each of the %L1 ranks…"_s.arg(report.ranks.size())
                                                       : QString();
    if (rows.size() < all)
        m_bubble->addText(
            summed ? u"The ranks that are idle longest; neighbours with the same share are one row."_s
                   : u"The %L1 ranks of %L2 that are idle longest."_s.arg(rows.size()).arg(report.ranks.size()),
            "faint");
    if (what.isEmpty()) return;
    auto* button = new LinkButton(what, u"The gutter of the timeline has every rank, too."_s);
    connect(
        button, &QPushButton::clicked, this,
        [this] {
            m_everyRank = !m_everyRank;
            m_bubble->clear();
            fillBubble();
        },
        Qt::QueuedConnection);
    m_bubble->addWidget(button);
}

void SidePanel::addRankRow(std::size_t first, std::size_t last)
{
    const BubbleReport& report = m_figures->bubbles;
    const double window = std::max<double>(1, static_cast<double>(report.makespan()));
    const RankBubbles& rank = report.ranks[first];
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
    const QString times = u"%1 busy, %2 idle of %3"_s.arg(
        durationText(rank.busy, m_units), durationText(rank.idle, m_units), durationText(report.makespan(), m_units));
    m_bubble->addBar(first == last ? u"Rank %1"_s.arg(first) : u"Ranks %1 to %2"_s.arg(first).arg(last), bar, idle,
                     (first == last ? times : u"Rank %1: %2"_s.arg(first).arg(times)) +
                         u"\nIdle: not busy and not in the optimizer or a collective."_s);
    m_bubble->setFigure(u"by_rank.%1.idle"_s.arg(first), idle);
    if (const FigureMeasure* m = measure();
        first == last && m != nullptr && first < m->figures().bubbles.ranks.size()) {
        const BubbleReport& before = m->figures().bubbles;
        const double then =
            static_cast<double>(before.ranks[first].idle) / std::max<double>(1, static_cast<double>(before.makespan()));
        m->tell(*m_bubble, m->share(static_cast<double>(rank.idle) / window, then, 0));
    }
}

void SidePanel::fillMemory()
{
    m_memory->clear();
    m_memory->setVisible(true);
    const document::Figure &peak = figure("peak_activation"), &weights = figure("weight_bytes");
    const Bytes most = std::llround(peak.value);
    if (!peak.unknown.empty()) {
        m_memory->addText(u"Activations are unknown: %1."_s.arg(QString::fromStdString(peak.unknown)), "faint");
        return;
    }
    rows().add(*m_memory, peak);
    if (m_figures->baseline && !m_figures->baseline->peakActivation.empty()) {
        const auto& base = m_figures->baseline->peakActivation;
        const Bytes same = *std::max_element(base.begin(), base.end());
        if (same > 0)
            m_memory->addRow(u"Same in %1, simulated"_s.arg(QString::fromStdString(m_figures->baseline->name)),
                             bytesText(same, m_units),
                             u"Largest peak of any rank under 1F1B with this run's activation sizes."_s);
    }
    if (weights.unknown.empty() && weights.value > 0) rows().add(*m_memory, weights);
    if (m_budget) {
        const Bytes left = *m_budget - most;
        m_memory->addRow(
            u"Budget per rank"_s, bytesText(*m_budget, m_units),
            u"The dashed line in the charts. Idle time that only more memory would fill counts as memory."_s);
        m_memory->addRow(u"Headroom to budget"_s, bytesText(left, m_units),
                         u"Budget %1 minus the largest peak."_s.arg(bytesText(*m_budget, m_units)),
                         left < 0 ? document::Tone::Bad : document::Tone::Plain);
    }
    auto* button = new LinkButton(m_budget ? u"Change the budget…"_s : u"Set a budget…"_s,
                                  u"How much activation memory a rank may use"_s);
    connect(button, &QPushButton::clicked, this, &SidePanel::budgetAsked);
    m_memory->addWidget(button);
}

// Traces whose ops are not known show what their devices did instead.
void SidePanel::fillDevices()
{
    const bool shown = !m_figures->noOps.empty() && !m_figures->devices.empty() && !filtered();
    m_devices->setVisible(shown);
    if (!shown) return;
    for (const ReportTable& table : m_figures->devices) {
        if (!table.unknown.empty() && &table == &m_figures->devices.front()) {
            m_devices->addText(u"Unknown: %1."_s.arg(QString::fromStdString(table.unknown)));
            if (hasKernels(*m_run->timeline)) { // all of them are outside the steps
                auto* all =
                    new LinkButton(u"Show all steps"_s, u"The kernels are between and beside the steps' ranges"_s);
                connect(all, &QPushButton::clicked, this, &SidePanel::allStepsAsked, Qt::QueuedConnection);
                m_devices->addWidget(all);
            }
        }
        if (table.columns.front().kind == ColumnKind::Text) continue; // not by rank
        document::Section section = totalsSection(table);
        std::erase_if(section.elements, [this](const document::Element& element) { // of a table before
            const QString title = QString::fromStdString(std::get<document::Figure>(element).title) + u": "_s;
            return m_devices->plainText().contains(u'\n' + title);
        });
        for (document::Element& element : section.elements) // once for all tables
            if (std::string& note = std::get<document::Figure>(element).note;
                !note.empty() && m_devices->plainText().contains(u'\n' + wholeQuantities(sentence(note))))
                note.clear();
        rows().add(*m_devices, section);
    }
    for (const ReportTable& table : m_figures->devices) {
        // of a table by name, such as that of the classes of kernels, the largest shares
        const auto share = std::find_if(table.columns.begin(), table.columns.end(),
                                        [](const auto& column) { return column.key == "share"; });
        QStringList largest;
        for (const TableRow& row : table.rows) {
            if (share == table.columns.end() || table.columns.front().words == nullptr || largest.size() == 6) break;
            const auto* part = std::get_if<double>(&row[static_cast<std::size_t>(share - table.columns.begin())]);
            if (part != nullptr && *part >= 0.01)
                largest << u"%1 %2"_s.arg(qtText(table.columns.front().words(std::get<std::string>(row[0]))).toLower(),
                                          percentText(*part, 0));
        }
        if (!largest.empty()) m_devices->addText(wholeQuantities(u"Kernel time: %1."_s.arg(largest.join(u"; "_s))));
    }
    for (const ReportTable& table : m_figures->devices) {
        if (table.sentence.empty()) continue;
        m_devices->addText(wholeQuantities(sentence(table.sentence)));
        // the row that the sentence is about comes first
        if (const SpanId first = table.ops.empty() ? noSpan : table.ops.front(); first != noSpan) {
            auto* go = new LinkButton(u"Show it on the timeline"_s,
                                      inLines(u"Selects %1"_s.arg(opOnRank(*m_run->timeline, first))));
            connect(
                go, &QPushButton::clicked, this, [this, first] { emit spanAsked(first); }, Qt::QueuedConnection);
            m_devices->addWidget(go);
        }
    }
    m_devices->addText(u"Analyse › Tables shows them by rank."_s, "faint");
}

void SidePanel::fillCommunication()
{
    const document::Section section = communicationSection(*m_figures, m_all);
    const bool any = std::any_of(section.elements.begin(), section.elements.end(), [](const auto& element) {
        const auto* one = std::get_if<document::Figure>(&element);
        return one != nullptr && one->shown;
    });
    m_communication->setVisible(any);
    if (!any) return;
    rows().add(*m_communication, section);
    const auto latency = m_figures->linkLatency();
    const document::Figure& time = figure("overlap.comm_time");
    if (!latency || !time.unknown.empty() || time.value == 0) return;
    m_communication->addRow(u"Latency per hop"_s, durationText(*latency, m_units),
                            u"From the run's cost model: given, or fitted as the median time between a producer's "
                            "end and the arrival."_s);
    m_communication->setFigure(u"link_latency"_s, durationText(*latency, m_units));
}

void SidePanel::fillTraining()
{
    m_training->clear();
    const std::vector<document::Figure> figures = trainingFigures(*m_run, m_figures->step);
    m_training->setVisible(!figures.empty());
    for (const document::Figure& figure : figures) rows().add(*m_training, figure);
}

} // namespace stagewright
