// SearchOverlay: the ops and moments that a search or a query found, marked on a timeline, also in exported pictures.
#pragma once

#include <memory>
#include <vector>

#include <QObject>

#include "widgets/timeline/overlay.h"

namespace stagewright {

struct Finds {
    int panel = 0;
    std::shared_ptr<const std::vector<SpanId>> hits; // sorted by id; may be null
    SpanId current = noSpan;                         // of the hits
    std::vector<Nanos> moments;                      // found times without a span, sorted; axis time
    bool empty() const { return !hits && moments.empty(); }
};

class SearchOverlay : public QObject, public Overlay {
public:
    explicit SearchOverlay(QObject* parent) : QObject(parent), Overlay(OverlayLayer::Found) {}
    void set(Finds finds); // of the run shown now: in another one the numbers of spans mean other ops
    bool empty() const { return m_finds.empty(); }
    const Finds* shown() const; // null: none, or another run is shown
    // O(rows in view × pixels × log hits).
    void paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const override;

private:
    bool isOf(const TimelineScene& scene) const;

    Finds m_finds;
    std::weak_ptr<const Timeline> m_timeline; // of the panel
};

} // namespace stagewright
