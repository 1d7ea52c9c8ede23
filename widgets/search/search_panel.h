// SearchPanel: search results with their count; arrows and Enter go to one.
#pragma once

#include <QWidget>

#include "widgets/search/search_model.h"

class QLabel;
class QProgressBar;
class QTableView;

namespace stagewright {

class SearchPanel : public QWidget {
    Q_OBJECT
public:
    explicit SearchPanel(QWidget* parent = nullptr);
    SearchModel* model() { return &m_model; }
    QTableView* table() { return m_table; }
    void setHits(std::shared_ptr<const TimelinePanel> panel, std::shared_ptr<const std::vector<SearchHit>> hits,
                 std::vector<Note> notes, const QString& query);
    void setSearching(bool searching);
    void setCurrentRow(int row); // without a signal
    QString countText() const;

signals:
    void chosen(int row);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    SearchModel m_model;
    QLabel* m_count;
    QProgressBar* m_busy;
    QTableView* m_table;
};

} // namespace stagewright
