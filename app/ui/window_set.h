// WindowSet: the windows of this process and the session they make up: what was open, where it was looked at, what was
// selected. The session is written while one works, so that it is there after a crash, too. GUI thread only.
#pragma once

#include <memory>
#include <vector>

#include <QObject>
#include <QPointer>
#include <QTimer>

#include "widgets/runs/runs_model.h"

class QMenu;

namespace stagewright {

class MainWindow;

class WindowSet : public QObject {
    Q_OBJECT
public:
    static WindowSet& instance(); // made on first use, lives as long as the application
    const std::vector<MainWindow*>& windows() const { return m_windows; }
    void add(MainWindow* window); // taken off when it is destroyed
    MainWindow* open(MainWindow* beside = nullptr); // a new one, shown; deletes itself when closed
    // Shows the run in `to` (null: a new window) with its view; here the next run of the list, or nothing.
    MainWindow* moveRun(MainWindow& from, MainWindow* to);
    void addMenu(QMenu& menu, MainWindow& from, const RunRef& ref); // "Show in a new window" and in each other one

    // Off until this is called: pictures and tests leave no session behind.
    void keepSession(bool keep = true);
    void saveSoon(); // within a second
    void save(bool last = false); // last: the program ends, what is kept is on disk when this returns
    // Opens what was open, the first window's part in `first`. False: there is nothing, it is switched off, or the last
    // restoring did not come to its end (which is said).
    bool restore(MainWindow& first);
    void closing(MainWindow& window); // the last one takes the session with it as it is
    void quit();                      // all windows; the session keeps all
    void stay(); // a window asked before it closed, and was told no
    bool quitting() const { return m_quitting; }
    void restart();                   // the program anew, with the session

signals:
    void fileWritten(const QString& file); // by a window of this process

private:
    explicit WindowSet(QObject* parent);
    void removeStale(const QStringList& kept) const;
    std::vector<MainWindow*> m_windows;
    QTimer m_timer;
    bool m_keeps = false;
    bool m_quitting = false; // until every window is closed, or one stays
    bool m_frozen = false; // quitting: closing windows are no longer taken off the session
};

} // namespace stagewright
