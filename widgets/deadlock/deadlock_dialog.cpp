#include "widgets/deadlock/deadlock_dialog.h"

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include "schedules/base/op_number.h"
#include "schedules/execute/deadlock_text.h"
#include "schedules/messages/messages.h"
#include "widgets/deadlock/deadlock_view.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/style.h"

namespace stagewright {

DeadlockDialog::DeadlockDialog(const Theme& theme, std::shared_ptr<const Schedule> schedule, const Channels& channels,
                               QWidget* parent)
    : QDialog(parent), m_schedule(std::move(schedule)), m_channels(channels)
{
    setObjectName(u"deadlock"_s);
    setWindowTitle(u"This order hangs"_s);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(20, 18, 20, 16);
    layout->setSpacing(10);
    layout->addWidget(makeLabel(u"This order hangs"_s, "bigtitle", this));
    m_sentence = makeLabel({}, "value", this, true);
    m_sentence->setObjectName(u"sentence"_s);
    m_sentence->setWordWrap(true);
    layout->addWidget(m_sentence);
    auto* scroll = new QScrollArea(this);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setWidgetResizable(true);
    scroll->setFocusPolicy(Qt::NoFocus);
    m_view = new DeadlockView(scroll);
    m_view->setTheme(theme);
    scroll->setWidget(m_view);
    layout->addWidget(scroll, 1);
    auto* key = makeLabel(u"Solid: where a rank has stopped. Dashed: what it waits for. Red: the cycle. Grey: ranks "
                          "that only wait for it. Ops to the left have run."_s,
                          "faint", this);
    key->setWordWrap(true);
    layout->addWidget(key);

    auto* bottom = new QHBoxLayout;
    m_sends = new QComboBox(this);
    m_sends->setObjectName(u"sends"_s);
    m_sends->setAccessibleName(u"Sends"_s);
    m_sends->addItem(u"Buffered sends"_s);
    m_sends->addItem(u"Rendezvous: no buffers"_s);
    m_sends->setCurrentIndex(channels.sends == SendMode::Rendezvous ? 1 : 0);
    m_sends->setToolTip(u"How sends and receives meet"_s);
    m_sends->setVisible(isLowered(*m_schedule));
    connect(m_sends, &QComboBox::currentIndexChanged, this, [this](int index) {
        m_channels.sends = index == 1 ? SendMode::Rendezvous : SendMode::Buffered;
        explain();
    });
    bottom->addWidget(m_sends);
    bottom->addStretch(1);
    auto* close = new QPushButton(u"Close"_s, this);
    close->setAutoDefault(false);
    m_fix = new QPushButton(this);
    m_fix->setObjectName(u"primary"_s);
    m_fix->setDefault(true);
    connect(close, &QPushButton::clicked, this, &QDialog::reject);
    connect(m_fix, &QPushButton::clicked, this, [this] {
        if (!m_deadlock.fixed) return;
        emit fixAsked(*m_deadlock.fixed);
        accept();
    });
    bottom->addWidget(close);
    bottom->addWidget(m_fix);
    layout->addLayout(bottom);
    explain();
    const QSize wanted = m_view->sizeHint();
    resize(std::clamp(wanted.width() + 60, 620, 1300), std::clamp(wanted.height() + 270, 420, 900));
}

void DeadlockDialog::explain()
{
    auto found = explainDeadlock(*m_schedule, m_channels);
    m_deadlock = found ? std::move(*found) : Deadlock{};
    QString text;
    if (!found)
        text = QString::fromStdString(found.error().message);
    else if (!m_deadlock.hung())
        text = u"No deadlock with this setting: the order finishes."_s;
    else
        text = QString::fromStdString(describeDeadlock(m_deadlock));
    m_sentence->setText(stagewright::sentence(text));
    m_view->setDeadlock(m_schedule, m_deadlock);
    m_fix->setVisible(m_deadlock.fixed.has_value());
    if (!m_deadlock.fixed) return;
    if (m_deadlock.fix.size() == 1) {
        const OrderChange& change = m_deadlock.fix.front();
        m_fix->setText(u"Apply: move %1 of rank %2 to place %3"_s.arg(QString::fromStdString(toText(change.op)))
                           .arg(change.rank)
                           .arg(opNumber(change.to)));
    } else {
        m_fix->setText(countText(static_cast<qint64>(m_deadlock.fix.size()), u"Apply 1 move"_s, u"Apply %L1 moves"_s));
    }
}

QString DeadlockDialog::sentence() const { return m_sentence->text(); }
QString DeadlockDialog::fixText() const { return m_deadlock.fixed ? m_fix->text() : QString(); }

} // namespace stagewright
