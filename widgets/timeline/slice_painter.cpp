#include "widgets/timeline/slice_painter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <QFontMetricsF>
#include <QStaticText>

#include "widgets/literals.h"
#include "widgets/readable.h"
#include "widgets/sentence.h"
#include "widgets/timeline/lane_painter.h"
#include "widgets/timeline/slice_shapes.h"

namespace stagewright {

namespace {

constexpr double rounding = 0.5; // rounds what is not negative

// Label widths are constant for a font; measuring each slice would cost more than drawing it.
class Labels {
public:
    struct Label {
        double width = 0;
        double needs = 0; // with the widest digits: whether a row has its numbers doesn't depend on which
        QStaticText text;
    };

    explicit Labels(const QFont& font) : m_font(font), m_metrics(font) {}
    const Label& operator()(const QString& text)
    {
        const auto [at, isNew] = m_labels.try_emplace(text);
        if (isNew) {
            at->second.width = m_metrics.horizontalAdvance(text);
            QString widest = text;
            for (QChar& one : widest)
                if (one.isDigit()) one = u'0';
            at->second.needs = std::max(at->second.width, m_metrics.horizontalAdvance(widest));
            at->second.text = QStaticText(text);
            at->second.text.setTextFormat(Qt::PlainText);
            at->second.text.setPerformanceHint(QStaticText::AggressiveCaching);
            at->second.text.prepare({}, m_font);
        }
        return at->second;
    }
    const QFont& font() const { return m_font; }
    // Drawn from the baseline's left end.
    void draw(QPainter& painter, QPointF at, const Label& label) const
    {
        painter.drawStaticText(at - QPointF(0, m_metrics.ascent()), label.text);
    }

private:
    QFont m_font;
    QFontMetricsF m_metrics;
    std::map<QString, Label> m_labels;
};

QFont smallLabelFont()
{
    QFont font = fontOf(FontRole::Label);
    font.setPixelSize(9);
    return font;
}

struct Row {
    const PanelRank* rank = nullptr;
    const TimelinePanel* panel = nullptr;
    const RowPlace* place = nullptr;
    int index = 0;
    double top = 0;
    bool crowded = false;
    LaneColumns compute;
};

class Painter {
public:
    Painter(QPainter& painter, const TimelineScene& scene, const Theme& theme, Detail detail, double ratio,
            RasterCanvas* canvas)
        : m_painter(painter), m_scene(scene), m_theme(theme), m_detail(detail), m_ratio(ratio), m_canvas(canvas),
          m_inks(inksOf(theme, LaneLook::Ops)), m_classes(inksOf(theme, LaneLook::Classes)),
          m_labels(fontOf(FontRole::Label)), m_smallLabels(smallLabelFont()), m_pills(fontOf(FontRole::Small))
    {
        m_device = m_scene.deviceAxis(m_ratio);
        for (std::size_t i = 0; i < m_tinted.size(); ++i) {
            const QColor fill = m_theme.of(static_cast<Paint>(i / tintCount), static_cast<int>(i % tintCount)).fill;
            m_tinted[i] = fill.rgb();
            const auto faded = [&](int above, int below) { return (2 * above + 3 * below) / 5; };
            const QColor& idle = m_theme.bubbleFill;
            m_faded[i] =
                qRgb(faded(fill.red(), idle.red()), faded(fill.green(), idle.green()), faded(fill.blue(), idle.blue()));
        }
    }

