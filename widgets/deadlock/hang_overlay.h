// HangOverlay: an order that can't run on a TimelineView. Ops that are never reached are hatched in the colour of
// faults, and arrows lead along the cycle of waits. GUI thread only.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <QString>

#include "widgets/timeline/overlay.h"

namespace stagewright {

class HangOverlay : public Overlay {
public:
    struct RankOp {
        int rank = 0;
        Op op;
    };
    // In panel 0: the ops that are never reached, those on the cycle in waiting order, and why each rank stops.
    struct Marks {
        std::vector<RankOp> stopped;
        std::vector<RankOp> cycle;
        std::map<int, QString> why; // by rank
    };
    HangOverlay() : Overlay(OverlayLayer::Explained) {}
    void setMarks(std::shared_ptr<const Marks> marks); // null: the order runs
    bool hung() const { return m_marks != nullptr; }

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
    std::shared_ptr<const Marks> m_marks;
};

} // namespace stagewright
