#include "app/ui/explain/device_controller.h"

#include <QDockWidget>

#include "app/ui/shell/bottom_dock.h"
#include "app/ui/shell/main_window.h"
#include "widgets/background.h"
#include "widgets/device/device_panel.h"
#include "widgets/device/figure_table.h"

namespace stagewright {

DeviceController::DeviceController(MainWindow& window) : QObject(&window), m_window(window), m_panel(new DevicePanel), m_dock(makeBottomDock(window, QStringLiteral("deviceDock"), tr("Kernels and links"), m_panel, ActionId::DeviceTables, [this] { m_panel->kernels()->setFocus(); }))
{
    connect(m_dock, &QDockWidget::visibilityChanged, this, &DeviceController::refresh);
    connect(&window, &MainWindow::runShown, this, &DeviceController::refresh);
    connect(&window, &MainWindow::modeChanged, this, &DeviceController::refresh);
    connect(&window, &MainWindow::themeChanged, this, [this] { m_panel->setTheme(m_window.theme()); });
    connect(m_panel, &DevicePanel::spanChosen, this, [this](SpanId span) {
        if (span == noSpan || !m_asked || m_asked != m_window.shownView() || m_window.mode() == MainWindow::Mode::Edit) return;
        const SpanRef ref{0, span};
        m_window.viewState()->select(ref);
        m_window.timelineView()->ensureVisible(ref);
    });
    m_panel->setTheme(window.theme());
}

void DeviceController::refresh()
{
    if (m_dock->isHidden()) return;
    const auto view = m_window.mode() == MainWindow::Mode::Empty ? nullptr : m_window.shownView();
    if (view == m_asked) return;
    m_asked = view;
    const quint64 generation = ++m_generation;
    m_busy = view != nullptr;
    if (!view) {
        m_panel->setFigures(nullptr);
        return;
    }
    m_panel->setWorking();
    inBackground(
        this, [view] { return std::make_shared<const DeviceFigures>(deviceFiguresOf(*view->run, view->step, view->panel->units)); },
        [this, generation](const std::shared_ptr<const DeviceFigures>& figures) {
            if (generation != m_generation) return;
            m_busy = false;
            m_panel->setFigures(figures);
        });
}

} // namespace stagewright
