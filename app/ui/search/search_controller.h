// SearchController: the search field of one window: finds ops and notes, steps through them, marks them on the timeline and lists
// them in a dock. Large runs are searched on a worker thread; the latest query wins.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include <QObject>
#include <QString>

#include "widgets/search/search_model.h"

class QDockWidget;

namespace stagewright {

class MainWindow;
class SearchPanel;

class SearchController : public QObject {
    Q_OBJECT
public:
    explicit SearchController(MainWindow& window);
    void find(const QString& text, bool backward); // the next match; a new text searches first
    void clear();                                  // no matches, no marks
    void restart(bool backward);                   // the first match again, or the last
    bool searching() const { return m_searching; }
    const std::vector<SearchHit>& hits() const;
    SearchPanel* panel() { return m_panel; }
    QDockWidget* dock() { return m_dock; }

private:
    void searched(const QString& text, bool backward, std::shared_ptr<const std::vector<SearchHit>> hits);
    void go(int row);
    void walk(bool backward);
    bool ofPart() const; // of a run read in parts: one step was searched

    MainWindow& m_window;
    SearchPanel* m_panel;
    QDockWidget* m_dock;
    QString m_query; // of the hits
    std::shared_ptr<const std::vector<SearchHit>> m_hits;
    std::shared_ptr<const std::vector<SpanId>> m_marks; // sorted by id
    std::shared_ptr<const TimelinePanel> m_searchedPanel;
    std::vector<Note> m_searchedNotes;
    int m_panelIndex = 0;
    int m_at = -1;
    bool m_searching = false;
    quint64 m_generation = 0;
    std::stop_source m_stop;
};

} // namespace stagewright
