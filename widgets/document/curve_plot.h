// CurvePlot: what of a table is a course (traces/report/table_curves.h) as lines over its first column, with a cursor
// over the rows. Paints with any painter. GUI thread only.
#pragma once

#include "traces/report/table_curves.h"
#include "widgets/explore/cursor_picture.h"
#include "widgets/explore/plot_frame.h"

namespace stagewright {

class CurvePlot : public CursorPicture {
    Q_OBJECT
public:
    CurvePlot(Plot curves, const QString& title, QWidget* parent);

    int marks() const override { return static_cast<int>(m_across.size()); } // the places of any line
    QString textOf(int mark) const override;
    TableText table() const override;
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const override;
    QSize sizeHint() const override { return {560, 230}; }
    QSize minimumSizeHint() const override { return {260, 170}; }

protected:
    QRectF markIn(const QRectF& rect, int mark) const override;

private:
    PlotFrame frameIn(const QRectF& rect) const;
    QString valueText(const PlotSeries& curve, double x) const;

    Plot m_curves;
    QString m_title;
    std::vector<double> m_across; // ascending
};

} // namespace stagewright