    void paint(const std::vector<int>& rows)
    {
        if (m_scene.axis.degenerate()) return;
        m_rows.reserve(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            if (i + 1 < rows.size() && isCovered(rows[i], rows[i + 1])) continue;
            addRow(rows[i]);
        }
        paintCrowded();
        for (const Row& row : m_rows) {
            const bool isMarked = m_scene.faded.valid() || (m_scene.showCritical && !row.panel->critical.empty());
            if (m_canvas != nullptr && row.place->height < 8 && !isMarked) {
                paintThin(row);
            } else {
                paintWide(row);
            }
            if (row.place->device && row.place->kind != RowKind::Group)
                paintDeviceBar(m_painter, m_scene, row.index, m_theme, m_detail, m_ratio);
            paintPills(row);
            paintTrack(row);
            if (row.place->lanes > 0) paintSublanes(m_painter, m_scene, row.index, m_theme, m_detail, m_ratio);
        }
    }

private:
    double snap(double v) const { return std::round(v * m_ratio) / m_ratio; }
    QRect devicePixels(const QRectF& rect) const
    {
        const int x0 = static_cast<int>(std::lround(rect.left() * m_ratio)),
                  y0 = static_cast<int>(std::lround(rect.top() * m_ratio));
        const int x1 = static_cast<int>(std::lround(rect.right() * m_ratio)),
                  y1 = static_cast<int>(std::lround(rect.bottom() * m_ratio));
        return {x0, y0, std::max(1, x1 - x0), std::max(1, y1 - y0)};
    }

    // Rows of less than a pixel: the next one falls on the same pixels and would be painted over it.
    bool isCovered(int index, int next) const
    {
        const RowPlace &place = m_scene.place(index), &after = m_scene.place(next);
        if (place.height * m_ratio >= 1 || place.panel != after.panel || place.kind == RowKind::Group ||
            after.kind == RowKind::Group)
            return false;
        return std::lround(snap(m_scene.rowTop(index)) * m_ratio) == std::lround(snap(m_scene.rowTop(next)) * m_ratio);
    }

    void addRow(int index)
    {
        const RowPlace& place = m_scene.place(index);
        Row row;
        row.place = &place;
        row.index = index;
        row.panel = m_scene.panels[static_cast<std::size_t>(place.panel)].get();
        row.rank = &row.panel->ranks[static_cast<std::size_t>(place.rankIndex)];
        row.top = snap(m_scene.rowTop(index));
        const bool thin = place.height < 8;
        const double left = std::max(m_scene.axis.left, m_scene.axis.toX(0));
        const double right =
            std::min(m_scene.axis.left + m_scene.axis.width + rightMargin, m_scene.axis.toX(row.panel->duration));
        if (right > left && row.panel->hasOps()) {
            const QRectF idle(left, row.top, right - left, place.height);
            const QRect pixels = devicePixels(idle);
            if (m_canvas != nullptr && thin) {
                m_canvas->fill(pixels, m_theme.bubbleFill.rgb());
            } else if (m_canvas != nullptr) {
                m_canvas->hatch(pixels, static_cast<int>(std::lround((m_scene.axis.toX(0) + row.top) * m_ratio)));
            } else if (thin) {
                m_painter.fillRect(idle, m_theme.bubbleFill);
            } else {
                paintHatch(m_painter, idle, QPointF(m_scene.axis.toX(0), row.top), m_theme);
            }
        }
        RasterOptions options;
        options.wideMin = minRoundedWidth * m_ratio;
        options.gapMin = minPillGap * m_ratio;
        options.tail = row.panel->hasOps() ? row.panel->duration : 0;
        options.detail = m_detail;
        options.fine = place.height >= 8;
        if (place.kind == RowKind::Group) {
            addGroup(row);
        } else if (m_canvas != nullptr) { // straight onto the frame; only what the painter draws later is kept
            rasterLane(row.rank->compute, m_device, options, m_scratch);
            row.crowded = !m_scratch.empty();
            if (row.crowded) {
                const QRect clip = m_canvas->clip();
                const QRect area(static_cast<int>(std::lround(m_scene.axis.left * m_ratio)) + m_scene.firstColumn(),
                                 clip.top(), static_cast<int>(std::ceil(m_device.width - 1e-6)), clip.height());
                paintRow(m_canvas->image(), area, row, m_scratch, 0);
            }
            row.compute.wide = m_scratch.wide;
            row.compute.gaps = m_scratch.gaps;
        } else {
            rasterLane(row.rank->compute, m_device, options, row.compute);
            row.crowded = !row.compute.empty();
        }
        m_rows.push_back(std::move(row));
    }

