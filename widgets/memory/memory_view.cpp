#include "widgets/memory/memory_view.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <QContextMenuEvent>
#include <QMouseEvent>
#include <QWheelEvent>

#include "schedules/model/memory_category.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/sentence.h"

namespace stagewright {

namespace {

constexpr double header = 28;
constexpr double bottomMargin = 8;
constexpr std::size_t inPlace = 60'000; // up to this many events and samples are prepared at once, more on a worker
constexpr int mostTold = 16;
constexpr double leastPainted = 30; // px of a chart in a narrow picture

std::size_t workOf(const TimelinePanel& panel)
{
    std::size_t work = panel.timeline->memory().size();
    for (const Counter& counter : panel.timeline->counters()) work += counter.samples.size();
    return work;
}

} // namespace

MemoryView::MemoryView(ViewState* state, QWidget* parent)
    : ThemedWidget(parent), m_state(state), m_rows(std::make_shared<const std::vector<MemoryRow>>()),
      m_card(new HoverCard(this))
{
    loadFonts();
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setAttribute(Qt::WA_OpaquePaintEvent);
    setObjectName(u"memoryView"_s);
    setAccessibleName(u"Memory"_s);
    const auto repaint = [this] { update(); };
    connect(m_state, &ViewState::visibleChanged, this, repaint);
    connect(m_state, &ViewState::hoverTimeChanged, this, repaint);
    connect(m_state, &ViewState::hoveredChanged, this, repaint);
    connect(m_state, &ViewState::extentChanged, this, repaint);
    connect(m_state, &ViewState::timeDisplayChanged, this, repaint);
    connect(m_state, &ViewState::rowsChanged, this, &MemoryView::arrange);
    connect(m_state, &ViewState::selectionChanged, this, &MemoryView::arrange);
}

MemoryView::~MemoryView() { delete m_card.data(); }

double MemoryView::paintedHeight() const
{
    constexpr double each = 84, mostCharts = 16;
    if (!known()) return scene(size()).headerHeight;
    return header + each * std::clamp(static_cast<double>(m_places.size()), 1.0, mostCharts) + bottomMargin;
}

QSize MemoryView::sizeHint() const
{
    if (!known()) return {1000, static_cast<int>(scene(size()).headerHeight)};
    return {1000, static_cast<int>(header + 104 * static_cast<double>(std::clamp<std::size_t>(m_places.size(), 1, 4)) +
                                   bottomMargin)};
}

QSize MemoryView::minimumSizeHint() const
{
    return {420, known() ? 100 : static_cast<int>(scene(size()).headerHeight)};
}

bool MemoryView::known() const
{
    return ofRanks() ||
           std::any_of(m_rows->begin(), m_rows->end(), [](const MemoryRow& row) { return row.counter.has_value(); });
}

bool MemoryView::ofRanks() const
{
    if (m_panels.empty() || !ready() || m_predicted) return true;
    return m_panels.back()->timeline->hasMemory() ||
           std::any_of(m_rows->begin(), m_rows->end(), [](const MemoryRow& row) {
               return !row.counter && (row.total().peak != 0 || (row.ghost && row.ghost->peak != 0));
           });
}

QChar MemoryView::letterOf(std::size_t panel) const
{
    return static_cast<qsizetype>(panel) < m_letters.size() ? m_letters[static_cast<qsizetype>(panel)]
                                                            : QChar(static_cast<char16_t>(u'A' + panel));
}

void MemoryView::setPanels(std::vector<std::shared_ptr<const TimelinePanel>> panels, const QString& letters)
{
    m_panels = std::move(panels);
    m_letters = letters;
    m_predicted.reset();
    refill();
}

void MemoryView::setPredicted(std::shared_ptr<const TimelinePanel> panel)
{
    if (panel == m_predicted) return;
    m_predicted = std::move(panel);
    refill();
}

void MemoryView::setSettings(const MemorySettings& settings)
{
    if (settings == m_settings) return;
    m_settings = settings;
    refill();
    emit settingsChanged();
}

MemoryCategory MemoryView::category() const
{
    for (const MemoryCategory one : stackOrder())
        if (m_settings.has(one)) return one;
    return MemoryCategory::Activations;
}

void MemoryView::setBudget(std::optional<Bytes> bytes)
{
    m_budget = bytes;
    arrange();
}

void MemoryView::setRankBudgets(std::vector<Bytes> bytes)
{
    if (bytes == m_rankBudgets) return;
    m_rankBudgets = std::move(bytes);
    arrange();
}

void MemoryView::setRowHeight(double pixels)
{
    m_rowHeight = std::max(0.0, pixels);
    update();
}

void MemoryView::refill()
{
    if (m_card) m_card->hide();
    m_filling.drop();
    std::size_t work = 0;
    for (const auto& panel : m_panels) work += workOf(*panel);
    if (work <= inPlace) {
        accept(std::make_shared<const std::vector<MemoryRow>>(memoryRows(m_panels, m_predicted, m_settings)));
        return;
    }
    m_places.clear(); // they point into rows of other panels
    setMaximumHeight(QWIDGETSIZE_MAX);
    update();
    m_filling.start(
        [panels = m_panels, predicted = m_predicted, settings = m_settings]() -> Rows {
            return std::make_shared<const std::vector<MemoryRow>>(memoryRows(panels, predicted, settings));
        },
        [this](Rows rows) { accept(std::move(rows)); });
}

void MemoryView::accept(Rows rows)
{
    m_places.clear();
    m_rows = std::move(rows);
    arrange();
    fitHeight();
}

// Without charts it is its heading's text, whatever the legend below it takes.
void MemoryView::fitHeight()
{
    setMaximumHeight(known() ? QWIDGETSIZE_MAX : static_cast<int>(scene(size()).headerHeight));
    updateGeometry();
}

void MemoryView::arrange()
{
    m_places.clear();
    if (!m_panels.empty() && ready()) {
        const TimelinePanel& panel = *m_panels.back();
        const auto& rows = *m_rows;
        const auto range = m_state->selectedRange();
        const auto peakOf = [&](const MemoryRow& row) { return range ? row.total().peakIn(*range) : row.total().peak; };
        const auto add = [&](const MemoryRow& row, const QString& title, const QString& note) {
            MemoryPlace place;
            place.row = &row;
            place.title = title;
            place.subtitle = (range ? u"in range %1"_s : u"peak %1"_s).arg(bytesText(peakOf(row), panel.units));
            place.figure = bytesText(peakOf(row), panel.units);
            place.note = note;
            m_places.push_back(std::move(place));
        };
        const RowPlan plan = planRows({m_panels.back()}, m_state->rows());
        for (const RowItem& item : plan.items) {
            if (!ofRanks()) break;
            const auto at = static_cast<std::size_t>(item.rankIndex);
            if (item.kind != RowKind::Group) {
                if (at < rows.size()) add(rows[at], rows[at].title, {});
                continue;
            }
            const RankGroup& group = plan.groups.front()[static_cast<std::size_t>(item.group)];
            if (group.expanded) continue;
            const auto most = std::max_element(group.ranks.begin(), group.ranks.end(), [&](int a, int b) {
                return peakOf(rows[static_cast<std::size_t>(a)]) < peakOf(rows[static_cast<std::size_t>(b)]);
            });
            const MemoryRow& row = rows[static_cast<std::size_t>(*most)];
            add(row, group.title, u"on %1"_s.arg(row.title.toLower()));
        }
        Bytes shared = 1;
        for (const MemoryPlace& place : m_places) shared = std::max(shared, place.row->top());
        for (MemoryPlace& place : m_places) {
            Bytes top = m_settings.ownScale ? std::max<Bytes>(1, place.row->top()) : shared;
            // A budget far above the use would flatten every curve; it is then named, not drawn.
            if (m_budget && m_settings.has(MemoryCategory::Activations) && *m_budget < 3 * top)
                top = std::max(top, *m_budget);
            const auto rank = static_cast<std::size_t>(std::max(0, place.row->rankIndex));
            if (rank < m_rankBudgets.size())
                top = std::max(
                    {top, m_rankBudgets[rank],
                     m_settings.ownScale ? Bytes(0) : *std::max_element(m_rankBudgets.begin(), m_rankBudgets.end())});
            place.top = top + top / 16 + 1;
        }
        for (const MemoryRow& row : rows) {
            if (!row.counter) continue;
            MemoryPlace place;
            place.row = &row;
            place.title = row.title;
            place.subtitle = row.rankIndex < 0 ? u"of the run"_s : u"rank %1"_s.arg(row.rankIndex);
            place.note = counterUnit(row.counter->most, row.counter->unit).name;
            // What never changes is the same line on every rank: one chart shows them all.
            if (row.counter->least == row.counter->most && row.rankIndex >= 0) {
                const auto same = std::find_if(m_places.begin(), m_places.end(), [&](const MemoryPlace& one) {
                    return one.row->counter && one.row->counter->least == one.row->counter->most &&
                           one.title == place.title && one.row->counter->most == row.counter->most;
                });
                const auto alike = std::count_if(rows.begin(), rows.end(), [&](const MemoryRow& one) {
                    return one.counter && one.rankIndex >= 0 && one.title == row.title &&
                           one.counter->least == one.counter->most && one.counter->most == row.counter->most;
                });
                if (same != m_places.end()) continue;
                if (alike > 1) place.subtitle = u"%L1 ranks alike"_s.arg(alike);
            }
            m_places.push_back(std::move(place));
        }
    }
    QStringList words; // for screen readers: what the charts show first
    for (const MemoryPlace& place : m_places) {
        if (words.size() == mostTold) {
            words << countText(static_cast<qint64>(m_places.size()), u"1 chart in all"_s, u"%L1 charts in all"_s);
            break;
        }
        QString text = place.title + u' ' + place.subtitle;
        if (!place.note.isEmpty()) text += u' ' + place.note;
        const MemoryCurve* activations = place.row->activations();
        if (m_budget && activations != nullptr) {
            if (const auto over = activations->firstOver(*m_budget))
                text += u", over budget from %1"_s.arg(durationText(*over, m_panels.back()->units));
        }
        words << text;
    }
    setAccessibleDescription(words.join(u", "_s));
    update();
}

QString MemoryView::headline() const
{
    if (m_settings.count() == 1)
        for (const MemoryCategory category : stackOrder())
            if (m_settings.has(category)) return qtText(traitsOf(category).chart);
    return m_settings.count() == 0 ? u"Counters"_s : u"Memory"_s;
}

MemoryScene MemoryView::scene(const QSizeF& size) const
{
    MemoryScene scene;
    scene.size = size;
    scene.headerHeight = header;
    scene.axis = axisIn(QRectF(QPointF(0, 0), size), m_state->visible());
    scene.title = headline();
    scene.rows = m_places;
    if (!m_panels.empty()) {
        scene.units = m_panels.back()->units;
        scene.origin = m_panels.back()->origin;
    }
    scene.budget = m_budget;
    scene.rankBudgets = m_rankBudgets;
    const auto count = static_cast<double>(std::max<std::size_t>(1, m_places.size()));
    scene.rowHeight = m_rowHeight > 0 ? m_rowHeight
                                      : std::clamp((size.height() - header - bottomMargin) / count, 64.0,
                                                   std::clamp(size.height() / 5, 120.0, 200.0));
    scene.scroll =
        std::clamp(m_scroll, 0.0, std::max(0.0, header + count * scene.rowHeight + bottomMargin - size.height()));
    scene.hoverTime = m_state->hoverTime();
    scene.range = m_state->selectedRange();
    const MicrobatchRef hovered = m_state->hoveredMicrobatch();
    scene.microbatch = hovered.microbatch;
    if (!m_panels.empty() && hovered.step >= 0) scene.step = hovered.step + std::max(0, m_panels.back()->step);

    Bytes top = 1;
    for (const MemoryPlace& place : m_places) top = std::max(top, place.row->counter ? 0 : place.top);
    const QString unit = scene.units.memory != 1 ? u"activations in microbatches"_s : bytesText(top).section(u' ', 1);
    QStringList words;
    if (!ready()) words << u"drawing the charts…"_s;
    const bool budgetShown = m_budget && m_settings.has(MemoryCategory::Activations);
    if (!ofRanks())
        words << (m_panels.empty() || m_panels.back()->noMemory.empty()
                      ? u"not recorded in this run"_s
                      : QString::fromStdString(m_panels.back()->noMemory));
    else if (m_settings.count() > 0)
        words << (m_settings.ownScale ? u"%1, each rank on its own scale"_s : u"%1 per rank"_s).arg(unit);
    std::size_t most = 0;
    const MemoryRow* fullest = nullptr;
    for (const MemoryPlace& place : m_places) {
        if (place.row->layers.size() <= std::max<std::size_t>(most, 1)) continue;
        most = place.row->layers.size();
        fullest = place.row;
    }
    if (fullest != nullptr) {
        QStringList names;
        for (const MemoryLayer& layer : fullest->layers) names << titleOf(layer.category).toLower();
        words << u"from the bottom: %1"_s.arg(names.join(u", "_s));
    }
    if (m_panels.size() > 1 && ofRanks()) {
        const std::size_t last = m_panels.size() - 1;
        const bool brief = size.width() < 700; // the names are above the rows
        const auto named = [this, brief](std::size_t i) {
            return brief ? QString(letterOf(i)) : u"%1 (%2)"_s.arg(letterOf(i)).arg(m_panels[i]->name);
        };
        words << u"solid = %1"_s.arg(named(last)) << u"dashed grey = %1"_s.arg(named(last - 1));
        if (budgetShown) words << u"dashed red = budget %1"_s.arg(bytesText(*m_budget, scene.units));
    } else {
        if (!m_rankBudgets.empty())
            words << u"dashed lines = goal"_s;
        else if (budgetShown)
            words << u"dashed line = budget %1"_s.arg(bytesText(*m_budget, scene.units));
        if (m_predicted) words << u"dotted = simulated with this run's costs"_s;
    }
    if (budgetShown && *m_budget > top) words << u"outside the chart"_s;
    if (scene.range) words << u"filtered: peaks are those of the selected range"_s;
    scene.subtitle = words.join(u", "_s);
    if (!known()) scene.headerHeight = std::max(header, headingHeight(scene)); // why, and what to do about it
    return scene;
}

Axis MemoryView::axis() const { return axisIn(QRectF(rect()), m_state->visible()); }

int MemoryView::placeOf(int rankIndex) const
{
    const auto at = std::find_if(m_places.begin(), m_places.end(), [&](const MemoryPlace& place) {
        return !place.row->counter && place.row->rankIndex == rankIndex;
    });
    return rankIndex < 0 || at == m_places.end() ? -1 : static_cast<int>(at - m_places.begin());
}

QRectF MemoryView::plotRect(int rankIndex) const
{
    const int place = placeOf(rankIndex);
    return place < 0 ? QRectF() : scene(QSizeF(size())).plot(place);
}

double MemoryView::yOf(int rankIndex, Bytes bytes) const
{
    const int place = placeOf(rankIndex);
    return place < 0 ? 0 : scene(QSizeF(size())).y(place, bytes);
}

QStringList MemoryView::rowTitles() const
{
    QStringList titles;
    for (const MemoryPlace& place : m_places) titles << place.title;
    return titles;
}

void MemoryView::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme, bool withHover) const
{
    MemoryScene painted = scene(rect.size());
    const double room = rect.height() - header - bottomMargin;
    const auto most = static_cast<std::size_t>(std::max(1.0, std::floor(room / leastPainted)));
    painted.scroll = 0;
    if (painted.rows.size() > most) { // the fullest, in the order of the ranks
        const auto peakOf = [](const MemoryPlace& place) {
            return place.row->counter ? Bytes(-1) : place.row->total().peak;
        };
        std::vector<std::size_t> order(painted.rows.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return peakOf(painted.rows[a]) > peakOf(painted.rows[b]);
        });
        order.resize(most);
        std::sort(order.begin(), order.end());
        const std::size_t all = painted.rows.size();
        std::vector<MemoryPlace> kept;
        for (const std::size_t at : order) kept.push_back(painted.rows[at]);
        painted.rows = std::move(kept);
        const QString which =
            most == 1 ? u"the fullest of %1 ranks"_s.arg(all) : u"the %1 fullest of %2 ranks"_s.arg(most).arg(all);
        painted.subtitle = m_panels.size() > 1 ? u"%1; solid %2, dashed %3"_s.arg(which).arg(
                                                     letterOf(m_panels.size() - 1), letterOf(m_panels.size() - 2))
                                               : which;
    }
    const double each = room / static_cast<double>(std::max<std::size_t>(1, painted.rows.size()));
    painted.rowHeight = rect.width() < narrowView ? each : std::min(painted.rowHeight, each);
    if (!withHover) {
        painted.hoverTime.reset();
        painted.microbatch = -1;
    }
    painter.save();
    painter.translate(rect.topLeft());
    painter.setClipRect(QRectF(QPointF(0, 0), rect.size()), Qt::IntersectClip);
    paintMemory(painter, painted, theme);
    painter.restore();
}

