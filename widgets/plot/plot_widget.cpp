#include "widgets/plot/plot_widget.h"

#include <cmath>

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>

#include "widgets/literals.h"
#include "widgets/plot/painter_canvas.h"
#include "widgets/sentence.h"

namespace stagewright {
namespace {

constexpr int mostRead = 12; // items that a description lists while none is chosen

bool isPlotKey(int key)
{
    return key == Qt::Key_Left || key == Qt::Key_Right || key == Qt::Key_Up || key == Qt::Key_Down ||
           key == Qt::Key_Home || key == Qt::Key_End || key == Qt::Key_Return || key == Qt::Key_Enter;
}

} // namespace

PlotWidget::PlotWidget(const QString& objectName, const QString& accessibleName, QWidget* parent)
    : ThemedWidget(parent), m_plot(std::make_unique<Plot>())
{
    setObjectName(objectName);
    setAccessibleName(accessibleName);
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
}

void PlotWidget::setPlot(Plot plot)
{
    m_drawing.reset();
    m_plot = std::make_unique<const Plot>(std::move(plot));
    m_hovered = -1;
    forget();
    if (m_chosen >= items()) m_chosen = -1;
    if (m_chosen < 0 && m_plot->saysChoice && items() > 0) m_chosen = 0;
    forget();
    describe();
}

const PlotDrawing& PlotWidget::drawing() const
{
    if (!m_drawing) m_drawing.emplace(*m_plot, boxOf(QRectF(rect())), PainterCanvas(nullptr, *m_theme), m_chosen);
    return *m_drawing;
}

void PlotWidget::forget()
{
    m_drawing.reset();
    m_painted = {};
    update();
}

void PlotWidget::setChosen(int item)
{
    if (item == m_chosen) return;
    m_chosen = item;
    if (!drawing().labels().empty()) forget(); // its name is placed first
    update();
    describe();
}

void PlotWidget::choose(int item)
{
    if (items() == 0) return;
    setChosen(std::clamp(item, 0, items() - 1));
    emit itemChosen(m_chosen);
}

int PlotWidget::itemOf(int id) const
{
    for (int i = 0; i < items(); ++i)
        if (idOf(i) == id) return i;
    return -1;
}

QString PlotWidget::textOf(int item) const
{
    if (item < 0 || item >= items()) return {};
    return m_texts ? m_texts(item) : qtText(drawing().item(item).text);
}

void PlotWidget::describe()
{
    QStringList texts;
    if (m_chosen >= 0) texts << textOf(m_chosen);
    for (int i = 0; m_chosen < 0 && items() <= mostRead && i < items(); ++i) texts << textOf(i);
    setAccessibleDescription(texts.join(u"; "_s));
}

QRectF PlotWidget::itemRect(int item) const
{
    return item < 0 || item >= items() ? QRectF() : rectOf(drawing().boxOf(item));
}

std::vector<QRectF> PlotWidget::labels() const
{
    std::vector<QRectF> rects;
    for (const PlotBox& box : drawing().labels()) rects.push_back(rectOf(box));
    return rects;
}

void PlotWidget::paintEvent(QPaintEvent*)
{
    const double ratio = devicePixelRatioF();
    if (m_painted.isNull() || m_paintedIn != m_theme || m_painted.devicePixelRatio() != ratio) {
        m_paintedIn = m_theme;
        m_painted = QPixmap(size() * ratio);
        m_painted.setDevicePixelRatio(ratio);
        m_painted.fill(m_onPanel ? m_theme->panel : m_theme->canvas);
        QPainter p(&m_painted);
        PainterCanvas canvas(&p, *m_theme);
        drawing().paint(canvas);
    }
    QPainter p(this);
    p.drawPixmap(0, 0, m_painted);
    PainterCanvas canvas(&p, *m_theme);
    if (m_hovered != m_chosen) drawing().paintHover(canvas, m_hovered);
    drawing().paintChosen(canvas, m_chosen);
    sayPoint(p);
    p.setRenderHint(QPainter::Antialiasing, false);
    paintFocus(p);
}

// At the right of the title, where no legend is.
void PlotWidget::sayPoint(QPainter& p) const
{
    const int said = m_hovered >= 0 ? m_hovered : hasFocus() ? m_chosen : -1;
    if (said < 0 || m_plot->legend != PlotLegend::LineEnds || m_plot->saysChoice) return;
    PainterCanvas(&p, *m_theme)
        .text({width() - 16.0, 13}, textOf(said).toStdString(), PlotFont::Small, PlotAlign::Right, {PlotHue::Text});
}

void PlotWidget::resizeEvent(QResizeEvent*) { forget(); }

void PlotWidget::changeEvent(QEvent* event)
{
    if (event->type() == QEvent::FontChange) forget();
    QWidget::changeEvent(event);
}

void PlotWidget::hover(int item)
{
    if (item == m_hovered) return;
    m_hovered = item;
    emit itemHovered(item);
    update();
}

void PlotWidget::mouseMoveEvent(QMouseEvent* event)
{
    hover(drawing().itemAt({event->position().x(), event->position().y()}));
}

void PlotWidget::leaveEvent(QEvent*) { hover(-1); }

void PlotWidget::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton) return;
    int item = drawing().itemAt({event->position().x(), event->position().y()});
    if (item < 0) return;
    // again at the same place: the next item there
    if (m_chosen >= 0 && drawing().item(item).point() && itemRect(item) == itemRect(m_chosen)) {
        const int next = neighbour(Qt::Key_Down);
        if (next >= 0 && itemRect(next) == itemRect(item)) item = next;
    }
    choose(item);
}

