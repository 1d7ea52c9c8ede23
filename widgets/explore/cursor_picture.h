// CursorPicture: a picture with a cursor over its marks (bars, columns). Left and Right, Home and End move it, a click
// sets it; a mark's sentence is its tooltip and the widget's accessible description, and the values are copied as a
// table. GUI thread only.
#pragma once

#include <QWidget>

#include "widgets/table_copy.h"
#include "widgets/theme.h"
#include "widgets/themed_widget.h"

namespace stagewright {

class CursorPicture : public ThemedWidget {
    Q_OBJECT
public:
    explicit CursorPicture(QWidget* parent);
    int cursor() const { return m_cursor; }
    void choose(int mark); // outside: the nearest
    QRectF markRect(int mark) const { return markIn(rect(), mark); }

    virtual int marks() const = 0; // 0: nothing to show
    virtual QString textOf(int mark) const = 0;
    virtual TableText table() const = 0;
    virtual void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const = 0;
    QSize sizeHint() const override { return {760, 520}; }
    QSize minimumSizeHint() const override { return {420, 220}; }

signals:
    void chosen();

protected:
    virtual QRectF markIn(const QRectF& rect, int mark) const = 0; // in the picture drawn into `rect`
    void changed();                                                // marks or their values
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    int markAt(QPointF point) const; // −1: none
    int m_cursor = 0;
};

} // namespace stagewright