void MemoryView::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    paintMemory(painter, scene(QSizeF(size())), *m_theme);
    paintFocus(painter);
}

void MemoryView::mouseMoveEvent(QMouseEvent* event)
{
    const MemoryScene now = scene(QSizeF(size()));
    const QPointF at = event->position();
    const bool inPlot =
        at.x() >= now.axis.left && at.x() < now.axis.left + now.axis.width + rightMargin && !now.axis.degenerate();
    if (!inPlot || m_panels.empty()) {
        m_state->setHovered({});
        m_state->setHoverTime(std::nullopt);
        if (m_card) m_card->hide();
        return;
    }
    const Nanos time = now.axis.toTime(at.x());
    const double y = at.y() - header + now.scroll;
    const int place = y < 0 || at.y() < header ? -1 : static_cast<int>(y / now.rowHeight);
    CardText card;
    MicrobatchRef holder;
    if (place >= 0 && place < static_cast<int>(m_places.size())) {
        const MemoryPlace& shown = m_places[static_cast<std::size_t>(place)];
        if (shown.row->counter) {
            card = counterCard(place, time);
        } else {
            const QRectF plot = now.plot(place);
            const auto bytes = static_cast<Bytes>(
                std::max(0.0, (plot.bottom() - at.y()) / plot.height() * static_cast<double>(shown.top)));
            card = cardAt(shown.row->rankIndex, time, bytes);
            holder = holderAt(shown.row->rankIndex, time, bytes);
        }
    }
    m_state->setHoverTime(time);
    m_state->setHovered({}, holder);
    if (!m_card) m_card = new HoverCard(this);
    m_card->showAt(mapToGlobal(at.toPoint()), card, *m_theme);
}

