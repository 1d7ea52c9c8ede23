// Lists in the settings that are read, changed and written back, which several programs of the user may do at once.
#pragma once

#include <functional>

class QSettings;

namespace stagewright {

// With the settings as they are now on disk, others' changes included, and nobody else's change until they are written.
void changeSettings(const std::function<void(QSettings& settings)>& change);

} // namespace stagewright
