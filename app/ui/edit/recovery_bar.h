// RecoveryBar: a bar over the work area that offers to recover an order that was being edited when a window ended.
#pragma once

#include <QFrame>

class QLabel;

namespace stagewright {

class RecoveryBar : public QFrame {
    Q_OBJECT
public:
    explicit RecoveryBar(QWidget* parent = nullptr);
    void offer(const QString& what, const QString& details);
    QString text() const;

signals:
    void recoverAsked();
    void discardAsked();
    void laterAsked();

private:
    QLabel* m_what;
    QLabel* m_details;
};

} // namespace stagewright
