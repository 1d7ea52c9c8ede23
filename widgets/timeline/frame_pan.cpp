// Panning a painted frame: moves its pixels and paints the strips at both ends.
#include "widgets/timeline/frame_pan.h"

#include "widgets/timeline/timeline_painter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace stagewright {

namespace {

// How far content that crosses a moment reaches in a scene, in device columns: a slice's label and a gap's duration are
// in the middle of their visible part, so they change with the edge that cuts them.
class Reach {
public:
    Reach(const TimelineScene& scene, double perColumn) : m_scene(scene), m_perColumn(perColumn) {}

    // Widest extent of everything that crosses the column.
    std::pair<double, double> at(double column) const
    {
        m_low = m_high = column;
        const Nanos time = m_scene.axis.range.begin + static_cast<Nanos>(std::llround(column * m_perColumn));
        for (const int row : m_scene.visibleRows()) {
            const RowPlace& place = m_scene.place(row);
            if (place.kind == RowKind::Group) continue;
            const TimelinePanel& panel = m_scene.panel(place.panel);
            const PanelRank& rank = m_scene.rankOf(place);
            if (place.height >= 8) add(rank.compute, time, place.height >= 18 ? panel.duration : -1);
            if (place.track > 0)
                for (const LaneData& lane : rank.communication) add(lane, time, -1);
            for (int i = 0; i < place.lanes; ++i)
                add(rank.lanes[static_cast<std::size_t>(place.firstLane + i)].data, time, -1);
        }
        return {m_low, m_high};
    }

private:
    void add(Nanos begin, Nanos end) const
    {
        m_low = std::min(m_low, static_cast<double>(begin - m_scene.axis.range.begin) / m_perColumn);
        m_high = std::max(m_high, static_cast<double>(end - m_scene.axis.range.begin) / m_perColumn);
    }
    // tail: where the idle time behind the last slice ends; −1: gaps don't matter.
    void add(const LaneData& lane, Nanos time, Nanos tail) const
    {
        if (lane.size() == 0) return;
        const std::size_t next = lane.firstEndingAfter(time);
        if (next < lane.size() && lane.slices()[next].begin() <= time) {
            const TimeSpan drawn = lane.drawn(next);
            add(drawn.begin, drawn.end);
        } else if (tail >= 0) {
            add(next > 0 ? lane.slices()[next - 1].end() : 0, next < lane.size() ? lane.slices()[next].begin() : tail);
        }
        if (next > 0 && lane.slices()[next - 1].end() == time) add(lane.slices()[next - 1].begin(), time);
    }

    const TimelineScene& m_scene;
    double m_perColumn;
    mutable double m_low = 0, m_high = 0;
};

void paintStrip(TimelineCanvas& canvas, TimelineScene scene, const Theme& theme, int left, int first, int last)
{
    if (last <= first) return;
    scene.columns = {first, last};
    QImage& image = canvas.image;
    const double ratio = image.devicePixelRatio();
    const int top = static_cast<int>(std::lround(rulerHeight * ratio));
    const int from = std::max(0, left + first), to = std::min(image.width(), left + last);
    for (int y = top; y < image.height(); ++y) {
        auto* line = reinterpret_cast<QRgb*>(image.scanLine(y));
        std::fill(line + from, line + std::max(from, to), theme.canvas.rgb());
    }
    QPainter painter(&image);
    paintFrame(painter, scene, theme, canvas.detail, &image);
}

} // namespace

bool panFrame(TimelineCanvas& canvas, const TimelineScene& scene, const Theme& theme, double ratio)
{
    const Axis& before = canvas.axis;
    const Axis& after = scene.axis;
    if (canvas.image.isNull() || scene.panels.size() != 1 || before.degenerate() || after.degenerate() ||
        ratio != std::floor(ratio))
        return false;
    if (before.left != after.left || before.width != after.width || before.range.duration() != after.range.duration())
        return false;
    const auto columns = static_cast<std::int64_t>(std::llround(after.width * ratio));
    if (columns < 1 || std::abs(after.width * ratio - static_cast<double>(columns)) > 1e-9) return false;
    if (after.range.duration() % columns != 0) return false;
    const Nanos perColumn = after.range.duration() / columns;
    const Nanos by = before.range.begin - after.range.begin;
    if (by % perColumn != 0 || std::abs(by / perColumn) >= columns / 2) return false;
    const auto shift = static_cast<int>(by / perColumn); // > 0: the painted pixels move to the right
    if (shift == 0) {
        canvas.axis = after;
        return true;
    }

    QImage& image = canvas.image;
    const int left = static_cast<int>(std::lround(after.left * ratio));
    const int top = static_cast<int>(std::lround(rulerHeight * ratio));
    const int width = image.width() - left;      // of the plot with its margin
    const auto edge = static_cast<int>(columns); // crowded rows end here, wide slices in the margin
    const Reach reach(scene, static_cast<double>(perColumn));
    double low = std::max(0, shift); // columns [0, low) and [high, width) are painted
    double high = std::min(edge, edge + shift);
    for (const int column : {0, shift}) {
        if (column < 0) continue;
        low = std::max(low, reach.at(column).second);
    }
    for (const int column : {edge + shift, edge, width + shift, width}) {
        if (column > width) continue;
        high = std::min(high, reach.at(column).first);
    }
    const int first = std::clamp(static_cast<int>(std::ceil(low)) + 2, 0, width);
    const int last = std::clamp(static_cast<int>(std::floor(high)) - 2, 0, width);
    if (last - first < width / 3) return false;

    for (int y = top; y < image.height(); ++y) {
        auto* line = reinterpret_cast<QRgb*>(image.scanLine(y)) + left;
        std::memmove(line + std::max(0, shift), line + std::max(0, -shift),
                     static_cast<std::size_t>(width - std::abs(shift)) * sizeof(QRgb));
    }
    canvas.axis = after;
    paintStrip(canvas, scene, theme, left, 0, first);
    paintStrip(canvas, scene, theme, left, last, width);
    QPainter painter(&image);
    paintRulerOf(painter, scene, theme);
    return true;
}

} // namespace stagewright
