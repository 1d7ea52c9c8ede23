#include "widgets/explore/pareto_plot.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QLineF>
#include <QMouseEvent>
#include <QPainterPath>
#include <QToolTip>

#include "schedules/survey/memory.h"
#include "widgets/explore/survey_text.h"
#include "widgets/literals.h"

namespace stagewright {

namespace {

constexpr double roomy = 600; // pixels: a narrower plot names one schedule a point
constexpr double underWork = 18;

bool isPointKey(int key) { return isPlotKey(key) || key == Qt::Key_Home || key == Qt::Key_End; }

} // namespace

ParetoPlot::ParetoPlot(QWidget* parent) : ThemedWidget(parent)
{
    setObjectName(u"paretoPlot"_s);
    setAccessibleName(u"Schedules by peak memory and step time"_s);
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
}

void ParetoPlot::setRows(SweepRows rows, const ExploreQuestion& question, ExploreMeasure measure)
{
    m_rows = std::move(rows);
    m_question = question;
    m_measure = measure;
    m_hovered = -1;
    if (!m_rows || m_selected >= static_cast<int>(m_rows->size())) m_selected = -1;
    makeMarks();
    update();
}

void ParetoPlot::setBounds(std::vector<ExploreBound> bounds)
{
    m_bounds = std::move(bounds);
    update();
}

void ParetoPlot::setSelected(int row)
{
    if (m_selected == row) return;
    m_selected = row;
    update();
}

void ParetoPlot::makeMarks()
{
    m_marks.clear();
    m_frontier.clear();
    if (!m_rows) return;
    const auto& rows = *m_rows;
    m_frontier = memoryFrontier(rows, m_question);
    std::vector<int> order;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].good()) order.push_back(static_cast<int>(i));
    const auto xOf = [&](int i) {
        return rows[static_cast<std::size_t>(i)].memoryValue(rows[static_cast<std::size_t>(i)].peak());
    };
    const auto yOf = [&](int i) { return measureOf(rows[static_cast<std::size_t>(i)], m_measure); };
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return xOf(a) != xOf(b) ? xOf(a) < xOf(b) : yOf(a) < yOf(b); });
    for (const int i : order) {
        const SweepRow& row = rows[static_cast<std::size_t>(i)];
        if (m_marks.empty() || m_marks.back().x != xOf(i) || std::abs(m_marks.back().y - yOf(i)) > 1e-9) {
            Mark mark;
            mark.x = xOf(i);
            mark.y = yOf(i);
            mark.over = !overCap(row, m_question).empty();
            mark.stale = mark.copies = true;
            m_marks.push_back(mark);
        }
        Mark& mark = m_marks.back();
        mark.rows.push_back(i);
        mark.stale = mark.stale && !row.synchronous;
        mark.copies = mark.copies && row.copies;
        if (std::find(m_frontier.begin(), m_frontier.end(), static_cast<std::size_t>(i)) != m_frontier.end())
            mark.onFrontier = true;
    }
}

PlotFrame ParetoPlot::frameIn(const QRectF& rect) const
{
    PlotFrame frame;
    frame.area = PlotFrame::areaIn(rect);
    frame.area.setTop(frame.area.top() + 17 * (static_cast<double>(legendIn(rect.width()).size()) - 1));
    frame.x.title = u"Largest activation peak of a rank, microbatches on 1/p of the model"_s;
    frame.y.title = qtText(titleOf(m_measure));
    if (m_measure != ExploreMeasure::StepTime)
        frame.y.text = [](double value, double step) { return percentText(value, step < 0.01 ? 1 : 0); };
    if (m_marks.empty()) return frame;
    frame.x.least = frame.y.least = 1e300;
    frame.x.most = frame.y.most = -1e300;
    for (const Mark& mark : m_marks) {
        frame.x.least = std::min(frame.x.least, mark.x);
        frame.x.most = std::max(frame.x.most, mark.x);
        frame.y.least = std::min(frame.y.least, mark.y);
        frame.y.most = std::max(frame.y.most, mark.y);
    }
    if (m_measure == ExploreMeasure::StepTime)
        frame.y.least = std::min(frame.y.least, workBound(m_question));
    else
        frame.y.least = std::min(0.0, frame.y.least);
    if (m_question.cap > 0) frame.x.most = std::max(frame.x.most, m_question.cap);
    frame.x.least = std::min(frame.x.least, 0.0);
    widen(frame.x, 0.05);
    widen(frame.y, 0.06);
    frame.x.least = std::max(frame.x.least, -0.02 * frame.x.most);
    // its words are under the line of the work
    if (m_measure == ExploreMeasure::StepTime && frame.area.height() > 3 * underWork) {
        const double work = workBound(m_question);
        frame.y.least =
            std::min(frame.y.least, work - (frame.y.most - work) * underWork / (frame.area.height() - underWork));
    }
    return frame;
}

