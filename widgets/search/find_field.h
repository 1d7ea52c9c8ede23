// FindField: the search field of a window, with the answer inside it at the right ("3 of 32") and errors just below it.
// Typing clears both.
#pragma once

#include <QLineEdit>

class QLabel;

namespace stagewright {

class FindField : public QLineEdit {
    Q_OBJECT
public:
    explicit FindField(QWidget* parent = nullptr);
    void setAnswer(const QString& text, bool found); // empty: none
    void setFault(const QString& text);              // why the query is invalid; empty: valid
    QString answer() const;                          // the current text, also a fault
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
