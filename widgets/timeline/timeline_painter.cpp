#include "widgets/timeline/timeline_painter.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <QCoreApplication>
#include <QFontMetricsF>
#include <QPaintDevice>
#include <QPaintEngine>
#include <QPainterPath>

#include "traces/step/step_ops.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/sentence.h"
#include "widgets/timeline/device_bar.h"
#include "widgets/timeline/rank_busy.h"
#include "widgets/timeline/slice_painter.h"

namespace stagewright {

namespace {

constexpr double rulerSpacing = 32; // px between labelled ticks, at least

struct Frame {
    QPainter& p;
    const TimelineScene& scene;
    const Theme& theme;
    Detail detail;
    double ratio; // device pixels per logical pixel
    QRectF plot;  // the rows' part right of the gutter, view coordinates
};

// The places of row names and figures.
struct Gutter {
    explicit Gutter(double viewWidth)
        : width(gutterFor(viewWidth)), left(width < gutterWidth ? 14 : 16),
          right(width - (width < gutterWidth ? 8 : 16))
    {
    }
    double width, left, right;
};

struct ShownTick {
    Nanos time = 0;  // on the axis
    Nanos shown = 0; // its text
    bool major = false;
};

// Ticks of the ruler. Where times count from the start of their step and several steps are in view, they restart with
// each; steps too narrow for a labelled tick have none.
std::vector<ShownTick> ticksOf(const TimelineScene& scene)
{
    std::vector<ShownTick> ticks;
    const Nanos unit = scene.panels.empty() ? 1 : scene.panels.front()->units.time;
    const auto add = [&](const TimeRange& part, Nanos offset) { // offset: axis time minus the shown time
        Axis shown = scene.axis;
        shown.range = {scene.axis.range.begin - offset, scene.axis.range.end - offset};
        for (const RulerTick& tick : rulerTicks(shown, rulerSpacing, unit)) {
            const Nanos time = tick.time + offset;
            if (time >= part.begin && time < part.end) ticks.push_back({time, tick.time, tick.major});
        }
    };
    const TimeRange all{scene.axis.range.begin, scene.axis.range.end + 1};
    if (scene.panels.size() != 1 || scene.timeOrigin == TimeOrigin::Run || scene.panels.front()->steps.size() < 2) {
        add(all, scene.panels.size() == 1 && !scene.axis.degenerate() ? -scene.shownTime(0) : 0);
        return ticks;
    }
    const auto& steps = scene.panels.front()->steps;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const TimeRange part{std::max(all.begin, i == 0 ? all.begin : steps[i].begin),
                             std::min(all.end, i + 1 < steps.size() ? steps[i + 1].begin : all.end)};
        if (part.empty() || scene.axis.toX(part.end) - scene.axis.toX(part.begin) < 12) continue;
        add(part, steps[i].begin);
    }
    return ticks;
}

// Boundaries of the steps in view, a flag on each with its number where it fits. Where the flags are.
std::vector<QRectF> paintStepFlags(const Frame& f)
{
    std::vector<QRectF> flags;
    if (f.scene.panels.size() != 1 || f.scene.panels.front()->steps.size() < 2) return flags;
    QPainter& p = f.p;
    p.save();
    p.setFont(fontOf(FontRole::Small));
    const QFontMetricsF metrics(p.font());
    const auto& steps = f.scene.panels.front()->steps;
    double free = f.scene.axis.left - 1;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const double x = std::round(f.scene.axis.toX(steps[i].begin) * f.ratio) / f.ratio;
        const double next = i + 1 < steps.size() ? f.scene.axis.toX(steps[i + 1].begin) : f.scene.size.width();
        if (next < f.scene.axis.left || x > f.scene.axis.left + f.scene.axis.width) continue;
        const double left = std::max(x, f.scene.axis.left); // the step at the left edge is labelled there
        const QString number = QString::number(steps[i].step + 1);
        QString text = u"step %1"_s.arg(number);
        if (left + metrics.horizontalAdvance(text) + 10 > next) text = number;
        const double width = metrics.horizontalAdvance(text) + 8;
        if (x >= f.scene.axis.left) p.fillRect(QRectF(x, rulerHeight - 12, 1, 12), f.theme.secondary);
        if (left < free || left + width > next + 0.5 || left + width > f.scene.size.width()) continue;
        const QRectF flag(left, 2, width, 14);
        free = flag.right() + 1;
        p.setPen(Qt::NoPen);
        p.setBrush(f.theme.separator);
        p.drawRoundedRect(flag, 2.5, 2.5);
        p.setPen(f.theme.text);
        p.drawText(flag, Qt::AlignCenter, text);
        flags.push_back(flag);
    }
    p.restore();
    return flags;
}

