// RooflinePlot: what each kind of op reaches at its operations per byte, under the device's two ceilings, both axes
// logarithmic (Williams et al. 2009, CACM 52(4)). GUI thread only.
#pragma once

#include <optional>
#include <vector>

#include <QWidget>

#include "traces/analysis/roofline.h"
#include "widgets/explore/plot_frame.h"
#include "widgets/themed_widget.h"

namespace stagewright {

class RooflinePlot : public ThemedWidget {
    Q_OBJECT
public:
    explicit RooflinePlot(QWidget* parent = nullptr);
    void setRows(std::vector<RooflineRow> rows, std::optional<Ceilings> ceilings);
    QPointF placeOf(std::size_t row) const; // in the widget
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const;
    QSize sizeHint() const override { return {420, 260}; }
    QSize minimumSizeHint() const override { return {240, 140}; }

protected:
    void paintEvent(QPaintEvent*) override;
    bool event(QEvent* event) override; // tooltips

private:
    PlotFrame frameIn(const QRectF& rect) const;
    bool shown(const RooflineRow& row) const { return row.intensity() > 0 && row.achieved() > 0; }
    QString textOf(const RooflineRow& row) const;

    std::vector<RooflineRow> m_rows;
    std::optional<Ceilings> m_ceilings;
};

} // namespace stagewright
