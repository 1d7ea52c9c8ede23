// WindowSet: the windows of this process (MainWindow, all of them) and their session: what was open, in which view,
// with which selection. The session is saved continuously, so that it survives a crash. GUI thread only.
#pragma once

#include <memory>
#include <vector>

#include <QObject>
#include <QPointer>
#include <QTimer>

#include "widgets/runs/runs_model.h"

class QMainWindow;
class QMenu;

namespace stagewright {

class MainWindow;

class WindowSet : public QObject {
    Q_OBJECT
public:
    static WindowSet& instance(); // created on first use, lives until the application ends
    const std::vector<MainWindow*>& windows() const { return m_windows; }
    void add(MainWindow* window);                    // removed when it is destroyed
    MainWindow* open(QMainWindow* beside = nullptr); // a new one, shown; deletes itself when closed
    // Shows the run with its view in `to` (null: a new window); this window shows the next run of the list, or nothing.
    MainWindow* moveRun(QMainWindow& from, MainWindow* to);
    // "Show in a new window", and one entry per other window
    void addMenu(QMenu& menu, QMainWindow& from, const RunRef& ref);

    // Off until this is called, so that pictures and tests leave no session behind.
    void keepSession(bool keep = true);
    void saveSoon();              // within a second
    void save(bool last = false); // last: the program ends, so everything is on disk when this returns
    // Reopens the session, with the first window in `first`. False: no session, switched off, or the last
    // restore failed (which is reported).
    bool restore(MainWindow& first);
    void closing(QMainWindow& window); // the last window saves the session as it is
    void quit();                       // closes all windows; the session keeps all
    // the session, for an end that asks nothing: the next start does not take it for a crash
    void keep();
    void stay(); // a window asked before it closed, and the answer was no
    bool quitting() const { return m_quitting; }
    void restart(); // restarts the program, with the session

signals:
    void fileWritten(const QString& file); // by a window of this process

private:
    explicit WindowSet(QObject* parent);
    void removeStale(const QStringList& kept);
    void reopen(MainWindow& first, const QVariantList& windows);
    std::vector<MainWindow*> m_windows;
    // files with runs in memory that this process wrote or took over; those of others are not touched
    QStringList m_simulated;
    QTimer m_timer;
    bool m_keeps = false;
    bool m_quitting = false; // until every window is closed or one refuses
    bool m_frozen = false;   // quitting: closing windows stay in the session
};

} // namespace stagewright
