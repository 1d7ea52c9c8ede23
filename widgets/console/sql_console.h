// SqlConsole: a query above, its rows below. It runs nothing itself: runAsked() goes to the owner of the run file, and
// showRows() or showFault() bring the answer. The owner selects rows that name a span or a time on the timeline.
#pragma once

#include <QWidget>

#include "widgets/console/query_editor.h"
#include "widgets/console/query_model.h"

class QElapsedTimer;
class QLabel;
class QMenu;
class QProgressBar;
class QPushButton;
class QSortFilterProxyModel;
class QTableView;
class QTimer;

namespace stagewright {

class SqlConsole : public QWidget {
    Q_OBJECT
public:
    explicit SqlConsole(QWidget* parent = nullptr);
    QueryEditor* editor() { return m_editor; }
    QueryModel* model() { return &m_model; }
    QTableView* table() { return m_table; }
    QMenu* queriesMenu() { return m_queries; } // filled by the owner before it opens
    void setTheme(const Theme& theme) { m_editor->setTheme(theme); }
    void setQuery(const QString& sql);
    void setRunning(bool running);
    bool running() const { return m_running; }
    void showRows(QueryRows rows, qint64 milliseconds);
    void showFault(const QString& message, const QString& remedy);
    static constexpr int editorHeight = 96; // px, at most
    int missingHeight() const;              // px that the table lacks to show ten rows and a header; 0: none
    QString status() const;
    int currentRow() const;                                // of the model, −1: none
    void setShowsOnTimeline(bool can, const QString& why); // whether the rows name spans or times
    void setSaid(const QString& text);                     // under the rows

signals:
    void runAsked(const QString& sql);
    void cancelAsked();
    void saveAsked(const QString& sql);
    void exportAsked();
    void rowChosen(int row);    // of the model
    void showOnTimelineAsked(); // all rows

private:
    QueryEditor* m_editor;
    QueryModel m_model;
    QSortFilterProxyModel* m_sorted;
    QTableView* m_table;
    QPushButton* m_run;
    QPushButton* m_cancel;
    QPushButton* m_mark;
    QPushButton* m_export;
    QMenu* m_queries;
    QProgressBar* m_busy;
    QLabel* m_said;
    QTimer* m_clock;
    qint64 m_began = 0;
    bool m_running = false;
};

} // namespace stagewright
