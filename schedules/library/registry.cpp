#include "schedules/library/registry.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/base/shown_text.h"
#include "schedules/base/text.h"
#include "schedules/library/variants.h"
#include "schedules/messages/lower.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"

namespace stagewright {

namespace library {
#define STAGEWRIGHT_SCHEDULE(name) extern const ScheduleInfo name;
#include "schedules/library/schedules.def"
#undef STAGEWRIGHT_SCHEDULE
} // namespace library

namespace {

// As names are compared: "ZB_H1" → "zb-h1".
std::string plain(std::string_view text)
{
    std::string out = lowered(trimmed(text));
    std::replace_if(
        out.begin(), out.end(), [](char c) { return c == '_' || c == ' '; }, '-');
    return out;
}

// Calls visit for the name and every alias until it returns true.
template <typename Visit>
bool eachName(const ScheduleInfo& info, Visit&& visit)
{
    if (visit(info.name)) return true;
    const auto aliases = itemsOf(info.aliases);
    return std::any_of(aliases.begin(), aliases.end(), [&](std::string_view alias) { return visit(trimmed(alias)); });
}

std::string nameList()
{
    std::string out;
    for (const ScheduleInfo& info : allSchedules()) out += fmt::format("{}{}", out.empty() ? "" : ", ", info.name);
    return out;
}

// GPipe's paper runs the backwards in falling order, PyTorch in rising order; both are GPipe.
bool isFallingGpipe(const Schedule& schedule)
{
    if (schedule.stages != schedule.ranks) return false;
    const auto rising = library::gpipe.make({schedule.ranks, schedule.microbatches, 1});
    if (!rising) return false;
    Schedule falling = *rising;
    for (auto& ops : falling.order) std::reverse(ops.begin() + schedule.microbatches, ops.end());
    return falling == schedule;
}

std::string_view fallbackOf(const ScheduleInfo& info, std::string_view name)
{
    for (const ScheduleParameter& parameter : info.parameters)
        if (parameter.name == name) return parameter.fallback;
    return {};
}

// "" or why the value does not fit.
std::string valueFault(const ScheduleParameter& parameter, std::string_view value)
{
    const auto number = numberOf(value);
    for (const std::string_view choice : itemsOf(parameter.values, "|")) {
        if (choice == "whole") {
            if (number && *number >= 1 && *number <= 1e6 && *number == std::floor(*number)) return {};
        } else if (choice == "real") {
            if (number && *number >= 0) return {};
        } else if (choice == value) {
            return {};
        }
    }
    if (parameter.values == "whole") return "a whole number from 1 is needed";
    if (parameter.values == "real") return "a number from 0 is needed";
    std::string choices(parameter.values);
    for (std::size_t bar = 0; (bar = choices.find('|', bar)) != std::string::npos; bar += 2)
        choices.replace(bar, 1, ", ");
    return fmt::format("it takes {}", choices);
}

// The schedule's parameters, set by "key=value:key=value".
Result<std::vector<std::pair<std::string, std::string>>> readParameters(const ScheduleInfo& info, std::string_view text)
{
    std::vector<std::pair<std::string, std::string>> out;
    for (const ScheduleParameter& parameter : info.parameters) out.emplace_back(parameter.name, parameter.fallback);
    for (const std::string_view item : itemsOf(text, ":")) {
        const KeyValue given = keyValueOf(trimmed(item));
        if (!given.value)
            return fail(ErrorCode::Usage,
                        fmt::format("schedule {}: '{}' is not of the form key=value", info.name, given.key));
        if (info.parameters.empty())
            return fail(ErrorCode::Usage,
                        fmt::format("schedule {}: has no parameters, but '{}' is given", info.name, trimmed(item)),
                        fmt::format("omit ':{}'", trimmed(item)));
        const std::string key = plain(given.key);
        const std::string value(trimmed(*given.value));
        std::size_t at = 0;
        while (at < info.parameters.size() && info.parameters[at].name != key) ++at;
        if (at == info.parameters.size()) {
            std::string names;
            for (const ScheduleParameter& parameter : info.parameters)
                names += fmt::format("{}{}", names.empty() ? "" : ", ", parameter.name);
            return fail(ErrorCode::Usage,
                        fmt::format("schedule {}: no parameter '{}'; it has {}", info.name, key, names));
        }
        if (const std::string fault = valueFault(info.parameters[at], value); !fault.empty())
            return fail(ErrorCode::Usage, fmt::format("schedule {}: {}={}: {}", info.name, key, value, fault));
        out[at].second = value;
    }
    return out;
}

} // namespace

std::span<const ScheduleInfo> allSchedules()
{
    static const std::array all{
#define STAGEWRIGHT_SCHEDULE(name) library::name,
#include "schedules/library/schedules.def"
#undef STAGEWRIGHT_SCHEDULE
    };
    return all;
}

Result<const ScheduleInfo*> findSchedule(std::string_view name)
{
    const std::string wanted = plain(name);
    for (const ScheduleInfo& info : allSchedules())
        if (eachName(info, [&](std::string_view known) { return plain(known) == wanted; })) return &info;
    std::string_view nearest;
    std::size_t best = 4; // farther away does not help
    for (const ScheduleInfo& info : allSchedules())
        eachName(info, [&](std::string_view known) {
            const std::size_t distance = editDistance(plain(known), wanted);
            if (distance < best && distance < wanted.size()) {
                best = distance;
                nearest = info.name;
            }
            return false;
        });
    return fail(ErrorCode::Usage, fmt::format("unknown schedule '{}'; known are {}", trimmed(name), nameList()),
                nearest.empty() ? std::string() : fmt::format("did you mean {}?", nearest));
}

Result<const ScheduleInfo*> scheduleInfoOf(std::string_view asked) { return findSchedule(keyValueOf(asked, ':').key); }

namespace {

struct Wanted {
    const ScheduleInfo* info = nullptr;
    Shape shape; // with all parameters and chunks
};

Result<Wanted> wantedOf(std::string_view name, const Shape& shape)
{
    const auto [title, settings] = keyValueOf(name, ':');
    STAGEWRIGHT_TRY(auto info, findSchedule(title));
    const std::string_view known = info->name;
    STAGEWRIGHT_TRY(auto parameters, readParameters(*info, settings.value_or("")));
    if (shape.ranks < 1 || shape.microbatches < 1 || shape.chunks < 0)
        return fail(
            ErrorCode::Usage,
            fmt::format(
                "schedule {}: {} ranks, {} microbatches, {} chunks; at least one rank and one microbatch are needed",
                known, shape.ranks, shape.microbatches, shape.chunks),
            "the smallest shape is 1 rank, 1 microbatch");
    Wanted wanted{info, shape};
    Shape& full = wanted.shape;
    full.parameters = std::move(parameters);
    if (info->fixedChunks > 0)
        full.chunks = info->fixedChunks;
    else if (full.chunks == 0)
        full.chunks = info->defaultChunks;
    constexpr std::int64_t mostStages = 65536;
    if (static_cast<std::int64_t>(full.ranks) * full.chunks > mostStages)
        return fail(ErrorCode::Usage,
                    fmt::format("schedule {}: {} ranks × {} chunks are more than {} stages", known, full.ranks,
                                full.chunks, mostStages),
                    full.ranks > mostStages / std::max(1, info->fixedChunks)
                        ? fmt::format("the maximum is {} ranks", mostStages / std::max(1, info->fixedChunks))
                        : fmt::format("the maximum on {} ranks is {} chunks", full.ranks, mostStages / full.ranks));
    constexpr std::int64_t mostOps = 1'000'000'000;
    if (static_cast<std::int64_t>(full.ranks) * full.chunks > mostOps / full.microbatches)
        return fail(ErrorCode::Usage,
                    fmt::format("schedule {}: {} ranks × {} chunks × {} microbatches are more than {} forwards", known,
                                full.ranks, full.chunks, full.microbatches, mostOps),
                    fmt::format("the maximum is {} microbatches",
                                mostOps / (static_cast<std::int64_t>(full.ranks) * full.chunks)));
    return wanted;
}

} // namespace

// "doubled forwards", "4 waves"; "": it has no words.
static std::string wordsOf(const ScheduleParameter& parameter, std::string_view value)
{
    for (const std::string_view form : split(parameter.words, "|")) {
        if (const std::size_t place = form.find("{}"); place != std::string_view::npos)
            return std::string(form.substr(0, place)) + shownText(value) + std::string(form.substr(place + 2));
        const auto [of, said] = keyValueOf(form);
        if (of == value && said) return std::string(*said);
    }
    return {};
}

std::string shownTitle(std::string_view asked)
{
    const std::size_t end = asked.find_first_of(" :");
    const auto found = findSchedule(asked.substr(0, end));
    if (!found) return shownText(asked);
    const std::string_view title = (*found)->title;
    std::string out(title.substr(0, title.find(" (")));
    if (end == std::string_view::npos) return out;
    if (asked[end] == ' ') return out + " " + shownText(asked.substr(end + 1));
    for (const std::string_view part : split(asked.substr(end + 1), ":")) {
        const auto [key, value] = keyValueOf(part);
        std::string said;
        for (const ScheduleParameter& parameter : (*found)->parameters)
            if (parameter.name == key && value) said = wordsOf(parameter, *value);
        out += said.empty() ? " " + shownText(part) : ", " + said;
    }
    return out;
}

Result<Schedule> makeSchedule(std::string_view name, const Shape& shape)
{
    STAGEWRIGHT_TRY(auto wanted, wantedOf(name, shape));
    auto made = wanted.info->make(wanted.shape);
    if (made)
        for (const auto& [key, value] : wanted.shape.parameters)
            if (value != fallbackOf(*wanted.info, key)) made->name += fmt::format(":{}={}", key, value);
    return made;
}

Result<ClosedForm> closedFormOf(std::string_view name, const Shape& shape, double forward, double inputGrad,
                                double weightGrad)
{
    STAGEWRIGHT_TRY(auto wanted, wantedOf(name, shape));
    return wanted.info->closedForm(wanted.shape, forward, inputGrad, weightGrad);
}

namespace {

// Names one replica's compute order.
std::string nameOf(const Schedule& schedule)
{
    if (schedule.ranks < 1 || schedule.microbatches < 1 || schedule.stages % schedule.ranks != 0) return {};
    // A stray number in a file can name a shape far larger than its ops; such a shape is not built.
    const std::size_t ops = schedule.opCount();
    const std::size_t cells =
        static_cast<std::size_t>(schedule.stages) * static_cast<std::size_t>(schedule.microbatches);
    if (ops < cells / 2) return {};
    constexpr std::size_t manyToSearch = 10'000;
    constexpr std::size_t mostMade = 30'000'000; // ops of all tries
    const Shape shape{schedule.ranks, schedule.microbatches, schedule.stages / schedule.ranks};
    std::size_t made = 0;
    bool defaultsTried = false;
    for (std::string& name : namesThatMayFit(schedule, ops <= manyToSearch)) {
        if (!defaultsTried && name.find(':') != std::string::npos) {
            defaultsTried = true;
            if (isFallingGpipe(schedule)) return "gpipe, backwards in falling order";
        }
        if (defaultsTried && made > mostMade) break;
        const auto candidate = makeSchedule(name, shape);
        if (candidate && *candidate == schedule) return std::move(name);
        if (candidate) made += candidate->opCount();
    }
    if (!schedule.sliceLengths.empty()) { // cut by other costs than a name has
        Schedule equal = schedule;
        equal.sliceLengths.clear();
        if (const std::string name = nameOf(equal); !name.empty())
            return fmt::format("{}, slices of {}", name, fmt::join(schedule.sliceLengths, ","));
    }
    return {};
}

} // namespace

std::string recognise(const Schedule& schedule)
{
    if (schedule.replicas > 1) return replicasAlike(schedule) ? recognise(replicaSchedule(schedule, 0)) : std::string();
    bool bare = true; // neither messages nor collectives
    for (const auto& ops : schedule.order)
        bare = bare && std::none_of(ops.begin(), ops.end(),
                                    [](const Op& op) { return isMessage(op.kind) || isCollective(op.kind); });
    if (bare) return nameOf(schedule);
    if (std::string name = nameOf(withoutCommunication(schedule)); !name.empty()) return name;
    return nameOf(computeOrder(schedule));
}

} // namespace stagewright
