#include "app/cli/text/run_json.h"

#include <vector>

#include "app/cli/text/document_json.h"
#include "traces/report/run_document.h"

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
    Run run;
    run.info.name = run.info.scheduleName = schedule.name;
    run.info.provenance = Provenance::Simulated;
    run.info.clock = "model";
    run.info.ranks = schedule.ranks;
    run.info.stages = schedule.stages;
    run.info.microbatches = schedule.microbatches;
    RunReport nothing;
    nothing.noOps = "it never ends";
    Json object = documentJson(runDocument(run, nothing));
    for (const char* key : {"state", "step", "step_number", "time_unit", "busy_by_kind", "busy_by_cause",
                            "idle_by_cause", "overlap", "unknown"})
        object[key] = nullptr;
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
