// A folder for files that go with their owner, in the system's temporary folder. A lock in it says that its program
// lives: what a killed one left is removed by the next one that makes a folder, but for folders that hold a recording,
// which the session takes up.
#pragma once

#include <QLockFile>
#include <QTemporaryDir>

namespace stagewright {

class ScratchFolder {
public:
    ScratchFolder();

    QString path() const { return m_folder.path(); }
    QString filePath(const QString& name) const { return m_folder.filePath(name); }

    // Removes the folders that no living program owns; of other users none.
    static void removeAbandoned();

private:
    QTemporaryDir m_folder; // removed after the lock is given back
    QLockFile m_lock;
};

} // namespace stagewright
