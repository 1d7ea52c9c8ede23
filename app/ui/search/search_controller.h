// SearchController: the search field of one window: finds ops and notes, steps through them, marks them on the timeline
// and lists them in a dock. Large runs are searched on a worker thread; the latest query wins.
#pragma once

#include <memory>
#include <vector>

#include <QObject>
#include <QString>

#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"
#include "widgets/job.h"
#include "widgets/search/search_model.h"

class QDockWidget;

namespace stagewright {

class SearchOverlay;
class SearchPanel;

class SearchController : public Feature, public OpFinding {
    Q_OBJECT
public:
    explicit SearchController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    static std::vector<ShowEntry> showTable();
    FeatureParts parts() override;
    void find(const QString& text, bool backward = false) override;
    void mark(std::shared_ptr<const std::vector<SpanId>> spans, std::vector<Nanos> moments) override;
    void clear() override;
    bool escape() override; // takes the marks away
    void restart(bool backward) override;
    bool searching() const { return m_searching.running(); }
    const std::vector<SearchHit>& hits() const;
    SearchPanel* panel() { return m_panel; }
    const SearchOverlay& overlay() const { return *m_overlay; }
    QDockWidget* dock() { return m_dock; }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override; // the field

private:
    void connectField();
    void searched(const QString& text, bool backward, std::shared_ptr<const std::vector<SearchHit>> hits);
    void go(int row);
    void walk(bool backward);
    bool ofPart() const; // of a run read in parts: one step was searched

    SearchOverlay* m_overlay;
    SearchPanel* m_panel;
    QDockWidget* m_dock;
    QString m_query; // of the hits
    std::shared_ptr<const std::vector<SearchHit>> m_hits;
    std::shared_ptr<const std::vector<SpanId>> m_marks; // sorted by id
    std::shared_ptr<const TimelinePanel> m_searchedPanel;
    std::vector<Note> m_searchedNotes;
    int m_panelIndex = 0;
    int m_at = -1;
    Job m_searching;
};

} // namespace stagewright
