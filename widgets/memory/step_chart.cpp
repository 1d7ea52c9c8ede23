#include "widgets/memory/step_chart.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>
#include <QFontMetricsF>
#include <QPaintDevice>
#include <QPainterPath>

namespace stagewright {

const MemoryCurve& MemoryRow::total() const
{
    static const MemoryCurve none;
    return layers.empty() ? none : layers.back().curve;
}

const MemoryCurve* MemoryRow::activations() const
{
    return !layers.empty() && layers.front().category == MemoryCategory::Activations ? &layers.front().curve : nullptr;
}

Bytes MemoryRow::top() const
{
    return std::max({total().peak, ghost ? ghost->peak : 0, predicted ? predicted->peak : 0});
}

std::optional<Bytes> MemoryScene::budgetOf(int rankIndex) const
{
    return rankIndex >= 0 && static_cast<std::size_t>(rankIndex) < rankBudgets.size()
               ? rankBudgets[static_cast<std::size_t>(rankIndex)]
               : budget;
}

QRectF MemoryScene::plot(int row) const
{
    const double upper = headerHeight + row * rowHeight - scroll + 14;
    return {axis.left, upper, axis.width, std::max(1.0, rowHeight - 18)};
}

double MemoryScene::y(int row, Bytes bytes) const
{
    const QRectF rect = plot(row);
    return rect.bottom() - rect.height() * static_cast<double>(bytes) /
                               static_cast<double>(std::max<Bytes>(1, rows[static_cast<std::size_t>(row)].top));
}

double MemoryScene::yOf(int row, double value) const
{
    const QRectF rect = plot(row);
    const CounterCurve& counter = *rows[static_cast<std::size_t>(row)].row->counter;
    const double scale = counter.most - counter.least;
    return scale > 0 ? rect.bottom() - rect.height() * (value - counter.least) / scale : rect.center().y();
}

namespace {

NumberScale byteUnit(Bytes top, const Units& units)
{
    return units.memory != 1 ? NumberScale{static_cast<double>(units.memory), "microbatches"}
                             : byteScale(static_cast<double>(top));
}

constexpr double fewSteps = 0.5;      // changes per pixel column up to which each is drawn; above that, crowded
constexpr std::size_t dashable = 300; // changes in view up to which a dashed line follows each

// A curve's values in one pixel column.
struct Column {
    double x = 0;
    Bytes least = 0, most = 0, last = 0; // including what is held at its start
};

// The part of a curve in view, for painting with rectangles: they cost their pixels, where one antialiased outline of
// thousands of points costs seconds. Few changes are drawn one by one, at device pixels; if crowded, every pixel column
// keeps its smallest, largest and last value, found through the index.
class Steps {
public:
    Steps(const MemoryScene& scene, int row, const MemoryCurve& curve, double ratio)
        : m_scene(scene), m_row(row), m_curve(curve), m_ratio(ratio)
    {
        const Axis& axis = scene.axis;
        m_from = std::max<Nanos>(0, axis.range.begin);
        m_to = std::min(curve.end, axis.range.end + axis.range.duration() / 20);
        if (empty()) return;
        m_first = curve.after(m_from);
        m_last = curve.after(m_to);
    }
    bool empty() const { return m_to <= m_from || m_curve.points.empty(); }
    std::size_t changes() const { return m_last - m_first; }
    bool crowded() const { return static_cast<double>(changes()) > fewSteps * m_scene.axis.width; }

    // Fill up to the curve; then the curve itself if `line` is valid.
    void paint(QPainter& p, const QColor& fill, const QColor& line, double width) const
    {
        if (empty()) return;
        p.save();
        p.setRenderHint(QPainter::Antialiasing, false);
        const double bottom = m_scene.plot(m_row).bottom(), pen = std::max(1.0, std::round(width * m_ratio)) / m_ratio;
        QColor half = fill;
        half.setAlphaF(0.5F);
        if (crowded()) {
            eachColumn([&](const Column& column) {
                const double low = y(column.least), high = y(column.most);
                p.fillRect(QRectF(column.x, low, 1, bottom - low), fill);
                if (line.isValid()) {
                    p.fillRect(QRectF(column.x, high - pen / 2, 1, std::max(pen, low - high + pen)), line);
                } else if (low > high) {
                    p.fillRect(QRectF(column.x, high, 1, low - high), half); // now here, now there
                }
            });
        } else {
            eachStep([&](double x0, double x1, Bytes, Bytes value) {
                p.fillRect(QRectF(x0, y(value), x1 - x0, bottom - y(value)), fill);
            });
            if (line.isValid()) {
                eachStep([&](double x0, double x1, Bytes before, Bytes value) {
                    const double high = std::min(y(before), y(value)), low = std::max(y(before), y(value));
                    p.fillRect(QRectF(x0, y(value) - pen / 2, x1 - x0, pen), line);
                    if (low > high) p.fillRect(QRectF(x0 - pen / 2, high - pen / 2, pen, low - high + pen), line);
                });
            }
        }
        p.restore();
    }

