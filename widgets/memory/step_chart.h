// Step charts of memory in use: data, nice axis steps, and painting with any QPainter.
#pragma once

#include <optional>
#include <vector>

#include <QPainter>
#include <QString>

#include "traces/analysis/memory.h"
#include "widgets/numbers.h"
#include "widgets/theme.h"
#include "widgets/timeline/geometry.h"

namespace stagewright {

struct MemoryCurve {
    std::vector<MemoryPoint> points; // axis time
    Nanos end = 0;                   // where the curve stops
    Bytes peak = 0;
    Nanos peakTime = 0;

    Bytes at(Nanos time) const; // 0 before the first point
};
MemoryCurve curveOf(const MemorySeries& series, Nanos origin, Nanos duration);

struct MemoryRow {
    QString title;    // "Rank 0"
    QString subtitle; // "peak 6.5 GiB"
    MemoryCurve curve;
    std::optional<MemoryCurve> ghost;
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
    Bytes top = 1; // value at the upper end of every chart; one scale for all ranks
    std::optional<Bytes> budget;
    std::optional<Nanos> hoverTime;
    const std::vector<MemoryRow>* rows = nullptr;

    QRectF plot(int row) const; // scrolled
    double y(int row, Bytes bytes) const;
};

// The y grid: 1-2-5 steps (of a binary unit for bytes), at least minSpacing px apart, from 0 to at most `top`.
std::vector<Bytes> memoryTicks(Bytes top, double height, double minSpacing, const Units& units);

void paintMemory(QPainter& painter, const MemoryScene& scene, const Theme& theme);

} // namespace stagewright
