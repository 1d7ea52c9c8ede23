#include "app/cli/text/run_json.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/cli/text/lever_text.h"
#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/gap_explainer.h"
#include "traces/run/run_facts.h"

namespace stagewright {

Json timeJson(Nanos nanos, const Units& units) { return units.shares() ? Json(units.timeValue(nanos)) : Json(nanos); }

Json memoryJson(Bytes bytes, const Units& units)
{
    return units.memory != 1 ? Json(units.memoryValue(bytes)) : Json(bytes);
}

namespace {

// of report and simulate; else null
constexpr const char* leverKeys[] = {"levers", "levers_baseline", "gain_by_cause", "over_steps"};

Json metricJson(const Run& run, std::string_view name)
{
    const Metric* metric = run.metric(name);
    if (!metric) return nullptr;
    Json values = Json::array();
    const bool whole = metric->unit == "ns";
    for (const double value : metric->values) values.push_back(whole ? Json(std::llround(value)) : Json(value));
    return values;
}

Json waitJson(const Wait& wait)
{
    return {{"rank", wait.rank},      {"position", wait.position},
            {"op", toText(wait.op)},  {"waits_for", toText(wait.waitsFor)},
            {"on_rank", wait.onRank}, {"on_position", wait.onPosition}};
}

Json valueJson(ColumnKind kind, double value, const Units& units)
{
    switch (kind) {
    case ColumnKind::Time: return timeJson(std::llround(value), units);
    case ColumnKind::Size: return memoryJson(std::llround(value), units);
    case ColumnKind::Count: return std::llround(value);
    default: return value;
    }
}

Json figureJson(const ReportFigure& figure, const Units& units)
{
    if (!figure.unknown.empty()) return nullptr;
    if (figure.kind != ColumnKind::Size) return valueJson(figure.kind, figure.value, units);
    Json values = Json::array();
    for (const double value : figure.byRank) values.push_back(valueJson(figure.kind, value, units));
    return values;
}

} // namespace

Json idleJson(const IdleByCause& byCause, const Units& units)
{
    Json object = Json::object();
    for (std::size_t i = 0; i < idleCauseCount; ++i)
        object[std::string(toText(static_cast<IdleCause>(i)))] = timeJson(byCause[i], units);
    return object;
}

Json madeUnderJson(const Run& run)
{
    const auto contention = contentionOf(run);
    const auto profiler = profilerTimesOf(run);
    return {{"step_time_without_profiler_ns", profiler ? Json(profiler->without) : Json(nullptr)},
            {"step_time_with_profiler_ns", profiler ? Json(profiler->with) : Json(nullptr)},
            {"perturb", textOrNull(configured(run, "perturb"))},
            {"emulated_links", textOrNull(emulatedLinksText(run))},
            {"contention_median", contention ? Json(*contention) : Json(nullptr)}};
}

Json runJson(const Run& run, const RunReport& figures)
{
    const Units& units = figures.units;
    const BubbleReport& bubbles = figures.bubbles;
    const bool inBytes = units.memory == 1;
    Json byKey = Json::object();
    Json unknown = Json::object(); // by key, with the reason
    for (const ReportFigure& figure : figures.figures()) {
        if (!figure.unknown.empty()) unknown[figure.key] = figure.unknown;
        const std::size_t dot = figure.key.find('.');
        (dot == std::string::npos ? byKey[figure.key] : byKey[figure.key.substr(0, dot)][figure.key.substr(dot + 1)]) =
            figureJson(figure, units);
    }
    Json byRank = Json::array();
    for (std::size_t r = 0; r < bubbles.ranks.size(); ++r) {
        const RankBubbles& rank = bubbles.ranks[r];
        const Schedule* schedule = run.schedule.get();
        const auto own = static_cast<int>(r);
        Json object = {{"rank", r},
                       {"replica", schedule ? schedule->replicaOf(own) : 0},
                       {"pipeline_rank", schedule ? schedule->pipelineRankOf(own) : own},
                       {"busy", timeJson(rank.busy, units)},
                       {"apart", timeJson(rank.apart, units)},
                       {"idle", timeJson(rank.idle, units)},
                       {"idle_by_cause", idleJson(rank.byCause, units)}};
        for (std::size_t c = 0; c < idleCauseCount; ++c)
            if (const auto cause = static_cast<IdleCause>(c); !bubbles.knows(cause))
                object["idle_by_cause"][std::string(toText(cause))] = nullptr;
        if (figures.memory.empty()) {
            object["peak_activation"] = nullptr;
            object["held_by"] = nullptr;
        } else {
            object["peak_activation"] = memoryJson(figures.memory[r].activations(), units);
            Json holders = Json::array();
            for (const Holder& holder : figures.memory[r].holders)
                holders.push_back({{"stage", holder.stage},
                                   {"microbatch", holder.microbatch},
                                   {"amount", memoryJson(holder.bytes, units)}});
            object["held_by"] = std::move(holders);
        }
        byRank.push_back(std::move(object));
    }
    Json path = Json::array();
    for (const CriticalLink& link : figures.criticalPath) path.push_back(toText(run.timeline->spans()[link.span].op));

    Json object;
    object["schedule"] = textOrNull(run.info.scheduleName);
    object["provenance"] = std::string(toText(run.info.provenance));
    object["clock"] = run.info.clock;
    object["run"] = run.info.id > 0 ? Json(run.info.id) : Json(nullptr);
    object["name"] = run.info.name;
    object["state"] = std::string(toText(run.info.state));
    object["damaged_blocks"] = run.info.damagedBlocks;
    object["ranks"] = run.info.ranks;
    object["stages"] = countOrNull(run.info.stages);
    object["microbatches"] = countOrNull(run.info.microbatches);
    for (const char* key : {"model", "microbatch_size"}) {
        const std::string value = configured(run, key);
        object[key] = textOrNull(value);
    }
    object["link_latency"] = run.costs && run.costs->links.overrides.empty() && !linksUnknown(run)
                                 ? timeJson(run.costs->links.all.latency, units)
                                 : Json(nullptr);
    object["steps"] = run.info.steps;
    object["warmup_steps"] = run.info.warmupSteps;
    object["step"] = figures.step;
    object["step_number"] = stepNumber(figures.step);
    object["time_unit"] = units.timeName();
    object["makespan"] = byKey["makespan"];
    object["span"] = byKey["span"];
    object["whole_step"] = byKey["whole_step"];
    object["whole_step_ns"] = units.shares() ? Json(nullptr) : byKey["whole_step"];
    object["makespan_ns"] = units.shares() ? Json(nullptr) : byKey["makespan"]; // a rank share has no nanoseconds
    object["span_ns"] = units.shares() ? Json(nullptr) : byKey["span"];
    for (const char* key : {"bubble_fraction", "bubble_rate_span", "peak_activation"}) object[key] = byKey[key];
    object["peak_activation_bytes"] = inBytes ? byKey["peak_activation"] : Json(nullptr);
    for (const char* key : {"busy", "busy_by_kind", "busy_by_cause", "idle", "idle_by_cause"}) object[key] = byKey[key];
    const bool ops = figures.noOps.empty();
    object["by_rank"] = ops ? std::move(byRank) : Json(nullptr);
    object["overlap"] = byKey["overlap"];
    object["critical_path"] = ops ? std::move(path) : Json(nullptr);
    for (const char* key : {"by_rank", "critical_path"})
        if (!ops) unknown[key] = figures.noOps;
    for (const char* key : {"stages", "microbatches"})
        if (object[key].isNull()) unknown[key] = ops ? "the run has no schedule" : figures.noOps;
    object["loss"] = metricJson(run, "loss");
    object["step_time_ns"] = metricJson(run, "step_time_ns");
    object["wall_time_ns"] = metricJson(run, "wall_time_ns");
    object["contention"] = metricJson(run, "contention");
    object["sharing"] = figures.collectives.empty() ? Json(nullptr) : byKey["sharing"];
    object["weight_bytes"] = inBytes ? byKey["weight_bytes"] : Json(nullptr);
    object["hung"] = false;
    object["cycle"] = Json::array();
    object["victims"] = Json::array();
    const std::optional<int> straggler = stragglerRank(bubbles);
    object["straggler_rank"] = Json(straggler);
    object["gradient_error"] = nullptr;
    const Metric* deviation = run.metric("deviation");
    object["deviation"] = deviation && !deviation->values.empty() ? Json(deviation->values.back()) : Json(nullptr);
    object["straggler_sentence"] = textOrNull(stragglerSentence(bubbles, units.time));
    object["slow_replicas"] = figures.slowReplicas.empty() ? Json(nullptr) : Json(figures.slowReplicas);
    object.update(madeUnderJson(run));
    object["memory_cap"] = figures.memoryCap ? memoryJson(*figures.memoryCap, units) : Json(nullptr);
    object["unknown"] = std::move(unknown);
    for (const char* key : leverKeys) object[key] = nullptr;
    if (!figures.levers) return object;
    addLeversJson(object, *figures.levers, units);
    addStepSamplesJson(object, figures.overSteps, units);
    return object;
}

Json hungJson(const Schedule& schedule, const Validation& validation)
{
    static constexpr const char* measured[] = {"makespan",
                                               "span",
                                               "whole_step",
                                               "whole_step_ns",
                                               "makespan_ns",
                                               "span_ns",
                                               "bubble_fraction",
                                               "bubble_rate_span",
                                               "peak_activation",
                                               "peak_activation_bytes",
                                               "busy",
                                               "busy_by_kind",
                                               "busy_by_cause",
                                               "idle",
                                               "idle_by_cause",
                                               "by_rank",
                                               "overlap",
                                               "critical_path",
                                               "loss",
                                               "step_time_ns",
                                               "wall_time_ns",
                                               "contention",
                                               "weight_bytes",
                                               "sharing"};
    Json object;
    object["schedule"] = schedule.name;
    object["provenance"] = std::string(toText(Provenance::Simulated));
    object["clock"] = "model";
    object["run"] = nullptr;
    object["name"] = schedule.name;
    object["state"] = nullptr;
    object["damaged_blocks"] = 0;
    object["ranks"] = schedule.ranks;
    object["stages"] = schedule.stages;
    object["microbatches"] = schedule.microbatches;
    for (const char* key : {"model", "microbatch_size", "link_latency"}) object[key] = nullptr;
    object["steps"] = 0;
    object["warmup_steps"] = 0;
    object["step"] = nullptr;
    object["step_number"] = nullptr;
    object["time_unit"] = nullptr;
    for (const char* key : measured) object[key] = nullptr;
    object["hung"] = !validation.cycle.empty();
    Json cycle = Json::array();
    std::vector<bool> inCycle(static_cast<std::size_t>(schedule.ranks));
    for (const Wait& wait : validation.cycle) {
        cycle.push_back(waitJson(wait));
        inCycle[static_cast<std::size_t>(wait.rank)] = true;
    }
    Json victims = Json::array(); // ranks that never finish though they are not in the cycle
    if (!validation.cycle.empty())
        for (int rank = 0; rank < schedule.ranks; ++rank)
            if (!inCycle[static_cast<std::size_t>(rank)]) victims.push_back(rank);
    object["cycle"] = std::move(cycle);
    object["victims"] = std::move(victims);
    object["straggler_rank"] = nullptr;
    object["gradient_error"] = nullptr;
    object["deviation"] = nullptr;
    for (const char* key :
         {"straggler_sentence", "slow_replicas", "step_time_without_profiler_ns", "step_time_with_profiler_ns",
          "perturb", "emulated_links", "contention_median", "memory_cap"})
        object[key] = nullptr;
    object["unknown"] = nullptr;
    for (const char* key : leverKeys) object[key] = nullptr;
    return object;
}

Json gapsJson(const StepContext& context, const RunReport& figures, std::size_t explained)
{
    const Timeline& timeline = context.timeline();
    const auto& gaps = figures.bubbles.gaps;
    std::vector<std::size_t> longest(gaps.size());
    std::iota(longest.begin(), longest.end(), std::size_t{0});
    std::stable_sort(longest.begin(), longest.end(), [&](std::size_t a, std::size_t b) {
        return gaps[a].end - gaps[a].start > gaps[b].end - gaps[b].start;
    });
    longest.resize(std::min(longest.size(), explained));
    const GapExplainer explainer(context);
    const auto name = [&](SpanId span) {
        return span == noSpan ? Json(nullptr) : Json(timeline.nameOf(timeline.spans()[span]));
    };
    Json out = Json::array();
    for (std::size_t i = 0; i < gaps.size(); ++i) {
        const Gap& gap = gaps[i];
        Json object = {{"rank", gap.rank},
                       {"start_ns", gap.start},
                       {"end_ns", gap.end},
                       {"cause", std::string(toText(gap.cause))},
                       {"before", name(gap.next)},
                       {"blamed", name(gap.blamed)},
                       {"ready_op", gap.hasReadyOp ? Json(toText(gap.readyOp)) : Json(nullptr)},
                       {"sentence", nullptr},
                       {"chain", nullptr},
                       {"experiment", nullptr}};
        if (std::find(longest.begin(), longest.end(), i) != longest.end()) {
            const GapExplanation explanation = explainer.explain(gap);
            object["sentence"] = explanation.sentence;
            Json chain = Json::array();
            for (const GapLink& link : explanation.chain)
                chain.push_back(
                    {{"op", name(link.span)}, {"rank", timeline.trackOf(link.span).rank}, {"why", link.why}});
            object["chain"] = std::move(chain);
            if (explanation.experiment)
                object["experiment"] = {{"change", explanation.experiment->change},
                                        {"makespan_before_ns", explanation.experiment->before},
                                        {"makespan_after_ns", explanation.experiment->after}};
        }
        out.push_back(std::move(object));
    }
    return out;
}

Json runInfoJson(const RunInfo& info, bool read)
{
    return {{"run", info.id},
            {"name", info.name},
            {"schedule", textOrNull(info.scheduleName)},
            {"note", info.note},
            {"created_unix_ms", info.createdUnixMs},
            {"state", std::string(toText(info.state))},
            {"provenance", std::string(toText(info.provenance))},
            {"clock", info.clock},
            {"ranks", info.ranks},
            {"stages", countOrNull(info.stages)},
            {"microbatches", countOrNull(info.microbatches)},
            {"steps", info.steps},
            {"warmup_steps", info.warmupSteps},
            {"spans", info.spanCount},
            {"damaged_blocks", read ? Json(info.damagedBlocks) : Json(nullptr)}};
}

Json notesJson(const std::vector<Note>& notes)
{
    Json array = Json::array();
    for (const Note& note : notes) {
        const bool onOp = note.anchor == NoteAnchor::Op;
        array.push_back({{"note", note.id},
                         {"text", note.text},
                         {"anchor", std::string(toText(note.anchor))},
                         {"step", note.step},
                         {"step_number", stepNumber(note.step)},
                         {"rank", note.rank < 0 ? Json(nullptr) : Json(note.rank)},
                         {"last_rank", onOp || note.rank < 0 ? Json(nullptr) : Json(note.lastRank)},
                         {"op", onOp ? Json(note.op) : Json(nullptr)},
                         {"begin_ns", onOp ? Json(nullptr) : Json(note.begin)},
                         {"end_ns", onOp ? Json(nullptr) : Json(note.end)},
                         {"from_run", note.fromRun == 0 ? Json(nullptr) : Json(note.fromRun)}});
    }
    return array;
}

Json scheduleFaultsJson(const Schedule& schedule, const Validation& validation)
{
    Json faults = Json::array();
    for (const Fault& fault : validation.faults)
        faults.push_back({{"message", fault.message},
                          {"remedy", fault.remedy},
                          {"rank", fault.rank >= 0 ? Json(fault.rank) : Json(nullptr)},
                          {"position", fault.position >= 0 ? Json(fault.position) : Json(nullptr)},
                          {"op", fault.position >= 0 ? Json(toText(fault.op)) : Json(nullptr)},
                          {"other_rank", fault.otherRank >= 0 ? Json(fault.otherRank) : Json(nullptr)},
                          {"other_position", fault.otherPosition >= 0 ? Json(fault.otherPosition) : Json(nullptr)},
                          {"other_op", fault.otherPosition >= 0 ? Json(toText(fault.other)) : Json(nullptr)}});
    Json cycle = Json::array();
    for (const Wait& wait : validation.cycle) cycle.push_back(waitJson(wait));
    return {{"schedule", schedule.name},      {"ranks", schedule.ranks},
            {"stages", schedule.stages},      {"microbatches", schedule.microbatches},
            {"valid", validation.valid()},    {"faults", std::move(faults)},
            {"more_faults", validation.more}, {"cycle", std::move(cycle)}};
}

} // namespace stagewright
