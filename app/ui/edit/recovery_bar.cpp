#include "app/ui/edit/recovery_bar.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>

#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {

RecoveryBar::RecoveryBar(QWidget* parent) : QFrame(parent)
{
    setObjectName(u"banner"_s);
    setProperty("tone", u"edit"_s);
    setAccessibleName(u"Recover an edited order"_s);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(14, 7, 10, 7);
    layout->setSpacing(8);
    auto* words = new QVBoxLayout;
    words->setSpacing(2);
    m_what = makeLabel({}, "strong", this, true);
    m_what->setWordWrap(true);
    m_details = makeLabel({}, "secondary", this, true);
    m_details->setWordWrap(true);
    words->addWidget(m_what);
    words->addWidget(m_details);
    layout->addLayout(words, 1);
    auto add = [&](const QString& text, const QString& tip, const char* name, void (RecoveryBar::*asked)()) {
        auto* button = new QPushButton(text, this);
        button->setObjectName(QString::fromLatin1(name));
        button->setToolTip(tip);
        connect(button, &QPushButton::clicked, this, asked);
        layout->addWidget(button, 0, Qt::AlignVCenter);
    };
    add(u"&Recover"_s, u"Opens the order in edit mode; Undo returns to the original."_s, "primary",
        &RecoveryBar::recoverAsked);
    add(u"&Later"_s, u"Asks again at the next start."_s, "flat", &RecoveryBar::laterAsked);
    add(u"&Discard"_s, u"Deletes the autosaved edit."_s, "flat", &RecoveryBar::discardAsked);
    hide();
}

void RecoveryBar::offer(const QString& what, const QString& details)
{
    m_what->setText(what);
    m_details->setText(details);
    show();
}

QString RecoveryBar::text() const { return isHidden() ? QString() : m_what->text() + u"; "_s + m_details->text(); }

} // namespace stagewright
