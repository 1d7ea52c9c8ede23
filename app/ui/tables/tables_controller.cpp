#include "app/ui/tables/tables_controller.h"

#include <QDockWidget>
#include <QListWidget>

#include "app/ui/shell/bottom_dock.h"
#include "app/ui/shell/main_window.h"
#include "widgets/background.h"
#include "widgets/tables/tables_panel.h"

namespace stagewright {

TablesController::TablesController(MainWindow& window) : QObject(&window), m_window(window), m_panel(new TablesPanel), m_dock(makeBottomDock(window, QStringLiteral("tablesDock"), tr("Tables"), m_panel, ActionId::Tables, [this] { m_panel->names()->setFocus(); }))
{
    connect(m_dock, &QDockWidget::visibilityChanged, this, &TablesController::refresh);
    connect(&window, &MainWindow::runShown, this, &TablesController::refresh);
    connect(&window, &MainWindow::modeChanged, this, &TablesController::refresh);
    connect(m_panel, &TablesPanel::spanChosen, this, [this](SpanId span) {
        if (span == noSpan || !m_asked || m_asked != m_window.shownView() || m_window.mode() == MainWindow::Mode::Edit) return;
        if (m_asked->run->timeline->spans()[span].step != m_asked->step) {
            m_window.chooseOp(span);
            return;
        }
        const SpanRef ref{0, span};
        m_window.viewState()->select(ref);
        m_window.timelineView()->ensureVisible(ref);
    });
}

void TablesController::refresh()
{
    if (m_dock->isHidden()) return;
    const auto view = m_window.mode() == MainWindow::Mode::Empty ? nullptr : m_window.shownView();
    if (view == m_asked) return;
    m_asked = view;
    const quint64 generation = ++m_generation;
    m_busy = view != nullptr;
    if (!view) {
        m_panel->setTables(nullptr, {});
        return;
    }
    m_panel->setWorking();
    inBackground(
        this, [view] { return std::make_shared<const std::vector<ReportTable>>(reportTables(*view->run, view->step)); },
        [this, generation, units = view->panel->units](const std::shared_ptr<const std::vector<ReportTable>>& tables) {
            if (generation != m_generation) return;
            m_busy = false;
            m_panel->setTables(tables, units);
        });
}

} // namespace stagewright
