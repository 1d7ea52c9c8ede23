#include "app/ui/files/first_look.h"

#include <QDir>
#include <QFile>
#include <QStandardPaths>

#include "widgets/literals.h"

// Outside any namespace, as Q_INIT_RESOURCE demands.
static void initFirstLook() { Q_INIT_RESOURCE(first_look); }

namespace stagewright {

Result<QString> firstLookFile()
{
    initFirstLook();
    const QString folder = QStandardPaths::writableLocation(QStandardPaths::GenericDataLocation) + u"/stagewright"_s;
    const QString path = folder + u"/first-look.stagewright"_s;
    if (QFile::exists(path)) return path;
    QFile kept(u":/stagewright/first-look.stagewright"_s);
    if (!QDir().mkpath(folder) || !kept.copy(path))
        return fail(ErrorCode::Failed, "the runs to look at can't be copied to " + path.toStdString(),
                    "make the folder writable, or record a run of your own");
    QFile(path).setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ReadGroup | QFile::ReadOther);
    return path;
}

} // namespace stagewright