    void addGroup(Row& row)
    {
        groupColumns(*row.panel, m_scene.groupOf(*row.place), m_device, m_detail, m_group);
        row.crowded = !m_group.mean.empty();
        if (!row.crowded) return;
        const bool range = m_scene.groupLook == GroupLook::Range;
        const int width = static_cast<int>(std::ceil(m_device.width - 1e-6));
        const QRect bar = devicePixels(QRectF(0, row.top, 1, row.place->height));
        if (m_canvas != nullptr) {
            const QRect clip = m_canvas->clip();
            const QRect area(static_cast<int>(std::lround(m_scene.axis.left * m_ratio)) + m_scene.firstColumn(),
                             clip.top(), width, clip.height());
            if (range) {
                paintRange(m_canvas->image(), area, bar.top(), bar.height(), m_group, m_theme);
            } else {
                paintRow(m_canvas->image(), area, row, m_group.mean, 0);
            }
        } else if (!range) {
            row.compute = m_group.mean;
        } else {
            QImage image(std::max(1, width), bar.height(), QImage::Format_ARGB32_Premultiplied);
            image.fill(Qt::transparent);
            paintRange(image, image.rect(), 0, bar.height(), m_group, m_theme);
            m_painter.drawImage(QRectF(m_scene.axis.left, row.top, width / m_ratio, row.place->height), image);
            row.crowded = false;
        }
    }

    void paintRow(QImage& image, const QRect& area, const Row& row, const LaneColumns& columns, int y0)
    {
        const int top = static_cast<int>(std::lround(row.top * m_ratio)) - y0;
        const int height =
            std::max(1, static_cast<int>(std::lround((row.top + row.place->height) * m_ratio)) - y0 - top);
        paintColumns(image, area, top, height, static_cast<int>(8 * m_ratio), columns,
                     row.panel->noOps ? m_classes : m_inks, m_theme.bubbleFill.rgb());
    }

    // Everything narrow, all rows in one image of device pixels: for painters that are not written to directly.
    void paintCrowded()
    {
        const bool any = std::any_of(m_rows.begin(), m_rows.end(), [](const Row& row) { return row.crowded; });
        if (!any || m_canvas != nullptr) return;
        const double low = std::max(m_rows.front().top - 4, rulerHeight);
        const double high = std::min(m_rows.back().top + m_rows.back().place->height, m_scene.size.height());
        const int width = static_cast<int>(std::ceil(m_device.width - 1e-6));
        const int y0 = static_cast<int>(std::floor(low * m_ratio)), y1 = static_cast<int>(std::ceil(high * m_ratio));
        if (width <= 0 || y1 <= y0) return;
        QImage image(width, y1 - y0, QImage::Format_ARGB32_Premultiplied);
        image.fill(Qt::transparent);
        for (const Row& row : m_rows) {
            if (row.crowded) paintRow(image, image.rect(), row, row.compute, y0);
        }
        m_painter.drawImage(QRectF(m_scene.axis.left, y0 / m_ratio, width / m_ratio, (y1 - y0) / m_ratio), image);
    }

