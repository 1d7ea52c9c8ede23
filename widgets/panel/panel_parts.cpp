#include "widgets/panel/panel_parts.h"

#include <algorithm>

#include <QAbstractButton>
#include <QFrame>
#include <QGridLayout>
#include <QPainter>
#include <QRegularExpression>
#include <QStyleOptionButton>
#include <QStylePainter>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/style.h"
#include "widgets/timeline/geometry.h"
#include "widgets/timeline/slice_shapes.h"

namespace stagewright {
namespace {

const char* roleOf(document::Tone tone)
{
    switch (tone) {
    case document::Tone::Strong: return "strong";
    case document::Tone::Good: return "better";
    case document::Tone::Bad: return "worse";
    case document::Tone::Faint: return "faint";
    default: return "value";
    }
}

constexpr int shortFigure = 110; // px; up to this width a figure stays on one line and its label gives way

int widestWord(const QFontMetrics& metrics, const QString& text)
{
    int widest = 0;
    for (const QString& word : text.split(QRegularExpression(u"[\\s\\x{200b}]+"_s)))
        widest = std::max(widest, metrics.horizontalAdvance(word));
    return widest;
}

} // namespace

RowLabel::RowLabel(const QString& text, const char* role, QWidget* parent, bool selectable) : QLabel(text, parent)
{
    dressLabel(this, role, selectable);
    setWordWrap(true);
}

QSize RowLabel::sizeHint() const
{
    ensurePolished();
    const QSize text = fontMetrics().size(0, this->text());
    const QMargins m = contentsMargins();
    return {text.width() + 1 + m.left() + m.right(), text.height() + m.top() + m.bottom()};
}

QSize RowLabel::minimumSizeHint() const
{
    ensurePolished();
    const QMargins m = contentsMargins();
    return {widestWord(fontMetrics(), text()) + 1 + m.left() + m.right(), fontMetrics().height()};
}

LinkButton::LinkButton(const QString& text, const QString& tooltip, QWidget* parent) : QPushButton(text, parent)
{
    setObjectName(u"link"_s);
    setToolTip(tooltip);
    setAutoDefault(true);
    QSizePolicy policy(QSizePolicy::Preferred, QSizePolicy::Preferred, QSizePolicy::PushButton);
    policy.setHeightForWidth(true);
    setSizePolicy(policy);
}

QSize LinkButton::around() const
{
    return sizeHint() - QSize(fontMetrics().horizontalAdvance(text()), fontMetrics().height());
}

QSize LinkButton::minimumSizeHint() const
{
    return {widestWord(fontMetrics(), text()) + around().width(), sizeHint().height()};
}

int LinkButton::heightForWidth(int width) const
{
    if (width >= sizeHint().width()) return sizeHint().height();
    const QSize frame = around();
    const int room = std::max(1, width - frame.width());
    return fontMetrics().boundingRect(QRect(0, 0, room, 10000), Qt::TextWordWrap, text()).height() + frame.height();
}

void LinkButton::paintEvent(QPaintEvent* event)
{
    if (width() >= sizeHint().width()) return QPushButton::paintEvent(event);
    QStylePainter painter(this);
    QStyleOptionButton option;
    initStyleOption(&option);
    option.text.clear();
    painter.drawControl(QStyle::CE_PushButton, option);
    QFont written = font();
    written.setUnderline(underMouse() && isEnabled());
    painter.setFont(written);
    painter.setPen(option.palette.color(QPalette::ButtonText));
    painter.drawText(rect(), Qt::AlignLeft | Qt::AlignVCenter | Qt::TextWordWrap, text());
}

ShareBar::ShareBar(QWidget* parent) : ThemedWidget(parent)
{
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setMinimumWidth(16);
    setFixedHeight(9);
}

void ShareBar::setParts(std::vector<Part> parts)
{
    m_parts = std::move(parts);
    m_plain = false;
    update();
}

void ShareBar::setPlain(double share, bool accent)
{
    m_parts = {{Paint::Other, share}};
    m_plain = true;
    m_accent = accent;
    update();
}

void ShareBar::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    const QRectF all(rect());
    if (m_plain) {
        const double share = m_parts.empty() ? 0 : std::clamp(m_parts.front().share, 0.0, 1.0);
        const double width = share <= 0 ? 0 : std::max(2.0, share * all.width());
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(m_accent ? m_theme->accent : m_theme->faint);
        if (width > 0) painter.drawRoundedRect(QRectF(0, 0, width, all.height()), 2, 2);
        return;
    }
    painter.fillRect(all, m_theme->bubbleFill);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(m_theme->bubbleHatch, 1));
    double x = 0;
    double used = 0;
    for (const Part& part : m_parts) used += std::max(0.0, part.share);
    const double idleLeft = std::min(all.width(), used * all.width());
    for (const QLineF& line : hatchLines(QRectF(idleLeft, 0, all.width() - idleLeft, all.height()), QPointF(0, 0), 5))
        painter.drawLine(line);
    painter.setRenderHint(QPainter::Antialiasing, false);
    for (const Part& part : m_parts) {
        const double width = std::max(0.0, part.share) * all.width();
        if (width > 0)
            painter.fillRect(QRectF(x, 0, std::max(1.0, width - 1), all.height()), m_theme->of(part.paint).fill);
        if (width > 4) paintFillHatch(painter, QRectF(x, 0, width - 1, all.height()), m_theme->of(part.paint));
        x += width;
    }
}

