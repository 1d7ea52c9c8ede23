#include "app/ui/playback/playback_overlay.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <QEvent>
#include <QPaintEvent>
#include <QPainter>

#include "widgets/literals.h"
#include "widgets/timeline/slice_shapes.h"

namespace stagewright {
namespace {

constexpr double parcelSize = 15;
constexpr int mostWaiting = 5; // parcels drawn at one receiver
constexpr double reach = 118;  // px right of the cursor that parcels may take
constexpr std::size_t mostOutlines = 4000;
constexpr std::size_t mostStacked = 64; // ranks whose stacks are kept
constexpr int stackColumns = 4;
constexpr double stackReach = 6 + 15 * stackColumns; // px right of the cursor

void paintCursor(QPainter& painter, double x, double top, double bottom, const Theme& theme)
{
    painter.setPen(Qt::NoPen);
    painter.setBrush(theme.accent);
    painter.drawRect(QRectF(x - 0.75, top, 1.5, bottom - top));
}

// The idle interval of a rank that contains the time; nullopt while it is busy.
std::optional<TimeRange> idleAt(const TimelinePanel& panel, int rank, Nanos time)
{
    const LaneData& lane = panel.ranks[static_cast<std::size_t>(rank)].compute;
    if (time >= panel.duration) return std::nullopt;
    const std::size_t next = lane.firstEndingAfter(time);
    if (next < lane.size() && lane.slices()[next].begin() <= time) return std::nullopt;
    const Nanos begin = next == 0 ? 0 : lane.slices()[next - 1].end();
    const Nanos end = next < lane.size() ? lane.slices()[next].begin() : panel.duration;
    return TimeRange{begin, end};
}

} // namespace

PlaybackOverlay::PlaybackOverlay(QObject* parent, Player* player)
    : QObject(parent), Overlay(OverlayLayer::Played), m_player(player)
{
    connect(player, &Player::stateChanged, this, [this] {
        gatherParcels();
        update();
    });
    connect(player, &Player::cursorMoved, this, &PlaybackOverlay::moveStrip);
}

void PlaybackOverlay::gatherParcels()
{
    m_parcels.clear();
    if (!m_player->beats()) return;
    const auto& parcels = m_player->beats()->parcels;
    const Nanos now = m_player->cursor();
    for (std::size_t i = 0; i < parcels.size() && parcels[i].sent <= now; ++i)
        if (parcels[i].consumed > now) m_parcels.push_back(i);
}

// From the earliest growing idle time to the space that parcels need right of the cursor.
void PlaybackOverlay::moveStrip(Nanos from, Nanos to)
{
    gatherParcels();
    if (view() == nullptr) return;
    const TimelineScene& scene = this->scene();
    const Axis& axis = scene.axis;
    double left = std::min(axis.toX(from), axis.toX(to)), right = std::max(axis.toX(from), axis.toX(to));
    for (std::size_t p = 0; p < scene.panels.size(); ++p)
        for (std::size_t rank = 0; rank < scene.panels[p]->ranks.size(); ++rank) {
            const auto row = scene.rowRect(static_cast<int>(p), static_cast<int>(rank));
            if (!row || row->bottom() < 0 || row->top() > view()->height() || row->height() < 14) continue;
            for (const Nanos time : {from, to})
                if (const auto idle = idleAt(*scene.panels[p], static_cast<int>(rank), time))
                    left = std::min(left, axis.toX(idle->begin));
        }
    left = std::max(left - 4, gutterFor(view()->width()) - 4);
    right += reach;
    m_strip = QRectF(left, 0, right - left, view()->height()).toAlignedRect() & view()->rect();
    view()->update(m_strip);
}

void PlaybackOverlay::paintRow(QPainter& painter, const TimelineScene& scene, const Theme& theme, int p, int rank,
                               const QRectF& row) const
{
    const TimelinePanel& panel = scene.panel(p);
    const LaneData& lane = panel.ranks[static_cast<std::size_t>(rank)].compute;
    const Axis& axis = scene.axis;
    const Nanos now = m_player->cursor();
    const double x = std::max(axis.toX(now), axis.left);

    // An open gap: hatched up to the cursor, with its length so far.
    if (const auto idle = idleAt(panel, rank, now); idle && row.height() >= 14) {
        const double begin = axis.toX(idle->begin), visible = std::max(begin, axis.left);
        if (x > visible)
            paintHatch(painter, QRectF(visible, row.top(), x - visible, row.height()), QPointF(axis.toX(0), row.top()),
                       theme);
        const QString text = durationText(now - idle->begin, panel.units);
        painter.setFont(fontOf(FontRole::Small));
        const double width = QFontMetricsF(painter.font()).horizontalAdvance(text) + 14;
        if (x - visible >= width + 8) {
            const QRectF pill(x - width - 4, row.center().y() - 9, width, 18);
            painter.setPen(Qt::NoPen);
            painter.setBrush(theme.pill);
            painter.drawRoundedRect(pill, 9, 9);
            painter.setPen(theme.pillText);
            painter.drawText(pill, Qt::AlignCenter, text);
        }
    }

    // What has not happened yet: only its outline.
    const QRectF ahead(x, row.top() - 4, std::max(0.0, scene.size.width() - x), row.height() + 8 + scene.trackHeight());
    painter.fillRect(ahead, theme.canvas);
    for (const RulerTick& tick : rulerTicks(axis, 32, panel.units.time))
        if (tick.major && tick.time > now)
            painter.fillRect(QRectF(std::round(axis.toX(tick.time)), ahead.top(), 1, ahead.height()), theme.grid);
    const std::size_t from = lane.firstEndingAfter(now), to = lane.firstBeginningAt(axis.range.end);
    if (to <= from || to - from > mostOutlines || row.height() < 8) return;
    QColor line = theme.text;
    line.setAlphaF(0.35f);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(line, 1));
    for (std::size_t i = from; i < to; ++i) {
        const Slice& slice = lane.slices()[i];
        const double x0 = axis.toX(slice.begin()), x1 = axis.toX(slice.end());
        if (x1 - x0 < 2) continue;
        const double top = row.top() + (slice.lower != 0 ? row.height() / 2 : 0),
                     height = row.height() / (slice.upper != 0 || slice.lower != 0 ? 2 : 1);
        painter.drawRoundedRect(QRectF(x0 + 0.5, top + 0.5, x1 - x0 - 1.5, height - 1), 2.5, 2.5);
    }
}

