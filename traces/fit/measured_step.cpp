#include "traces/fit/measured_step.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/layout/cluster.h"
#include "schedules/model/kinds.h"
#include "traces/run/run_facts.h"

namespace stagewright {

Result<ModelPreset> trainedModelOf(const Run& run)
{
    std::string shape = configured(run, "model");
    if (shape.find("vocab=") == std::string::npos) shape += ",vocab=256"; // bytes
    auto model = parseModelShape(shape);
    if (!model) return fail(ErrorCode::Usage, fmt::format("run {}: its model is unknown", run.info.name), "record one");
    return model;
}

Result<MeasuredStep> measuredStepOf(const Run& run)
{
    const auto no = [&](std::string why) {
        return fail(ErrorCode::Usage, fmt::format("run {}: {}", run.info.name, why), "record runs of 1f1b or gpipe");
    };
    if (run.info.provenance != Provenance::Measured) return no("its steps were not measured here");
    constexpr std::array<std::string_view, 3> ofThisLength{"1f1b", "gpipe", "interleaved-1f1b"};
    const std::string schedule = configured(run, "schedule");
    if (std::find(ofThisLength.begin(), ofThisLength.end(), schedule) == ofThisLength.end())
        return no(fmt::format("its schedule is {}", schedule.empty() ? "unknown" : schedule));
    const auto model = trainedModelOf(run);
    if (!model) return no("its model is unknown");
    MeasuredStep out;
    out.model = *model;
    out.way.pipeline = run.info.ranks;
    out.way.chunks = std::max(1, run.info.stages / std::max(1, run.info.ranks));
    out.way.microbatches = run.info.microbatches;
    out.way.kept = KeptActivations::All;
    out.way.zero = 0;
    if (const std::string kept = configured(run, "recompute"); !kept.empty() && kept != "none") {
        if (kept != "all" && kept != "full") return no("it recomputes some stages");
        out.way.kept = KeptActivations::Inputs;
    }
    if (!readNumber(configured(run, "microbatch_size"), out.way.samples) || out.way.samples < 1)
        return no("its microbatches have no one size");
    if (const std::string replicas = configured(run, "replicas"); !replicas.empty())
        if (!readNumber(replicas, out.way.replicas) || out.way.replicas < 1) return no("its replicas are unknown");
    const Metric* times = run.metric("step_time_ns");
    std::vector<double> measured;
    for (std::size_t i = static_cast<std::size_t>(std::max(0, run.info.warmupSteps));
         times != nullptr && i < times->values.size(); ++i)
        if (times->values[i] > 0) measured.push_back(times->values[i]);
    if (measured.empty()) return no("it has no measured step");
    std::nth_element(measured.begin(), measured.begin() + static_cast<std::ptrdiff_t>(measured.size() / 2),
                     measured.end());
    out.seconds = measured[measured.size() / 2] / 1e9;
    return out;
}

Result<MeasuredWindow> measuredWindowOf(const Run& run)
{
    MeasuredWindow out;
    out.schedule = configured(run, "schedule");
    out.ranks = run.info.ranks;
    out.microbatches = run.info.microbatches;
    out.chunks = std::max(1, run.info.stages / std::max(1, run.info.ranks));
    double forward = 0, input = 0, weight = 0;
    Nanos begin = std::numeric_limits<Nanos>::max(), end = 0;
    if (run.timeline) {
        const int step = run.representativeStep();
        for (const Track& track : run.timeline->tracks()) {
            if (track.lane != Lane::Compute) continue;
            const auto [first, last] = run.timeline->stepRange(track, step);
            for (SpanId id = first; id < last; ++id) {
                const Span& span = run.timeline->spans()[id];
                if (span.step != step || (span.flags & SpanDiscarded) != 0 || span.label != 0 || !isBusy(span.op.kind))
                    continue;
                const auto length = static_cast<double>(span.end - span.start);
                begin = std::min(begin, span.start);
                end = std::max(end, span.end);
                if (isForward(span.op.kind)) forward += length;
                const bool returns = isReturn(span.op.kind), weighs = makesWeightGradient(span.op.kind);
                if (returns) input += weighs ? length / 2 : length;
                if (weighs) weight += returns ? length / 2 : length;
            }
        }
    }
    const double share = forward / std::max(1.0, static_cast<double>(out.ranks) * out.microbatches);
    if (!(share > 0) || end <= begin)
        return fail(ErrorCode::Usage, fmt::format("run {}: no step of it has passes", run.info.name), "record a run");
    out.inputGrad = input / forward;
    out.weightGrad = weight / forward;
    out.step = static_cast<double>(end - begin) / share;
    return out;
}

} // namespace stagewright
