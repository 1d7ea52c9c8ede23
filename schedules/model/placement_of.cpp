#include "schedules/model/placement_of.h"

#include <algorithm>
#include <tuple>

#include "schedules/model/kinds.h"

namespace stagewright {

Placement placementOf(const std::vector<std::vector<Op>>& order, int stages)
{
    struct Seen {
        int stage;
        int microbatch;
        bool forward;
        int rank;
    };
    // A stage on one rank needs no looking at its ops, and that is most of them.
    constexpr std::size_t nowhere = static_cast<std::size_t>(-1), several = nowhere - 1;
    std::vector<std::size_t> rankOf(static_cast<std::size_t>(stages), nowhere);
    for (std::size_t r = 0; r < order.size(); ++r)
        for (const Op& op : order[r])
            if (isCompute(op.kind))
                if (auto& rank = rankOf[op.stage]; rank != r) rank = rank == nowhere ? r : several;
    std::vector<Seen> seen;
    for (std::size_t r = 0; r < order.size(); ++r)
        for (const Op& op : order[r])
            if (isCompute(op.kind) && rankOf[op.stage] == several)
                seen.push_back({op.stage, op.microbatch, op.kind == OpKind::Forward, static_cast<int>(r)});
    std::sort(seen.begin(), seen.end(), [](const Seen& a, const Seen& b) {
        return std::tuple(a.stage, a.microbatch, !a.forward, a.rank) <
               std::tuple(b.stage, b.microbatch, !b.forward, b.rank);
    });
    std::vector<std::vector<Placement::Copy>> copies(static_cast<std::size_t>(stages));
    for (std::size_t s = 0; s < copies.size(); ++s)
        if (rankOf[s] != nowhere && rankOf[s] != several) copies[s].push_back({0, static_cast<int>(rankOf[s])});
    for (std::size_t i = 0; i < seen.size(); ++i) {
        const bool decided =
            i > 0 && seen[i - 1].stage == seen[i].stage && seen[i - 1].microbatch == seen[i].microbatch;
        auto& of = copies[static_cast<std::size_t>(seen[i].stage)];
        if (decided || (!of.empty() && of.back().rank == seen[i].rank)) continue;
        of.push_back({of.empty() ? 0 : seen[i].microbatch, seen[i].rank});
    }
    for (std::size_t s = 0; s < copies.size(); ++s)
        if (copies[s].empty()) copies[s].push_back({0, static_cast<int>(s % order.size())});
    return Placement::of(std::move(copies));
}

} // namespace stagewright
