#include "schedules/check/checked_schedule.h"

#include <utility>

#include "schedules/check/schedule_checker.h"
#include "schedules/messages/lower_indexed.h"
#include "schedules/messages/messages.h"
#include "schedules/model/shard_rules.h"

namespace stagewright {

CheckedSchedule::CheckedSchedule(Schedule compute, std::shared_ptr<const Schedule> given, OpIndex index)
    : m_compute(std::move(compute)), m_given(std::move(given)), m_index(std::move(index))
{
}

std::shared_ptr<const CheckedSchedule> CheckedSchedule::ifValid(Schedule&& given, Validation& found)
{
    ScheduleChecker checker{given};
    checker.run({});
    found = std::move(checker.out);
    if (!found.valid()) return nullptr;
    OpIndex index = *std::move(checker.made);
    std::shared_ptr<const Schedule> lowered;
    if (isLowered(given)) { // other lists than those that were checked: an index of their own
        lowered = std::make_shared<const Schedule>(std::move(given));
        // gathers that nobody shares do nothing
        given = sharesState(*lowered) ? withoutMessages(*lowered) : withoutCommunication(*lowered);
        // has cells, as those with messages have
        index = OpIndex(given, cellsOf(given).value());
    }
    return std::shared_ptr<const CheckedSchedule>(
        new CheckedSchedule(std::move(given), std::move(lowered), std::move(index)));
}

Result<std::shared_ptr<const CheckedSchedule>> CheckedSchedule::of(Schedule given)
{
    Validation found;
    auto checked = ifValid(std::move(given), found);
    if (!checked) return tl::unexpected(std::move(found.toResult().error()));
    return checked;
}

Result<std::shared_ptr<const CheckedSchedule>>
CheckedSchedule::after(const std::shared_ptr<const CheckedSchedule>& before, Schedule now)
{
    if (before && now.name == before->given().name && now == before->given()) return before;
    return of(std::move(now));
}

Result<std::shared_ptr<const Schedule>> CheckedSchedule::lowered(const Lowering& rule) const
{
    if (m_given) return m_given;
    const std::lock_guard lock(m_mutex);
    for (const auto& [known, lists] : m_lowered)
        if (known == rule) return lists;
    STAGEWRIGHT_TRY(auto lists, lowerIndexed(m_compute, m_index, rule));
    return m_lowered.emplace_back(rule, std::make_shared<const Schedule>(std::move(lists))).second;
}

std::shared_ptr<const Schedule> computeOf(const std::shared_ptr<const CheckedSchedule>& checked)
{
    return {checked, &checked->compute()};
}

} // namespace stagewright
