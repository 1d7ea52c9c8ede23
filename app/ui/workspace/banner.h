// Banner: a card over the lower edge of the work area that reports what happened, or what went wrong and what to do.
// Never modal and never moves other widgets; it belongs to what was on screen when it appeared and disappears with it.
#pragma once

#include <functional>
#include <vector>

#include <QFrame>
#include <QPointer>

#include "widgets/literals.h"

class QLabel;
class QPushButton;

namespace stagewright {

struct Error;

class Banner : public QFrame {
    Q_OBJECT
public:
    explicit Banner(QWidget* parent = nullptr);
    void attach(QWidget* area); // the widget it covers; same parent or a descendant
    // Another card over the same area, under the banner while both are there: shown and hidden by its owner.
    void carry(QWidget* card);
    // Makes, for each message, a test whether its subject is still on screen; called by review().
    using About = std::function<bool()>;
    void setContext(std::function<About()> context) { m_context = std::move(context); }
    void setAbout(About about) { m_about = std::move(about); } // for the current message
    void review();                                             // removes a message whose subject is gone
    void showError(const QString& what, const Error& error);
    void showError(const QString& message, const QString& remedy);
    // Something that can't be done although nothing failed: not red.
    void showRefusal(const QString& what, const Error& error);
    void showRefusal(const QString& message, const QString& remedy);
    void showNote(const QString& message);
    // With a button that acts on it and closes the banner.
    void showQuestion(const QString& message, const QString& remedy, const QString& button,
                      std::function<void()> answer);
    void setMessage(const QString& message); // of the current message; tone, remedy and button stay
    QPushButton* answerButton() { return m_answer; }
    void clear();
    QString text() const;
    bool isError() const { return property("tone") == "error"_L1; }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void place();
    void present(const char* tone, const QString& message, const QString& remedy);
    QLabel* m_message;
    QLabel* m_remedy;
    QPushButton* m_answer;
    std::function<void()> m_then;
    QWidget* m_area = nullptr;
    std::vector<QPointer<QWidget>> m_cards;
    std::function<About()> m_context;
    About m_about;
};

} // namespace stagewright
