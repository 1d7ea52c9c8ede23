#include "app/ui/banner.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QStyle>

#include "schedules/base/result.h"
#include "widgets/panel/style.h"

namespace stagewright {

Banner::Banner(QWidget* parent) : QFrame(parent)
{
    setObjectName(QStringLiteral("banner"));
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
    auto* close = new QPushButton(tr("Dismiss"), this);
    close->setObjectName(QStringLiteral("flat"));
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
    if (!what.isEmpty()) message = what + QStringLiteral(": ") + message;
    present("error", message, QString::fromStdString(error.remedy));
}

void Banner::showError(const QString& message, const QString& remedy) { present("error", message, remedy); }

void Banner::showNote(const QString& message) { present("note", message, {}); }

void Banner::showQuestion(const QString& message, const QString& remedy, const QString& button, std::function<void()> answer)
{
    present("note", message, remedy);
    m_then = std::move(answer);
    m_answer->setText(button);
    m_answer->setToolTip(message);
    m_answer->show();
}

void Banner::setMessage(const QString& message)
{
    if (!isHidden()) m_message->setText(message);
}

void Banner::clear() { hide(); }

QString Banner::text() const
{
    if (isHidden()) return {};
    return m_remedy->text().isEmpty() ? m_message->text() : m_message->text() + QStringLiteral("; ") + m_remedy->text();
}

void Banner::present(const char* tone, const QString& message, const QString& remedy)
{
    m_answer->hide();
    m_then = nullptr;
    setProperty("tone", QString::fromLatin1(tone));
    style()->unpolish(this);
    style()->polish(this);
    QString text = message;
    if (!text.isEmpty()) text[0] = text[0].toUpper();
    QString advice = remedy;
    if (!advice.isEmpty()) advice[0] = advice[0].toUpper();
    m_message->setText(text);
    m_remedy->setText(advice);
    m_remedy->setVisible(!advice.isEmpty());
    show();
}

} // namespace stagewright
