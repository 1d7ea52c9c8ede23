// Overlay: what a feature draws over the lanes of a TimelineView, and what the pointer and the keys mean there. The
// view knows its overlays by this interface only. Its owner adds it (TimelineView::add); either may be destroyed first.
// GUI thread only.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <QPointF>

#include "widgets/hover_card.h"
#include "widgets/timeline/key_map.h"
#include "widgets/timeline/timeline_painter.h"

namespace stagewright {

class TimelineView;

// In the order in which they are painted; the last is asked first what the pointer or a key means.
enum class OverlayLayer {
    Rows, // in the gutter; all others are cut to the plot
    Compared,
    Explained,
    Selected,
    Found,
    Noted,
    Edited, // from here on on screen only: not in exported pictures
    Played,
};

struct OverlayPress {
    QPointF at; // in the view
    Qt::MouseButton button = Qt::NoButton;
    Qt::KeyboardModifiers modifiers;
    bool hovers() const { return button == Qt::NoButton; } // only the cursor is wanted
};

// What the pointer meets in an overlay, and what then happens. Several overlays may answer: a click is the first one's
// that has one, as is a drag, but one that drags at once goes before.
struct OverlayHit {
    Qt::CursorShape cursor = Qt::ArrowCursor; // while it hovers
    Qt::CursorShape held = Qt::ArrowCursor;   // while it drags
    bool atOnce = false;                      // drags from the first pixel; otherwise from dragThreshold on
    bool tellsTime = true;                    // the line and the card follow the pointer while it drags
    std::function<void()> click;              // released without a drag
    std::function<void()> press;
    std::function<void(QPointF)> drag;
    std::function<void(bool dragged)> drop; // also after a click
    std::function<void()> cancel;           // in place of drop: Esc, or another run is shown
};

class Overlay {
public:
    explicit Overlay(OverlayLayer layer) : m_layer(layer) {}
    Overlay(const Overlay&) = delete;
    Overlay& operator=(const Overlay&) = delete;
    virtual ~Overlay();

    // Over the finished lanes. The scene is the one drawn: a preview may be in place of the first panel.
    virtual void paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const = 0;
    virtual std::optional<OverlayHit> hit(const OverlayPress&) { return std::nullopt; }
    // Whether it is a key of this overlay now; unless it is only asked, it has been obeyed.
    virtual bool key(ViewAction, bool /*asked*/) { return false; }
    // The card beside the pointer; empty: there is nothing of this overlay.
    virtual CardText describe(QPointF) const { return {}; }

    OverlayLayer layer() const { return m_layer; }

protected:
    TimelineView* view() const { return m_view; } // null until it is added, and once the view is gone
    ViewState& state() const;                     // and scene(): the view's
    const TimelineScene& scene() const;
    void update() const;

private:
    friend class TimelineView;

    OverlayLayer m_layer;
    TimelineView* m_view = nullptr;
};

// What an exported picture shows over the lanes.
struct PaintedMarks {
    bool hover = false;
    bool selection = true; // op, areas, arrows
    bool notes = true;     // what an explanation marks
};

// From the lowest to the highest, over finished lanes; `exported`: into a picture with these marks.
void paintOverlays(QPainter& painter, const TimelineScene& scene, const Theme& theme,
                   const std::vector<Overlay*>& overlays, const std::optional<PaintedMarks>& exported = std::nullopt);

} // namespace stagewright
