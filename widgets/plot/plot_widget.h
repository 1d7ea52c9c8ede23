// PlotWidget: a plot (schedules/base/plot.h) on screen. The mouse points at its items and the arrow keys, Home and End move
// over them; a click chooses, a double click or Enter opens. What is chosen is the accessible description. GUI thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <QPixmap>
#include <QWidget>

#include "traces/plot/drawing.h"
#include "widgets/themed_widget.h"

namespace stagewright {

class PlotWidget : public ThemedWidget {
    Q_OBJECT
public:
    // The names are those that tests and screen readers use.
    PlotWidget(const QString& objectName, const QString& accessibleName, QWidget* parent = nullptr);

    void setPlot(Plot plot); // keeps what is chosen, by its number, if it is still there
    const Plot& plot() const { return *m_plot; }
    // Texts of items made when they are read, for plots of very many; else those in the plot.
    void setTexts(std::function<QString(int item)> texts) { m_texts = std::move(texts); }
    void setUsualSize(QSize size) { m_usualSize = size; }
    void setOnPanel() { m_onPanel = true; } // its ground is the panel's, not the canvas

    int items() const { return drawing().items(); }
    int chosen() const { return m_chosen; } // −1: none
    void setChosen(int item);               // by the program: no signal
    void choose(int item);                  // as a click does; outside: the nearest
    int idOf(int item) const { return drawing().item(item).id; }
    int itemOf(int id) const; // −1: none
    QString textOf(int item) const;
    QRectF itemRect(int item) const;
    std::vector<QRectF> labels() const; // names of points, as painted
    QSize sizeHint() const override { return m_usualSize; }
    QSize minimumSizeHint() const override { return {200, 140}; }

signals:
    void itemChosen(int item);
    void itemActivated(int item);
    void itemHovered(int item); // −1: none

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override;
    void changeEvent(QEvent* event) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseDoubleClickEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void leaveEvent(QEvent*) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override; // tooltips, and keys that are shortcuts outside

private:
    const PlotDrawing& drawing() const; // laid out for the widget's size
    void forget();                      // what was laid out and painted
    void hover(int item);
    int neighbour(int key) const; // −1: none in that direction
    void describe();
    void sayPoint(QPainter& painter) const;

    std::unique_ptr<const Plot> m_plot; // the drawing refers to it
    std::function<QString(int)> m_texts;
    mutable std::optional<PlotDrawing> m_drawing;
    QPixmap m_painted; // null: to be painted again
    const Theme* m_paintedIn = nullptr;
    QSize m_usualSize{640, 300};
    bool m_onPanel = false;
    int m_chosen = -1;
    int m_hovered = -1;
};

} // namespace stagewright
