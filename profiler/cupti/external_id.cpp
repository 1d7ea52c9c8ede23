#include "profiler/cupti/external_id.h"

#include <fmt/format.h>

namespace stagewright {

Result<MessageNumbers> MessageNumbers::of(const CheckedSchedule& checked)
{
    const Schedule& schedule = checked.compute();
    const auto tooMany = [](std::string_view what, auto has, auto limit) {
        return fail(ErrorCode::Usage,
                    fmt::format("a GPU trace can distinguish {} {}, but the schedule has {}", limit, what, has),
                    "record fewer microbatches, or without a GPU trace");
    };
    if (schedule.ranks > ExternalId::ranks) return tooMany("ranks", schedule.ranks, ExternalId::ranks);
    for (const std::vector<Op>& list : schedule.order) {
        if (list.size() > ExternalId::positions) return tooMany("ops of a rank", list.size(), ExternalId::positions);
    }
    MessageNumbers numbers;
    numbers.m_space = MessageSpace(checked.cells());
    const std::uint64_t messages = static_cast<std::uint64_t>(schedule.stages) * numbers.m_space.perStage();
    if (messages > ExternalId::messages) return tooMany("messages", messages, ExternalId::messages);
    return numbers;
}

} // namespace stagewright
