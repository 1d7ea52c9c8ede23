#include "app/cli/text/comparison_json.h"

#include <cmath>

#include "app/cli/text/comparison_text.h"
#include "app/cli/text/document_json.h"
#include "app/cli/text/run_json.h"
#include "schedules/base/step_number.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

Json idleJson(const IdleByCause& byCause, const Units& units)
{
    Json object = Json::object();
    for (std::size_t i = 0; i < idleCauseCount; ++i)
        object[std::string(toText(static_cast<IdleCause>(i)))] = timeJson(byCause[i], units);
    return object;
}


// Times of a pair of runs: in its time_unit, and in whole nanoseconds where that is the unit. Null where the units
// differ.
class Times {
public:
    Times(const Run& a, bool same) : m_units{a.timeline->timeUnit(), a.timeline->memoryUnit()}, m_same(same) {}

    Json name() const { return m_same ? Json(m_units.timeName()) : Json(nullptr); }
    bool shares() const { return m_same && m_units.shares(); }
    Json operator()(Nanos time) const
    {
        if (!m_same) return nullptr;
        return m_units.shares() ? Json(m_units.timeValue(time)) : Json(time);
    }
    Json nanos(Nanos time) const { return m_same && !m_units.shares() ? Json(time) : Json(nullptr); }
    void put(Json& object, const std::string& key, Nanos time) const
    {
        object[key] = (*this)(time);
        object[key + "_ns"] = nanos(time);
    }
    Json spread(const NoiseVerdict& verdict) const { return verdict.spread ? (*this)(*verdict.spread) : Json(nullptr); }
    const Units& units() const { return m_units; }

private:
    Units m_units;
    bool m_same;
};

Json metricsJson(const Comparison& comparison, const Times& times)
{
    Json metrics = Json::array();
    for (const MetricDelta& metric : comparison.metrics) {
        std::string key = metric.key;
        std::string unit = metric.unit;
        double factor = 1;
        const auto inUnits = [&](const char* suffix, const char* name, double size) {
            if (const std::size_t at = key.find(suffix); at != std::string::npos)
                key.erase(at, std::string_view(suffix).size());
            unit = name;
            factor = size;
        };
        if (unit == "ns" && times.shares()) inUnits("_ns", "rank_share", static_cast<double>(times.units().time));
        if (unit == "bytes" && times.units().memory != 1)
            inUnits("_bytes", "activation_share", static_cast<double>(times.units().memory));
        metrics.push_back({{"key", key},
                           {"title", metric.title},
                           {"unit", unit},
                           {"a", Json(metric.a / factor)},
                           {"b", Json(metric.b / factor)},
                           {"delta", Json(metric.delta() / factor)}});
    }
    return metrics;
}

Json sampleJson(const StepSample& sample)
{
    if (sample.count == 0) return nullptr;
    return {{"steps", sample.count}, {"median_ns", sample.median}, {"mad_ns", sample.mad}, {"min_ns", sample.least},
            {"q1_ns", sample.low},   {"q3_ns", sample.high},       {"max_ns", sample.most}};
}

Json opsJson(const Comparison& comparison, const Times& times)
{
    Json ops = Json::array();
    for (const OpDelta& op : comparison.ops) {
        const bool both = op.inBoth() && comparison.sameUnits;
        Json object = {{"op", toText(op.op)}, {"rank", op.rank}, {"in_a", op.a != noSpan}, {"in_b", op.b != noSpan}};
        object["start_delta"] = both ? times(op.startDelta) : Json(nullptr);
        object["start_delta_ns"] = both ? times.nanos(op.startDelta) : Json(nullptr);
        object["start_spread"] = both ? times.spread(op.start) : Json(nullptr);
        object["start_beyond_noise"] = both && op.start.spread ? Json(op.start.shows) : Json(nullptr);
        object["duration_delta"] = both ? times(op.durationDelta) : Json(nullptr);
        object["duration_delta_ns"] = both ? times.nanos(op.durationDelta) : Json(nullptr);
        object["duration_spread"] = both ? times.spread(op.duration) : Json(nullptr);
        object["duration_beyond_noise"] = both && op.duration.spread ? Json(op.duration.shows) : Json(nullptr);
        const bool steps = comparison.sameUnits && !times.shares();
        object["durations_a"] =
            steps && comparison.historyA ? sampleJson(comparison.historyA->duration(op.op, op.rank)) : Json(nullptr);
        object["durations_b"] =
            steps && comparison.historyB ? sampleJson(comparison.historyB->duration(op.op, op.rank)) : Json(nullptr);
        ops.push_back(std::move(object));
    }
    return ops;
}

Json ledgerJson(const Comparison& comparison, const Times& times)
{
    if (!comparison.sameUnits) return nullptr;
    const auto of = [&](const PathLedger& ledger) {
        Json classes = Json::object();
        for (std::size_t i = 0; i < pathClassCount; ++i)
            classes[std::string(toText(static_cast<PathClass>(i)))] = times(ledger.byClass[i]);
        return Json{{"bottleneck_rank", ledger.bottleneck >= 0 ? Json(ledger.bottleneck) : Json(nullptr)},
                    {"wires", ledger.wires},
                    {"ops", ledger.path.size()},
                    {"makespan", times(ledger.makespan)},
                    {"by_class", std::move(classes)}};
    };
    Json delta = Json::object();
    for (std::size_t i = 0; i < pathClassCount; ++i)
        delta[std::string(toText(static_cast<PathClass>(i)))] =
            times(comparison.ledgerB.byClass[i] - comparison.ledgerA.byClass[i]);
    return {{"a", of(comparison.ledgerA)}, {"b", of(comparison.ledgerB)}, {"delta_by_class", std::move(delta)}};
}

