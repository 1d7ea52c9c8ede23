#include "traces/import/message_pairs.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "schedules/base/median.h"
#include "schedules/base/text.h"
#include "traces/format/format_registry.h"
#include "traces/import/stoppable_sort.h"

namespace stagewright {

namespace {

// "nccl:send 0->1", "nccl:recv 1<-0": own number first.
bool readPeers(std::string_view name, MessageKind& kind, int& own, int& other)
{
    const std::size_t colon = name.find(':');
    if (colon == std::string_view::npos) return false;
    std::string_view rest = name.substr(colon + 1);
    if (rest.starts_with("send "))
        kind = MessageKind::Send;
    else if (rest.starts_with("recv "))
        kind = MessageKind::Receive;
    else
        return false;
    rest.remove_prefix(5);
    const auto number = [&rest](int& to) {
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), to);
        if (error != std::errc() || to < 0) return false;
        rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
        return true;
    };
    if (!number(own)) return false;
    if (!rest.starts_with(kind == MessageKind::Send ? "->" : "<-")) return false;
    rest.remove_prefix(2);
    return number(other) && rest.empty();
}

bool isLibraryRange(std::string_view name)
{
    return name.starts_with("nccl:") || name.starts_with("gloo:") || name.starts_with("mpi:") ||
           name.starts_with("ucc:");
}

// Data of a communication library's ranges on the host: the peers of kernels launched within, or, without kernels, the
// message.
void readRanges(ForeignRank& rank)
{
    struct Range {
        ForeignSpan span;
        MessageKind kind;
        int own, other;
        bool used;
    };
    std::vector<Range> ranges;
    std::vector<std::size_t> collectives;
    for (std::size_t i = 0; i < rank.annotations.size(); ++i) {
        const ForeignSpan& span = rank.annotations[i];
        const std::string& name = rank.names[span.name];
        if (!isLibraryRange(name)) continue;
        Range range{span, MessageKind::Send, -1, -1, false};
        if (readPeers(name, range.kind, range.own, range.other))
            ranges.push_back(range);
        else if (name.find(":send") == std::string::npos && name.find(":recv") == std::string::npos)
            collectives.push_back(i);
    }
    const bool device = std::any_of(rank.messages.begin(), rank.messages.end(),
                                    [](const ForeignMessage& message) { return message.device; });
    if (!ranges.empty()) {
        std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
            return std::pair(a.span.thread, a.span.start) < std::pair(b.span.thread, b.span.start);
        });
        for (ForeignMessage& message : rank.messages) {
            if (message.kind != MessageKind::Collective || message.correlation < 0) continue;
            const auto launch = std::lower_bound(rank.launches.begin(), rank.launches.end(), message.correlation,
                                                 [](const Launch& a, std::int64_t b) { return a.correlation < b; });
            if (launch == rank.launches.end() || launch->correlation != message.correlation) continue;
            auto range = std::upper_bound(
                ranges.begin(), ranges.end(), std::pair(launch->thread, launch->time),
                [](const auto& at, const Range& r) { return at < std::pair(r.span.thread, r.span.start); });
            if (range == ranges.begin()) continue;
            --range;
            if (range->span.thread != launch->thread || range->span.end < launch->time || range->used) continue;
            range->used = true;
            message.kind = range->kind;
            (message.kind == MessageKind::Send ? message.from : message.to) = range->own;
            (message.kind == MessageKind::Send ? message.to : message.from) = range->other;
        }
        if (!device) {
            for (const Range& range : ranges) {
                ForeignMessage message;
                message.start = range.span.start;
                message.end = range.span.end;
                message.kind = range.kind;
                message.name = rank.names.idOf(range.kind == MessageKind::Send ? "send" : "recv");
                message.group = rank.names.idOf("");
                (message.kind == MessageKind::Send ? message.from : message.to) = range.own;
                (message.kind == MessageKind::Send ? message.to : message.from) = range.other;
                rank.messages.push_back(message);
            }
        }
    }
    if (device) return;
    for (const std::size_t i : collectives) {
        const ForeignSpan& span = rank.annotations[i];
        ForeignMessage message;
        message.work = static_cast<std::int64_t>(i);
        message.start = span.start;
        message.end = span.end;
        message.name = span.name;
        message.group = rank.names.idOf("");
        rank.messages.push_back(message);
    }
}