QString ParetoPlot::nameOf(const Mark& mark, int most) const
{
    QStringList names;
    for (const int row : mark.rows) {
        if (names.size() == most) break;
        names << scheduleTitle((*m_rows)[static_cast<std::size_t>(row)].schedule());
    }
    QString text = names.join(u", "_s);
    if (static_cast<int>(mark.rows.size()) > most) text += u" +%1"_s.arg(static_cast<int>(mark.rows.size()) - most);
    return text;
}

QString ParetoPlot::tipOf(const Mark& mark) const
{
    QString text = nameOf(mark, 6) + u"\n"_s +
                   u"peak %1 microbatches, %2: %3"_s.arg(fixed(mark.x, 2), qtText(titleOf(m_measure)).toLower(),
                                                         qtText(measureText(mark.y, m_measure)));
    const SweepRow& row = (*m_rows)[static_cast<std::size_t>(mark.rows.front())];
    if (const QString over = qtText(overCap(row, m_question)); !over.isEmpty()) text += u"\n"_s + over;
    if (mark.stale) text += u"\n"_s + u"stale weights: training results differ"_s;
    if (mark.copies) text += u"\n"_s + u"each stage's weights are held twice"_s;
    if (mark.onFrontier) text += u"\n"_s + u"on the frontier: no schedule this fast needs less memory"_s;
    return text;
}

QPointF ParetoPlot::placeOf(int row) const
{
    const int mark = markOf(row);
    if (mark < 0) return {-1, -1};
    const Mark& at = m_marks[static_cast<std::size_t>(mark)];
    return frameIn(rect()).place(at.x, at.y);
}

int ParetoPlot::markOf(int row) const
{
    for (std::size_t i = 0; i < m_marks.size(); ++i)
        if (std::find(m_marks[i].rows.begin(), m_marks[i].rows.end(), row) != m_marks[i].rows.end())
            return static_cast<int>(i);
    return -1;
}

int ParetoPlot::markAt(QPointF point) const
{
    const PlotFrame frame = frameIn(rect());
    int best = -1;
    double nearest = 14 * 14;
    for (std::size_t i = 0; i < m_marks.size(); ++i) {
        const QPointF away = frame.place(m_marks[i].x, m_marks[i].y) - point;
        if (const double square = QPointF::dotProduct(away, away); square < nearest) {
            nearest = square;
            best = static_cast<int>(i);
        }
    }
    return best;
}

namespace {

// From a mark to the nearest place of its label.
QLineF leader(QPointF mark, const QRectF& label)
{
    return {mark, QPointF(std::clamp(mark.x(), label.left(), label.right()),
                          std::clamp(mark.y(), label.top(), label.bottom()))};
}

bool crosses(const QLineF& line, const QRectF& rect)
{
    if (rect.contains(line.p2())) return true;
    const QLineF sides[] = {{rect.topLeft(), rect.topRight()},
                            {rect.topRight(), rect.bottomRight()},
                            {rect.bottomRight(), rect.bottomLeft()},
                            {rect.bottomLeft(), rect.topLeft()}};
    return std::any_of(std::begin(sides), std::end(sides),
                       [&](const QLineF& side) { return line.intersects(side) == QLineF::BoundedIntersection; });
}

constexpr double besideMark = 16; // a label farther from its mark has a line to it

} // namespace

