#include "widgets/compare/op_table.h"

#include <algorithm>
#include <cstdlib>

#include <QHeaderView>
#include <QPainter>
#include <QStyledItemDelegate>

#include "widgets/literals.h"
#include "widgets/table_copy.h"

namespace stagewright {

namespace {

// Two boxes on one axis, A above B: whiskers from minimum to maximum, box between the quartiles, a line at the median.
class StepsDelegate : public QStyledItemDelegate {
public:
    StepsDelegate(CompareOpModel* model, QSortFilterProxyModel* sorted, const Theme* const* theme, QObject* parent)
        : QStyledItemDelegate(parent), m_model(model), m_sorted(sorted), m_theme(theme)
    {
    }
    void paint(QPainter* p, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        QStyledItemDelegate::paint(p, option, index);
        const Comparison* comparison = m_model->comparison();
        if (comparison == nullptr || !comparison->historyA || !comparison->historyB) return;
        const OpDelta& op = m_model->at(m_sorted->mapToSource(index).row());
        const StepSample samples[] = {comparison->historyA->duration(op.op, op.rank),
                                      comparison->historyB->duration(op.op, op.rank)};
        if (samples[0].count == 0 || samples[1].count == 0) return;
        const Theme& theme = **m_theme;
        const Nanos least = std::min(samples[0].least, samples[1].least);
        const Nanos most = std::max(samples[0].most, samples[1].most);
        const QRectF area = QRectF(option.rect).adjusted(4, 3, -4, -3);
        const auto x = [&](Nanos value) {
            return area.left() +
                   (most > least ? static_cast<double>(value - least) / static_cast<double>(most - least) : 0.5) *
                       area.width();
        };
        p->save();
        p->setRenderHint(QPainter::Antialiasing);
        for (int i = 0; i < 2; ++i) {
            const StepSample& sample = samples[i];
            const double y = area.top() + (i + 0.5) * area.height() / 2;
            const QColor colour = i == 0 ? theme.secondary : theme.accent;
            p->setPen(QPen(colour, 1));
            p->drawLine(QPointF(x(sample.least), y), QPointF(x(sample.most), y));
            p->setPen(Qt::NoPen);
            p->setBrush(colour);
            p->drawRect(QRectF(x(sample.low), y - 2.5, std::max(1.5, x(sample.high) - x(sample.low)), 5));
            p->setPen(QPen(theme.panel, 1));
            p->drawLine(QPointF(x(sample.median), y - 2.5), QPointF(x(sample.median), y + 2.5));
        }
        p->restore();
    }

private:
    CompareOpModel* m_model;
    QSortFilterProxyModel* m_sorted;
    const Theme* const* m_theme;
};

QString noiseText(const NoiseVerdict& verdict, Nanos change, const Units& units)
{
    if (change == 0) return u"no change"_s;
    if (!verdict.spread) return u"noise unknown: it needs %1 measured steps of each run"_s.arg(fewestSteps);
    if (*verdict.spread == 0) return u"simulated: without noise"_s;
    return verdict.shows
               ? u"exceeds the noise of ±%1"_s.arg(durationText(*verdict.spread, units))
               : u"within the noise of ±%1: no significant difference"_s.arg(durationText(*verdict.spread, units));
}

} // namespace

void CompareOpModel::setComparison(std::shared_ptr<const Comparison> comparison, const Units& units)
{
    beginResetModel();
    m_comparison = std::move(comparison);
    m_units = units;
    m_rows.clear();
    if (m_comparison && m_comparison->sameUnits)
        for (std::size_t i = 0; i < m_comparison->ops.size(); ++i)
            if (m_comparison->ops[i].inBoth()) m_rows.push_back(i);
    endResetModel();
}

int CompareOpModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}
int CompareOpModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : ColumnCount; }

