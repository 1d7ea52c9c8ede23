#include "widgets/document/figure_table.h"

#include <QHeaderView>

#include "widgets/sentence.h"
#include "widgets/table_copy.h"
#include "widgets/theme.h"

namespace stagewright {

FigureModel::FigureModel(std::vector<FigureColumn> columns, QObject* parent)
    : QAbstractTableModel(parent), m_columns(std::move(columns))
{
}

void FigureModel::setRows(std::vector<std::vector<FigureCell>> rows)
{
    beginResetModel();
    m_rows = std::move(rows);
    endResetModel();
}

int FigureModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}
int FigureModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_columns.size());
}

QVariant FigureModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid()) return {};
    const FigureCell& cell = m_rows[static_cast<std::size_t>(index.row())][static_cast<std::size_t>(index.column())];
    const FigureColumn& column = m_columns[static_cast<std::size_t>(index.column())];
    switch (role) {
    case Qt::DisplayRole: return shownName(cell.text);
    case Qt::ToolTipRole: return cell.tooltip.isEmpty() ? QVariant() : QVariant(shownTip(cell.tooltip));
    case Qt::TextAlignmentRole: return QVariant((column.figure ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    case Qt::FontRole: return column.identifiers ? QVariant(fontOf(FontRole::Identifier)) : QVariant();
    case SortRole: return column.figure ? QVariant(cell.value) : QVariant(cell.text);
    default: return {};
    }
}

QVariant FigureModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 || section >= columnCount()) return {};
    const FigureColumn& column = m_columns[static_cast<std::size_t>(section)];
    switch (role) {
    case Qt::DisplayRole: return column.title;
    case Qt::ToolTipRole: return column.meaning;
    case Qt::TextAlignmentRole: return QVariant((column.figure ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
    default: return {};
    }
}

FigureTable::FigureTable(const QString& name, std::vector<FigureColumn> columns, int sortedBy, QWidget* parent)
    : QTableView(parent), m_model(new FigureModel(std::move(columns), this)), m_sorted(new QSortFilterProxyModel(this))
{
    setAccessibleName(name);
    m_sorted->setSourceModel(m_model);
    m_sorted->setSortRole(FigureModel::SortRole);
    setModel(m_sorted);
    setSortingEnabled(true);
    if (sortedBy < 0)
        sortByColumn(-1, Qt::AscendingOrder);
    else
        sortByColumn(sortedBy, m_model->columns()[static_cast<std::size_t>(sortedBy)].figure ? Qt::DescendingOrder
                                                                                             : Qt::AscendingOrder);
    setSelectionBehavior(SelectRows);
    setSelectionMode(SingleSelection);
    setEditTriggers(NoEditTriggers);
    setShowGrid(false);
    setWordWrap(false);
    setTextElideMode(Qt::ElideMiddle); // names of kernels differ at both ends
    setTabKeyNavigation(false);
    setFrameShape(NoFrame);
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(22);
    verticalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    horizontalHeader()->setHighlightSections(false);
    for (std::size_t i = 0; i < m_model->columns().size(); ++i)
        setColumnWidth(static_cast<int>(i), m_model->columns()[i].width);
    makeCopyable(static_cast<QAbstractItemView*>(this));
    const auto tell = [this](const QModelIndex& at) {
        if (at.isValid()) emit chosen(m_sorted->mapToSource(at).row());
    };
    connect(selectionModel(), &QItemSelectionModel::currentRowChanged, this, tell);
    connect(this, &QTableView::activated, this, tell);
}

// The view makes its first row current when it gets the focus, although nobody chose it: no signal is sent.
void FigureTable::focusInEvent(QFocusEvent* event)
{
    const QSignalBlocker quiet(selectionModel());
    QTableView::focusInEvent(event);
    viewport()->update();
}

} // namespace stagewright