PanelSection::PanelSection(const QString& title, QWidget* parent) : QWidget(parent)
{
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    m_title = new RowLabel(title, "title", this);
    m_title->setHidden(title.isEmpty());
    layout->addWidget(m_title);
    layout->addSpacing(9);
    m_body = new QWidget(this);
    m_grid = new QGridLayout(m_body);
    m_grid->setContentsMargins(0, 0, 0, 0);
    m_grid->setHorizontalSpacing(10);
    m_grid->setVerticalSpacing(7);
    m_grid->setColumnStretch(1, 1);
    layout->addWidget(m_body);
    layout->addSpacing(13);
    m_rule = new QFrame(this);
    m_rule->setObjectName(u"rule"_s);
    layout->addWidget(m_rule);
    makeCopyable(this, [this] { return table(); });
}

void PanelSection::setTitle(const QString& title)
{
    m_title->setText(title);
    m_title->setHidden(title.isEmpty());
}

void PanelSection::setRuled(bool ruled) { m_rule->setVisible(ruled); }

void PanelSection::removeAll()
{
    while (QLayoutItem* item = m_grid->takeAt(0)) {
        if (QWidget* widget = item->widget()) {
            widget->hide();
            widget->setParent(nullptr); // nobody finds and shows it again before it goes
            widget->deleteLater();
        }
        delete item;
    }
}

void PanelSection::clear()
{
    removeAll();
    m_bars.clear();
    m_lines.clear();
    m_figures.clear();
    m_grid->setHorizontalSpacing(10);
    m_grid->setColumnStretch(0, 0);
    m_grid->setColumnStretch(1, 1);
    m_next = 0;
}

void PanelSection::addRow(const QString& label, const QString& value, const QString& tooltip, document::Tone tone)
{
    auto* name = new RowLabel(label, "secondary", m_body);
    auto* figure = new RowLabel(breakable(value), roleOf(tone), m_body, true);
    figure->setAlignment(Qt::AlignRight | Qt::AlignTop);
    figure->setWordWrap(figure->sizeHint().width() > shortFigure);
    if (!figure->wordWrap()) figure->setMinimumWidth(figure->sizeHint().width());
    name->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    name->setToolTip(tooltip);
    figure->setToolTip(tooltip);
    m_grid->addWidget(name, m_next, 0);
    m_grid->addWidget(figure, m_next, 1, 1, 2);
    m_lines.push_back(label + u": "_s + value);
    ++m_next;
}

void PanelSection::addBar(const QString& label, ShareBar* bar, const QString& value, const QString& tooltip)
{
    addBar(new RowLabel(label, "secondary", m_body), bar, value, tooltip);
}

QString PanelSection::textOf(const QWidget* label)
{
    if (const auto* plain = qobject_cast<const QLabel*>(label)) return plain->text();
    const auto* button = qobject_cast<const QAbstractButton*>(label);
    return button != nullptr ? button->text() : QString();
}

void PanelSection::addRow(QWidget* label, const QString& value, const QString& tooltip, document::Tone tone)
{
    auto* figure = makeLabel(value, roleOf(tone), m_body, true);
    figure->setAlignment(Qt::AlignRight | Qt::AlignTop); // beside the first line of the button
    figure->setContentsMargins(0, 1, 0, 0);
    figure->setToolTip(tooltip);
    label->setParent(m_body);
    m_grid->addWidget(label, m_next, 0, 1, 2, Qt::AlignLeft);
    m_grid->addWidget(figure, m_next, 2);
    m_lines.push_back(textOf(label) + u": "_s + value);
    ++m_next;
}

