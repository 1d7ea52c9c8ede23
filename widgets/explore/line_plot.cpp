#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>

#include "widgets/explore/survey_plots.h"
#include "widgets/explore/survey_text.h"
#include "widgets/literals.h"

namespace stagewright {

namespace {

constexpr Qt::PenStyle dashes[] = {Qt::SolidLine, Qt::DashLine, Qt::DashDotLine, Qt::DotLine};

} // namespace

LinePlot::LinePlot(QWidget* parent) : ThemedWidget(parent)
{
    setObjectName(u"linePlot"_s);
    setAccessibleName(u"Ticked schedules over one parameter"_s);
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
}

void LinePlot::setPicture(std::shared_ptr<const LinesPicture> picture, ExploreMeasure measure)
{
    m_picture = std::move(picture);
    m_measure = measure;
    if (!m_picture || m_schedule >= m_picture->schedules.size()) m_schedule = 0;
    if (!m_picture || m_value >= m_picture->values.size()) m_value = 0;
    update();
}

PlotFrame LinePlot::frameIn(const QRectF& rect) const
{
    PlotFrame frame;
    frame.area = PlotFrame::areaIn(rect).adjusted(0, 0, -96, 0); // names at the ends of the lines
    frame.y.title = qtText(titleOf(m_measure));
    if (m_measure != ExploreMeasure::StepTime)
        frame.y.text = [](double value, double step) { return percentText(value, step < 0.01 ? 1 : 0); };
    if (!m_picture || m_picture->values.empty()) return frame;
    frame.x.title = titleOf(m_picture->across);
    frame.x.least = m_picture->values.front();
    frame.x.most = m_picture->values.back();
    frame.y.least = 1e300;
    frame.y.most = -1e300;
    for (const SweepRow& row : m_picture->rows)
        if (row.good()) {
            frame.y.least = std::min(frame.y.least, measureOf(row, m_measure));
            frame.y.most = std::max(frame.y.most, measureOf(row, m_measure));
        }
    if (frame.y.least > frame.y.most) frame.y = {0, 1, frame.y.title, frame.y.text};
    frame.y.least = std::min(0.0, frame.y.least);
    widen(frame.y, 0.04);
    frame.y.least = std::max(frame.y.least, -0.0);
    widen(frame.x, 0.02);
    return frame;
}

QPointF LinePlot::placeOf(std::size_t schedule, std::size_t value) const
{
    return frameIn(rect()).place(m_picture->values[value], measureOf(m_picture->row(schedule, value), m_measure));
}

void LinePlot::paintTo(QPainter& p, const QRectF& rect, const Theme& theme) const
{
    p.setRenderHint(QPainter::Antialiasing);
    const PlotFrame frame = frameIn(rect);
    frame.paint(p, rect, theme);
    if (!m_picture || m_picture->schedules.empty()) {
        p.setPen(theme.secondary);
        p.drawText(frame.area, Qt::AlignCenter, u"tick schedules in the table"_s);
        return;
    }
    struct End {
        QPointF at;
        std::size_t schedule;
        double y; // of its name
    };
    std::vector<End> ends;
    for (std::size_t s = 0; s < m_picture->schedules.size(); ++s) {
        const QColor colour = seriesColour(s, theme);
        p.setPen(QPen(colour, 1.75, dashes[s / 2 % std::size(dashes)]));
        p.setBrush(Qt::NoBrush);
        QPolygonF line;
        QPointF last;
        for (std::size_t i = 0; i < m_picture->values.size(); ++i) {
            const SweepRow& row = m_picture->row(s, i);
            if (!row.good()) { // an unsupported shape interrupts the line
                p.drawPolyline(line);
                line.clear();
                continue;
            }
            last = frame.place(m_picture->values[i], measureOf(row, m_measure));
            line << last;
        }
        p.drawPolyline(line);
        p.setPen(QPen(colour, 1));
        p.setBrush(colour);
        for (std::size_t i = 0; i < m_picture->values.size(); ++i)
            if (const SweepRow& row = m_picture->row(s, i); row.good()) {
                const QPointF at = frame.place(m_picture->values[i], measureOf(row, m_measure));
                p.setBrush(overCap(row, m_picture->question.with(m_picture->across, m_picture->values[i])).empty()
                               ? QBrush(colour)
                               : QBrush(theme.canvas));
                p.drawEllipse(at, 2.5, 2.5);
            }
        if (!last.isNull()) ends.push_back({last, s, last.y()});
    }
    // Names at the right, in the order of the lines' ends, with a leader line where a name had to move.
    constexpr double high = 14;
    std::stable_sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.at.y() < b.at.y(); });
    for (std::size_t i = 1; i < ends.size(); ++i) ends[i].y = std::max(ends[i].y, ends[i - 1].y + high);
    double lowest = rect.bottom() - high;
    for (std::size_t i = ends.size(); i-- > 0; lowest = ends[i].y - high) ends[i].y = std::min(ends[i].y, lowest);
    p.setFont(fontOf(FontRole::Small));
    const QFontMetricsF metrics(p.font());
    QColor ground = theme.canvas;
    ground.setAlphaF(0.85f);
    for (const End& end : ends) {
        const QString name = scheduleTitle(m_picture->schedules[end.schedule]);
        const double wide = metrics.horizontalAdvance(name) + 2,
                     left = std::min(frame.area.right() + 14, rect.right() - wide - 2);
        p.setPen(QPen(seriesColour(end.schedule, theme), 1));
        if (left > end.at.x() + 4) p.drawLine(end.at, QPointF(left - 3, end.y));
        const QRectF label(left, end.y - high / 2, wide, high);
        p.fillRect(label, ground);
        p.setPen(theme.text);
        p.drawText(label, Qt::AlignLeft | Qt::AlignVCenter, name);
    }
}

