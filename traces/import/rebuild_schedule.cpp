#include "traces/import/rebuild_schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "schedules/check/validate.h"
#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"
#include "schedules/model/placement_of.h"

namespace stagewright {

namespace {

struct StepOrder { // by rank and place
    std::vector<std::vector<Op>> ops;
    std::vector<std::vector<bool>> paired; // whether it is the first of an overlapped pair
};

std::vector<StepOrder> ordersOf(const OpReading& reading, const std::vector<RankWork>& work)
{
    std::vector<StepOrder> steps(static_cast<std::size_t>(std::max(1, reading.steps)));
    for (StepOrder& step : steps) {
        step.ops.resize(work.size());
        step.paired.resize(work.size());
    }
    for (std::size_t r = 0; r < work.size(); ++r) {
        const auto& list = work[r].compute;
        const auto& ops = reading.ranks[r].ops;
        for (std::size_t k = 0; k < list.size(); ++k) {
            const OpRange& range = ops[list[k]];
            if (!isCompute(range.op.kind)) continue;
            auto& row = steps[static_cast<std::size_t>(range.step)].ops[r];
            auto& pairs = steps[static_cast<std::size_t>(range.step)].paired[r];
            const bool second = k > 0 && range.paired && !pairs.empty() && ops[list[k - 1]].paired &&
                                ops[list[k - 1]].start == range.start && ops[list[k - 1]].end == range.end;
            if (second && (pairs.size() < 2 || !pairs[pairs.size() - 2])) pairs.back() = true;
            row.push_back(range.op);
            pairs.push_back(false);
        }
    }
    return steps;
}

std::shared_ptr<const Schedule> mostComplete(const std::vector<StepOrder>& byStep, const std::string& name,
                                             std::string& why, std::vector<std::string>& notes)
{
    std::size_t best = 0;
    std::size_t most = 0;
    for (std::size_t step = 0; step < byStep.size(); ++step) {
        std::size_t ops = 0;
        for (const auto& row : byStep[step].ops) ops += row.size();
        if (ops > most) best = step, most = ops;
    }
    if (most == 0) {
        why = "no range is named like an op";
        return nullptr;
    }
    Schedule schedule;
    schedule.name = name;
    schedule.order = byStep[best].ops;
    schedule.ranks = static_cast<int>(schedule.order.size());
    schedule.paired.resize(schedule.order.size());
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        for (std::size_t i = 0; i < schedule.order[r].size(); ++i) {
            const Op& op = schedule.order[r][i];
            schedule.stages = std::max(schedule.stages, op.stage + 1);
            if (hasMicrobatch(op)) schedule.microbatches = std::max(schedule.microbatches, op.microbatch + op.count);
            if (byStep[best].paired[r][i]) schedule.paired[r].push_back(static_cast<std::uint32_t>(i));
        }
    }
    const auto cells = static_cast<std::uint64_t>(schedule.stages) * static_cast<std::uint64_t>(schedule.microbatches);
    if (cells > 64 * most + 65'536) {
        why = fmt::format("{} ops name {} stages and {} microbatches", most, schedule.stages, schedule.microbatches);
        return nullptr;
    }
    schedule.placement = placementOf(schedule.order, schedule.stages);
    const Validation validation = validate(schedule);
    if (!validation.valid()) {
        why = fmt::format("step {}: {}", stepNumber(best), validation.faults.front().message);
        return nullptr;
    }
    std::string others;
    std::size_t different = 0;
    for (std::size_t step = 0; step < byStep.size(); ++step) {
        if (step == best || byStep[step].ops == byStep[best].ops) continue;
        if (++different <= 5) others += fmt::format("{}{}", others.empty() ? "" : ", ", stepNumber(step));
    }
    if (different > 0)
        notes.push_back(fmt::format("the order is taken from step {}; {} of {} steps differ from it ({}{})",
                                    stepNumber(best), different, byStep.size(), others, different > 5 ? " …" : ""));
    return std::make_shared<const Schedule>(std::move(schedule));
}

} // namespace

RebuiltSchedule rebuildSchedule(const OpReading& ops, const std::vector<RankWork>& work, const std::string& name,
                                std::vector<std::string>& notes)
{
    RebuiltSchedule out;
    if (ops.copies) {
        out.why = "every rank runs the same passes: copies of a model, not stages of a pipeline";
        return out;
    }
    out.schedule = mostComplete(ordersOf(ops, work), name, out.why, notes);
    if (!out.schedule) return out;
    out.recognised = recognise(*out.schedule);
    if (!out.recognised.empty()) {
        Schedule named = *out.schedule;
        named.name = out.recognised;
        out.schedule = std::make_shared<const Schedule>(std::move(named));
    }
    return out;
}

} // namespace stagewright