    // Rows without room for outline or label: each slice a rectangle, its columns found in one multiplication. Zoomed
    // in on a thousand ranks there are 10⁵ of them in a frame.
    void paintThin(const Row& row)
    {
        const LaneData& lane = row.rank->compute;
        const auto& slices = lane.slices();
        const int top = static_cast<int>(std::lround(row.top * m_ratio));
        const int bottom =
            top + std::max(1, static_cast<int>(std::lround((row.top + row.place->height) * m_ratio)) - top);
        const int middle = static_cast<int>(std::lround(snap(row.top + row.place->height / 2) * m_ratio));
        const int pixel = std::max(1, static_cast<int>(std::lround(m_ratio)));
        const Axis& axis = m_scene.axis;
        const auto columnOf = [begin = axis.range.begin, left = axis.left * m_ratio,
                               scale = axis.width * m_ratio / static_cast<double>(axis.range.duration()),
                               most = static_cast<double>(m_canvas->clip().right() + 2 + 2 * pixel)](Nanos time) {
            return static_cast<int>(std::clamp(left + static_cast<double>(time - begin) * scale, 0.0, most) + rounding);
        };
        for (const std::size_t i : row.compute.wide) {
            const Slice& slice = slices[i];
            const TimeSpan drawn = lane.drawn(i);
            const int x0 = columnOf(drawn.begin);
            int x1 = columnOf(drawn.end);
            const std::size_t next = i + (slice.upper != 0 ? 2 : 1);
            if (next < slices.size() && columnOf(slices[next].begin()) - x1 < pixel) x1 -= pixel;
            const int y0 = slice.lower != 0 ? middle : top, y1 = slice.upper != 0 ? middle : bottom;
            const auto paint =
                static_cast<std::size_t>(paintOf(slice.opKind())) * tintCount + static_cast<std::size_t>(slice.tint);
            m_canvas->fill(QRect(x0, y0, std::max(1, x1 - x0), std::max(1, y1 - y0)),
                           (slice.discarded != 0 ? m_faded : m_tinted)[paint]);
        }
    }

    void paintWide(const Row& row)
    {
        const LaneData& lane = row.rank->compute;
        const auto& slices = lane.slices();
        const double onePixel = 1 / m_ratio;
        const bool marksCritical = m_scene.showCritical && !row.panel->critical.empty();
        const double height = row.place->height;
        // A row says the kind of all its ops or of none: by the narrowest that has room for a label, in view or not, so
        // that a pan changes no label. Long rows by each op's own width.
        double least = std::numeric_limits<double>::max();
        for (std::size_t i = 0; slices.size() <= 4096 && i < slices.size(); ++i) {
            const TimeSpan drawn = lane.drawn(i);
            const double wide = static_cast<double>(drawn.end - drawn.begin) / m_scene.axis.nanosPerPixel();
            if (wide >= 9 && slices[i].microbatchOr(-1) >= 0) least = std::min(least, wide);
        }
        for (const std::size_t i : row.compute.wide) {
            const Slice& slice = slices[i];
            const TimeSpan drawn = lane.drawn(i);
            const double x0 = snap(m_scene.axis.toX(drawn.begin));
            double x1 = snap(m_scene.axis.toX(drawn.end));
            const std::size_t next = i + (slice.upper != 0 ? 2 : 1);
            if (next < slices.size() && m_scene.axis.toX(slices[next].begin()) - x1 < 1) x1 -= std::max(1.0, onePixel);
            const double middle = snap(row.top + height / 2);
            const double top = slice.lower != 0 ? middle : row.top;
            const double bottom = slice.upper != 0 ? middle : row.top + height;
            const QRectF rect(x0, top, std::max(onePixel, x1 - x0), bottom - top);
            const SpanId id = lane.spanOf(i);
            const bool dragged = m_scene.faded.valid() && m_scene.faded.span == id && isPanel(row, m_scene.faded.panel);
            paintSlice(rect, paintOf(slice.opKind()), static_cast<int>(slice.tint),
                       dragged           ? 0.3
                       : slice.discarded ? 0.4
                                         : 1);
            if (isRecompute(slice.opKind())) paintRecompute(rect, static_cast<int>(slice.tint));
            if (marksCritical && row.panel->isCritical(id))
                paintCritical(rect, m_theme.of(paintOf(slice.opKind()), static_cast<int>(slice.tint)));
            if (rect.height() >= 11) paintLabel(row, id, slice, rect, least);
        }
        if (marksCritical) paintNarrowCritical(row);
    }

    bool isPanel(const Row& row, int panel) const
    {
        return panel >= 0 && panel < static_cast<int>(m_scene.panels.size()) &&
               m_scene.panels[static_cast<std::size_t>(panel)].get() == row.panel;
    }