void PlaybackOverlay::paintParcels(QPainter& painter, const TimelineScene& scene, const Theme& theme) const
{
    const Axis& axis = scene.axis;
    const Nanos now = m_player->cursor();
    const double x = axis.toX(now);
    const Fill& fill = theme.of(Paint::Communication);
    std::map<std::pair<int, int>, int> waiting; // by panel and rank
    for (const std::size_t index : m_parcels) {
        const Parcel& parcel = m_player->beats()->parcels[index];
        const auto a = scene.rowRect(parcel.panel, parcel.from), b = scene.rowRect(parcel.panel, parcel.to);
        if (!a || !b || a->height() < 14) continue;
        const bool down = b->top() > a->top();
        const double leave = down ? a->bottom() : a->top(), reached = down ? b->top() : b->bottom();
        QPointF centre;
        bool more = false;
        if (now < parcel.arrival && !m_player->reducedMotion()) {
            const double share = static_cast<double>(now - parcel.sent) /
                                 static_cast<double>(std::max<Nanos>(1, parcel.arrival - parcel.sent));
            // Downward and upward parcels pass each other side by side.
            centre = {x + 3 + parcelSize * (down ? 0.5 : 1.5), leave + (reached - leave) * share};
        } else if (now < parcel.arrival) {
            continue;
        } else {
            const int place = waiting[{parcel.panel, parcel.to}]++;
            if (place > mostWaiting) continue;
            more = place == mostWaiting;
            centre = {x + 3 + parcelSize / 2 + place * (parcelSize + 2), reached + (down ? 3 : -3)};
        }
        const QRectF box(centre.x() - parcelSize / 2, centre.y() - parcelSize / 2, parcelSize, parcelSize);
        painter.setPen(QPen(theme.canvas, 2.5));
        painter.setBrush(fill.fill);
        painter.drawRect(box);
        painter.setPen(QPen(fill.edge, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(box);
        painter.setFont(fontOf(FontRole::Small));
        painter.setPen(fill.label);
        const QString digits = more ? u"…"_s : parcel.microbatch < 0 ? QString() : QString::number(parcel.microbatch);
        if (QFontMetricsF(painter.font()).horizontalAdvance(digits) <= parcelSize)
            painter.drawText(box, Qt::AlignCenter, digits);
    }
}

void PlaybackOverlay::paint(QPainter& painter, const TimelineScene& scene, const Theme& theme) const
{
    if (!m_player->active()) return;
    for (std::size_t p = 0; p < scene.panels.size(); ++p)
        for (std::size_t rank = 0; rank < scene.panels[p]->ranks.size(); ++rank) {
            const auto row = scene.rowRect(static_cast<int>(p), static_cast<int>(rank));
            if (row && row->bottom() + 12 > rulerHeight && row->top() < scene.size.height())
                paintRow(painter, scene, theme, static_cast<int>(p), static_cast<int>(rank), *row);
        }
    const double x = scene.axis.toX(m_player->cursor());
    if (x >= scene.axis.left - 1) paintCursor(painter, x, rulerHeight, scene.size.height(), theme);
    paintParcels(painter, scene, theme);
}

MemoryPlayback::MemoryPlayback(MemoryView* view, TimelineView* timeline, ViewState* state, Player* player)
    : ThemedWidget(view), m_view(view), m_timeline(timeline), m_player(player)
{
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setAttribute(Qt::WA_NoSystemBackground);
    setFocusPolicy(Qt::NoFocus);
    resize(view->size());
    hide();
    setObjectName(u"memoryPlayback"_s);
    view->installEventFilter(this);
    connect(state, &ViewState::visibleChanged, this, qOverload<>(&QWidget::update));
    connect(player, &Player::stateChanged, this, &MemoryPlayback::refresh);
    connect(player, &Player::beatChanged, this, &MemoryPlayback::restack);
    connect(player, &Player::cursorMoved, this, [this](Nanos from, Nanos to) {
        const Axis axis = m_view->axis();
        const double left = std::min(axis.toX(from), axis.toX(to)) - 3,
                     right = std::max(axis.toX(from), axis.toX(to)) + stackReach;
        update(QRectF(left, 0, right - left, height()).toAlignedRect());
    });
}

void MemoryPlayback::refresh()
{
    setVisible(m_player->active());
    m_stacks.clear();
    if (!m_player->active()) return;
    restack();
    raise();
    update();
}

void MemoryPlayback::restack()
{
    if (!m_player->active() || m_timeline->panels().empty()) return;
    const TimelinePanel& panel = *m_timeline->panels().back();
    const Nanos now = m_player->cursor() + panel.origin;
    std::vector<std::vector<int>> stacks(std::min(panel.ranks.size(), mostStacked));
    for (std::size_t i = 0; i < stacks.size(); ++i) {
        for (const Holder& holder : holdersAt(*panel.timeline, panel.ranks[i].rank, now, m_view->category()))
            if (holder.microbatch >= 0 && holder.bytes > 0) stacks[i].push_back(holder.microbatch);
        std::sort(stacks[i].begin(), stacks[i].end());
    }
    if (stacks == m_stacks) return;
    m_stacks = std::move(stacks);
    const double x = m_view->axis().toX(m_player->cursor());
    update(QRectF(x, 0, stackReach, height()).toAlignedRect());
}

bool MemoryPlayback::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::Resize) resize(m_view->size());
    if (event->type() == QEvent::Wheel) update();
    return QWidget::eventFilter(watched, event);
}