void PlotWidget::mouseDoubleClickEvent(QMouseEvent* event)
{
    const int item = drawing().itemAt({event->position().x(), event->position().y()});
    if (event->button() != Qt::LeftButton || item < 0) return;
    if (m_chosen < 0 || itemRect(item) != itemRect(m_chosen)) choose(item);
    emit itemActivated(m_chosen);
}

// In the nearest column or row of that direction, the item nearest to where the cursor is.
int PlotWidget::neighbour(int key) const
{
    const bool sideways = key == Qt::Key_Left || key == Qt::Key_Right;
    const bool upwards = !m_plot->up.names.empty() && !m_plot->up.downwards; // rows are counted from below
    const int sign = key == Qt::Key_Right || key == (upwards ? Qt::Key_Up : Qt::Key_Down) ? 1 : -1;
    const PlotItem& now = drawing().item(m_chosen);
    int best = -1, nearest = 0, beside = 0;
    for (int i = 0; i < items(); ++i) {
        const PlotItem& one = drawing().item(i);
        const int ahead = sign * (sideways ? one.column - now.column : one.row - now.row),
                  off = std::abs(sideways ? one.row - now.row : one.column - now.column);
        if (ahead <= 0 || (!sideways && off > 0)) continue;
        if (best >= 0 && (ahead > nearest || (ahead == nearest && off >= beside))) continue;
        best = i;
        nearest = ahead;
        beside = off;
    }
    return best;
}

void PlotWidget::keyPressEvent(QKeyEvent* event)
{
    if (!isPlotKey(event->key()) || items() == 0) return QWidget::keyPressEvent(event);
    const auto first = [this](int sign) { // by column, then row
        int best = 0;
        for (int i = 1; i < items(); ++i) {
            const PlotItem &one = drawing().item(i), &other = drawing().item(best);
            if (sign * (one.column - other.column) < 0 || (one.column == other.column && one.row < other.row)) best = i;
        }
        return best;
    };
    switch (event->key()) {
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_chosen >= 0) emit itemActivated(m_chosen);
        return;
    case Qt::Key_Home: return choose(first(1));
    case Qt::Key_End: return choose(first(-1));
    default:
        if (m_chosen < 0) return choose(first(1));
        if (const int next = neighbour(event->key()); next >= 0) choose(next);
    }
}

bool PlotWidget::event(QEvent* event)
{
    if (event->type() == QEvent::ShortcutOverride && isPlotKey(static_cast<QKeyEvent*>(event)->key())) {
        event->accept();
        return true;
    }
    if (event->type() != QEvent::ToolTip) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const int item = drawing().itemAt({static_cast<double>(help->pos().x()), static_cast<double>(help->pos().y())});
    if (item >= 0)
        QToolTip::showText(help->globalPos(), textOf(item), this);
    else
        QToolTip::hideText();
    return true;
}

} // namespace stagewright