void PanelSection::addBar(QWidget* name, ShareBar* bar, const QString& value, const QString& tooltip)
{
    name->setParent(m_body);
    auto* figure = makeLabel(value, "value", m_body);
    figure->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    bar->setParent(m_body);
    bar->setTheme(*m_theme);
    for (QWidget* widget : {name, static_cast<QWidget*>(figure), static_cast<QWidget*>(bar)})
        widget->setToolTip(tooltip);
    m_grid->addWidget(name, m_next, 0);
    m_grid->addWidget(bar, m_next, 1, Qt::AlignVCenter);
    m_grid->addWidget(figure, m_next, 2);
    m_bars.push_back(bar);
    m_lines.push_back(textOf(name) + u": "_s + value);
    ++m_next;
}

void PanelSection::addCells(const std::vector<Cell>& cells, const std::vector<Cell>& below)
{
    m_grid->setHorizontalSpacing(7);
    m_grid->setColumnStretch(0, 1); // titles have the room that figures leave
    m_grid->setColumnStretch(1, 0);
    QStringList line;
    for (const auto* row : {&cells, &below}) {
        for (std::size_t c = 0; c < row->size(); ++c) {
            const Cell& cell = (*row)[c];
            if (cell.text.isEmpty()) continue;
            QLabel* label = makeLabel(cell.text, cell.role, m_body, c > 0);
            label->setWordWrap(c == 0); // never the figures
            label->setToolTip(cell.tooltip);
            label->setAlignment(c == 0 ? Qt::AlignLeft | Qt::AlignTop : Qt::AlignRight | Qt::AlignTop);
            m_grid->addWidget(label, m_next, static_cast<int>(c), c == 0 && !below.empty() ? 2 : 1, 1);
            line << cell.text;
        }
        if (!row->empty()) ++m_next;
    }
    m_lines.push_back(line.join(u"  "_s));
}

void PanelSection::addChange(const QString& change, const QString& tooltip, document::Tone tone)
{
    if (m_next == 0 || change.isEmpty()) return;
    const int row = m_next - 1;
    auto* label = makeLabel(change, roleOf(tone), m_body, true);
    const QLayoutItem* value = m_grid->itemAtPosition(row, 2); // on its line
    const auto* figure = value != nullptr ? qobject_cast<const QLabel*>(value->widget()) : nullptr;
    label->setAlignment(Qt::AlignRight |
                        (figure != nullptr ? figure->alignment() & Qt::AlignVertical_Mask : Qt::AlignTop));
    label->setFont(fontOf(FontRole::Small));
    label->setToolTip(tooltip);
    if (QLayoutItem* first = m_grid->itemAtPosition(row, 0)) // its label gives way
        if (auto* name = qobject_cast<QLabel*>(first->widget()); name != nullptr) name->setWordWrap(true);
    m_grid->addWidget(label, row, 3);
    m_lines.back() += u"  "_s + change;
}

void PanelSection::setFigure(const QString& key, const QString& value) { m_figures.emplace_back(key, value); }

void PanelSection::addWidget(QWidget* widget)
{
    widget->setParent(m_body);
    // no column for changes where there are none: values are at the right edge
    m_grid->addWidget(widget, m_next++, 0, 1, std::max(3, m_grid->columnCount()));
}

void PanelSection::addText(const QString& text, const char* role)
{
    auto* label = makeLabel(text, role, m_body, true);
    label->setWordWrap(true);
    m_grid->addWidget(label, m_next++, 0, 1, std::max(3, m_grid->columnCount()));
    m_lines.push_back(text);
}

void PanelSection::setTheme(const Theme& theme)
{
    m_theme = &theme;
    for (ShareBar* bar : m_bars) bar->setTheme(theme);
}

TableText PanelSection::table() const
{
    TableText table = tableOf(*m_grid);
    table.title = m_title->text();
    return table;
}

QString PanelSection::plainText() const
{
    QString text = m_title->text();
    for (const QString& line : m_lines) text += u'\n' + line;
    return text.replace(QChar::Nbsp, u' '); // which keep a quantity on one line of the screen
}

} // namespace stagewright
