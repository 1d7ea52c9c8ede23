// TablesController: the dock with the tables of the report of the step shown (A's in compare mode). Computed off the GUI thread while the
// dock is open; the newest step wins. A row that is about an op selects it.
#pragma once

#include <memory>

#include <QObject>

class QDockWidget;

namespace stagewright {

class MainWindow;
class TablesPanel;
struct RunView;

class TablesController : public QObject {
    Q_OBJECT
public:
    explicit TablesController(MainWindow& window);
    TablesPanel* panel() { return m_panel; }
    QDockWidget* dock() { return m_dock; }
    bool settled() const { return !m_busy; }

private:
    void refresh(); // asks for what is shown, where the dock is open

    MainWindow& m_window;
    TablesPanel* m_panel;
    QDockWidget* m_dock;
    std::shared_ptr<const RunView> m_asked; // whose tables are shown or under way
    quint64 m_generation = 0;
    bool m_busy = false;
};

} // namespace stagewright
