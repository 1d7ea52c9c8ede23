// The loss of training that is not synchronous (stale weights, partial backward) beside that of synchronous training,
// step by step.
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"

namespace stagewright::analyses {

namespace {

TableCell valueOf(const Run& run, std::string_view name, std::size_t step)
{
    const Metric* metric = run.metric(name);
    return metric != nullptr && step < metric->values.size() ? TableCell(metric->values[step]) : TableCell();
}

std::vector<TableColumn> curveColumns()
{
    return {{"step_number", "Step", ColumnKind::Whole, "From 1, warm-up steps included."},
            {"loss", "Loss", ColumnKind::Real, "Mean cross-entropy of the step, nats per token."},
            {"synchronous_loss", "Synchronous", ColumnKind::Real,
             "Of synchronous training from the same start on the same data, run beside it."},
            {"deviation", "Deviation", ColumnKind::Real,
             "Norm of the difference of all weights from those of synchronous training ÷ norm of the latter."}};
}

Result<AnalysisRows> curveRows(const StepContext& context)
{
    const Run& run = context.run();
    AnalysisRows out;
    const std::size_t steps = run.metric("loss")->values.size();
    for (std::size_t step = 0; step < steps; ++step) {
        out.rows.push_back({static_cast<std::int64_t>(step) + 1, valueOf(run, "loss", step),
                            valueOf(run, "synchronous_loss", step), valueOf(run, "deviation", step)});
    }
    return out;
}

std::string unknownWithoutReference(const Run& run)
{
    if (run.metric("loss") == nullptr) return "this run has no loss";
    return run.metric("deviation") == nullptr ? "this run is synchronous training, or was not measured against it" : "";
}

} // namespace

extern const AnalysisInfo loss_curves;
const AnalysisInfo loss_curves{"loss_curves",    "Loss beside synchronous training",
                               curveColumns,     unknownWithoutReference,
                               curveRows,        false,
                               ReportPart::None, {"Loss, nats per token", {"loss", "synchronous_loss"}}};

} // namespace stagewright::analyses
