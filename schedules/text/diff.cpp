#include "schedules/text/diff.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/library/variants.h"
#include "schedules/messages/lower.h"
#include "schedules/messages/messages.h"

namespace stagewright {

namespace {

constexpr std::size_t mostOpsCompared = 2'500'000;
constexpr std::size_t mostToSearch = 10'000; // ops: beyond, no schedule that searches is tried

// The n-th of equal ops on a rank.
struct Occurrence {
    Op op;
    std::uint32_t nth = 0;
    bool operator==(const Occurrence&) const = default;
};
struct OccurrenceHash {
    std::size_t operator()(const Occurrence& o) const noexcept { return std::hash<Op>()(o.op) * 31 + o.nth; }
};

std::vector<Occurrence> occurrences(const std::vector<Op>& ops)
{
    std::unordered_map<Op, std::uint32_t> seen;
    std::vector<Occurrence> out;
    out.reserve(ops.size());
    for (const Op& op : ops) out.push_back({op, seen[op]++});
    return out;
}

void diffRank(int rank, const std::vector<Op>& a, const std::vector<Op>& b, ScheduleDiff& out)
{
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
        if (i < a.size() && i < b.size() && a[i] == b[i]) continue;
        RankDifference difference{rank, i, {}, {}};
        if (i < a.size()) difference.a = a[i];
        if (i < b.size()) difference.b = b[i];
        out.first.push_back(difference);
        break;
    }
    if (a == b) return;
    std::unordered_map<Occurrence, std::size_t, OccurrenceHash> inA;
    const auto listA = occurrences(a);
    for (std::size_t i = 0; i < listA.size(); ++i) inA.emplace(listA[i], i);
    std::vector<std::pair<std::size_t, std::size_t>> both; // positions in A, in B's order
    const auto listB = occurrences(b);
    for (std::size_t i = 0; i < listB.size(); ++i) {
        const auto at = inA.find(listB[i]);
        if (at == inA.end()) {
            out.onlyB.push_back({rank, i, b[i]});
            continue;
        }
        both.emplace_back(at->second, i);
        inA.erase(at);
    }
    std::vector<std::size_t> left;
    left.reserve(inA.size());
    for (const auto& [occurrence, position] : inA) left.push_back(position);
    std::sort(left.begin(), left.end());
    for (const std::size_t position : left) out.onlyA.push_back({rank, position, a[position]});
    // The longest part that keeps its order stays; the rest is moved.
    std::vector<std::size_t> tails; // indices into `both`, of the smallest end of each length
    std::vector<std::size_t> before(both.size(), both.size());
    for (std::size_t i = 0; i < both.size(); ++i) {
        const auto at = std::lower_bound(tails.begin(), tails.end(), both[i].first,
                                         [&](std::size_t tail, std::size_t value) { return both[tail].first < value; });
        if (at != tails.begin()) before[i] = *std::prev(at);
        if (at == tails.end())
            tails.push_back(i);
        else
            *at = i;
    }
    std::vector<char> stays(both.size(), 0);
    for (std::size_t i = tails.empty() ? both.size() : tails.back(); i < both.size(); i = before[i]) stays[i] = 1;
    for (std::size_t i = 0; i < both.size(); ++i)
        if (!stays[i]) out.moved.push_back({rank, b[both[i].second], both[i].first, both[i].second});
}

std::string pairText(std::string_view what, const auto& a, const auto& b)
{
    return fmt::format("{}: {} and {}", what, a, b);
}

} // namespace

ScheduleDiff diffSchedules(const Schedule& first, const Schedule& second)
{
    ScheduleDiff out;
    const bool lowered = isLowered(first) && isLowered(second);
    const Schedule a = lowered ? first : withoutCommunication(first);
    const Schedule b = lowered ? second : withoutCommunication(second);
    if (a.ranks != b.ranks) out.shape.push_back(pairText("ranks", a.ranks, b.ranks));
    if (a.stages != b.stages) out.shape.push_back(pairText("stages", a.stages, b.stages));
    if (a.microbatches != b.microbatches) out.shape.push_back(pairText("microbatches", a.microbatches, b.microbatches));
    if (a.weights != b.weights) out.shape.push_back(pairText("weights", toText(a.weights), toText(b.weights)));
    if (a.sliceLengths != b.sliceLengths)
        out.shape.push_back(pairText("slice lengths", fmt::format("{}", fmt::join(a.sliceLengths, ",")),
                                     fmt::format("{}", fmt::join(b.sliceLengths, ","))));
    const std::size_t ranks = std::max(a.order.size(), b.order.size());
    static const std::vector<Op> none;
    for (std::size_t r = 0; r < ranks; ++r) {
        const auto& rowA = r < a.order.size() ? a.order[r] : none;
        const auto& rowB = r < b.order.size() ? b.order[r] : none;
        diffRank(static_cast<int>(r), rowA, rowB, out);
        if (rowA != rowB) continue;
        for (std::size_t i = 0; i < rowA.size(); ++i)
            if (a.isPaired(static_cast<int>(r), i) != b.isPaired(static_cast<int>(r), i)) {
                out.shape.push_back(fmt::format("rank {}: {} and the op after it are issued together in {} only", r,
                                                toText(rowA[i]),
                                                a.isPaired(static_cast<int>(r), i) ? "the first" : "the second"));
                break;
            }
    }
    if (out.shape.empty() && out.first.empty() && a.placement != b.placement)
        out.shape.emplace_back("the placement of stages differs");
    return out;
}

std::string describeFirst(const RankDifference& difference, const std::string& here, const std::string& there)
{
    auto side = [](const std::optional<Op>& op, const std::string& where) {
        return op ? fmt::format("{} {}", toText(*op), where) : fmt::format("the list ends {}", where);
    };
    return fmt::format("rank {}, op {}: {}, {}", difference.rank, opNumber(difference.position),
                       side(difference.a, here), side(difference.b, there));
}

std::optional<NearestSchedule> nearestSchedule(const Schedule& given)
{
    if (given.ranks < 1 || given.microbatches < 1 || given.stages < 1) return std::nullopt;
    const Schedule schedule = computeOrder(given);
    const std::size_t ops = schedule.opCount();
    const auto cells = static_cast<std::size_t>(schedule.stages) * static_cast<std::size_t>(schedule.microbatches);
    if (ops < cells / 2) return std::nullopt; // a stray number in a file names a shape far larger than its ops
    if (schedule.stages % schedule.ranks != 0) return std::nullopt;
    const Shape shape{schedule.ranks, schedule.microbatches, schedule.stages / schedule.ranks};
    std::optional<NearestSchedule> best;
    std::size_t looked = 0;
    for (const std::string& name : namesThatMayFit(schedule, ops <= mostToSearch)) {
        const auto made = makeSchedule(name, shape);
        if (!made || made->ranks != schedule.ranks || made->stages != schedule.stages ||
            made->microbatches != schedule.microbatches)
            continue;
        if (made->weights != schedule.weights) continue; // another mathematics, however alike the ops
        looked += made->opCount() + ops;
        if (looked > mostOpsCompared) return best;
        ScheduleDiff diff = diffSchedules(schedule, computeOrder(*made));
        if (best && best->diff.distance() + best->diff.shape.size() <= diff.distance() + diff.shape.size()) continue;
        best = NearestSchedule{name, std::move(diff)};
        if (best->diff.same()) return best;
    }
    return best;
}

} // namespace stagewright