void MemoryPlayback::paintEvent(QPaintEvent* event)
{
    if (!m_player->active()) return;
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setClipRect(QRectF(0, 28, width(), height() - 28).intersected(QRectF(event->rect())));
    const double x = m_view->axis().toX(m_player->cursor());
    QColor veil = m_theme->canvas;
    veil.setAlphaF(0.82f);
    const Fill& fill = m_theme->of(Paint::Forward);
    for (int i = 0; i < static_cast<int>(m_stacks.size()); ++i) {
        const QRectF plot = m_view->plotRect(i);
        if (plot.isEmpty() || plot.bottom() < 28 || plot.top() > height()) continue;
        if (x < plot.right() + 8)
            painter.fillRect(
                QRectF(std::max(x, plot.left()), plot.top() - 6, width() - std::max(x, plot.left()), plot.height() + 8),
                veil);
        // The stack is at the bottom of the chart right of the cursor, oldest at the bottom.
        constexpr double box = 13, step = 15;
        const int perColumn = std::max(1, static_cast<int>(plot.height() / step));
        const auto& held = m_stacks[static_cast<std::size_t>(i)];
        const int shown = std::min(static_cast<int>(held.size()), perColumn * stackColumns);
        painter.setFont(fontOf(FontRole::Small));
        for (int k = 0; k < shown; ++k) {
            const bool more = k + 1 == shown && shown < static_cast<int>(held.size());
            const int column = k / perColumn;
            const QRectF square(x + 6 + column * step, plot.bottom() - 1 - box - k % perColumn * step, box, box);
            painter.setPen(Qt::NoPen);
            painter.setBrush(fill.fill);
            painter.drawRoundedRect(square, 2, 2);
            painter.setPen(fill.label);
            painter.drawText(square, Qt::AlignCenter,
                             more ? u"…"_s : QString::number(held[static_cast<std::size_t>(k)]));
        }
    }
    if (x >= gutterFor(width()) - 1) paintCursor(painter, x, 28, height(), *m_theme);
}

} // namespace stagewright
