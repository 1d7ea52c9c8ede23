#include "schedules/edit/edit_row.h"

#include <algorithm>

namespace stagewright {

EditRow::EditRow(const Schedule& schedule, int rank)
{
    const auto& ops = schedule.order[static_cast<std::size_t>(rank)];
    entries.reserve(ops.size());
    for (const Op& op : ops) entries.push_back({op, -1});
    if (static_cast<std::size_t>(rank) >= schedule.paired.size()) return;
    for (const std::uint32_t i : schedule.paired[static_cast<std::size_t>(rank)])
        if (i + std::size_t{1} < entries.size()) {
            if (entries[i].pairId < 0) entries[i].pairId = static_cast<int>(i); // else it goes on a group
            entries[i + 1].pairId = entries[i].pairId;
        }
}

void EditRow::insert(std::size_t at, const Op& op)
{
    entries.insert(entries.begin() + static_cast<std::ptrdiff_t>(at), {op, -1});
}

void EditRow::erase(std::size_t at) { entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(at)); }

void EditRow::writeTo(Schedule& schedule, int rank) const
{
    auto& ops = schedule.order[static_cast<std::size_t>(rank)];
    ops.clear();
    ops.reserve(entries.size());
    std::vector<std::uint32_t> pairs;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        ops.push_back(entries[i].op);
        if (i > 0 && entries[i].pairId >= 0 && entries[i].pairId == entries[i - 1].pairId)
            pairs.push_back(static_cast<std::uint32_t>(i - 1));
    }
    auto& paired = schedule.paired;
    if (!pairs.empty() && paired.size() < schedule.order.size()) paired.resize(schedule.order.size());
    if (static_cast<std::size_t>(rank) < paired.size()) paired[static_cast<std::size_t>(rank)] = std::move(pairs);
}

} // namespace stagewright