    // Dashed: along each change, or column by column.
    void paintDashed(QPainter& p, const QPen& pen) const
    {
        if (empty()) return;
        if (changes() <= dashable) {
            QPolygonF outline;
            eachStep([&](double x0, double x1, Bytes before, Bytes value) {
                if (outline.isEmpty() || before != value)
                    outline << QPointF(x0, m_scene.y(m_row, before)) << QPointF(x0, m_scene.y(m_row, value));
                outline << QPointF(x1, m_scene.y(m_row, value));
            });
            p.setPen(pen);
            p.drawPolyline(outline);
            return;
        }
        int at = 0;
        const int on = static_cast<int>(std::lround(pen.dashPattern().value(0))),
                  off = static_cast<int>(std::lround(pen.dashPattern().value(1)));
        eachColumn([&](const Column& column) {
            if (at++ % (on + off) >= on) return;
            p.fillRect(QRectF(column.x, y(column.most), 1, std::max(pen.widthF(), y(column.least) - y(column.most))),
                       pen.color());
        });
    }

private:
    double snap(double v) const { return std::round(v * m_ratio) / m_ratio; }
    double y(Bytes value) const { return snap(m_scene.y(m_row, value)); }

    template <typename Paint>
    void eachStep(Paint paint) const // x0, x1, value before, value
    {
        const Axis& axis = m_scene.axis;
        Bytes before = m_curve.at(m_from);
        double x = snap(axis.toX(m_from));
        const double end = snap(axis.toX(m_to));
        const auto next = [&](std::size_t i) { return i < m_last ? snap(axis.toX(m_curve.points[i].time)) : end; };
        if (next(m_first) > x) paint(x, next(m_first), before, before);
        for (std::size_t i = m_first; i < m_last; ++i) {
            const Bytes value = m_curve.points[i].inUse;
            paint(next(i), next(i + 1), before, value);
            before = value;
        }
    }
    template <typename Paint>
    void eachColumn(Paint paint) const
    {
        const Axis& axis = m_scene.axis;
        Column column;
        column.last = m_curve.at(m_from);
        std::size_t i = m_first;
        const double end = axis.toX(m_to);
        for (column.x = std::floor(axis.toX(m_from)); column.x < end; column.x += 1) {
            const std::size_t next = std::clamp(m_curve.after(axis.toTime(column.x + 1) - 1), i, m_last);
            Extremes inside = m_curve.over(i, next);
            inside.add(static_cast<double>(column.last));
            if (next > i) column.last = m_curve.points[next - 1].inUse;
            column.least = static_cast<Bytes>(inside.least);
            column.most = static_cast<Bytes>(inside.most);
            paint(column);
            i = next;
        }
    }

