// How busy a rank is, as the gutter says it: its ops, or its kernels and copies where the trace has no ops.
#pragma once

#include <cmath>
#include <limits>

#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

// A share of the panel's time; not a number: unknown.
inline double busyOf(const TimelinePanel& panel, const PanelRank& rank)
{
    return panel.hasOps() ? rank.busyFraction : rank.deviceBusy.value_or(std::numeric_limits<double>::quiet_NaN());
}

inline QString busyText(double share, int decimals = 1)
{
    return std::isnan(share) ? u"–"_s : percentText(share, decimals);
}

} // namespace stagewright
