#include "widgets/edit/edit_overlay.h"

#include <algorithm>

#include <QEvent>
#include <QPainter>

namespace stagewright {
namespace {

constexpr double minOutline = 3; // px; narrower slices of a ghost are skipped
constexpr std::size_t mostOutlines = 20000;

bool hasAlike(const LaneData& lane, const Slice& slice)
{
    for (std::size_t i = lane.firstBeginningAt(slice.begin());
         i < lane.size() && lane.slices()[i].begin() == slice.begin(); ++i) {
        const Slice& other = lane.slices()[i];
        if (other.end() == slice.end() && other.kind == slice.kind && other.microbatch == slice.microbatch) return true;
    }
    return false;
}

} // namespace

EditOverlay::EditOverlay(TimelineView* view, ViewState* state) : ThemedWidget(view), m_view(view)
{
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setAttribute(Qt::WA_NoSystemBackground);
    setFocusPolicy(Qt::NoFocus);
    resize(view->size());
    view->installEventFilter(this);
    connect(state, &ViewState::visibleChanged, this, qOverload<>(&QWidget::update));
    hide();
}

void EditOverlay::refresh()
{
    setVisible(!m_faults.empty() || !m_chosen.empty() || m_gap || m_ghost);
    raise();
    update();
}

void EditOverlay::setFaults(std::vector<SpanId> spans)
{
    m_faults = std::move(spans);
    refresh();
}

void EditOverlay::setChosen(std::vector<SpanId> spans)
{
    m_chosen = std::move(spans);
    refresh();
}

void EditOverlay::setGap(const std::optional<GapMark>& gap)
{
    m_gap = gap;
    refresh();
}

void EditOverlay::setGhost(std::shared_ptr<const TimelinePanel> ghost)
{
    m_ghost = std::move(ghost);
    refresh();
}

void EditOverlay::clear()
{
    m_faults.clear();
    m_chosen.clear();
    m_gap.reset();
    m_ghost.reset();
    refresh();
}

bool EditOverlay::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::Resize) resize(m_view->size());
    if (event->type() == QEvent::Wheel) update();
    return QWidget::eventFilter(watched, event);
}

void EditOverlay::paintGhost(QPainter& painter) const
{
    const auto& panels = m_view->panels();
    if (panels.empty()) return;
    const TimelinePanel& shown = m_view->preview() ? *m_view->preview() : *panels.front();
    const Axis axis = m_view->axis();
    if (axis.degenerate()) return;
    QColor colour = m_theme->text;
    colour.setAlphaF(m_theme->dark ? 0.55F : 0.45F);
    QPen pen(colour, 1);
    pen.setDashPattern({3, 2});
    painter.setPen(pen);
    painter.setBrush(Qt::NoBrush);
    std::size_t left = mostOutlines;
    for (std::size_t r = 0; r < m_ghost->ranks.size() && r < shown.ranks.size(); ++r) {
        const auto row = m_view->rowRect(0, static_cast<int>(r));
        if (!row || row->bottom() < rulerHeight || row->top() > height()) continue;
        const LaneData& lane = m_ghost->ranks[r].compute;
        const std::size_t to = lane.firstBeginningAt(axis.range.end);
        for (std::size_t i = lane.firstEndingAfter(axis.range.begin); i < to && left > 0; ++i) {
            const Slice& slice = lane.slices()[i];
            const TimeSpan drawn = lane.drawn(i);
            const double x0 = axis.toX(drawn.begin), x1 = axis.toX(drawn.end);
            if (x1 - x0 < minOutline || hasAlike(shown.ranks[r].compute, slice)) continue;
            painter.drawRect(QRectF(x0 + 0.5, row->top() - 2.5, x1 - x0 - 1, row->height() + 5));
            --left;
        }
    }
}

void EditOverlay::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    painter.setClipRect(QRectF(gutterFor(width()), rulerHeight, width() - gutterFor(width()), height() - rulerHeight));
    if (m_ghost) paintGhost(painter);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(Qt::NoBrush);
    if (m_gap) {
        const auto row = m_view->rowRect(0, m_gap->rank);
        const Axis axis = m_view->axis();
        if (row && !axis.degenerate()) {
            const QRectF rect(axis.toX(m_gap->begin), row->top(), axis.toX(m_gap->end) - axis.toX(m_gap->begin),
                              row->height());
            painter.setPen(QPen(m_theme->accent, 2));
            painter.drawRoundedRect(rect.adjusted(1, 1, -1, -1), 3, 3);
        }
    }
    for (const SpanId span : m_view->preview() ? std::vector<SpanId>() : m_chosen) {
        const auto rect = m_view->rectOf({0, span});
        if (!rect || rect->right() < gutterFor(width()) || rect->left() > width()) continue;
        painter.setPen(QPen(m_theme->canvas, 4));
        painter.drawRoundedRect(rect->adjusted(-1, -1, 1, 1), 3, 3);
        painter.setPen(QPen(m_theme->text, 2));
        painter.drawRoundedRect(rect->adjusted(-1, -1, 1, 1), 3, 3);
    }
    for (std::size_t i = 0; i < m_faults.size() && !m_view->preview(); ++i) {
        const auto rect = m_view->rectOf({0, m_faults[i]});
        if (!rect) continue;
        // The faulty op is solid, its counterpart dashed; a halo keeps both visible on every fill.
        painter.setPen(QPen(m_theme->canvas, 5));
        painter.drawRoundedRect(rect->adjusted(-2, -2, 2, 2), 4, 4);
        painter.setPen(QPen(m_theme->critical, 2.5, i == 0 ? Qt::SolidLine : Qt::DashLine));
        painter.drawRoundedRect(rect->adjusted(-2, -2, 2, 2), 4, 4);
    }
}

} // namespace stagewright
