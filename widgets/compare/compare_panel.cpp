#include "widgets/compare/compare_panel.h"

#include <algorithm>
#include <cmath>

#include <QComboBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QRegularExpression>
#include <QVBoxLayout>

#include "widgets/compare/metric_text.h"
#include "widgets/compare/op_table.h"
#include "widgets/compare/waterfall_chart.h"
#include "widgets/literals.h"
#include "widgets/plot/plot_widget.h"
#include "widgets/runs/runs_model.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {

namespace {

// The table has the main figures; causes of idle time are below, each with its share of the change.
bool standsInTable(const std::string& key)
{
    return key != "span_ns" && key != "bubble_rate_span" && !key.starts_with("idle_ns.") && !key.starts_with("apart_");
}

// Every cell with its column's title, a line each.
QString tooltipOf(const DeviceTable& table, const DeviceTable::Row& row)
{
    QStringList lines;
    for (std::size_t i = 0; i < row.cells.size(); ++i)
        if (row.cells[i] != "–")
            lines << u"%1: %2"_s.arg(QString::fromStdString(table.columns[i].title),
                                     breakable(QString::fromStdString(row.cells[i])));
    return lines.join(u'\n');
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
    m_split = addSection(u"Where the change comes from"_s);
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
    m_nameA = runTitle(a->info);
    m_nameB = runTitle(b->info);
    m_fallTitle->setText(u"From A to %1"_s.arg(m_letter));
    fillDifferences(*comparison);
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
    if (comparison->sameUnits) {
        fillIdle(*comparison);
        fillSplit(*comparison);
    } else {
        m_idle->hide();
        m_split->hide();
    }
    m_ops->setComparison(comparison, m_units);
}

// The sentences name A and B; for further runs B becomes C or D.
QString ComparePanel::named(const std::string& sentence, QChar letter)
{
    QString text = QString::fromStdString(sentence);
    if (letter != u'B') {
        static const QRegularExpression alone(u"\\bB\\b"_s);
        text.replace(alone, letter);
    }
    return text;
}

void ComparePanel::fillDifferences(const Comparison& comparison)
{
    m_differences->setVisible(!comparison.differences.empty());
    for (const RunDifference& one : comparison.differences) {
        const auto valueText = [](const std::string& value) {
            return value.empty() ? u"unknown"_s : QString::fromStdString(value);
        };
        m_differences->addText(u"%1: %2 in A, %3 in %4"_s.arg(QString::fromStdString(one.title), valueText(one.a),
                                                              valueText(one.b), m_letter));
    }
}

void ComparePanel::fillWaterfall()
{
    if (!m_comparison) return;
    const bool ladder = m_fallKind->currentIndex() == 1;
    m_bars = ladder ? ladderBars(*m_comparison, m_letter) : ledgerBars(*m_comparison, u"A"_s, m_letter);
    if (ladder)
        for (WaterfallBar& bar : m_bars) bar.title = named(bar.title.toStdString());
    m_waterfall->setPlot(waterfallPlot(m_bars, m_units));
    m_waterfall->setFixedHeight(waterfallHeight(m_bars));
    QString note;
    if (ladder && m_comparison->ladder.empty())
        note = QString::fromStdString(m_comparison->noLadder);
    else if (!ladder && m_comparison->change.makespanDelta == 0)
        note = u"The critical paths take the same time."_s;
    if (m_comparison->withinSpread) note = u"Within the noise: no significant difference."_s;
    m_fallNote->setText(note);
    m_fallNote->setVisible(!note.isEmpty());
}

// Where one of the runs has no ops, what their devices did is shown, by the same tables as on the command line.
void ComparePanel::fillUnknown(const Comparison& comparison)
{
    m_idle->hide();
    m_split->hide();
    m_why->setVisible(comparison.devices && !comparison.devices->why.empty());
    if (!comparison.devices) {
        m_table->addText(wholeQuantities(sentence(named(comparison.headline))));
        return;
    }
    m_table->addText(u"Steps and bubbles are not compared; %1."_s.arg(named(comparison.unknown)));
    m_why->setTitle(u"What changed and why"_s);
    for (const std::string& one : comparison.devices->why) m_why->addText(wholeQuantities(sentence(named(one))));
    std::size_t next = 0;
    for (const DeviceTable& table : deviceTables(*comparison.devices, m_letter.toLatin1())) {
        if (table.content == DeviceTable::Content::Figures) {
            for (const DeviceTable::Row& row : table.rows)
                m_table->addRow(QString::fromStdString(row.cells[0]),
                                QString::fromStdString(row.cells[table.changeColumn]), tooltipOf(table, row));
            m_table->addText(wholeQuantities(sentence(named(comparison.devices->headline))));
            continue;
        }
        PanelSection* section = m_kernels[next++];
        section->setTitle(sentence(table.title));
        section->show();
        for (const DeviceTable::Row& row : table.rows) addKernel(section, table, row);
    }
}

// A button to the call that changed most, where the calls of both runs are known to be the same.
void ComparePanel::addKernel(PanelSection* section, const DeviceTable& table, const DeviceTable::Row& row)
{
    const QString brief =
        QFontMetrics(fontOf(FontRole::Body)).elidedText(QString::fromStdString(row.cells[0]), Qt::ElideMiddle, 190);
    const QString value = QString::fromStdString(
        row.cells[table.content == DeviceTable::Content::Kernels ? table.changeColumn : row.cells.size() - 1]);
    const QString tooltip = tooltipOf(table, row);
    if (!row.kernel->most) {
        section->addRow(brief, value, tooltip);
        return;
    }
    auto* button = new LinkButton(brief, tooltip + u'\n' + u"Selects the call that changed most"_s);
    connect(
        button, &QPushButton::clicked, this,
        [this, a = row.kernel->most->spanA, b = row.kernel->most->spanB] { emit opChosen(a, b); },
        Qt::QueuedConnection);
    section->addRow(button, value, tooltip);
}

// A row for each figure: of two runs the change has a column of its own, of more it is under each value.
void ComparePanel::fillTable(const Comparison& comparison)
{
    const bool pair = m_all.size() < 2;
    std::vector<const Comparison*> others;
    for (const auto& one : m_all) others.push_back(one.get());
    if (pair) others = {&comparison};
    const auto letterOf = [&](std::size_t i) { return pair ? m_letter : QChar(static_cast<char16_t>(u'B' + i)); };
    const int lines = pair ? 1 : 2; // of the grid for a figure
    auto* table = new QWidget;
    auto* grid = new QGridLayout(table);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setHorizontalSpacing(pair ? 8 : 7);
    grid->setVerticalSpacing(pair ? 7 : 1);
    grid->setColumnStretch(0, 1);
    const auto put = [&](int row, int column, const QString& text, const char* role, const QString& tooltip = {}) {
        auto* label = makeLabel(text, role, table, row > 0);
        label->setToolTip(tooltip);
        label->setAlignment(column > 0 ? Qt::AlignRight | Qt::AlignVCenter
                            : pair     ? Qt::AlignLeft | Qt::AlignVCenter
                                       : Qt::AlignLeft | Qt::AlignTop);
        if (column == 0) label->setWordWrap(true); // never the figures
        grid->addWidget(label, row, column, column == 0 ? lines : 1, 1);
    };
    const auto lessA = [&](std::size_t i) {
        return u"%1 minus A; for times as a share of A. Grey: within the noise."_s.arg(letterOf(i));
    };
    const QStringList names = pair ? QStringList{m_nameA, m_nameB} : m_names;
    for (int i = 0; i < names.size(); ++i)
        put(0, i + 1, i == 0 ? u"A"_s : QString(letterOf(static_cast<std::size_t>(i - 1))), "secondary", names[i]);
    if (pair) put(0, 3, u"change"_s, "secondary", lessA(0));

    std::vector<std::string> keys;
    for (const Comparison* one : others)
        for (const MetricDelta& metric : one->metrics)
            if (standsInTable(metric.key) && std::find(keys.begin(), keys.end(), metric.key) == keys.end())
                keys.push_back(metric.key);
    const auto of = [](const Comparison& one, const std::string& key) {
        const auto found = std::find_if(one.metrics.begin(), one.metrics.end(),
                                        [&](const MetricDelta& metric) { return metric.key == key; });
        return found == one.metrics.end() ? nullptr : &*found;
    };
    int row = 1;
    for (const std::string& key : keys) {
        double most = 0;
        for (const Comparison* one : others)
            if (const MetricDelta* metric = of(*one, key))
                most = std::max({most, std::abs(metric->a), std::abs(metric->b)});
        if (most == 0) continue;
        if (!pair) grid->setRowMinimumHeight(row + 2, 5);
        bool first = true;
        for (std::size_t i = 0; i < others.size(); ++i) {
            const MetricDelta* metric = of(*others[i], key);
            const int column = static_cast<int>(i) + 2;
            if (metric == nullptr) {
                put(row, column, u"·"_s, "faint", u"This run has it in another unit or not at all."_s);
                continue;
            }
            const MetricText text = metricText(*metric, m_units, others[i]->shows() || metric->unit == "bytes", most);
            if (first) {
                put(row, 0, text.title, "secondary", text.whole);
                put(row, 1, text.a, "value");
            }
            first = false;
            put(row, column, text.b, "value");
            put(pair ? row : row + 1, pair ? 3 : column, text.change, text.role, lessA(i));
        }
        row += pair ? 1 : 3;
    }
    m_table->addWidget(table);
    for (std::size_t i = 0; i < others.size(); ++i) {
        const QString text = sentence(named(others[i]->headline, letterOf(i)));
        static const QRegularExpression aLetter(u"\\b[BCD]\\b"_s);
        m_table->addText(pair || text.contains(aLetter) ? text : u"%1: %2"_s.arg(letterOf(i)).arg(text));
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

void ComparePanel::fillSplit(const Comparison& comparison)
{
    const ChangeSplit& change = comparison.change;
    const double ranks = std::max<double>(1, static_cast<double>(comparison.reportB.bubbles.ranks.size()));
    struct Part {
        QString title;
        Nanos time;
        QString meaning;
    };
    std::vector<Part> parts{{u"Busy time"_s, change.busyDelta, u"Ops took more or less time."_s},
                            {u"Optimizer and collectives"_s, change.apartDelta,
                             u"Time in the optimizer and collectives within the window."_s}};
    for (std::size_t c = 0; c < idleCauseCount; ++c) {
        const auto cause = static_cast<IdleCause>(c);
        const auto title = titleOf(cause);
        const auto meaning = meaningOf(cause);
        parts.push_back({u"Idle: %1"_s.arg(QString::fromUtf8(title.data(), static_cast<qsizetype>(title.size()))),
                         change.idleDelta[c],
                         QString::fromUtf8(meaning.data(), static_cast<qsizetype>(meaning.size()))});
    }
    if (change.unexplained != 0)
        parts.push_back({u"Different number of ranks"_s, change.unexplained,
                         u"The runs have different numbers of ranks; this part can't be split."_s});
    std::erase_if(parts, [](const Part& part) { return part.time == 0; });
    std::stable_sort(parts.begin(), parts.end(),
                     [](const Part& a, const Part& b) { return std::abs(a.time) > std::abs(b.time); });
    m_split->setVisible(!parts.empty());
    for (const Part& part : parts)
        m_split->addRow(
            part.title,
            signedDurationText(static_cast<Nanos>(std::llround(static_cast<double>(part.time) / ranks)), m_units),
            u"%1\nMean over ranks; all parts add up to the change of the ops' time, %2."_s.arg(
                part.meaning, signedDurationText(change.makespanDelta, m_units)),
            part.time < 0 ? PanelSection::Tone::Better : PanelSection::Tone::Worse);
}

void ComparePanel::fillWhy(const Comparison& comparison)
{
    const Nanos delta = comparison.change.stepDelta;
    m_why->setTitle(comparison.withinSpread || !comparison.sameUnits ? u"What differs"_s
                    : delta < 0                                      ? u"Why %1 is faster"_s.arg(m_letter)
                                : (delta > 0 ? u"Why %1 is slower"_s.arg(m_letter) : u"What differs"_s));
    m_why->setVisible(!comparison.why.empty());
    for (const std::string& sentence : comparison.why) {
        // shown above
        if (sentence.starts_with("different setups:") || sentence.starts_with("one change at a time:")) continue;
        QString text = named(sentence);
        if (!text.isEmpty()) text[0] = text[0].toUpper();
        m_why->addText(wholeQuantities(text));
    }
}

} // namespace stagewright
