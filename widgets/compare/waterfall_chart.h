// WaterfallChart: from A's step time to B's in floating bars, one per class of the critical path (ledger) or one per
// single change (ladder). The bars add up to the difference. GUI thread only.
#pragma once

#include <vector>

#include <QWidget>

#include "traces/compare/compare.h"
#include "widgets/numbers.h"
#include "widgets/table_copy.h"
#include "widgets/theme.h"
#include "widgets/themed_widget.h"

namespace stagewright {

struct WaterfallBar {
    QString title;
    QString tooltip;
    Nanos from = 0;     // running total before
    Nanos to = 0;       // and after
    bool total = false; // A or B itself: a bar from 0
};
// largest change first
std::vector<WaterfallBar> ledgerBars(const Comparison& comparison, const QString& a, const QString& b);
// in the order of the rungs
std::vector<WaterfallBar> ladderBars(const Comparison& comparison, const QString& b);

class WaterfallChart : public ThemedWidget {
    Q_OBJECT
public:
    explicit WaterfallChart(QWidget* parent = nullptr);
    void setBars(std::vector<WaterfallBar> bars, const Units& units);
    const std::vector<WaterfallBar>& bars() const { return m_bars; }
    TableText table() const;
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent*) override;
    bool event(QEvent* event) override; // tooltips

private:
    std::vector<WaterfallBar> m_bars;
    Units m_units;
};

} // namespace stagewright
