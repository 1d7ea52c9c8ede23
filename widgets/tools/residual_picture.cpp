#include "widgets/tools/residual_picture.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace stagewright {

ResidualPicture residualPicture(const Run& run, int step, const CostModel& costs)
{
    ResidualPicture out;
    auto residuals = residualsOf(run, costs);
    if (!residuals) {
        out.fault = residuals.error();
        return out;
    }
    out.residuals = std::move(*residuals);
    for (const OpResidual& of : residualsOfStep(*run.timeline, step, costs))
        out.dots.push_back({run.timeline->spans()[of.span].op.kind, of});
    out.worst.resize(out.dots.size());
    std::iota(out.worst.begin(), out.worst.end(), std::size_t(0));
    std::stable_sort(out.worst.begin(), out.worst.end(), [&](std::size_t a, std::size_t b) {
        return std::llabs(out.dots[a].of.residual()) > std::llabs(out.dots[b].of.residual());
    });
    return out;
}

} // namespace stagewright
