#include "widgets/timeline/timeline_view.h"

#include <algorithm>
#include <cmath>

#include <QPaintEngine>
#include <QPaintEvent>
#include <QTimer>

#include "widgets/background.h"
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
    : QWidget(parent), m_state(state), m_settle(new QTimer(this)), m_selection(new SelectionOverlay(this)),
      m_rowCursor(new RowCursor(this)), m_input(new TimelineInput(this))
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
        m_input->pictureMoved();
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
    add(m_rowCursor);
    add(m_selection);
    connect(m_state, &ViewState::selectionChanged, this, [this] {
        update();
        m_selection->tellAreas();
    });
    layOut();
}

TimelineView::~TimelineView()
{
    m_worker.reset();
    for (Overlay* overlay : m_overlays) overlay->m_view = nullptr;
}

void TimelineView::add(Overlay* overlay)
{
    const auto above =
        std::upper_bound(m_overlays.begin(), m_overlays.end(), overlay->layer(),
                         [](OverlayLayer layer, const Overlay* other) { return layer < other->layer(); });
    m_overlays.insert(above, overlay);
    overlay->m_view = this;
    update();
}

void TimelineView::remove(Overlay* overlay)
{
    overlay->m_view = nullptr;
    std::erase(m_overlays, overlay);
    update();
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
    m_input->cancelDrag();
    m_scene.panels = std::move(panels);
    m_plan = std::make_shared<const RowPlan>(planRows(m_scene.panels, m_state->rows()));
    layOut();
    m_scene.preview.reset();
    m_scene.faded = {};
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
               ref.span < m_scene.panel(ref.panel).timeline->spans().size();
    };
    if (m_state->hovered().valid() && !exists(m_state->hovered())) m_state->setHovered({});
    if (m_state->selected().valid() && !exists(m_state->selected())) m_state->select({});
    m_input->hideCard();
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
    if (!m_state->areas().empty()) m_selection->tellAreas(); // the same area of other work
}

void TimelineView::planAgain()
{
    m_plan = std::make_shared<const RowPlan>(planRows(m_scene.panels, m_state->rows()));
    layOut();
    invalidate();
    updateGeometry();
    emit rowsLaidOut();
}

