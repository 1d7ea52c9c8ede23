// Banner: one line over the work area that says what went wrong and what to do, or what happened. Never modal.
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
    void showError(const QString& what, const Error& error);
    void showError(const QString& message, const QString& remedy);
    void showNote(const QString& message);
    // With a button that does something about it and takes the banner away.
    void showQuestion(const QString& message, const QString& remedy, const QString& button, std::function<void()> answer);
    void setMessage(const QString& message); // of what is shown; its tone, remedy and button stay
    QPushButton* answerButton() { return m_answer; }
    void clear();
    QString text() const;

private:
    void present(const char* tone, const QString& message, const QString& remedy);
    QLabel* m_message;
    QLabel* m_remedy;
    QPushButton* m_answer;
    std::function<void()> m_then;
};

} // namespace stagewright
