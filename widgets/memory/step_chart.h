// Charts over the timeline's axis: step curves of memory in use, stacked by category, and lines of counters, painted
// with any QPainter. The cost of a picture grows with its pixels, not with the events.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QPainter>
#include <QString>

#include "widgets/memory/holdings.h"
#include "widgets/memory/memory_curve.h"
#include "widgets/numbers.h"
#include "widgets/theme.h"
#include "widgets/timeline/geometry.h"

namespace stagewright {

struct MemoryRow {
    int rankIndex = -1;                   // −1: a counter of the run
    QString title;                        // "Rank 0"
    std::vector<MemoryLayer> layers;      // of the categories shown and present; empty: no memory
    std::optional<MemoryCurve> ghost;     // of the run before in compare mode
    std::optional<MemoryCurve> predicted; // of the schedule simulated with the run's costs
    std::shared_ptr<const Holdings> holdings;
    std::optional<CounterCurve> counter;

    const MemoryCurve& total() const;       // an empty curve if there are no layers
    const MemoryCurve* activations() const; // null if they are not the lowest layer
    Bytes top() const;                      // largest of its curves
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

// That has room for the whole subtitle, in as many lines as it takes.
double headingHeight(const MemoryScene& scene);
void paintMemory(QPainter& painter, const MemoryScene& scene, const Theme& theme);

} // namespace stagewright
