// Banner: one line over the work area that says what went wrong and what to do, or what happened. Never modal.
#pragma once

#include <QFrame>

class QLabel;

namespace stagewright {

struct Error;

class Banner : public QFrame {
    Q_OBJECT
public:
    explicit Banner(QWidget* parent = nullptr);
    void showError(const QString& what, const Error& error);
    void showError(const QString& message, const QString& remedy);
    void showNote(const QString& message);
    void clear();
    QString text() const;

private:
    void present(const char* tone, const QString& message, const QString& remedy);
    QLabel* m_message;
    QLabel* m_remedy;
};

} // namespace stagewright