    void paintSlice(const QRectF& rect, Paint paint, int tint, double opacity)
    {
        // Off-screen parts are cut off: a rasteriser processes everything it is given.
        const double low = m_scene.axis.left - 20, high = m_scene.axis.left + m_scene.axis.width + rightMargin + 20;
        const QRectF cut(QPointF(std::max(rect.left(), low), rect.top()),
                         QPointF(std::min(rect.right(), high), rect.bottom()));
        if (m_canvas != nullptr && opacity == 1) {
            const QRect pixels = devicePixels(rect);
            if (rect.height() < 8) {
                m_canvas->fill(pixels, m_theme.of(paint, tint).fill.rgb());
            } else {
                m_canvas->slice(pixels, paint, tint);
                if (rect.width() >= minRoundedWidth) paintFillHatch(m_painter, rect, m_theme.of(paint, tint), cut);
            }
            return;
        }
        m_painter.setOpacity(opacity);
        if (rect.height() < 8) {
            m_painter.fillRect(cut, m_theme.of(paint, tint).fill);
        } else {
            Fill plain = m_theme.of(paint, tint);
            plain.hatch = Fill::Hatch::None;
            paintSliceShape(m_painter, cut, plain);
            if (rect.width() >= minRoundedWidth) paintFillHatch(m_painter, rect, m_theme.of(paint, tint), cut);
        }
        m_painter.setOpacity(1);
    }

    // A recomputed forward: striped, with its letter.
    void paintRecompute(const QRectF& rect, int tint)
    {
        if (rect.height() < 8 || rect.width() < minRoundedWidth) return;
        const double low = std::max(rect.left(), m_scene.axis.left),
                     high = std::min(rect.right(), m_scene.axis.left + m_scene.axis.width + rightMargin);
        if (high - low < 2) return;
        QColor stripe = m_theme.of(Paint::Forward, tint).label;
        stripe.setAlphaF(0.28F);
        m_painter.setPen(QPen(stripe, 1.5));
        const std::vector<QLineF> lines = hatchLines(QRectF(low + 1, rect.top() + 1, high - low - 2, rect.height() - 2),
                                                     QPointF(rect.left(), rect.top()), 5);
        m_painter.drawLines(lines.data(), static_cast<int>(lines.size()));
    }

    // On dark fills, and on those as bright as the outline, a line inside sets it off.
    void paintCritical(const QRectF& rect, const Fill& fill)
    {
        if (rect.height() < 8) {
            m_painter.fillRect(QRectF(rect.left(), rect.top(), rect.width(), 1), m_theme.critical);
            return;
        }
        m_painter.setPen(QPen(m_theme.critical, 2));
        m_painter.setBrush(Qt::NoBrush);
        m_painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), sliceCorner - 1, sliceCorner - 1);
        const bool dark = fill.label.lightnessF() > 0.5F;
        // in a narrow one it would lie over the digit
        if (rect.width() < 15 || contrast(m_theme.critical, fill.fill) >= (dark ? 3 : 1.5)) return;
        m_painter.setPen(QPen(fill.label, 1));
        m_painter.drawRoundedRect(rect.adjusted(2.5, 2.5, -2.5, -2.5), sliceCorner - 1.5, sliceCorner - 1.5);
    }

    // Slices too narrow for an outline show the critical path as bars along the row's edges.
    void paintNarrowCritical(const Row& row)
    {
        const LaneData& lane = row.rank->compute;
        if (!row.crowded || lane.size() == 0 || row.place->height < 8 || row.place->kind == RowKind::Group) return;
        const auto& critical = row.panel->critical;
        if (lane.idsBegin() >= lane.idsEnd()) return;
        const SpanId low = lane.spanOf(lane.idsBegin()), high = lane.spanOf(lane.idsEnd() - 1);
        for (auto at = std::lower_bound(critical.begin(), critical.end(), low); at != critical.end() && *at <= high;
             ++at) {
            const std::size_t i = lane.sliceOf(*at);
            if (i >= lane.size()) continue;
            const double x0 = m_scene.axis.toX(lane.slices()[i].begin()), x1 = m_scene.axis.toX(lane.slices()[i].end());
            if (x1 < m_scene.axis.left || x0 > m_scene.axis.left + m_scene.axis.width || x1 - x0 >= minRoundedWidth)
                continue;
            const double from = snap(x0), width = std::max(1 / m_ratio, snap(x1) - from);
            m_painter.fillRect(QRectF(from, row.top, width, 2), m_theme.critical);
            m_painter.fillRect(QRectF(from, row.top + row.place->height - 2, width, 2), m_theme.critical);
        }
    }