struct GroupSense { // the meaning of numbers in a group
    std::vector<int> ranks;
    int global = 0;
    int local = 0;
    bool translated = false;
};

int placeIn(const std::vector<int>& ranks, int rank)
{
    const auto found = std::find(ranks.begin(), ranks.end(), rank);
    return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

// Ranks of groups whose members know only their own place. In a group of two whose creation was not traced the peer is
// the other rank.
void listGroups(std::vector<ForeignRank>& ranks, MessagePairs& out)
{
    std::map<std::string, std::map<int, int>> places; // by group and place: the rank
    // by group and rank given: the places it talks to
    std::map<std::string, std::map<std::size_t, std::set<int>>> peers;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        for (const auto& [group, place] : ranks[r].placeInGroup) places[group].emplace(place, ranks[r].rank);
        for (const ForeignMessage& message : ranks[r].messages)
            if (message.inGroup && message.kind != MessageKind::Collective)
                peers[ranks[r].names[message.group]][r].insert(message.kind == MessageKind::Send ? message.to
                                                                                                 : message.from);
    }
    for (const auto& [group, of] : peers) {
        auto& known = places[group];
        const auto& [first, toFirst] = *of.begin();
        const auto& [last, toLast] = *of.rbegin();
        if (known.empty() && of.size() == 2 && toFirst.size() == 1 && toLast.size() == 1 &&
            *toFirst.begin() != *toLast.begin()) {
            known[*toFirst.begin()] = ranks[last].rank;
            known[*toLast.begin()] = ranks[first].rank;
        }
        if (known.empty())
            out.notes.push_back(fmt::format(
                "communicator {} was created before the trace started, so its messages' receivers are unknown", group));
        std::vector<int> list;
        for (const auto& [place, rank] : known) {
            if (place < 0 || place >= 1 << 14) continue;
            list.resize(static_cast<std::size_t>(place) + 1, -1);
            list.back() = rank;
        }
        for (const auto& [r, to] : of) ranks[r].groups[group] = list;
    }
}

void translate(std::vector<ForeignRank>& ranks, MessagePairs& out)
{
    std::map<std::pair<std::string, std::vector<int>>, GroupSense> groups; // pipelines of one job share names of groups
    const auto senseOf = [&](const ForeignRank& rank, const ForeignMessage& message) -> GroupSense* {
        const std::string& name = rank.names[message.group];
        const auto known = rank.groups.find(name);
        if (known == rank.groups.end()) return nullptr;
        GroupSense& sense = groups[{name, known->second}];
        sense.ranks = known->second;
        return &sense;
    };
    for (ForeignRank& rank : ranks) {
        for (const ForeignMessage& message : rank.messages) {
            if (message.kind == MessageKind::Collective || message.inGroup) continue;
            GroupSense* sense = senseOf(rank, message);
            if (sense == nullptr) continue;
            const int own = message.kind == MessageKind::Send ? message.from : message.to;
            const int place = placeIn(sense->ranks, rank.rank);
            if (place >= 0 && place != rank.rank && own == rank.rank) ++sense->global;
            if (place >= 0 && place != rank.rank && own == place) ++sense->local;
            for (const int end : {message.from, message.to}) {
                if (end >= 0 && placeIn(sense->ranks, end) < 0) ++sense->local;
                if (end >= static_cast<int>(sense->ranks.size())) ++sense->global;
            }
        }
    }
    for (ForeignRank& rank : ranks) {
        for (ForeignMessage& message : rank.messages) {
            if (message.kind == MessageKind::Collective) continue;
            GroupSense* sense = senseOf(rank, message);
            if (message.inGroup) {
                int& peer = message.kind == MessageKind::Send ? message.to : message.from;
                peer = sense != nullptr && peer >= 0 && peer < static_cast<int>(sense->ranks.size())
                           ? sense->ranks[static_cast<std::size_t>(peer)]
                           : -1;
            } else if (sense != nullptr && sense->local > sense->global) {
                for (int* end : {&message.from, &message.to})
                    if (*end >= 0)
                        *end = *end < static_cast<int>(sense->ranks.size())
                                   ? sense->ranks[static_cast<std::size_t>(*end)]
                                   : -1;
                if (!sense->translated)
                    out.notes.push_back(
                        fmt::format("process group '{}' numbers its own ranks: translated to ranks of the job",
                                    rank.names[message.group]));
                sense->translated = true;
            }
            int& own = message.kind == MessageKind::Send ? message.from : message.to;
            own = rank.rank;
        }
    }
}

