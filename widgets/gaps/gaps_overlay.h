// GapsOverlay: what an explanation marks on the first panel of a timeline: gaps of one cause, the gap being explained
// with the chain of ops back to its root, and how much slack each op has. Times are axis time.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QObject>

#include "widgets/timeline/overlay.h"

namespace stagewright {

struct GapNote {
    int rank = 0;
    TimeRange range;
};

struct TimelineNotes {               // immutable, shared
    std::vector<GapNote> gaps;       // tinted; by rank, then start, not overlapping
    std::optional<GapNote> selected; // outlined
    // from what the gap waited for, back to the root; arrows lead from the root to the gap
    std::vector<SpanId> chain;
    // by span; null: not shown. Ops fade by slack; those without keep their colour
    std::shared_ptr<const std::vector<Nanos>> slack;
    Nanos mostSlack = 0;
};

class GapsOverlay : public QObject, public Overlay {
public:
    explicit GapsOverlay(QObject* parent) : QObject(parent), Overlay(OverlayLayer::Explained) {}
    void set(std::shared_ptr<const TimelineNotes> notes); // of the panel shown now, not of later ones; null: none
    std::shared_ptr<const TimelineNotes> notes() const;   // null: none are shown
    void paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const override;

private:
    std::shared_ptr<const TimelineNotes> m_notes;
    std::weak_ptr<const TimelinePanel> m_panel;
};

} // namespace stagewright