    void paintLabel(const Row& row, SpanId id, const Slice& slice, const QRectF& rect, double least)
    {
        const double low = std::max(rect.left(), m_scene.axis.left);
        const double high = std::min(rect.right(), m_scene.axis.left + m_scene.axis.width + rightMargin);
        const double width = high - low;
        if (width < (m_scene.smallLabels ? 5 : 9)) return;
        const Op op = id != noSpan ? row.panel->timeline->spans()[id].op
                                   // its step's spans are not loaded
                                   : makeOp(slice.opKind(), 0, slice.microbatchOr(-1));
        for (const bool brief : {false, true}) {
            const QString text =
                brief ? briefLabel(op) : sliceLabel(op, op.microbatch < 0 ? width : std::min(width, least));
            if (text.isEmpty()) continue;
            Labels* fonts[] = {&m_labels, m_scene.smallLabels ? &m_smallLabels : nullptr};
            for (Labels* labels : fonts) {
                if (labels == nullptr) continue;
                const bool small = labels == &m_smallLabels;
                const Labels::Label& label = (*labels)(text);
                if (label.needs + (small ? 0 : 3) > width) continue;
                m_painter.setFont(labels->font());
                m_painter.setPen(m_theme.of(paintOf(slice.opKind()), static_cast<int>(slice.tint)).label);
                labels->draw(m_painter,
                             QPointF((low + high - label.width) / 2, rect.center().y() + (small ? 3.5 : 4.5)), label);
                return;
            }
        }
    }

    void paintPills(const Row& row)
    {
        if (row.place->height < 18 || row.place->kind == RowKind::Group) return;
        const double low = m_scene.axis.left, high = m_scene.axis.left + m_scene.axis.width + rightMargin;
        for (const PixelGap& gap : row.compute.gaps) {
            const double x0 = std::max(low, m_scene.axis.left + (m_scene.firstColumn() + gap.x0) / m_ratio);
            const double x1 = std::min(high, m_scene.axis.left + (m_scene.firstColumn() + gap.x1) / m_ratio);
            const QString text = durationText(gap.duration, row.panel->units);
            const Labels::Label& label = m_pills(text);
            const double width = label.width + 14;
            if (x1 - x0 < width + 6) continue;
            const QRectF pill((x0 + x1 - width) / 2, row.top + row.place->height / 2 - 8.5, width, 17);
            m_painter.setPen(Qt::NoPen);
            m_painter.setBrush(m_theme.pill);
            m_painter.drawRoundedRect(pill, 8.5, 8.5);
            m_painter.setFont(fontOf(FontRole::Small));
            m_painter.setPen(m_theme.pillText);
            m_pills.draw(m_painter, QPointF(pill.left() + 7, pill.center().y() + 4), label);
        }
    }