using Ends = std::vector<MessageEnd>;

class Pairing {
public:
    Pairing(std::vector<ForeignRank>& ranks, MessagePairs& out) : m_ranks(ranks), m_out(out) {}

    void pointToPoint()
    {
        // from, to, tag, communicator
        std::map<std::tuple<int, int, std::int64_t, std::string>, std::pair<Ends, Ends>> channels;
        std::set<int> here;
        for (const ForeignRank& rank : m_ranks) here.insert(rank.rank);
        for (std::uint32_t r = 0; r < m_ranks.size(); ++r) {
            for (std::uint32_t i = 0; i < m_ranks[r].messages.size(); ++i) {
                const ForeignMessage& message = m_ranks[r].messages[i];
                if (message.kind == MessageKind::Collective) continue;
                const int peer = message.kind == MessageKind::Send ? message.to : message.from;
                if (peer >= 0 && !message.inGroup && !here.contains(peer)) m_out.absent.insert(peer);
                if (message.from < 0 || message.to < 0) {
                    ++m_out.unpaired;
                    continue;
                }
                auto& [sends, receives] = channels[{message.from, message.to, message.tag,
                                                    message.inGroup ? m_ranks[r].names[message.group] : std::string()}];
                (message.kind == MessageKind::Send ? sends : receives).push_back({r, i});
            }
        }
        for (auto& [key, ends] : channels) pairChannel(ends.first, ends.second);
        std::int64_t unequal = 0;
        for (const MessagePairs::Pair& pair : m_out.pairs)
            unequal +=
                at(pair.send).bytes >= 0 && at(pair.receive).bytes >= 0 && at(pair.send).bytes != at(pair.receive).bytes
                    ? 1
                    : 0;
        if (unequal > 0)
            m_out.notes.push_back(fmt::format("{} of {} messages have different sizes at sender and receiver", unequal,
                                              m_out.pairs.size()));
    }

    void collectives()
    {
        // group, name, its ranks
        std::map<std::tuple<std::string, std::string, std::vector<int>>, std::map<std::uint32_t, Ends>> sets;
        for (std::uint32_t r = 0; r < m_ranks.size(); ++r) {
            ForeignRank& rank = m_ranks[r];
            for (std::uint32_t i = 0; i < rank.messages.size(); ++i) {
                const ForeignMessage& message = rank.messages[i];
                if (message.kind != MessageKind::Collective) continue;
                const std::string& group = rank.names[message.group];
                const auto members = rank.groups.find(group);
                sets[{group, rank.names[message.name],
                      members == rank.groups.end() ? std::vector<int>() : members->second}][r]
                    .push_back({r, i});
            }
        }
        for (auto& [key, byRank] : sets) {
            const std::size_t before = m_out.collectives.size();
            pairSet(byRank);
            m_out.lackingCollectives +=
                std::count_if(m_out.collectives.begin() + static_cast<std::ptrdiff_t>(before), m_out.collectives.end(),
                              [&](const Ends& ends) { return ends.size() < std::get<2>(key).size(); });
        }
    }

private:
    ForeignMessage& at(const MessageEnd& end) const { return m_ranks[end.rank].messages[end.message]; }
    Nanos begin(const MessageEnd& end) const { return at(end).start + m_ranks[end.rank].epoch; }
    Nanos finish(const MessageEnd& end) const { return at(end).end + m_ranks[end.rank].epoch; }

    void inOrder(Ends& ends) const
    {
        std::stable_sort(ends.begin(), ends.end(),
                         [this](const MessageEnd& a, const MessageEnd& b) { return at(a).start < at(b).start; });
    }

