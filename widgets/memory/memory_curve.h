// Data of the memory charts: curves of memory in use and of counters, and the steps of their axes.
#pragma once

#include <QColor>
#include <QString>
#include <optional>
#include <vector>

#include "traces/analysis/memory.h"
#include "widgets/memory/extremes.h"
#include "widgets/numbers.h"
#include "widgets/theme.h"
#include "widgets/timeline/view_state.h"

namespace stagewright {

struct MemoryCurve {
    std::vector<MemoryPoint> points; // axis time
    ExtremeIndex index;              // of the points' values
    Nanos end = 0;                   // where the curve stops
    Bytes peak = 0;
    Nanos peakTime = 0;

    Bytes at(Nanos time) const;                               // 0 before the first point
    Extremes over(std::size_t first, std::size_t last) const; // of points [first, last)
    Bytes peakIn(const TimeRange& range) const;               // including what is held at its start
    std::optional<Nanos> firstOver(Bytes limit) const;        // when it is first exceeded
    std::size_t after(Nanos time) const;                      // first point later than time
    void seal();                                              // after the points: index and peak
};
MemoryCurve curveOf(const MemorySeries& series, Nanos origin, Nanos duration);

// A layer of a stack, from the axis up: `curve` holds this category and all below it.
struct MemoryLayer {
    MemoryCategory category = MemoryCategory::Activations;
    MemoryCurve curve;
};
// Activations lowest, so that an activation budget can be read off; then by how long memory is held.
const std::vector<MemoryCategory>& stackOrder();
QString titleOf(MemoryCategory category); // "Activations"
QColor colourOf(MemoryCategory category, const Theme& theme);

// Samples joined by lines. NaN samples are skipped.
struct CounterCurve {
    std::vector<CounterSample> samples; // axis time
    ExtremeIndex index;
    double least = 0, most = 0; // of its scale
    QString unit;
    std::optional<double> at(Nanos time) const; // the last sample not later; none before the first
};

// The y grid: 1-2-5 steps (of a binary unit for bytes), at least minSpacing px apart, from 0 to at most `top`.
std::vector<Bytes> memoryTicks(Bytes top, double height, double minSpacing, const Units& units);
// Round values from least to most, at least minSpacing px apart.
std::vector<double> counterTicks(double least, double most, double height, double minSpacing);
QString counterText(double value, const QString& unit); // "0.83 GB/s"
// The unit for values up to `most`: its size in the counter's own unit, and its name ("GB/s").
struct CounterUnit {
    double factor = 1;
    QString name;
};
CounterUnit counterUnit(double most, const QString& unit);

} // namespace stagewright