void MemoryView::leaveEvent(QEvent*)
{
    m_state->setHoverTime(std::nullopt);
    m_state->setHovered({});
    if (m_card) m_card->hide();
}

void MemoryView::scrollBy(double pixels)
{
    m_scroll = scene(QSizeF(size())).scroll + pixels;
    m_scroll = scene(QSizeF(size())).scroll; // clamped
    update();
}

void MemoryView::showRank(int rankIndex, bool first)
{
    const int place = placeOf(rankIndex);
    if (place < 0) return;
    const MemoryScene now = scene(QSizeF(size()));
    const double top = place * now.rowHeight, room = size().height() - header - bottomMargin;
    if (first || top < now.scroll)
        scrollBy(top - now.scroll);
    else if (top + now.rowHeight > now.scroll + room)
        scrollBy(top + now.rowHeight - room - now.scroll);
}

void MemoryView::wheelEvent(QWheelEvent* event)
{
    const Axis a = axis();
    const QPointF angle = event->angleDelta();
    if ((event->modifiers() & Qt::ControlModifier) != 0) {
        const double x = std::clamp(event->position().x(), a.left, a.left + a.width);
        m_state->setVisible(zoomed(m_state->visible(), std::pow(1.25, -angle.y() / 120.0), a.toTime(x)));
    } else if ((event->modifiers() & Qt::ShiftModifier) != 0 || std::abs(angle.x()) > std::abs(angle.y())) {
        const double by = std::abs(angle.x()) > std::abs(angle.y()) ? angle.x() : angle.y();
        m_state->setVisible(panned(m_state->visible(), -by / 120.0 * 48.0 / std::max(1.0, a.width)));
    } else {
        scrollBy(-angle.y() / 120.0 * 48.0);
    }
    event->accept();
}

void MemoryView::keyPressEvent(QKeyEvent* event)
{
    const auto action = actionOf(m_keyMap, *event);
    if (action == ViewAction::RowsUp || action == ViewAction::RowsDown) {
        scrollBy((action == ViewAction::RowsUp ? -1 : 1) * scene(QSizeF(size())).rowHeight);
        return;
    }
    if (!performViewKey(*m_state, *event, m_keyMap)) QWidget::keyPressEvent(event);
}

void MemoryView::contextMenuEvent(QContextMenuEvent* event)
{
    if (m_card) m_card->hide();
    emit menuAsked(event->globalPos());
}

} // namespace stagewright