    void paintTrack(const Row& row)
    {
        const RowPlace& m = *row.place;
        if (m.track <= 0) return;
        const double top = row.top + m.height + m.trackGap;
        const double left = std::max(m_scene.axis.left, m_scene.axis.toX(0));
        const double right =
            std::min(m_scene.axis.left + m_scene.axis.width + rightMargin, m_scene.axis.toX(row.panel->duration));
        if (right <= left) return;
        m_painter.fillRect(QRectF(left, top, right - left, m.track), m_theme.track);
        const auto lanes = static_cast<double>(row.rank->communication.size());
        RasterOptions options;
        options.wideMin = 2.5 * m_ratio;
        options.gapMin = 1e18;
        options.detail = m_detail;
        LaneColumns columns;
        for (std::size_t i = 0; i < row.rank->communication.size(); ++i) {
            const LaneData& lane = row.rank->communication[i];
            const double inset = lanes <= 2 ? 1 : 0;
            const double y = top + static_cast<double>(i) * m.track / lanes + inset;
            const double height = std::max(1.0, m.track / lanes - 2 * inset);
            rasterLane(lane, m_device, options, columns);
            if (!columns.empty()) {
                const int width = static_cast<int>(std::ceil(m_device.width - 1e-6));
                QImage image(width, std::max(1, static_cast<int>(std::lround(height * m_ratio))),
                             QImage::Format_ARGB32_Premultiplied);
                image.fill(Qt::transparent);
                paintColumns(image, image.rect(), 0, image.height(), static_cast<int>(8 * m_ratio), columns, m_inks,
                             m_theme.track.rgb());
                m_painter.drawImage(
                    QRectF(m_scene.axis.left + m_scene.firstColumn() / m_ratio, y, width / m_ratio, height), image);
            }
            m_painter.setPen(Qt::NoPen);
            for (const std::size_t at : columns.wide) {
                const Slice& slice = lane.slices()[at];
                const double x0 = m_scene.axis.toX(slice.begin()), x1 = m_scene.axis.toX(slice.end());
                const QRectF rect(std::max(x0, left), y, std::min(x1, right + 10) - std::max(x0, left), height);
                const Fill& fill = m_theme.of(slice.opKind());
                const bool receives = isReceive(slice.opKind());
                QColor inner = fill.fill; // a receive is a posted buffer: paler than a transfer
                if (receives) inner.setAlphaF(0.38F);
                m_painter.setBrush(inner);
                const double radius = std::min({1.5, rect.width() / 2, height / 2});
                m_painter.drawRoundedRect(rect, radius, radius);
                if (height < 10.5 || rect.width() < 9) continue;
                const Labels::Label& label = m_pills(QString::number(slice.microbatchOr(0)));
                if (slice.microbatchOr(-1) < 0 || label.width + 3 > rect.width()) continue;
                m_painter.setFont(fontOf(FontRole::Small));
                m_painter.setPen(receives ? m_theme.text : fill.label);
                m_pills.draw(m_painter, QPointF(rect.center().x() - label.width / 2, rect.center().y() + 4), label);
                m_painter.setPen(Qt::NoPen);
            }
        }
    }

    QPainter& m_painter;
    const TimelineScene& m_scene;
    const Theme& m_theme;
    Detail m_detail;
    double m_ratio;
    RasterCanvas* m_canvas;
    Inks m_inks, m_classes;                                         // of ops; of groups of ranks without ops
    std::array<QRgb, paintCount * tintCount> m_tinted{}, m_faded{}; // of slices; of discarded ones over idle time
    Labels m_labels;
    Labels m_smallLabels;
    Labels m_pills;
    Axis m_device;
    std::vector<Row> m_rows;
    LaneColumns m_scratch;
    GroupColumns m_group;
};

} // namespace

void paintSlices(QPainter& painter, const TimelineScene& scene, const std::vector<int>& rows, const Theme& theme,
                 Detail detail, double ratio, RasterCanvas* canvas)
{
    Painter(painter, scene, theme, detail, ratio, canvas).paint(rows);
}

QString sliceLabel(const Op& op, double width)
{
    const QString letter = qtText(ruleOf(op.kind).letter);
    if (op.microbatch < 0) return isOptimizer(op.kind) && width >= 34 ? qtText(ruleOf(op.kind).text) : letter;
    QString digits = QString::number(op.microbatch);
    if (op.count > 1) digits += QChar(0x2013) + QString::number(op.microbatch + op.count - 1);
    if (op.slice >= 0) digits += u'.' + QString::number(op.slice);
    if (op.half > 0) digits += op.half == 1 ? u"h0"_s : u"h1"_s;
    const bool saysKind = width >= 90 || isRecompute(op.kind);
    return saysKind ? letter + digits : digits;
}

QString briefLabel(const Op& op)
{
    if (op.microbatch < 0) return {};
    // The first microbatch of a slice; the others follow without a gap.
    if (op.slice == 0 && op.count == 1 && op.half == 0) return QString::number(op.microbatch);
    return {};
}

} // namespace stagewright
