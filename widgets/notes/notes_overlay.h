// NotesOverlay: users' notes as flags with text on a timeline, also in exported pictures. Times are axis time.
#pragma once

#include <optional>
#include <vector>

#include <QObject>

#include "widgets/timeline/overlay.h"

namespace stagewright {

struct NoteFlag {
    int number = 0; // the owner's
    int panel = 0;
    SpanId span = noSpan; // of a note on an op; otherwise the range applies
    TimeRange range;
    int firstRank = -1; // −1: all
    int lastRank = -1;
    QString text;         // its first line is painted
    bool passing = false; // not saved yet: dashed
    bool carried = false; // from another run of the schedule: outlined
    bool chosen = false;
};

class NotesOverlay : public QObject, public Overlay {
    Q_OBJECT
public:
    explicit NotesOverlay(QObject* parent) : QObject(parent), Overlay(OverlayLayer::Noted) {}
    void set(std::vector<NoteFlag> flags);
    const std::vector<NoteFlag>& flags() const { return m_flags; }
    const NoteFlag* flagAt(QPointF point) const; // the topmost with its flag there; null: none

    void paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const override;
    std::optional<OverlayHit> hit(const OverlayPress& press) override;
    CardText describe(QPointF at) const override; // the whole text

signals:
    void clicked(int number);

private:
    std::vector<NoteFlag> m_flags;
};

} // namespace stagewright
