// Banner: a card over the lower edge of the work area that says what went wrong and what to do, or what happened. Never modal;
// it moves nothing below it, belongs to what was on screen when it came, and goes with that.
#pragma once

#include <functional>

#include <QFrame>

class QLabel;
class QPushButton;

namespace stagewright {

struct Error;

class Banner : public QFrame {
    Q_OBJECT
public:
    explicit Banner(QWidget* parent = nullptr);
    void attach(QWidget* area); // which it lies over; of the same parent or below it
    // Makes, for each message, the answer to whether what it is about is still on screen; asked by review().
    using About = std::function<bool()>;
    void setContext(std::function<About()> context) { m_context = std::move(context); }
    void setAbout(About about) { m_about = std::move(about); } // of the message shown, instead
    void review();                                             // away with a message whose subject has gone
    void showError(const QString& what, const Error& error);
    void showError(const QString& message, const QString& remedy);
    // What could not be done although nothing failed: not red.
    void showRefusal(const QString& what, const Error& error);
    void showRefusal(const QString& message, const QString& remedy);
    void showNote(const QString& message);
    // With a button that does something about it and takes the banner away.
    void showQuestion(const QString& message, const QString& remedy, const QString& button, std::function<void()> answer);
    void setMessage(const QString& message); // of what is shown; its tone, remedy and button stay
    QPushButton* answerButton() { return m_answer; }
    void clear();
    QString text() const;
    bool isError() const { return property("tone") == QLatin1String("error"); }

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
    std::function<About()> m_context;
    About m_about;
};

} // namespace stagewright