// A line through the rows where a step starts; work of the previous step may extend over it.
void paintStepLines(const Frame& f)
{
    if (f.scene.panels.size() != 1 || f.scene.panels.front()->steps.size() < 2) return;
    const auto& steps = f.scene.panels.front()->steps;
    double last = -1e9;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const double x = std::round(f.scene.axis.toX(steps[i].begin) * f.ratio) / f.ratio;
        // closer, and lines would hide the work
        if (x < f.scene.axis.left || x > f.scene.axis.left + f.scene.axis.width || x - last < 6) continue;
        last = x;
        f.p.fillRect(QRectF(x, f.plot.top(), 1, f.plot.height()), f.theme.secondary);
    }
}

void paintRuler(const Frame& f)
{
    QPainter& p = f.p;
    const TimelineScene& scene = f.scene;
    p.fillRect(QRectF(0, 0, scene.size.width(), rulerHeight), f.theme.canvas);
    p.setFont(fontOf(FontRole::Strong));
    p.setPen(f.theme.text);
    const Gutter gutter(scene.size.width());
    const bool fits = QFontMetricsF(p.font()).horizontalAdvance(scene.title) <= gutter.width - gutter.left - 4;
    const QString title = fits ? scene.title : u"Time"_s;
    p.drawText(QRectF(gutter.left, 0, gutter.width - gutter.left - 4, rulerHeight), Qt::AlignVCenter | Qt::AlignLeft,
               title);
    const double titleEnd = gutter.left + QFontMetricsF(p.font()).horizontalAdvance(title);
    p.setFont(fontOf(FontRole::Small));
    p.setPen(f.theme.secondary);
    const QFontMetricsF metrics(p.font());
    const QString busy = u"busy"_s;
    if (titleEnd + 8 < gutter.right - metrics.horizontalAdvance(busy)) {
        p.drawText(QRectF(gutter.right - 76, 0, 76, rulerHeight), Qt::AlignVCenter | Qt::AlignRight, busy);
    }

    const Nanos unit = scene.panels.empty() ? 1 : scene.panels.front()->units.time;
    const QString suffix = unit != 1 ? u" units"_s : QString();
    const std::vector<ShownTick> ticks = ticksOf(scene);
    const Nanos step = rulerStep(scene.axis, rulerSpacing, unit);
    double scale = static_cast<double>(unit);
    QString name = suffix;
    if (unit == 1) { // one unit for all labels: that of the visible end
        Nanos size = 0;
        for (const ShownTick& tick : ticks) size = std::max(size, std::abs(tick.shown));
        size = std::max(size, std::abs(scene.shownTime(scene.axis.range.end)));
        scale = size >= 10'000'000'000 ? 1e9 : size >= 2'000'000 ? 1e6 : size >= 2'000 ? 1e3 : 1;
        if (fixedTimeScale() > 0) scale = fixedTimeScale();
        name = QString::fromUtf8(scale == 1e9 ? " s" : scale == 1e6 ? " ms" : scale == 1e3 ? " µs" : " ns");
    }
    const int decimals = std::max(
        0, static_cast<int>(std::ceil(-std::log10(std::max<double>(1, static_cast<double>(step)) / scale) - 1e-9)));
    const QColor major = f.theme.faint, minor = f.theme.separator;
    const auto textOf = [&](const ShownTick& tick) { return fixed(static_cast<double>(tick.shown) / scale, decimals); };
    // Labels at every first, second, fifth or tenth of the ticks: as many as fit, and none drops out of the row.
    double widest = 0, named = 0; // named: the first one with the unit behind it
    bool first = true;
    for (const ShownTick& tick : ticks) {
        if (!tick.major) continue;
        widest = std::max(widest, metrics.horizontalAdvance(textOf(tick)));
        if (std::exchange(first, false)) named = metrics.horizontalAdvance(textOf(tick) + name);
    }
    const double apart = scene.axis.degenerate() ? 1 : static_cast<double>(step) / scene.axis.nanosPerPixel();
    Nanos each = 1;
    for (const Nanos more : {2, 5, 10})
        if (static_cast<double>(each) * apart < widest + 6) each = more;
    if (static_cast<double>(each) * apart < named + 6) {
        const QString behind = u", "_s + name.trimmed();
        const QRectF room(titleEnd, 0, metrics.horizontalAdvance(behind), rulerHeight);
        if (room.right() + 6 < gutter.right - metrics.horizontalAdvance(busy)) { // the title has the unit
            p.drawText(room, Qt::AlignVCenter | Qt::AlignLeft, behind);
            name.clear();
        } else {
            each *= 2;
        }
    }
    first = true;
    const std::vector<QRectF> flags = paintStepFlags(f);
    double labelEnd = 0;
    for (const ShownTick& tick : ticks) {
        const double x = std::round(scene.axis.toX(tick.time) * f.ratio) / f.ratio;
        const double height = tick.major ? 10 : 5;
        p.fillRect(QRectF(x, rulerHeight - 1 - height, 1, height), tick.major ? major : minor);
        if (!tick.major || step <= 0 || tick.shown / step % each != 0) continue;
        QString text = textOf(tick);
        if (first) text += name;
        const double width = metrics.horizontalAdvance(text);
        const QRectF room(x + 2, 0, width + 6, rulerHeight);
        if (x < labelEnd || x + 4 + width > scene.size.width()) continue;
        if (std::any_of(flags.begin(), flags.end(), [&](const QRectF& flag) { return flag.intersects(room); }))
            continue;
        first = false;
        labelEnd = x + 4 + width + 1;
        p.setPen(f.theme.secondary);
        p.drawText(QPointF(x + 4, 14.5), text);
    }
    p.fillRect(QRectF(0, rulerHeight - 1, scene.size.width(), 1), f.theme.separator);
}