    void pairChannel(Ends& sends, Ends& receives)
    {
        inOrder(sends);
        inOrder(receives);
        const std::size_t all = sends.size() + receives.size();
        const std::size_t before = m_out.pairs.size();
        std::map<std::int64_t, MessageEnd> bySequence;
        bool numbered = true;
        for (const MessageEnd& send : sends)
            numbered = at(send).sequence >= 0 && bySequence.emplace(at(send).sequence, send).second && numbered;
        std::vector<MessagePairs::Pair> found;
        if (numbered)
            for (const MessageEnd& receive : receives)
                if (const auto send = bySequence.find(at(receive).sequence); send != bySequence.end())
                    found.push_back({send->second, receive});
        // Numbers that do not meet count something else on either side.
        if (found.size() * 2 >= std::min(sends.size(), receives.size()) && !found.empty()) {
            m_out.pairs.insert(m_out.pairs.end(), found.begin(), found.end());
        } else {
            for (std::size_t i = 0; i < std::min(sends.size(), receives.size()); ++i)
                m_out.pairs.push_back({sends[i], receives[i]});
        }
        m_out.unpaired += static_cast<std::int64_t>(all - 2 * (m_out.pairs.size() - before));
    }

    void pairSet(std::map<std::uint32_t, Ends>& byRank)
    {
        std::size_t count = 0;
        bool numbered = true;
        bool even = true;
        std::size_t all = 0;
        for (auto& [rank, ends] : byRank) {
            inOrder(ends);
            all += ends.size();
            even = even && (count == 0 || ends.size() == count);
            count = ends.size();
            std::set<std::int64_t> numbers;
            for (const MessageEnd& end : ends)
                numbered = numbered && at(end).sequence >= 0 && numbers.insert(at(end).sequence).second;
        }
        if (byRank.size() < 2) {
            m_out.unpairedCollectives += static_cast<std::int64_t>(all);
            return;
        }
        std::map<std::int64_t, Ends> together;
        for (const auto& [rank, ends] : byRank)
            for (std::size_t i = 0; i < ends.size(); ++i)
                together[numbered ? at(ends[i]).sequence : static_cast<std::int64_t>(i)].push_back(ends[i]);
        if (!numbered) {
            std::map<std::int64_t, Ends> ofSteps = matchedBySteps(byRank);
            if (!ofSteps.empty())
                together = std::move(ofSteps);
            else if (!even || !overlapMostly(together, clocksAhead(byRank, true)))
                together = matchedByTime(byRank, clocksAhead(byRank, false));
            if (together.empty()) {
                m_out.unpairedCollectives += static_cast<std::int64_t>(all);
                return;
            }
        }
        for (auto& [number, ends] : together) {
            if (ends.size() < 2)
                m_out.unpairedCollectives += static_cast<std::int64_t>(ends.size());
            else
                m_out.collectives.push_back(std::move(ends));
        }
    }

    bool overlapMostly(const std::map<std::int64_t, Ends>& together, const std::map<std::uint32_t, Nanos>& ahead) const
    {
        const auto overlapping = std::count_if(together.begin(), together.end(),
                                               [&](const auto& one) { return overlap(one.second, ahead); });
        return static_cast<std::size_t>(overlapping) * 10 >= together.size() * 9;
    }

    // The profiler's steps of a rank, "ProfilerStep#12", by start.
    struct MarkedStep {
        Nanos begin = 0, end = 0;
        std::int64_t number = 0;
    };
    const std::vector<MarkedStep>& stepsOf(std::uint32_t rank) const
    {
        const auto [entry, added] = m_steps.try_emplace(rank);
        if (!added) return entry->second;
        constexpr std::string_view mark = "ProfilerStep#";
        const ForeignRank& of = m_ranks[rank];
        for (const ForeignSpan& range : of.annotations)
            if (const std::string_view name = of.names[range.name]; name.starts_with(mark))
                if (const auto number = wholeOf<std::int64_t>(name.substr(mark.size())))
                    entry->second.push_back({range.start, range.end, *number});
        std::sort(entry->second.begin(), entry->second.end(),
                  [](const MarkedStep& a, const MarkedStep& b) { return a.begin < b.begin; });
        return entry->second;
    }

