#include "app/ui/workspace/banner.h"

#include <algorithm>

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QStyle>

#include "schedules/base/result.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {

Banner::Banner(QWidget* parent) : QFrame(parent)
{
    setObjectName(u"banner"_s);
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(14, 7, 10, 7);
    layout->setSpacing(12);
    m_message = makeLabel({}, "strong", this, true);
    m_message->setWordWrap(true);
    m_remedy = makeLabel({}, "secondary", this, true);
    m_remedy->setWordWrap(true);
    m_answer = new QPushButton(this);
    m_answer->hide();
    connect(m_answer, &QPushButton::clicked, this, [this] {
        const auto then = m_then;
        clear();
        if (then) then();
    });
    auto* close = new QPushButton(u"Dismiss"_s, this);
    close->setObjectName(u"flat"_s);
    connect(close, &QPushButton::clicked, this, &Banner::clear);
    auto* words = new QVBoxLayout;
    words->setSpacing(2);
    words->addWidget(m_message);
    words->addWidget(m_remedy);
    layout->addLayout(words, 1);
    layout->addWidget(m_answer, 0, Qt::AlignVCenter);
    layout->addWidget(close, 0, Qt::AlignVCenter);
    hide();
}

void Banner::showError(const QString& what, const Error& error)
{
    QString message = QString::fromStdString(error.message);
    if (!what.isEmpty()) message = what + u": "_s + message;
    present("error", message, QString::fromStdString(error.remedy));
}

void Banner::showError(const QString& message, const QString& remedy) { present("error", message, remedy); }

void Banner::showRefusal(const QString& what, const Error& error)
{
    const QString message = QString::fromStdString(error.message);
    present("note", what.isEmpty() ? message : what + u": "_s + message, QString::fromStdString(error.remedy));
}

void Banner::showRefusal(const QString& message, const QString& remedy) { present("note", message, remedy); }

void Banner::showNote(const QString& message) { present("note", message, {}); }

void Banner::showQuestion(const QString& message, const QString& remedy, const QString& button,
                          std::function<void()> answer)
{
    present("note", message, remedy);
    m_then = std::move(answer);
    m_answer->setText(button);
    m_answer->setToolTip(message);
    m_answer->show();
    place();
}

void Banner::setMessage(const QString& message)
{
    if (isHidden()) return;
    m_message->setText(message);
    place();
}

void Banner::clear() { hide(); }

QString Banner::text() const
{
    if (isHidden()) return {};
    return m_remedy->text().isEmpty() ? m_message->text() : m_message->text() + u"; "_s + m_remedy->text();
}

void Banner::present(const char* tone, const QString& message, const QString& remedy)
{
    m_answer->hide();
    m_then = nullptr;
    setProperty("tone", QString::fromLatin1(tone));
    style()->unpolish(this);
    style()->polish(this);
    const QString advice = sentence(remedy);
    m_message->setText(sentence(message)); // a name at its start stays as it is
    m_remedy->setText(advice);
    m_remedy->setVisible(!advice.isEmpty());
    m_about = m_context ? m_context() : About();
    show();
    place();
}

void Banner::attach(QWidget* area)
{
    m_area = area;
    area->installEventFilter(this);
    place();
}

void Banner::review()
{
    if (!isHidden() && m_about && !m_about()) clear();
}

void Banner::carry(QWidget* card)
{
    card->setParent(parentWidget());
    card->installEventFilter(this);
    m_cards.emplace_back(card);
    place();
}

bool Banner::eventFilter(QObject* watched, QEvent* event)
{
    if (watched != m_area &&
        (event->type() == QEvent::Show || event->type() == QEvent::Hide || event->type() == QEvent::LayoutRequest))
        place();
    if (watched == m_area &&
        (event->type() == QEvent::Resize || event->type() == QEvent::Move || event->type() == QEvent::Show))
        place();
    return QFrame::eventFilter(watched, event);
}

void Banner::place()
{
    if (m_area == nullptr || parentWidget() == nullptr) return;
    constexpr int margin = 14, widest = 820, above = 62,
                  between = 8; // the legend stays in sight, and a heading above it
    const QRect area(m_area->mapTo(parentWidget(), QPoint(0, 0)), m_area->size());
    const int width = std::min(widest, std::max(200, area.width() - 2 * margin));
    int bottom = area.bottom() - above;
    std::vector<QWidget*> shown;
    for (const QPointer<QWidget>& card : m_cards)
        if (card && !card->isHidden()) shown.push_back(card);
    if (!isHidden()) shown.push_back(this);
    for (QWidget* card : shown) {
        QLayout* inside = card->layout();
        inside->activate();
        const int height =
            inside->hasHeightForWidth() ? inside->totalHeightForWidth(width) : inside->totalSizeHint().height();
        const int wide = std::min(area.width(), std::max(width, inside->totalMinimumSize().width()));
        card->setGeometry(area.left() + (area.width() - wide) / 2, std::max(area.top(), bottom - height), wide, height);
        card->raise();
        bottom -= height + between;
    }
}

} // namespace stagewright
