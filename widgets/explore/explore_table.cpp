#include "widgets/explore/explore_table.h"

#include <algorithm>

#include <QHeaderView>
#include <QKeyEvent>

#include "schedules/library/registry.h"
#include "widgets/explore/survey_text.h"
#include "widgets/literals.h"
#include "widgets/table_copy.h"

namespace stagewright {
namespace {

constexpr int shortName = 164, shortNote = 160; // widths, px

} // namespace

void ExploreModel::setRows(SweepRows rows, const ExploreQuestion& question)
{
    m_question = question;
    const bool sameNames = m_rows && rows && m_rows->size() == rows->size();
    if (sameNames) { // a sweep of the same schedules: the selection and the order of the table stay
        m_rows = std::move(rows);
        if (!m_rows->empty()) emit dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
        return;
    }
    beginResetModel();
    m_rows = std::move(rows);
    endResetModel();
}

void ExploreModel::setTicked(const std::set<std::string>& schedules)
{
    m_ticked = schedules;
    if (rowCount() > 0) emit dataChanged(index(0, Schedule), index(rowCount() - 1, Schedule), {Qt::CheckStateRole});
    emit tickedChanged();
}

int ExploreModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() || !m_rows ? 0 : static_cast<int>(m_rows->size());
}
int ExploreModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QString ExploreModel::note(const SweepRow& row) const { return qtText(noteOf(row, m_question)); }

QVariant ExploreModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid() || !m_rows) return {};
    const SweepRow& row = (*m_rows)[static_cast<std::size_t>(index.row())];
    const int column = index.column();
    if (role == Qt::CheckStateRole && column == Schedule)
        return m_ticked.contains(row.schedule()) ? Qt::Checked : Qt::Unchecked;
    if (role == Qt::TextAlignmentRole)
        return column == Schedule || column == Note ? QVariant(Qt::AlignLeft | Qt::AlignVCenter)
                                                    : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole) {
        if (column == Note || !row.good()) return note(row);
        if (column != Schedule) return {};
        const auto info = scheduleInfoOf(row.schedule());
        return info ? QString::fromStdString(row.schedule()) + u"\n"_s +
                          QString::fromUtf8((*info)->title.data(), static_cast<qsizetype>((*info)->title.size())) +
                          u"\n"_s +
                          QString::fromUtf8((*info)->summary.data(), static_cast<qsizetype>((*info)->summary.size()))
                    : QString();
    }
    const double worst = 1e300; // unknown values come last
    if (role == SortRole) {
        const double behind =
            overCap(row, m_question).empty() ? 0 : 1e12; // what is over the cap, behind what is within
        switch (column) {
        case Schedule: return scheduleTitle(row.schedule()).toCaseFolded();
        case StepTime: return row.good() ? behind + row.timeValue(row.step) : worst;
        case Bubble: return row.good() ? behind + row.bubbleFraction : worst;
        case SpanBubble: return row.good() ? behind + row.bubbleRateSpan : worst;
        case Peak: return row.good() && !row.peaks.empty() ? behind + row.memoryValue(row.peak()) : worst;
        case Stages: return row.good() ? row.stages : 1 << 30;
        default: return note(row);
        }
    }
    if (role != Qt::DisplayRole) return {};
    if (column == Schedule) return scheduleTitle(row.schedule());
    if (column == Note) return note(row);
    if (!row.good()) return u"–"_s;
    switch (column) {
    case StepTime: return shortText(row.timeValue(row.step));
    case Bubble: return percentText(row.bubbleFraction);
    case SpanBubble: return percentText(row.bubbleRateSpan);
    case Peak: return row.peaks.empty() ? u"–"_s : shortText(row.memoryValue(row.peak()));
    default: return row.stages;
    }
}

bool ExploreModel::setData(const QModelIndex& index, const QVariant& value, int role)
{
    if (role != Qt::CheckStateRole || index.column() != Schedule || !m_rows) return false;
    const std::string& name = (*m_rows)[static_cast<std::size_t>(index.row())].schedule();
    if (value.toInt() == Qt::Checked)
        m_ticked.insert(name);
    else
        m_ticked.erase(name);
    emit dataChanged(index, index, {Qt::CheckStateRole});
    emit tickedChanged();
    return true;
}

QVariant ExploreModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal) return {};
    if (role == Qt::TextAlignmentRole)
        return section == Schedule || section == Note ? QVariant(Qt::AlignLeft | Qt::AlignVCenter)
                                                      : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (section < 0 || section >= ColumnCount) return {};
    if (section == Schedule) {
        if (role == Qt::DisplayRole) return u"Schedule"_s;
        return role == Qt::ToolTipRole ? u"With parameters that differ from the defaults. Ticked schedules are in "
                                         "the charts below."_s
                                       : QVariant();
    }
    static const std::vector<TableColumn> columns = figureColumns(); // behind the schedule
    const TableColumn& column = columns[static_cast<std::size_t>(section - StepTime)];
    if (role == Qt::DisplayRole) return qtText(column.title);
    if (role == Qt::ToolTipRole) return qtText(column.meaning);
    return {};
}

