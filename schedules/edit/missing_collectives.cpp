#include "schedules/edit/missing_collectives.h"

#include <algorithm>
#include <map>

#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

struct StageSeen {
    bool gathers = false;      // its list gathers or releases the stage
    bool byMicrobatch = false; // … for single microbatches
    bool gathered = false;     // as the step before left it, then as the list runs
    bool reduces = false;
    int optimizer = -1; // place of its step
    int gradient = -1;  // of its last B or W
};

} // namespace

std::vector<MissingCollective> missingCollectives(const Schedule& schedule)
{
    const auto any = [&schedule](auto&& holds) {
        return std::any_of(schedule.order.begin(), schedule.order.end(),
                           [&](const auto& row) { return std::any_of(row.begin(), row.end(), holds); });
    };
    const bool reductions = any([](const Op& op) { return isReduction(op.kind) && !hasMicrobatch(op); });
    const bool gathers = any([](const Op& op) { return isGather(op.kind); });
    const bool releases = any([](const Op& op) { return isRelease(op.kind); });
    std::vector<MissingCollective> out;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const auto& row = schedule.order[r];
        std::map<int, StageSeen> stages;
        for (std::size_t i = 0; i < row.size(); ++i) {
            StageSeen& stage = stages[row[i].stage];
            if (isGather(row[i].kind) || isRelease(row[i].kind)) {
                stage.gathers = true;
                stage.byMicrobatch = stage.byMicrobatch || hasMicrobatch(row[i]);
                stage.gathered = isGather(row[i].kind);
            }
            stage.reduces = stage.reduces || isReduction(row[i].kind);
            if (isOptimizer(row[i].kind)) stage.optimizer = static_cast<int>(i);
            if (makesWeightGradient(row[i].kind)) stage.gradient = static_cast<int>(i);
        }
        for (std::size_t i = 0; i < row.size(); ++i) {
            const Op& op = row[i];
            StageSeen& stage = stages[op.stage];
            const OpPosition here{static_cast<int>(r), static_cast<int>(i)};
            const OpPosition behind{here.rank, here.position + 1};
            const bool left = gathers && !stage.gathers; // out, while others are gathered
            if (isGather(op.kind) || isRelease(op.kind)) {
                stage.gathered = isGather(op.kind);
            } else if (ruleOf(op.kind).needsWeights && stage.gathers && !stage.gathered) {
                out.push_back({makeGather(op.stage, stage.byMicrobatch ? op.microbatch : -1), here});
                stage.gathered = true; // one gather serves what follows
            } else if (ruleOf(op.kind).needsWeights && left && !stage.gathered && (releases || stage.optimizer < 0)) {
                out.push_back({makeGather(op.stage), here});
                stage.gathered = true;
            } else if (static_cast<int>(i) == stage.optimizer) {
                if (reductions && !stage.reduces) out.push_back({makeReduction(op.stage), here});
                if (left && !stage.gathered) out.push_back({makeGather(op.stage), behind}); // the stepped weights
            }
            if (static_cast<int>(i) == stage.gradient && stage.optimizer < 0 && reductions && !stage.reduces)
                out.push_back({makeReduction(op.stage), behind});
        }
    }
    return out;
}

OpPosition placeOfMissing(const Schedule& schedule, const Op& op)
{
    if (!isCollective(op.kind)) return {};
    for (const MissingCollective& missing : missingCollectives(schedule))
        if (missing.op == op) return missing.at;
    return {};
}

} // namespace stagewright
