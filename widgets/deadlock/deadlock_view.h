// DeadlockView: an order that hangs, drawn by position since it has no times: each rank's list around where it has
// stopped, the cycle of waits as arrows, ranks that only wait for the cycle in grey. GUI thread only.
#pragma once

#include <memory>

#include <QWidget>

#include "schedules/execute/deadlock.h"
#include "widgets/theme.h"
#include "widgets/themed_widget.h"

namespace stagewright {

class DeadlockView : public ThemedWidget {
    Q_OBJECT
public:
    explicit DeadlockView(QWidget* parent = nullptr);
    void setDeadlock(std::shared_ptr<const Schedule> schedule, const Deadlock& deadlock);
    QRectF cellOf(int rank, int position) const; // of an op; empty: not drawn
    QString textOf(const Op& op) const;          // text of a cell: "2F0", "→F0" for a send, "←F0" for a receive
    QSize sizeHint() const override;

protected:
    void paintEvent(QPaintEvent*) override;
    bool event(QEvent* event) override; // tool tips

private:
    int first(int rank) const; // position drawn first
    int columns() const;
    int standsAt(int rank) const; // −1: the rank finished
    bool isVictim(int rank) const;
    void paintWait(QPainter& p, const BlockedRank& wait) const;

    std::shared_ptr<const Schedule> m_schedule;
    Deadlock m_deadlock;
    double m_cell = 44;
};

} // namespace stagewright
