#include "widgets/compare/compare_panel.h"

#include <algorithm>
#include <cmath>

#include <QComboBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QRegularExpression>
#include <QVBoxLayout>

#include "traces/compare/comparison_document.h"
#include "traces/compare/device_tables.h"
#include "widgets/compare/op_table.h"
#include "widgets/compare/waterfall_chart.h"
#include "widgets/literals.h"
#include "widgets/plot/plot_widget.h"
#include "widgets/runs/runs_model.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {

namespace {

QString named(const std::string& text, char letter) { return QString::fromStdString(namedFor(text, letter)); }

// The table has the main figures; causes of idle time are below, each with its share of the change.
bool standsInTable(const std::string& key)
{
    return key != "span_ns" && key != "bubble_rate_span" && !key.starts_with("idle_ns.") && !key.starts_with("apart_");
}

} // namespace

ComparePanel::ComparePanel(QWidget* parent) : SectionColumn(parent)
{
    buildChoices();
    m_differences = addSection(u"Different setups"_s);
    m_table = addSection(u"Difference (B against A)"_s);
    buildWaterfall();
    m_why = addSection(u"Why"_s);
    for (PanelSection*& section : m_kernels) section = addSection({});
    m_idle = addSection(u"Idle time by rank"_s);
    m_split = addSection({});
    m_opsTitle = makeLabel(u"Ops by change"_s, "title", widget());
    m_ops = new CompareOpTable(widget());
    addWidget(m_opsTitle);
    addWidget(m_ops);
    connect(m_ops, &CompareOpTable::opChosen, this, &ComparePanel::opChosen);
    finish();
    setComparison(nullptr, nullptr, nullptr);
}

void ComparePanel::buildChoices()
{
    m_choices = new QWidget(widget());
    auto* grid = new QGridLayout(m_choices);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(5);
    grid->setColumnStretch(1, 1);
    const auto add = [&](int row, const QString& title, const QString& tooltip) {
        auto* box = new QComboBox(m_choices);
        box->setAccessibleName(title);
        box->setToolTip(tooltip);
        box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
        auto* label = makeLabel(title, "secondary", m_choices);
        label->setBuddy(box);
        grid->addWidget(label, row, 0);
        grid->addWidget(box, row, 1);
        return box;
    };
    m_against = add(0, u"Compare A with"_s, u"The run that this panel and the memory curves compare with A"_s);
    m_align = add(
        1, u"Aligned at"_s,
        u"Aligns the runs on the axis at the start of the step, or at the start of the op selected in the timeline"_s);
    m_align->addItems({u"the start of the step"_s, u"the selected op"_s});
    m_step = add(2, u"Step"_s,
                 u"The step compared: each run's measured step with the median time, or the same step of each"_s);
    connect(m_against, &QComboBox::activated, this, [this](int index) { emit againstAsked(index + 1); });
    connect(m_align, &QComboBox::activated, this, [this](int index) { emit alignAsked(index == 1); });
    connect(m_step, &QComboBox::activated, this, [this](int index) { emit stepAsked(index - 1); });
    addWidget(m_choices);
}

void ComparePanel::buildWaterfall()
{
    m_fall = new QWidget(widget());
    auto* column = new QVBoxLayout(m_fall);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(6);
    auto* head = new QHBoxLayout;
    m_fallTitle = makeLabel({}, "title", m_fall);
    head->addWidget(m_fallTitle);
    head->addStretch();
    m_fallKind = new QComboBox(m_fall);
    m_fallKind->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon); // its tooltip has the full text
    m_fallKind->setMinimumContentsLength(14);
    m_fallKind->addItems({u"critical path"_s, u"one change at a time"_s});
    m_fallKind->setAccessibleName(u"What the waterfall shows"_s);
    m_fallKind->setToolTip(u"Critical path: the contribution of each class to the change. One change at a time: the "
                           "schedules between A and B, each simulated. Both add up to the change exactly."_s);
    head->addWidget(m_fallKind);
    column->addLayout(head);
    m_waterfall = new PlotWidget(u"waterfall"_s, u"Waterfall of the change in step time"_s, m_fall);
    m_waterfall->setOnPanel();
    column->addWidget(m_waterfall);
    m_fallNote = makeLabel({}, "secondary", m_fall);
    m_fallNote->setWordWrap(true);
    column->addWidget(m_fallNote);
    makeCopyable(m_waterfall, [this] { return waterfallTable(m_bars, m_units); });
    connect(m_fallKind, &QComboBox::currentIndexChanged, this, [this] { fillWaterfall(); });
    addWidget(m_fall);
}

void ComparePanel::setChoices(const QStringList& names, int against, bool alignedAtOp, int steps, int step)
{
    m_names = names;
    m_against->clear();
    for (int i = 1; i < names.size(); ++i)
        m_against->addItem(u"%1  %2"_s.arg(QChar(static_cast<char16_t>(u'A' + i))).arg(names[i]));
    m_against->setCurrentIndex(against - 1);
    m_letter = QChar(static_cast<char16_t>(u'A' + against));
    m_align->setCurrentIndex(alignedAtOp ? 1 : 0);
    m_step->clear();
    m_step->addItem(u"each run's median step"_s);
    for (int i = 0; i < steps; ++i) m_step->addItem(u"step %1 of each run"_s.arg(i + 1));
    m_step->setCurrentIndex(step + 1);
    m_step->setEnabled(steps > 1);
}

