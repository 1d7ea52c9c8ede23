// The runs to look at without recording or owning a file, which are built into the window.
#pragma once

#include <QString>

#include "schedules/base/result.h"

namespace stagewright {

// Their file in the user's data folder, copied there unless it is there already. Fails (Failed) where it can't be.
Result<QString> firstLookFile();

} // namespace stagewright
