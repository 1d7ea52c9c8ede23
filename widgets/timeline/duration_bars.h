// DurationBars: how long the ops of one row of a table took, as bars of equal width over the axis from the shortest
// to the longest, with median and 95th percentile. GUI thread only.
#pragma once

#include <QWidget>

#include "widgets/theme.h"
#include "widgets/themed_widget.h"
#include "widgets/timeline/aggregate_table.h"

namespace stagewright {

class DurationBars : public ThemedWidget {
    Q_OBJECT
public:
    explicit DurationBars(QWidget* parent = nullptr);

    // nullptr: nothing is shown. The line is copied.
    void setLine(const AggregateLine* line, const Units& units);
    const AggregateLine& line() const { return m_line; } // what is shown
    QSize sizeHint() const override { return {300, 140}; }

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override; // a tooltip a bar

private:
    QRectF bars() const;
    QString figures() const;
    QColor colour() const;

    AggregateLine m_line;
    Units m_units;
};

} // namespace stagewright
