#include "profiler/record/ran_order.h"

#include "schedules/execute/ready_order.h"

namespace stagewright {

Result<std::shared_ptr<const CheckedSchedule>> inOrderOf(const std::shared_ptr<const CheckedSchedule>& given,
                                                         const std::shared_ptr<const CheckedSchedule>& last,
                                                         std::vector<std::vector<RecordedEvent>>& eventsByRank)
{
    const Schedule& lists = given->compute();
    std::vector<std::vector<std::size_t>> ran(lists.order.size());
    bool asListed = true;
    for (std::size_t rank = 0; rank < ran.size(); ++rank) {
        std::int32_t next = 0;
        for (RecordedEvent& event : eventsByRank[rank]) {
            if (event.kind != EventKind::OpBegin || event.position < 0) continue;
            const auto place = static_cast<std::size_t>(event.position);
            asListed = asListed && event.position == next;
            const bool second = place > 0 && lists.isPaired(static_cast<int>(rank), place - 1);
            if (!second) ran[rank].push_back(place); // behind the first of its pair
            event.position = next++;
        }
    }
    if (asListed) return given;
    Schedule now = inOrder(lists, ran);
    if (last && now == last->compute()) return last;
    return CheckedSchedule::of(std::move(now));
}

} // namespace stagewright
