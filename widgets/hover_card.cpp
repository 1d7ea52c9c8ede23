#include "widgets/hover_card.h"

#include <algorithm>
#include <cmath>

#include "widgets/literals.h"
#include "widgets/sentence.h"
#include <QFontMetricsF>
#include <QPainter>

namespace stagewright {

namespace {

constexpr double margin = 13;
constexpr double titleHeight = 30;
constexpr double rowHeight = 20;
constexpr double noteWidth = 250;
constexpr double shadow = 6;

QRectF noteRect(const QString& note, double width)
{
    return QFontMetricsF(fontOf(FontRole::Small))
        .boundingRect(QRectF(0, 0, width, 1000), Qt::TextWordWrap, breakable(note));
}

} // namespace

QString CardText::plain() const
{
    QStringList lines;
    if (!title.isEmpty()) lines << title;
    for (const auto& [name, value] : rows) lines << name + u": "_s + value;
    if (!note.isEmpty()) lines << note;
    return lines.join(u'\n');
}

QSizeF cardSize(const CardText& text)
{
    const QFontMetricsF strong(fontOf(FontRole::Strong)), body(fontOf(FontRole::Small));
    double width = strong.horizontalAdvance(text.title) + (text.swatch.isValid() ? 18 : 0);
    for (const auto& [name, value] : text.rows) {
        width = std::max(width, body.horizontalAdvance(name) + strong.horizontalAdvance(value) + 22);
    }
    width = std::max(width, text.rows.empty() ? 60.0 : 180.0);
    double height = titleHeight + rowHeight * static_cast<double>(text.rows.size()) + 8;
    if (!text.note.isEmpty()) {
        width = std::max(width, std::min(noteWidth, body.horizontalAdvance(text.note) + 1));
        height += noteRect(text.note, width).height() + 6;
    }
    return {std::ceil(width + 2 * margin + 2 * shadow), std::ceil(height + 2 * shadow)};
}

void paintCard(QPainter& p, const QRectF& rect, const CardText& text, const Theme& theme)
{
    p.save();
    p.setRenderHint(QPainter::Antialiasing);
    const QRectF card = rect.adjusted(shadow, shadow, -shadow, -shadow);
    p.setPen(Qt::NoPen);
    for (int i = static_cast<int>(shadow); i >= 1; --i) {
        QColor shade(0, 0, 0, theme.dark ? 16 : 6);
        p.setBrush(shade);
        p.drawRoundedRect(card.adjusted(-i, -i + 1, i, i), 7 + i, 7 + i);
    }
    p.setPen(QPen(theme.separator, 1));
    p.setBrush(theme.panel);
    p.drawRoundedRect(card.adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);

    double x = card.left() + margin;
    const double width = card.width() - 2 * margin;
    if (text.swatch.isValid()) {
        p.setPen(Qt::NoPen);
        p.setBrush(text.swatch);
        p.drawRoundedRect(QRectF(x, card.top() + 12, 11, 11), 2.5, 2.5);
        x += 18;
    }
    p.setFont(fontOf(FontRole::Strong));
    p.setPen(theme.text);
    p.drawText(QPointF(x, card.top() + 22), text.title);
    double y = card.top() + titleHeight;
    for (const auto& [name, value] : text.rows) {
        const QRectF row(card.left() + margin, y, width, rowHeight);
        p.setFont(fontOf(FontRole::Small));
        p.setPen(theme.secondary);
        p.drawText(row, Qt::AlignLeft | Qt::AlignVCenter, name);
        p.setFont(fontOf(FontRole::Strong));
        p.setPen(theme.text);
        p.drawText(row, Qt::AlignRight | Qt::AlignVCenter, value);
        y += rowHeight;
    }
    if (!text.note.isEmpty()) {
        p.setFont(fontOf(FontRole::Small));
        p.setPen(theme.secondary);
        p.drawText(QRectF(card.left() + margin, y + 3, width, card.bottom() - y), Qt::TextWordWrap,
                   breakable(text.note));
    }
    p.restore();
}

QRectF cardPlace(QSizeF size, QPointF pointer, const QRectF& within)
{
    double x = pointer.x() + 14, y = pointer.y() + 16;
    if (x + size.width() > within.right()) x = pointer.x() - 14 - size.width();
    if (y + size.height() > within.bottom()) y = pointer.y() - 12 - size.height();
    x = std::max(within.left(), std::min(x, within.right() - size.width()));
    y = std::max(within.top(), std::min(y, within.bottom() - size.height()));
    return {QPointF(std::round(x), std::round(y)), size};
}

HoverCard::HoverCard(QWidget* view) : QWidget(view), m_view(view)
{
    setAttribute(Qt::WA_TransparentForMouseEvents);
    setAttribute(Qt::WA_NoSystemBackground);
    setFocusPolicy(Qt::NoFocus);
    setObjectName(u"hoverCard"_s);
    hide();
}

void HoverCard::showAt(QPoint globalPointer, const CardText& text, const Theme& theme)
{
    if (text.empty()) {
        hide();
        return;
    }
    QWidget* window = m_view->window();
    if (parentWidget() != window) setParent(window); // the view may have been moved into another window
    m_text = text;
    m_theme = &theme;
    const QRectF place = cardPlace(cardSize(text), window->mapFromGlobal(globalPointer), QRectF(window->rect()));
    setGeometry(place.toAlignedRect());
    raise();
    show();
    update();
}

void HoverCard::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    paintCard(painter, QRectF(rect()), m_text, *m_theme);
}

} // namespace stagewright
