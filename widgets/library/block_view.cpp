#include "widgets/library/block_view.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include "schedules/model/kinds.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/timeline/geometry.h"
#include "widgets/timeline/slice_shapes.h"

namespace stagewright {
namespace {

constexpr double left = 84, top = 24, rowHeight = 34, rowGap = 8;

int& slotIn(BlockDevice& device, const BlockPass& pass)
{
    auto& places = isForward(pass.kind)     ? device.forward
                   : isInputGrad(pass.kind) ? device.inputGrad
                                            : device.weightGrad;
    return places[static_cast<std::size_t>(pass.chunk)];
}

QString labelOf(const BlockPass& pass) { return qtText(ruleOf(pass.kind).letter) + QString::number(pass.chunk); }

} // namespace

int slotOf(const Block& block, const BlockPass& pass)
{
    if (pass.device < 0 || pass.device >= static_cast<int>(block.devices.size())) return notPlaced;
    BlockDevice device = block.devices[static_cast<std::size_t>(pass.device)];
    return slotIn(device, pass);
}

Block withPassAt(Block block, const BlockPass& pass, int slot)
{
    slotIn(block.devices[static_cast<std::size_t>(pass.device)], pass) = slot;
    return block;
}

std::vector<BlockPass> passesOf(const Block& block, int device)
{
    std::vector<BlockPass> out;
    for (int chunk = 0; chunk < block.chunks; ++chunk)
        for (const KindTraits& rule : allKinds()) {
            const BlockPass pass{device, chunk, rule.kind};
            if (!isForward(rule.kind) && !isSplitBackward(rule.kind)) continue;
            if (slotOf(block, pass) != notPlaced) out.push_back(pass);
        }
    std::stable_sort(out.begin(), out.end(),
                     [&](const BlockPass& a, const BlockPass& b) { return slotOf(block, a) < slotOf(block, b); });
    return out;
}

BlockView::BlockView(QWidget* parent) : ThemedWidget(parent)
{
    loadFonts();
    setFocusPolicy(Qt::StrongFocus);
    setObjectName(u"blockView"_s);
    setAccessibleName(u"Building block"_s);
    setToolTip(u"Drag a pass to another slot, or press Ctrl+Left or Ctrl+Right. The arrow keys select a pass."_s);
}

void BlockView::setBlock(const Block& block)
{
    m_block = block;
    m_full = checkBlock(block) ? withWeightGrads(block) : block;
    if (m_selected && slotOf(m_block, *m_selected) == notPlaced) m_selected.reset();
    updateGeometry();
    update();
}

void BlockView::setFault(bool fault)
{
    m_fault = fault;
    update();
}

void BlockView::select(const std::optional<BlockPass>& pass)
{
    m_selected = pass;
    if (pass)
        setAccessibleDescription(
            u"%1 on device %2 in slot %3"_s.arg(labelOf(*pass)).arg(pass->device).arg(slotOf(m_block, *pass)));
    emit selectionChanged();
    update();
}

int BlockView::slotCount() const
{
    int last = 2 * m_block.interval;
    for (int d = 0; d < static_cast<int>(m_full.devices.size()); ++d)
        for (const BlockPass& pass : passesOf(m_full, d)) last = std::max(last, slotOf(m_full, pass) + 2);
    return last;
}

double BlockView::slotWidth() const { return std::max(6.0, (width() - left - 14) / std::max(1, slotCount())); }

double BlockView::rowTop(int device) const { return top + device * (rowHeight + rowGap); }

QSize BlockView::sizeHint() const
{
    return {900, static_cast<int>(top + static_cast<double>(m_block.devices.size()) * (rowHeight + rowGap) + 6)};
}

QRectF BlockView::rectOf(const BlockPass& pass) const
{
    const double w = slotWidth();
    return {left + slotOf(m_full, pass) * w, rowTop(pass.device), w - 1, rowHeight};
}

std::optional<BlockPass> BlockView::passAt(QPointF point) const
{
    for (int d = 0; d < static_cast<int>(m_block.devices.size()); ++d)
        for (const BlockPass& pass : passesOf(m_block, d))
            if (rectOf(pass).contains(point)) return pass;
    return std::nullopt;
}

void BlockView::paintEvent(QPaintEvent*)
{
    QPainter p(this);
    const Theme& t = *m_theme;
    p.fillRect(rect(), t.canvas);
    p.setRenderHint(QPainter::Antialiasing);
    const double w = slotWidth();
    const int count = slotCount();
    p.setFont(fontOf(FontRole::Small));
    for (int slot = 0; slot <= count; ++slot) {
        const double x = left + slot * w - 0.5;
        const bool rule = slot % m_block.interval == 0;
        p.fillRect(QRectF(x, rule ? 4 : top - 4, 1, height()), rule ? t.faint : t.grid);
        if (rule) {
            p.setPen(t.secondary);
            p.drawText(QPointF(x + 4, 15), u"slot %1"_s.arg(slot));
        }
    }
    const double right = left + count * w;
    for (int d = 0; d < static_cast<int>(m_full.devices.size()); ++d) {
        p.setFont(fontOf(FontRole::Rank));
        p.setPen(t.text);
        p.drawText(QRectF(10, rowTop(d), left - 12, rowHeight), Qt::AlignVCenter | Qt::AlignLeft,
                   u"Device %1"_s.arg(d));
        const std::vector<BlockPass> passes = passesOf(m_full, d);
        // Microbatches after this one, and those before it: the same passes, whole intervals away.
        p.setOpacity(t.dark ? 0.24 : 0.2);
        for (const BlockPass& pass : passes) {
            const int own = slotOf(m_full, pass);
            for (int slot = own % m_block.interval; slot < count; slot += m_block.interval) {
                if (slot == own) continue;
                const QRectF faint(left + slot * w, rowTop(d) + 3, w - 1, rowHeight - 6);
                if (faint.right() <= right) p.fillRect(faint, t.of(paintOf(pass.kind), pass.chunk).fill);
            }
        }
        p.setOpacity(1);
        p.setFont(fontOf(FontRole::Label));
        const QFontMetricsF metrics(p.font());
        for (const BlockPass& pass : passes) {
            const QRectF where = rectOf(pass);
            const Fill& fill = t.of(paintOf(pass.kind), pass.chunk);
            paintSliceShape(p, where, fill);
            if (slotOf(m_block, pass) == notPlaced) { // the schedule's choice
                QColor veil = fill.label;
                veil.setAlphaF(0.25F);
                p.setPen(QPen(veil, 1));
                const auto lines = hatchLines(where.adjusted(1, 1, -1, -1), where.topLeft(), 5);
                p.drawLines(lines.data(), static_cast<int>(lines.size()));
            }
            p.setPen(fill.label);
            if (metrics.horizontalAdvance(labelOf(pass)) + 2 <= where.width())
                p.drawText(where, Qt::AlignCenter, labelOf(pass));
        }
    }
    if (m_selected && slotOf(m_block, *m_selected) != notPlaced) {
        const QRectF where = rectOf(*m_selected);
        p.setBrush(Qt::NoBrush);
        p.setPen(QPen(t.canvas, 5));
        p.drawRoundedRect(where.adjusted(-1, -1, 1, 1), 3.5, 3.5);
        p.setPen(QPen(m_fault ? t.critical : t.text, 2));
        p.drawRoundedRect(where.adjusted(-1, -1, 1, 1), 3.5, 3.5);
    }
    if (hasFocus() || m_fault) {
        p.setBrush(Qt::NoBrush);
        p.setPen(QPen(m_fault ? t.critical : t.accent, 1));
        p.drawRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5));
    }
}

