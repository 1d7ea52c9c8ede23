// FigureTable: a sortable table of texts with the values behind them, for lists of figures that are set all at once.
// GUI thread only.
#pragma once

#include <vector>

#include <QAbstractTableModel>
#include <QSortFilterProxyModel>
#include <QTableView>

namespace stagewright {

struct FigureColumn {
    QString title;
    QString meaning;    // tooltip
    bool figure = true; // right-aligned, sorted by value
    int width = 90;
    bool identifiers = false; // its cells are names of programs
};

struct FigureCell {
    QString text;
    double value = 0;
    QString tooltip;
};

class FigureModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Role { SortRole = Qt::UserRole };
    FigureModel(std::vector<FigureColumn> columns, QObject* parent);
    void setRows(std::vector<std::vector<FigureCell>> rows);
    const std::vector<FigureColumn>& columns() const { return m_columns; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

private:
    std::vector<FigureColumn> m_columns;
    std::vector<std::vector<FigureCell>> m_rows;
};

class FigureTable : public QTableView {
    Q_OBJECT
public:
    // sortedBy: a column; −1: rows stay in their order until a column is chosen.
    FigureTable(const QString& name, std::vector<FigureColumn> columns, int sortedBy, QWidget* parent = nullptr);
    void setRows(std::vector<std::vector<FigureCell>> rows) { m_model->setRows(std::move(rows)); }

signals:
    void chosen(int row); // as given to setRows

protected:
    void focusInEvent(QFocusEvent* event) override;

private:
    FigureModel* m_model;
    QSortFilterProxyModel* m_sorted;
};

} // namespace stagewright
