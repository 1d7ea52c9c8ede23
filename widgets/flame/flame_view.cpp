#include "widgets/flame/flame_view.h"

#include <algorithm>

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>

#include "traces/analysis/kernel_class.h"
#include "widgets/literals.h"
#include "widgets/timeline/inks.h"

namespace stagewright {

namespace {

constexpr double rowHeight = 20, headHeight = 24;

} // namespace

FlameView::FlameView(QWidget* parent) : QAbstractScrollArea(parent)
{
    setObjectName(u"flame"_s);
    setAccessibleName(u"Flame graph"_s);
    setFocusPolicy(Qt::StrongFocus);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    viewport()->setMouseTracking(true);
    verticalScrollBar()->setSingleStep(static_cast<int>(rowHeight));
}

void FlameView::setStacks(std::shared_ptr<const RangeStacks> stacks, const Units& units, const QString& about,
                          const QString& reason)
{
    m_stacks = stacks && !stacks->empty() && stacks->total > 0 ? std::move(stacks) : nullptr;
    m_units = units;
    m_about = about;
    m_reason = reason;
    m_root = m_current = m_hovered = -1;
    m_children.assign(m_stacks ? m_stacks->nodes.size() + 1 : 0, {});
    for (std::size_t i = 0; m_stacks && i < m_stacks->nodes.size(); ++i)
        m_children[static_cast<std::size_t>(m_stacks->nodes[i].parent + 1)].push_back(static_cast<int>(i));
    arrange();
}

void FlameView::setTheme(const Theme& theme)
{
    m_theme = &theme;
    viewport()->update();
}

// Holders of the root fill the width above it; children are side by side, what is left is the node itself.
void FlameView::arrange()
{
    m_boxes.assign(m_stacks ? m_stacks->nodes.size() : 0, {});
    m_rows = 0;
    if (m_stacks) {
        const auto& nodes = m_stacks->nodes;
        const auto width = static_cast<double>(
            std::max<Nanos>(1, m_root < 0 ? m_stacks->total : nodes[static_cast<std::size_t>(m_root)].total));
        for (int at = m_root; at >= 0; at = nodes[static_cast<std::size_t>(at)].parent)
            m_boxes[static_cast<std::size_t>(at)] = {0, 1, nodes[static_cast<std::size_t>(at)].depth, true};
        const auto placeChildren = [&](int parent, double left) {
            for (const int child : m_children[static_cast<std::size_t>(parent + 1)]) {
                const StackNode& node = nodes[static_cast<std::size_t>(child)];
                const double right = left + static_cast<double>(node.total) / width;
                m_boxes[static_cast<std::size_t>(child)] = {left, right, node.depth, node.total > 0};
                left = right;
            }
        };
        placeChildren(m_root, 0);
        for (std::size_t i = 0; i < nodes.size(); ++i) { // parents come first
            const Box box = m_boxes[i];
            if (!box.drawn) continue;
            m_rows = std::max(m_rows, box.row + 1);
            const bool above = m_root >= 0 && nodes[i].depth <= nodes[static_cast<std::size_t>(m_root)].depth;
            if (!above) placeChildren(static_cast<int>(i), box.left);
        }
    }
    verticalScrollBar()->setPageStep(viewport()->height());
    verticalScrollBar()->setRange(
        0, std::max(0, static_cast<int>(headHeight + m_rows * rowHeight) - viewport()->height()));
    viewport()->update();
}

void FlameView::zoomTo(int node)
{
    if (!m_stacks || node >= static_cast<int>(m_stacks->nodes.size())) return;
    m_root = std::max(-1, node);
    arrange();
}

QRectF FlameView::place(int node) const
{
    if (node < 0 || node >= static_cast<int>(m_boxes.size()) || !m_boxes[static_cast<std::size_t>(node)].drawn)
        return {};
    const Box& box = m_boxes[static_cast<std::size_t>(node)];
    const double width = viewport()->width();
    return QRectF(box.left * width, headHeight + box.row * rowHeight - verticalScrollBar()->value(),
                  (box.right - box.left) * width, rowHeight - 1);
}

int FlameView::nodeAt(const QPointF& at) const
{
    if (at.y() < headHeight) return -1;
    for (std::size_t i = 0; i < m_boxes.size(); ++i)
        if (m_boxes[i].drawn && place(static_cast<int>(i)).contains(at)) return static_cast<int>(i);
    return -1;
}

QString FlameView::textOf(int node) const
{
    const StackNode& of = m_stacks->nodes[static_cast<std::size_t>(node)];
    const QString share =
        percentText(static_cast<double>(of.total) / static_cast<double>(std::max<Nanos>(1, m_stacks->total)));
    QString text = u"%1: %2, %3 of all, %L4 times"_s
                       .arg(QString::fromStdString(m_stacks->pathOf(node)), durationText(of.total, m_units), share)
                       .arg(of.count);
    if (node == m_root) text += u" (Backspace: one up, Esc: all)"_s;
    if (of.self > 0 && of.self < of.total) text += u", %1 of it itself"_s.arg(durationText(of.self, m_units));
    return text;
}

QString FlameView::lineText() const
{
    if (!m_stacks) return m_reason.isEmpty() ? m_about : m_reason;
    const int node = m_hovered >= 0 ? m_hovered : m_current;
    if (node >= 0) return textOf(node);
    return u"%1: %2 of %3"_s.arg(m_about, durationText(m_stacks->total, m_units),
                                 m_stacks->device ? u"kernels and copies, by the ranges that launched them"_s
                                                  : u"the host's ranges"_s);
}

void FlameView::paintEvent(QPaintEvent*)
{
    QPainter painter(viewport());
    painter.fillRect(viewport()->rect(), m_theme->canvas);
    painter.setFont(fontOf(FontRole::Small));
    const QFontMetrics metrics(painter.font());
    for (std::size_t i = 0; i < m_boxes.size(); ++i) {
        const QRectF box = place(static_cast<int>(i));
        if (box.isEmpty() || box.width() < 0.5 || box.bottom() < headHeight || box.top() > viewport()->height())
            continue;
        const StackNode& node = m_stacks->nodes[i];
        const Fill& fill = node.of     ? m_theme->of(*node.of)
                           : node.kind ? m_theme->of(*node.kind)
                                       : fillOf(*m_theme, LaneLook::Ranges, rangeInkOf(node.name));
        painter.fillRect(box.adjusted(0, 0, box.width() > 3 ? -1 : 0, 0), fill.fill);
        if (static_cast<int>(i) == m_current || static_cast<int>(i) == m_hovered) {
            painter.setPen(QPen(static_cast<int>(i) == m_current ? m_theme->accent : m_theme->text,
                                static_cast<int>(i) == m_current && hasFocus() ? 2 : 1));
            painter.drawRect(box.adjusted(0.5, 0.5, -1.5, -0.5));
        }
        if (box.width() < 28) continue;
        painter.setPen(fill.label);
        const std::string brief = node.of ? briefKernelName(node.name) : node.name;
        painter.drawText(
            box.adjusted(4, 0, -4, 0), Qt::AlignLeft | Qt::AlignVCenter,
            metrics.elidedText(QString::fromStdString(brief), Qt::ElideRight, static_cast<int>(box.width()) - 8));
    }
    const QRectF head(0, 0, viewport()->width(), headHeight);
    painter.fillRect(head, m_theme->canvas);
    painter.setPen(m_theme->secondary);
    painter.drawText(head.adjusted(8, 0, -8, 0), Qt::AlignLeft | Qt::AlignVCenter,
                     metrics.elidedText(lineText(), Qt::ElideMiddle, viewport()->width() - 16));
}

void FlameView::mouseMoveEvent(QMouseEvent* event)
{
    const int node = nodeAt(event->position());
    if (node == m_hovered) return;
    m_hovered = node;
    viewport()->update();
}

void FlameView::leaveEvent(QEvent*)
{
    m_hovered = -1;
    viewport()->update();
}

void FlameView::mouseReleaseEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton || !m_stacks) return;
    const int node = nodeAt(event->position());
    setCurrent(node);
    if (node >= 0 && m_children[static_cast<std::size_t>(node + 1)].empty())
        emit spanChosen(m_stacks->nodes[static_cast<std::size_t>(node)].longest);
    else
        zoomTo(node == m_root && node >= 0 ? m_stacks->nodes[static_cast<std::size_t>(node)].parent : node);
}

