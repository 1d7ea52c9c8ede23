#include "schedules/check/without_effect.h"

#include <cstddef>

#include <fmt/format.h>

#include "schedules/model/kinds.h"

namespace stagewright {

std::string withoutEffect(const Schedule& schedule)
{
    std::size_t offloads = 0, reloads = 0;
    for (const auto& ops : schedule.order)
        for (const Op& op : ops) {
            offloads += isOffload(op.kind) ? 1 : 0;
            reloads += isReload(op.kind) ? 1 : 0;
        }
    if (offloads + reloads == 0) return {};
    return fmt::format("its {} OFFLOAD and {} RELOAD op{} move nothing: memory has one tier, so activations stay where "
                       "they are and peaks are those "
                       "without them; with costs they take their time between the rank's other ops",
                       offloads, reloads, reloads == 1 ? "" : "s");
}

} // namespace stagewright
