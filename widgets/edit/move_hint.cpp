#include "widgets/edit/move_hint.h"

#include <algorithm>

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>

#include "widgets/literals.h"
#include "widgets/style.h"
#include "widgets/timeline/geometry.h"

namespace stagewright {

MoveHint::MoveHint(QWidget* view) : QFrame(view)
{
    setObjectName(u"card"_s);
    setAccessibleName(u"Why the op can't go there"_s);
    setCursor(Qt::ArrowCursor);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(12, 9, 12, 9);
    layout->setSpacing(6);
    m_reason = makeLabel({}, "worse", this);
    m_reason->setWordWrap(true);
    m_place = makeLabel({}, "secondary", this);
    m_place->setWordWrap(true);
    layout->addWidget(m_reason);
    layout->addWidget(m_place);
    auto* row = new QHBoxLayout;
    row->setSpacing(6);
    auto add = [&](const QString& tip) {
        auto* button = new QPushButton(this);
        button->setAutoDefault(false);
        button->setFocusPolicy(Qt::TabFocus);
        button->setToolTip(tip);
        row->addWidget(button);
        return button;
    };
    m_go = add(u"Moves the op to the nearest place where the order has no fault."_s);
    m_carry = add(u"Leaves the op there and moves its dependants as far as needed."_s);
    m_undo = add(u"Undoes the move."_s);
    m_close = add(u"Hides this card; the fault stays outlined."_s);
    m_close->setText(u"Leave it"_s);
    row->addStretch(1);
    layout->addLayout(row);
    setKeys({}, {}, {});
    connect(m_go, &QPushButton::clicked, this, &MoveHint::goAsked);
    connect(m_carry, &QPushButton::clicked, this, &MoveHint::carryAsked);
    connect(m_undo, &QPushButton::clicked, this, &MoveHint::undoAsked);
    connect(m_close, &QPushButton::clicked, this, &QWidget::hide);
    hide();
}

void MoveHint::setKeys(const QString& go, const QString& carry, const QString& undo)
{
    auto with = [](const QString& words, const QString& key) {
        return key.isEmpty() ? words : u"%1  %2"_s.arg(words, key);
    };
    m_go->setText(with(u"Go there"_s, go));
    m_carry->setText(with(u"Carry along"_s, carry));
    m_undo->setText(with(u"Undo"_s, undo));
}

void MoveHint::showAt(const QRectF& above, const QString& reason, const QString& place, bool canGo, bool canCarry,
                      bool wasMade)
{
    m_reason->setText(reason);
    m_place->setText(place);
    m_place->setVisible(!place.isEmpty());
    m_go->setVisible(canGo);
    m_carry->setVisible(canCarry);
    m_undo->setVisible(wasMade);
    m_close->setText(wasMade ? u"Leave it"_s : u"Close"_s);
    const QWidget* view = parentWidget();
    const int most = std::max(260, std::min(560, view->width() - static_cast<int>(gutterFor(view->width())) - 20));
    setFixedWidth(most);
    setFixedHeight(layout()->totalHeightForWidth(most));
    int x = static_cast<int>(above.left());
    int y = static_cast<int>(above.bottom()) + 8;
    x = std::clamp(x, static_cast<int>(gutterFor(view->width())),
                   std::max(static_cast<int>(gutterFor(view->width())), view->width() - most - 8));
    if (y + height() > view->height()) y = static_cast<int>(above.top()) - height() - 8;
    y = std::clamp(y, static_cast<int>(rulerHeight),
                   std::max(static_cast<int>(rulerHeight), view->height() - height() - 4));
    move(x, y);
    show();
    raise();
}

QString MoveHint::text() const
{
    if (isHidden()) return {};
    return m_place->text().isEmpty()
               ? m_reason->text()
               : m_reason->text() + (m_reason->text().endsWith(u'.') ? u" "_s : u". "_s) + m_place->text();
}

} // namespace stagewright
