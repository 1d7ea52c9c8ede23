#include "widgets/palette/command_palette.h"

#include <QAbstractItemDelegate>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QPainter>
#include <QSet>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

class EntryPainter : public QAbstractItemDelegate {
public:
    EntryPainter(const Theme& theme, QObject* parent) : QAbstractItemDelegate(parent), m_theme(theme) {}
    QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override { return {300, 28}; }
    void paint(QPainter* p, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        const Theme& t = m_theme;
        const bool disabled = !index.data(PaletteModel::DisabledRole).toString().isEmpty();
        p->save();
        p->setRenderHint(QPainter::Antialiasing);
        if ((option.state & QStyle::State_Selected) != 0) {
            QColor fill = t.accent;
            fill.setAlphaF(t.dark ? 0.28F : 0.13F);
            p->setPen(t.highContrast ? QPen(t.accent, 1) : QPen(Qt::NoPen));
            p->setBrush(fill);
            p->drawRoundedRect(QRectF(option.rect).adjusted(2.5, 1.5, -2.5, -1.5), 5, 5);
        }
        const QRectF room = QRectF(option.rect).adjusted(12, 0, -12, 0);
        const QFont small = fontOf(FontRole::Small), body = fontOf(FontRole::Body), strong = fontOf(FontRole::Strong);
        const QFontMetricsF smallSize(small), bodySize(body), strongSize(strong);
        const QString keys = index.data(PaletteModel::KeysRole).toString();
        const double keysWidth = keys.isEmpty() ? 0 : smallSize.horizontalAdvance(keys) + 14;
        if (!keys.isEmpty()) {
            const QRectF cap(room.right() - keysWidth, room.center().y() - 9, keysWidth, 18);
            p->setPen(QPen(t.separator, 1));
            p->setBrush(t.window);
            p->drawRoundedRect(cap.adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
            p->setFont(small);
            p->setPen(t.secondary);
            p->drawText(cap, Qt::AlignCenter, keys);
        }
        const double categoryWidth = 74;
        p->setFont(small);
        p->setPen(t.secondary);
        p->drawText(QRectF(room.left(), room.top(), categoryWidth, room.height()), Qt::AlignVCenter | Qt::AlignLeft,
                    index.data(PaletteModel::CategoryRole).toString());
        // the title, with matched letters in bold
        const double end = room.right() - keysWidth - 12;
        double x = room.left() + categoryWidth;
        const QString title = index.data().toString();
        const QVariantList places = index.data(PaletteModel::PlacesRole).toList();
        QSet<int> found;
        for (const QVariant& place : places) found << place.toInt();
        const double baseline = room.center().y() + bodySize.ascent() / 2 - 1;
        for (int from = 0; from < title.size() && x < end;) {
            const bool is = found.contains(from);
            int to = from + 1;
            while (to < title.size() && found.contains(to) == is) ++to;
            const QString part = title.mid(from, to - from);
            const QFontMetricsF& size = is ? strongSize : bodySize;
            p->setFont(is ? strong : body);
            p->setPen(disabled ? t.faint : is ? (t.dark ? t.accent.lighter(125) : t.accent) : t.text);
            p->drawText(QPointF(x, baseline), size.elidedText(part, Qt::ElideRight, end - x));
            x += size.horizontalAdvance(part);
            from = to;
        }
        const QString detail = disabled ? index.data(PaletteModel::DisabledRole).toString()
                                        : index.data(PaletteModel::DetailRole).toString();
        if (!detail.isEmpty() && x + 30 < end) {
            p->setFont(small);
            p->setPen(disabled ? t.secondary : t.faint);
            p->drawText(QRectF(x + 12, room.top(), end - x - 12, room.height()), Qt::AlignVCenter | Qt::AlignLeft,
                        smallSize.elidedText(detail, Qt::ElideRight, end - x - 12));
        }
        p->restore();
    }

private:
    const Theme& m_theme;
};

} // namespace