Json ladderJson(const Comparison& comparison, const Times& times)
{
    if (comparison.ladder.empty()) return nullptr;
    Json rungs = Json::array();
    for (const LadderRung& rung : comparison.ladder)
        rungs.push_back({{"kind", std::string(toText(rung.kind))},
                         {"title", rung.title},
                         {"makespan", times(rung.makespan)},
                         {"change", times(rung.change)},
                         {"peak_activation", rung.peak ? memoryJson(*rung.peak, times.units()) : Json(nullptr)}});
    return rungs;
}

Json infoJson(const Run& run, int step)
{
    Json info = runInfoJson(run.info, true);
    info["step"] = step;
    info["step_number"] = stepNumber(step);
    info["time_unit"] = run.timeline->timeUnit() != 1 ? "rank_share" : "ns";
    for (const char* key : {"model", "microbatch_size"}) {
        const std::string value = configured(run, key);
        info[key] = textOrNull(value);
    }
    const std::string latency = linkLatencyText(run);
    info["link_latency"] = textOrNull(latency);
    return info;
}

Json devicesJson(const DeviceChanges& devices)
{
    Json figures = Json::object();
    for (const DeviceFigure& figure : devices.figures)
        figures[figure.key] = {
            {"a", figure.a}, {"b", figure.b}, {"noise_ns", figure.noise ? Json(*figure.noise) : Json(nullptr)}};
    Json kernels = Json::array();
    for (const KernelChange& one : devices.kernels)
        kernels.push_back({{"name", one.name},
                           {"lane", std::string(toText(one.lane))},
                           {"bytes", one.bytes ? Json(*one.bytes) : Json(nullptr)},
                           {"shape_a", textOrNull(one.shapeA)},
                           {"shape_b", textOrNull(one.shapeB)},
                           {"calls_a", one.callsA},
                           {"calls_b", one.callsB},
                           {"total_a_ns", one.totalA},
                           {"total_b_ns", one.totalB},
                           {"matched", one.byOrder      ? "order"
                                       : one.inBoth()   ? "name"
                                       : one.callsA > 0 ? "only_a"
                                                        : "only_b"},
                           {"most_changed", one.most ? Json{{"rank", one.most->rank},
                                                            {"call", one.most->place},
                                                            {"calls", one.most->calls},
                                                            {"a_ns", one.most->a},
                                                            {"b_ns", one.most->b}}
                                                     : Json(nullptr)}});
    return {{"figures", std::move(figures)}, {"kernels", std::move(kernels)}, {"why", devices.why}};
}

Json pairJson(const Run& a, const Run& b, const Comparison& comparison)
{
    const Times times(a, comparison.sameUnits);
    Json notCompared = Json::object(); // by key of a metric, with the reason
    for (const UnknownMetric& one : comparison.unknownMetrics) notCompared[one.key] = one.why;
    Json differences = Json::array();
    for (const RunDifference& one : comparison.differences)
        differences.push_back(
            {{"key", one.key}, {"title", one.title}, {"a", textOrNull(one.a)}, {"b", textOrNull(one.b)}});
    Json change = nullptr;
    const bool known = comparison.unknown.empty();
    if (comparison.sameUnits && known) {
        change = Json::object();
        times.put(change, "whole_step_delta", comparison.change.stepDelta);
        times.put(change, "makespan_delta", comparison.change.makespanDelta);
        times.put(change, "busy_delta", comparison.change.busyDelta);
        times.put(change, "apart_delta", comparison.change.apartDelta);
        change["idle_delta_by_cause"] = idleJson(comparison.change.idleDelta, times.units());
        times.put(change, "unexplained", comparison.change.unexplained);
    }
    return {{"a", infoJson(a, comparison.stepA)},
            {"b", infoJson(b, comparison.stepB)},
            {"time_unit", times.name()},
            {"headline", comparison.headline},
            {"differences", std::move(differences)},
            {"spread_ns", comparison.spread ? times.nanos(*comparison.spread) : Json(nullptr)},
            {"within_spread", comparison.spread ? Json(comparison.withinSpread) : Json(nullptr)},
            {"metrics", metricsJson(comparison, times)},
            {"not_compared", std::move(notCompared)},
            {"change", std::move(change)},
            {"ledger", known ? ledgerJson(comparison, times) : Json(nullptr)},
            {"ladder", ladderJson(comparison, times)},
            {"no_ladder", textOrNull(comparison.noLadder)},
            {"why", comparison.why},
            {"ops", opsJson(comparison, times)},
            {"unknown", known ? Json(nullptr) : Json(comparison.unknown)},
            {"devices", comparison.devices ? devicesJson(*comparison.devices) : Json(nullptr)}};
}

} // namespace

Json comparisonJson(std::span<const Run> runs, std::span<const Comparison> comparisons)
{
    Json object = pairJson(runs[0], runs[1], comparisons[0]);
    Json more = Json::array();
    for (std::size_t i = 1; i < comparisons.size(); ++i) more.push_back(pairJson(runs[0], runs[i + 1], comparisons[i]));
    object["more"] = std::move(more);
    return object;
}

} // namespace stagewright
