// EditOverlay: what edit mode draws over a TimelineView: both ops of a fault, the selected ops, the selected gap, and
// the ghost of another order as faint outlines where it differs. Takes no input.
#pragma once

#include <optional>
#include <vector>

#include <QWidget>

#include "widgets/themed_widget.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

class EditOverlay : public ThemedWidget {
    Q_OBJECT
public:
    struct GapMark { // idle time of a rank, axis time
        int rank = 0;
        Nanos begin = 0;
        Nanos end = 0;
    };

    EditOverlay(TimelineView* view, ViewState* state);
    void setFaults(std::vector<SpanId> spans); // of panel 0
    const std::vector<SpanId>& faults() const { return m_faults; }
    void setChosen(std::vector<SpanId> spans); // of panel 0; outlined if more than one
    const std::vector<SpanId>& chosen() const { return m_chosen; }
    void setGap(const std::optional<GapMark>& gap);
    const std::optional<GapMark>& gap() const { return m_gap; }
    // Outlines of its slices where the picture shown (preview or panel 0) has none alike; null: none.
    void setGhost(std::shared_ptr<const TimelinePanel> ghost);
    std::shared_ptr<const TimelinePanel> ghost() const { return m_ghost; }
    void clear();

protected:
    void paintEvent(QPaintEvent*) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void refresh();
    void paintGhost(QPainter& painter) const;

    TimelineView* m_view;
    std::vector<SpanId> m_faults;
    std::vector<SpanId> m_chosen;
    std::optional<GapMark> m_gap;
    std::shared_ptr<const TimelinePanel> m_ghost;
};

} // namespace stagewright
