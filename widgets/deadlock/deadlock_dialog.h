// DeadlockDialog: why an order hangs: the cycle drawn on its lists, and a change that removes it, ready to apply. For
// lowered orders, the way messages travel can be chosen. GUI thread only.
#pragma once

#include <memory>

#include <QDialog>

#include "schedules/execute/deadlock.h"
#include "widgets/theme.h"

class QComboBox;
class QLabel;
class QPushButton;

namespace stagewright {

class DeadlockView;

class DeadlockDialog : public QDialog {
    Q_OBJECT
public:
    DeadlockDialog(const Theme& theme, std::shared_ptr<const Schedule> schedule, const Channels& channels,
                   QWidget* parent = nullptr);
    const Deadlock& deadlock() const { return m_deadlock; }
    DeadlockView* view() { return m_view; }
    QString sentence() const;
    QString fixText() const; // the button's text; "" if there is none

signals:
    void fixAsked(const stagewright::Schedule& fixed);

private:
    void explain();

    std::shared_ptr<const Schedule> m_schedule;
    Channels m_channels;
    Deadlock m_deadlock;
    DeadlockView* m_view;
    QLabel* m_sentence;
    QComboBox* m_sends;
    QPushButton* m_fix;
};

} // namespace stagewright
