// LaneRaster: from a lane's slices to device pixels. Wide slices are left to the painter; narrow ones become
// whole-pixel spans where they are sparse and exact column sums where they are dense. The rules of honesty are here:
//   ink is proportional to time; a bubble of two pixels or more owns an idle column; an isolated op is never thinner
//   than a pixel, and if widening it covers idle time it is drawn at two thirds of the height.
#pragma once

#include <vector>

#include <QImage>
#include <QRect>

#include "widgets/timeline/geometry.h"
#include "widgets/timeline/lane.h"

namespace stagewright {

enum class Detail {
    Draft,
    Exact,
}; // a draft may read the pyramid where slices are crowded; its columns are off by a rounding

struct PixelSpan { // columns [x0, x1)
    int x0 = 0;
    int x1 = 0;
    std::size_t ink = 0;
    bool low = false; // two thirds of the height
};

struct PixelGap { // idle time wide enough for a duration label; device pixels, may reach outside the plot
    double x0 = 0;
    double x1 = 0;
    Nanos duration = 0;
};

// Time by ink, in ns; exact.
using InkSums = std::array<Nanos, inkCount>;

struct LaneColumns {
    std::vector<std::size_t> wide; // slices at least wideMin wide
    std::vector<PixelSpan> spans;
    std::vector<PixelGap> gaps;
    std::vector<InkSums> sums;                // per column, ns; empty if nothing is crowded
    std::vector<std::array<float, 4>> shares; // of a draft, instead of sums: Forward, Backward, Weight, others; 0 … 1
    std::vector<std::uint8_t> masks;          // of a draft: which paints occur in the column
    double nanosPerColumn = 1;
    std::size_t read = 0;    // slices and buckets that were read
    bool aggregated = false; // crowded columns occur
    bool empty() const { return spans.empty() && sums.empty() && shares.empty(); }
    void clear();
};

struct RasterOptions {
    double wideMin = 5; // device px
    double gapMin = 58; // device px; smaller gaps are not listed
    Nanos lead = 0;     // idle time counts from here …
    Nanos tail = 0;     // … to here (the panel's extent)
    Detail detail = Detail::Exact;
    bool fine = true;      // drafts read buckets of at most a quarter column (else of at most one)
    bool sumsOnly = false; // every slice goes into the sums
};

// `device` maps the range to [0, columns). O(visible slices), a draft O(columns).
void rasterLane(const LaneData& lane, const Axis& device, const RasterOptions& options, LaneColumns& out);

// Shares of a column by ink, from exact sums, or by family from a draft; c < the larger of sums and shares.
std::array<double, inkCount> columnShares(const LaneColumns& columns, std::size_t c);

// Paints columns and spans into rows [y0, y0 + height) of an image, columns from area.left(), clipped to the area; idle
// pixels are not painted. Rows of at least stackMin pixels stack kinds in fixed order, idle on top; thinner ones show a
// ramp of utilisation from `idle` to the prevailing kind. Kinds too rare for a pixel get a tick over the row (y0 − 3,
// y0 − 2).
void paintColumns(QImage& image, const QRect& area, int y0, int height, int stackMin, const LaneColumns& columns,
                  const Inks& inks, QRgb idle);

} // namespace stagewright
