#include "app/ui/workspace/scratch_folder.h"

#include <QDir>
#include <QDirIterator>

#include "widgets/literals.h"

namespace stagewright {

static QString folderPattern() { return u"stagewright-window-"_s; }
static QString lockName() { return u"owner.lock"_s; }

ScratchFolder::ScratchFolder()
    : m_folder(QDir::temp().filePath(folderPattern() + u"XXXXXX"_s)), m_lock(m_folder.filePath(lockName()))
{
    static const bool once = (removeAbandoned(), true);
    Q_UNUSED(once)
    m_lock.setStaleLockTime(0);
    m_lock.tryLock(0);
}

void ScratchFolder::removeAbandoned()
{
    const uint self = QFileInfo(QDir::homePath()).ownerId();
    const auto folders = QDir::temp().entryInfoList({folderPattern() + u'*'}, QDir::Dirs | QDir::NoSymLinks);
    for (const QFileInfo& folder : folders) {
        const QString lockPath = folder.absoluteFilePath() + u'/' + lockName();
        if (folder.ownerId() != self || !QFileInfo::exists(lockPath)) continue; // just being made
        QDirIterator recordings(folder.absoluteFilePath(), {u"recording-*.stagewright"_s}, QDir::Files,
                                QDirIterator::Subdirectories);
        if (recordings.hasNext()) continue;
        QLockFile lock(lockPath);
        lock.setStaleLockTime(0);
        if (!lock.tryLock(0)) continue; // its program lives
        lock.unlock();
        QDir(folder.absoluteFilePath()).removeRecursively();
    }
}

} // namespace stagewright
