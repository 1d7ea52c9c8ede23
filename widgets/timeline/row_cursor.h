// RowCursor: the row that row keys act on, marked in the gutter of a TimelineView while it has the focus. A click in
// the gutter sets it, and opens or folds a group.
#pragma once

#include <QObject>

#include "widgets/timeline/overlay.h"

namespace stagewright {

class RowCursor : public QObject, public Overlay {
    Q_OBJECT
public:
    explicit RowCursor(QObject* parent) : QObject(parent), Overlay(OverlayLayer::Rows) {}
    int row() const;   // −1: none
    void set(int row); // shown and scrolled to
    void move(int by);
    // The target of row keys: the ranks of the selected areas, else of this row, else of the selected op. Ascending.
    std::vector<int> chosenRanks() const;

    void paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const override;
    std::optional<OverlayHit> hit(const OverlayPress& press) override;
    bool key(ViewAction action, bool asked) override;

signals:
    void moved();

private:
    // position of its first rank, and whether it is a group
    std::optional<std::pair<int, bool>> m_at;
};

// "Rank 3, pinned", "Ranks 0 to 31, folded": for screen readers and menus.
QString rowText(const TimelineScene& scene, int row);
void toggleGroup(ViewState& state, const TimelineScene& scene, int row); // of the row, or of its rank

} // namespace stagewright
