#include "traces/import/kineto/process_ranks.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "traces/foreign/export_groups.h"
#include "traces/import/kineto/kineto_event.h"

namespace stagewright {

namespace {

constexpr std::size_t ofNone = std::numeric_limits<std::size_t>::max();

// Moves what a file holds to its ranks. Owners by thread, but for device work, whose stream may be several processes'.
class Split {
public:
    using OwnerOfWork = std::function<std::size_t(std::size_t work)>; // by place in ForeignRank::device

    Split(ForeignRank whole, std::size_t ranks, std::vector<std::size_t> owners, OwnerOfWork ofWork)
        : m_whole(std::move(whole)), m_owners(std::move(owners)), m_ofWork(std::move(ofWork)), m_out(ranks),
          m_threads(ranks)
    {
    }

    std::vector<ForeignRank> ranks()
    {
        for (ForeignRank& rank : m_out) {
            rank.source = m_whole.source;
            rank.format = m_whole.format;
            rank.run = m_whole.run;
            rank.host = m_whole.host;
            rank.epoch = m_whole.epoch;
            rank.clock = m_whole.clock;
            rank.worldSize = m_whole.worldSize;
            rank.groups = m_whole.groups;
            rank.groupPurpose = m_whole.groupPurpose;
        }
        for (auto list : {&ForeignRank::annotations, &ForeignRank::deviceAnnotations, &ForeignRank::hostOps})
            for (const ForeignSpan& span : m_whole.*list)
                (m_out[ownerOf(span.thread)].*list).push_back(moved(span, ownerOf(span.thread)));
        sharedSteps();
        device();
        launches();
        messages();
        for (MemoryChangeSeen seen : m_whole.memory) {
            const std::size_t to = ownerOf(seen.thread);
            seen.thread = threadIn(to, seen.thread);
            m_out[to].memory.push_back(seen);
        }
        ForeignRank& first = m_out.front();
        first.counters = std::move(m_whole.counters);
        first.environment = std::move(m_whole.environment);
        first.leftOut = std::move(m_whole.leftOut);
        first.events = m_whole.events;
        first.damaged = m_whole.damaged;
        first.repaired = m_whole.repaired;
        first.notes = std::move(m_whole.notes);
        return std::move(m_out);
    }

private:
    std::size_t ownerOf(std::uint32_t thread) const { return hasOwner(thread) ? m_owners[thread] : 0; }

    bool hasOwner(std::uint32_t thread) const { return thread < m_owners.size() && m_owners[thread] != ofNone; }

    // A step of a process without a rank, such as the host of several devices, is a step of all ranks.
    void sharedSteps()
    {
        for (const ForeignSpan& span : m_whole.annotations)
            if (!hasOwner(span.thread) && m_whole.names[span.name].starts_with("ProfilerStep#"))
                for (std::size_t to = 1; to < m_out.size(); ++to) m_out[to].annotations.push_back(moved(span, to));
    }

    // What such a process launched is of the rank whose device did it.
    void launches()
    {
        std::unordered_map<std::int64_t, std::size_t> doers;
        for (std::size_t i = 0; i < m_places.size(); ++i)
            doers.try_emplace(m_whole.device[i].correlation, m_places[i].first);
        for (Launch launch : m_whole.launches) {
            const auto doer = hasOwner(launch.thread) ? doers.end() : doers.find(launch.correlation);
            const std::size_t to = doer == doers.end() ? ownerOf(launch.thread) : doer->second;
            launch.thread = threadIn(to, launch.thread);
            m_out[to].launches.push_back(launch);
        }
    }

    std::uint32_t threadIn(std::size_t rank, std::uint32_t thread)
    {
        const auto [entry, added] =
            m_threads[rank].try_emplace(thread, static_cast<std::uint32_t>(m_out[rank].threads.size()));
        if (added) m_out[rank].threads.push_back(m_whole.threads[thread]);
        return entry->second;
    }

    std::uint32_t nameIn(std::size_t rank, std::uint32_t name)
    {
        return m_out[rank].names.idOf(m_whole.names[name], m_whole.names.shapeOf(name));
    }

    ForeignSpan moved(const ForeignSpan& span, std::size_t rank)
    {
        return {span.start, span.end, nameIn(rank, span.name), threadIn(rank, span.thread)};
    }