std::vector<std::pair<QRectF, int>> ParetoPlot::placeLabels(const PlotFrame& frame) const
{
    std::vector<std::pair<QRectF, int>> placed;
    LabelPlaces places(frame.area.adjusted(2, 2, -2, -2));
    for (const Mark& mark : m_marks) {
        const QPointF at = frame.place(mark.x, mark.y);
        places.keepFree({at.x() - 5, at.y() - 5, 10, 10});
    }
    if (m_measure == ExploreMeasure::StepTime) places.keepFree(workLabel(frame));
    if (m_question.cap > 0) places.keepFree(capLabel(frame));
    const QFontMetricsF metrics(fontOf(FontRole::Small));
    const int chosen = markOf(m_selected);
    LabelPlaces open = places; // also over lines
    for (const ExploreLine& line : linesIn(frame)) places.keepFree(line.points);
    for (const int pass : {0, 1, 2}) // the selected one first, then the frontier
        for (std::size_t i = 0; i < m_marks.size(); ++i) {
            const int rank = static_cast<int>(i) == chosen ? 0 : m_marks[i].onFrontier ? 1 : 2;
            if (rank != pass) continue;
            for (const int most : {2, 1}) {
                if (most == 2 && frame.area.width() < roomy) continue;
                const QSizeF size(metrics.horizontalAdvance(nameOf(m_marks[i], most)) + 2, 14);
                const QPointF beside = frame.place(m_marks[i].x, m_marks[i].y);
                QRectF rect = places.place(beside, size, 8, pass < 2);
                if (rect.isEmpty() && most == 1 && pass < 2) {
                    rect = open.place(beside, size, 8, true);
                    places.keepFree(rect);
                }
                if (rect.isEmpty()) continue;
                open.keepFree(rect);
                placed.emplace_back(rect, static_cast<int>(i) * 2 + (most == 2 ? 0 : 1));
                break;
            }
        }
    // In a crowd: farther away, at the end of a line that crosses no label, mark or other line.
    std::vector<char> named(m_marks.size(), 0);
    for (const auto& [rect, code] : placed) named[static_cast<std::size_t>(code / 2)] = 1;
    std::vector<QLineF> leaders;
    const auto isClear = [&](const QLineF& line, std::size_t own) {
        for (std::size_t i = 0; i < m_marks.size(); ++i)
            if (const QPointF at = frame.place(m_marks[i].x, m_marks[i].y);
                i != own && crosses(line, {at.x() - 5, at.y() - 5, 10, 10}))
                return false;
        return std::none_of(placed.begin(), placed.end(),
                            [&](const auto& other) { return crosses(line, other.first); }) &&
               std::none_of(leaders.begin(), leaders.end(),
                            [&](const QLineF& other) { return line.intersects(other) == QLineF::BoundedIntersection; });
    };
    for (std::size_t i = 0; i < m_marks.size(); ++i) {
        const QPointF beside = frame.place(m_marks[i].x, m_marks[i].y);
        const QSizeF size(metrics.horizontalAdvance(nameOf(m_marks[i], 1)) + 2, 14);
        for (double away = 16; named[i] == 0 && away <= 46; away += 15) {
            LabelPlaces tried = open;
            const QRectF rect = tried.place(beside, size, away, true);
            if (rect.isEmpty()) continue;
            const QLineF line = leader(beside, rect);
            if (!isClear(line, i)) continue;
            open = std::move(tried);
            leaders.push_back(line);
            placed.emplace_back(rect, static_cast<int>(i) * 2 + 1);
            named[i] = 1;
        }
    }
    return placed;
}

std::vector<ParetoPlot::ExploreLine> ParetoPlot::linesIn(const PlotFrame& frame) const
{
    const auto step = [](QPolygonF& line, QPointF to) {
        if (!line.isEmpty()) line << QPointF(to.x(), line.last().y());
        line << to;
    };
    std::vector<ExploreLine> lines(1);
    for (const std::size_t row : m_frontier) {
        const SweepRow& at = (*m_rows)[row];
        step(lines[0].points, frame.place(at.memoryValue(at.peak()), measureOf(at, m_measure)));
    }
    for (const int chunks : {1, 2}) {
        if (m_measure != ExploreMeasure::StepTime) break;
        ExploreLine line{{}, chunks};
        for (const ExploreBound& bound : m_bounds)
            if (bound.chunks == chunks) step(line.points, frame.place(bound.cap, bound.makespan));
        if (line.points.isEmpty()) continue;
        line.points << QPointF(frame.area.right(), line.points.last().y());
        lines.push_back(std::move(line));
    }
    return lines;
}

std::vector<QRectF> ParetoPlot::labels() const
{
    std::vector<QRectF> rects;
    for (const auto& [place, code] : placeLabels(frameIn(rect()))) rects.push_back(place);
    return rects;
}

// What the marks mean, in as many lines as it takes: always all of it.
QStringList ParetoPlot::legendIn(double width) const
{
    QStringList words{u"● schedule"_s, u"○ stale weights"_s, u"■ weights held twice"_s};
    if (m_question.cap > 0) words << u"× over the cap"_s;
    if (!m_bounds.empty() && m_measure == ExploreMeasure::StepTime)
        words << u"- - proven bound for whole ops, one stage per rank"_s << u"- · - for V placement"_s;
    const QFontMetricsF metrics(fontOf(FontRole::Small));
    const QString gap = u"   "_s;
    QStringList lines{QString()};
    double room = width - 40 - metrics.horizontalAdvance(qtText(titleOf(m_measure)));
    for (const QString& word : words) {
        const QString longer = lines.back().isEmpty() ? word : lines.back() + gap + word;
        if (metrics.horizontalAdvance(longer) <= room) {
            lines.back() = longer;
        } else {
            lines << word;
            room = width - 32;
        }
    }
    return lines;
}