    const MemoryScene& m_scene;
    int m_row;
    const MemoryCurve& m_curve;
    double m_ratio;
    Nanos m_from = 0, m_to = 0;
    std::size_t m_first = 0, m_last = 0;
};

// A line through the samples; if crowded, a bar from minimum to maximum in every pixel column, each touching the
// previous one.
void paintCounter(QPainter& p, const MemoryScene& scene, int row, const CounterCurve& curve, const QColor& colour)
{
    const Axis& axis = scene.axis;
    const auto& samples = curve.samples;
    const auto get = [&](std::size_t i) { return samples[i].value; };
    const auto byTime = [](const CounterSample& s, Nanos t) { return s.time < t; };
    const auto before = [&](Nanos t) {
        return static_cast<std::size_t>(std::lower_bound(samples.begin(), samples.end(), t, byTime) - samples.begin());
    };
    std::size_t first = before(axis.range.begin), last = before(axis.range.end);
    if (static_cast<double>(last - first) <= fewSteps * axis.width) {
        first -= first > 0 ? 1 : 0; // the lines that enter and leave the view
        last += last < samples.size() ? 1 : 0;
        QPolygonF line;
        // a value stays until the next one, as the card says
        for (std::size_t i = first; i < last; ++i) {
            if (!std::isfinite(samples[i].value)) continue;
            const QPointF at(axis.toX(samples[i].time), scene.yOf(row, samples[i].value));
            if (!line.isEmpty()) line << QPointF(at.x(), line.back().y());
            line << at;
        }
        if (last == samples.size() && !line.isEmpty()) line << QPointF(axis.toX(axis.range.end), line.back().y());
        p.setBrush(Qt::NoBrush);
        p.setPen(QPen(colour, 1.3, Qt::SolidLine, Qt::FlatCap, Qt::BevelJoin));
        p.drawPolyline(line);
        return;
    }
    double carried = first > 0 ? samples[first - 1].value : std::nan("");
    std::size_t i = first;
    for (double x = axis.left; x < axis.left + axis.width && i < samples.size(); x += 1) {
        const std::size_t next = std::max(i, before(axis.toTime(x + 1)));
        Extremes inside = curve.index.over(i, next, get);
        if (next > i) {
            if (std::isfinite(carried)) inside.add(carried);
            carried = samples[next - 1].value;
            i = next;
        }
        if (inside.empty()) continue;
        const double high = scene.yOf(row, inside.most), low = scene.yOf(row, inside.least);
        p.fillRect(QRectF(x, high - 0.65, 1, std::max(1.3, low - high + 1.3)), colour);
    }
}

QPen dashedPen(const QColor& colour, double width, double on, double off)
{
    QPen pen(colour, width);
    pen.setDashPattern({on, off});
    pen.setCapStyle(Qt::FlatCap);
    return pen;
}

void paintGutter(QPainter& p, const MemoryScene& scene, const Theme& theme, int index, bool warns)
{
    const MemoryPlace& place = scene.rows[static_cast<std::size_t>(index)];
    double middle = scene.plot(index).center().y() - 4;
    p.setFont(fontOf(FontRole::Rank));
    p.setPen(theme.text);
    const QFontMetricsF title(p.font());
    const bool narrow = scene.axis.left < gutterWidth;
    const double left = narrow ? 14 : 16, room = narrow ? 60 : 82;
    const QString word = place.title.section(u' ', 0, 0);
    constexpr double line = 13; // of what there is room for
    const double lines = scene.rowHeight / line - 0.5;
    const bool joined = !place.note.isEmpty() && lines < 4; // the note behind the subtitle
    // on two lines
    if (lines >= (place.note.isEmpty() || joined ? 3 : 4) && word.size() < place.title.size() &&
        title.horizontalAdvance(place.title) > room && title.horizontalAdvance(word) <= room) {
        p.drawText(QPointF(left, middle - 8), word);
        middle += 7;
        p.drawText(QPointF(left, middle), title.elidedText(place.title.mid(word.size() + 1), Qt::ElideMiddle, room));
    } else {
        const bool small = title.horizontalAdvance(place.title) > room; // smaller before it is cut
        if (small) p.setFont(fontOf(FontRole::Small));
        const double most = small ? scene.axis.left - left - 20 : room;
        p.drawText(QPointF(left, middle), QFontMetricsF(p.font()).elidedText(place.title, Qt::ElideMiddle, most));
    }
    p.setFont(fontOf(FontRole::Small));
    p.setPen(warns ? theme.critical : theme.secondary);
    // one form for all charts of figures
    const auto haveRoom = [&, metrics = QFontMetricsF(p.font())](QString MemoryPlace::*text, double beside) {
        return std::all_of(scene.rows.begin(), scene.rows.end(), [&](const MemoryPlace& one) {
            return one.figure.isEmpty() || left + metrics.horizontalAdvance(one.*text) <= scene.axis.left - beside;
        });
    };
    constexpr double axisLabels = 30;
    const QString below = place.figure.isEmpty() || haveRoom(&MemoryPlace::subtitle, axisLabels) ? place.subtitle
                          : haveRoom(&MemoryPlace::figure, 16)
                              ? place.figure
                              : place.figure.section(u' ', 0, 0); // the title has the unit
    p.drawText(QPointF(left, middle + 15), joined ? below + u" · "_s + place.note : below);
    if (place.note.isEmpty() || joined) return;
    p.setPen(theme.faint);
    p.drawText(QPointF(left, middle + 28), place.note);
}

// Names of a stack's layers where they are thick enough, so that colour is not the only cue.
void paintLayerNames(QPainter& p, const MemoryScene& scene, const Theme& theme, int index)
{
    const MemoryRow& row = *scene.rows[static_cast<std::size_t>(index)].row;
    p.setFont(fontOf(FontRole::Small));
    const QFontMetricsF metrics(p.font());
    for (std::size_t k = 0; k < row.layers.size(); ++k) {
        const QString name = titleOf(row.layers[k].category);
        const double width = metrics.horizontalAdvance(name) + 8;
        for (double x = scene.axis.left + 4; x + width < scene.axis.left + scene.axis.width; x += width) {
            double upper = -1e9, lower = 1e9; // the free space over the whole name
            for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
                const Nanos t = scene.axis.toTime(x + share * width);
                if (t < 0 || t >= row.total().end) upper = 1e9;
                upper = std::max(upper, scene.y(index, row.layers[k].curve.at(t)));
                lower = std::min(lower,
                                 k == 0 ? scene.plot(index).bottom() : scene.y(index, row.layers[k - 1].curve.at(t)));
            }
            if (lower - upper < 13) continue;
            p.setPen(theme.text);
            p.drawText(QPointF(x + 4, (lower + upper) / 2 + 4), name);
            break;
        }
    }
}

void paintBudget(QPainter& p, const MemoryScene& scene, const Theme& theme, int index, double right)
{
    const MemoryPlace& place = scene.rows[static_cast<std::size_t>(index)];
    const MemoryCurve* activations = place.row->activations();
    const std::optional<Bytes> budget = scene.budgetOf(place.row->rankIndex);
    if (!budget || activations == nullptr || *budget > place.top) return;
    p.setPen(dashedPen(theme.critical, 1.2, 5, 2.5));
    const double y = scene.y(index, *budget);
    p.drawLine(QPointF(scene.axis.left, y), QPointF(right, y));
    const auto over = activations->firstOver(*budget);
    if (!over || *over < scene.axis.range.begin || *over > scene.axis.range.end) return;
    const double x = scene.axis.toX(*over); // a flag where it is first exceeded
    QPainterPath flag;
    flag.moveTo(x, y);
    flag.lineTo(x - 5, y - 9);
    flag.lineTo(x + 5, y - 9);
    flag.closeSubpath();
    p.setPen(QPen(theme.canvas, 1.2));
    p.setBrush(theme.critical);
    p.drawPath(flag);
}

void paintTicks(QPainter& p, const MemoryScene& scene, const Theme& theme, int index, double right)
{
    const MemoryPlace& place = scene.rows[static_cast<std::size_t>(index)];
    const QRectF plot = scene.plot(index);
    p.setFont(fontOf(FontRole::Small));
    const auto label = [&](double y, const QString& text, bool base) {
        p.fillRect(QRectF(plot.left(), y, right - plot.left(), 1), base ? theme.separator : theme.grid);
        p.setPen(theme.faint);
        p.drawText(QRectF(scene.axis.left - 64, y - (base ? 12 : 8), 58, 16), Qt::AlignRight | Qt::AlignVCenter, text);
    };
    if (place.row->counter) {
        const CounterCurve& counter = *place.row->counter;
        const double factor = counterUnit(counter.most, counter.unit).factor;
        // round in the unit shown
        for (const double value : counterTicks(counter.least / factor, counter.most / factor, plot.height(), 18)) {
            int decimals = 0;
            for (double scaled = std::abs(value); decimals < 3 && std::abs(scaled - std::round(scaled)) > 1e-6;
                 scaled *= 10)
                ++decimals;
            label(std::round(scene.yOf(index, value * factor)), fixed(value, decimals),
                  value * factor == counter.least);
        }
        return;
    }
    const NumberScale unit = byteUnit(place.top, scene.units);
    const std::vector<Bytes> ticks = memoryTicks(place.top, plot.height(), 14, scene.units);
    // of a low chart the upper one: the zero would touch it
    const bool low = ticks.size() == 2 && scene.y(index, 0) - scene.y(index, ticks.back()) < 18;
    for (const Bytes tick : ticks) {
        const double value = static_cast<double>(tick) / unit.size;
        if (tick != 0 && value < 0.005) continue; // nothing is held: no second zero
        label(std::round(scene.y(index, tick)),
              low && tick == 0 ? QString()
                               : fixed(value, value == std::floor(value)             ? 0
                                              : value * 10 == std::floor(value * 10) ? 1
                                                                                     : 2),
              tick == 0);
    }
}

void paintDot(QPainter& p, const MemoryScene& scene, const Theme& theme, QPointF at, bool hovered)
{
    if (at.x() < scene.axis.left - 1) return;
    p.setPen(QPen(hovered ? theme.memoryLine : theme.canvas, 1.5));
    p.setBrush(hovered ? theme.canvas : theme.memoryLine);
    p.drawEllipse(at, hovered ? 3 : 4, hovered ? 3 : 4);
}

void paintCurves(QPainter& p, const MemoryScene& scene, const Theme& theme, int index, double right)
{
    const MemoryRow& row = *scene.rows[static_cast<std::size_t>(index)].row;
    const QRectF plot = scene.plot(index);
    const double ratio = std::max(0.1, p.device()->devicePixelRatioF() * p.worldTransform().m11());
    for (std::size_t k = row.layers.size(); k-- > 0;) { // the highest first: the ones below cover it
        const bool isTotal = k + 1 == row.layers.size();
        const Steps steps(scene, index, row.layers[k].curve, ratio);
        const QColor edge = isTotal ? theme.memoryLine : steps.crowded() ? QColor() : theme.canvas;
        steps.paint(p, colourOf(row.layers[k].category, theme), edge, isTotal ? 1.5 : 1);
    }
    if (row.layers.size() > 1) paintLayerNames(p, scene, theme, index);
    p.setBrush(Qt::NoBrush);
    if (row.ghost) Steps(scene, index, *row.ghost, ratio).paintDashed(p, dashedPen(theme.ghost, 1.2, 4, 2.5));
    if (row.predicted) Steps(scene, index, *row.predicted, ratio).paintDashed(p, dashedPen(theme.ghost, 1.2, 2, 2));
    paintBudget(p, scene, theme, index, right);
    const MemoryCurve& total = row.total();
    const bool peakInView =
        total.peak > 0 && total.peakTime <= scene.axis.range.end && total.peakTime >= scene.axis.range.begin;
    if (peakInView)
        paintDot(p, scene, theme, QPointF(scene.axis.toX(total.peakTime), scene.y(index, total.peak)), false);
    if (scene.microbatch >= 0 && row.holdings) { // where the hovered microbatch holds memory: a bar on the base line
        p.setPen(Qt::NoPen);
        for (const Holding& one : row.holdings->of(scene.microbatch, scene.step)) {
            const double x0 = std::max(plot.left(), scene.axis.toX(one.since - scene.origin)),
                         x1 = std::min(right, scene.axis.toX(one.until - scene.origin));
            if (x1 <= plot.left() || x0 >= right) continue;
            p.fillRect(QRectF(x0, plot.bottom() - 3, std::max(1.0, x1 - x0), 4), theme.text);
        }
    }
    if (scene.hoverTime && *scene.hoverTime >= 0 && *scene.hoverTime < total.end && !row.layers.empty()) {
        paintDot(p, scene, theme, QPointF(scene.axis.toX(*scene.hoverTime), scene.y(index, total.at(*scene.hoverTime))),
                 true);
    }
}

double subtitleLeft(const MemoryScene& scene)
{
    return std::max(scene.axis.left, 32 + QFontMetricsF(fontOf(FontRole::Strong)).horizontalAdvance(scene.title));
}

void paintRow(QPainter& p, const MemoryScene& scene, const Theme& theme, int index)
{
    const MemoryPlace& place = scene.rows[static_cast<std::size_t>(index)];
    const QRectF plot = scene.plot(index);
    const double right = scene.axis.left + scene.axis.width + rightMargin / 2;
    paintTicks(p, scene, theme, index, right);
    p.save();
    p.setClipRect(QRectF(plot.left() - 1, scene.headerHeight, right - plot.left() + 2, scene.size.height()),
                  Qt::IntersectClip);
    if (place.row->counter) {
        const CounterCurve& counter = *place.row->counter;
        paintCounter(p, scene, index, counter, theme.memoryLine);
        if (scene.hoverTime) {
            if (const auto value = counter.at(*scene.hoverTime))
                paintDot(p, scene, theme, QPointF(scene.axis.toX(*scene.hoverTime), scene.yOf(index, *value)), true);
        }
    } else {
        paintCurves(p, scene, theme, index, right);
    }
    p.restore();
    const MemoryCurve* activations = place.row->activations();
    const std::optional<Bytes> limit = scene.budgetOf(place.row->rankIndex);
    paintGutter(p, scene, theme, index, limit && activations != nullptr && activations->peak > *limit);
}

} // namespace

