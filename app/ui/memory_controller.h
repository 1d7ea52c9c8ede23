// MemoryController: what the memory charts show: categories, scales, counters, and the schedule simulated with the run's own
// costs over what was measured. Connects the actions of the menu Memory charts and remembers what was chosen.
#pragma once

#include <memory>

#include <QObject>
#include <QPoint>

namespace stagewright {

class MainWindow;
struct RunView;
struct TimelinePanel;

class MemoryController : public QObject {
    Q_OBJECT
public:
    explicit MemoryController(MainWindow& window);

private:
    void refresh();          // which actions are checked and can be used
    void refreshPredicted(); // simulated off the GUI thread, once a run
    void showMenu(const QPoint& at);

    MainWindow& m_window;
    std::shared_ptr<const RunView> m_predictedOf; // what m_predicted was made of
    std::shared_ptr<const TimelinePanel> m_predicted;
    quint64 m_generation = 0;
};

} // namespace stagewright
