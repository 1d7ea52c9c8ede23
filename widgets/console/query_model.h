// QueryModel: the rows of a query as a table; numeric columns sort as numbers. GUI thread only.
#pragma once

#include <string>
#include <vector>

#include <QAbstractTableModel>

namespace stagewright {

struct QueryRows {
    std::vector<std::string> columns;
    std::vector<std::vector<std::string>> rows; // as many cells as columns
    bool truncated = false;                     // there were more
};

class QueryModel : public QAbstractTableModel {
    Q_OBJECT
public:
    static constexpr int SortRole = Qt::UserRole; // a number in a column of numbers, else the text

    explicit QueryModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}
    void setRows(QueryRows rows);
    const QueryRows& rows() const { return m_rows; }
    bool isNumeric(int column) const { return m_numeric[static_cast<std::size_t>(column)]; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    QueryRows m_rows;
    std::vector<bool> m_numeric; // by column: every cell is a number or empty
};

} // namespace stagewright
