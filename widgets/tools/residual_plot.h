// ResidualPlot: a mark per op of a step: x is its predicted time, y the time beyond that. Colour and shape show the
// kind. A click selects the nearest op; Left and Right go from the largest error to the smallest.
#pragma once

#include <memory>

#include <QPixmap>
#include <QWidget>

#include "widgets/numbers.h"
#include "widgets/theme.h"
#include "widgets/tools/residual_picture.h"

namespace stagewright {

class ResidualPlot : public QWidget {
    Q_OBJECT
public:
    explicit ResidualPlot(QWidget* parent = nullptr);
    void setPicture(std::shared_ptr<const ResidualPicture> picture, std::shared_ptr<const Timeline> timeline,
                    const Units& units);
    void setSelected(SpanId span);
    void setTheme(const Theme& theme);
    QPointF placeOf(std::size_t dot) const;
    QSize sizeHint() const override { return {284, 210}; }
    QSize minimumSizeHint() const override { return {200, 160}; }

signals:
    void opChosen(stagewright::SpanId span);

protected:
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override; // tooltips

private:
    QRectF plot() const;
    void setRanges();
    std::size_t dotAt(QPointF point) const; // the number of dots if none is near
    std::size_t selectedDot() const;
    void paintAxes(QPainter& painter) const;
    void paintDots(QPainter& painter) const;

    std::shared_ptr<const ResidualPicture> m_picture;
    std::shared_ptr<const Timeline> m_timeline;
    Units m_units;
    SpanId m_selected = noSpan;
    double m_least = 0, m_most = 1;   // predicted
    double m_below = -1, m_above = 1; // residual
    QPixmap m_drawn;                  // axes and marks; null: to be repainted
    const Theme* m_theme = &Theme::light();
};

} // namespace stagewright
