// HangOverlay: an order that can't run on a TimelineView. Ops that are never reached are hatched in the colour of
// faults, and arrows lead along the cycle of waits. GUI thread only.
#pragma once

#include <memory>

#include "schedules/execute/deadlock.h"
#include "widgets/timeline/overlay.h"

namespace stagewright {

class HangOverlay : public Overlay {
public:
    HangOverlay() : Overlay(OverlayLayer::Explained) {}
    // Of panel 0: an order as executed, with its messages, and why it stops; null: it runs.
    void setHang(std::shared_ptr<const Schedule> order, std::shared_ptr<const Deadlock> hang);
    bool hung() const { return m_hang != nullptr; }

    // What is drawn on a scene, in the view: rectangles of ops that never run, and the ends of each arrow of the cycle.
    struct Stopped {
        QRectF rect;
        Op op;
    };
    std::vector<Stopped> stopped(const TimelineScene& scene) const;
    std::vector<std::pair<QRectF, QRectF>> waits(const TimelineScene& scene) const;

    void paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const override;
    CardText describe(QPointF at) const override;

private:
    // The op drawn for a place of a rank's list: its own, or for a message the next one that is drawn.
    std::optional<QRectF> rectAt(const TimelineScene& scene, int rank, int position) const;

    std::shared_ptr<const Schedule> m_order;
    std::shared_ptr<const Deadlock> m_hang;
};

} // namespace stagewright
