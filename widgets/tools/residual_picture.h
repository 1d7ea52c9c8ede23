// ResidualPicture: predicted against measured: for every op of the step shown, and for all measured steps by kind,
// stage and rank. A pure function for any thread.
#pragma once

#include <optional>
#include <vector>

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

} // namespace stagewright