Qt::ItemFlags ExploreModel::flags(const QModelIndex& index) const
{
    if (!index.isValid() || !m_rows) return Qt::NoItemFlags;
    Qt::ItemFlags flags = Qt::ItemIsSelectable | Qt::ItemIsEnabled;
    if (index.column() == Schedule) flags |= Qt::ItemIsUserCheckable;
    const SweepRow& row = (*m_rows)[static_cast<std::size_t>(index.row())];
    // greyed but readable
    if (row.done && (!row.good() || !overCap(row, m_question).empty()) && index.column() != Schedule &&
        index.column() != Note)
        flags &= ~Qt::ItemIsEnabled;
    return flags;
}

ExploreTable::ExploreTable(QWidget* parent)
    : QTableView(parent), m_model(new ExploreModel(this)), m_sorted(new QSortFilterProxyModel(this))
{
    setObjectName(u"exploreTable"_s);
    setAccessibleName(u"Schedules"_s);
    m_sorted->setSourceModel(m_model);
    m_sorted->setSortRole(ExploreModel::SortRole);
    m_sorted->setDynamicSortFilter(true);
    setModel(m_sorted);
    setSortingEnabled(true);
    sortByColumn(ExploreModel::StepTime, Qt::AscendingOrder);
    setSelectionBehavior(SelectRows);
    setSelectionMode(SingleSelection);
    setShowGrid(false);
    setWordWrap(false);
    setTabKeyNavigation(false);
    setFrameShape(NoFrame);
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(23);
    horizontalHeader()->setHighlightSections(false);
    horizontalHeader()->setStretchLastSection(true);
    const int widths[] = {shortName, 74, 60, 60, 58, 58, shortNote};
    for (int i = 0; i < ExploreModel::ColumnCount; ++i) setColumnWidth(i, widths[i]);
    // neither titles nor figures are cut
    for (int i = ExploreModel::StepTime; i < ExploreModel::Note; ++i)
        horizontalHeader()->setSectionResizeMode(i, QHeaderView::ResizeToContents);
    connect(m_sorted, &QAbstractItemModel::modelReset, this, &ExploreTable::fitNames, Qt::QueuedConnection);
    connect(horizontalHeader(), &QHeaderView::sectionResized, this, [this](int column) {
        if (m_fitting || column == ExploreModel::Note) return; // the last one follows the others
        if (column == ExploreModel::Schedule)
            m_nameChosen = true;
        else
            fitNames();
    });
    makeCopyable(static_cast<QAbstractItemView*>(this));
    connect(selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
        if (!m_following && now.isValid()) emit rowChosen(m_sorted->mapToSource(now).row());
    });
    connect(this, &QTableView::doubleClicked, this,
            [this](const QModelIndex& at) { emit rowActivated(m_sorted->mapToSource(at).row()); });
}

int ExploreTable::selectedRow() const
{
    return currentIndex().isValid() ? m_sorted->mapToSource(currentIndex()).row() : -1;
}

void ExploreTable::setSelectedRow(int row)
{
    if (row == selectedRow()) return;
    m_following = true;
    if (row < 0) {
        setCurrentIndex({});
    } else {
        const QModelIndex index = m_sorted->mapFromSource(m_model->index(row, 0));
        selectRow(index.row());
        scrollTo(index);
    }
    m_following = false;
}

void ExploreTable::keyPressEvent(QKeyEvent* event)
{
    const int row = selectedRow();
    if ((event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) && row >= 0) {
        emit rowActivated(row);
        return;
    }
    if (event->key() == Qt::Key_Space && row >= 0) {
        const QModelIndex index = m_model->index(row, ExploreModel::Schedule);
        m_model->setData(index,
                         m_model->data(index, Qt::CheckStateRole).toInt() == Qt::Checked ? Qt::Unchecked : Qt::Checked,
                         Qt::CheckStateRole);
        return;
    }
    QTableView::keyPressEvent(event);
}

void ExploreTable::resizeEvent(QResizeEvent* event)
{
    QTableView::resizeEvent(event);
    fitNames();
}

void ExploreTable::fitNames()
{
    if (m_nameChosen) return;
    const int room = viewport()->width() - columnWidth(ExploreModel::StepTime);
    m_fitting = true;
    // whole names beside the first figure; the others scroll
    setColumnWidth(ExploreModel::Schedule,
                   std::max(shortName, std::min(room, sizeHintForColumn(ExploreModel::Schedule))));
    m_fitting = false;
}

} // namespace stagewright