CommandPalette::CommandPalette(const Theme& theme, QWidget* parent)
    : QDialog(parent, Qt::Dialog | Qt::FramelessWindowHint), m_field(new QLineEdit(this)), m_list(new QListView(this)),
      m_hint(makeLabel({}, "secondary", this))
{
    setObjectName(u"commandPalette"_s);
    setWindowTitle(u"Command palette"_s);
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(0, 0, 0, 0);
    auto* frame = new QFrame(this);
    frame->setObjectName(u"palette"_s);
    outer->addWidget(frame);
    auto* layout = new QVBoxLayout(frame);
    layout->setContentsMargins(8, 8, 8, 8);
    layout->setSpacing(6);
    m_field->setPlaceholderText(u"Type a few letters: an action, a run, a schedule, a file, or an op such as 2B5"_s);
    m_field->setAccessibleName(u"Command"_s);
    m_field->setToolTip(
        u"Letters need not be adjacent: “cp” finds Critical path. Enter runs the action, Esc closes."_s);
    m_list->setAccessibleName(u"Matches"_s);
    m_list->setToolTip(u"Press Enter or click to run it"_s);
    m_list->setModel(&m_model);
    m_list->setItemDelegate(new EntryPainter(theme, m_list));
    m_list->setUniformItemSizes(true);
    m_list->setFocusPolicy(Qt::NoFocus);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    layout->addWidget(m_field);
    layout->addWidget(m_list, 1);
    layout->addWidget(m_hint);
    m_field->installEventFilter(this);
    connect(m_field, &QLineEdit::textChanged, this, &CommandPalette::changed);
    connect(m_list, &QListView::clicked, this, [this](const QModelIndex& at) {
        m_list->setCurrentIndex(at);
        perform();
    });
}

void CommandPalette::openOver(QWidget* window)
{
    const int width = std::min(680, std::max(320, window->width() - 60)),
              height = std::min(430, std::max(200, window->height() - 120));
    resize(width, height);
    move(window->mapToGlobal(QPoint((window->width() - width) / 2, 56)));
    m_field->clear();
    changed();
    show();
    m_field->setFocus();
}

void CommandPalette::changed()
{
    m_model.setPattern(m_field->text());
    m_list->setCurrentIndex(m_model.index(0));
    const int rows = m_model.rowCount();
    m_hint->setText(rows == 0 ? u"Nothing matches “%1”"_s.arg(m_field->text())
                              : u"%L1 found. Enter runs the action, Esc closes."_s.arg(rows));
}

void CommandPalette::perform()
{
    const PaletteEntry* entry = m_model.entry(m_list->currentIndex().row());
    if (entry == nullptr) return;
    if (!entry->disabled.isEmpty()) {
        m_hint->setText(u"%1: not available. %2"_s.arg(entry->title, entry->disabled));
        return;
    }
    const PaletteEntry chosen = *entry;
    close();
    emit performed(chosen.id);
    if (chosen.perform) chosen.perform();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event)
{
    if (watched != m_field || event->type() != QEvent::KeyPress) return QDialog::eventFilter(watched, event);
    const auto* key = static_cast<QKeyEvent*>(event);
    const int row = m_list->currentIndex().row(), page = std::max(1, m_list->viewport()->height() / 28 - 1);
    int to = row;
    switch (key->key()) {
    case Qt::Key_Up: to = row > 0 ? row - 1 : m_model.rowCount() - 1; break;
    case Qt::Key_Down: to = row + 1 < m_model.rowCount() ? row + 1 : 0; break;
    case Qt::Key_PageUp: to = std::max(0, row - page); break;
    case Qt::Key_PageDown: to = std::min(m_model.rowCount() - 1, row + page); break;
    case Qt::Key_Return:
    case Qt::Key_Enter: perform(); return true;
    default: return QDialog::eventFilter(watched, event);
    }
    m_list->setCurrentIndex(m_model.index(to));
    m_list->scrollTo(m_list->currentIndex());
    return true;
}

} // namespace stagewright
