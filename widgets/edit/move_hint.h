// MoveHint: a small card at a dropped op that says why the order has a fault now and offers the nearest place, the op's dependants
// carried along, or to undo. It never takes the focus; the same actions have keys, which its buttons name.
#pragma once

#include <QFrame>

class QLabel;
class QPushButton;

namespace stagewright {

class MoveHint : public QFrame {
    Q_OBJECT
public:
    explicit MoveHint(QWidget* view);
    // `above`: what the card stands under, in the view. An empty text of a button hides it.
    void showAt(const QRectF& above, const QString& reason, const QString& place, bool canGo, bool canCarry, bool wasMade);
    QString text() const;
    void setKeys(const QString& go, const QString& carry, const QString& undo); // as the menus name them

signals:
    void goAsked();
    void carryAsked();
    void undoAsked();

private:
    QLabel* m_reason;
    QLabel* m_place;
    QPushButton *m_go, *m_carry, *m_undo, *m_close;
};

} // namespace stagewright
