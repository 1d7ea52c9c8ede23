// What the run's costs predict of its ops and of the step, against what was measured. Of all measured steps, of a large
// run of those that a report reads, whichever is shown.
#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"
#include "traces/step/step_ops.h"

namespace stagewright::analyses {

namespace {

std::vector<TableColumn> residualColumns()
{
    return {
        {"kind", "Op"},
        {"stage", "Stage", ColumnKind::Whole},
        {"rank", "Rank", ColumnKind::Whole},
        {"count", "Count", ColumnKind::Count},
        {"predicted_ns", "Predicted", ColumnKind::Time, "The median of what the costs say of each op."},
        {"measured_ns", "Median", ColumnKind::Time, "Of the measured durations."},
        {"residual_ns", "Residual", ColumnKind::Time, "The median of measured less predicted."},
        {"residual_p95_ns", "95 % within", ColumnKind::Time, "95 % of the ops lie no further from what is predicted."},
        {"worst_residual_ns", "Worst", ColumnKind::Time, "The largest residual; choosing a row goes there."},
        {"worst_op", "Worst op"},
        {"worst_step", "Its step, from 0", ColumnKind::Whole}};
}

std::string unknownResiduals(const Run& run)
{
    if (!run.schedule) return "the run has no schedule to predict from";
    return run.costs ? "" : unknownWithoutOps(run);
}

Result<AnalysisRows> residualRows(const StepContext& context)
{
    if (!context.residuals()) return tl::unexpected(context.residuals().error());
    const Residuals& residuals = *context.residuals();
    const Run& run = context.run();
    const Timeline& timeline = context.timeline();
    AnalysisRows out;
    for (const OpResiduals& of : residuals.ops) {
        const Span* worst = of.worst == noSpan ? nullptr : &timeline.spans()[of.worst];
        out.rows.push_back({std::string(ruleOf(of.kind).text), std::int64_t{of.stage}, std::int64_t{of.rank}, of.count,
                            of.predicted, of.measured, of.residual, of.percentile95, of.worstResidual,
                            worst ? TableCell(timeline.nameOf(*worst)) : TableCell(),
                            worst ? TableCell(std::int64_t{worst->step}) : TableCell()});
        out.ops.push_back(of.worst);
    }
    const Units units{timeline.timeUnit(), timeline.memoryUnit()};
    const bool some = run.median && residuals.steps < residuals.measured; // of a large run
    const std::string steps = some ? fmt::format("{} of {}", residuals.steps, counted(residuals.measured, "step"))
                                   : counted(residuals.steps, "step");
    out.sentence =
        fmt::format("the step: predicted {}, measured {} (median of {}), {}", units.timeText(residuals.predictedStep),
                    units.timeText(residuals.measuredStep), steps, formatChange(residuals.error));
    return out;
}

} // namespace

extern const AnalysisInfo residuals;
const AnalysisInfo residuals{"residuals", "Predicted against measured", residualColumns, unknownResiduals,
                             residualRows};

} // namespace stagewright::analyses