void ComparePanel::setAll(std::vector<std::shared_ptr<const Comparison>> all, const QString& note)
{
    m_all = std::move(all);
    m_note = note;
}

void ComparePanel::setTheme(const Theme& theme)
{
    SectionColumn::setTheme(theme);
    m_waterfall->setTheme(theme);
    m_ops->setTheme(theme);
}

void ComparePanel::setComparison(const std::shared_ptr<const Run>& a, const std::shared_ptr<const Run>& b,
                                 const std::shared_ptr<const Comparison>& comparison)
{
    const bool shown = a && b && comparison;
    m_comparison = shown ? comparison : nullptr;
    for (PanelSection* section : {m_differences, m_table, m_idle, m_split, m_why}) {
        section->clear();
        section->setVisible(shown);
    }
    for (PanelSection* section : m_kernels) {
        section->clear();
        section->hide();
    }
    m_choices->setVisible(shown);
    for (QWidget* part : {m_fall, static_cast<QWidget*>(m_opsTitle), static_cast<QWidget*>(m_ops)})
        part->setVisible(shown && comparison->sameUnits && comparison->unknown.empty());
    if (!shown) {
        m_ops->setComparison(nullptr, {});
        return;
    }
    m_units = a->timeline ? Units{a->timeline->timeUnit(), a->timeline->memoryUnit()} : Units{};
    const qsizetype against = m_letter.unicode() - u'A';
    m_nameA = m_names.isEmpty() ? runTitle(a->info) : m_names.front();
    m_nameB = against < m_names.size() ? m_names[against] : runTitle(b->info);
    m_fallTitle->setText(u"From A to %1"_s.arg(m_letter));
    const document::Section differences = differencesSection(*comparison, m_units, letter());
    m_differences->setVisible(!differences.empty());
    rows().add(*m_differences, differences);
    m_table->setTitle(m_all.size() > 1 ? u"Differences from A"_s : u"Difference (%1 against A)"_s.arg(m_letter));
    if (!comparison->unknown.empty()) {
        fillUnknown(*comparison);
        m_ops->setComparison(nullptr, {});
        return;
    }
    fillTable(*comparison);
    if (!m_note.isEmpty()) m_table->addText(m_note);
    fillWaterfall();
    fillWhy(*comparison);
    m_split->setVisible(comparison->sameUnits);
    m_idle->setVisible(comparison->sameUnits);
    if (comparison->sameUnits) {
        fillIdle(*comparison);
        const document::Section change = changeSection(*comparison, m_units, letter());
        m_split->setTitle(sentence(change.title));
        rows().add(*m_split, change);
    }
    m_ops->setComparison(comparison, m_units);
}

void ComparePanel::fillWaterfall()
{
    if (!m_comparison) return;
    const bool ladder = m_fallKind->currentIndex() == 1;
    m_bars = ladder ? ladderBars(*m_comparison, m_letter) : ledgerBars(*m_comparison, u"A"_s, m_letter);
    if (ladder)
        for (WaterfallBar& bar : m_bars) bar.title = named(bar.title.toStdString(), letter());
    m_waterfall->setPlot(waterfallPlot(m_bars, m_units));
    m_waterfall->setFixedHeight(waterfallHeight(m_bars));
    QString note;
    const Nanos change = m_comparison->change.makespanDelta;
    if (ladder && m_comparison->ladder.empty())
        note = QString::fromStdString(m_comparison->noLadder);
    else if (change == 0)
        note = ladder ? QString() : u"The critical paths take the same time."_s;
    else // the same words are used of sums over ranks below
        note = (ladder ? u"Of the step, not summed over ranks: the bars add up to %1."_s
                       : u"Of one path through the ranks, not summed over them: the bars add up to %1."_s)
                   .arg(signedDurationText(change, m_units));
    if (m_comparison->withinSpread) note = u"Within the noise: no significant difference."_s;
    m_fallNote->setText(note);
    m_fallNote->setVisible(!note.isEmpty());
}

// Where one of the runs has no ops, what their devices did is shown, as on the command line.
void ComparePanel::fillUnknown(const Comparison& comparison)
{
    m_idle->hide();
    m_split->hide();
    const bool devices = comparison.devices.has_value();
    m_why->setVisible(devices && !comparison.devices->why.empty());
    if (!devices) {
        m_table->addText(wholeQuantities(sentence(named(comparison.headline, letter()))));
        return;
    }
    m_table->addText(u"Steps and bubbles are not compared; %1."_s.arg(named(comparison.unknown, letter())));
    m_why->setTitle(u"What changed and why"_s);
    for (const std::string& one : comparison.devices->why)
        m_why->addText(wholeQuantities(sentence(named(one, letter()))));
    const std::vector<document::Section> sections = deviceSections(*comparison.devices, letter());
    for (std::size_t i = 0; i < sections.size(); ++i) {
        const bool figures = i == 0 && !comparison.devices->figures.empty();
        PanelSection* section = figures ? m_table : m_kernels[i - (comparison.devices->figures.empty() ? 0 : 1)];
        rows().add(*section, sections[i]);
        if (figures) {
            m_table->addText(wholeQuantities(sentence(named(comparison.devices->headline, letter()))));
        } else {
            section->setTitle(sentence(sections[i].title));
            section->show();
        }
    }
}

