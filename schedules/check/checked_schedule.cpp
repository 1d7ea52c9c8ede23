#include "schedules/check/checked_schedule.h"

#include <utility>

#include "schedules/check/validate.h"
#include "schedules/messages/messages.h"

namespace stagewright {

CheckedSchedule::CheckedSchedule(Schedule compute, std::optional<Schedule> given, OpIndex index)
    : m_compute(std::move(compute)), m_given(std::move(given)), m_index(std::move(index))
{
}

Result<std::shared_ptr<const CheckedSchedule>> CheckedSchedule::of(Schedule given)
{
    if (Result<void> valid = validate(given).toResult(); !valid) return tl::unexpected(std::move(valid.error()));
    std::optional<Schedule> lowered;
    if (isLowered(given)) {
        lowered = std::move(given);
        given = withoutCommunication(*lowered);
    }
    const Result<CellSpace> cells = cellsOf(given);
    if (!cells) return tl::unexpected(cells.error());
    OpIndex index(given, *cells);
    return std::shared_ptr<const CheckedSchedule>(new CheckedSchedule(std::move(given), std::move(lowered), std::move(index)));
}

Result<Schedule> CheckedSchedule::lowered(const Lowering& rule) const
{
    if (m_given) return *m_given;
    return lower(m_compute, rule);
}

std::shared_ptr<const Schedule> computeOf(const std::shared_ptr<const CheckedSchedule>& checked)
{
    return {checked, &checked->compute()};
}

} // namespace stagewright
