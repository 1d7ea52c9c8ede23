#include "schedules/model/offload.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "schedules/model/kinds.h"

namespace stagewright {

Result<OffloadRule> parseOffload(std::string_view text)
{
    const auto wrong = [&] {
        return fail(ErrorCode::Usage, fmt::format("offloading '{}' is not known", text),
                    "write all, longest, cap=3 (microbatches of a rank) or cap=26MiB; cap=3:recompute may "
                    "recompute stages, too; all:ahead=2 reloads two ops before the backward");
    };
    OffloadRule rule;
    const std::vector<std::string_view> parts = split(text, ":");
    if (parts.empty() || parts.size() > 2) return wrong();
    const auto [name, cap] = keyValueOf(parts.front());
    if (name == "cap" && cap && !cap->empty()) {
        rule.which = OffloadRule::Which::Cap;
        rule.cap = *cap;
        rule.recompute = parts.size() == 2 && parts.back() == "recompute";
        return parts.size() == 1 || rule.recompute ? Result<OffloadRule>(rule) : wrong();
    }
    if (cap) return wrong();
    if (name == "none" && parts.size() == 1) return rule;
    if (name == "all")
        rule.which = OffloadRule::Which::All;
    else if (name == "longest")
        rule.which = OffloadRule::Which::Longest;
    else
        return wrong();
    if (parts.size() == 2) {
        const auto [key, number] = keyValueOf(parts.back());
        const auto ahead = number ? wholeOf<int>(*number) : std::nullopt;
        if (key != "ahead" || !ahead || *ahead < 0 || *ahead > 1'000'000) return wrong();
        rule.ahead = *ahead;
    }
    return rule;
}

std::vector<Offloadable> offloadableOf(const Schedule& schedule)
{
    std::vector<Offloadable> all;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const auto& ops = schedule.order[r];
        std::unordered_map<Op, std::size_t> open; // forwards by cell: their place in `all`
        std::unordered_set<Op> moved;
        for (const Op& op : ops)
            if (isCopy(op.kind)) moved.insert(asForward(op));
        int computed = 0;
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Op& op = ops[i];
            if (!isCompute(op.kind)) continue;
            const Op cell = asForward(op);
            if (isForward(op.kind)) {
                if (moved.contains(cell)) continue;
                open.emplace(cell, all.size());
                all.push_back({static_cast<int>(r), i, 0, -computed - 1, op.stage});
            } else if (const auto found = open.find(cell); found != open.end() && all[found->second].user == 0) {
                all[found->second].user = i;
                all[found->second].between += computed;
            }
            ++computed;
        }
    }
    std::erase_if(all, [](const Offloadable& one) { return one.user == 0 || one.between == 0; });
    return all;
}

Schedule withOffloads(const Schedule& schedule, const std::vector<Offloadable>& all, const std::vector<int>& ahead)
{
    Schedule out = schedule;
    out.paired.assign(schedule.order.size(), {});
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const auto& ops = schedule.order[r];
        const int rank = static_cast<int>(r);
        std::map<std::size_t, std::vector<Op>> offloads, reloads; // in front of the op at this position
        const auto outOfPairs = [&](std::size_t at) {             // in front of a pair, not within it
            while (at > 0 && schedule.isPaired(rank, at - 1)) --at;
            return at;
        };
        for (std::size_t k = 0; k < all.size() && k < ahead.size(); ++k) {
            const Offloadable& one = all[k];
            if (one.rank != rank || ahead[k] < 0) continue;
            std::size_t behind = one.forward + 1;
            while (schedule.isPaired(rank, behind - 1)) ++behind;
            std::size_t at = outOfPairs(one.user);
            for (int left = ahead[k]; left > 0 && at > behind; --left) {
                std::size_t before = at - 1;
                while (before > behind && !isCompute(ops[before].kind)) --before;
                at = std::max(behind, outOfPairs(before));
            }
            if (at < behind) continue; // both are in one pair
            offloads[behind].push_back(asKind(ops[one.forward], OpKind::Offload));
            reloads[at].push_back(asKind(ops[one.forward], OpKind::Reload));
        }
        std::vector<Op>& list = out.order[r];
        list.clear();
        for (std::size_t i = 0; i <= ops.size(); ++i) {
            for (const auto* inserted : {&offloads, &reloads})
                if (const auto found = inserted->find(i); found != inserted->end())
                    list.insert(list.end(), found->second.begin(), found->second.end());
            if (i == ops.size()) break;
            if (schedule.isPaired(rank, i)) out.paired[r].push_back(static_cast<std::uint32_t>(list.size()));
            list.push_back(ops[i]);
        }
    }
    return out;
}

Schedule withOffloads(const Schedule& schedule, const OffloadRule& rule)
{
    using Which = OffloadRule::Which;
    if (rule.which == Which::None || rule.which == Which::Cap) return schedule;
    const std::vector<Offloadable> all = offloadableOf(schedule);
    std::vector<int> ahead(all.size(), rule.ahead);
    if (rule.which == Which::Longest)
        for (int rank = 0; rank < schedule.ranks; ++rank) {
            std::map<int, std::pair<double, int>> held; // by stage: ops in between, of so many microbatches
            for (const Offloadable& one : all)
                if (one.rank == rank) held[one.stage].first += one.between, ++held[one.stage].second;
            std::vector<std::pair<double, int>> stages; // the mean, longest first
            for (const auto& [stage, sum] : held) stages.emplace_back(-sum.first / sum.second, stage);
            std::sort(stages.begin(), stages.end());
            stages.resize((stages.size() + 1) / 2);
            for (std::size_t k = 0; k < all.size(); ++k)
                if (all[k].rank == rank && std::none_of(stages.begin(), stages.end(), [&](const auto& stage) {
                        return stage.second == all[k].stage;
                    }))
                    ahead[k] = -1;
        }
    return withOffloads(schedule, all, ahead);
}

} // namespace stagewright
