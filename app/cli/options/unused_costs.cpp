#include "app/cli/options/unused_costs.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "app/cli/options/files.h"
#include "app/cli/session.h"
#include "schedules/base/hashing.h"
#include "schedules/base/text.h"
#include "schedules/text/varied_costs.h"
#include "schedules/timeline/timeline_of.h"

namespace stagewright {

namespace {

struct OptionVariation {
    std::string what;
    Setup changed;
};

// Tries another number for each kind that is written in unit costs.
void addKinds(const Setup& options, std::vector<OptionVariation>& out)
{
    const auto parts = split(options.costs, ",");
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto [key, number] = keyValueOf(parts[i]);
        if (!number) continue;
        std::string text;
        for (std::size_t k = 0; k < parts.size(); ++k)
            text +=
                (text.empty() ? "" : ",") +
                (k == i ? fmt::format("{}={}", key, 2 * numberOf(*number).value_or(0) + 0.5) : std::string(parts[k]));
        OptionVariation& one = out.emplace_back(OptionVariation{std::string(key), options});
        one.changed.costs = text;
    }
}

// Options that are given, each with another value or left out.
std::vector<OptionVariation> optionVariations(const Setup& options)
{
    std::vector<OptionVariation> out;
    const auto add = [&](const char* what, bool given, auto&& change) {
        if (!given) return;
        OptionVariation& one = out.emplace_back(OptionVariation{what, options});
        change(one.changed);
    };
    add("--comm", options.comm > 0, [&](Setup& other) { other.comm = 2 * options.comm; });
    add("--link", !options.link.empty(), [](Setup& other) { other.link = "1s,1B/s"; });
    add("--cluster", !options.cluster.empty(),
        [](Setup& other) { other.cluster = "65536@a100:per-host=1:between=1kB/s"; });
    add("--copies", !options.copies.empty(),
        [](Setup& other) { other.copies = other.copies.find("/s") == std::string::npos ? "" : "1kB/s"; });
    add("--free-at-input", options.freeAtInput != 0, [](Setup& other) { other.freeAtInput /= 2; });
    add("--keep", options.keep > 0, [](Setup& other) { other.keep /= 2; });
    add("--input-share", options.inputShare >= 0, [](Setup& other) { other.inputShare = other.inputShare / 2 + 0.1; });
    add("--stage-layers", !options.stageLayers.empty(), [](Setup& other) { other.stageLayers.front() += 1; });
    add("--perturb", !options.perturb.empty(), [](Setup& other) { other.perturb.clear(); });
    add("--seed", options.seed != 1, [](Setup& other) { other.seed = 1; });
    const bool file = options.costs.ends_with(".json") || options.costs.starts_with("analytic:");
    if (!options.costs.empty() && !file) addKinds(options, out);
    return out;
}

class Digest {
public:
    template <typename... Values>
    void add(Values... values)
    {
        ((m_value = mixBits(m_value + static_cast<std::uint64_t>(values))), ...);
    }
    std::uint64_t value() const { return m_value; }

private:
    std::uint64_t m_value = 0;
};

} // namespace

Result<std::uint64_t> simulatedOutcome(const Schedule& schedule, const CostModel& costs, const Channels& channels)
{
    STAGEWRIGHT_TRY(auto timeline, simulatedTimeline(schedule, costs, channels));
    Digest digest;
    for (const Span& span : timeline->spans()) digest.add(span.start, span.end);
    for (const MemoryEvent& event : timeline->memory())
        digest.add(event.time, event.delta, event.rank, event.stage, static_cast<int>(event.category));
    return digest.value();
}

std::vector<std::string> costsWithoutEffect(const Setup& options, const CostOutcome& outcome, std::size_t ops)
{
    std::vector<std::string> out;
    std::vector<VariedCosts> keys;
    if (options.costs.ends_with(".json"))
        if (const auto text = readFile(options.costs)) keys = variedCosts(*text);
    const std::vector<OptionVariation> variations = optionVariations(options);
    if (variations.empty() && keys.empty()) return out;
    if ((variations.size() + keys.size()) * ops > mostTriedOps) return out;
    const auto before = outcome(options);
    if (!before) return out;
    const auto same = [&](const Setup& other) -> std::optional<bool> {
        const auto after = outcome(other);
        return after ? std::optional(*after == *before) : std::nullopt;
    };
    for (const OptionVariation& one : variations)
        if (same(one.changed).value_or(false)) out.push_back(one.what);
    for (const VariedCosts& key : keys) {
        if (!out.empty() && key.what.starts_with(out.back() + ".")) continue; // said as a whole
        if (!out.empty() && key.what.starts_with(out.back() + "[")) continue;
        Setup other = options;
        other.costsText = key.text;
        auto equal = same(other);
        if (!equal) {
            other.costsText = key.without;
            equal = same(other);
        }
        if (equal.value_or(false)) out.push_back(key.what);
    }
    return out;
}

void tellUnusedCosts(const Setup& options, const CostOutcome& outcome, std::size_t ops, const std::string& of,
                     Session& session)
{
    const std::vector<std::string> unused = costsWithoutEffect(options, outcome, ops);
    if (unused.empty()) return;
    const bool one = unused.size() == 1;
    session.note(fmt::format("{} {} not used: {} is the same without {}", listed(unused), one ? "is" : "are", of,
                             one ? "it" : "them"));
}

} // namespace stagewright
