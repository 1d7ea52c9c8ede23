#include "schedules/text/varied_costs.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace stagewright {

namespace {

using Document = nlohmann::json;

constexpr std::array<std::string_view, 6> shownOnly{"format", "version",      "source",
                                                    "origin", "time_unit_ns", "memory_unit_bytes"};
// of an entry, not what it says
constexpr std::array<std::string_view, 5> places{"stage", "stages", "rank", "from", "to"};
// of entries that may apply or not
constexpr std::array<std::string_view, 4> lists{"duration_on_rank", "link_overrides", "pairs", "microbatches"};
// with a line of their own
constexpr std::size_t mostEntries = 64;

template <typename Names>
bool isOneOf(const Names& names, const std::string& name)
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

bool saysAnything(const Document& value)
{
    if (value.is_null() || value == Document(0) || value == Document("")) return false;
    if (value.is_structured()) {
        for (const auto& [key, part] : value.items())
            if ((value.is_array() || !isOneOf(places, key)) && key != "kind" && key != "kinds" && saysAnything(part))
                return true;
        return false;
    }
    return !value.is_number_float() || value.get<double>() != 0;
}

void changeNumbers(Document& value) // that say anything
{
    if (!saysAnything(value)) return;
    if (value.is_number_integer())
        value = value.get<std::int64_t>() < (std::int64_t{1} << 60) ? 2 * value.get<std::int64_t>() + 1
                                                                    : value.get<std::int64_t>() / 2;
    else if (value.is_number_float())
        value = 2 * value.get<double>() + 0.5;
    else if (value.is_array())
        for (Document& part : value) changeNumbers(part);
    else if (value.is_object())
        for (auto part = value.begin(); part != value.end(); ++part)
            if (!isOneOf(places, part.key())) changeNumbers(part.value());
}

// Whether microbatches have times of their own of that kind: the usual one then serves them, if only by its ratio.
bool hasOwn(const Document& whole, const std::string& kind)
{
    const auto own = whole.find("microbatches");
    return own != whole.end() && own->is_array() && std::any_of(own->begin(), own->end(), [&](const Document& entry) {
               return entry.is_object() && entry.value("kind", Document()) == Document(kind);
           });
}

Document& at(Document& whole, const std::vector<Document>& path)
{
    Document* here = &whole;
    for (const Document& step : path)
        here = step.is_string() ? &(*here)[step.get<std::string>()] : &(*here)[step.get<std::size_t>()];
    return *here;
}

// Each number of a list with others.
void addElements(const Document& whole, const std::vector<Document>& path, const std::string& name,
                 std::vector<VariedCosts>& out)
{
    Document same = whole;
    const std::size_t count = at(same, path).is_array() ? at(same, path).size() : 0;
    for (std::size_t i = 0; i < std::min(count, mostEntries); ++i) {
        if (!saysAnything(at(same, path)[i])) continue;
        Document changed = whole;
        Document without = whole;
        changeNumbers(at(changed, path)[i]);
        at(without, path)[i] = at(same, path)[i].is_number() ? Document(0) : Document();
        out.push_back({fmt::format("{}[{}]", name, i), changed.dump(), without.dump()});
    }
}

} // namespace

std::vector<VariedCosts> variedCosts(const std::string& text)
{
    std::vector<VariedCosts> out;
    const Document whole = Document::parse(text, nullptr, false);
    if (!whole.is_object()) return out;
    const auto add = [&](std::string what, const Document& changed, const Document& without) {
        out.push_back({std::move(what), changed.dump(), without.dump()});
    };
    for (const auto& [key, value] : whole.items()) {
        if (isOneOf(shownOnly, key) || !saysAnything(value)) continue;
        if (key == "duration_ns" && value.is_object()) {
            for (const auto& [kind, durations] : value.items()) {
                if (!saysAnything(durations) || hasOwn(whole, kind)) continue;
                Document changed = whole;
                Document without = whole;
                changeNumbers(changed[key][kind]);
                without[key].erase(kind);
                add(key + "." + kind, changed, without);
            }
        } else if (key == "stage_bytes" && value.is_array()) {
            for (const char* size :
                 {"activation", "freed_at_input", "workspace", "boundary", "weight", "gradient", "optimizer"}) {
                Document changed = whole;
                Document without = whole;
                bool any = false;
                for (std::size_t stage = 0; stage < value.size(); ++stage) {
                    if (!value[stage].is_object() || !value[stage].contains(size) || !saysAnything(value[stage][size]))
                        continue;
                    any = true;
                    changeNumbers(changed[key][stage][size]);
                    without[key][stage].erase(size);
                }
                if (any) add(fmt::format("{}.{}", key, size), changed, without);
            }
        } else if (isOneOf(lists, key) && value.is_array() && value.size() <= mostEntries) {
            for (std::size_t i = 0; i < value.size(); ++i) {
                Document changed = whole;
                Document without = whole;
                changeNumbers(changed[key][i]);
                without[key].erase(i);
                add(fmt::format("{}[{}]", key, i), changed, without);
                if (key == "microbatches" && value[i].is_object() && value[i].contains("duration_ns"))
                    addElements(whole, {key, i, "duration_ns"}, fmt::format("{}[{}].duration_ns", key, i), out);
            }
        } else {
            Document changed = whole;
            Document without = whole;
            changeNumbers(changed[key]);
            without.erase(key);
            add(key, changed, without);
            if (key == "launch_ns") addElements(whole, {key}, key, out);
        }
    }
    return out;
}

} // namespace stagewright
