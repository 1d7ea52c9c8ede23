// EditAutosave: keeps the order of one window on disk while it is edited, and finds what a window that ended without leaving edit
// mode left behind. Each window writes a file of its own beside the settings, held by a lock that dies with the process; a file
// whose lock is free is an orphan. Written off the GUI thread to a temporary name and renamed. GUI thread only.
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

namespace stagewright {

class EditAutosave : public QObject {
    Q_OBJECT
public:
    using Take = std::function<EditRecord()>; // what is to be kept, when it is written

    explicit EditAutosave(QObject* parent = nullptr);
    ~EditAutosave() override; // waits for what is being written; the file stays where edits were not cleared

    static QString folder(); // beside the settings file

    void changed(Take take); // written within the preferred time, and at most once in it
    void preferencesChanged(); // what is due follows them
    void flush(); // writes at once what is due; nothing is taken afterwards
    void clear();            // saved or left: nothing to recover
    bool written() const { return m_written && !m_writing && !m_due.isActive(); }
    QString file() const { return m_file; }

    // The newest orphan that can be read, and now belongs to this window; unreadable ones are set aside under another name and told.
    struct Orphan {
        EditRecord record;
        QString file;
    };
    std::optional<Orphan> takeOrphan();
    void drop(const Orphan& orphan); // removes it
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
    bool m_writing = false;
    bool m_again = false;
    bool m_written = false;
    quint64 m_generation = 0; // of what was cleared; a late write of before is removed
    std::shared_ptr<std::mutex> m_disk; // one writer at a time
};

} // namespace stagewright
