// Icons of the dialogs that Qt provides (files, messages), drawn like the window's own: lines of one weight in the
// text's colour.
#pragma once

#include <QIcon>
#include <QStyle>

namespace stagewright {

// Follows the application's palette; without a picture for what has none of ours. GUI thread.
QIcon dialogIcon(QStyle::StandardPixmap what);

} // namespace stagewright
