#include "schedules/model/schedule_delta.h"

#include <algorithm>

namespace stagewright {

ScheduleDelta::Frame ScheduleDelta::frameOf(const Schedule& schedule)
{
    return {schedule.name,    schedule.ranks,        schedule.stages, schedule.microbatches, schedule.placement,
            schedule.weights, schedule.sliceLengths, schedule.graph,  schedule.order.size(), schedule.paired.size()};
}

ScheduleDelta::ScheduleDelta(const Schedule& before, const Schedule& after)
{
    if (Frame a = frameOf(before), b = frameOf(after); !(a == b)) m_frames = Frames{std::move(a), std::move(b)};
    static const std::vector<Op> none;
    static const std::vector<std::uint32_t> noPairs;
    for (std::size_t r = 0; r < std::max(before.order.size(), after.order.size()); ++r) {
        const auto& a = r < before.order.size() ? before.order[r] : none;
        const auto& b = r < after.order.size() ? after.order[r] : none;
        const auto& pairsA = r < before.paired.size() ? before.paired[r] : noPairs;
        const auto& pairsB = r < after.paired.size() ? after.paired[r] : noPairs;
        if (a == b && pairsA == pairsB) continue;
        Row row;
        row.rank = r;
        const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
        row.at = static_cast<std::size_t>(x - a.begin());
        auto endA = a.end();
        auto endB = b.end();
        while (endA != x && endB != y && *(endA - 1) == *(endB - 1)) {
            --endA;
            --endB;
        }
        row.before.assign(x, endA);
        row.after.assign(y, endB);
        row.pairsDiffer = pairsA != pairsB;
        if (row.pairsDiffer) {
            row.pairsBefore = pairsA;
            row.pairsAfter = pairsB;
        }
        m_rows.push_back(std::move(row));
    }
}

void ScheduleDelta::apply(Schedule& schedule, bool forward) const
{
    if (m_frames) {
        const Frame& to = forward ? m_frames->after : m_frames->before;
        schedule.name = to.name;
        schedule.ranks = to.ranks;
        schedule.stages = to.stages;
        schedule.microbatches = to.microbatches;
        schedule.placement = to.placement;
        schedule.weights = to.weights;
        schedule.sliceLengths = to.sliceLengths;
        schedule.graph = to.graph;
        schedule.order.resize(std::max(schedule.order.size(), to.rows)); // rows that go are emptied first
        schedule.paired.resize(std::max(schedule.paired.size(), to.pairRows));
    }
    for (const Row& row : m_rows) {
        auto& ops = schedule.order[row.rank];
        const auto& from = forward ? row.before : row.after;
        const auto& to = forward ? row.after : row.before;
        const auto first = ops.begin() + static_cast<std::ptrdiff_t>(row.at);
        if (from.size() == to.size()) {
            std::copy(to.begin(), to.end(), first);
        } else {
            const auto at = ops.erase(first, first + static_cast<std::ptrdiff_t>(from.size()));
            ops.insert(at, to.begin(), to.end());
        }
        if (row.pairsDiffer) {
            if (schedule.paired.size() <= row.rank) schedule.paired.resize(row.rank + 1);
            schedule.paired[row.rank] = forward ? row.pairsAfter : row.pairsBefore;
        }
    }
    if (m_frames) {
        schedule.order.resize(forward ? m_frames->after.rows : m_frames->before.rows);
        schedule.paired.resize(forward ? m_frames->after.pairRows : m_frames->before.pairRows);
    }
}

void ScheduleDelta::undo(Schedule& schedule) const { apply(schedule, false); }
void ScheduleDelta::redo(Schedule& schedule) const { apply(schedule, true); }

std::size_t ScheduleDelta::memoryUse() const
{
    std::size_t bytes = sizeof(*this) + (m_frames ? sizeof(Frames) : 0);
    for (const Row& row : m_rows)
        bytes += sizeof(Row) + (row.before.size() + row.after.size()) * sizeof(Op) +
                 (row.pairsBefore.size() + row.pairsAfter.size()) * sizeof(std::uint32_t);
    return bytes;
}

} // namespace stagewright
