#include "app/ui/workspace/scratch_folder.h"

#include <QDir>
#include <QDirIterator>

namespace stagewright {

static QString folderPattern() { return QStringLiteral("stagewright-window-"); }
static QString lockName() { return QStringLiteral("owner.lock"); }

ScratchFolder::ScratchFolder()
    : m_folder(QDir::temp().filePath(folderPattern() + QStringLiteral("XXXXXX"))), m_lock(m_folder.filePath(lockName()))
{
    static const bool once = (removeAbandoned(), true);
    Q_UNUSED(once)
    m_lock.setStaleLockTime(0);
    m_lock.tryLock(0);
}

void ScratchFolder::removeAbandoned()
{
    const uint self = QFileInfo(QDir::homePath()).ownerId();
    const auto folders =
        QDir::temp().entryInfoList({folderPattern() + QLatin1Char('*')}, QDir::Dirs | QDir::NoSymLinks);
    for (const QFileInfo& folder : folders) {
        const QString lockPath = folder.absoluteFilePath() + QLatin1Char('/') + lockName();
        if (folder.ownerId() != self || !QFileInfo::exists(lockPath)) continue; // just being made
        QDirIterator recordings(folder.absoluteFilePath(), {QStringLiteral("recording-*.stagewright")}, QDir::Files,
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
