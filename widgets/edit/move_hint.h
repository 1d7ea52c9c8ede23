// MoveHint: a small card at a dropped op that explains the fault of the order and offers the nearest valid place,
// moving the op's dependants along, or undo. It never takes the focus; its buttons show the keys of the same actions.
#pragma once

#include <array>

#include <QFrame>

class QLabel;
class QPushButton;

namespace stagewright {

class MoveHint : public QFrame {
    Q_OBJECT
public:
    explicit MoveHint(QWidget* view);
    // `above`: the rectangle that the card is shown under, in the view. A button with an empty text is hidden.
    void showAt(const QRectF& above, const QString& reason, const QString& place, bool canGo, bool canCarry,
                bool wasMade);
    QString text() const;
    void setKeys(const QString& go, const QString& carry, const QString& undo); // the keys shown in the menus

signals:
    void goAsked();
    void carryAsked();
    void undoAsked();

private:
    void arrange(int width); // the buttons: with their keys where there is room, else in two columns
    void setTexts(bool keys);

    QGridLayout* m_row;
    std::array<QString, 3> m_keys; // of the first three
    QLabel* m_reason;
    QLabel* m_place;
    QPushButton *m_go, *m_carry, *m_undo, *m_close;
};

} // namespace stagewright