SectionRows ComparePanel::rows() const
{
    return {m_units, nullptr, [this](SpanId span) { emit const_cast<ComparePanel*>(this)->opChosen(noSpan, span); },
            u"Selects the call that changed most"_s};
}

// A row for each figure: of two runs the change has a column of its own, of more it is under each value.
void ComparePanel::fillTable(const Comparison& comparison)
{
    const bool pair = m_all.size() < 2;
    std::vector<const Comparison*> others;
    for (const auto& one : m_all) others.push_back(one.get());
    if (pair) others = {&comparison};
    const auto letterOf = [&](std::size_t i) { return pair ? letter() : static_cast<char>('B' + i); };
    document::Table table = metricsTable(others, static_cast<std::size_t>(letterOf(0) - 'A'));
    std::erase_if(table.rows, [](const auto& row) { return !standsInTable(std::get<std::string>(row.cells[0])); });
    for (document::Row& row : table.rows) { // there is little room
        const std::string whole = std::get<std::string>(row.cells[1]);
        row.meaning = whole;
        row.cells[1] = QString::fromStdString(whole)
                           .replace("Peak activation, rank"_L1, "Peak, rank"_L1)
                           .replace("Loss after the last step"_L1, "Last loss"_L1)
                           .replace("communication"_L1, "comm."_L1, Qt::CaseInsensitive)
                           .toStdString();
    }
    const QStringList names = pair ? QStringList{m_nameA, m_nameB} : m_names;
    for (std::size_t c = 2; c < table.columns.size(); ++c) {
        document::Column& column = table.columns[c];
        column.meaning = column.sign == document::Sign::Plain
                             ? names.value(static_cast<int>(c) - 2).toStdString()
                             : column.title + "; times as a share of A. Grey: within the noise.";
    }
    rows().addGrid(*m_table, table);
    for (std::size_t i = 0; i < others.size(); ++i) {
        const QString text = sentence(named(others[i]->headline, letterOf(i)));
        static const QRegularExpression aLetter(u"\\b[BCD]\\b"_s);
        m_table->addText(pair || text.contains(aLetter) ? text : u"%1: %2"_s.arg(QLatin1Char(letterOf(i))).arg(text));
        for (const UnknownMetric& one : others[i]->unknownMetrics)
            m_table->addText(
                u"%1 is not compared: %2."_s.arg(QString::fromStdString(one.title), named(one.why, letterOf(i))),
                "faint");
    }
}

void ComparePanel::fillIdle(const Comparison& comparison)
{
    const auto& a = comparison.reportA.bubbles.ranks;
    const auto& b = comparison.reportB.bubbles.ranks;
    const std::size_t ranks = std::max(a.size(), b.size());
    Nanos most = 1;
    for (std::size_t r = 0; r < ranks; ++r)
        most = std::max({most, r < a.size() ? a[r].idle : 0, r < b.size() ? b[r].idle : 0});
    m_idle->setVisible(ranks > 0);
    for (std::size_t r = 0; r < ranks; ++r) {
        for (const bool second : {false, true}) {
            const auto& from = second ? b : a;
            if (r >= from.size()) continue;
            auto* bar = new ShareBar;
            bar->setPlain(static_cast<double>(from[r].idle) / static_cast<double>(most), second);
            m_idle->addBar(second ? QString() : u"Rank %1"_s.arg(r), bar, durationText(from[r].idle, m_units),
                           u"Rank %1 in %2 (%3): idle time within the step's window."_s.arg(r).arg(
                               second ? QString(m_letter) : u"A"_s, second ? m_nameB : m_nameA));
        }
    }
}

void ComparePanel::fillWhy(const Comparison& comparison)
{
    const Nanos delta = comparison.change.stepDelta;
    m_why->setTitle(!comparison.shows() || !comparison.sameUnits ? u"What differs"_s
                    : delta < 0                                  ? u"Why %1 is faster"_s.arg(m_letter)
                                : (delta > 0 ? u"Why %1 is slower"_s.arg(m_letter) : u"What differs"_s));
    m_why->setVisible(!comparison.why.empty());
    for (const std::string& sentence : comparison.why) {
        // shown above
        if (sentence.starts_with("different setups:") || sentence.starts_with("one change at a time:")) continue;
        m_why->addText(wholeQuantities(stagewright::sentence(named(sentence, letter()))));
    }
}

} // namespace stagewright
