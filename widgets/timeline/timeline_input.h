// TimelineInput: mouse and keys of a TimelineView. It moves the axis and the rows itself; all else it hands to the
// overlays.
#pragma once

#include <optional>
#include <vector>

#include <QObject>
#include <QPointer>

#include "widgets/timeline/overlay.h"

class QContextMenuEvent;
class QKeyEvent;
class QMouseEvent;
class QWheelEvent;

namespace stagewright {

class TimelineInput : public QObject {
    Q_OBJECT
public:
    explicit TimelineInput(TimelineView* view); // its child
    ~TimelineInput() override;
    void setKeyMap(KeyMapName name) { m_keyMap = name; }
    KeyMapName keyMap() const { return m_keyMap; }
    bool dragging() const { return m_drag.kind != Drag::None; } // or about to
    void cancelDrag();
    void hideCard();
    void pictureMoved(); // under a pointer that rests: what it was over is elsewhere now

signals:
    void rowsScrolled();                          // other rows of the view are in sight
    void pressed(QPointF at);                     // before anything else happens
    void spanActivated(stagewright::SpanRef ref); // double click or Enter
    void contextMenuAsked(const QPoint& globalPosition, stagewright::SpanRef ref);
    void gapMenuAsked(const QPoint& globalPosition, int panel, int rank, stagewright::Nanos axisTime); // on idle time
    void rowMenuAsked(const QPoint& globalPosition, int row); // on the gutter; the cursor is there
    void rowScaleAsked(double notches);                       // Ctrl+Shift+wheel: > 0 taller

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    enum class Drag {
        None,
        Pending,
        Pan,
        Zoom,
        Overlay,
    };
    struct DragState {
        Drag kind = Drag::None;
        Qt::MouseButton button = Qt::NoButton;
        Qt::KeyboardModifiers modifiers;
        QPointF from;
        std::optional<OverlayHit> held, clicked;
        TimeRange rangeAtStart;
        double scrollAtStart = 0;
    };

    void press(const QMouseEvent& event);
    void move(QPointF at);
    void release(const QMouseEvent& event);
    void doubleClick(const QMouseEvent& event);
    void wheel(const QWheelEvent& event);
    void menu(const QContextMenuEvent& event);
    bool key(const QKeyEvent& event, bool asked);
    bool obey(ViewAction action);
    void beginDrag();
    void hover(QPointF at);
    void leave();
    void showCursor(QPointF at);
    std::vector<OverlayHit> hits(const OverlayPress& press) const; // of the overlays, in the order in which they go

    TimelineView* m_view;
    KeyMapName m_keyMap = KeyMapName::Perfetto;
    DragState m_drag;
    QPointer<HoverCard> m_card;
    bool m_telling = false; // the wheel moves the view, and says itself what is under the pointer
};

} // namespace stagewright
