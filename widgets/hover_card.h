// HoverCard: the small card beside the pointer that describes what is under it. One per view, a child of the view's
// window, so that it may overlap neighbouring panes. Shown without delay.
#pragma once

#include <utility>
#include <vector>

#include <QColor>
#include <QString>
#include <QWidget>

#include "widgets/theme.h"

namespace stagewright {

struct CardText {
    QString title;
    QColor swatch;                                 // invalid: none
    std::vector<std::pair<QString, QString>> rows; // name left, value right
    QString note;                                  // wrapped under the rows
    bool empty() const { return title.isEmpty() && rows.empty() && note.isEmpty(); }
    QString plain() const; // one fact per line
};

QSizeF cardSize(const CardText& text);
void paintCard(QPainter& painter, const QRectF& rect, const CardText& text, const Theme& theme);
// Where to put a card of this size beside a point, inside the rectangle: right and below if there is room.
QRectF cardPlace(QSizeF size, QPointF pointer, const QRectF& within);

class HoverCard : public QWidget {
    Q_OBJECT

public:
    explicit HoverCard(QWidget* view);
    void showAt(QPoint globalPointer, const CardText& text, const Theme& theme);

protected:
    void paintEvent(QPaintEvent*) override;

private:
    QWidget* m_view;
    CardText m_text;
    const Theme* m_theme = &Theme::light();
};

} // namespace stagewright