    void device()
    {
        m_places.resize(m_whole.device.size());
        for (std::size_t i = 0; i < m_whole.device.size(); ++i) {
            DeviceSpan span = m_whole.device[i];
            const std::size_t to = m_ofWork(i);
            static_cast<ForeignSpan&>(span) = moved(span, to);
            if (span.launchedFrom != noThread) span.launchedFrom = threadIn(to, span.launchedFrom);
            m_places[i] = {to, m_out[to].device.size()};
            m_out[to].device.push_back(span);
        }
        for (const auto& [work, bytes] : m_whole.copyBytes)
            m_out[m_places[work].first].copyBytes.emplace_back(static_cast<std::uint32_t>(m_places[work].second),
                                                               bytes);
        for (const auto& [work, time] : m_whole.laterCalls)
            m_out[m_places[work].first].laterCalls.emplace_back(static_cast<std::uint32_t>(m_places[work].second),
                                                                time);
    }

    void messages()
    {
        for (ForeignMessage message : m_whole.messages) {
            const bool ofWork = message.device && message.work >= 0;
            const std::size_t to =
                ofWork ? m_places[static_cast<std::size_t>(message.work)].first : ownerOf(message.thread);
            if (ofWork)
                message.work = static_cast<std::int64_t>(m_places[static_cast<std::size_t>(message.work)].second);
            message.name = nameIn(to, message.name);
            message.group = nameIn(to, message.group);
            m_out[to].messages.push_back(message);
        }
    }

