#include "widgets/device/device_figures.h"

#include "traces/analysis/launch_gaps.h"

namespace stagewright {

DeviceFigures deviceFiguresOf(const Run& run, int step, const Units& units)
{
    DeviceFigures out;
    out.units = units;
    const StepContext context(run, step, {});
    out.kernels = analyseKernels(*run.timeline, step);
    if (hasKernels(*run.timeline))
        if (auto gaps = analyseLaunchGaps(context); gaps && gaps->window > 0) out.gaps = std::move(*gaps);
    out.links = analyseLinks(context);
    out.noLinks = QString::fromStdString(std::string(whyNoArrivals(*run.timeline)));
    const auto ceilings = ceilingsOf(run);
    auto rows = ceilings ? rooflineOf(context) : tl::unexpected(ceilings.error());
    if (rows) {
        out.ceilings = *ceilings;
        out.roofline = std::move(*rows);
    } else {
        out.noRoofline = QString::fromStdString(rows.error().message);
    }
    return out;
}

} // namespace stagewright
