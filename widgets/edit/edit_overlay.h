// EditOverlay: edit mode on a TimelineView. It draws both ops of a fault, the selected ops, the selected gap, the ghost
// of another order as faint outlines where it differs, and where a dragged op would go. Dragging an op is announced and
// moves nothing: the owner answers with setDrag and a preview, and after the drop with new panels.
#pragma once

#include <optional>
#include <vector>

#include <QObject>

#include "widgets/timeline/overlay.h"

namespace stagewright {

// Where a dragged op would go, and whether that order is valid.
struct DragFeedback {
    SpanRef span;    // the dragged op, painted faded at its place
    int toRank = -1; // the row the ghost is painted on
    Nanos begin = 0; // axis time of the ghost (of the re-simulated op, or under the pointer)
    Nanos end = 0;
    std::optional<Nanos> insertAt; // axis time of the insertion bar on toRank
    bool valid = true;
    QString message; // under the ghost: "+3.0 ms", "2B4 would come before its forward"
};

class EditOverlay : public QObject, public Overlay {
    Q_OBJECT
public:
    struct GapMark { // idle time of a rank, axis time
        int rank = 0;
        Nanos begin = 0;
        Nanos end = 0;
    };
    // Where a new op dropped at a point would be placed: on the rank of the row there, before the first op with its
    // middle to the right.
    struct DropPlace {
        int panel = 0;
        int rank = 0;
        int position = 0; // in the rank's list
    };

    explicit EditOverlay(QObject* parent) : QObject(parent), Overlay(OverlayLayer::Edited) {}
    void setMoves(bool on); // ops can be dragged and nudged
    bool moves() const { return m_moves; }
    void setFaults(std::vector<SpanId> spans) { mark(m_faults, std::move(spans)); } // of panel 0
    const std::vector<SpanId>& faults() const { return m_faults; }
    void setChosen(std::vector<SpanId> spans)
    {
        mark(m_chosen, std::move(spans));
    } // of panel 0; outlined if more than one
    const std::vector<SpanId>& chosen() const { return m_chosen; }
    void setGap(const std::optional<GapMark>& gap) { mark(m_gap, gap); }
    // Outlines of its slices where the picture shown (preview or panel 0) has none alike; null: none.
    void setGhost(std::shared_ptr<const TimelinePanel> ghost) { mark(m_ghost, std::move(ghost)); }
    std::shared_ptr<const TimelinePanel> ghost() const { return m_ghost; }
    void setDrag(const std::optional<DragFeedback>& drag);
    void clear();
    std::optional<DropPlace> dropPlace(QPointF at) const; // nullopt: no rank's row is there

    void paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const override;
    std::optional<OverlayHit> hit(const OverlayPress& press) override;
    bool key(ViewAction action, bool asked) override;

signals:
    // Positions index the rank's compute spans of the step, as Schedule::order does. `to` counts without the dragged op
    // where toRank is its own rank (place in the list without it), else with all ops of toRank.
    void opDragged(stagewright::SpanRef ref, int rank, int from, int toRank, int to);
    void opDropped(stagewright::SpanRef ref, int rank, int from, int toRank, int to);
    void opDragCancelled();
    void opToggled(stagewright::SpanRef ref);                                // Ctrl+click; the selection stays
    void opNudged(stagewright::SpanRef ref, int rank, int position, int by); // Ctrl+Left/Right: −1, +1

private:
    template <typename Mark>
    void mark(Mark& what, Mark as)
    {
        what = std::move(as);
        update();
    }
    struct Held { // the op under the pointer
        SpanRef span;
        int rank = -1, position = -1;
        int toRank = -1, to = -1;
    };
    void drag(QPointF at);
    void drop(bool dragged);
    int positionAt(const TimelinePanel& panel, int rank, QPointF at, SpanId dragged) const; // noSpan: none of them

    bool m_moves = false;
    Held m_held;
    std::vector<SpanId> m_faults;
    std::vector<SpanId> m_chosen;
    std::optional<GapMark> m_gap;
    std::shared_ptr<const TimelinePanel> m_ghost;
    std::optional<DragFeedback> m_drag;
};

} // namespace stagewright