    ForeignRank m_whole;
    std::vector<std::size_t> m_owners; // by thread
    OwnerOfWork m_ofWork;
    std::vector<ForeignRank> m_out;
    std::vector<std::map<std::uint32_t, std::uint32_t>> m_threads; // by rank: a thread's number there
    std::vector<std::pair<std::size_t, std::size_t>> m_places;     // of device work: rank, index there
};

std::vector<std::int64_t> numbersIn(std::string_view text)
{
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i;
        while (end < text.size() && isDigit(text[end])) ++end;
        if (end > i && end - i <= 6) numbers.push_back(wholeNumberOf(text.substr(i, end - i)).value_or(-1));
        i = std::max(end, i + 1);
    }
    return numbers;
}

// The one number in which the texts differ, of each; empty if there is none, or two are the same.
std::vector<int> numbersOf(const std::vector<std::string>& texts)
{
    std::vector<std::vector<std::int64_t>> all;
    for (const std::string& text : texts) all.push_back(numbersIn(text));
    std::optional<std::size_t> differs;
    for (const auto& numbers : all) {
        if (numbers.size() != all.front().size()) return {};
        for (std::size_t k = 0; k < numbers.size(); ++k) {
            if (numbers[k] == all.front()[k]) continue;
            if (differs && *differs != k) return {};
            differs = k;
        }
    }
    if (!differs) return {};
    std::vector<int> out;
    std::set<int> seen;
    for (const auto& numbers : all) {
        out.push_back(static_cast<int>(numbers[*differs]));
        if (!seen.insert(out.back()).second) return {};
    }
    return out;
}

// All of a thread or stream is one rank's; what is of none is the first one's.
std::vector<ForeignRank> byThread(ForeignRank whole, std::size_t ranks, const std::vector<std::size_t>& owners)
{
    std::vector<std::size_t> ofWork;
    ofWork.reserve(whole.device.size());
    for (const DeviceSpan& work : whole.device)
        ofWork.push_back(owners[work.thread] == ofNone ? 0 : owners[work.thread]);
    return Split(std::move(whole), ranks, owners, [&ofWork](std::size_t work) { return ofWork[work]; }).ranks();
}

// By the numbers in the names of processes, "rank 3", where nothing says who launched what.
std::vector<ForeignRank> byName(const TraceThreads& threads, ForeignRank whole, const std::map<std::string, int>& named)
{
    std::set<int> numbers;
    for (const auto& [process, number] : named) numbers.insert(number);
    std::vector<std::size_t> owners;
    for (const std::string& process : threads.processes()) {
        const auto found = named.find(process);
        owners.push_back(found == named.end()
                             ? ofNone
                             : static_cast<std::size_t>(std::distance(numbers.begin(), numbers.find(found->second))));
    }
    auto out = byThread(std::move(whole), numbers.size(), owners);
    auto number = numbers.begin();
    for (ForeignRank& rank : out) rank.rank = *number++;
    return out;
}

std::vector<ForeignRank> byTag(const TraceThreads& threads, std::map<std::string, GroupsOfTag, std::less<>> groups,
                               ForeignRank whole, std::vector<std::string> tags)
{
    std::sort(tags.begin(), tags.end(), [](const std::string& a, const std::string& b) { return naturalLess(a, b); });
    std::vector<std::size_t> owners;
    for (const std::string& process : threads.processes()) {
        const auto found = std::find(tags.begin(), tags.end(), processTag(process));
        owners.push_back(found == tags.end() ? ofNone : static_cast<std::size_t>(found - tags.begin()));
    }
    auto out = byThread(std::move(whole), tags.size(), owners);
    const std::vector<int> numbers = numbersOf(tags);
    for (std::size_t r = 0; r < out.size(); ++r) {
        out[r].rank = numbers.empty() ? static_cast<int>(r) : numbers[r];
        if (auto own = groups.find(tags[r]); own != groups.end())
            std::tie(out[r].groups, out[r].groupPurpose) = std::move(own->second);
    }
    return out;
}

// By the calls: correlations are of a process.
std::vector<ForeignRank> byLaunches(const TraceThreads& threads, ForeignRank whole, std::vector<std::string> hosts)
{
    std::sort(hosts.begin(), hosts.end(), [](const std::string& a, const std::string& b) { return naturalLess(a, b); });
    struct Call {
        std::int64_t correlation;
        Nanos time;
        std::size_t host;
    };
    const auto hostOf = [&](std::uint32_t thread) {
        return static_cast<std::size_t>(std::find(hosts.begin(), hosts.end(), threads.processes()[thread]) -
                                        hosts.begin());
    };
    std::vector<std::size_t> owners;
    for (std::uint32_t thread = 0; thread < threads.processes().size(); ++thread)
        owners.push_back(!whole.threads[thread].device && hostOf(thread) < hosts.size() ? hostOf(thread) : ofNone);
    std::vector<Call> calls;
    calls.reserve(whole.launches.size());
    for (const Launch& launch : whole.launches)
        calls.push_back({launch.correlation, launch.time, owners[launch.thread]});
    std::sort(calls.begin(), calls.end(), [](const Call& a, const Call& b) {
        return std::tie(a.correlation, a.time, a.host) < std::tie(b.correlation, b.time, b.host);
    });
    // By work: how many processes made its call, and which one it is of. Several did: the calls of a number and its
    // works in order, where they are as many; else who called last before the work started.
    std::vector<std::pair<std::size_t, std::size_t>> callers(whole.device.size(), {0, ofNone});
    std::vector<std::size_t> works(whole.device.size());
    for (std::size_t i = 0; i < works.size(); ++i) works[i] = i;
    std::sort(works.begin(), works.end(), [&whole](std::size_t a, std::size_t b) {
        const DeviceSpan &x = whole.device[a], &y = whole.device[b];
        return std::tie(x.correlation, x.start, a) < std::tie(y.correlation, y.start, b);
    });
    for (std::size_t first = 0; first < works.size();) {
        const std::int64_t correlation = whole.device[works[first]].correlation;
        std::size_t last = first;
        while (last < works.size() && whole.device[works[last]].correlation == correlation) ++last;
        const auto begin = std::lower_bound(calls.begin(), calls.end(), correlation,
                                            [](const Call& a, std::int64_t b) { return a.correlation < b; });
        auto end = begin;
        std::set<std::size_t> all;
        for (; correlation >= 0 && end != calls.end() && end->correlation == correlation; ++end) all.insert(end->host);
        const bool asMany = static_cast<std::size_t>(end - begin) == last - first;
        for (std::size_t k = first; k < last; ++k) {
            std::size_t host = ofNone;
            if (asMany) host = (begin + static_cast<std::ptrdiff_t>(k - first))->host;
            for (auto at = begin; !asMany && at != end; ++at)
                if (all.size() == 1 || at->time <= whole.device[works[k]].start) host = at->host;
            callers[works[k]] = {all.size(), host};
        }
        first = last;
    }
    std::map<std::string, std::map<std::size_t, std::int64_t>> certain, likely; // by device's process: works by caller
    for (std::size_t i = 0; i < whole.device.size(); ++i) {
        const auto [count, host] = callers[i];
        if (host == ofNone) continue;
        const std::string& process = threads.processes()[whole.device[i].thread];
        ++likely[process][host];
        if (count == 1) ++certain[process][host];
    }
    // A device's process is one rank's where the calls agree: a call of the same number in another process is nearer
    // now and then.
    std::map<std::string, std::size_t> ofDevice;
    std::set<std::size_t> taken;
    for (const auto& [process, votes] : likely) {
        const auto sure = certain.find(process);
        const auto& counts = sure == certain.end() ? votes : sure->second;
        std::int64_t all = 0;
        for (const auto& [host, count] : counts) all += count;
        const auto most = std::max_element(counts.begin(), counts.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
        if (most->second * 10 >= all * 9) ofDevice[process] = most->first;
    }
    for (const auto& [process, host] : ofDevice) taken.insert(host);
    // As many devices as processes, and no call says whose they are: in the order of both.
    if (certain.empty() && likely.size() == hosts.size() && taken.size() != hosts.size()) {
        std::vector<std::string> devices;
        for (const auto& [process, votes] : likely) devices.push_back(process);
        std::sort(devices.begin(), devices.end(),
                  [](const std::string& a, const std::string& b) { return naturalLess(a, b); });
        for (std::size_t i = 0; i < devices.size(); ++i) ofDevice[devices[i]] = i;
    }
    for (std::uint32_t thread = 0; thread < threads.processes().size(); ++thread)
        if (const auto found = ofDevice.find(threads.processes()[thread]);
            whole.threads[thread].device && found != ofDevice.end())
            owners[thread] = found->second;
    std::vector<std::size_t> ofWork;
    ofWork.reserve(whole.device.size());
    for (std::size_t i = 0; i < whole.device.size(); ++i) {
        const std::size_t owner = owners[whole.device[i].thread];
        const std::size_t host = owner != ofNone ? owner : callers[i].second;
        ofWork.push_back(host == ofNone ? 0 : host);
    }
    std::vector<std::set<int>> gpus(hosts.size());
    for (const auto& [process, host] : ofDevice)
        gpus[host].insert(static_cast<int>(wholeNumberOf(process).value_or(-1)));
    auto out =
        Split(std::move(whole), hosts.size(), owners, [&ofWork](std::size_t work) { return ofWork[work]; }).ranks();
    std::set<int> numbers; // a GPU each: in their order
    for (const auto& of : gpus) numbers.insert(of.size() == 1 ? *of.begin() : -1);
    const bool oneEach = numbers.size() == out.size() && *numbers.begin() >= 0;
    std::vector<std::size_t> order(out.size());
    for (std::size_t r = 0; r < order.size(); ++r) order[r] = r;
    if (oneEach)
        std::sort(order.begin(), order.end(),
                  [&](std::size_t a, std::size_t b) { return *gpus[a].begin() < *gpus[b].begin(); });
    for (std::size_t r = 0; r < order.size(); ++r) out[order[r]].rank = static_cast<int>(r);
    return out;
}

} // namespace

std::string_view processTag(std::string_view process)
{
    std::size_t begin = process.size();
    while (begin > 0 && isDigit(process[begin - 1])) --begin;
    const std::string_view tag = process.substr(0, begin);
    const bool word =
        std::any_of(tag.begin(), tag.end(), [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
    return begin == process.size() || begin == 1 || !word ? std::string_view() : tag; // "3_0" is of an NPU
}

std::vector<ForeignRank> ranksOfKineto(const TraceThreads& threads,
                                       std::map<std::string, GroupsOfTag, std::less<>> groups, ForeignRank whole,
                                       bool ofDevices)
{
    std::set<std::string> tags, hosts;
    bool untagged = false;
    for (std::uint32_t thread = 0; thread < threads.processes().size(); ++thread) {
        const std::string_view tag = processTag(threads.processes()[thread]);
        if (tag.empty())
            untagged = untagged || whole.threads[thread].device;
        else
            tags.insert(std::string(tag));
    }
    for (const Launch& launch : whole.launches) hosts.insert(threads.processes()[launch.thread]);
    std::vector<ForeignRank> out;
    const std::map<std::string, int> named = threads.namedRanks();
    if ((hosts.empty() || ofDevices) && named.size() > 1)
        out = byName(threads, std::move(whole), named);
    else if (tags.size() > 1 && !untagged)
        out = byTag(threads, std::move(groups), std::move(whole), {tags.begin(), tags.end()});
    else if (hosts.size() > 1)
        out = byLaunches(threads, std::move(whole), {hosts.begin(), hosts.end()});
    else
        out.push_back(std::move(whole));
    if (out.size() > 1)
        out.front().notes.push_back(
            ofDevices ? fmt::format("its {} devices are {} ranks, and the host's ranges are beside the first one",
                                    out.size(), out.size())
                      : fmt::format("its {} processes are {} ranks merged into one file", out.size(), out.size()));
    for (ForeignRank& rank : out) nameStreamsByGpu(rank);
    return out;
}

} // namespace stagewright
