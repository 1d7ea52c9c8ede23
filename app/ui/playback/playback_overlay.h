// What playback draws over the views: what has not happened yet becomes outlines, idle time grows with a running
// length, messages travel as parcels on the cursor and wait at their receiver, and a stack at the side shows the
// microbatches each rank holds. The views below are untouched; a tick repaints only the strip that the cursor passed.
// GUI thread only.
#pragma once

#include <vector>

#include <QWidget>

#include "app/ui/playback/player.h"
#include "traces/analysis/memory.h"
#include "widgets/memory/memory_view.h"
#include "widgets/themed_widget.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

class PlaybackOverlay : public QObject, public Overlay {
    Q_OBJECT
public:
    PlaybackOverlay(QObject* parent, Player* player);
    QRect lastStrip() const { return m_strip; } // repainted by the last tick
    void paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const override;

private:
    void moveStrip(Nanos from, Nanos to);
    void gatherParcels();
    void paintRow(QPainter& painter, const TimelineScene& scene, const Theme& theme, int panel, int rank,
                  const QRectF& row) const;
    void paintParcels(QPainter& painter, const TimelineScene& scene, const Theme& theme) const;

    Player* m_player;
    std::vector<std::size_t> m_parcels; // of Beats::parcels, sent and not consumed at the cursor
    QRect m_strip;
};

// The same cursor over the memory charts, with a stack of what each rank holds.
class MemoryPlayback : public ThemedWidget {
    Q_OBJECT
public:
    // timeline: provides the panels
    MemoryPlayback(MemoryView* view, TimelineView* timeline, ViewState* state, Player* player);
    // microbatches held, by rank's index
    const std::vector<std::vector<int>>& stacks() const { return m_stacks; }

protected:
    void paintEvent(QPaintEvent* event) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void refresh();
    void restack();

    MemoryView* m_view;
    TimelineView* m_timeline;
    Player* m_player;
    std::vector<std::vector<int>> m_stacks;
};

} // namespace stagewright
