// MetricDelta as the panels print it: one unit for both values, the change with its sign, and whether it is better or
// worse.
#pragma once

#include <QString>

#include "traces/compare/compare.h"
#include "widgets/numbers.h"

namespace stagewright {

struct MetricText {
    QString title; // with the unit: "Time, ms"
    QString whole; // not shortened
    QString a, b;
    QString change;                 // "−16.7 %", "+1.2 pt", "+3.4"
    const char* role = "secondary"; // "better", "worse"
};
// shows: the change exceeds the noise; otherwise it has no colour.
// most: the largest value of its row, which selects the unit if there are more than two runs.
MetricText metricText(const MetricDelta& metric, const Units& units, bool shows = true, double most = 0);

// Whether less of a metric is better; the panels colour by it. Keys as MetricDelta::key.
bool lessIsBetter(const std::string& key);

} // namespace stagewright
