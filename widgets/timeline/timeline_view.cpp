#include "widgets/timeline/timeline_view.h"

#include <algorithm>
#include <cmath>

#include <QPaintEngine>
#include <QPaintEvent>
#include <QTimer>

#include "widgets/background.h"
#include "widgets/hover_card.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/timeline/frame_pan.h"
#include "widgets/timeline/frame_worker.h"
#include "widgets/timeline/timeline_accessible.h"
#include "widgets/timeline/timeline_marks.h"

namespace stagewright {

namespace {

constexpr int settleDelay = 80;            // ms after the last input
constexpr std::int64_t exactLimit = 50000; // up to this many slices in view are painted exactly at once

QFont viewFont() { return fontOf(FontRole::Body); }

} // namespace

TimelineView::TimelineView(ViewState* state, QWidget* parent)
    : QWidget(parent), m_state(state), m_settle(new QTimer(this)), m_card(new HoverCard(this))
{
    loadFonts();
    installTimelineAccessibility();
    setFont(viewFont());
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setAttribute(Qt::WA_OpaquePaintEvent);
    setObjectName(u"timelineView"_s);
    setAccessibleName(u"Timeline"_s);
    setAccessibleDescription(u"Ranks as rows, ops as slices on a time axis"_s);
    m_settle->setSingleShot(true);
    m_settle->setInterval(settleDelay);
    connect(m_settle, &QTimer::timeout, this, &TimelineView::settle);
    connect(m_state, &ViewState::visibleChanged, this, [this] {
        layOut();
        moved();
        emit statusChanged(statusText());
    });
    connect(m_state, &ViewState::shownChanged, this, [this] {
        layOut();
        invalidate();
    });
    connect(m_state, &ViewState::rowsChanged, this, [this] {
        planAgain();
        emit statusChanged(statusText());
    });
    connect(m_state, &ViewState::timeDisplayChanged, this, [this] {
        invalidate();
        emit statusChanged(statusText());
    });
    connect(m_state, &ViewState::hoverTimeChanged, this, [this] { update(); });
    connect(m_state, &ViewState::hoveredChanged, this, [this] { update(); });
    connect(m_state, &ViewState::selectionChanged, this, [this] {
        update();
        emitAreas();
    });
    layOut();
}

TimelineView::~TimelineView()
{
    m_worker.reset();
    delete m_card.data();
}

QSize TimelineView::sizeHint() const { return {1000, static_cast<int>(rulerHeight + m_scene.rows.height + 8)}; }

void TimelineView::setRun(std::shared_ptr<const Timeline> timeline, const PanelOptions& options)
{
    std::vector<std::shared_ptr<const TimelinePanel>> panels;
    if (timeline) panels.push_back(makePanel(std::move(timeline), options));
    setPanels(std::move(panels));
}

void TimelineView::setPanels(std::vector<std::shared_ptr<const TimelinePanel>> panels)
{
    const bool wasFitted = m_state->isFitted();
    if (m_drag.kind != Drag::None) cancelDrag();
    m_scene.panels = std::move(panels);
    m_plan = std::make_shared<const RowPlan>(planRows(m_scene.panels, m_state->rows()));
    layOut();
    m_preview.reset();
    m_causes.clear();
    Nanos end = 0;
    for (const auto& panel : m_scene.panels) end = std::max(end, panel->duration);
    // nothing is placed yet: an axis of ten units, or of ten milliseconds
    if (end == 0 && m_state->leastEnd() == 0 && !m_scene.panels.empty()) {
        const Nanos unit = m_scene.panels.front()->units.time;
        end = 10 * (unit != 1 ? unit : 1'000'000);
    }
    const auto exists = [this](SpanRef ref) {
        return ref.valid() && ref.panel < static_cast<int>(m_scene.panels.size()) &&
               ref.span < m_scene.panels[static_cast<std::size_t>(ref.panel)]->timeline->spans().size();
    };
    if (m_state->hovered().valid() && !exists(m_state->hovered())) m_state->setHovered({});
    if (m_state->selected().valid() && !exists(m_state->selected())) m_state->select({});
    if (m_card) m_card->hide();
    m_scene.drag.reset();
    m_scene.notes.reset();
    if (m_cursor && m_cursor->first >= static_cast<int>(m_plan->rankAt.size())) m_cursor.reset();
    m_state->setExtent({0, end});
    planAgain();
    const bool isFirst = !m_started && !m_scene.panels.empty();
    if (isFirst || wasFitted) {
        m_state->setVisible(m_state->fittedExtent(), false);
        if (isFirst) {
            m_state->clearHistory();
            m_state->rememberVisible();
        }
    }
    m_started = m_started || isFirst;
    layOut();
    invalidate();
    updateGeometry();
    emit statusChanged(statusText());
    if (!m_state->areas().empty()) emitAreas(); // the same area of other work
}

int TimelineView::rowHeightFor(std::size_t panelCount) const { return panelCount > 2 ? 30 : panelCount > 1 ? 38 : 48; }

TimelineScene TimelineView::sceneFor(const QSizeF& size) const
{
    TimelineScene scene = m_scene;
    scene.size = size;
    scene.showCritical = m_state->showsCriticalPath();
    scene.showCommunication = m_state->showsCommunication();
    const double height = m_rowHeight > 0 ? m_rowHeight : std::round(rowHeightFor(scene.panels.size()) * m_rowScale);
    RowMetrics metrics = rowMetrics(height, scene.showCommunication);
    if (metrics.track > 0 && m_trackHeight > 0) metrics.track = m_trackHeight;
    scene.rows = layoutRows(m_plan ? m_plan : std::make_shared<const RowPlan>(), metrics, scene.panels.size() > 1);
    scene.groupLook = m_state->rows().look;
    scene.timeOrigin = m_state->timeOrigin();
    scene.cursor = hasFocus() ? cursorRow() : -1;
    scene.axis = axisIn(QRectF(QPointF(0, 0), size), m_state->visible());
    scene.scroll = std::clamp(scene.scroll, 0.0, std::max(0.0, scene.rows.height - scene.rowsRect().height()));
    scene.selected = m_state->selected();
    scene.areas = m_state->areas();
    scene.hovered = m_state->hovered();
    scene.microbatch = m_state->hoveredMicrobatch();
    scene.hoverTime = m_state->hoverTime();
    return scene;
}

void TimelineView::layOut() { m_scene = sceneFor(QSizeF(size())); }

void TimelineView::invalidate()
{
    ++m_generation;
    m_frameStale = true;
    m_settle->start();
    update();
}

void TimelineView::moved()
{
    ++m_generation;
    m_frameMoved = true;
    m_settle->start();
    update();
}

void TimelineView::setTheme(const Theme& theme)
{
    m_theme = &theme;
    invalidate();
}

void TimelineView::setRowHeight(double pixels)
{
    m_rowHeight = std::max(0.0, pixels);
    layOut();
    invalidate();
}

void TimelineView::setRowScale(double scale)
{
    scale = std::clamp(scale, leastRowScale, mostRowScale);
    if (scale == m_rowScale) return;
    m_rowScale = scale;
    layOut();
    invalidate();
    updateGeometry();
    emit statusChanged(statusText());
}

void TimelineView::setNotes(std::shared_ptr<const TimelineNotes> notes)
{
    m_scene.notes = std::move(notes);
    update();
}

void TimelineView::setFlags(std::shared_ptr<const TimelineFlags> flags)
{
    m_scene.flags = std::move(flags);
    update();
}

int TimelineView::flagAt(QPointF point) const
{
    return m_scene.flags ? stagewright::flagAt(m_scene, *m_scene.flags, point) : -1;
}

void TimelineView::setTrackHeight(double pixels)
{
    if (pixels == m_trackHeight) return;
    m_trackHeight = std::max(0.0, pixels);
    layOut();
    invalidate();
}

void TimelineView::setDifferenceShows(std::vector<bool> shows)
{
    m_scene.differenceShows = std::move(shows);
    update();
}

void TimelineView::setTitle(const QString& title)
{
    m_scene.title = title;
    invalidate();
}

double TimelineView::contentHeight() const { return rulerHeight + m_scene.rows.height; }

std::optional<QRectF> TimelineView::rowRect(int panel, int rankIndex) const
{
    const int row = m_scene.rowOf(panel, rankIndex);
    if (row < 0) return std::nullopt;
    return QRectF(m_scene.axis.left, m_scene.rowTop(row), m_scene.axis.width, m_scene.rows.metrics.height);
}

double TimelineView::trackHeight() const
{
    const RowMetrics& metrics = m_scene.rows.metrics;
    return metrics.track > 0 ? metrics.track + metrics.trackGap : 0;
}

void TimelineView::setScrollTop(double top)
{
    const double before = m_scene.scroll;
    m_scene.scroll = top;
    layOut();
    if (m_scene.scroll != before) invalidate();
}

void TimelineView::setEditMode(bool on)
{
    if (on == m_editMode) return;
    if (m_drag.kind != Drag::None) cancelDrag();
    m_editMode = on;
    m_scene.drag.reset();
    update();
}

void TimelineView::setDragFeedback(const std::optional<DragFeedback>& feedback)
{
    const bool dimsChanged = feedback.has_value() != m_scene.drag.has_value() ||
                             (feedback && m_scene.drag && feedback->span != m_scene.drag->span);
    m_scene.drag = feedback;
    if (dimsChanged) invalidate();
    update();
}

void TimelineView::setPreview(std::shared_ptr<const TimelinePanel> panel)
{
    if (panel == m_preview) return;
    m_preview = std::move(panel);
    invalidate();
}

SpanRef TimelineView::spanAt(QPointF point) const { return m_scene.spanAt(point); }

std::optional<QRectF> TimelineView::rectOf(SpanRef ref) const { return m_scene.rectOf(ref); }

CardText TimelineView::cardOf(SpanRef ref) const
{
    if (!ref.valid() || ref.panel >= static_cast<int>(m_scene.panels.size())) return {};
    return spanCard(*m_scene.panels[static_cast<std::size_t>(ref.panel)], ref.span, *m_theme, m_causes,
                    m_state->timeOrigin());
}

Aggregation TimelineView::aggregation() const { return aggregate(m_scene.panels, m_state->areas(), m_plan.get()); }

QString TimelineView::statusText() const
{
    if (m_scene.panels.empty()) return {};
    std::int64_t slices = 0;
    int ranks = 0;
    for (const auto& panel : m_scene.panels) {
        slices += panel->sliceCount;
        ranks = std::max(ranks, static_cast<int>(panel->ranks.size()));
    }
    const Units units = m_scene.panels.front()->units;
    const double perPixel = m_scene.axis.nanosPerPixel();
    const bool one = m_scene.panels.size() == 1 &&
                     (m_state->timeOrigin() == TimeOrigin::Run || m_scene.panels.front()->steps.size() < 2);
    const Nanos begin = one ? m_scene.shownTime(m_scene.axis.range.begin) : m_scene.axis.range.begin;
    const Nanos end = one ? m_scene.shownTime(m_scene.axis.range.end) : m_scene.axis.range.end;
    QString from = momentText(begin, perPixel, units);
    const QString to = momentText(end, perPixel, units);
    const auto unitOf = [](const QString& text) { return text.section(u' ', -1); };
    if (unitOf(from) == unitOf(to) || begin == 0) from = from.section(u' ', 0, -2);
    const QString pixel = units.shares() ? unitsText(perPixel / static_cast<double>(units.time), 4)
                                         : durationText(static_cast<Nanos>(std::llround(perPixel)), units);
    QString text = u"%1, %2   ·   view %3 – %4   ·   1 px = %5"_s.arg(countText(slices, u"1 slice"_s, u"%L1 slices"_s),
                                                                      countText(ranks, u"1 rank"_s, u"%1 ranks"_s),
                                                                      from, to, pixel);
    if (m_scene.panels.front()->overview) return text + u"   ·   stored overview of the run"_s;
    std::size_t shown = 0;
    for (const int row : m_scene.visibleRows()) {
        const RowPlace& place = m_scene.place(row);
        shown += place.kind == RowKind::Group ? m_scene.groupOf(place).ranks.size() : 1;
    }
    if (shown > 0 && m_scene.axis.width > 0) {
        const double density =
            static_cast<double>(m_scene.visibleSlices()) / static_cast<double>(shown) / m_scene.axis.width;
        if (density >= 0.5) text += u", about %1 slices per px"_s.arg(fixed(density, density < 9.95 ? 1 : 0));
    }
    return text;
}

void TimelineView::resizeEvent(QResizeEvent*)
{
    layOut();
    invalidate();
    emit statusChanged(statusText());
}

void TimelineView::changeEvent(QEvent* event)
{
    if (event->type() == QEvent::EnabledChange || event->type() == QEvent::FontChange) invalidate();
    QWidget::changeEvent(event);
}

void TimelineView::paintEvent(QPaintEvent*)
{
    const double ratio = devicePixelRatioF();
    layOut();
    std::optional<TimelineScene> previewed; // another panel in place of the first; references to its spans are omitted
    if (m_preview && !m_scene.panels.empty()) {
        previewed = m_scene;
        previewed->panels.front() = m_preview;
        previewed->selected = {};
        previewed->hovered = {};
        previewed->microbatch = {};
        previewed->notes.reset();
    }
    const TimelineScene& scene = previewed ? *previewed : m_scene;
    const QSize wanted(static_cast<int>(std::ceil(width() * ratio)), static_cast<int>(std::ceil(height() * ratio)));
    const bool fits = !m_frameStale && m_canvas.image.size() == wanted && m_canvas.image.devicePixelRatio() == ratio;
    if (fits && m_frameMoved && panFrame(m_canvas, scene, *m_theme, ratio)) {
        m_frameMoved = false;
        if (m_canvas.detail == Detail::Draft && !m_settle->isActive()) m_settle->start();
    }
    if (!fits || m_frameMoved) {
        const Detail detail = scene.visibleSlices() > exactLimit && !m_preview ? Detail::Draft : Detail::Exact;
        m_canvas.image = frameImage(scene, *m_theme, ratio, detail);
        m_canvas.detail = detail;
        m_canvas.axis = m_scene.axis;
        m_frameStale = m_frameMoved = false;
        if (detail == Detail::Draft && !m_settle->isActive()) m_settle->start();
    }
    QPainter painter(this);
    painter.drawImage(QPointF(0, 0), m_canvas.image);
    paintMarks(painter, scene, *m_theme);
    if (hasFocus()) {
        painter.setPen(QPen(m_theme->accent, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawLine(QPointF(0, rulerHeight - 0.5), QPointF(gutterFor(width()) - 16, rulerHeight - 0.5));
    }
}

void TimelineView::settle()
{
    if (m_drag.kind == Drag::None) m_state->rememberVisible();
    if (m_frameStale || m_frameMoved || m_canvas.detail == Detail::Exact) return;
    if (!m_worker) {
        m_worker = std::make_unique<FrameWorker>([this](QImage image, std::uint64_t generation) {
            onGuiThread(this, [this, image = std::move(image), generation] { acceptFrame(image, generation); });
        });
    }
    m_worker->paint({m_scene, m_theme, devicePixelRatioF(), m_generation});
}

void TimelineView::acceptFrame(const QImage& image, std::uint64_t generation)
{
    if (generation != m_generation || image.size() != m_canvas.image.size()) return; // the view has moved on
    m_canvas = {image, Detail::Exact, m_scene.axis};
    update();
}

double TimelineView::paintedHeight(double width) const
{
    if (width >= narrowView) return contentHeight();
    const auto rows = static_cast<double>(m_scene.rows.rows.size()),
               panels = static_cast<double>(m_scene.panels.size());
    return rulerHeight + (panels > 1 ? panels * panelHeaderHeight : 0) + rows * (panels > 1 ? 17 : 30) + 2;
}

void TimelineView::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme, const PaintedMarks& marks) const
{
    TimelineScene scene = sceneFor(rect.size());
    if (rect.width() < narrowView && !scene.rows.rows.empty()) {
        const auto rows = static_cast<double>(scene.rows.rows.size());
        const auto plan = m_plan ? m_plan : std::make_shared<const RowPlan>();
        double pitch = 57;                        // of rows at their preferred height
        for (int tries = 0; tries < 3; ++tries) { // headers and gaps between runs take theirs
            RowMetrics metrics = rowMetrics(std::max(2.0, pitch * 0.86), false);
            metrics.gap = std::max(0.0, pitch - metrics.height);
            scene.rows = layoutRows(plan, metrics, scene.panels.size() > 1);
            const double over = scene.rows.height - (rect.height() - rulerHeight);
            if (over <= 0) break;
            pitch = std::max(2.5, pitch - over / rows - 0.01);
        }
        scene.scroll = 0;
        scene.smallLabels = true;
    }
    if (!marks.hover) {
        scene.hoverTime.reset();
        scene.hovered = {};
        scene.microbatch = {};
        scene.drag.reset();
    }
    if (!marks.selection) {
        scene.selected = {};
        scene.areas.clear();
    }
    if (!marks.notes) scene.notes.reset();
    painter.save();
    painter.translate(rect.topLeft());
    painter.setClipRect(QRectF(QPointF(0, 0), rect.size()), Qt::IntersectClip);
    const bool isRaster = painter.paintEngine() != nullptr && painter.paintEngine()->type() == QPaintEngine::Raster;
    if (isRaster && !theme.hatched()) { // as on screen, pixel by pixel
        const double ratio = painter.device()->devicePixelRatioF() * painter.worldTransform().m11();
        painter.drawImage(QRectF(QPointF(0, 0), scene.size), frameImage(scene, theme, ratio, Detail::Exact));
    } else {
        paintFrame(painter, scene, theme, Detail::Exact);
    }
    paintMarks(painter, scene, theme);
    painter.restore();
}

void TimelineView::fitSpan(SpanRef ref)
{
    if (!m_scene.rectOf(ref)) return;
    const TimelinePanel& panel = *m_scene.panels[static_cast<std::size_t>(ref.panel)];
    const Span& span = panel.timeline->spans()[ref.span];
    const Nanos margin = std::max<Nanos>(span.duration(), 10);
    m_state->setVisible({panel.toAxis(span.start) - margin, panel.toAxis(span.end) + margin});
    ensureVisible(ref);
}

void TimelineView::fitSelection()
{
    std::optional<TimeRange> wanted = m_state->selectedRange();
    const SpanRef selected = m_state->selected();
    if (!wanted && m_scene.rectOf(selected)) {
        const TimelinePanel& panel = *m_scene.panels[static_cast<std::size_t>(selected.panel)];
        const Span& span = panel.timeline->spans()[selected.span];
        wanted = TimeRange{panel.toAxis(span.start), panel.toAxis(span.end)};
    }
    if (!wanted) {
        m_state->fitAll();
        return;
    }
    const TimeRange before = m_state->visible();
    m_state->fit(*wanted);
    if (m_state->visible() == before) m_state->fitAll(); // F again
}

void TimelineView::ensureVisible(SpanRef ref)
{
    if (ref.valid() && ref.panel < static_cast<int>(m_scene.panels.size())) { // out of a folded group
        const int row = m_scene.rowOf(
            ref.panel, m_scene.panels[static_cast<std::size_t>(ref.panel)]->timeline->trackOf(ref.span).rank);
        if (row >= 0 && m_scene.place(row).kind == RowKind::Group) toggleGroup(row);
    }
    const auto rect = m_scene.rectOf(ref);
    if (!rect) return;
    const Axis& axis = m_scene.axis;
    const double left = axis.left, right = axis.left + axis.width;
    if (rect->right() < left || rect->left() > right ||
        (rect->width() < axis.width && (rect->left() < left || rect->right() > right))) {
        const TimeRange range = m_state->visible();
        const Nanos middle = axis.toTime(rect->center().x());
        m_state->setVisible({middle - range.duration() / 2, middle - range.duration() / 2 + range.duration()}, false);
    }
    if (m_scene.rowOf(ref.panel,
                      m_scene.panels[static_cast<std::size_t>(ref.panel)]->timeline->trackOf(ref.span).rank) >=
        m_scene.rows.pinned) {
        showRows(rect->top(), rect->bottom());
    }
}

void TimelineView::ensureRowVisible(int panel, int rank)
{
    const int row = m_scene.rowOf(panel, rank);
    if (row >= m_scene.rows.pinned) showRows(m_scene.rowTop(row), m_scene.rowTop(row) + m_scene.place(row).height);
}

void TimelineView::showRows(double top, double bottom)
{
    const QRectF rows = m_scene.scrolledRect();
    if (top < rows.top() + 4) {
        setScrollTop(m_scene.scroll - (rows.top() + 12 - top));
    } else if (bottom > rows.bottom() - 4) {
        setScrollTop(m_scene.scroll + (bottom + 12 - rows.bottom()));
    }
}

} // namespace stagewright
