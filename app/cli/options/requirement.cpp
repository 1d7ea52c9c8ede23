#include "app/cli/options/requirement.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/core.h>

#include "app/cli/text/figures.h"
#include "schedules/base/text.h"

namespace stagewright {

namespace {

constexpr const char* form = "write KEY<=NUMBER, such as bubble_fraction<=0.12, makespan_ns<40ms, "
                             "peak_activation_bytes[0]<=8MiB or loss[-1]<3.2";

// "0.12", "12%", "40ms", "8MiB".
bool readBound(const std::string& text, Requirement& out)
{
    const auto quantity = quantityOf(text);
    if (!quantity) return false;
    out.bound = quantity->value;
    out.boundText = text;
    if (quantity->unit.empty()) return true;
    if (quantity->unit == "%") {
        out.bound /= 100;
        return true;
    }
    if (const auto time = parseTime(text)) {
        out.bound = static_cast<double>(*time);
        out.unit = Requirement::Unit::Time;
        return true;
    }
    const auto bytes = parseBytes(text);
    if (!bytes) return false;
    out.bound = static_cast<double>(*bytes);
    out.unit = Requirement::Unit::Memory;
    return true;
}

// What the figure at that path counts: times and activations are in the object's own unit if their key names none.
enum class Counts {
    Number,
    Nanoseconds,
    Shares,
    Bytes,
    Activations,
};
Counts whatCounts(const std::vector<std::string>& path, const Json& figures)
{
    static constexpr std::string_view times[] = {
        "makespan",      "span",          "whole_step", "busy",        "idle",         "apart", "busy_by_kind",
        "busy_by_cause", "idle_by_cause", "comm_time",  "hidden_time", "exposed_time", "gain",  "gain_by_cause"};
    const Json* const unit = figures.find("time_unit");
    const bool shares = unit && unit->text() && *unit->text() == "rank_share";
    for (const std::string& part : path) {
        if (part.ends_with("_ns")) return Counts::Nanoseconds;
        if (part.ends_with("bytes")) return Counts::Bytes;
        if (part == "peak_activation") return shares ? Counts::Activations : Counts::Bytes;
        for (const std::string_view time : times)
            if (part == time) return shares ? Counts::Shares : Counts::Nanoseconds;
    }
    return Counts::Number;
}

Result<void> checkUnit(const Requirement& requirement, const std::string& key, const Json& figures)
{
    if (requirement.unit == Requirement::Unit::None) return {};
    const Counts counts = whatCounts(requirement.path, figures);
    if (requirement.unit == Requirement::Unit::Time ? counts == Counts::Nanoseconds : counts == Counts::Bytes)
        return {};
    const char* what = counts == Counts::Nanoseconds   ? "a time"
                       : counts == Counts::Shares      ? "a time in units"
                       : counts == Counts::Bytes       ? "bytes"
                       : counts == Counts::Activations ? "microbatch-activations"
                                                       : "a number without unit";
    const char* remedy = counts == Counts::Nanoseconds   ? "write 40ms or a number of nanoseconds"
                         : counts == Counts::Shares      ? "write a plain number such as 33"
                         : counts == Counts::Bytes       ? "write 8MiB or a number of bytes"
                         : counts == Counts::Activations ? "write a plain number such as 4"
                                                         : "write a plain number, or a share such as 12%";
    return fail(ErrorCode::Usage,
                fmt::format("requirement '{}': {} is {} and can't be compared with {}", requirement.text, key, what,
                            requirement.boundText),
                remedy);
}

std::string numberText(double value)
{
    return std::abs(value) < 1e15 && value == std::round(value) ? fmt::format("{:.0f}", value)
                                                                : fmt::format("{:.6g}", value);
}

// Reads the number in "[-1]".
std::optional<int> positionOf(std::string_view part) { return wholeOf<int>(part.substr(1, part.size() - 2)); }

bool readPath(std::string text, std::vector<std::string>& path)
{
    while (!text.empty()) {
        const std::size_t end = text.find_first_of(".[", 1);
        std::string part = text.substr(0, end);
        if (part.front() == '.') part.erase(0, 1);
        if (part.empty()) return false;
        if (part.front() == '[' && (part.back() != ']' || !positionOf(part))) return false;
        path.push_back(part);
        if (end == std::string::npos) return true;
        text.erase(0, end);
    }
    return !path.empty();
}

bool comparedByMagnitude(const std::vector<std::string>& path)
{
    return path == std::vector<std::string>{"residuals", "step_error"};
}

// Why the figure of a key, or the group it belongs to, is unknown; empty: not said.
std::string reasonOf(std::string key, const Json& figures)
{
    const Json* unknown = figures.find("unknown");
    if (!unknown || !unknown->isObject()) return {};
    for (const char* suffix : {"_ns", "_bytes"})
        if (key.ends_with(suffix)) key.erase(key.size() - std::string_view(suffix).size());
    for (const auto& [name, reason] : unknown->members())
        if (name == key || key.starts_with(name + ".") || key.starts_with(name + "[") || name.starts_with(key + "."))
            return *reason.text();
    return {};
}

std::string keysOf(const Json& object)
{
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.members())
        if (!value.text() && !value.isTruth()) keys.push_back(key);
    return joined(keys);
}

} // namespace

