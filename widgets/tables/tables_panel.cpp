#include "widgets/tables/tables_panel.h"

#include <algorithm>
#include <limits>

#include <QListWidget>
#include <QSplitter>
#include <QVBoxLayout>

#include "traces/report/table_document.h"
#include "widgets/document/section_view.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/sentence.h"

namespace stagewright {

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
    m_parts->addWidget(m_names);
    m_parts->addWidget(m_page);
    m_parts->setStretchFactor(0, 1);
    m_parts->setStretchFactor(1, 4);
    m_parts->setChildrenCollapsible(false);
    connect(m_names, &QListWidget::currentRowChanged, this, &TablesPanel::showTable);
    m_names->setCurrentRow(0);
    connect(m_names, &QListWidget::currentRowChanged, this, [this] { m_chosen = true; });
}

FigureTable* TablesPanel::table() { return m_section != nullptr ? m_section->table() : nullptr; }
PlotWidget* TablesPanel::plot() { return m_section != nullptr ? m_section->plot() : nullptr; }
QString TablesPanel::lineText() const { return m_section != nullptr ? m_section->lineText() : QString(); }

void TablesPanel::choose(const QString& name)
{
    for (int row = 0; row < m_names->count(); ++row)
        if (m_names->item(row)->data(Qt::UserRole).toString() == name) m_names->setCurrentRow(row);
}

void TablesPanel::setWorking() { say(u"Computing…"_s); }

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

// The table that says why nothing computes, for a run without ops.
int TablesPanel::firstWithRows() const
{
    const auto has = [this](std::size_t row) {
        return (*m_tables)[row].unknown.empty() && !(*m_tables)[row].rows.empty();
    };
    const bool ops = m_tables && !m_tables->empty() && has(0);
    for (std::size_t row = 0; m_tables && !ops && row < m_tables->size(); ++row)
        if ((*m_tables)[row].analysis->leads && has(row)) return static_cast<int>(row);
    for (int row = 0; m_tables && row < m_names->count(); ++row)
        if (const ReportTable& table = (*m_tables)[static_cast<std::size_t>(row)];
            table.unknown.empty() && !table.rows.empty())
            return row;
    return 0;
}

void TablesPanel::setTheme(const Theme& theme)
{
    m_theme = &theme;
    if (m_section != nullptr) m_section->setTheme(theme);
}

void TablesPanel::say(const QString& line)
{
    document::Section section;
    section.say(line.toStdString());
    showSection(section);
}

void TablesPanel::showTable(int row)
{
    if (!m_tables || row < 0) return say(u"No run is shown. Choose one in the list, or open a file (Ctrl+O)."_s);
    showSection(tableSection((*m_tables)[static_cast<std::size_t>(row)], {}, std::numeric_limits<std::size_t>::max()));
}

void TablesPanel::showSection(const document::Section& section)
{
    delete m_section;
    m_section = new SectionView(section, m_units, m_page);
    m_section->setTheme(*m_theme);
    connect(m_section, &SectionView::spanChosen, this, &TablesPanel::spanChosen);
    connect(m_section, &SectionView::marksChosen, this, &TablesPanel::marksChosen);
    m_page->layout()->addWidget(m_section);
    m_section->show();
    QWidget* first = m_section->plot() != nullptr ? static_cast<QWidget*>(m_section->plot()) : m_section->table();
    if (first != nullptr) setTabOrder(m_names, first);
}

} // namespace stagewright
