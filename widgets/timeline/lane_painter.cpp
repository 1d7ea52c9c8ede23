#include "widgets/timeline/lane_painter.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>
#include <QFontMetricsF>

#include "widgets/literals.h"
#include "widgets/sentence.h"

namespace stagewright {

namespace {

// Shares of every column that a lane fills, column edges cut to the fraction. O(visible slices + columns).
void addExact(const LaneData& lane, const Axis& device, std::vector<std::array<float, 4>>& shares,
              std::vector<std::uint8_t>& masks)
{
    const double scale = device.width / static_cast<double>(device.range.duration());
    const auto& slices = lane.slices();
    const auto count = static_cast<double>(shares.size());
    for (std::size_t i = lane.firstEndingAfter(device.range.begin);
         i < slices.size() && slices[i].begin() < device.range.end; ++i) {
        const double x0 = std::max(0.0, static_cast<double>(slices[i].begin() - device.range.begin) * scale);
        const double x1 = std::min(count, static_cast<double>(slices[i].end() - device.range.begin) * scale);
        const auto paint = static_cast<std::size_t>(familyOf(lane.look(), static_cast<unsigned>(slices[i].kind)));
        const std::size_t part = std::min<std::size_t>(paint, 3);
        for (auto c = static_cast<std::size_t>(x0); static_cast<double>(c) < x1; ++c) {
            const double inside = std::min(x1, static_cast<double>(c) + 1) - std::max(x0, static_cast<double>(c));
            shares[c][part] += static_cast<float>(inside);
            masks[c] = static_cast<std::uint8_t>(masks[c] | 1U << paint);
        }
    }
}

} // namespace

void groupColumns(const TimelinePanel& panel, const RankGroup& group, const Axis& device, Detail detail,
                  GroupColumns& out)
{
    out.mean.clear();
    out.least.clear();
    out.most.clear();
    if (device.degenerate() || group.ranks.empty()) return;
    const auto count = static_cast<std::size_t>(std::ceil(device.width - 1e-6));
    out.mean.nanosPerColumn = static_cast<double>(device.range.duration()) / device.width;
    out.mean.aggregated = true;
    out.mean.shares.assign(count, {});
    out.mean.masks.assign(count, 0);
    out.least.assign(count, 2.0F);
    out.most.assign(count, 0.0F);
    RasterOptions options;
    options.detail = detail;
    options.fine = false;
    options.sumsOnly = true;
    LaneColumns one;
    for (const int rank : group.ranks) {
        const PanelRank& of = panel.ranks[static_cast<std::size_t>(rank)];
        const LaneData& lane = panel.noOps ? of.device : of.compute;
        one.clear();
        const auto visible = static_cast<double>(
            lane.firstBeginningAt(device.range.end) -
            std::min(lane.firstEndingAfter(device.range.begin), lane.firstBeginningAt(device.range.end)));
        // reads the pyramid
        if (detail == Detail::Draft && visible > 4 * device.width) rasterLane(lane, device, options, one);
        if (one.shares.size() != count) {
            one.shares.assign(count, {});
            one.masks.assign(count, 0);
            addExact(lane, device, one.shares, one.masks);
        }
        for (std::size_t c = 0; c < count; ++c) {
            float busy = 0;
            for (std::size_t k = 0; k < 4; ++k) {
                out.mean.shares[c][k] += one.shares[c][k];
                busy += one.shares[c][k];
            }
            out.mean.masks[c] = static_cast<std::uint8_t>(out.mean.masks[c] | one.masks[c]);
            out.least[c] = std::min(out.least[c], busy);
            out.most[c] = std::max(out.most[c], busy);
        }
    }
    const float scale = 1.0F / static_cast<float>(group.ranks.size());
    for (auto& shares : out.mean.shares)
        for (float& share : shares) share *= scale;
}

void paintRange(QImage& image, const QRect& area, int y0, int height, const GroupColumns& columns, const Theme& theme)
{
    const QRect cut = area.intersected(image.rect());
    if (height <= 0 || cut.isEmpty()) return;
    const auto blend = [&](float share) {
        const QColor &a = theme.bubbleFill, &b = theme.accent;
        return qRgb(static_cast<int>(a.red() + (b.red() - a.red()) * share),
                    static_cast<int>(a.green() + (b.green() - a.green()) * share),
                    static_cast<int>(a.blue() + (b.blue() - a.blue()) * share));
    };
    const QRgb body = blend(0.62F), band = blend(0.3F), line = theme.accent.rgb(), extreme = blend(0.5F);
    const std::size_t count = std::min(columns.mean.shares.size(), static_cast<std::size_t>(cut.width()));
    const int top = std::max(cut.top(), y0), bottom = std::min(cut.bottom() + 1, y0 + height);
    const auto level = [height](double share) {
        return std::clamp(static_cast<int>(std::lround(share * height)), 0, height);
    };
    for (std::size_t c = 0; c < count; ++c) {
        float sum = 0;
        for (const float share : columns.mean.shares[c]) sum += share;
        const int mean = level(static_cast<double>(sum));
        const int least = level(static_cast<double>(columns.least[c])),
                  most = level(static_cast<double>(columns.most[c]));
        if (most == 0) continue;
        for (int y = top; y < bottom; ++y) {
            const int at = y0 + height - 1 - y; // 0 at the lower edge
            if (at >= most) continue;
            QRgb colour = at >= mean ? band : at >= least ? body : blend(0.75F);
            if (at == mean - 1)
                colour = line;
            else if (at == most - 1 || at == least - 1)
                colour = extreme;
            reinterpret_cast<QRgb*>(image.scanLine(y))[cut.left() + static_cast<int>(c)] = colour;
        }
    }
}

namespace {

// Columns and spans of a lane into [y, y + height); wide slices are left to the caller.
void paintLaneColumns(QPainter& painter, const TimelineScene& scene, const Axis& device, const LaneColumns& columns,
                      double y, double height, const Inks& inks, QRgb idle, double ratio)
{
    if (columns.empty()) return;
    const int width = static_cast<int>(std::ceil(device.width - 1e-6));
    QImage image(width, std::max(1, static_cast<int>(std::lround(height * ratio))),
                 QImage::Format_ARGB32_Premultiplied);
    image.fill(Qt::transparent);
    paintColumns(image, image.rect(), 0, image.height(), static_cast<int>(8 * ratio), columns, inks, idle);
    painter.drawImage(QRectF(scene.axis.left + scene.firstColumn() / ratio, y, width / ratio, height), image);
}

// Hatched where no op hides it; too narrow for a line, in one darker colour.
void paintExposed(QPainter& painter, const TimelineScene& scene, const PanelLane& lane, const QRectF& area,
                  const Theme& theme)
{
    QColor line = theme.of(Paint::Communication).label, shade = line;
    line.setAlphaF(0.75F);
    shade.setAlphaF(0.4F);
    painter.setPen(QPen(line, 1));
    const auto& parts = lane.exposed;
    auto at = std::partition_point(parts.begin(), parts.end(),
                                   [&](const TimeSpan& part) { return part.end <= scene.axis.range.begin; });
    double shaded = area.left(); // parts of the same pixel are drawn once
    for (; at != parts.end() && at->begin < scene.axis.range.end; ++at) {
        const double x0 = std::max(area.left(), scene.axis.toX(at->begin)),
                     x1 = std::min(area.right(), scene.axis.toX(at->end));
        const QRectF rect(x0, area.top(), x1 - x0, area.height());
        if (rect.width() >= 5) {
            const std::vector<QLineF> lines = hatchLines(rect, QPointF(scene.axis.toX(0), area.top()), 4);
            painter.drawLines(lines.data(), static_cast<int>(lines.size()));
        } else if (x1 > shaded) {
            painter.fillRect(
                QRectF(std::max(shaded, x0), area.top(), std::max(0.5, x1 - std::max(shaded, x0)), area.height()),
                shade);
        }
        shaded = std::max(shaded, x1);
    }
}

// "stage 2, microbatch 1" or, for less room, "2·1": of which stage and microbatch.
QString collectiveLabel(const Op& op, double room, const QFontMetricsF& metrics)
{
    QString whole =
        op.microbatch < 0 ? u"stage %1"_s.arg(op.stage) : u"stage %1, microbatch %2"_s.arg(op.stage).arg(op.microbatch);
    if (metrics.horizontalAdvance(whole) <= room) return whole;
    return op.microbatch < 0 ? QString::number(op.stage) : u"%1·%2"_s.arg(op.stage).arg(op.microbatch);
}

} // namespace

void paintDeviceBar(QPainter& painter, const TimelineScene& scene, int row, const Theme& theme, Detail detail,
                    double ratio)
{
    const RowPlace& place = scene.place(row);
    const TimelinePanel& panel = scene.panel(place.panel);
    const PanelRank& rank = scene.rankOf(place);
    const double left = std::max(scene.axis.left, scene.axis.toX(0));
    const double right = std::min(scene.axis.left + scene.axis.width + rightMargin, scene.axis.toX(panel.duration));
    if (right <= left || (rank.device.size() == 0 && !rank.device.isOverview())) return;
    const double y = std::round(scene.rowTop(row) * ratio) / ratio;
    painter.fillRect(QRectF(left, y, right - left, place.height), theme.track);
    RasterOptions options;
    options.wideMin = options.gapMin = 1e18;
    options.detail = detail;
    LaneColumns columns;
    const Axis device = scene.deviceAxis(ratio);
    rasterLane(rank.device, device, options, columns);
    for (PixelSpan& span : columns.spans) span.low = false; // a bar of shares: the height means nothing else here
    paintLaneColumns(painter, scene, device, columns, y, place.height, inksOf(theme, rank.device.look()),
                     theme.track.rgb(), ratio);
}

QString nameOfWork(const Timeline& timeline, SpanId id)
{
    const std::string name = timeline.nameOf(timeline.spans()[id]);
    const Lane lane = timeline.trackOf(id).lane;
    return shownName(isDeviceLane(lane) ? briefKernelName(name) : name);
}

void paintSublanes(QPainter& painter, const TimelineScene& scene, int row, const Theme& theme, Detail detail,
                   double ratio)
{
    const RowPlace& place = scene.place(row);
    if (place.lanes == 0 || scene.axis.degenerate()) return;
    const TimelinePanel& panel = scene.panel(place.panel);
    const PanelRank& rank = scene.rankOf(place);
    const double left = std::max(scene.axis.left, scene.axis.toX(0));
    const double right = std::min(scene.axis.left + scene.axis.width + rightMargin, scene.axis.toX(panel.duration));
    if (right <= left) return;
    const double top = scene.rowTop(row) + place.lanesTop() - place.top;
    RasterOptions options;
    options.wideMin = 2.5 * ratio;
    options.gapMin = 1e18;
    options.detail = detail;
    const Axis device = scene.deviceAxis(ratio);
    const QFont font = fontOf(FontRole::Small);
    const QFontMetricsF metrics(font);
    LaneColumns columns;
    for (int i = 0; i < place.lanes; ++i) {
        const PanelLane& lane = rank.lanes[static_cast<std::size_t>(place.firstLane + i)];
        const double y = std::round((top + place.laneTop(i)) * ratio) / ratio;
        const double height =
            std::max(1 / ratio, std::round((place.laneHeight(i) - (place.laneHeight(i) > 6 ? 2 : 1)) * ratio) / ratio);
        if (y > scene.size.height() || y + height < rulerHeight) continue;
        const bool over = i > 0 && place.laneTop(i) == place.laneTop(i - 1); // of a folded stream
        if (!over) painter.fillRect(QRectF(left, y, right - left, height), theme.track);
        rasterLane(lane.data, device, options, columns);
        const LaneLook look = lane.data.look();
        Inks inks = inksOf(theme, look);
        if (lane.lane == Lane::Wait) { // waiting is not work
            inks.exact.fill(theme.bubbleHatch.rgb());
            inks.families.fill(theme.bubbleHatch.rgb());
        }
        paintLaneColumns(painter, scene, device, columns, y, height, inks, theme.track.rgb(), ratio);
        const auto rectOf = [&](std::size_t at) {
            const Slice& slice = lane.data.slices()[at];
            const double x0 = std::max(scene.axis.toX(slice.begin()), left - 10);
            const double x1 =
                std::min(scene.axis.toX(slice.end()), right + 10) -
                (at + 1 < lane.data.size() && lane.data.slices()[at + 1].begin() == slice.end() ? 1 / ratio : 0);
            return QRectF(x0, y, std::max(1 / ratio, x1 - x0), height);
        };
        const bool waits = lane.lane == Lane::Wait;
        for (const std::size_t at : columns.wide) {
            const QRectF rect = rectOf(at);
            const Fill& fill = fillOf(theme, look, static_cast<unsigned>(lane.data.slices()[at].kind));
            painter.fillRect(rect, waits ? theme.bubbleHatch : fill.fill);
            // where neighbours meet
            if (look == LaneLook::Ranges && rect.width() >= 4)
                painter.fillRect(QRectF(rect.left(), rect.top(), 1, rect.height()), fill.edge);
        }
        if (isCollectiveLane(lane.lane))
            paintExposed(painter, scene, lane, QRectF(left, y, right - left, height), theme);
        for (const std::size_t at : columns.wide) {
            const QRectF rect = rectOf(at);
            const Fill& fill = fillOf(theme, look, static_cast<unsigned>(lane.data.slices()[at].kind));
            const double low = std::max(rect.left(), left), high = std::min(rect.right(), right);
            if (height < 11 || high - low < 14) continue;
            const SpanId id = lane.data.spanOf(at);
            if (id == noSpan) continue; // of a step without loaded spans
            const bool ofStage = isCollectiveLane(lane.lane) && panel.timeline->spans()[id].label == 0;
            QString name = ofStage ? collectiveLabel(panel.timeline->spans()[id].op, high - low - 6, metrics)
                                   : nameOfWork(*panel.timeline, id);
            double width = metrics.horizontalAdvance(name);
            if (width + 6 > high - low) { // the start of a name still says something
                if (high - low < 34 || isCollectiveLane(lane.lane)) continue;
                name = metrics.elidedText(name, Qt::ElideRight, high - low - 6);
                width = metrics.horizontalAdvance(name);
                if (name.size() < 4) continue;
            }
            // readable over the hatch
            if (isCollectiveLane(lane.lane))
                painter.fillRect(QRectF((low + high - width) / 2 - 2, rect.top() + 1, width + 4, rect.height() - 2),
                                 fill.fill);
            painter.setFont(font);
            painter.setPen(waits ? theme.text : fill.label);
            painter.drawText(QPointF((low + high - width) / 2, rect.center().y() + 4), name);
        }
    }
}

} // namespace stagewright
