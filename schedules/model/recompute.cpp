#include "schedules/model/recompute.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/model/kinds.h"

namespace stagewright {

Result<std::vector<bool>> parseRecompute(std::string_view text, int stages)
{
    std::vector<bool> chosen(static_cast<std::size_t>(std::max(0, stages)), text == "all");
    if (text == "all" || text == "none") return chosen;
    const auto wrong = [&] {
        return fail(ErrorCode::Usage, fmt::format("recomputation '{}': stages are 0 to {}", text, stages - 1),
                    "write all, none, or stages such as 0-2");
    };
    if (text.empty()) return wrong();
    for (const std::string_view part : itemsOf(text, ",+")) {
        const auto range = rangeOf(part);
        if (!range || range->first < 0 || range->last < range->first || range->last >= stages) return wrong();
        for (int stage = range->first; stage <= range->last; ++stage) chosen[static_cast<std::size_t>(stage)] = true;
    }
    return chosen;
}

Schedule withRecompute(const Schedule& schedule, const std::vector<bool>& stages, bool hoisted)
{
    Schedule out = schedule;
    std::unordered_set<int> has;
    std::unordered_set<Op> halved; // forwards that ran by half
    for (const auto& ops : schedule.order)
        for (const Op& op : ops) {
            if (op.kind == OpKind::Recompute) has.insert(op.stage);
            if (op.kind == OpKind::Forward && op.half != 0) halved.insert(op);
        }
    std::unordered_set<Op> made; // whole ones, for the halves of a backward
    out.paired.assign(schedule.order.size(), {});
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const auto& ops = schedule.order[r];
        std::vector<Op>& list = out.order[r];
        list.clear();
        // Cut as the forward was: one R before the first half of a backward whose forward ran whole.
        const auto asForward = [&](Op op) {
            op.kind = OpKind::Forward;
            if (op.half != 0 && !halved.contains(op)) op.half = 0;
            op.kind = OpKind::Recompute;
            return op;
        };
        const auto recomputed = [&](const Op& op) {
            return isReturn(op.kind) && op.stage < stages.size() && stages[op.stage] && !has.contains(op.stage) &&
                   !made.contains(asForward(op));
        };
        const auto add = [&](const Op& op) {
            list.push_back(asForward(op));
            if (op.half != 0 && list.back().half == 0) made.insert(list.back());
        };
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const int rank = static_cast<int>(r);
            const bool pairBefore = i > 0 && schedule.isPaired(rank, i - 1);
            // else it comes apart
            const bool pairHere =
                schedule.isPaired(rank, i) && (hoisted || (!recomputed(ops[i]) && !recomputed(ops[i + 1])));
            if (recomputed(ops[i]) && !(hoisted && pairBefore)) {
                if (!hoisted) out.paired[r].push_back(static_cast<std::uint32_t>(list.size()));
                add(ops[i]);
            }
            if (pairHere && recomputed(ops[i + 1])) add(ops[i + 1]);
            if (pairHere) out.paired[r].push_back(static_cast<std::uint32_t>(list.size()));
            list.push_back(ops[i]);
        }
    }
    if (std::all_of(out.paired.begin(), out.paired.end(), [](const auto& row) { return row.empty(); }))
        out.paired = schedule.paired;
    return out;
}

} // namespace stagewright
