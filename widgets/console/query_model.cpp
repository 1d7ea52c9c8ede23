#include "widgets/console/query_model.h"

#include <algorithm>

#include "widgets/sentence.h"

namespace stagewright {
namespace {

bool isNumber(const std::string& text)
{
    bool ok = false;
    QByteArray::fromRawData(text.data(), static_cast<qsizetype>(text.size())).toDouble(&ok);
    return ok;
}

} // namespace

void QueryModel::setRows(QueryRows rows)
{
    beginResetModel();
    m_rows = std::move(rows);
    m_numeric.assign(m_rows.columns.size(), true);
    for (std::size_t c = 0; c < m_numeric.size(); ++c) {
        bool any = false;
        for (const auto& row : m_rows.rows) {
            if (row[c].empty()) continue;
            any = true;
            if (isNumber(row[c])) continue;
            m_numeric[c] = false;
            break;
        }
        m_numeric[c] = m_numeric[c] && any;
    }
    endResetModel();
}

int QueryModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.rows.size());
}
int QueryModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.columns.size());
}

QVariant QueryModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount() || index.column() >= columnCount()) return {};
    const std::string& cell =
        m_rows.rows[static_cast<std::size_t>(index.row())][static_cast<std::size_t>(index.column())];
    switch (role) {
    case Qt::DisplayRole: return shownName(cell);
    case Qt::ToolTipRole: return shownTip(QString::fromStdString(cell));
    case SortRole:
        if (!isNumeric(index.column())) return QString::fromStdString(cell);
        return cell.empty() ? QVariant(-1e300) : QVariant(QByteArray::fromStdString(cell).toDouble());
    case Qt::TextAlignmentRole:
        return QVariant::fromValue(
            Qt::Alignment(Qt::AlignVCenter | (isNumeric(index.column()) ? Qt::AlignRight : Qt::AlignLeft)));
    default: return {};
    }
}

QVariant QueryModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (section < 0 || (orientation == Qt::Horizontal && section >= columnCount())) return {};
    if (orientation == Qt::Vertical) return role == Qt::DisplayRole ? QVariant(section + 1) : QVariant();
    if (role == Qt::DisplayRole) return QString::fromStdString(m_rows.columns[static_cast<std::size_t>(section)]);
    if (role == Qt::TextAlignmentRole)
        return QVariant::fromValue(
            Qt::Alignment(Qt::AlignVCenter | (isNumeric(section) ? Qt::AlignRight : Qt::AlignLeft)));
    return {};
}

} // namespace stagewright
