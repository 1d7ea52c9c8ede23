#include "traces/store/schedule_text.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/nesting.h"

namespace stagewright {

namespace {

constexpr int most = 1 << 20; // ranks, stages or microbatches

tl::unexpected<Error> damaged(const std::string& what)
{
    return fail(ErrorCode::Unreadable, "stored schedule: " + what, "restore the file from a copy");
}

bool smallNumber(const nlohmann::json& json, int& value)
{
    if (!json.is_number_integer()) return false;
    const auto number = json.get<std::int64_t>();
    if (number < 0 || number > most) return false;
    value = static_cast<int>(number);
    return true;
}

Result<std::vector<Op>> readOps(std::string_view text)
{
    std::vector<Op> ops;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        STAGEWRIGHT_TRY(auto op, parseOp(text.substr(0, end)));
        ops.push_back(op);
        text.remove_prefix(std::min(text.size(), end + 1));
    }
    return ops;
}

} // namespace

std::string writeScheduleText(const Schedule& schedule)
{
    // never a null that becomes one: the library crashes if memory runs out just then
    auto json = nlohmann::ordered_json::object();
    json["name"] = schedule.name;
    json["ranks"] = schedule.ranks;
    json["stages"] = schedule.stages;
    json["microbatches"] = schedule.microbatches;
    auto placement = nlohmann::ordered_json::array();
    for (int stage = 0; stage < schedule.placement.stages(); ++stage) {
        auto copies = nlohmann::ordered_json::array();
        for (const Placement::Copy& copy : schedule.placement.copiesOf(stage))
            copies.push_back({copy.firstMicrobatch, copy.rank});
        placement.push_back(std::move(copies));
    }
    json["placement"] = std::move(placement);
    auto order = nlohmann::ordered_json::array();
    for (const auto& ops : schedule.order) {
        std::string line;
        for (const Op& op : ops) {
            if (!line.empty()) line += ' ';
            line += toText(op);
        }
        order.push_back(std::move(line));
    }
    json["order"] = std::move(order);
    json["paired"] = schedule.paired;
    if (schedule.replicas != 1) json["replicas"] = schedule.replicas;
    if (schedule.weights != WeightRule::Synchronous) json["weights"] = toText(schedule.weights);
    if (!schedule.sliceLengths.empty()) json["slice_lengths"] = schedule.sliceLengths;
    if (!schedule.graph.isChain()) json["feeds"] = schedule.graph.edges(schedule.stages);
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Result<Schedule> readScheduleText(std::string_view text)
{
    constexpr std::size_t deepest = 16; // ours are half as deep
    if (nestingOf(text) > deepest) return damaged("lists and objects nest too deep");
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object()) return damaged("not a JSON object");
    for (const char* key : {"name", "ranks", "stages", "microbatches", "placement", "order", "paired"})
        if (!json.contains(key)) return damaged(fmt::format("{} is missing", key));
    Schedule schedule;
    if (!json["name"].is_string()) return damaged("name is not text");
    schedule.name = json["name"].get<std::string>();
    if (!smallNumber(json["ranks"], schedule.ranks) || !smallNumber(json["stages"], schedule.stages) ||
        !smallNumber(json["microbatches"], schedule.microbatches))
        return damaged("ranks, stages or microbatches is not a number in range");

    const auto& placement = json["placement"];
    if (!placement.is_array()) return damaged("placement is not a list");
    std::vector<std::vector<Placement::Copy>> copies;
    for (const auto& stage : placement) {
        if (!stage.is_array()) return damaged("placement of a stage is not a list");
        auto& of = copies.emplace_back();
        for (const auto& pair : stage) {
            Placement::Copy copy;
            if (!pair.is_array() || pair.size() != 2 || !smallNumber(pair[0], copy.firstMicrobatch) ||
                !smallNumber(pair[1], copy.rank))
                return damaged("a copy of a stage is not a pair of numbers");
            of.push_back(copy);
        }
        if (of.empty()) return damaged("a stage has no rank");
    }
    schedule.placement = Placement::of(std::move(copies));

    const auto& order = json["order"];
    if (!order.is_array()) return damaged("order is not a list");
    for (const auto& line : order) {
        if (!line.is_string()) return damaged("the order of a rank is not text");
        auto ops = readOps(line.get_ref<const std::string&>());
        if (!ops) return damaged(ops.error().message);
        schedule.order.push_back(std::move(*ops));
    }
    if (schedule.order.size() != static_cast<std::size_t>(schedule.ranks))
        return damaged(fmt::format("{} orders for {} ranks", schedule.order.size(), schedule.ranks));
    const auto& paired = json["paired"];
    if (!paired.is_array()) return damaged("paired is not a list");
    for (const auto& rank : paired) {
        if (!rank.is_array()) return damaged("the pairs of a rank are not a list");
        auto& positions = schedule.paired.emplace_back();
        for (const auto& position : rank) {
            if (!position.is_number_unsigned() ||
                position.get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max())
                return damaged("the position of a pair is not a number in range");
            positions.push_back(position.get<std::uint32_t>());
        }
    }
    if (json.contains("replicas") && (!smallNumber(json["replicas"], schedule.replicas) || schedule.replicas < 1 ||
                                      schedule.ranks % schedule.replicas != 0))
        return damaged("the replicas do not divide the ranks");
    if (json.contains("weights")) {
        const auto rule =
            json["weights"].is_string() ? weightRuleOf(json["weights"].get_ref<const std::string&>()) : std::nullopt;
        if (!rule) return damaged("the weight rule is unknown");
        schedule.weights = *rule;
    }
    if (json.contains("slice_lengths")) {
        if (!json["slice_lengths"].is_array()) return damaged("the slice lengths are not a list");
        for (const auto& length : json["slice_lengths"]) {
            int value = 0;
            if (!smallNumber(length, value) || value < 1) return damaged("a slice length is not a number in range");
            schedule.sliceLengths.push_back(static_cast<std::uint32_t>(value));
        }
    }
    if (json.contains("feeds")) {
        std::vector<StageGraph::Edge> edges;
        if (!json["feeds"].is_array()) return damaged("what stages feed is not a list");
        for (const auto& pair : json["feeds"]) {
            auto& [from, to] = edges.emplace_back();
            if (!pair.is_array() || pair.size() != 2 || !smallNumber(pair[0], from) || !smallNumber(pair[1], to))
                return damaged("a stage and one that it feeds are not a pair of numbers");
        }
        auto graph = StageGraph::of(schedule.stages, std::move(edges));
        if (!graph) return damaged(graph.error().message);
        schedule.graph = std::move(*graph);
    }
    return schedule;
}

} // namespace stagewright
