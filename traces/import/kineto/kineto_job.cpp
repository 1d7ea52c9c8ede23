#include "traces/import/kineto/kineto_job.h"

#include <cctype>

#include <fmt/format.h>

#include "schedules/base/foreign_json.h"
#include "schedules/base/time_limits.h"
#include "traces/import/kineto/kineto_event.h"

namespace stagewright {

using nlohmann::json;

std::vector<int> ranksInText(std::string_view text)
{
    std::vector<int> ranks;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '.') return {};
        if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) continue;
        std::int64_t value = 0;
        while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0 && value < 100'000'000)
            value = value * 10 + (text[i++] - '0');
        ranks.push_back(static_cast<int>(value));
    }
    return ranks;
}

namespace {

int smallNumber(const json& object, const char* key, int otherwise)
{
    const auto found = object.find(key);
    if (found == object.end() || !found->is_number_integer()) return otherwise;
    const auto value = found->get<std::int64_t>();
    return value >= 0 && value < 1'000'000 ? static_cast<int>(value) : otherwise;
}

void readJob(const json& info, ForeignRank& rank)
{
    rank.rank = smallNumber(info, "rank", -1);
    if (const auto found = info.find("rank");
        rank.rank < 0 && found != info.end() && found->is_number() && *found != -1)
        rank.notes.push_back(fmt::format(
            "the trace says rank {}, which is not a number from 0 to 999,999: the rank is taken from the file's name",
            found->dump()));
    rank.worldSize = smallNumber(info, "world_size", 0);
    for (const char* key : {"backend", "nccl_version"})
        if (const auto found = info.find(key);
            found != info.end() && found->is_string() && !found->get<std::string>().empty())
            rank.environment.emplace_back(key, found->get<std::string>());
    const auto groups = info.find("pg_config");
    if (groups == info.end() || !groups->is_array()) return;
    for (const json& group : *groups) {
        if (!group.is_object() || !group.contains("pg_name") || !group["pg_name"].is_string()) continue;
        const std::string name = group["pg_name"];
        std::vector<int> ranks;
        if (const auto list = group.find("ranks"); list != group.end())
            ranks = ranksInText(list->is_string() ? list->get<std::string>() : list->dump());
        if (!ranks.empty()) rank.groups[name] = std::move(ranks);
        if (const auto what = group.find("pg_desc"); what != group.end() && what->is_string())
            rank.groupPurpose[name] = what->get<std::string>();
    }
}

} // namespace

bool readTraceMember(std::string_view key, std::string_view text, ForeignRank& rank)
{
    if (key == "baseTimeNanoseconds") {
        if (const auto value = wholeNumberOf(text)) rank.epoch = *value < 0 || *value > farthestReading ? 0 : *value;
        return true;
    }
    if (key == "schemaVersion") return true;
    if (key == "stagewright" || key == "otherData") { // written here
        const json own = readForeignJson(text);
        const bool ours = own.is_object() && (key == "stagewright" ||
                                              (own.contains("generator") && own["generator"] == json("stagewright")));
        rank.ownEvents = rank.ownEvents || (ours && key == "otherData");
        if (ours && own.contains("run") && own["run"].is_string()) rank.run = own["run"].get<std::string>();
        return false;
    }
    if (key == "distributedInfo") {
        const json info = readForeignJson(text);
        if (info.is_object())
            readJob(info, rank);
        else
            rank.notes.emplace_back(
                "distributedInfo can't be read, so the rank and the process groups are not known from it");
        return true;
    }
    if (key != "deviceProperties") return false;
    const json devices = readForeignJson(text);
    if (devices.is_array() && !devices.empty() && devices[0].is_object() && devices[0].contains("name") &&
        devices[0]["name"].is_string())
        rank.environment.emplace_back("device",
                                      fmt::format("{} × {}", devices.size(), devices[0]["name"].get<std::string>()));
    return true;
}

} // namespace stagewright