    // The step of its launch, where that is known; nothing: in no marked step.
    std::optional<std::int64_t> stepOf(const MessageEnd& end) const
    {
        const ForeignMessage& message = at(end);
        Nanos time = message.start;
        if (message.device && message.work >= 0) {
            const DeviceSpan& work = m_ranks[end.rank].device[static_cast<std::size_t>(message.work)];
            if (work.launchedFrom != noThread) time = work.launched;
        }
        const auto& steps = stepsOf(end.rank);
        const auto next = std::upper_bound(steps.begin(), steps.end(), time,
                                           [](Nanos t, const MarkedStep& step) { return t < step.begin; });
        if (next == steps.begin() || time > std::prev(next)->end) return std::nullopt;
        return std::prev(next)->number;
    }

    // Those at the same place of the same marked step. Nothing where some are in no step, or ranks have other numbers
    // of them in a step.
    std::map<std::int64_t, Ends> matchedBySteps(const std::map<std::uint32_t, Ends>& byRank) const
    {
        std::map<std::pair<std::int64_t, std::int64_t>, Ends> byPlace;
        std::map<std::int64_t, std::int64_t> counts; // of a step
        for (const auto& [rank, ends] : byRank) {
            std::map<std::int64_t, std::int64_t> own;
            for (const MessageEnd& end : ends) {
                const auto step = stepOf(end);
                if (!step) return {};
                byPlace[{*step, own[*step]++}].push_back(end);
            }
            for (const auto& [step, count] : own)
                if (counts.try_emplace(step, count).first->second != count) return {};
        }
        std::map<std::int64_t, Ends> together;
        for (auto& [place, ends] : byPlace) together[std::ssize(together)] = std::move(ends);
        return together;
    }

    // Without numbers, where some rank lacks some: each rank's are matched in order to those of the rank that has most,
    // so that matched ones overlap and as few as can be are left alone; among such matches the one whose ends differ
    // least. By number; empty: less than half can be matched.
    std::map<std::int64_t, Ends> matchedByTime(const std::map<std::uint32_t, Ends>& byRank,
                                               const std::map<std::uint32_t, Nanos>& ahead) const
    {
        const auto most = std::max_element(byRank.begin(), byRank.end(), [](const auto& a, const auto& b) {
            return a.second.size() < b.second.size();
        });
        const Ends& whole = most->second;
        std::map<std::int64_t, Ends> together;
        std::int64_t lonely = -1;
        for (std::size_t i = 0; i < whole.size(); ++i) together[static_cast<std::int64_t>(i)].push_back(whole[i]);
        for (const auto& [rank, ends] : byRank) {
            if (rank == most->first) continue;
            const auto places = placesIn(whole, ends, ahead);
            std::size_t matched = 0;
            for (std::size_t i = 0; i < ends.size(); ++i) {
                const bool alone = i >= places.size() || places[i] < 0;
                matched += alone ? 0 : 1;
                together[alone ? lonely-- : places[i]].push_back(ends[i]);
            }
            if (matched * 2 < ends.size()) return {};
        }
        return together;
    }

