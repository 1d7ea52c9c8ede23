#include "widgets/edit/move_hint.h"

#include <algorithm>

#include <QGridLayout>
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
    m_row = new QGridLayout;
    m_row->setSpacing(6);
    m_row->setColumnStretch(4, 1);
    auto add = [&](const QString& tip) {
        auto* button = new QPushButton(this);
        button->setAutoDefault(false);
        button->setFocusPolicy(Qt::TabFocus);
        button->setToolTip(tip);
        return button;
    };
    m_go = add(u"Moves the op to the nearest place where the order has no fault."_s);
    m_carry = add(u"Leaves the op there and moves its dependants as far as needed."_s);
    m_undo = add(u"Undoes the move."_s);
    m_close = add(u"Hides this card; the fault stays outlined."_s);
    m_close->setText(u"Leave it"_s);
    layout->addLayout(m_row);
    setKeys({}, {}, {});
    connect(m_go, &QPushButton::clicked, this, &MoveHint::goAsked);
    connect(m_carry, &QPushButton::clicked, this, &MoveHint::carryAsked);
    connect(m_undo, &QPushButton::clicked, this, &MoveHint::undoAsked);
    connect(m_close, &QPushButton::clicked, this, &QWidget::hide);
    hide();
}

void MoveHint::setKeys(const QString& go, const QString& carry, const QString& undo)
{
    m_keys = {go, carry, undo};
    setTexts(true);
}

void MoveHint::setTexts(bool keys)
{
    const auto with = [&](const QString& words, const QString& key) {
        return key.isEmpty() || !keys ? words : u"%1  %2"_s.arg(words, key);
    };
    m_go->setText(with(u"Go there"_s, m_keys[0]));
    m_carry->setText(with(u"Carry along"_s, m_keys[1]));
    m_undo->setText(with(u"Undo"_s, m_keys[2]));
}

void MoveHint::arrange(int width)
{
    std::vector<QPushButton*> shown;
    for (QPushButton* button : {m_go, m_carry, m_undo, m_close}) {
        m_row->removeWidget(button);
        if (!button->isHidden()) shown.push_back(button);
    }
    const auto needed = [&] {
        int sum = 0;
        for (const QPushButton* button : shown) sum += button->sizeHint().width() + m_row->horizontalSpacing();
        return sum;
    };
    setTexts(true);
    if (needed() > width) setTexts(false);
    const int columns = needed() > width ? 2 : 4;
    for (int i = 0; i < static_cast<int>(shown.size()); ++i)
        m_row->addWidget(shown[static_cast<std::size_t>(i)], i / columns, i % columns);
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
    const QMargins margins = layout()->contentsMargins();
    arrange(most - margins.left() - margins.right() - 2 * frameWidth());
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
