// EditAutosave: saves a window's order to disk while it is edited, and finds edits left by a window that ended without
// leaving edit mode. Each window writes its own file beside the settings, guarded by a lock that dies with the process;
// a file with a free lock is an orphan. Written off the GUI thread to a temporary name, then renamed. GUI thread only.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include <QElapsedTimer>
#include <QLockFile>
#include <QObject>
#include <QTimer>

#include "widgets/edit/edit_record.h"
#include "widgets/job.h"

namespace stagewright {

class EditAutosave : public QObject {
    Q_OBJECT
public:
    using Take = std::function<EditRecord()>; // gives the edit to save, at the time of writing

    explicit EditAutosave(Jobs& jobs, QObject* parent = nullptr);
    ~EditAutosave() override; // waits for a running write; the file stays if edits were not cleared

    static QString folder(); // beside the settings file

    void changed(Take take);   // saved within the preferred interval, at most once per interval
    void preferencesChanged(); // applies to pending saves
    void flush();              // writes a pending save at once; nothing is saved afterwards
    void clear();              // saved or left: nothing to recover
    // A save is due or under way.
    bool pending() const { return m_due.isActive() || m_writing.running(); }
    bool written() const { return m_written && !pending(); }
    QString file() const { return m_file; }

    // The newest readable orphan, which now belongs to this window; unreadable ones are renamed and reported.
    struct Orphan {
        EditRecord record;
        QString file;
    };
    std::optional<Orphan> takeOrphan();
    void drop(const Orphan& orphan);    // removes it
    void release(const Orphan& orphan); // for the next start

signals:
    void failed(const stagewright::Error& error);

private:
    void write();
    bool prepare(); // file and lock

    QString m_file;
    std::unique_ptr<QLockFile> m_lock;
    std::unique_ptr<QLockFile> m_orphanLock;
    Take m_take;
    QTimer m_due;
    bool m_written = false;
    bool m_cleared = false;             // the file goes once the write that was running has ended
    std::shared_ptr<std::mutex> m_disk; // one writer at a time
    Job m_writing;
};

} // namespace stagewright