QRectF ParetoPlot::workLabel(const PlotFrame& frame) const
{
    const double work = frame.place(frame.x.least, workBound(m_question)).y();
    const double wide = QFontMetricsF(fontOf(FontRole::Small)).horizontalAdvance(u"work, m (F + I + W)"_s);
    return {frame.area.right() - 6 - wide, work + 2, wide, 14};
}

QRectF ParetoPlot::capLabel(const PlotFrame& frame) const
{
    return {frame.place(m_question.cap, frame.y.least).x() - 64, frame.area.top() + 2, 60, 14};
}

void ParetoPlot::paintBounds(QPainter& p, const PlotFrame& frame, const Theme& theme) const
{
    p.setBrush(Qt::NoBrush);
    p.setFont(fontOf(FontRole::Small));
    if (m_question.cap > 0) {
        const double x = frame.place(m_question.cap, frame.y.least).x();
        p.setPen(QPen(theme.critical, 1.25, Qt::DashLine));
        p.drawLine(QPointF(x, frame.area.top()), QPointF(x, frame.area.bottom()));
        p.drawText(capLabel(frame), Qt::AlignRight | Qt::AlignVCenter, u"cap %1"_s.arg(fixed(m_question.cap, 1)));
    }
    if (m_measure != ExploreMeasure::StepTime) return;
    const double work = frame.place(frame.x.least, workBound(m_question)).y();
    p.setPen(QPen(theme.secondary, 1, Qt::DotLine));
    p.drawLine(QPointF(frame.area.left(), work), QPointF(frame.area.right(), work));
    p.drawText(workLabel(frame), Qt::AlignRight | Qt::AlignVCenter, u"work, m (F + I + W)"_s);
    for (const ExploreLine& line : linesIn(frame)) {
        if (line.chunks == 0) continue;
        p.setPen(QPen(line.chunks == 1 ? theme.of(Paint::Backward).edge : theme.of(Paint::Weight).edge, 1.25,
                      line.chunks == 1 ? Qt::DashLine : Qt::DashDotLine));
        p.save();
        p.setClipRect(frame.area);
        p.drawPolyline(line.points);
        p.restore();
    }
}

void ParetoPlot::paintTo(QPainter& p, const QRectF& rect, const Theme& theme) const
{
    p.setRenderHint(QPainter::Antialiasing);
    const PlotFrame frame = frameIn(rect);
    frame.paint(p, rect, theme);
    if (m_marks.empty()) {
        p.setPen(theme.secondary);
        p.drawText(frame.area, Qt::AlignCenter,
                   m_rows ? u"no schedule is possible for this shape"_s : u"simulating…"_s);
        return;
    }
    paintBounds(p, frame, theme);
    p.setBrush(Qt::NoBrush);
    p.setPen(QPen(theme.accent, 1.75));
    for (const ExploreLine& line : linesIn(frame))
        if (line.chunks == 0) p.drawPolyline(line.points);
    const auto labels = placeLabels(frame);
    p.setPen(QPen(theme.faint, 1));
    for (const auto& [label, code] : labels) {
        const Mark& mark = m_marks[static_cast<std::size_t>(code / 2)];
        if (const QLineF line = leader(frame.place(mark.x, mark.y), label); line.length() > besideMark)
            p.drawLine(line);
    }
    for (const Mark& mark : m_marks) {
        const QPointF at = frame.place(mark.x, mark.y);
        const QColor colour = mark.over ? theme.faint : mark.onFrontier ? theme.accent : theme.secondary;
        p.setPen(QPen(colour, 1.5));
        p.setBrush(mark.stale || mark.over ? QBrush(theme.canvas) : QBrush(colour));
        const double r = mark.onFrontier ? 4.5 : 3.5;
        if (mark.over) {
            p.drawLine(at + QPointF(-r, -r), at + QPointF(r, r));
            p.drawLine(at + QPointF(-r, r), at + QPointF(r, -r));
        } else if (mark.copies) {
            p.drawRect(QRectF(at.x() - r, at.y() - r, 2 * r, 2 * r));
        } else {
            p.drawEllipse(at, r, r);
        }
    }
    p.setFont(fontOf(FontRole::Small));
    for (const auto& [label, code] : labels) {
        const Mark& mark = m_marks[static_cast<std::size_t>(code / 2)];
        QColor ground = theme.canvas;
        ground.setAlphaF(0.85f); // so that lines don't cross it out
        p.fillRect(label, ground);
        p.setPen(mark.over ? theme.faint : mark.onFrontier ? theme.text : theme.secondary);
        p.drawText(label, Qt::AlignLeft | Qt::AlignVCenter, nameOf(mark, code % 2 == 0 ? 2 : 1));
    }
    p.setPen(theme.secondary);
    double top = rect.top() + 4;
    for (const QString& words : legendIn(rect.width())) {
        p.drawText(QRectF(rect.left() + 16, top, rect.width() - 32, 18), Qt::AlignRight | Qt::AlignVCenter, words);
        top += 17;
    }
}

