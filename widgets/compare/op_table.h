// CompareOpTable: the ops of two runs, sorted by change; each with its durations over the steps of both runs, and
// whether the change exceeds the noise. GUI thread only.
#pragma once

#include <memory>

#include <QAbstractTableModel>
#include <QSortFilterProxyModel>
#include <QTableView>

#include "traces/compare/compare.h"
#include "widgets/numbers.h"
#include "widgets/theme.h"

namespace stagewright {

class CompareOpModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column {
        OpName,
        Rank,
        Start,
        Duration,
        Steps,
        ColumnCount,
    };
    enum Role { SortRole = Qt::UserRole };
    using QAbstractTableModel::QAbstractTableModel;
    void setComparison(std::shared_ptr<const Comparison> comparison, const Units& units);
    void setTheme(const Theme& theme) { m_theme = &theme; }
    const OpDelta& at(int row) const { return m_comparison->ops[m_rows[static_cast<std::size_t>(row)]]; }
    const Comparison* comparison() const { return m_comparison.get(); }
    const Units& units() const { return m_units; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::shared_ptr<const Comparison> m_comparison;
    std::vector<std::size_t> m_rows; // into Comparison::ops: those in both runs
    Units m_units;
    const Theme* m_theme = &Theme::light();
};

class CompareOpTable : public QTableView {
    Q_OBJECT
public:
    explicit CompareOpTable(QWidget* parent = nullptr);
    void setComparison(std::shared_ptr<const Comparison> comparison, const Units& units); // null: empty
    void setTheme(const Theme& theme);
    CompareOpModel* rows() { return m_model; }

signals:
    void opChosen(stagewright::SpanId a, stagewright::SpanId b);

private:
    CompareOpModel* m_model;
    QSortFilterProxyModel* m_sorted;
    const Theme* m_theme = &Theme::light();
};

} // namespace stagewright
