// A deadlock in words and as a picture in characters.
#include "schedules/execute/deadlock_text.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/execute/deadlock.h"

namespace stagewright {

namespace {

constexpr std::size_t mostChanges = 4; // listed one by one
constexpr std::size_t mostVictims = 6; // drawn

// "rank 3", "ranks 0-61, 63"
std::string rankList(const std::vector<int>& ranks)
{
    std::string out = ranks.size() == 1 ? "rank" : "ranks";
    for (std::size_t i = 0; i < ranks.size();) {
        std::size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
        out += i == 0 ? " " : ", ";
        if (last < i + 2) // two neighbours are not a range
            last = i;
        out += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
        i = last + 1;
    }
    return out;
}

const BlockedRank* blockedOf(const Deadlock& deadlock, int rank)
{
    for (const BlockedRank& blocked : deadlock.blocked)
        if (blocked.rank == rank) return &blocked;
    return nullptr;
}

} // namespace

std::string describeDeadlock(const Deadlock& deadlock)
{
    if (!deadlock.hung()) return "no rank waits forever\n";
    std::string out;
    for (const int rank : deadlock.cycle) out += fmt::format("{}; ", blockedOf(deadlock, rank)->sentence);
    if (!deadlock.cycle.empty()) out += fmt::format("so rank {} waits for itself\n", deadlock.cycle.front());
    for (const BlockedRank& blocked : deadlock.blocked)
        if (deadlock.cycle.empty() || blocked.onRank < 0) out += blocked.sentence + "\n";
    if (!deadlock.missing.empty()) out += fmt::format("nothing is known about {}\n", rankList(deadlock.missing));
    if (!deadlock.victims.empty() && !deadlock.cycle.empty())
        out += fmt::format("{} {} for the cycle\n", rankList(deadlock.victims),
                           deadlock.victims.size() == 1 ? "waits" : "wait");
    if (deadlock.cycle.empty()) return out;
    std::string ops;
    for (const CycleOp& op : deadlock.cycleOps) ops += toText(op.op) + " → ";
    out += fmt::format("the cycle: {}{}\n", ops, toText(deadlock.cycleOps.front().op));
    if (deadlock.worksIfBuffered) out += "it works if sends are buffered\n";
    if (deadlock.worksIfPosted)
        out += "it works if receives are posted: the op that needs a message waits for it, not the receive\n";
    if (deadlock.worksWithStreams) out += "it works if the messages of a rank don't share one stream\n";
    if (deadlock.groupingWorks)
        out += fmt::format("posting {} together with {}, and every send with the receive after it, {}\n",
                           toText(deadlock.groupedSend), toText(deadlock.groupedReceive),
                           *deadlock.groupingWorks ? "removes it" : "does not remove it");
    if (!deadlock.fixRule.empty()) out += fmt::format("a way out, checked: {}\n", deadlock.fixRule);
    for (std::size_t i = 0; i < std::min(mostChanges, deadlock.fix.size()); ++i) {
        const OrderChange& change = deadlock.fix[i];
        const std::string_view begin = i > 0 ? "then" : deadlock.fixRule.empty() ? "a way out, checked" : "that is";
        out += fmt::format("{}: on rank {} move {} from op {} to op {}\n", begin, change.rank, toText(change.op),
                           opNumber(change.from), opNumber(change.to));
        if (!deadlock.fixRule.empty()) break; // the rule says the rest
    }
    const std::size_t listed = deadlock.fixRule.empty() ? mostChanges : 1;
    if (deadlock.fix.size() > listed)
        out += fmt::format("and {} more moves of this kind\n", deadlock.fix.size() - listed);
    for (const std::string& way : deadlock.otherWays) out += fmt::format("another way out, checked: {}\n", way);
    return out;
}

std::string drawDeadlock(const Schedule& schedule, const Deadlock& deadlock, int columns)
{
    std::map<std::pair<int, int>, std::pair<char, char>> marks; // by (rank, position)
    for (const BlockedRank& blocked : deadlock.blocked) {
        const bool victim =
            std::find(deadlock.victims.begin(), deadlock.victims.end(), blocked.rank) != deadlock.victims.end();
        if (blocked.onRank >= 0 && !victim) marks.try_emplace({blocked.onRank, blocked.onPosition}, '<', '>');
    }
    for (const BlockedRank& blocked : deadlock.blocked) marks[{blocked.rank, blocked.position}] = {'[', ']'};

    const std::size_t digits = std::max<std::size_t>(3, fmt::formatted_size("{} ", schedule.order.size()));
    std::string out;
    std::vector<int> left;
    for (const BlockedRank& blocked : deadlock.blocked) {
        const auto r = static_cast<std::size_t>(blocked.rank);
        if (blocked.rank < 0 || r >= schedule.order.size() || blocked.position < 0) continue;
        const auto& ops = schedule.order[r];
        const bool victim =
            std::find(deadlock.victims.begin(), deadlock.victims.end(), blocked.rank) != deadlock.victims.end();
        // Where there are many victims, only those that wait for the cycle itself are named.
        const bool near =
            std::find(deadlock.cycle.begin(), deadlock.cycle.end(), blocked.onRank) != deadlock.cycle.end();
        if (victim && deadlock.victims.size() > mostVictims && !near) {
            left.push_back(blocked.rank);
            continue;
        }
        const std::string head = fmt::format("rank {:<{}}{}", blocked.rank, digits, victim ? "(victim) " : "");
        std::string tail = blocked.onRank < 0
                               ? std::string(" ⇢ nothing")
                               : fmt::format(" ⇢ {} on rank {}", toText(blocked.waitsFor), blocked.onRank);
        std::string line;
        const std::size_t taken = head.size() + tail.size() + 20; // 20: what is awaited behind a gap
        const auto width = static_cast<std::size_t>(std::max(80, columns));
        const std::size_t room = width > taken + 20 ? width - taken : 20;
        std::size_t first = static_cast<std::size_t>(std::max(0, blocked.position - 2));
        for (std::size_t i = first; i < ops.size(); ++i) {
            const auto mark = marks.find({blocked.rank, static_cast<int>(i)});
            const std::string word =
                mark == marks.end() ? fmt::format(" {} ", toText(ops[i]))
                                    : fmt::format("{}{}{}", mark->second.first, toText(ops[i]), mark->second.second);
            const auto awaited = std::find_if(marks.upper_bound({blocked.rank, static_cast<int>(i)}), marks.end(),
                                              [&](const auto& other) { return other.first.first == blocked.rank; });
            if (line.size() + word.size() > room) {
                if (awaited != marks.end()) // behind what fits
                    line += fmt::format(" … <{}>", toText(ops[static_cast<std::size_t>(awaited->first.second)]));
                else
                    line += " …";
                break;
            }
            line += word;
        }
        out += fmt::format("{}{}{}{}\n", head, first > 0 ? "…" : " ", line, tail);
    }
    if (!left.empty()) out += fmt::format("{}: victims, not drawn\n", rankList(left));
    if (deadlock.cycle.empty()) return out;
    out += "       ";
    for (const int rank : deadlock.cycle) out += fmt::format("rank {} ─► ", rank);
    out += fmt::format("rank {}\n", deadlock.cycle.front());
    return out;
}

} // namespace stagewright
