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

Schedule without(const Schedule& schedule, const std::function<bool(const Op&)>& dropped)
{
    Schedule out = schedule;
    out.paired.assign(schedule.order.size(), {});
    for (std::size_t r = 0; r < out.order.size(); ++r) {
        const auto& ops = schedule.order[r];
        const int rank = static_cast<int>(r);
        out.order[r].clear();
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (dropped(ops[i])) continue;
            std::size_t next = i;
            while (schedule.isPaired(rank, next) && next + 1 < ops.size() && dropped(ops[next + 1])) ++next;
            if (schedule.isPaired(rank, next)) out.paired[r].push_back(static_cast<std::uint32_t>(out.order[r].size()));
            out.order[r].push_back(ops[i]);
        }
    }
    return out;
}

} // namespace stagewright
