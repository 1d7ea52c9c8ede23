#include "schedules/model/groups.h"

namespace stagewright {

std::size_t groupSize(const Schedule& schedule, int rank, std::size_t position)
{
    std::size_t end = position;
    while (schedule.isPaired(rank, end)) ++end;
    return end - position + 1;
}

std::size_t groupBegin(const Schedule& schedule, int rank, std::size_t position)
{
    while (position > 0 && schedule.isPaired(rank, position - 1)) --position;
    return position;
}

} // namespace stagewright
