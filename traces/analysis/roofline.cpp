#include "traces/analysis/roofline.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"
#include "traces/plot/kind_ink.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

double numberAfter(std::string_view text, std::string_view key, double otherwise)
{
    for (const std::string_view item : itemsOf(text))
        if (const auto [name, value] = keyValueOf(item); name == key && value)
            return numberOf(*value).value_or(otherwise);
    return otherwise;
}

double fact(const Run& run, std::string_view key)
{
    for (const auto& [name, value] : run.environment) {
        if (name != key) continue;
        if (const auto number = numberOf(value)) return *number;
    }
    return 0;
}

} // namespace

double RooflineRow::attainable(const Ceilings& ceilings) const
{
    return std::min(ceilings.flops, intensity() * ceilings.bytesPerSecond);
}

double RooflineRow::share(const Ceilings& ceilings) const
{
    const double most = attainable(ceilings);
    return most > 0 ? achieved() / most : 0;
}

bool RooflineRow::memoryBound(const Ceilings& ceilings) const
{
    return intensity() * ceilings.bytesPerSecond < ceilings.flops;
}

OpWork workOf(OpKind kind, const StageShape& stage, double elementBytes)
{
    const double n = stage.layers;
    const double h = stage.hidden;
    const double parameters = n * (12 * h * h + 13 * h) + (stage.head ? stage.vocabulary * h : 0);
    const double weights = elementBytes * parameters;
    const double tokens = stage.sequence * stage.samples;
    const double kept = elementBytes / 2 * tokens * (n * 34 * h + (stage.head ? 2 * stage.vocabulary : 0));
    const double input = weights + 2 * kept;
    const double weight = 8 * parameters + kept; // fp32 gradients are read and written
    const double flops = stageFlops(kind, stage);
    if (isForward(kind) || isRecompute(kind)) return {flops, weights + kept};
    if (!isOfBackward(kind)) return {};
    return {flops, (isReturn(kind) ? input : 0) + (makesWeightGradient(kind) ? weight : 0)};
}

Result<Ceilings> ceilingsOf(const Run& run)
{
    const Ceilings ceilings{fact(run, "ceiling_matrix_flops"), fact(run, "ceiling_copy_bytes")};
    if (ceilings.flops > 0 && ceilings.bytesPerSecond > 0) return ceilings;
    return fail(ErrorCode::Unavailable, "the run lacks its device's peak rates: they are measured for GPU runs only");
}

