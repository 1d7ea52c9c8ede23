// The waterfall: from A's step time to B's in floating bars, one per class of the critical path (ledger) or one per
// single change (ladder). The bars add up to the difference.
#pragma once

#include <vector>

#include <QString>

#include "schedules/base/plot.h"
#include "traces/compare/compare.h"
#include "widgets/numbers.h"
#include "widgets/table_copy.h"

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

// A row for each bar; its items are the rows.
Plot waterfallPlot(const std::vector<WaterfallBar>& bars, const Units& units);
TableText waterfallTable(const std::vector<WaterfallBar>& bars, const Units& units);
int waterfallHeight(const std::vector<WaterfallBar>& bars); // pixels

} // namespace stagewright
