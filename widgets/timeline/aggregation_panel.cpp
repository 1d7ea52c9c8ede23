#include "widgets/timeline/aggregation_panel.h"

#include <QAbstractTableModel>
#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QItemSelectionModel>
#include <QLabel>
#include <QPainter>
#include <QPushButton>
#include <QScrollBar>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/table_copy.h"
#include "widgets/timeline/duration_bars.h"

namespace stagewright {

namespace {

constexpr int leastBars = 150; // pixels across

constexpr std::int64_t inPlace = 200'000; // up to this many slices are summed at once, more on a worker

enum Column {
    Name,
    Count,
    Total,
    Mean,
    Spread,
    Least,
    Most,
    Share,
    columns,
};

} // namespace

class AggregateModel : public QAbstractTableModel {
public:
    using QAbstractTableModel::QAbstractTableModel;

    void set(const AggregateTable& table, const Units& units)
    {
        beginResetModel();
        m_lines = table.lines;
        m_units = units;
        endResetModel();
    }
    void setTheme(const Theme& theme)
    {
        m_theme = &theme;
        if (!m_lines.empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, columns - 1));
    }
    int rowCount(const QModelIndex& parent = {}) const override
    {
        return parent.isValid() ? 0 : static_cast<int>(m_lines.size());
    }
    int columnCount(const QModelIndex& parent = {}) const override
    {
        return parent.isValid() ? 0 : static_cast<int>(columns);
    }

