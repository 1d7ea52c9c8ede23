#include "widgets/tables/tables_panel.h"

#include <algorithm>
#include <limits>

#include <QLineEdit>
#include <QSplitter>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "traces/report/table_document.h"
#include "widgets/document/section_view.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/sentence.h"

namespace stagewright {

TablesPanel::TablesPanel(QWidget* parent)
    : QWidget(parent), m_parts(new QSplitter(this)), m_filter(new QLineEdit(this)), m_names(new QTreeWidget(this)),
      m_page(new QWidget(this))
{
    setObjectName(u"panel"_s);
    setAttribute(Qt::WA_StyledBackground);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_parts);
    auto* left = new QWidget(m_parts);
    auto* column = new QVBoxLayout(left);
    column->setContentsMargins(6, 6, 0, 0);
    column->setSpacing(4);
    m_filter->setPlaceholderText(u"Find a table or a column"_s);
    m_filter->setAccessibleName(u"Find a table"_s);
    m_filter->setClearButtonEnabled(true);
    column->addWidget(m_filter);
    m_names->setObjectName(u"tableNames"_s);
    m_names->setAccessibleName(u"Tables of the report"_s);
    m_names->setFrameShape(QFrame::NoFrame);
    m_names->setHeaderHidden(true);
    m_names->setIndentation(12);
    m_names->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    column->addWidget(m_names, 1);
    list();
    m_names->expandAll();
    int widest = 0; // titles whole
    for (const AnalysisInfo* analysis : allAnalyses())
        widest = std::max(widest, m_names->fontMetrics().horizontalAdvance(qtText(analysis->title)));
    left->setMinimumWidth(std::min(360, widest + 66));
    auto* page = new QVBoxLayout(m_page);
    page->setContentsMargins(0, 0, 0, 0);
    m_parts->addWidget(left);
    m_parts->addWidget(m_page);
    m_parts->setStretchFactor(0, 1);
    m_parts->setStretchFactor(1, 4);
    m_parts->setChildrenCollapsible(false);
    connect(m_filter, &QLineEdit::textChanged, this, &TablesPanel::narrow);
    connect(m_filter, &QLineEdit::returnPressed, m_names, [this] { m_names->setFocus(); });
    connect(m_names, &QTreeWidget::currentItemChanged, this, [this] {
        if (chosen() < 0) return; // a subject
        m_chosen = true;
        showTable(chosen());
    });
    setTabOrder(m_filter, m_names);
    showTable(0);
}

int TablesPanel::chosen() const
{
    const auto at = std::find(m_items.begin(), m_items.end(), m_names->currentItem());
    return at == m_items.end() ? -1 : static_cast<int>(at - m_items.begin());
}

void TablesPanel::setChosen(int table)
{
    if (table >= 0 && table < static_cast<int>(m_items.size()))
        m_names->setCurrentItem(m_items[static_cast<std::size_t>(table)]);
}

// Those of the run by subject, and below, folded, what it has not.
void TablesPanel::list()
{
    const int before = chosen();
    const QSignalBlocker quiet(m_names);
    m_names->clear();
    m_items.assign(allAnalyses().size(), nullptr);
    const auto unknownOf = [this](std::size_t table) { return m_tables ? (*m_tables)[table].unknown : std::string(); };
    const auto add = [&](const QString& title, auto belongs) {
        auto* head = new QTreeWidgetItem({title});
        QFont strong = m_names->font();
        strong.setWeight(QFont::DemiBold);
        head->setFont(0, strong);
        head->setFlags(Qt::ItemIsEnabled);
        for (std::size_t table = 0; table < m_items.size(); ++table) {
            if (!belongs(table)) continue;
            const AnalysisInfo& analysis = *allAnalyses()[table];
            auto* item = m_items[table] = new QTreeWidgetItem(head, {qtText(analysis.title)});
            item->setData(0, Qt::UserRole, qtText(analysis.name));
            const std::string unknown = unknownOf(table);
            item->setToolTip(0, unknown.empty() ? item->text(0) : sentence(QString::fromStdString(unknown)));
            if (!unknown.empty()) item->setForeground(0, palette().brush(QPalette::Disabled, QPalette::Text));
        }
        if (head->childCount() == 0) {
            delete head;
            return;
        }
        m_names->addTopLevelItem(head);
    };
    for (const AnalysisSubject subject :
         {AnalysisSubject::Ops, AnalysisSubject::Communication, AnalysisSubject::Devices, AnalysisSubject::Training})
        add(qtText(titleOf(subject)),
            [&](std::size_t table) { return subjectOf(*allAnalyses()[table]) == subject && unknownOf(table).empty(); });
    const int known = m_names->topLevelItemCount();
    add(u"Not known of this run"_s, [&](std::size_t table) { return !unknownOf(table).empty(); });
    for (int i = 0; i < known; ++i) m_names->topLevelItem(i)->setExpanded(true);
    setChosen(before);
    narrow();
}

void TablesPanel::narrow()
{
    const QStringList words = m_filter->text().split(u' ', Qt::SkipEmptyParts);
    for (std::size_t table = 0; table < m_items.size(); ++table) {
        const AnalysisInfo& analysis = *allAnalyses()[table];
        QString all = qtText(analysis.title) + u' ' + qtText(titleOf(subjectOf(analysis)));
        for (const TableColumn& column : analysis.columns()) all += u' ' + qtText(column.title);
        m_items[table]->setHidden(!std::all_of(
            words.begin(), words.end(), [&](const QString& word) { return all.contains(word, Qt::CaseInsensitive); }));
    }
    for (int i = 0; i < m_names->topLevelItemCount(); ++i) {
        QTreeWidgetItem* head = m_names->topLevelItem(i);
        bool any = false;
        for (int k = 0; k < head->childCount(); ++k) any = any || !head->child(k)->isHidden();
        head->setHidden(!any);
        if (any && !words.isEmpty()) head->setExpanded(true);
    }
}

FigureTable* TablesPanel::table() { return m_section != nullptr ? m_section->table() : nullptr; }
PlotWidget* TablesPanel::plot() { return m_section != nullptr ? m_section->plot() : nullptr; }
QString TablesPanel::lineText() const { return m_section != nullptr ? m_section->lineText() : QString(); }

void TablesPanel::choose(const QString& name)
{
    for (std::size_t table = 0; table < m_items.size(); ++table)
        if (allAnalyses()[table]->name == name.toStdString()) setChosen(static_cast<int>(table));
}

void TablesPanel::setWorking() { say(u"Computing…"_s); }

void TablesPanel::setTables(std::shared_ptr<const std::vector<ReportTable>> tables, const Units& units)
{
    m_tables = std::move(tables);
    m_units = units;
    const bool wasChosen = m_chosen;
    list();
    if (!wasChosen && m_tables) {
        setChosen(firstWithRows());
        m_chosen = false; // not by the user
    }
    showTable(std::max(0, chosen()));
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
    for (int row = 0; m_tables && row < static_cast<int>(m_items.size()); ++row)
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

void TablesPanel::showTable(int table)
{
    if (!m_tables || table < 0) return say(u"No run is shown. Choose one in the list, or open a file (Ctrl+O)."_s);
    showSection(
        tableSection((*m_tables)[static_cast<std::size_t>(table)], {}, std::numeric_limits<std::size_t>::max()));
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
