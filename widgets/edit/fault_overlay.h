// FaultOverlay: outlines ops over a TimelineView, both ops of a fault. Takes no input.
#pragma once

#include <vector>

#include <QWidget>

#include "widgets/timeline/timeline_view.h"

namespace stagewright {

class FaultOverlay : public QWidget {
    Q_OBJECT
public:
    FaultOverlay(TimelineView* view, ViewState* state);
    void setFaults(std::vector<SpanId> spans); // of panel 0
    const std::vector<SpanId>& faults() const { return m_faults; }
    void setTheme(const Theme& theme);

protected:
    void paintEvent(QPaintEvent*) override;
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    TimelineView* m_view;
    std::vector<SpanId> m_faults;
    const Theme* m_theme = &Theme::light();
};

} // namespace stagewright
