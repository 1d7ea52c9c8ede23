// ResidualPicture: predicted against measured: for every op of the step shown, and for all measured steps by kind,
// stage and rank. A pure function for any thread.
#pragma once

#include <optional>
#include <vector>

#include "schedules/base/plot.h"
#include "schedules/base/quantity.h"
#include "traces/fit/residuals.h"

namespace stagewright {

struct ResidualDot {
    OpKind kind{};
    OpResidual of;
};

struct ResidualPicture {
    std::optional<Error> fault;
    Residuals residuals;
    std::vector<ResidualDot> dots;  // of the step shown
    std::vector<std::size_t> worst; // every dot, the largest |residual| first
};

ResidualPicture residualPicture(const Run& run, int step, const CostModel& costs);
// A mark per op: across its predicted time, up the time beyond that; colour and shape show the kind. Its items are the
// dots, from the largest error to the smallest by the keys, without texts.
Plot residualPlot(const ResidualPicture& picture, const Units& units);

} // namespace stagewright
