// Texts as u"Rank"_s, a QString, and "rank"_L1, without a copy at run time.
#pragma once

#include <QString>

namespace stagewright {

using namespace Qt::StringLiterals;

} // namespace stagewright
