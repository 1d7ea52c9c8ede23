// MainWindow: the window of Stagewright. It makes the workspace, gives the features of features.def their places, and
// hands them what reaches a window: keys, dropped files, closing. What it shows and does is in the features.
#pragma once

#include <QMainWindow>
#include <QSize>

class QLabel;

namespace stagewright {

class Appearance;
class Workspace;

class MainWindow : public QMainWindow {
    Q_OBJECT
public:
    explicit MainWindow(QWidget* parent = nullptr);
    ~MainWindow() override;

    Workspace& workspace() { return *m_workspace; }

protected:
    void closeEvent(QCloseEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dragLeaveEvent(QDragLeaveEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    void changeEvent(QEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    void layOutFeatures();
    void restoreLayout();
    void keepOnScreen(); // with its frame, which a window manager adds later

    QLabel* m_dropSign = nullptr; // over the window while files are
    Workspace* m_workspace = nullptr;
    Appearance* m_appearance = nullptr;
    bool m_placed = false; // on the screen, at first show
    QSize m_startSize;
};

} // namespace stagewright
