// SessionController: one window's part of the session: what is open and shown, as a map saved to and restored from the
// settings; its window actions; and open files that change on disk.
#pragma once

#include <vector>

#include <QDateTime>
#include <QFileSystemWatcher>
#include <QHash>
#include <QObject>
#include <QThreadPool>
#include <QTimer>
#include <QVariantMap>

#include "app/ui/workspace/feature.h"
#include "widgets/runs/runs_model.h"

namespace stagewright {

class SessionController : public Feature {
    Q_OBJECT
public:
    explicit SessionController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    QVariantMap state() const;
    QVariantMap viewState() const;          // of what is shown: run, step, view, selection, mode
    void restore(const QVariantMap& state); // the banner names missing files
    // Saves changed in-memory runs beside the settings; `wait`: before it returns.
    void keepSimulated(bool wait);
    QString simulatedFile() const { return simulatedFileOf(m_id); } // their file; may be absent
    static QString simulatedFileOf(const QString& id);              // of a window's id in the session
    static QString folder();                                        // of such files
    void showThere(const RunRef& ref, const QVariantMap& view);     // opens its file if needed
    void simulatedChanged();

    // A file was written by this process: not an outside change.
    void wroteFile(const QString& file);
    bool looking() const { return m_look.isActive(); } // a file changed, and by whom is not known yet
    bool restoring() const { return m_wanted.valid() || !m_awaited.isEmpty(); }

private:
    struct Stamp {
        QDateTime modified;
        qint64 size = -1;
        bool operator==(const Stamp&) const = default;
    };
    static Stamp stampOf(const QString& file);
    static bool isReceived(const QString& file);
    QVariantMap mapOf(const RunRef& ref) const;
    RunRef refOf(const QVariant& map) const;
    void restoreSimulated(const QString& file);
    // of runs in memory that can't all be read: it stays, under another name
    void setAside(const QString& file, const Error& why);
    void answered(const QString& path); // listed, failed, or read from memory
    void showWanted();
    void applyView();
    void watchFiles();
    void lookAtChanged();
    void readAgain(const QString& file);

    QStringList m_schedules; // CSVs that were opened
    QString m_id;            // of this window in the session
    bool m_simulatedChanged = false;
    QThreadPool m_keeping;              // writes them one at a time
    QStringList m_awaited;              // of the session: files that are not listed yet
    RunRef m_wanted;                    // to be shown once its file is listed
    std::vector<RunRef> m_wantedOthers; // to be compared with it
    QVariantMap m_view;                 // to be applied once the run is shown
    QFileSystemWatcher m_watcher;
    QHash<QString, Stamp> m_stamps;
    QStringList m_changed;
    QStringList m_received; // files that a listener writes
    bool m_newest = false;  // what is wanted is the newest step
    QTimer m_look;
};

} // namespace stagewright
