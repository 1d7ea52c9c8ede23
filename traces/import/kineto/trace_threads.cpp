#include "traces/import/kineto/trace_threads.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "traces/import/kineto/kineto_event.h"

namespace stagewright {

std::uint32_t TraceThreads::of(std::string_view process, std::string_view thread, bool device, ForeignRank& rank)
{
    Last& last = m_last[device ? 1 : 0];
    if (last.known && process == last.process && thread == last.thread) return last.number;
    const auto [entry, added] = m_numbers.try_emplace(fmt::format("{}\x1f{}\x1f{}", process, thread, device), static_cast<std::uint32_t>(rank.threads.size()));
    if (added) {
        rank.threads.push_back({fmt::format("{} {}", device ? "stream" : "thread", thread), device});
        m_processes.emplace_back(process);
    }
    last = {true, std::string(process), std::string(thread), entry->second};
    return last.number;
}

void TraceThreads::nameThread(std::string_view process, std::string_view thread, std::string_view name)
{
    if (!name.empty()) m_threadNames[fmt::format("{}\x1f{}", process, thread)] = name;
}

bool TraceThreads::oneProcess() const
{
    return m_processes.empty() || std::all_of(m_processes.begin(), m_processes.end(), [this](const std::string& process) { return process == m_processes.front(); });
}

void TraceThreads::useNames(ForeignRank& rank) const
{
    for (const auto& [key, number] : m_numbers) {
        const auto name = m_threadNames.find(key.substr(0, key.rfind('\x1f')));
        if (name != m_threadNames.end() && !rank.threads[number].device) rank.threads[number].name = name->second;
    }
}

std::vector<ForeignRank> TraceThreads::byProcess(ForeignRank whole) const
{
    const auto keyOf = [](const std::string& process) { return std::pair(wholeNumberOf(process).value_or(std::numeric_limits<std::int64_t>::max()), process); };
    std::map<std::pair<std::int64_t, std::string>, std::size_t> processes;
    for (const std::string& process : m_processes) processes.try_emplace(keyOf(process), 0);
    std::vector<ForeignRank> out;
    for (auto& [key, number] : processes) {
        number = out.size();
        ForeignRank rank;
        rank.source = whole.source;
        rank.format = whole.format;
        rank.run = whole.run;
        rank.epoch = whole.epoch;
        if (const auto name = m_processNames.find(key.second); name != m_processNames.end()) rank.rank = rankInName(name->second).rank;
        out.push_back(std::move(rank));
    }
    std::vector<std::pair<std::size_t, std::uint32_t>> places;
    for (std::size_t thread = 0; thread < m_processes.size(); ++thread) {
        const std::size_t number = processes.at(keyOf(m_processes[thread]));
        places.emplace_back(number, static_cast<std::uint32_t>(out[number].threads.size()));
        out[number].threads.push_back(whole.threads[thread]);
    }
    for (const ForeignSpan& span : whole.annotations) {
        const auto& [number, thread] = places[span.thread];
        ForeignRank& rank = out[number];
        rank.annotations.push_back({span.start, span.end, rank.names.idOf(whole.names[span.name]), thread});
        ++rank.events;
    }
    ForeignRank& first = out.front();
    first.counters = std::move(whole.counters);
    first.leftOut = std::move(whole.leftOut);
    first.damaged = whole.damaged;
    first.repaired = whole.repaired;
    first.notes = std::move(whole.notes);
    if (std::any_of(out.begin(), out.end(), [](const ForeignRank& rank) { return rank.rank < 0; }))
        for (std::size_t i = 0; i < out.size(); ++i) out[i].rank = static_cast<int>(i);
    return out;
}

} // namespace stagewright