void FlameView::setCurrent(int node)
{
    m_current = node;
    setAccessibleDescription(node >= 0 ? textOf(node) : QString());
    const QRectF box = place(node);
    if (!box.isEmpty() && (box.top() < headHeight || box.bottom() > viewport()->height()))
        verticalScrollBar()->setValue(
            static_cast<int>(m_boxes[static_cast<std::size_t>(node)].row * rowHeight - viewport()->height() / 2.0));
    viewport()->update();
}

void FlameView::keyPressEvent(QKeyEvent* event)
{
    if (!m_stacks) return QAbstractScrollArea::keyPressEvent(event);
    const auto& nodes = m_stacks->nodes;
    const int parent = m_current >= 0 ? nodes[static_cast<std::size_t>(m_current)].parent : -1;
    const auto& beside = m_children[static_cast<std::size_t>(parent + 1)];
    const auto at = std::find(beside.begin(), beside.end(), m_current);
    switch (event->key()) {
    case Qt::Key_Down:
        if (const auto& below = m_children[static_cast<std::size_t>(m_current + 1)]; !below.empty())
            setCurrent(below.front());
        return;
    case Qt::Key_Up:
        if (m_current >= 0 && parent >= 0) setCurrent(parent);
        return;
    case Qt::Key_Right:
        if (at != beside.end() && at + 1 != beside.end()) setCurrent(*(at + 1));
        return;
    case Qt::Key_Left:
        if (at != beside.end() && at != beside.begin()) setCurrent(*(at - 1));
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_current >= 0 && m_children[static_cast<std::size_t>(m_current + 1)].empty())
            emit spanChosen(nodes[static_cast<std::size_t>(m_current)].longest);
        else
            zoomTo(m_current);
        return;
    case Qt::Key_Backspace: zoomTo(m_root >= 0 ? nodes[static_cast<std::size_t>(m_root)].parent : -1); return;
    case Qt::Key_Escape:
        if (m_root >= 0) return zoomTo(-1);
        [[fallthrough]];
    default: QAbstractScrollArea::keyPressEvent(event);
    }
}

void FlameView::resizeEvent(QResizeEvent* event)
{
    QAbstractScrollArea::resizeEvent(event);
    arrange();
}

} // namespace stagewright