    QVariant headerData(int section, Qt::Orientation orientation, int role) const override
    {
        if (orientation != Qt::Horizontal || section < 0 || section >= columns) return {};
        const char* const titles[] = {"What", "Count", "Total", "Mean", "Spread", "Shortest", "Longest", "Share"};
        const char* const tips[] = {
            "What ran in the selected area",
            "Ops that overlap the range; for idle time, the number of gaps",
            "Their time, each trimmed to the range and summed over the selected ranks",
            "Total ÷ count",
            "Standard deviation of their times",
            "The shortest of them, trimmed to the range",
            "The longest of them, trimmed to the range",
            "Total ÷ (ranks × range). Ops and idle time add up to 100 %; transfers, and kernels under ops, are extra"};
        if (role == Qt::DisplayRole) return QString::fromUtf8(titles[section]);
        if (role == Qt::ToolTipRole) return QString::fromUtf8(tips[section]);
        if (role == Qt::TextAlignmentRole)
            return static_cast<int>((section == Name ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
        return {};
    }

    QVariant data(const QModelIndex& at, int role) const override
    {
        if (!at.isValid()) return {};
        const AggregateLine& line = m_lines[static_cast<std::size_t>(at.row())];
        if (role == Qt::UserRole) return value(line, at);
        if (role == Qt::DisplayRole) return text(line, at.column());
        if (role == Qt::TextAlignmentRole)
            return static_cast<int>((at.column() == Name ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
        if (role == Qt::DecorationRole && at.column() == Name) {
            if (line.what == AggregateLine::What::Idle) return m_theme->bubbleHatch;
            if (line.of) return m_theme->of(*line.of).fill;
            return line.kind ? QVariant(m_theme->of(*line.kind).fill) : QVariant();
        }
        if (role == Qt::ForegroundRole && line.what != AggregateLine::What::Ops) return m_theme->secondary;
        return {};
    }

private:
    QVariant value(const AggregateLine& line, const QModelIndex& at) const
    {
        switch (at.column()) {
        case Count: return static_cast<qlonglong>(line.count);
        case Total: return static_cast<qlonglong>(line.total);
        case Mean: return static_cast<qlonglong>(line.mean());
        case Spread: return static_cast<qlonglong>(line.spread());
        case Least: return static_cast<qlonglong>(line.durations.least);
        case Most: return static_cast<qlonglong>(line.durations.most);
        case Share: return line.share;
        default: return at.row(); // kinds in their own order, ranks by number
        }
    }
    QString text(const AggregateLine& line, int column) const
    {
        switch (column) {
        case Name: return line.name;
        case Count: return QString::number(line.count);
        case Total: return durationText(line.total, m_units);
        case Mean: return durationText(line.mean(), m_units);
        case Spread: return durationText(line.spread(), m_units);
        case Least: return durationText(line.durations.least, m_units);
        case Most: return durationText(line.durations.most, m_units);
        case Share: return percentText(line.share);
        default: return {};
        }
    }

    std::vector<AggregateLine> m_lines;
    Units m_units;
    const Theme* m_theme = &Theme::light();
};

AggregationPanel::AggregationPanel(QWidget* parent) : QWidget(parent)
{
    setObjectName(u"aggregation"_s);
    setAttribute(Qt::WA_StyledBackground);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(16, 6, 16, 6);
    layout->setSpacing(4);
    auto* head = new QHBoxLayout;
    head->setSpacing(10);
    m_title = new QLabel(this);
    m_title->setFont(fontOf(FontRole::Strong));
    head->addWidget(m_title);
    head->addStretch(1);
    m_choice = new QComboBox(this);
    m_choice->setAccessibleName(u"Rows of the table"_s);
    m_choice->setToolTip(u"What each row of the table is"_s);
    for (const char* text :
         {"by kind", "by stage", "by microbatch", "by rank", "by stage and kind", "by rank and kind", "by name"})
        m_choice->addItem(QString::fromUtf8(text));
    head->addWidget(m_choice);
    auto* clear = new QPushButton(u"Clear"_s, this);
    clear->setToolTip(u"Clears the selected area (Esc in the timeline): every view shows everything again"_s);
    clear->setObjectName(u"link"_s);
    head->addWidget(clear);
    layout->addLayout(head);
    m_view = new QTableView(this);
    m_view->setAccessibleName(u"Selected area"_s);
    m_view->setFrameShape(QFrame::NoFrame);
    m_view->setShowGrid(false);
    m_view->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_view->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_view->setTabKeyNavigation(false);
    m_view->verticalHeader()->hide();
    m_view->verticalHeader()->setDefaultSectionSize(22);
    m_model = new AggregateModel(this);
    auto* sorted = new QSortFilterProxyModel(this);
    sorted->setSortRole(Qt::UserRole);
    sorted->setSourceModel(m_model);
    m_view->setModel(sorted);
    m_view->setSortingEnabled(true);
    m_view->sortByColumn(Name, Qt::AscendingOrder);
    m_view->horizontalHeader()->setHighlightSections(false);
    m_view->horizontalHeader()->setMinimumSectionSize(66); // of a duration
    m_view->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
    m_view->horizontalHeader()->setSectionResizeMode(Name, QHeaderView::ResizeToContents); // names are never cut
    makeCopyable(m_view);
    m_bars = new DurationBars(this);
    auto* body = new QHBoxLayout;
    body->addWidget(m_view, 1);
    body->addWidget(m_bars);
    layout->addLayout(body, 1);
    connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this, &AggregationPanel::showDurations);
    connect(clear, &QPushButton::clicked, this, &AggregationPanel::cleared);
    connect(m_choice, &QComboBox::activated, this, [this](int index) { setBy(static_cast<AggregateBy>(index)); });
    hide();
}

void AggregationPanel::showDurations()
{
    const auto* sorted = static_cast<const QSortFilterProxyModel*>(m_view->model());
    const QModelIndex current = sorted->mapToSource(m_view->currentIndex());
    const AggregateLine* line = nullptr;
    if (current.isValid() && current.row() < static_cast<int>(m_table.lines.size()))
        line = &m_table.lines[static_cast<std::size_t>(current.row())];
    for (const AggregateLine& one : m_table.lines)
        if (!current.isValid() && one.what == AggregateLine::What::Ops && (line == nullptr || one.total > line->total))
            line = &one;
    m_bars->setLine(line, m_panels.empty() ? Units{} : m_panels.front()->units);
    placeBars();
}

void AggregationPanel::placeBars()
{
    // What the table leaves: it has all its columns.
    const QHeaderView* columns = m_view->horizontalHeader();
    const int table = static_cast<QAbstractItemView*>(m_view)->sizeHintForColumn(Name) +
                      (columns->count() - 1) * columns->minimumSectionSize() +
                      m_view->verticalScrollBar()->sizeHint().width();
    const QMargins around = layout()->contentsMargins();
    const int left = width() - around.left() - around.right() - layout()->spacing() - table - 2;
    m_bars->setFixedWidth(std::clamp(left, leastBars, m_bars->sizeHint().width()));
    m_bars->setVisible(m_bars->line().count > 0 && left >= leastBars);
}

void AggregationPanel::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    placeBars();
}

void AggregationPanel::setBy(AggregateBy by)
{
    m_choice->setCurrentIndex(static_cast<int>(by));
    if (by == m_by) return;
    m_by = by;
    ask();
    emit byChanged(by);
}

void AggregationPanel::setTheme(const Theme& theme)
{
    m_theme = &theme;
    m_model->setTheme(theme);
    m_bars->setTheme(theme);
    update();
}

void AggregationPanel::paintEvent(QPaintEvent* event)
{
    QWidget::paintEvent(event);
    QPainter painter(this);
    painter.fillRect(0, 0, width(), height(), m_theme->canvas);
    painter.fillRect(0, 0, width(), 1, m_theme->separator);
}

void AggregationPanel::setAreas(std::vector<std::shared_ptr<const TimelinePanel>> panels,
                                std::vector<AreaSelection> areas, std::shared_ptr<const RowPlan> plan)
{
    m_panels = std::move(panels);
    m_areas = std::move(areas);
    m_plan = std::move(plan);
    ask();
}

void AggregationPanel::ask()
{
    m_summing.drop();
    if (m_areas.empty() || m_panels.empty()) return fill({});
    if (slicesIn(m_panels, m_areas) <= inPlace) return fill(aggregateTable(m_panels, m_areas, m_plan.get(), m_by));
    if (m_summing.waits([this] { ask(); })) return;
    m_summing.start([panels = m_panels, areas = m_areas, plan = m_plan,
                     by = m_by] { return aggregateTable(panels, areas, plan.get(), by); },
                    [this](AggregateTable table) { fill(std::move(table)); });
}

void AggregationPanel::fill(AggregateTable table)
{
    m_table = std::move(table);
    const Units units = m_panels.empty() ? Units{} : m_panels.front()->units;
    m_model->set(m_table, units);
    setVisible(m_table.ranks > 0);
    showDurations();
    const QString time = durationText(m_table.range.duration(), units);
    m_title->setText(u"Selected area: %1 of %2, %3"_s.arg(
        time, countText(m_table.ranks, u"one rank"_s, u"%L1 ranks"_s),
        m_table.kernels > 0 && m_table.ops == 0
            ? countText(static_cast<qint64>(m_table.kernels), u"1 kernel or copy"_s, u"%L1 kernels and copies"_s)
            : countText(static_cast<qint64>(m_table.ops), u"1 op"_s, u"%L1 ops"_s)));
    if (m_panels.size() > 1 && m_table.ranks > 0)
        m_title->setText(m_title->text() + u". The panel at the right compares the whole steps."_s);
    m_title->setToolTip(
        u"Every view shows only this range: the figures of the side panel, the peaks of the charts, this table."_s);
}

} // namespace stagewright
