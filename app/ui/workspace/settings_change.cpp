#include "app/ui/workspace/settings_change.h"

#include <QDir>
#include <QFileInfo>
#include <QSettings>

#include "schedules/base/change_lock.h"

namespace stagewright {

void changeSettings(const std::function<void(QSettings&)>& change)
{
    QSettings settings;
    QDir().mkpath(QFileInfo(settings.fileName()).absolutePath());
    // without one after a while: the change matters more
    const auto lock = ChangeLock::take(settings.fileName().toStdString());
    settings.sync();
    change(settings);
    settings.sync();
}

} // namespace stagewright
