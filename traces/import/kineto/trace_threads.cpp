#include "traces/import/kineto/trace_threads.h"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/format.h>

#include "schedules/base/text.h"
#include "traces/import/kineto/kineto_event.h"
#include "traces/import/kineto/xla_devices.h"

namespace stagewright {

namespace {

// "rank 3", "job, worker 1", "GPU 0", "/device:GPU:0", "process 2": the number; −1: the process is not a rank by its
// name. A number alone may count anything: "layer_3".
int rankOfProcess(std::string_view name)
{
    std::string text = lowered(name);
    for (char& c : text)
        if (c == ' ' || c == ':') c = '_';
    if (text.starts_with("/device_")) text.erase(0, xlaDevicePrefix.size());
    const RankInName found = rankInName(text);
    if (found.said) return found.rank;
    for (const std::string_view word : {"gpu", "process", "proc"}) {
        if (!text.starts_with(word)) continue;
        std::size_t at = word.size();
        if (at < text.size() && text[at] == '_') ++at;
        if (at < text.size() && text.size() - at <= 6 &&
            std::all_of(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), isDigit))
            return std::stoi(text.substr(at));
    }
    return -1;
}

} // namespace

std::uint32_t TraceThreads::of(std::string_view process, std::string_view thread, bool device, ForeignRank& rank)
{
    Last& last = m_last[device ? 1 : 0];
    if (last.known && process == last.process && thread == last.thread) return last.number;
    const auto [entry, added] = m_numbers.try_emplace(fmt::format("{}\x1f{}\x1f{}", process, thread, device),
                                                      static_cast<std::uint32_t>(rank.threads.size()));
    if (added) {
        // Kineto's process of a device is its number, XLA's is named by it.
        const std::string_view name = processName(std::string(process));
        const std::string_view text = name.starts_with(xlaDevicePrefix) ? name : process;
        const std::size_t digits = text.find_last_not_of("0123456789");
        const auto gpu =
            device ? wholeNumberOf(text.substr(digits == std::string_view::npos ? 0 : digits + 1)) : std::nullopt;
        rank.threads.push_back({fmt::format("{} {}", device ? "stream" : "thread", thread), device,
                                gpu && *gpu >= 0 && *gpu < 1'000'000 ? static_cast<int>(*gpu) : -1});
        m_processes.emplace_back(process);
        m_threads.emplace_back(thread);
    }
    last = {true, std::string(process), std::string(thread), entry->second};
    return last.number;
}

void TraceThreads::nameProcess(std::string_view process, std::string_view name)
{
    m_processNames[std::string(process)] = name;
    m_devices = m_devices || name.starts_with(xlaDevicePrefix);
}

void TraceThreads::nameThread(std::string_view process, std::string_view thread, std::string_view name)
{
    if (!name.empty()) m_threadNames[fmt::format("{}\x1f{}", process, thread)] = name;
}

std::string_view TraceThreads::processName(const std::string& process) const
{
    const auto name = m_processNames.find(process);
    return name == m_processNames.end() ? std::string_view() : std::string_view(name->second);
}

std::map<std::string_view, std::string_view> TraceThreads::threadNames(const std::string& process) const
{
    std::map<std::string_view, std::string_view> names;
    const std::string start = process + '\x1f';
    for (auto at = m_threadNames.lower_bound(start); at != m_threadNames.end() && at->first.starts_with(start); ++at)
        names.emplace(std::string_view(at->first).substr(start.size()), at->second);
    return names;
}

bool TraceThreads::oneProcess() const
{
    return m_processes.empty() ||
           std::all_of(m_processes.begin(), m_processes.end(),
                       [this](const std::string& process) { return process == m_processes.front(); });
}

bool TraceThreads::nameRanks() const
{
    bool named = false;
    for (const std::string& process : m_processes) {
        const auto name = m_processNames.find(process);
        if (name == m_processNames.end()) continue;
        if (rankOfProcess(name->second) >= 0) return true;
        named = true;
    }
    return !named;
}

std::map<std::string, int> TraceThreads::namedRanks() const
{
    std::map<std::string, int> out;
    for (const std::string& process : m_processes)
        if (const auto name = m_processNames.find(process); name != m_processNames.end())
            if (const int number = rankOfProcess(name->second); number >= 0) out[process] = number;
    return out;
}

