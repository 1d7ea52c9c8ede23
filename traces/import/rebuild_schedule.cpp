#include "traces/import/rebuild_schedule.h"

#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "schedules/check/validate.h"
#include "schedules/model/kinds.h"
#include "schedules/model/placement_of.h"

namespace stagewright {

std::shared_ptr<const Schedule> rebuildSchedule(const std::vector<std::vector<std::vector<Op>>>& byStep, const std::vector<std::vector<std::vector<bool>>>& paired,
                                                const std::string& name, std::string& why, std::vector<std::string>& notes)
{
    std::size_t best = 0;
    std::size_t most = 0;
    for (std::size_t step = 0; step < byStep.size(); ++step) {
        std::size_t ops = 0;
        for (const auto& row : byStep[step]) ops += row.size();
        if (ops > most) best = step, most = ops;
    }
    if (most == 0) {
        why = "no range is named like an op";
        return nullptr;
    }
    Schedule schedule;
    schedule.name = name;
    schedule.order = byStep[best];
    schedule.ranks = static_cast<int>(schedule.order.size());
    schedule.paired.resize(schedule.order.size());
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        for (std::size_t i = 0; i < schedule.order[r].size(); ++i) {
            const Op& op = schedule.order[r][i];
            schedule.stages = std::max(schedule.stages, op.stage + 1);
            if (ruleOf(op.kind).takesMicrobatch) schedule.microbatches = std::max(schedule.microbatches, op.microbatch + op.count);
            if (paired[best][r][i]) schedule.paired[r].push_back(static_cast<std::uint32_t>(i));
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
        if (step == best || byStep[step] == byStep[best]) continue;
        if (++different <= 5) others += fmt::format("{}{}", others.empty() ? "" : ", ", stepNumber(step));
    }
    if (different > 0) notes.push_back(fmt::format("the order is taken from step {}; {} of {} steps differ from it ({}{})", stepNumber(best), different, byStep.size(), others, different > 5 ? " …" : ""));
    return std::make_shared<const Schedule>(std::move(schedule));
}

} // namespace stagewright
