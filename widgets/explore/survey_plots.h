// LinePlot and HeatMap: pictures of a survey. The arrow keys move a cursor over the points or cells; Enter or a double
// click opens the point. GUI thread only.
#pragma once

#include <memory>

#include <QWidget>

#include "schedules/survey/heat.h"
#include "schedules/survey/line.h"
#include "widgets/explore/plot_frame.h"
#include "widgets/themed_widget.h"

namespace stagewright {

class LinePlot : public ThemedWidget {
    Q_OBJECT
public:
    explicit LinePlot(QWidget* parent = nullptr);
    void setPicture(std::shared_ptr<const LinesPicture> picture, ExploreMeasure measure); // null: nothing chosen
    QPointF placeOf(std::size_t schedule, std::size_t value) const;
    std::size_t cursorValue() const { return m_value; }
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const;
    QSize sizeHint() const override { return {640, 300}; }
    QSize minimumSizeHint() const override { return {260, 160}; }

signals:
    void pointActivated(const stagewright::Setup& point);

protected:
    void paintEvent(QPaintEvent*) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    PlotFrame frameIn(const QRectF& rect) const;
    void activate();
    std::shared_ptr<const LinesPicture> m_picture;
    ExploreMeasure m_measure = ExploreMeasure::StepTime;
    std::size_t m_value = 0; // cursor
    std::size_t m_schedule = 0;
    bool m_hasCursor = false;
};

enum class HeatShows {
    Winner,
    Value,
};

class HeatMap : public ThemedWidget {
    Q_OBJECT
public:
    explicit HeatMap(QWidget* parent = nullptr);
    // null: nothing chosen
    void setPicture(std::shared_ptr<const HeatPicture> picture, ExploreMeasure measure, HeatShows shows);
    QRectF cellRect(std::size_t cell) const;
    int cursor() const { return m_cursor; }
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const;
    QSize sizeHint() const override { return {640, 300}; }
    QSize minimumSizeHint() const override { return {260, 160}; }

signals:
    void cellActivated(const stagewright::ExploreQuestion& question);

protected:
    void paintEvent(QPaintEvent*) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    QRectF areaIn(const QRectF& rect) const;
    QRectF cellIn(const QRectF& rect, std::size_t cell) const;
    int cellAt(QPointF point) const;
    std::vector<int> winners() const; // schedules that win somewhere, by how often
    QString tipOf(std::size_t cell) const;
    std::shared_ptr<const HeatPicture> m_picture;
    ExploreMeasure m_measure = ExploreMeasure::Bubble;
    HeatShows m_shows = HeatShows::Winner;
    int m_cursor = -1;
};

} // namespace stagewright
