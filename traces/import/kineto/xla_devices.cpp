#include "traces/import/kineto/xla_devices.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "traces/import/kineto/kineto_event.h"
#include "traces/import/kineto/trace_threads.h"

namespace stagewright {

XlaLine XlaDevices::lineOf(std::string_view process, std::string_view thread)
{
    if (!m_threads.nameDevices()) return XlaLine::None;
    const auto [entry, added] = m_lines.try_emplace({std::string(process), std::string(thread)});
    if (added) entry->second = readLine(entry->first.first, entry->first.second);
    m_seen = m_seen || entry->second != XlaLine::None;
    return entry->second;
}

XlaLine XlaDevices::readLine(const std::string& process, const std::string& thread) const
{
    if (!m_threads.processName(process).starts_with(xlaDevicePrefix)) return XlaLine::None;
    const std::map<std::string_view, std::string_view> names = m_threads.threadNames(process);
    const auto holds = [&](std::string_view start) {
        return std::any_of(names.begin(), names.end(),
                           [start](const auto& one) { return one.second.starts_with(start); });
    };
    constexpr std::array<std::string_view, 3> finestFirst{"Stream #", "XLA Ops", "XLA Modules"};
    const auto* const finest = std::find_if(finestFirst.begin(), finestFirst.end(), holds);
    const auto own = names.find(thread);
    if (finest == finestFirst.end() || own == names.end()) return XlaLine::None;
    if (own->second.starts_with(*finest)) return XlaLine::Work;
    return own->second == "Steps" ? XlaLine::Steps : XlaLine::Repeats;
}

void takeHostOfXla(const KinetoEvent& event, const ForeignSpan& span, std::int64_t correlation, ForeignRank& rank)
{
    if (event.args.step >= 0)
        rank.annotations.push_back(
            {span.start, span.end, rank.names.idOf(profilerStep(std::to_string(event.args.step))), span.thread});
    if (correlation >= 0) rank.launches.push_back({correlation, span.start, span.thread});
}

std::string profilerStep(std::string_view number) { return fmt::format("ProfilerStep#{}", number); }

} // namespace stagewright