QVariant CompareOpModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid()) return {};
    const OpDelta& op = at(index.row());
    const Nanos change = index.column() == Start ? op.startDelta : op.durationDelta;
    const NoiseVerdict& verdict = index.column() == Start ? op.start : op.duration;
    switch (role) {
    case Qt::DisplayRole:
        switch (index.column()) {
        case OpName: return QString::fromStdString(toText(op.op));
        case Rank: return op.rank;
        case Start:
        case Duration:
            return change == 0 ? u"="_s : signedDurationText(change, m_units) + (verdict.shows ? QString() : u" ~"_s);
        default: return {};
        }
    case SortRole:
        switch (index.column()) {
        case OpName: return QString::fromStdString(toText(op.op));
        case Rank: return op.rank;
        case Steps:
            return m_comparison->historyB ? static_cast<double>(m_comparison->historyB->duration(op.op, op.rank).sigma)
                                          : 0.0;
        default: return static_cast<qlonglong>(std::llabs(change));
        }
    case Qt::TextAlignmentRole:
        return index.column() == OpName ? QVariant(Qt::AlignLeft | Qt::AlignVCenter)
                                        : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    case Qt::ForegroundRole:
        if (index.column() != Start && index.column() != Duration) return {};
        if (change == 0 || !verdict.shows) return m_theme->faint;
        return change < 0 ? m_theme->better : m_theme->worse;
    case Qt::ToolTipRole:
        if (index.column() == Start || index.column() == Duration) return noiseText(verdict, change, m_units);
        if (index.column() == Steps && m_comparison->historyA && m_comparison->historyB) {
            const StepSample a = m_comparison->historyA->duration(op.op, op.rank);
            const StepSample b = m_comparison->historyB->duration(op.op, op.rank);
            return u"A: median %1, %2 to %3 over %4 steps\nB: median %5, %6 to %7 over %8 steps"_s
                .arg(durationText(a.median, m_units), durationText(a.least, m_units), durationText(a.most, m_units))
                .arg(a.count)
                .arg(durationText(b.median, m_units), durationText(b.least, m_units), durationText(b.most, m_units))
                .arg(b.count);
        }
        return {};
    default: return {};
    }
}

QVariant CompareOpModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 || section >= ColumnCount) return {};
    static const char* const titles[] = {"Op", "Rank", "Start", "Takes", "Steps"};
    static const char* const meanings[] = {
        "As written in A's schedule.", "The rank that runs it in both runs.",
        "Start in B minus start in A, each from the start of its step. ~: within the noise.",
        "Duration in B minus duration in A. ~: within the noise.",
        "The op's duration over the measured steps, A above B: minimum to maximum, the middle half as a "
        "box, the median as a line."};
    if (role == Qt::DisplayRole) return QString::fromUtf8(titles[section]);
    if (role == Qt::ToolTipRole) return QString::fromUtf8(meanings[section]);
    return {};
}

CompareOpTable::CompareOpTable(QWidget* parent)
    : QTableView(parent), m_model(new CompareOpModel(this)), m_sorted(new QSortFilterProxyModel(this))
{
    setObjectName(u"compareOps"_s);
    setAccessibleName(u"Ops by change"_s);
    m_sorted->setSourceModel(m_model);
    m_sorted->setSortRole(CompareOpModel::SortRole);
    setModel(m_sorted);
    setSortingEnabled(true);
    sortByColumn(CompareOpModel::Start, Qt::DescendingOrder);
    setSelectionBehavior(SelectRows);
    setSelectionMode(SingleSelection);
    setShowGrid(false);
    setTabKeyNavigation(false);
    setFrameShape(NoFrame);
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(21);
    horizontalHeader()->setHighlightSections(false);
    // Every change is whole, in the narrowest panel behind a scroll; the picture of the steps takes what is left.
    setHorizontalScrollMode(ScrollPerPixel);
    horizontalHeader()->setMinimumSectionSize(24);
    for (int i = 0; i < CompareOpModel::ColumnCount; ++i)
        horizontalHeader()->setSectionResizeMode(i, i == CompareOpModel::Steps ? QHeaderView::Stretch
                                                                               : QHeaderView::ResizeToContents);
    setItemDelegateForColumn(CompareOpModel::Steps, new StepsDelegate(m_model, m_sorted, &m_theme, this));
    makeCopyable(static_cast<QAbstractItemView*>(this));
    connect(selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
        if (!now.isValid()) return;
        const OpDelta& op = m_model->at(m_sorted->mapToSource(now).row());
        emit opChosen(op.a, op.b);
    });
}

void CompareOpTable::setComparison(std::shared_ptr<const Comparison> comparison, const Units& units)
{
    setColumnHidden(CompareOpModel::Steps, !comparison || !comparison->historyA || !comparison->historyB);
    m_model->setComparison(std::move(comparison), units);
    setFixedHeight(std::clamp(m_model->rowCount(), 1, 12) * 21 + 30);
}

void CompareOpTable::setTheme(const Theme& theme)
{
    m_theme = &theme;
    m_model->setTheme(theme);
    viewport()->update();
}

} // namespace stagewright
