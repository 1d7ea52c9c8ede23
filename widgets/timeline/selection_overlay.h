// SelectionOverlay: the selected op with its arrows, the selected areas and the microbatch under the pointer; clicking,
// dragging areas and their edges, and walking from op to op. Each TimelineView has one.
#pragma once

#include <QObject>

#include "widgets/timeline/aggregation.h"
#include "widgets/timeline/overlay.h"

namespace stagewright {

class SelectionOverlay : public QObject, public Overlay {
    Q_OBJECT
public:
    explicit SelectionOverlay(QObject* parent) : QObject(parent), Overlay(OverlayLayer::Selected) {}
    Aggregation aggregation() const; // of the selected areas
    void tellAreas() { emit areaAggregated(aggregation()); }
    void fit(); // to the selection; again, or without one: everything
    void fitTo(SpanRef ref);
    void show(SpanRef ref);             // scrolls to it, out of a folded group
    void showRank(int panel, int rank); // scrolls the rows, not the time

    void paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const override;
    std::optional<OverlayHit> hit(const OverlayPress& press) override;
    bool key(ViewAction action, bool asked) override;

signals:
    void areaAggregated(const stagewright::Aggregation& aggregation);   // live while dragging; empty when cleared
    void idleClicked(int panel, int rank, stagewright::Nanos axisTime); // a click on a row without an op there
    // The keys reached an op of a step without loaded spans.
    void sliceAsked(int panel, int rank, stagewright::Nanos axisTime);

private:
    void clicked(QPointF at, bool adds);
    std::optional<OverlayHit> edgeAt(QPointF at);
    AreaSelection areaBetween(QPointF a, QPointF b) const;
    Nanos snapped(double x, int first, int last) const; // to an op edge within 6 px, of the ranks at these positions
    void choose(SpanRef ref);                           // selects it and scrolls to it
    void walkOnRank(int by);
    void walkStage(int by);
    void walkDependency(bool forward);
};

} // namespace stagewright
