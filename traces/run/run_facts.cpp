#include "traces/run/run_facts.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/median.h"
#include "schedules/base/quantity.h"
#include "schedules/base/text.h"

namespace stagewright {

std::string configured(const Run& run, std::string_view key)
{
    for (const auto& [name, value] : run.configuration)
        if (name == key) return value;
    return {};
}

namespace {

// "3073767 ns, no bandwidth limit" as recorded → "3.07 ms"; anything else unchanged.
std::string readableLink(const std::string& recorded)
{
    const auto latency = quantityOf(recorded);
    if (!latency || !latency->unit.starts_with(" ns")) return recorded;
    std::string_view tail = latency->unit;
    tail.remove_prefix(3);
    if (tail == ", no bandwidth limit") tail = {};
    if (const auto rate = tail.starts_with(", ") ? quantityOf(tail.substr(2)) : std::nullopt; rate && rate->unit == " bytes/s")
        return fmt::format("{}, {}/s", formatDuration(static_cast<Nanos>(latency->value), 1), formatBytes(static_cast<Bytes>(rate->value)));
    return formatDuration(static_cast<Nanos>(latency->value), 1) + std::string(tail);
}

} // namespace

bool linksUnknown(const Run& run)
{
    return run.info.clock == "wall" && run.costs && run.costs->source == CostSource::Fitted && run.costs->links.all == Link{} && run.costs->links.overrides.empty();
}

std::string linkLatencyText(const Run& run)
{
    if (const std::string asked = configured(run, "link"); !asked.empty()) return readableLink(asked); // costs have a fitted one
    if (!run.costs || linksUnknown(run)) return {};
    const Links& links = run.costs->links;
    Nanos least = links.all.latency;
    Nanos most = links.all.latency;
    for (const auto& [ranks, link] : links.overrides) {
        least = std::min(least, link.latency);
        most = std::max(most, link.latency);
    }
    std::string text = most == 0 ? "none" : formatDuration(least, run.costs->timeUnit);
    if (most != least) text = fmt::format("{} to {}", formatDuration(least, run.costs->timeUnit), formatDuration(most, run.costs->timeUnit));
    if (links.all.bytesPerSecond > 0) text += fmt::format(", {}/s", formatBytes(static_cast<Bytes>(links.all.bytesPerSecond)));
    return text;
}

std::string emulatedLinksText(const Run& run)
{
    std::string text;
    for (const auto& [key, value] : run.configuration) { // "link_0_1"
        const std::size_t between = key.rfind('_');
        if (!key.starts_with("link_") || between <= 5 || between == std::string::npos) continue;
        const std::string from = key.substr(5, between - 5), to = key.substr(between + 1);
        if (from.find_first_not_of("0123456789") != std::string::npos || to.find_first_not_of("0123456789") != std::string::npos) continue;
        text += fmt::format("{}{}→{} {}", text.empty() ? "" : ", ", from, to, readableLink(value));
    }
    return text;
}

std::optional<Bytes> memoryCapOf(const Run& run)
{
    return wholeOf<Bytes>(configured(run, "memory_limit_bytes"));
}

std::vector<Bytes> rankCapsOf(const Run& run)
{
    const std::string text = configured(run, "memory_limit_bytes");
    std::vector<Bytes> caps;
    for (const std::string_view item : split(text, ",")) {
        const auto cap = wholeOf<Bytes>(item);
        if (!cap) return {};
        caps.push_back(*cap);
    }
    return caps.size() > 1 ? caps : std::vector<Bytes>();
}

std::string memoryLimitText(std::span<const Bytes> byRank)
{
    const bool same = std::all_of(byRank.begin(), byRank.end(), [&](Bytes limit) { return limit == byRank.front(); });
    return fmt::format("{}", fmt::join(same ? byRank.first(std::min<std::size_t>(1, byRank.size())) : byRank, ","));
}

std::optional<double> contentionOf(const Run& run)
{
    const Metric* metric = run.metric("contention");
    const auto first = static_cast<std::size_t>(std::max(0, run.info.warmupSteps));
    if (metric == nullptr || metric->values.size() <= first) return std::nullopt;
    return lowerMedian(std::vector<double>(metric->values.begin() + static_cast<std::ptrdiff_t>(first), metric->values.end()));
}

std::string distanceText(double distance)
{
    const double percent = 100 * std::abs(distance);
    const int decimals = percent > 0 && std::isfinite(percent) ? std::clamp(2 - static_cast<int>(std::floor(std::log10(percent))), 0, 12) : 0;
    return formatPercent(distance, decimals);
}

std::vector<RunFact> factsOf(const Run& run)
{
    std::vector<RunFact> facts;
    const auto number = [](int value) { return value > 0 ? std::to_string(value) : std::string(); };
    const bool shares = run.timeline && run.timeline->timeUnit() != 1;
    facts.push_back({"time_unit", "unit of time", !run.timeline ? "" : shares ? "units"
                                                                              : "nanoseconds"});
    facts.push_back({"ranks", "ranks", number(run.info.ranks)});
    facts.push_back({"stages", "stages", number(run.info.stages)});
    facts.push_back({"microbatches", "microbatches", number(run.info.microbatches)});
    const auto add = [&](const char* key, const char* title) { facts.push_back({key, title, configured(run, key)}); };
    add("model", "model");
    add("microbatch_size", "microbatch size");
    facts.push_back({"clock", "clock", run.info.clock});
    facts.push_back({"link_latency", "link latency", linkLatencyText(run)});
    add("backend", "backend");
    add("transport", "transport");
    add("sends", "sends");
    add("receives", "receives");
    add("lowering", "lowering");
    add("channels", "channels");
    add("data", "data");
    add("stage_layers", "layers by stage");
    add("perturb", "disturbance");
    add("recomputed_layers", "recomputed layers");
    add("optimizer", "optimizer");
    return facts;
}

} // namespace stagewright
