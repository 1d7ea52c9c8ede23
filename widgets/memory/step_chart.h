// Charts over the timeline's axis: step curves of memory in use, stacked by category, and lines of counters. Data, nice axis steps,
// and painting with any QPainter. The cost of a picture grows with its pixels, not with the events.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QPainter>
#include <QString>

#include "traces/analysis/memory.h"
#include "widgets/memory/extremes.h"
#include "widgets/memory/holdings.h"
#include "widgets/numbers.h"
#include "widgets/theme.h"
#include "widgets/timeline/geometry.h"

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

// Of a stack, from the axis up: `curve` holds this category and all below it.
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

struct MemoryRow {
    int rankIndex = -1;                   // −1: a counter of the run
    QString title;                        // "Rank 0"
    std::vector<MemoryLayer> layers;      // of the categories shown and present; empty: no memory
    std::optional<MemoryCurve> ghost;     // of the run before in compare mode
    std::optional<MemoryCurve> predicted; // of the schedule simulated with the run's costs
    std::shared_ptr<const Holdings> holdings;
    std::optional<CounterCurve> counter;

    const MemoryCurve& total() const;                     // an empty curve if there are no layers
    const MemoryCurve* of(MemoryCategory category) const; // null if it is not the lowest layer
    Bytes top() const;                                    // largest of its curves
};

// A placed row: a group of ranks shows the one with the largest peak.
struct MemoryPlace {
    const MemoryRow* row = nullptr;
    QString title;
    QString subtitle; // "peak 6.5 GiB"
    QString figure;   // of it: "6.5 GiB"; empty: it has none
    QString note;     // below it: for a group, the charted rank
    Bytes top = 1;    // value at the upper end
};

struct MemoryScene {
    Axis axis;
    QSizeF size;
    double headerHeight = 28;
    double rowHeight = 104;
    double scroll = 0;
    QString title;
    QString subtitle;
    Units units;
    std::optional<Bytes> budget;    // of activations
    std::vector<Bytes> rankBudgets; // by rank's index, instead of it; empty: none
    std::optional<Bytes> budgetOf(int rankIndex) const;
    std::optional<Nanos> hoverTime;
    std::optional<TimeRange> range; // selected: the rest is veiled
    int microbatch = -1;            // hovered: marked where it holds memory
    int step = -1;                  // of it, −1: any
    Nanos origin = 0;               // timeline time at axis time 0
    std::vector<MemoryPlace> rows;

    QRectF plot(int row) const; // scrolled
    double y(int row, Bytes bytes) const;
    double yOf(int row, double value) const; // of a counter
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

void paintMemory(QPainter& painter, const MemoryScene& scene, const Theme& theme);

} // namespace stagewright