void BlockView::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton) return;
    const auto pass = passAt(event->position());
    select(pass);
    m_dragging = pass.has_value();
    if (pass) m_grip = static_cast<int>((event->position().x() - rectOf(*pass).left()) / slotWidth());
}

void BlockView::mouseMoveEvent(QMouseEvent* event)
{
    if (m_dragging) moveSelected(static_cast<int>(std::floor((event->position().x() - left) / slotWidth())) - m_grip);
}

void BlockView::mouseReleaseEvent(QMouseEvent*) { m_dragging = false; }

void BlockView::moveSelected(int slot)
{
    slot = std::clamp(slot, 0, 4095);
    if (!m_selected || slotOf(m_block, *m_selected) == slot) return;
    const Block changed = withPassAt(m_block, *m_selected, slot);
    setBlock(changed);
    select(m_selected);
    emit edited(changed);
}

void BlockView::focusInEvent(QFocusEvent* event)
{
    if (!m_selected && !m_block.devices.empty()) {
        const auto passes = passesOf(m_block, 0);
        if (!passes.empty()) select(passes.front());
    }
    QWidget::focusInEvent(event);
    update();
}

void BlockView::keyPressEvent(QKeyEvent* event)
{
    const bool sideways = event->key() == Qt::Key_Left || event->key() == Qt::Key_Right;
    const bool upright = event->key() == Qt::Key_Up || event->key() == Qt::Key_Down;
    if (!m_selected || (!sideways && !upright)) {
        QWidget::keyPressEvent(event);
        return;
    }
    const int by = event->key() == Qt::Key_Left || event->key() == Qt::Key_Up ? -1 : 1;
    if (sideways && (event->modifiers() & Qt::ControlModifier)) {
        moveSelected(slotOf(m_block, *m_selected) + by);
        return;
    }
    int device = m_selected->device;
    if (upright) {
        device = std::clamp(device + by, 0, static_cast<int>(m_block.devices.size()) - 1);
        BlockPass same = *m_selected;
        same.device = device;
        if (slotOf(m_block, same) != notPlaced) select(same);
        return;
    }
    const auto passes = passesOf(m_block, device);
    const auto at = std::find(passes.begin(), passes.end(), *m_selected);
    if (at == passes.end()) return;
    const auto next =
        std::clamp<std::ptrdiff_t>(at - passes.begin() + by, 0, static_cast<std::ptrdiff_t>(passes.size()) - 1);
    select(passes[static_cast<std::size_t>(next)]);
}

} // namespace stagewright