// By the name of the process, with its number if others have the same name, and of the thread unless it is the only
// one.
std::string TraceThreads::laneOf(const std::string& process, const std::string& threadName,
                                 const std::string& otherwise) const
{
    const auto name = m_processNames.find(process);
    if (name == m_processNames.end() || name->second.empty()) return threadName.empty() ? otherwise : threadName;
    const auto namesakes = std::count_if(m_processNames.begin(), m_processNames.end(),
                                         [&](const auto& other) { return other.second == name->second; });
    const bool alone = std::count(m_processes.begin(), m_processes.end(), process) == 1;
    return fmt::format("{}{}{}", name->second, namesakes > 1 ? " " + process : "",
                       alone ? "" : " " + (threadName.empty() ? otherwise : threadName));
}

void TraceThreads::useNames(ForeignRank& rank, bool ofProcesses) const
{
    for (const auto& [key, number] : m_numbers) {
        if (rank.threads[number].device) continue;
        const auto found = m_threadNames.find(key.substr(0, key.rfind('\x1f')));
        const std::string name = found == m_threadNames.end() ? std::string() : found->second;
        if (ofProcesses)
            rank.threads[number].name = laneOf(m_processes[number], name, rank.threads[number].name);
        else if (!name.empty())
            rank.threads[number].name = name;
    }
}

std::vector<ForeignRank> TraceThreads::byProcess(ForeignRank whole) const
{
    const auto keyOf = [](const std::string& process) {
        return std::pair(wholeNumberOf(process).value_or(std::numeric_limits<std::int64_t>::max()), process);
    };
    const auto numberIn = [this](const std::string& process) {
        const auto name = m_processNames.find(process);
        return name == m_processNames.end() ? -1 : rankOfProcess(name->second);
    };
    const bool numbered = std::any_of(m_processes.begin(), m_processes.end(),
                                      [&](const std::string& process) { return numberIn(process) >= 0; });
    std::map<std::pair<std::int64_t, std::string>, std::size_t> processes, others;
    for (const std::string& process : m_processes)
        (numbered && numberIn(process) < 0 ? others : processes).try_emplace(keyOf(process), 0);
    std::vector<ForeignRank> out;
    for (auto& [key, number] : processes) {
        number = out.size();
        ForeignRank rank;
        rank.source = whole.source;
        rank.format = whole.format;
        rank.run = whole.run;
        rank.epoch = whole.epoch;
        rank.rank = numberIn(key.second);
        out.push_back(std::move(rank));
    }
    std::vector<std::pair<std::size_t, std::uint32_t>> places;
    for (std::size_t thread = 0; thread < m_processes.size(); ++thread) {
        const auto found = processes.find(keyOf(m_processes[thread]));
        const std::size_t number = found == processes.end() ? 0 : found->second; // of no rank: beside the first
        places.emplace_back(number, static_cast<std::uint32_t>(out[number].threads.size()));
        out[number].threads.push_back(whole.threads[thread]);
        if (found == processes.end())
            out[number].threads.back().name = laneOf(m_processes[thread], {}, whole.threads[thread].name);
    }
    for (const ForeignSpan& span : whole.annotations) {
        const auto& [number, thread] = places[span.thread];
        ForeignRank& rank = out[number];
        rank.annotations.push_back({span.start, span.end, rank.names.idOf(whole.names[span.name]), thread});
        ++rank.events;
    }
    ForeignRank& first = out.front();
    for (CounterSeen& counter : whole.counters) {
        const auto found = processes.find(keyOf(counter.process));
        (found == processes.end() ? first : out[found->second]).counters.push_back(std::move(counter));
    }
    first.leftOut = std::move(whole.leftOut);
    first.damaged = whole.damaged;
    first.repaired = whole.repaired;
    first.notes = std::move(whole.notes);
    std::string apart;
    for (const auto& [key, number] : others) {
        const auto name = m_processNames.find(key.second);
        apart += fmt::format("{}{}", apart.empty() ? "" : ", ",
                             name == m_processNames.end() ? "process " + key.second : name->second);
    }
    if (!apart.empty())
        first.notes.push_back(fmt::format("{} {} not named as a rank, so {} ranges are on the first rank", apart,
                                          others.size() == 1 ? "is" : "are", others.size() == 1 ? "its" : "their"));
    if (std::any_of(out.begin(), out.end(), [](const ForeignRank& rank) { return rank.rank < 0; }))
        for (std::size_t i = 0; i < out.size(); ++i) out[i].rank = static_cast<int>(i);
    return out;
}

void nameStreamsByGpu(ForeignRank& rank)
{
    std::set<int> gpus;
    for (const ForeignThread& thread : rank.threads)
        if (thread.device) gpus.insert(thread.gpu);
    if (gpus.size() < 2) return;
    for (ForeignThread& thread : rank.threads)
        if (thread.device && thread.gpu >= 0) thread.name = fmt::format("GPU {} {}", thread.gpu, thread.name);
}

} // namespace stagewright
