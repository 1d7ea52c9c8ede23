#include "app/cli/text/run_json.h"

#include <vector>

namespace stagewright {

namespace {

Json waitJson(const Wait& wait)
{
    return {{"rank", wait.rank},      {"position", wait.position},
            {"op", toText(wait.op)},  {"waits_for", toText(wait.waitsFor)},
            {"on_rank", wait.onRank}, {"on_position", wait.onPosition}};
}

} // namespace

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
    for (const char* key : {"levers", "levers_baseline", "gain_by_cause", "over_steps"}) object[key] = nullptr;
    return object;
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