TimelineScene TimelineView::sceneFor(const QSizeF& size) const
{
    TimelineScene scene = m_scene;
    scene.size = size;
    scene.showCritical = m_state->shows().criticalPath;
    scene.showCommunication = m_state->shows().communication;
    const int usual = scene.panels.size() > 2 ? 30 : scene.panels.size() > 1 ? 38 : 48;
    const double height = m_sizes.height > 0 ? m_sizes.height : std::round(usual * m_sizes.scale);
    RowMetrics metrics = rowMetrics(height, scene.showCommunication);
    if (metrics.track > 0 && m_sizes.track > 0) metrics.track = m_sizes.track;
    scene.rows = layoutRows(m_plan ? m_plan : std::make_shared<const RowPlan>(), metrics, scene.panels.size() > 1);
    scene.groupLook = m_state->rows().look;
    scene.timeOrigin = m_state->timeOrigin();
    scene.axis = axisIn(QRectF(QPointF(0, 0), size), m_state->visible());
    scene.scroll = std::clamp(scene.scroll, 0.0, std::max(0.0, scene.rows.height - scene.rowsRect().height()));
    scene.selected = m_state->selected();
    scene.areas = m_state->areas();
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

void TimelineView::setRowSizes(const RowSizes& sizes)
{
    const RowSizes next{std::max(0.0, sizes.height), std::clamp(sizes.scale, leastRowScale, mostRowScale),
                        std::max(0.0, sizes.track)};
    if (next == m_sizes) return;
    m_sizes = next;
    layOut();
    invalidate();
    updateGeometry();
    emit statusChanged(statusText());
}

void TimelineView::setTitle(const QString& title)
{
    m_scene.title = title;
    invalidate();
}

void TimelineView::setScrollTop(double top)
{
    const double before = m_scene.scroll;
    m_scene.scroll = top;
    layOut();
    if (m_scene.scroll == before) return;
    invalidate();
    m_input->pictureMoved();
    emit m_input->rowsScrolled();
}

void TimelineView::showRows(double top, double bottom)
{
    const QRectF rows = m_scene.scrolledRect();
    const double away = std::max(rows.top() - top, bottom - rows.bottom());
    if (away > 2 * (bottom - top) && bottom - top < rows.height() / 2) // from afar: to the middle, where no card lies
        setScrollTop(m_scene.scroll + (top + bottom) / 2 - rows.center().y());
    else if (top < rows.top() + 4)
        setScrollTop(m_scene.scroll - (rows.top() + 12 - top));
    else if (bottom > rows.bottom() - 4)
        setScrollTop(m_scene.scroll + (bottom + 12 - rows.bottom()));
}

void TimelineView::setZoomBox(std::optional<TimeRange> range)
{
    m_scene.zoomBox = range;
    update();
}

void TimelineView::setFaded(SpanRef ref)
{
    if (ref == m_scene.faded) return;
    m_scene.faded = ref;
    invalidate();
}

void TimelineView::setPreview(std::shared_ptr<const TimelinePanel> panel)
{
    if (panel == m_scene.preview) return;
    m_scene.preview = std::move(panel);
    invalidate();
}

CardText TimelineView::cardOf(SpanRef ref) const
{
    if (!ref.valid() || ref.panel >= static_cast<int>(m_scene.panels.size())) return {};
    return spanCard(m_scene.panel(ref.panel), ref.span, *m_theme, m_causes, m_state->timeOrigin());
}

CardText TimelineView::idleCardOf(const RowPlace& row, Nanos time) const
{
    return idleCard(m_scene.panel(row.panel), row.rankIndex, time, m_causes, m_state->timeOrigin());
}

CardText TimelineView::cardAt(QPointF point) const
{
    for (auto overlay = m_overlays.rbegin(); overlay != m_overlays.rend(); ++overlay)
        if (CardText card = (*overlay)->describe(point); !card.empty()) return card;
    if (const SpanRef ref = m_scene.spanAt(point); ref.valid()) return cardOf(ref);
    const int row = m_scene.rowUnder(point.y());
    if (row < 0) return {};
    const RowPlace& place = m_scene.place(row);
    const TimelinePanel& panel = m_scene.panel(place.panel);
    const Nanos time = m_scene.axis.toTime(point.x());
    if (place.kind == RowKind::Group) return groupCard(panel, m_scene.groupOf(place), time);
    if (point.y() >= m_scene.rowTop(row) + place.height) return {};
    return place.device ? deviceCard(panel, place.rankIndex, time, m_state->timeOrigin()) : idleCardOf(place, time);
}

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
    m_input->pictureMoved();
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
    if (m_scene.preview && !m_scene.panels.empty()) {
        previewed = m_scene;
        previewed->panels.front() = m_scene.preview;
        previewed->selected = {};
        previewed->microbatch = {};
    }
    const TimelineScene& scene = previewed ? *previewed : m_scene;
    const QSize wanted(static_cast<int>(std::ceil(width() * ratio)), static_cast<int>(std::ceil(height() * ratio)));
    const bool fits = !m_frameStale && m_canvas.image.size() == wanted && m_canvas.image.devicePixelRatio() == ratio;
    if (fits && m_frameMoved && panFrame(m_canvas, scene, *m_theme, ratio)) {
        m_frameMoved = false;
        if (m_canvas.detail == Detail::Draft && !m_settle->isActive()) m_settle->start();
    }
    if (!fits || m_frameMoved) {
        const Detail detail = scene.visibleSlices() > exactLimit && !m_scene.preview ? Detail::Draft : Detail::Exact;
        m_canvas.image = frameImage(scene, *m_theme, ratio, detail);
        m_canvas.detail = detail;
        m_canvas.axis = m_scene.axis;
        m_frameStale = m_frameMoved = false;
        if (detail == Detail::Draft && !m_settle->isActive()) m_settle->start();
    }
    QPainter painter(this);
    painter.drawImage(QPointF(0, 0), m_canvas.image);
    paintOverlays(painter, scene, *m_theme, m_overlays);
    paintAxisMarks(painter, scene, *m_theme);
    if (hasFocus()) {
        painter.setPen(QPen(m_theme->accent, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawLine(QPointF(0, rulerHeight - 0.5), QPointF(gutterFor(width()) - 16, rulerHeight - 0.5));
    }
}

void TimelineView::settle()
{
    if (!m_input->dragging()) m_state->rememberVisible();
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
    if (width >= narrowView) return m_scene.contentHeight();
    const auto rows = static_cast<double>(m_scene.rows.rows.size()),
               panels = static_cast<double>(m_scene.panels.size());
    return rulerHeight + (panels > 1 ? panels * panelHeaderHeight : 0) + rows * (panels > 1 ? 17 : 30) + 2;
}

void TimelineView::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme, const PaintedMarks& marks) const
{
    TimelineScene scene = sceneFor(rect.size());
    if (rect.width() < narrowView && !scene.rows.rows.empty()) {
        const auto plan = m_plan ? m_plan : std::make_shared<const RowPlan>();
        const auto laidOut = [&](double pitch) {
            RowMetrics metrics = rowMetrics(std::max(2.0, pitch * 0.86), false);
            metrics.gap = std::max(0.0, pitch - metrics.height);
            return layoutRows(plan, metrics, scene.panels.size() > 1);
        };
        // The largest that fits: headers, gaps and lanes, which thin rows are without, take theirs.
        double fits = 2.5, most = 57; // of rows at their preferred height
        const double room = rect.height() - rulerHeight;
        for (int tries = 0; tries < 12; ++tries) {
            const double pitch = tries == 0 ? most : (fits + most) / 2;
            (laidOut(pitch).height <= room ? fits : most) = pitch;
        }
        scene.rows = laidOut(fits);
        scene.scroll = 0;
        scene.smallLabels = true;
    }
    scene.showFolds = false;
    if (!marks.hover) {
        scene.hoverTime.reset();
        scene.microbatch = {};
        scene.faded = {};
    }
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
    paintOverlays(painter, scene, theme, m_overlays, marks);
    paintAxisMarks(painter, scene, theme);
    painter.restore();
}

} // namespace stagewright
