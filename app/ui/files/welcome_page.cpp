#include "app/ui/files/welcome_page.h"

#include <QApplication>
#include <QFileInfo>
#include <QFrame>
#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {

WelcomePage::WelcomePage(QWidget* parent) : QWidget(parent)
{
    setObjectName(u"canvas"_s);
    setAttribute(Qt::WA_StyledBackground);
    // scrolled, so that it does not make the window larger, here or while runs are shown
    auto* whole = new QVBoxLayout(this);
    whole->setContentsMargins(0, 0, 0, 0);
    auto* scroll = new QScrollArea(this);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->setAccessibleName(u"Start page"_s);
    whole->addWidget(scroll);
    auto* page = new QWidget(scroll);
    page->setObjectName(u"canvas"_s);
    scroll->setWidget(page);
    auto* outer = new QVBoxLayout(page);
    outer->addStretch(2);
    auto* middle = new QHBoxLayout;
    outer->addLayout(middle);
    outer->addStretch(3);
    middle->addStretch(1);
    auto* column = new QWidget(page);
    column->setFixedWidth(620);
    middle->addWidget(column);
    middle->addStretch(1);
    auto* layout = new QVBoxLayout(column);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(10);
    auto* headline = makeLabel(u"Design a schedule, run it for real, see where the time went"_s, "bigtitle", column);
    headline->setWordWrap(true);
    layout->addWidget(headline);
    m_message = makeLabel({}, "secondary", column);
    m_message->setWordWrap(true);
    layout->addWidget(m_message);
    layout->addSpacing(8);

    auto* cards = new QGridLayout;
    cards->setSpacing(12);
    for (const int side : {0, 1}) cards->setColumnStretch(side, 1); // four of one size
    for (const int row : {0, 1}) cards->setRowStretch(row, 1);
    layout->addLayout(cards);
    int at = 0;
    auto card = [&](const QString& title, const QString& words, const QString& key, bool primary) {
        auto* frame = new QFrame(column);
        frame->setObjectName(u"card"_s);
        frame->setMinimumWidth(300);
        auto* inner = new QVBoxLayout(frame);
        inner->setContentsMargins(14, 14, 14, 14);
        inner->setSpacing(7);
        auto* button = new QPushButton(title, frame);
        if (primary) button->setObjectName(u"primary"_s);
        inner->addWidget(button);
        auto* text = makeLabel(words, "secondary", frame);
        text->setWordWrap(true);
        text->setAlignment(Qt::AlignTop | Qt::AlignLeft);
        text->setMinimumHeight(4 * QFontMetrics(fontOf(FontRole::Body)).lineSpacing() + 4);
        inner->addWidget(text, 1);
        inner->addWidget(makeLabel(key, "faint", frame));
        cards->addWidget(frame, at / 2, at % 2);
        ++at;
        if (m_first == nullptr) m_first = button;
        return button;
    };
    connect(card(u"Record…"_s,
                 u"Train a small model under one or more schedules on this computer and watch the timeline grow."_s,
                 u"Ctrl+R"_s, true),
            &QPushButton::clicked, this, &WelcomePage::recordAsked);
    connect(card(u"Lessons…"_s,
                 u"Twenty-one questions, from the first bubble to your own schedule, each answered by hand and by a "
                 "real run."_s,
                 u"Ctrl+Shift+N"_s, false),
            &QPushButton::clicked, this, &WelcomePage::lessonsAsked);
    connect(
        card(u"Open…"_s,
             u"A run (.stagewright), a trace (PyTorch's Kineto, Perfetto, Nsight Systems, Chrome), a schedule (CSV), "
             "a building block or a lesson. Or drop it onto this window."_s,
             u"Ctrl+O"_s, false),
        &QPushButton::clicked, this, &WelcomePage::openAsked);
    connect(card(u"New schedule…"_s, u"Take one from the library, drag its ops, see its cost at once, then run it."_s,
                 u"Ctrl+N"_s, false),
            &QPushButton::clicked, this, &WelcomePage::newAsked);

    auto* look = new QPushButton(u"Look at recorded runs: GPipe, 1F1B and ZB-H1 on four ranks"_s, column);
    look->setObjectName(u"flat"_s);
    look->setToolTip(u"Three runs that ship with the program: timelines, idle time, memory, and a comparison"_s);
    look->setCursor(Qt::PointingHandCursor);
    connect(look, &QPushButton::clicked, this, &WelcomePage::lookAsked);
    layout->addWidget(look, 0, Qt::AlignLeft);
    m_recentBox = new QWidget(column);
    m_recent = new QVBoxLayout(m_recentBox);
    m_recent->setContentsMargins(0, 12, 0, 0);
    m_recent->setSpacing(1);
    layout->addWidget(m_recentBox);
    setMessage({});
    setRecent({});
}

void WelcomePage::showEvent(QShowEvent* event)
{
    QWidget::showEvent(event);
    const QWidget* focus = QApplication::focusWidget();
    if (focus == nullptr || focus->inherits("QToolButton")) m_first->setFocus(Qt::OtherFocusReason);
}

void WelcomePage::setMessage(const QString& message)
{
    m_own = message;
    if (!message.isEmpty())
        m_message->setText(message);
    else if (m_listed)
        m_message->setText(u"No run is shown. Choose one in the list at the left, or start something new."_s);
    else
        m_message->setText(u"Start in one of these ways. Press ? for shortcuts."_s);
}

void WelcomePage::setRunsListed(bool listed)
{
    m_listed = listed;
    setMessage(listed ? QString() : m_own);
}

void WelcomePage::setRecent(const QStringList& files)
{
    while (QLayoutItem* item = m_recent->takeAt(0)) {
        delete item->widget();
        delete item;
    }
    m_recentBox->setVisible(!files.isEmpty());
    if (files.isEmpty()) return;
    m_recent->addWidget(makeLabel(u"Recent files"_s, "title", m_recentBox));
    for (const QString& file : files.mid(0, 6)) {
        auto* button = new QPushButton(QFileInfo(file).fileName(), m_recentBox);
        button->setObjectName(u"flat"_s);
        button->setToolTip(file);
        button->setCursor(Qt::PointingHandCursor);
        connect(button, &QPushButton::clicked, this, [this, file] { emit fileChosen(file); });
        m_recent->addWidget(button, 0, Qt::AlignLeft);
    }
}

} // namespace stagewright