double headingHeight(const MemoryScene& scene)
{
    const QRectF room(0, 0, std::max(1.0, scene.size.width() - subtitleLeft(scene) - 8), 1e4);
    const QFontMetricsF metrics(fontOf(FontRole::Small));
    return std::ceil(metrics.boundingRect(room, Qt::TextWordWrap, scene.subtitle).height()) + 12;
}

void paintMemory(QPainter& p, const MemoryScene& scene, const Theme& theme)
{
    p.save();
    p.setRenderHint(QPainter::Antialiasing);
    p.fillRect(QRectF(QPointF(0, 0), scene.size), theme.canvas);
    if (!scene.axis.degenerate()) {
        p.save();
        p.setClipRect(
            QRectF(0, scene.headerHeight, scene.size.width(), std::max(0.0, scene.size.height() - scene.headerHeight)),
            Qt::IntersectClip);
        for (int i = 0; i < static_cast<int>(scene.rows.size()); ++i) {
            const QRectF plot = scene.plot(i);
            if (plot.bottom() + 4 >= scene.headerHeight && plot.top() - 14 <= scene.size.height())
                paintRow(p, scene, theme, i);
        }
        const double right = scene.axis.left + scene.axis.width + rightMargin;
        if (scene.range) {
            QColor veil = theme.canvas;
            veil.setAlphaF(0.65F);
            const double x0 = std::clamp(scene.axis.toX(scene.range->begin), scene.axis.left, right);
            const double x1 = std::clamp(scene.axis.toX(scene.range->end), scene.axis.left, right);
            p.fillRect(QRectF(scene.axis.left, scene.headerHeight, x0 - scene.axis.left, scene.size.height()), veil);
            p.fillRect(QRectF(x1, scene.headerHeight, right - x1, scene.size.height()), veil);
            p.setPen(QPen(theme.accent, 1));
            for (const double x : {x0, x1})
                if (x > scene.axis.left && x < right)
                    p.drawLine(QPointF(x, scene.headerHeight), QPointF(x, scene.size.height()));
        }
        if (scene.hoverTime) {
            const double x = scene.axis.toX(*scene.hoverTime);
            if (x >= scene.axis.left && x <= right) {
                p.setPen(dashedPen(theme.text, 1, 3, 3));
                p.drawLine(QPointF(x, scene.headerHeight), QPointF(x, scene.size.height()));
            }
        }
        p.restore();
    }
    p.fillRect(QRectF(0, 0, scene.size.width(), scene.headerHeight), theme.canvas);
    p.fillRect(QRectF(0, 0, scene.size.width(), 1), theme.separator);
    p.fillRect(QRectF(0, scene.headerHeight - 1, scene.size.width(), 1), theme.separator);
    p.setFont(fontOf(FontRole::Strong));
    p.setPen(theme.text);
    const double left = subtitleLeft(scene), room = std::max(0.0, scene.size.width() - left - 8);
    p.drawText(QRectF(16, 0, left - 16, scene.headerHeight), Qt::AlignVCenter | Qt::AlignLeft, scene.title);
    p.setFont(fontOf(FontRole::Small));
    p.setPen(theme.secondary);
    const bool whole = headingHeight(scene) <= scene.headerHeight;
    p.drawText(QRectF(left, 0, room, scene.headerHeight),
               static_cast<int>(Qt::AlignVCenter | Qt::AlignLeft) | (whole ? Qt::TextWordWrap : 0),
               whole ? scene.subtitle : QFontMetricsF(p.font()).elidedText(scene.subtitle, Qt::ElideRight, room));
    p.restore();
}

} // namespace stagewright
