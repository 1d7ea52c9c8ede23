// SessionController: one window's part of the session: what is open and shown in it, as a map that is kept in the settings
// and brought back; its actions for windows; and the files that change on disk while they are open.
#pragma once

#include <QDateTime>
#include <QFileSystemWatcher>
#include <QHash>
#include <QObject>
#include <QTimer>
#include <QVariantMap>

#include "widgets/runs/runs_model.h"

namespace stagewright {

class MainWindow;

class SessionController : public QObject {
    Q_OBJECT
public:
    explicit SessionController(MainWindow& window);
    QVariantMap state() const;
    QVariantMap viewState() const; // of what is shown: run, step, view, selection, mode
    void restore(const QVariantMap& state); // files that are gone are named in the banner
    void showThere(const RunRef& ref, const QVariantMap& view); // opens its file where it is not open
    void openedSchedule(const QString& path) { m_schedules << path; }

    // A file was written by this process: no change from outside.
    void wroteFile(const QString& file);
    bool restoring() const { return m_wanted.valid(); }

private:
    struct Stamp {
        QDateTime modified;
        qint64 size = -1;
        bool operator==(const Stamp&) const = default;
    };
    static Stamp stampOf(const QString& file);
    void showWanted(const QString& listedFile);
    void applyView();
    void watchFiles();
    void lookAtChanged();

    MainWindow& m_window;
    QStringList m_schedules; // CSVs that were opened
    RunRef m_wanted, m_wantedOther; // to be shown once their files are listed
    QVariantMap m_view;             // to be applied once the run is shown
    QFileSystemWatcher m_watcher;
    QHash<QString, Stamp> m_stamps;
    QStringList m_changed;
    QTimer m_look;
};

} // namespace stagewright
