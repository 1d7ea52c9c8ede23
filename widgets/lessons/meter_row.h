// MeterRow: one comparison of a goal: a tick or a ring, what it is about, both numbers and the distance. The subject
// wraps beside the numbers, which are at the right edge. GUI thread only.
#pragma once

#include <algorithm>
#include <vector>

#include <QWidget>

#include "widgets/lessons/page_reading.h"
#include "widgets/theme.h"

namespace stagewright {

class MeterRow : public QWidget {
public:
    MeterRow(const MeterReading& reading, const Theme& theme, QWidget* parent); // the theme must outlive it

    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;
    QSize sizeHint() const override { return {200, heightForWidth(std::max(200, width()))}; }
    QSize minimumSizeHint() const override { return {80, 24}; }

protected:
    void paintEvent(QPaintEvent*) override;

private:
    QString numbers() const;
    int numbersWide() const;
    bool stacked(int width) const; // numbers that leave the subject no room go below it
    int beside(int width) const;
    int below(int width) const;
    int words(int width) const; // their height
    QString sign() const;

    MeterReading m_reading;
    const Theme& m_theme;
};

// All that a column of meters shows: equal keys, equal pictures.
QString keyOf(const std::vector<MeterReading>& meters);

} // namespace stagewright
