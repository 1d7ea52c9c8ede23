// A scroll area whose page keeps what the reader is at in place while its texts come and go: the control under the
// mouse, else the focused one, else the first part in view. What appears above is scrolled past instead of pushing it
// away. GUI thread only.
#pragma once

#include <QPointer>
#include <QScrollArea>

namespace stagewright {

class SteadyScroll : public QScrollArea {
    Q_OBJECT
public:
    explicit SteadyScroll(QWidget* parent = nullptr);
    void hold();    // before the page changes; each hold is released once
    void release(); // after it is laid out

private:
    QWidget* readersPlace() const;
    int yOf(const QWidget* widget) const;
    void keep();

    QPointer<QWidget> m_anchor; // none: nothing is held, or the reader scrolled
    int m_y = 0;                // of the anchor, in the viewport
    int m_holds = 0;
    bool m_keeping = false;
};

} // namespace stagewright
