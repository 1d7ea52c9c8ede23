// ExploreTable: the explorer's points as rows that can be sorted and ticked. GUI thread only.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <QAbstractTableModel>
#include <QSortFilterProxyModel>
#include <QTableView>

#include "schedules/survey/explore_question.h"

namespace stagewright {

using SweepRows = std::shared_ptr<const std::vector<SweepRow>>;

class ExploreModel : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column {
        Schedule,
        StepTime,
        Bubble,
        SpanBubble,
        Peak,
        Stages,
        Note,
        ColumnCount,
    };
    enum Role { SortRole = Qt::UserRole };
    using QAbstractTableModel::QAbstractTableModel;

    void setRows(SweepRows rows, const ExploreQuestion& question);
    void setTicked(const std::set<std::string>& schedules);
    const std::set<std::string>& ticked() const { return m_ticked; }

    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    bool setData(const QModelIndex& index, const QVariant& value, int role) override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
    Qt::ItemFlags flags(const QModelIndex& index) const override;

signals:
    void tickedChanged();

private:
    QString note(const SweepRow& row) const;
    SweepRows m_rows;
    ExploreQuestion m_question;
    std::set<std::string> m_ticked;
};

class ExploreTable : public QTableView {
    Q_OBJECT
public:
    explicit ExploreTable(QWidget* parent = nullptr);
    ExploreModel* rows() { return m_model; }
    int selectedRow() const; // −1: none
    void setSelectedRow(int row);

signals:
    void rowChosen(int row);
    void rowActivated(int row);

protected:
    void keyPressEvent(QKeyEvent* event) override;  // Enter opens, Space ticks
    void resizeEvent(QResizeEvent* event) override; // names get what the other columns leave

private:
    void fitNames();

    ExploreModel* m_model;
    QSortFilterProxyModel* m_sorted;
    bool m_following = false;
    bool m_nameChosen = false; // the width of names, by the reader
    bool m_fitting = false;
};

} // namespace stagewright