void paintGrid(const Frame& f)
{
    for (const ShownTick& tick : ticksOf(f.scene)) {
        if (!tick.major) continue;
        const double x = std::round(f.scene.axis.toX(tick.time) * f.ratio) / f.ratio;
        f.p.fillRect(QRectF(x, f.plot.top(), 1, f.plot.height()), f.theme.grid);
    }
}

// A triangle: right where the row is folded, down where it is open.
void paintFold(const Frame& f, QPointF centre, bool open)
{
    if (!f.scene.showFolds) return;
    QPainterPath path;
    path.moveTo(centre + (open ? QPointF(-3.5, -2) : QPointF(-2, -3.5)));
    path.lineTo(centre + (open ? QPointF(3.5, -2) : QPointF(-2, 3.5)));
    path.lineTo(centre + (open ? QPointF(0, 2.8) : QPointF(2.8, 0)));
    path.closeSubpath();
    f.p.fillPath(path, f.theme.secondary);
}

void paintGutterGroup(const Frame& f, const RowPlace& row, double top)
{
    QPainter& p = f.p;
    const double middle = top + row.height / 2;
    if (row.height < 9) return;
    const RankGroup& group = f.scene.groupOf(row);
    paintFold(f, QPointF(8, middle), group.expanded);
    const QString busy = busyText(group.busyMean, 0);
    const Gutter gutter(f.scene.size.width());
    const bool large = row.height >= 16;
    const QFontMetricsF metrics(fontOf(large ? FontRole::Rank : FontRole::Small));
    const double room = gutter.right - 2 - gutter.left -
                        QFontMetricsF(fontOf(large ? FontRole::Body : FontRole::Small)).horizontalAdvance(busy) - 6;
    QString title = group.title;
    // all groups alike
    const QString longest = f.scene.rows.plan->groups[static_cast<std::size_t>(row.panel)].back().title;
    const QString prefixed = u"Ranks %1"_s;
    const bool isRanks = title.front().isDigit() && !title.contains(u'%') && !title.contains(u' ');
    if (isRanks && metrics.horizontalAdvance(prefixed.arg(longest)) <= room) title = prefixed.arg(title);
    p.setPen(f.theme.text);
    if (metrics.horizontalAdvance(title) <= room) { // the name comes first
        p.setFont(fontOf(large ? FontRole::Body : FontRole::Small));
        p.drawText(QRectF(gutter.right - 48, middle - 9, 48, 18), Qt::AlignRight | Qt::AlignVCenter, busy);
    }
    p.setFont(fontOf(large ? FontRole::Rank : FontRole::Small));
    p.drawText(QPointF(gutter.left, middle + (large ? 4.5 : 4)), title);
}

