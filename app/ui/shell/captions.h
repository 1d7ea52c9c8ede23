// Captions: the title and the status bar of a window: what is shown, or the page over it.
#pragma once

#include <QObject>

class QLabel;
class QProgressBar;

namespace stagewright {

class Workspace;

class Captions : public QObject {
    Q_OBJECT
public:
    explicit Captions(Workspace& workspace); // owned by the workspace

protected:
    bool eventFilter(QObject* watched, QEvent* event) override; // the window's size

private:
    void refresh();
    void refreshTitle();
    void refreshStatus();

    Workspace& m_workspace;
    QLabel* m_title; // in the middle of the menu bar, where it has room
    QLabel* m_left;
    QProgressBar* m_reading;
    QLabel* m_clock;
    QLabel* m_right;
};

} // namespace stagewright
