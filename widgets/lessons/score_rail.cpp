#include "widgets/lessons/score_rail.h"

#include <algorithm>
#include <cmath>

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>

#include "widgets/lessons/page_reading.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/runs/runs_model.h"
#include "widgets/timeline/geometry.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

QString shares(double value)
{
    QString text = fixed(value, 3);
    while (text.endsWith(u'0')) text.chop(1);
    if (text.endsWith(u'.')) text.chop(1);
    return text;
}

} // namespace

ScoreRailView::ScoreRailView(const TimelineView& timeline, QWidget* parent) : ThemedWidget(parent), m_timeline(timeline)
{
    connect(timeline.viewState(), &ViewState::visibleChanged, this, qOverload<>(&QWidget::update));
    setObjectName(u"scoreRail"_s);
    setFixedHeight(46);
    hide();
}

void ScoreRailView::setRail(const std::optional<lessons::ScoreRail>& rail)
{
    m_rail = rail;
    setVisible(rail.has_value() && !marks().empty());
    describe();
}

void ScoreRailView::setYours(double value)
{
    if (!m_rail) return;
    m_rail->yours = value;
    describe();
}

void ScoreRailView::describe()
{
    QStringList words;
    for (const Mark& mark : marks()) words << u"%1 at %2"_s.arg(mark.names, shares(mark.value));
    setAccessibleName(u"Step times: %1"_s.arg(words.join(u", "_s)));
    update();
}

std::vector<ScoreRailView::Mark> ScoreRailView::marks() const
{
    std::vector<Mark> all;
    if (!m_rail) return all;
    auto add = [&](double value, const QString& name, bool yours = false, bool guess = false) {
        if (!std::isfinite(value) || value <= 0) return;
        for (Mark& mark : all)
            if (std::abs(mark.value - value) < 1e-9) {
                mark.names += u", "_s + name;
                mark.yours = mark.yours || yours;
                mark.guess = false;
                return;
            }
        all.push_back({value, name, yours, guess});
    };
    // A bound that no schedule reaches says so: it only means that nothing is below it. It is proven for the ops of the
    // step's own schedule; others, such as slices of a sequence, may be below.
    const bool others = m_rail->bestKnown < m_rail->bound - 1e-9;
    add(m_rail->bound, others                 ? u"proven minimum of these ops"_s
                       : m_rail->boundReached ? u"proven minimum"_s
                                              : u"lower bound (no known schedule reaches it)"_s);
    const bool named = !m_rail->parName.empty() && m_rail->parName != "empty" && m_rail->parName != "rows";
    add(m_rail->par, named ? scheduleTitle(m_rail->parName) : u"solution"_s);
    if (!(m_rail->bestKnown > m_rail->par - 1e-9)) // else par is the best
        add(m_rail->bestKnown, m_rail->bestKnownName.empty()
                                   ? u"best known"_s
                                   : u"best known, %1"_s.arg(scheduleTitle(m_rail->bestKnownName)));
    add(m_rail->guess, u"your guess"_s, false, true);
    add(m_rail->yours, u"you"_s, true);
    std::sort(all.begin(), all.end(), [](const Mark& a, const Mark& b) { return a.value < b.value; });
    return all;
}

double ScoreRailView::placeOf(double units) const
{
    return m_timeline.scene().axis.toX(static_cast<Nanos>(std::llround(units * static_cast<double>(rankShare))));
}

double ScoreRailView::farthest() const
{
    const std::vector<Mark> all = marks();
    return all.empty() ? 0 : all.back().value;
}

void ScoreRailView::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.fillRect(rect(), m_theme->canvas);
    painter.fillRect(QRectF(0, height() - 1, width(), 1), m_theme->separator);
    painter.setFont(fontOf(FontRole::Strong));
    painter.setPen(m_theme->text);
    painter.drawText(QRectF(16, 0, gutterWidth - 20, height()), Qt::AlignVCenter | Qt::AlignLeft, u"Step time"_s);
    const std::vector<Mark> all = marks();
    if (all.empty()) return;
    const double left = gutterWidth, right = left + m_timeline.scene().axis.width, axis = 27;
    painter.setPen(QPen(m_theme->separator, 2, Qt::SolidLine, Qt::RoundCap));
    painter.drawLine(QPointF(left, axis), QPointF(right, axis));
    painter.setFont(fontOf(FontRole::Small));
    const QFontMetricsF metrics(painter.font());
    // Names above; the next one below if they would touch.
    double endAbove = 0, endBelow = 0;
    for (const Mark& mark : all) {
        const double at = placeOf(mark.value);
        if (at < left - 0.5 || at > width()) continue; // zoomed away
        painter.setFont(fontOf(mark.yours ? FontRole::Strong : FontRole::Small));
        const QString text = mark.names + u' ' + shares(mark.value);
        const double wide = QFontMetricsF(painter.font()).horizontalAdvance(text);
        double begin = std::clamp(at - wide / 2, left - 8, std::max(left - 8, width() - wide - 6.0));
        const bool above = begin > endAbove;
        if (!above) begin = std::max(begin, endBelow);
        (above ? endAbove : endBelow) = begin + wide + 10;
        painter.setPen(mark.yours ? m_theme->text : m_theme->secondary);
        painter.drawText(QPointF(begin, above ? 15 : 43), text);
        const QPolygonF triangle{QPointF(at - 5, axis - 9), QPointF(at + 5, axis - 9), QPointF(at, axis - 1)};
        if (mark.yours) {
            painter.setPen(Qt::NoPen);
            painter.setBrush(m_theme->accent);
            painter.drawPolygon(triangle);
        } else if (mark.guess) {
            painter.setPen(QPen(m_theme->secondary, 1.4));
            painter.setBrush(Qt::NoBrush);
            painter.drawPolygon(triangle);
        } else {
            painter.setPen(QPen(m_theme->secondary, 1.6));
            painter.drawLine(QPointF(at, axis - 6), QPointF(at, axis + 6));
        }
    }
}

bool ScoreRailView::event(QEvent* event)
{
    if (event->type() == QEvent::ToolTip && m_rail) {
        QString text = u"Step times in units: 1 is a rank's work for the forward of one microbatch.\n"
                       "Proven minimum: no order of these ops on these ranks is shorter."_s;
        if (!m_rail->boundReason.empty()) text += u' ' + qs(m_rail->boundReason);
        text +=
            u'\n' +
            u"A schedule's name: the one this lesson teaches. Best known: the shortest schedule in the library and the "
            "lesson's solutions that runs the same ops on the same ranks within the cap; not proven optimal."_s;
        QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(), text, this);
        return true;
    }
    return QWidget::event(event);
}

} // namespace stagewright