// Names of the sub-lanes' kinds, or of their tracks where they are all that is known; each beside its first lane, where
// they fit.
void paintGutterLanes(const Frame& f, const RowPlace& row, double top)
{
    if (row.lanes == 0) return;
    const auto& lanes = f.scene.rankOf(row).lanes;
    f.p.setFont(fontOf(FontRole::Small));
    f.p.setPen(row.device ? f.theme.secondary : f.theme.faint);
    const Gutter gutter(f.scene.size.width());
    const QFontMetricsF metrics(f.p.font());
    double free = -1;
    for (int i = 0; i < row.lanes; ++i)
        if (i == 0 || streamName(lanes[static_cast<std::size_t>(row.firstLane + i)]) !=
                          streamName(lanes[static_cast<std::size_t>(row.firstLane + i - 1)]))
            if (row.laneHeight(i) >= RowPlace::foldedLane)
                paintFold(f, QPointF(12, top + row.lanesTop() - row.top + row.laneTop(i) + row.laneHeight(i) / 2 - 1),
                          !row.thin(i));
    for (int i = 0; i < row.lanes; ++i) {
        const auto at = static_cast<std::size_t>(row.firstLane + i);
        if (i > 0 && lanes[at].lane == lanes[at - 1].lane && (!row.device || lanes[at].track == lanes[at - 1].track))
            continue;
        const double y = top + row.lanesTop() - row.top + row.laneTop(i);
        if (y < free || row.laneTop(row.lanes) - row.laneTop(i) < 9 || row.thin(i)) continue;
        free = y + 11;
        QString text = qtText(traitsOf(lanes[at].lane).gutter);
        const double room = gutter.right - gutter.left - 2; // right of the triangle
        if (row.device && !lanes[at].track.empty() && !isBesideLane(lanes[at].lane)) {
            const auto busy = gpuBusyAt(f.scene.rankOf(row), at);
            const QString share = busy ? u"  "_s + busyText(*busy, 0) : QString();
            QString title = laneTitle({f.scene.rankOf(row).rank, lanes[at].lane, lanes[at].track});
            const double whole = room - metrics.horizontalAdvance(share);
            if (metrics.horizontalAdvance(title) > whole && title.startsWith("stream "_L1)) title.remove(0, 7);
            text = metrics.elidedText(title,
                                      // threads of one program differ in their number
                                      lanes[at].lane == Lane::Other ? Qt::ElideRight : Qt::ElideMiddle, whole) +
                   share;
        }
        f.p.drawText(QRectF(gutter.right - room, y - 2 + (row.device ? (row.lanePitch - 12) / 2 - 1 : 0), room, 14),
                     Qt::AlignRight | Qt::AlignVCenter, text);
    }
}