Result<std::vector<RooflineRow>> rooflineOf(const StepContext& context)
{
    const Run& run = context.run();
    const std::string model = configured(run, "model");
    StageShape shape;
    shape.hidden = numberAfter(model, "hidden", 0);
    shape.sequence = numberAfter(model, "seq", 0);
    shape.vocabulary = numberAfter(model, "vocab", 256);
    shape.samples = numberAfter("b=" + configured(run, "microbatch_size"), "b", 0);
    const std::vector<int> layers = wholesOf(configured(run, "stage_layers")).value_or(std::vector<int>());
    if (shape.hidden <= 0 || shape.sequence <= 0 || shape.samples <= 0 || layers.empty())
        return fail(ErrorCode::Usage,
                    fmt::format("the run's model is unknown: model '{}', microbatch size '{}', layers by stage '{}'",
                                model, configured(run, "microbatch_size"), configured(run, "stage_layers")),
                    "only runs that trained a model have a roofline");
    const double elementBytes = configured(run, "precision") == "bf16" ? 2 : 4;

    const std::vector<std::int64_t> slices = run.schedule ? sliceStartsOf(*run.schedule) : std::vector<std::int64_t>();
    std::map<OpKind, RooflineRow> rows;
    const StepOps& ops = context.ops();
    for (int rank = 0; rank < ops.ranks(); ++rank) {
        for (const SpanId id : ops.busy(rank)) {
            const Span& span = run.timeline->spans()[id];
            if (span.op.stage >= layers.size()) continue;
            shape.layers = layers[span.op.stage];
            shape.head = span.op.stage + 1u == layers.size();
            const OpWork work = workOf(span.op.kind, shape, elementBytes);
            double part = span.op.count;
            if (span.op.half != 0) part /= 2;
            if (span.op.slice >= 0 && !slices.empty())
                part *= static_cast<double>(shareOfSlice(1'000'000'000, slices, span.op.slice)) / 1e9;
            RooflineRow& row = rows[span.op.kind];
            row.kind = span.op.kind;
            ++row.ops;
            row.time += span.duration();
            row.flops += part * work.flops;
            row.bytes += part * work.bytes;
        }
    }
    std::vector<RooflineRow> all;
    all.reserve(rows.size());
    for (const auto& [kind, row] : rows) all.push_back(row);
    return all;
}

Plot rooflinePlot(const std::vector<RooflineRow>& rows, const Ceilings& ceilings)
{
    Plot plot{"FLOP/byte", "TFLOP/s", {}};
    plot.across.scale = plot.up.scale = PlotScale::Log10;
    plot.legend = PlotLegend::None;
    const double top = ceilings.flops * 1e-12, slope = ceilings.bytesPerSecond * 1e-12, ridge = top / slope;
    const auto named = [](const char* title, PlotHue hue) {
        return PlotSeries{title, {}, PlotMark::Points, PlotInk{hue}, {}, PlotShape::None};
    };
    PlotSeries roof{"ceilings of the device", {}, PlotMark::Line, PlotInk{PlotHue::Critical}},
        kinds{"kinds of ops", {}, PlotMark::Points}, limits = named("", PlotHue::Critical),
                                                     reached = named("", PlotHue::Text);
    kinds.size = 8;
    kinds.named = false; // their letters are in the marks
    double left = ridge, right = ridge, low = top;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const RooflineRow& row = rows[i];
        const double x = row.intensity(), y = row.achieved() * 1e-12;
        if (x <= 0 || y <= 0) continue;
        left = std::min(left, x);
        right = std::max(right, x);
        low = std::min(low, y);
        const std::string kind(ruleOf(row.kind).text);
        kinds.points.push_back({x, y, kind, inkOf(row.kind)});
        reached.points.push_back({x, y, formatPercent(row.share(ceilings), 0)});
        plot.items.push_back(
            PlotItem::at(x, y,
                         fmt::format("{}: {} TFLOP/s at {} FLOP/byte, {} of the device's limit", kind,
                                     fixedNumber(y, 2), fixedNumber(x, 1), formatPercent(row.share(ceilings))),
                         static_cast<int>(i), 0, static_cast<int>(i)));
    }
    // Half a decade of room around the points and the ridge, where the two ceilings meet.
    plot.across.least = std::pow(10, std::floor(std::log10(left) - 0.3));
    plot.across.most = std::pow(10, std::ceil(std::log10(right) + 0.3));
    plot.up.least = std::pow(10, std::floor(std::log10(low) - 0.3));
    plot.up.most = std::pow(10, std::ceil(std::log10(top) + 0.1));
    roof.points = {{*plot.across.least, *plot.across.least * slope}, {ridge, top}, {*plot.across.most, top}};
    limits.points.push_back({std::sqrt(ridge * *plot.across.most), top, fixedNumber(top, 1) + " TFLOP/s"});
    const double middle = std::sqrt(std::max(*plot.across.least, *plot.up.least / slope) * ridge);
    limits.points.push_back({middle, middle * slope, fixedNumber(ceilings.bytesPerSecond * 1e-9, 0) + " GB/s"});
    plot.series = {std::move(roof), std::move(limits), std::move(kinds), std::move(reached)};
    return plot;
}

namespace analyses {

namespace {

std::vector<TableColumn> rooflineColumns()
{
    return {{"op", "Op"},
            {"ops", "Ops", ColumnKind::Count, "In the step, over all ranks."},
            {"tflop", "TFLOP", ColumnKind::Real, "Operations of all of them, from the model's shape."},
            {"flops_per_byte", "FLOP/byte", ColumnKind::Real,
             "Operations over compulsory traffic: weights once, kept activations once."},
            {"tflop_per_second", "TFLOP/s", ColumnKind::Real, "Operations over duration."},
            {"attainable_tflop_per_second", "Attainable", ColumnKind::Real,
             "The lower ceiling of the device at these operations a byte."},
            {"share", "Reached", ColumnKind::Share, "TFLOP/s over attainable."},
            {"bound_by", "Bound by", ColumnKind::Text, "The ceiling that is the lower one."}};
}

std::string unknownRoofline(const Run& run)
{
    const auto ceilings = ceilingsOf(run);
    if (!ceilings) return ceilings.error().message;
    const auto rows = rooflineOf(StepContext(run, 0));
    return rows ? "" : rows.error().message;
}

Result<AnalysisRows> rooflineRows(const StepContext& context)
{
    STAGEWRIGHT_TRY(const auto ceilings, ceilingsOf(context.run()));
    STAGEWRIGHT_TRY(const auto rows, rooflineOf(context));
    AnalysisRows out;
    for (const RooflineRow& row : rows)
        out.rows.push_back({std::string(ruleOf(row.kind).text), row.ops, row.flops * 1e-12, row.intensity(),
                            row.achieved() * 1e-12, row.attainable(ceilings) * 1e-12, row.share(ceilings),
                            row.memoryBound(ceilings) ? "memory" : "matrix units"});
    out.sentence = fmt::format("ceilings measured on the device: {:.1f} TFLOP/s, {:.0f} GB/s", ceilings.flops * 1e-12,
                               ceilings.bytesPerSecond * 1e-9);
    return out;
}

} // namespace

extern const AnalysisInfo roofline;
const AnalysisInfo roofline{"roofline", "Roofline by kind of op", rooflineColumns, unknownRoofline, rooflineRows,
                            false,      ReportPart::Kernels};

} // namespace analyses

} // namespace stagewright