    // For each of `ends` its counterpart's place in `whole`, which has as many or more; −1: none. Nothing: they are too
    // many and differ by too many.
    std::vector<std::int64_t> placesIn(const Ends& whole, const Ends& ends,
                                       const std::map<std::uint32_t, Nanos>& ahead) const
    {
        constexpr std::size_t spare = 8, mostCells = 50'000'000; // how many more may be missing on either side
        constexpr double alone = 500'000;                        // ns of difference that are as bad as one left alone
        const std::size_t n = ends.size(), missing = whole.size() - n, width = missing + 2 * spare + 1;
        if (n == 0 || n > mostCells / width) return {};
        // cost(i, j): the best match of the first i of ends and j of whole, |j − i| within the width. steps: how the
        // best one ends.
        enum Step : std::uint8_t {
            None,
            Both,
            SkipOwn,
            SkipWhole,
        };
        const double never = std::numeric_limits<double>::infinity();
        std::vector<double> before(width, never), now(width, never);
        std::vector<Step> steps((n + 1) * width, None);
        for (std::size_t i = 0; i <= n; ++i) {
            std::fill(now.begin(), now.end(), never);
            for (std::size_t d = 0; d < width; ++d) { // j = i + d − spare
                if (i + d < spare || i + d - spare > whole.size()) continue;
                const std::size_t j = i + d - spare;
                Step& step = steps[i * width + d];
                if (i == 0 && j == 0) now[d] = 0;
                const auto offer = [&](double cost, Step as) {
                    if (cost < now[d]) now[d] = cost, step = as;
                };
                if (i > 0 && j > 0 && before[d] < never && overlap({ends[i - 1], whole[j - 1]}, ahead))
                    offer(before[d] +
                              std::abs(static_cast<double>((finish(ends[i - 1]) - ahead.at(ends[i - 1].rank)) -
                                                           (finish(whole[j - 1]) - ahead.at(whole[j - 1].rank)))),
                          Both);
                if (i > 0 && d + 1 < width) offer(before[d + 1] + alone, SkipOwn);
                if (j > 0 && d > 0) offer(now[d - 1] + alone, SkipWhole);
            }
            std::swap(before, now);
        }
        std::vector<std::int64_t> places(n, -1);
        std::size_t i = n, d = whole.size() + spare - n;
        while (i > 0 && d < width) {
            const Step step = steps[i * width + d];
            if (step == None) return {};
            if (step == Both) places[i - 1] = static_cast<std::int64_t>(i + d - spare) - 1;
            if (step == SkipWhole) {
                --d;
                continue;
            }
            d += step == SkipOwn ? 1 : 0;
            --i;
        }
        return places;
    }

    // By how much the clocks of other files seem ahead of the first rank's, from the ends of what they took part in in
    // order: a collective ends for all at about the same time. Hosts agree within a second.
    std::map<std::uint32_t, Nanos> clocksAhead(const std::map<std::uint32_t, Ends>& byRank, bool ofAll) const
    {
        constexpr Nanos most = 1'000'000'000;
        const auto& [first, own] = *byRank.begin();
        std::map<std::uint32_t, Nanos> ahead;
        for (const auto& [rank, ends] : byRank) {
            ahead[rank] = 0;
            if (m_ranks[rank].source == m_ranks[first].source || (!ofAll && !holdsHostExports(m_ranks[rank].format)))
                continue;
            std::vector<Nanos> differences;
            for (std::size_t i = 0; i < std::min(own.size(), ends.size()); ++i)
                differences.push_back(finish(ends[i]) - finish(own[i]));
            if (const Nanos usual = upperMedian(std::move(differences)); std::abs(usual) <= most) ahead[rank] = usual;
        }
        return ahead;
    }

    // The order alone does not prove that they belong together: they must overlap, up to the clock error.
    bool overlap(const Ends& ends, const std::map<std::uint32_t, Nanos>& ahead) const
    {
        constexpr Nanos clocks = 1'000'000;
        Nanos last = std::numeric_limits<Nanos>::min();
        Nanos first = std::numeric_limits<Nanos>::max();
        for (const MessageEnd& end : ends) {
            last = std::max(last, begin(end) - ahead.at(end.rank));
            first = std::min(first, finish(end) - ahead.at(end.rank));
        }
        return last <= first + clocks;
    }

    std::vector<ForeignRank>& m_ranks;
    MessagePairs& m_out;
    mutable std::map<std::uint32_t, std::vector<MarkedStep>> m_steps; // by rank
};

} // namespace

MessagePairs pairMessages(std::vector<ForeignRank>& ranks, const std::stop_token& stop)
{
    MessagePairs out;
    for (ForeignRank& rank : ranks) {
        sortStoppable(
            rank.launches.begin(), rank.launches.end(),
            [](const Launch& a, const Launch& b) {
                return std::tie(a.correlation, a.time) < std::tie(b.correlation, b.time);
            },
            stop);
        if (stop.stop_requested()) return out;
        readRanges(rank);
    }
    listGroups(ranks, out);
    translate(ranks, out);
    Pairing pairing(ranks, out);
    pairing.pointToPoint();
    pairing.collectives();
    return out;
}

} // namespace stagewright
