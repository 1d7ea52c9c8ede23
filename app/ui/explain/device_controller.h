// DeviceController: the dock with kernels, links and roofline of the step shown (of A in compare mode). Computed off the GUI
// thread while the dock is open; the latest step wins.
#pragma once

#include <memory>

#include <QObject>

#include "widgets/device/device_figures.h"

class QDockWidget;

namespace stagewright {

class DevicePanel;
class MainWindow;
struct RunView;

class DeviceController : public QObject {
    Q_OBJECT
public:
    explicit DeviceController(MainWindow& window);
    DevicePanel* panel() { return m_panel; }
    QDockWidget* dock() { return m_dock; }
    bool settled() const { return !m_busy; }

private:
    void refresh(); // requests figures for the current view if the dock is open

    MainWindow& m_window;
    DevicePanel* m_panel;
    QDockWidget* m_dock;
    std::shared_ptr<const RunView> m_asked; // its figures are shown or being computed
    quint64 m_generation = 0;
    bool m_busy = false;
};

} // namespace stagewright