Result<Requirement> parseRequirement(const std::string& text)
{
    Requirement out;
    out.text = text;
    const std::size_t at = text.find_first_of("<>=");
    if (at != std::string::npos && at > 0) {
        std::size_t after = at + 1;
        if (after < text.size() && text[after] == '=') ++after;
        out.comparison = text.substr(at, after - at);
        const std::string_view whole = text;
        if (out.comparison != "=" && readBound(std::string(trimmed(whole.substr(after))), out) &&
            readPath(std::string(trimmed(whole.substr(0, at))), out.path))
            return out;
    }
    return fail(ErrorCode::Usage, fmt::format("requirement '{}': expected FIGURE < NUMBER", text), form);
}

Result<RequirementCheck> checkRequirement(const Requirement& requirement, const Json& figures)
{
    const Json* at = &figures;
    std::string key;
    for (const std::string& part : requirement.path) {
        const auto wrong = [&](const std::string& what, const std::string& remedy) {
            return fail(ErrorCode::Usage, fmt::format("requirement '{}': {}", requirement.text, what), remedy);
        };
        if (at->isNull()) break; // says so below
        if (part.front() == '[') {
            const int position = *positionOf(part);
            if (!at->isArray()) return wrong(fmt::format("{} is not a list", key), form);
            const int size = static_cast<int>(at->size());
            const int index = position < 0 ? size + position : position;
            if (index < 0 || index >= size)
                return wrong(fmt::format("there is no {}{}; it has {}", key, part, plural(size, "value")), form);
            at = &at->at(static_cast<std::size_t>(index));
        } else {
            if (!at->isObject()) return wrong(fmt::format("{} has no keys", key), form);
            const Json* const found = at->find(part);
            if (!found) {
                std::vector<std::string> names;
                for (const auto& [name, value] : at->members()) names.push_back(name);
                const std::string near = nearestName(part, names);
                return wrong(fmt::format("there is no key '{}'", part),
                             (near.empty() ? std::string() : fmt::format("did you mean {}? ", near)) + "keys are " +
                                 keysOf(*at));
            }
            at = found;
        }
        key += (key.empty() || part.front() == '[' ? "" : ".") + part;
    }
    STAGEWRIGHT_CHECK(checkUnit(requirement, key, figures));
    RequirementCheck out;
    if (at->isNull()) {
        const std::string reason = reasonOf(key, figures);
        out.sentence = fmt::format("{} is unknown for this run{}, required is {} {}", key,
                                   reason.empty() ? "" : " (" + reason + ")", requirement.comparison,
                                   numberText(requirement.bound));
        return out;
    }
    if (!at->isNumber()) {
        return fail(ErrorCode::Usage, fmt::format("requirement '{}': {} is not a number", requirement.text, key),
                    at->isObject()  ? "its keys are " + keysOf(*at)
                    : at->isArray() ? fmt::format("name one of its values: {}[0]", key)
                                    : form);
    }
    const bool magnitude = comparedByMagnitude(requirement.path); // an error of −13 % is not smaller than one of 2 %
    const double value = magnitude ? std::abs(*at->number()) : *at->number();
    const double bound = requirement.bound;
    if (magnitude) key = "|" + key + "|";
    const std::string& is = requirement.comparison;
    out.holds = is == "<="   ? value <= bound
                : is == ">=" ? value >= bound
                : is == "<"  ? value < bound
                : is == ">"  ? value > bound
                             : value == bound;
    out.sentence = fmt::format("{} is {}, required is {} {}", key, numberText(value), is, numberText(bound));
    return out;
}

} // namespace stagewright
