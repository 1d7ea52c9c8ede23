// Amounts of unit-cost work as the window prints them.
#pragma once

#include <QString>

namespace stagewright {

// "1 unit", "2.5 units", "27.27 units": 1 is the forward of one microbatch over a rank's whole share of the model.
QString unitsText(double value, int decimals = 2);

} // namespace stagewright