void paintGutterRow(const Frame& f, int index, double top)
{
    QPainter& p = f.p;
    const RowPlace& row = f.scene.place(index);
    if (row.kind == RowKind::Group) return paintGutterGroup(f, row, top);
    const PanelRank& rank = f.scene.rankOf(row);
    const Gutter gutter(f.scene.size.width());
    paintGutterLanes(f, row, top);
    const double height = row.height, middle = top + height / 2;
    if (index < f.scene.rows.pinned && height >= 11) { // a pin: head and needle
        p.setPen(QPen(f.theme.secondary, 1.2));
        p.setBrush(f.theme.secondary);
        const double y = middle + (height >= 32 ? -8 : -1);
        p.drawEllipse(QPointF(8, y - 2), 2.2, 2.2);
        p.drawLine(QPointF(8, y), QPointF(8, y + 5));
    }
    const double known = busyOf(f.scene.panel(row.panel), rank);
    if (row.kind == RowKind::Collapsed && f.scene.rows.metrics.gap >= 4) {
        p.setFont(fontOf(FontRole::Small));
        p.setPen(f.theme.secondary);
        p.drawText(QRectF(gutter.left, middle - 7, 80, 14), Qt::AlignLeft | Qt::AlignVCenter, rank.title);
        p.drawText(QRectF(gutter.right - 48, middle - 7, 48, 14), Qt::AlignRight | Qt::AlignVCenter,
                   busyText(known, 0));
        paintFold(f, QPointF(8, middle), false);
        return;
    }
    if (height < 11) { // as many names as fit below each other
        p.setFont(fontOf(FontRole::Small));
        p.setPen(f.theme.secondary);
        p.drawText(QPointF(gutter.left, middle + 4), rank.title);
        return;
    }
    const bool twoLines = height >= 32;
    if (index >= f.scene.rows.pinned)
        paintFold(f, QPointF(8, twoLines && rank.subtitle.isEmpty() && rank.replica < 0 ? middle - 7 : middle), true);
    else if (twoLines) // below the pin
        paintFold(f, QPointF(8, middle + 9), true);
    p.setFont(fontOf(height >= 16 ? FontRole::Rank : FontRole::Small));
    p.setPen(f.theme.text);
    const bool badge = index < f.scene.rows.pinned && f.scene.panels.size() > 1; // of which run
    const QString title =
        badge ? QString(QChar(static_cast<char16_t>(u'A' + row.panel))) + u" · "_s + rank.title : rank.title;
    p.drawText(QPointF(gutter.left, middle + (twoLines ? -2.5 : 4.5)), title);
    const double titleEnd = gutter.left + QFontMetricsF(p.font()).horizontalAdvance(title);
    const QString busy = busyText(known, 0);
    p.setFont(fontOf(height >= 16 ? FontRole::Body : FontRole::Small));
    if (titleEnd + 5 <= gutter.right - QFontMetricsF(p.font()).horizontalAdvance(busy)) // the name comes first
        p.drawText(QRectF(gutter.right - 48, middle - (twoLines ? 17 : 9), 48, 18), Qt::AlignRight | Qt::AlignVCenter,
                   busy);
    if (!twoLines) return;
    p.setFont(fontOf(FontRole::Small));
    p.setPen(f.theme.secondary);
    const QRectF groove(gutter.right - (gutter.width < gutterWidth ? 30 : 42), middle + 7,
                        gutter.width < gutterWidth ? 30 : 42, 4);
    const QFontMetricsF small(p.font());
    const double room = groove.left() - gutter.left - 4;
    QString subtitle = rank.subtitle;
    if (rank.replica >= 0) {
        const QString whole = u"replica %1 · %2"_s.arg(rank.replica).arg(rank.subtitle);
        subtitle = small.horizontalAdvance(whole) <= room ? whole : u"replica %1"_s.arg(rank.replica);
    }
    p.drawText(QPointF(gutter.left, middle + 11), gutter.width < gutterWidth || rank.replica >= 0
                                                      ? small.elidedText(subtitle, Qt::ElideRight, room)
                                                      : subtitle);
    p.setPen(Qt::NoPen);
    p.setBrush(f.theme.separator);
    p.drawRoundedRect(groove, 2, 2);
    const double share = std::isnan(known) ? 0 : std::clamp(known, 0.0, 1.0);
    if (share > 0) {
        p.setBrush(f.theme.accent);
        p.drawRoundedRect(QRectF(groove.left(), groove.top(), std::max(4.0, groove.width() * share), groove.height()),
                          2, 2);
    }
}