void LinePlot::paintEvent(QPaintEvent*)
{
    QPainter p(this);
    p.fillRect(rect(), m_theme->canvas);
    paintTo(p, rect(), *m_theme);
    if (m_picture && !m_picture->schedules.empty() && m_hasCursor && m_picture->row(m_schedule, m_value).good()) {
        p.setBrush(Qt::NoBrush);
        p.setPen(QPen(m_theme->text, 1.75));
        p.drawEllipse(placeOf(m_schedule, m_value), 6, 6);
        const SweepRow& row = m_picture->row(m_schedule, m_value);
        p.setFont(fontOf(FontRole::Small));
        p.setPen(m_theme->text);
        p.drawText(QRectF(190, 4, width() - 200.0, 18), Qt::AlignRight | Qt::AlignVCenter,
                   u"%1 at %2: %3, peak %4"_s.arg(scheduleTitle(m_picture->schedules[m_schedule]),
                                                  qtText(valueText(m_picture->across, m_picture->values[m_value])),
                                                  qtText(measureText(measureOf(row, m_measure), m_measure)),
                                                  fixed(row.memoryValue(row.peak()), 1)));
    }
    paintFocus(p);
}

void LinePlot::mouseMoveEvent(QMouseEvent* event)
{
    if (!m_picture) return;
    double nearest = 20 * 20;
    bool found = false;
    for (std::size_t s = 0; s < m_picture->schedules.size(); ++s)
        for (std::size_t i = 0; i < m_picture->values.size(); ++i) {
            if (!m_picture->row(s, i).good()) continue;
            const QPointF away = placeOf(s, i) - event->position();
            if (const double square = QPointF::dotProduct(away, away); square < nearest) {
                nearest = square;
                m_schedule = s;
                m_value = i;
                found = true;
            }
        }
    m_hasCursor = found || hasFocus();
    update();
}

void LinePlot::mousePressEvent(QMouseEvent* event) { mouseMoveEvent(event); }

void LinePlot::mouseDoubleClickEvent(QMouseEvent* event)
{
    mouseMoveEvent(event);
    activate();
}

void LinePlot::activate()
{
    if (m_picture && !m_picture->schedules.empty() && m_hasCursor && m_picture->row(m_schedule, m_value).good())
        emit pointActivated(m_picture->row(m_schedule, m_value).point);
}

void LinePlot::keyPressEvent(QKeyEvent* event)
{
    if (!isPlotKey(event->key()) || !m_picture || m_picture->schedules.empty()) return QWidget::keyPressEvent(event);
    const std::size_t lastValue = m_picture->values.size() - 1;
    const std::size_t lastSchedule = m_picture->schedules.size() - 1;
    if (!m_hasCursor) {
        m_hasCursor = true;
    } else {
        switch (event->key()) {
        case Qt::Key_Left: m_value -= m_value > 0 ? 1 : 0; break;
        case Qt::Key_Right: m_value = std::min(m_value + 1, lastValue); break;
        case Qt::Key_Up: m_schedule -= m_schedule > 0 ? 1 : 0; break;
        case Qt::Key_Down: m_schedule = std::min(m_schedule + 1, lastSchedule); break;
        default: activate(); return;
        }
    }
    update();
}

bool LinePlot::event(QEvent* event)
{
    if (event->type() == QEvent::ShortcutOverride && isPlotKey(static_cast<QKeyEvent*>(event)->key())) {
        event->accept();
        return true;
    }
    return QWidget::event(event);
}

} // namespace stagewright
