// FindField: the search field of a window. The answer stands in it at the right ("3 of 32"), what it does not understand right under
// it. Typing takes both away.
#pragma once

#include <QLineEdit>

class QLabel;

namespace stagewright {

class FindField : public QLineEdit {
    Q_OBJECT
public:
    explicit FindField(QWidget* parent = nullptr);
    void setAnswer(const QString& text, bool found); // empty: none
    void setFault(const QString& text);              // why the question can't be read; empty: it can
    QString answer() const;                          // what is said, be it a fault
    QLabel* faultLabel() { return m_fault; }

protected:
    void resizeEvent(QResizeEvent* event) override;
    void moveEvent(QMoveEvent* event) override;
    void hideEvent(QHideEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;

private:
    void place();

    QLabel* m_answer;
    QLabel* m_fault; // a child of the window: it is wider than the field
};

} // namespace stagewright
