#include "widgets/memory/memory_view.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <QMouseEvent>
#include <QWheelEvent>

#include "widgets/key_map.h"

namespace stagewright {

namespace {

constexpr double header = 28;
constexpr double bottomMargin = 8;

QString categoryTitle(MemoryCategory category)
{
    switch (category) {
    case MemoryCategory::Weights: return MemoryView::tr("Weight memory");
    case MemoryCategory::Gradients: return MemoryView::tr("Gradient memory");
    case MemoryCategory::Optimizer: return MemoryView::tr("Optimizer memory");
    case MemoryCategory::Activations: return MemoryView::tr("Activation memory");
    case MemoryCategory::Communication: return MemoryView::tr("Communication memory");
    case MemoryCategory::Workspace: return MemoryView::tr("Workspace memory");
    }
    return {};
}

MemorySeries seriesOf(const TimelinePanel& panel, const PanelRank& rank, MemoryCategory category)
{
    return category == MemoryCategory::Activations ? rank.activations : memorySeries(*panel.timeline, rank.rank, category, panel.step);
}

} // namespace

MemoryView::MemoryView(ViewState* state, QWidget* parent) : QWidget(parent), m_state(state), m_card(new HoverCard(this))
{
    loadFonts();
    setMouseTracking(true);
    setFocusPolicy(Qt::StrongFocus);
    setAttribute(Qt::WA_OpaquePaintEvent);
    setObjectName(QStringLiteral("memoryView"));
    setAccessibleName(QStringLiteral("Memory"));
    const auto repaint = [this] { update(); };
    connect(m_state, &ViewState::visibleChanged, this, repaint);
    connect(m_state, &ViewState::hoverTimeChanged, this, repaint);
    connect(m_state, &ViewState::extentChanged, this, repaint);
}

MemoryView::~MemoryView()
{
    delete m_card.data();
}

QSize MemoryView::sizeHint() const
{
    return {1000, static_cast<int>(header + 104 * static_cast<double>(std::clamp<std::size_t>(m_rows.size(), 1, 4)) + bottomMargin)};
}

void MemoryView::setPanels(std::vector<std::shared_ptr<const TimelinePanel>> panels)
{
    m_panels = std::move(panels);
    refill();
    QStringList peaks; // for screen readers: what the charts show first
    if (!m_panels.empty())
        for (const PanelRank& rank : m_panels.back()->ranks) {
            if (peaks.size() == 16) {
                peaks << tr("%n ranks in all", nullptr, static_cast<int>(m_panels.back()->ranks.size()));
                break;
            }
            peaks << tr("rank %1 peaks at %2").arg(rank.rank).arg(bytesText(rank.activations.peak, m_panels.back()->units));
        }
    setAccessibleDescription(peaks.join(QStringLiteral(", ")));
}

void MemoryView::setCategory(MemoryCategory category)
{
    if (category == m_category) return;
    m_category = category;
    refill();
}

void MemoryView::setBudget(std::optional<Bytes> bytes)
{
    m_budget = bytes;
    update();
}

void MemoryView::setTheme(const Theme& theme)
{
    m_theme = &theme;
    update();
}

void MemoryView::setRowHeight(double pixels)
{
    m_rowHeight = std::max(0.0, pixels);
    update();
}

void MemoryView::refill()
{
    m_rows.clear();
    if (m_card) m_card->hide();
    if (!m_panels.empty()) {
        const TimelinePanel& solid = *m_panels.back();
        const TimelinePanel* ghost = m_panels.size() > 1 ? m_panels[m_panels.size() - 2].get() : nullptr;
        for (std::size_t i = 0; i < solid.ranks.size(); ++i) {
            const PanelRank& rank = solid.ranks[i];
            MemoryRow row;
            row.title = rank.title;
            row.curve = curveOf(seriesOf(solid, rank, m_category), solid.origin, solid.duration);
            row.subtitle = QStringLiteral("peak ") + bytesText(row.curve.peak, solid.units);
            if (ghost != nullptr && i < ghost->ranks.size()) {
                row.ghost = curveOf(seriesOf(*ghost, ghost->ranks[i], m_category), ghost->origin, ghost->duration);
            }
            m_rows.push_back(std::move(row));
        }
    }
    QStringList words;
    for (const MemoryRow& row : m_rows) words << row.title + QLatin1Char(' ') + row.subtitle;
    setAccessibleDescription(words.join(QStringLiteral(", ")));
    updateGeometry();
    update();
}

MemoryScene MemoryView::scene(const QSizeF& size) const
{
    MemoryScene scene;
    scene.size = size;
    scene.headerHeight = header;
    scene.axis = axisIn(QRectF(QPointF(0, 0), size), m_state->visible());
    scene.title = categoryTitle(m_category);
    scene.rows = &m_rows;
    if (!m_panels.empty()) scene.units = m_panels.back()->units;
    Bytes peak = 1;
    for (const MemoryRow& row : m_rows) peak = std::max({peak, row.curve.peak, row.ghost ? row.ghost->peak : 0});
    // A budget far above what is used would flatten every curve; it is then named, not drawn.
    scene.budget = m_budget;
    if (m_budget && *m_budget < 3 * peak) peak = std::max(peak, *m_budget);
    scene.top = peak + peak / 16 + 1;
    const auto count = static_cast<double>(std::max<std::size_t>(1, m_rows.size()));
    scene.rowHeight = m_rowHeight > 0 ? m_rowHeight : std::clamp((size.height() - header - bottomMargin) / count, 64.0, 120.0);
    scene.scroll = std::clamp(m_scroll, 0.0, std::max(0.0, header + count * scene.rowHeight + bottomMargin - size.height()));
    scene.hoverTime = m_state->hoverTime();

    const QString unit = scene.units.memory != 1 ? MemoryView::tr("activation shares (u)") : bytesText(scene.top).section(QLatin1Char(' '), 1);
    QStringList words;
    if (m_panels.size() > 1) {
        const std::size_t last = m_panels.size() - 1;
        const auto named = [this](std::size_t i) {
            return QStringLiteral("%1 (%2)").arg(QChar(static_cast<char16_t>(u'A' + i))).arg(m_panels[i]->name);
        };
        words << unit + MemoryView::tr(" per rank") << QStringLiteral("solid = ") + named(last) << MemoryView::tr("dashed grey = ") + named(last - 1);
        if (m_budget) words << MemoryView::tr("dashed red = budget ") + bytesText(*m_budget, scene.units);
    } else {
        words << unit + MemoryView::tr(" per rank");
        if (m_budget) words << MemoryView::tr("dashed line = budget ") + bytesText(*m_budget, scene.units);
    }
    if (m_budget && *m_budget > scene.top) words << MemoryView::tr("out of the picture");
    scene.subtitle = words.join(QStringLiteral(", "));
    return scene;
}

Axis MemoryView::axis() const
{
    return axisIn(QRectF(rect()), m_state->visible());
}

QRectF MemoryView::plotRect(int rankIndex) const
{
    if (rankIndex < 0 || rankIndex >= static_cast<int>(m_rows.size())) return {};
    return scene(QSizeF(size())).plot(rankIndex);
}

double MemoryView::yOf(int rankIndex, Bytes bytes) const
{
    return scene(QSizeF(size())).y(rankIndex, bytes);
}

CardText MemoryView::cardAt(int rankIndex, Nanos axisTime) const
{
    CardText card;
    if (rankIndex < 0 || rankIndex >= static_cast<int>(m_rows.size()) || m_panels.empty()) return card;
    const TimelinePanel& panel = *m_panels.back();
    const MemoryRow& row = m_rows[static_cast<std::size_t>(rankIndex)];
    if (axisTime < 0 || axisTime >= panel.duration) return card;
    card.title = categoryTitle(m_category) + QStringLiteral(" · ") + row.title.toLower();
    card.rows.emplace_back(MemoryView::tr("In use"), bytesText(row.curve.at(axisTime), panel.units));
    card.rows.emplace_back(QStringLiteral("Peak"), bytesText(row.curve.peak, panel.units));
    if (row.ghost) {
        const QChar badge(static_cast<char16_t>(u'A' + m_panels.size() - 2));
        card.rows.emplace_back(MemoryView::tr("In use in %1").arg(badge), bytesText(row.ghost->at(axisTime), panel.units));
    }
    if (m_budget) card.rows.emplace_back(MemoryView::tr("Below budget"), bytesText(*m_budget - row.curve.at(axisTime), panel.units));
    // Who holds it: microbatches by stage, with the stage's total.
    std::map<int, std::pair<Bytes, std::vector<int>>> byStage;
    const int rank = panel.ranks[static_cast<std::size_t>(rankIndex)].rank;
    for (const Holder& holder : holdersAt(*panel.timeline, rank, m_category, axisTime + panel.origin)) {
        auto& [bytes, microbatches] = byStage[holder.stage];
        bytes += holder.bytes;
        if (holder.microbatch >= 0) microbatches.push_back(holder.microbatch);
    }
    QStringList lines;
    for (auto& [stage, held] : byStage) {
        std::sort(held.second.begin(), held.second.end());
        QStringList numbers;
        for (const int microbatch : held.second) {
            if (numbers.size() == 12) {
                numbers << MemoryView::tr("… (%1 in all)").arg(held.second.size());
                break;
            }
            numbers << QString::number(microbatch);
        }
        QString line = MemoryView::tr("Stage %1 holds %2").arg(stage).arg(bytesText(held.first, panel.units));
        if (!numbers.isEmpty()) line += (numbers.size() == 1 ? QStringLiteral(": microbatch ") : QStringLiteral(": microbatches ")) + numbers.join(QStringLiteral(", "));
        lines << line;
    }
    card.note = lines.join(QLatin1Char('\n'));
    return card;
}

void MemoryView::paintTo(QPainter& painter, const QRectF& rect, const Theme& theme, bool withHover) const
{
    MemoryScene painted = scene(rect.size());
    if (!withHover) painted.hoverTime.reset();
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
    if (hasFocus()) {
        painter.setPen(QPen(m_theme->accent, 1));
        painter.setBrush(Qt::NoBrush);
        painter.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
    }
}

void MemoryView::mouseMoveEvent(QMouseEvent* event)
{
    const MemoryScene now = scene(QSizeF(size()));
    const QPointF at = event->position();
    const bool inPlot = at.x() >= now.axis.left && at.x() < now.axis.left + now.axis.width + rightMargin && !now.axis.degenerate();
    m_state->setHovered({});
    if (!inPlot || m_panels.empty()) {
        m_state->setHoverTime(std::nullopt);
        if (m_card) m_card->hide();
        return;
    }
    const Nanos time = now.axis.toTime(at.x());
    m_state->setHoverTime(time);
    const double y = at.y() - header + now.scroll;
    const int row = y < 0 ? -1 : static_cast<int>(y / now.rowHeight);
    if (!m_card) m_card = new HoverCard(this);
    m_card->showAt(mapToGlobal(at.toPoint()), cardAt(row, time), *m_theme);
}

void MemoryView::leaveEvent(QEvent*)
{
    m_state->setHoverTime(std::nullopt);
    if (m_card) m_card->hide();
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
        m_scroll = scene(QSizeF(size())).scroll - angle.y() / 120.0 * 48.0;
        m_scroll = scene(QSizeF(size())).scroll; // clamped
        update();
    }
    event->accept();
}

void MemoryView::keyPressEvent(QKeyEvent* event)
{
    if (!performViewKey(*m_state, *event, m_keyMap)) QWidget::keyPressEvent(event);
}

} // namespace stagewright