void paintHeader(const Frame& f, std::size_t index)
{
    QPainter& p = f.p;
    const TimelinePanel& panel = *f.scene.panels[index];
    const PanelPlace& place = f.scene.rows.panels[index];
    const double width = f.scene.size.width();
    const QRectF bar(0, rulerHeight + place.headerTop - f.scene.scroll, width, place.headerHeight);
    if (bar.bottom() < rulerHeight || bar.top() > f.scene.size.height()) return;
    p.fillRect(bar, f.theme.window);
    p.fillRect(QRectF(0, bar.bottom() - 1, width, 1), f.theme.separator);
    const bool isLast = index + 1 == f.scene.panels.size();
    const QRectF badge(16, bar.center().y() - 9, 18, 18);
    p.setPen(Qt::NoPen);
    p.setBrush(isLast ? f.theme.accent : f.theme.secondary);
    p.drawRoundedRect(badge, 4, 4);
    p.setFont(fontOf(FontRole::Strong));
    p.setPen(isLast ? f.theme.onAccent : f.theme.canvas);
    p.drawText(badge, Qt::AlignCenter, QString(QChar(static_cast<char16_t>(u'A' + index))));
    p.setPen(f.theme.text);
    const QFontMetricsF metrics(p.font()), plain(fontOf(FontRole::Body));
    const double room = width - 43 - 27;
    const QString time = durationText(panel.stepTime(), panel.units), bubble = percentText(panel.bubbleFraction);
    QStringList choices{u"%1     bubble %2"_s.arg(time, bubble), time};
    if (panel.timeline->hasMemory())
        choices.prepend(u"%1     bubble %2     peak %3"_s.arg(time, bubble, bytesText(panel.peak, panel.units)));
    if (panel.bubbles && panel.bubbles->busy == 0 && !hasOps(*panel.timeline)) choices = {u"ops unknown"_s};
    QString figures; // as many as leave the name whole
    for (const QString& some : choices) {
        figures = some;
        if (metrics.horizontalAdvance(panel.name) + 16 + plain.horizontalAdvance(some) <= room) break;
    }
    const double nameRoom = std::max(0.0, room - plain.horizontalAdvance(figures) - 16);
    p.drawText(QRectF(43, bar.top(), nameRoom, bar.height()), Qt::AlignVCenter | Qt::AlignLeft,
               metrics.elidedText(panel.name, Qt::ElideRight, nameRoom));
    p.setFont(fontOf(FontRole::Body));
    p.setPen(f.theme.secondary);
    p.drawText(QRectF(43, bar.top(), room, bar.height()), Qt::AlignVCenter | Qt::AlignRight, figures);
}

