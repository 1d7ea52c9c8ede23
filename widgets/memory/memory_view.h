// MemoryView: one step chart a rank on the time axis of the TimelineView above it. Never smoothed; the peak is always
// drawn. In compare mode the last panel is solid, the one before it a dashed ghost. GUI thread only.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QPointer>
#include <QWidget>

#include "widgets/hover_card.h"
#include "widgets/key_map.h"
#include "widgets/memory/step_chart.h"
#include "widgets/theme.h"
#include "widgets/timeline/timeline_panel.h"
#include "widgets/view_state.h"

namespace stagewright {

class MemoryView : public QWidget {
    Q_OBJECT

public:
    explicit MemoryView(ViewState* state, QWidget* parent = nullptr); // state must outlive the view
    ~MemoryView() override;

    void setPanels(std::vector<std::shared_ptr<const TimelinePanel>> panels);
    void setCategory(MemoryCategory category); // default Activations
    MemoryCategory category() const { return m_category; }
    void setBudget(std::optional<Bytes> bytes); // of every rank; a dashed line
    void setTheme(const Theme& theme);
    void setKeyMap(KeyMapName name) { m_keyMap = name; }
    void setRowHeight(double pixels); // of one chart; 0: as high as the view allows, 64 to 120

    Axis axis() const;
    CardText cardAt(int rankIndex, Nanos axisTime) const; // in use, peak, who holds it (stage, microbatches)
    // The chart's plot rectangle in widget coordinates, for the rank's index; empty where there is none.
    QRectF plotRect(int rankIndex) const;
    double yOf(int rankIndex, Bytes bytes) const;

    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme, bool withHover = false) const;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {420, 100}; }

protected:
    void paintEvent(QPaintEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent* event) override;
    void wheelEvent(QWheelEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override; // zoom, pan, fit, history

private:
    MemoryScene scene(const QSizeF& size) const;
    void refill();

    ViewState* m_state;
    std::vector<std::shared_ptr<const TimelinePanel>> m_panels;
    std::vector<MemoryRow> m_rows;
    MemoryCategory m_category = MemoryCategory::Activations;
    std::optional<Bytes> m_budget;
    const Theme* m_theme = &Theme::light();
    KeyMapName m_keyMap = KeyMapName::Perfetto;
    double m_rowHeight = 0;
    double m_scroll = 0;
    QPointer<HoverCard> m_card;
};

} // namespace stagewright
