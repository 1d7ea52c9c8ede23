#include "widgets/tables/tables_panel.h"

#include <algorithm>

#include <QLabel>
#include <QListWidget>
#include <QSplitter>
#include <QVBoxLayout>

#include "traces/report/table_document.h"
#include "widgets/device/figure_table.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/style.h"
#include "widgets/tables/curve_plot.h"

namespace stagewright {
namespace {

FigureCell cellOf(const TableColumn& column, const TableCell& cell, const Units& units)
{
    if (const auto* text = std::get_if<std::string>(&cell))
        return {column.words != nullptr ? qtText(column.words(*text)) : QString::fromStdString(*text), 0,
                QString::fromStdString(*text)};
    if (const auto* real = std::get_if<double>(&cell))
        return {column.kind == ColumnKind::Share ? percentText(*real)
                                                 : QString::fromStdString(cellText(column, cell, units)),
                *real,
                {}};
    const auto* whole = std::get_if<std::int64_t>(&cell);
    if (whole == nullptr) return {QString::fromStdString(cellText(column, cell, units)), 0, {}};
    const auto value = static_cast<double>(*whole);
    switch (column.kind) {
    case ColumnKind::Time: return {durationText(*whole, units), value, {}};
    case ColumnKind::Size: return {bytesText(*whole, units), value, {}};
    case ColumnKind::Count: return {u"%L1"_s.arg(*whole), value, {}};
    default: return {QString::number(*whole), value, {}};
    }
}

} // namespace

TablesPanel::TablesPanel(QWidget* parent)
    : QWidget(parent), m_parts(new QSplitter(this)), m_names(new QListWidget(this)), m_page(new QWidget(this))
{
    setObjectName(u"panel"_s);
    setAttribute(Qt::WA_StyledBackground);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_parts);
    m_names->setObjectName(u"tableNames"_s);
    m_names->setAccessibleName(u"Tables of the report"_s);
    m_names->setFrameShape(QFrame::NoFrame);
    for (const AnalysisInfo* analysis : allAnalyses()) {
        auto* item = new QListWidgetItem(qtText(analysis->title), m_names);
        item->setData(Qt::UserRole, qtText(analysis->name));
        item->setToolTip(item->text());
    }
    m_names->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_names->setMinimumWidth(std::min(270, m_names->sizeHintForColumn(0) + 28)); // titles whole
    auto* page = new QVBoxLayout(m_page);
    page->setContentsMargins(0, 0, 0, 0);
    page->setSpacing(0);
    m_line = makeLabel({}, "secondary", m_page);
    m_line->setContentsMargins(12, 6, 12, 6);
    m_line->setWordWrap(true);
    page->addWidget(m_line);
    page->addStretch(0); // the line stays at the top while there is no table
    m_parts->addWidget(m_names);
    m_parts->addWidget(m_page);
    m_parts->setStretchFactor(0, 1);
    m_parts->setStretchFactor(1, 4);
    m_parts->setChildrenCollapsible(false);
    connect(m_names, &QListWidget::currentRowChanged, this, &TablesPanel::showTable);
    m_names->setCurrentRow(0);
    connect(m_names, &QListWidget::currentRowChanged, this, [this] { m_chosen = true; });
}

QString TablesPanel::lineText() const { return m_line->text(); }

void TablesPanel::choose(const QString& name)
{
    for (int row = 0; row < m_names->count(); ++row)
        if (m_names->item(row)->data(Qt::UserRole).toString() == name) m_names->setCurrentRow(row);
}

void TablesPanel::setWorking() { m_line->setText(u"Computing…"_s); }

void TablesPanel::setTables(std::shared_ptr<const std::vector<ReportTable>> tables, const Units& units)
{
    m_tables = std::move(tables);
    m_units = units;
    for (int row = 0; row < m_names->count(); ++row) {
        const std::string& unknown = m_tables ? (*m_tables)[static_cast<std::size_t>(row)].unknown : std::string();
        m_names->item(row)->setForeground(unknown.empty() ? QBrush()
                                                          : palette().brush(QPalette::Disabled, QPalette::Text));
        m_names->item(row)->setToolTip(sentence(QString::fromStdString(unknown)));
    }
    if (!m_chosen && m_tables) {
        const QSignalBlocker quiet(m_names);
        m_names->setCurrentRow(firstWithRows());
    }
    showTable(m_names->currentRow());
}

int TablesPanel::firstWithRows() const
{
    for (int row = 0; m_tables && row < m_names->count(); ++row)
        if (const ReportTable& table = (*m_tables)[static_cast<std::size_t>(row)];
            table.unknown.empty() && !table.rows.empty())
            return row;
    return 0;
}

void TablesPanel::setTheme(const Theme& theme)
{
    m_theme = &theme;
    if (m_plot != nullptr) m_plot->setTheme(theme);
}

void TablesPanel::showTable(int row)
{
    delete m_table;
    m_table = nullptr;
    delete m_plot;
    m_plot = nullptr;
    if (!m_tables || row < 0) {
        m_line->setText(u"No run is shown. Choose one in the list, or open a file (Ctrl+O)."_s);
        return;
    }
    const ReportTable& table = (*m_tables)[static_cast<std::size_t>(row)];
    m_line->setText(sentence(QString::fromStdString(!table.unknown.empty()    ? table.unknown
                                                    : !table.sentence.empty() ? table.sentence
                                                                              : std::string(table.analysis->title))));
    if (!table.unknown.empty()) return;
    std::vector<FigureColumn> columns;
    const std::vector<std::size_t> shown = shownColumns(table);
    for (const std::size_t c : shown) {
        const TableColumn& column = table.columns[c];
        const bool figure = column.kind != ColumnKind::Text;
        columns.push_back({QString::fromStdString(column.title), QString::fromStdString(column.meaning), figure, 100});
    }
    std::vector<std::vector<FigureCell>> rows;
    for (const auto& of : table.rows) {
        auto& cells = rows.emplace_back();
        for (const std::size_t c : shown) cells.push_back(cellOf(table.columns[c], of[c], m_units));
    }
    m_table = new FigureTable(qtText(table.analysis->title), std::move(columns), -1, m_page);
    m_table->setObjectName(u"reportTable"_s);
    m_table->setToolTip(
        table.ops.empty()
            ? u"Ctrl+C copies the table as CSV, Ctrl+Shift+C as Markdown"_s
            : u"Choosing a row goes to its op; Ctrl+C copies the table as CSV, Ctrl+Shift+C as Markdown"_s);
    m_table->setRows(std::move(rows));
    m_table->resizeColumnsToContents();
    connect(m_table, &FigureTable::chosen, this, [this, &ops = table.ops, keep = m_tables](int at) {
        emit spanChosen(ops.empty() ? noSpan : ops[static_cast<std::size_t>(at)]);
    });
    auto* page = static_cast<QVBoxLayout*>(m_page->layout());
    if (Plot curves = curvesOf(table); !curves.empty()) {
        m_plot = new CurvePlot(std::move(curves), qtText(table.analysis->title), m_page);
        m_plot->setTheme(*m_theme);
        page->insertWidget(1, m_plot, 3);
        m_plot->show();
    }
    page->insertWidget(m_plot != nullptr ? 2 : 1, m_table, 2);
    m_table->show();
    if (m_plot != nullptr) QWidget::setTabOrder(m_names, m_plot);
    QWidget::setTabOrder(m_plot != nullptr ? static_cast<QWidget*>(m_plot) : m_names, m_table);
}

} // namespace stagewright