// Slices and gutter of some rows, cut to a part of the view.
void paintRows(const Frame& f, const std::vector<int>& rows, const QRectF& part, QImage* own)
{
    const QRectF plot = part.intersected(f.plot);
    f.p.save();
    f.p.setClipRect(plot);
    std::optional<RasterCanvas> canvas;
    if (own != nullptr) {
        const QRectF device(plot.left() * f.ratio, plot.top() * f.ratio, plot.width() * f.ratio,
                            plot.height() * f.ratio);
        canvas.emplace(*own, device.toAlignedRect(), f.theme, f.ratio);
    }
    paintSlices(f.p, f.scene, rows, f.theme, f.detail, f.ratio, canvas ? &*canvas : nullptr);
    f.p.restore();
    if (f.scene.columns) return;
    f.p.save();
    f.p.setClipRect(part);
    double free = -1e9; // y from which a gutter label fits
    for (const int row : rows) {
        const double top = f.scene.rowTop(row);
        if (top < free) continue;
        paintGutterRow(f, row, top);
        const double height = f.scene.place(row).height;
        free = top + (f.scene.place(row).kind == RowKind::Rank && height < 11 ? 12 : std::min(height, 11.0));
    }
    f.p.restore();
}

} // namespace

void paintFrame(QPainter& painter, const TimelineScene& scene, const Theme& theme, Detail detail, QImage* own)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setRenderHint(QPainter::TextAntialiasing);
    const double ratio = std::max(0.1, painter.device()->devicePixelRatioF() * painter.worldTransform().m11());
    const double gutter = gutterFor(scene.size.width());
    QRectF plot(gutter, rulerHeight, std::max(0.0, scene.size.width() - gutter), scene.rowsRect().height());
    if (scene.columns) {
        const QRectF strip(gutter + scene.columns->first / ratio, rulerHeight,
                           (scene.columns->second - scene.columns->first) / ratio, plot.height());
        plot = plot.intersected(strip);
        painter.setClipRect(plot);
    }
    const Frame f{painter, scene, theme, detail, ratio, plot};

    if (own == nullptr) painter.fillRect(QRectF(QPointF(0, 0), scene.size), theme.canvas); // else filled before
    paintGrid(f);
    const std::vector<int> visible = scene.visibleRows();
    const auto scrolled =
        std::partition_point(visible.begin(), visible.end(), [&](int row) { return row < scene.rows.pinned; });
    paintRows(f, {scrolled, visible.end()}, scene.scrolledRect(), own);
    painter.save();
    painter.setClipRect(scene.scrolledRect());
    for (std::size_t i = 0; i < scene.panels.size(); ++i) {
        if (scene.rows.panels[i].headerHeight > 0) paintHeader(f, i);
    }
    painter.restore();
    if (scene.rows.pinned > 0) {
        const QRectF kept = scene.pinnedRect();
        paintRows(f, {visible.begin(), scrolled}, kept, own);
        painter.fillRect(QRectF(0, kept.bottom() - 1, scene.size.width(), 1), theme.separator);
    }
    paintStepLines(f);
    painter.save();
    painter.setClipRect(scene.columns ? plot : scene.rowsRect());
    const double content = scene.rows.height, room = scene.rowsRect().height();
    if (content > room + 1) { // a thin mark showing the view's position in the rows
        const double height = std::max(18.0, room * room / content),
                     y = rulerHeight + (room - height) * scene.scroll / (content - room);
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.separator);
        painter.drawRoundedRect(QRectF(scene.size.width() - 7, y, 4, height), 2, 2);
    }
    painter.restore();
    if (!scene.columns) paintRuler(f);
    painter.restore();
}

void paintRulerOf(QPainter& painter, const TimelineScene& scene, const Theme& theme)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setRenderHint(QPainter::TextAntialiasing);
    paintRuler({painter, scene, theme, Detail::Exact, std::max(0.1, painter.device()->devicePixelRatioF()), {}});
    painter.restore();
}

} // namespace stagewright