void ParetoPlot::paintEvent(QPaintEvent*)
{
    QPainter p(this);
    p.fillRect(rect(), m_theme->canvas);
    paintTo(p, rect(), *m_theme);
    p.setBrush(Qt::NoBrush);
    const PlotFrame frame = frameIn(rect());
    if (m_hovered >= 0 && m_hovered < static_cast<int>(m_marks.size())) {
        const Mark& mark = m_marks[static_cast<std::size_t>(m_hovered)];
        p.setPen(QPen(m_theme->accent, 1));
        p.drawEllipse(frame.place(mark.x, mark.y), 8, 8);
    }
    if (const int chosen = markOf(m_selected); chosen >= 0) {
        const Mark& mark = m_marks[static_cast<std::size_t>(chosen)];
        p.setPen(QPen(m_theme->text, 1.75));
        p.drawEllipse(frame.place(mark.x, mark.y), 8, 8);
    }
    paintFocus(p);
}

void ParetoPlot::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton) return;
    const int mark = markAt(event->position());
    if (mark < 0) return;
    const auto& rows = m_marks[static_cast<std::size_t>(mark)].rows;
    // again at the same place: the next mark there
    const auto at = std::find(rows.begin(), rows.end(), m_selected);
    emit rowChosen(at == rows.end() || at + 1 == rows.end() ? rows.front() : *(at + 1));
}

void ParetoPlot::mouseDoubleClickEvent(QMouseEvent* event)
{
    if (event->button() == Qt::LeftButton && markAt(event->position()) >= 0 && m_selected >= 0)
        emit rowActivated(m_selected);
}

void ParetoPlot::mouseMoveEvent(QMouseEvent* event)
{
    const int mark = markAt(event->position());
    if (mark == m_hovered) return;
    m_hovered = mark;
    emit rowHovered(mark < 0 ? -1 : m_marks[static_cast<std::size_t>(mark)].rows.front());
    update();
}

void ParetoPlot::leaveEvent(QEvent*)
{
    if (m_hovered < 0) return;
    m_hovered = -1;
    emit rowHovered(-1);
    update();
}

void ParetoPlot::keyPressEvent(QKeyEvent* event)
{
    if (!isPointKey(event->key()) || m_marks.empty()) return QWidget::keyPressEvent(event);
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter) {
        if (m_selected >= 0) emit rowActivated(m_selected);
        return;
    }
    const int now = markOf(m_selected);
    if (event->key() == Qt::Key_Up || event->key() == Qt::Key_Down) { // among the marks at one place
        if (now < 0) return;
        const auto& rows = m_marks[static_cast<std::size_t>(now)].rows;
        const auto at = static_cast<std::size_t>(std::find(rows.begin(), rows.end(), m_selected) - rows.begin());
        const std::size_t next =
            event->key() == Qt::Key_Down ? std::min(at + 1, rows.size() - 1) : at - (at > 0 ? 1 : 0);
        emit rowChosen(rows[next]);
        return;
    }
    const int last = static_cast<int>(m_marks.size()) - 1;
    int next = now < 0 ? 0 : event->key() == Qt::Key_Right ? std::min(now + 1, last) : std::max(now - 1, 0);
    if (event->key() == Qt::Key_Home) next = 0;
    if (event->key() == Qt::Key_End) next = last;
    emit rowChosen(m_marks[static_cast<std::size_t>(next)].rows.front());
}

bool ParetoPlot::event(QEvent* event)
{
    if (event->type() == QEvent::ShortcutOverride && isPointKey(static_cast<QKeyEvent*>(event)->key())) {
        event->accept();
        return true;
    }
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        if (const int mark = markAt(help->pos()); mark >= 0)
            QToolTip::showText(help->globalPos(), tipOf(m_marks[static_cast<std::size_t>(mark)]), this);
        else
            QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

} // namespace stagewright
