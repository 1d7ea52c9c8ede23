#include "app/cli/mcp/protocol.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "app/cli/mcp/short_json.h"
#include "schedules/base/foreign_json.h"

namespace stagewright {

namespace {

using MessageJson = nlohmann::ordered_json;

// Oldest first; the last needs no handshake.
constexpr std::array<std::string_view, 5> versions{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25",
                                                   "2026-07-28"};
constexpr std::string_view newest = versions.back();
constexpr std::string_view newestWithHandshake = versions[3];
constexpr const char* versionKey = "io.modelcontextprotocol/protocolVersion";

enum Code : int {
    parseError = -32700,
    invalidRequest = -32600,
    noSuchMethod = -32601,
    invalidParams = -32602,
    unknownVersion = -32022,
};

struct Refusal {
    int code;
    std::string message;
    MessageJson data = nullptr;
};

MessageJson errorReply(const MessageJson& id, const Refusal& refusal)
{
    MessageJson error = {{"code", refusal.code}, {"message", refusal.message}};
    if (!refusal.data.is_null()) error["data"] = refusal.data;
    return {{"jsonrpc", "2.0"}, {"id", id}, {"error", std::move(error)}};
}

std::string dumped(const MessageJson& value)
{
    return value.dump(-1, ' ', false, MessageJson::error_handler_t::replace);
}

// What went wrong in words; a verb's error is an object with a message and a remedy.
std::string wordsOf(const Error& error) { return error.message + (error.remedy.empty() ? "" : ". " + error.remedy); }

std::string wordsOf(const std::string& said)
{
    const MessageJson json = readForeignJson<MessageJson>(said);
    const auto error = json.is_object() ? json.find("error") : json.end();
    if (!json.is_object() || error == json.end() || !error->is_object()) return said;
    return wordsOf(Error{ErrorCode::Usage, error->value("message", said), error->value("remedy", std::string())});
}

constexpr const char* instructions = "Stagewright explains runs of pipeline-parallel training. Ask list_runs for the "
                                     "runs of a file, then report of one: its levers "
                                     "say what would shorten the step most, explain_gaps why ranks are idle, what_if "
                                     "tries a change, compare proves a fix. simulate, "
                                     "plan and draw need no file. Figures are the program's own: quote their keys, and "
                                     "say unknown where a value is null.";

} // namespace

McpServer::McpServer(McpFolders folders, std::string version,
                     std::function<McpAnswer(const std::vector<std::string>&, bool json)> run)
    : m_folders(std::move(folders)), m_version(std::move(version)), m_run(std::move(run))
{
}

MessageJson McpServer::listed() const
{
    MessageJson tools = MessageJson::array();
    for (const McpTool& tool : mcpTools()) {
        if (tool.writes && m_folders.write.empty()) continue;
        tools.push_back({{"name", std::string(tool.name)},
                         {"title", std::string(tool.title)},
                         {"description", std::string(tool.help)},
                         {"inputSchema", schemaOf(tool)},
                         {"annotations",
                          {{"readOnlyHint", !tool.writes},
                           {"destructiveHint", false},
                           {"idempotentHint", true},
                           {"openWorldHint", false}}}});
    }
    return tools;
}

MessageJson McpServer::called(const MessageJson& params)
{
    const auto name = params.is_object() && params.contains("name") && params["name"].is_string()
                          ? params["name"].get<std::string>()
                          : std::string();
    const auto tools = mcpTools();
    const auto tool = std::find_if(tools.begin(), tools.end(), [&](const McpTool& one) {
        return one.name == name && (!one.writes || !m_folders.write.empty());
    });
    if (tool == tools.end()) throw Refusal{invalidParams, fmt::format("there is no tool '{}'", name.substr(0, 60))};
    const auto textResult = [](std::string text, bool wrong) {
        MessageJson out = {{"content", MessageJson::array({{{"type", "text"}, {"text", std::move(text)}}})}};
        if (wrong) out["isError"] = true;
        return out;
    };
    const auto given = params.find("arguments");
    if (given != params.end() && !given->is_object() && !given->is_null())
        throw Refusal{invalidParams, "arguments is not an object"};
    const auto arguments =
        checkedArguments(*tool, given == params.end() || given->is_null() ? MessageJson::object() : *given, m_folders);
    if (!arguments) return textResult(wordsOf(arguments.error()), true);
    const McpAnswer answer = m_run(tool->words(*arguments, m_folders), !tool->text);
    if (!answer.good) return textResult(wordsOf(answer.text), true);
    if (tool->text) return textResult(answer.text.substr(0, mostAnswerBytes), false);
    MessageJson json = readForeignJson<MessageJson>(answer.text);
    if (!tool->keeps.empty() && json.is_object()) {
        MessageJson kept = MessageJson::object();
        for (const std::string_view key : tool->keeps)
            if (const auto found = json.find(std::string(key)); found != json.end()) kept[std::string(key)] = *found;
        json = std::move(kept);
    }
    if (tool->finish) {
        const AskRows rows = [&](const std::string& query) {
            const McpAnswer found = m_run(
                {"sql", "--max-rows=4096", "--time-limit=20", "--", arguments->at("file").get<std::string>(), query},
                true);
            const MessageJson table = found.good ? readForeignJson<MessageJson>(found.text) : MessageJson();
            return table.is_object() ? table.value("rows", MessageJson::array()) : MessageJson::array();
        };
        if (const auto finished = tool->finish(json, *arguments, rows); !finished)
            return textResult(wordsOf(finished.error()), true);
    }
    return textResult(shortJson(json, mostAnswerBytes), false);
}

MessageJson McpServer::resultOf(const std::string& method, const MessageJson& params, bool stateless)
{
    const MessageJson server = {{"name", "stagewright"}, {"title", "Stagewright"}, {"version", m_version}};
    if (method == "initialize") {
        const auto asked =
            params.is_object() && params.contains("protocolVersion") && params["protocolVersion"].is_string()
                ? params["protocolVersion"].get<std::string>()
                : std::string();
        const bool known = std::find(versions.begin(), versions.end() - 1, asked) != versions.end() - 1;
        return {{"protocolVersion", known ? asked : std::string(newestWithHandshake)},
                {"capabilities", {{"tools", MessageJson::object()}}},
                {"serverInfo", server},
                {"instructions", instructions}};
    }
    if (method == "ping" && !stateless) return MessageJson::object();
    if (method == "tools/list") {
        MessageJson out = {{"tools", listed()}};
        if (stateless) {
            out["ttlMs"] = 3'600'000;
            out["cacheScope"] = "public";
        }
        return out;
    }
    if (method == "tools/call") return called(params);
    if (method == "server/discover") {
        MessageJson supported = MessageJson::array();
        for (const std::string_view version : versions) supported.push_back(std::string(version));
        return {{"supportedVersions", std::move(supported)},
                {"capabilities", {{"tools", MessageJson::object()}}},
                {"instructions", instructions},
                {"ttlMs", 3'600'000},
                {"cacheScope", "public"},
                {"_meta", {{"io.modelcontextprotocol/serverInfo", server}}}};
    }
    throw Refusal{noSuchMethod, fmt::format("there is no method '{}'", method.substr(0, 60))};
}

std::optional<std::string> McpServer::reply(std::string_view line)
{
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return std::nullopt;
    if (line.size() > mostLineBytes)
        return dumped(
            errorReply(nullptr, {invalidRequest, fmt::format("a message is longer than {} bytes", mostLineBytes)}));
    const MessageJson message = readForeignJson<MessageJson>(line);
    if (message.is_discarded() || message.is_null())
        return dumped(errorReply(nullptr, {parseError, "the line is not JSON"}));
    if (!message.is_object() || !message.contains("method") || !message["method"].is_string()) {
        if (message.is_object() && (message.contains("result") || message.contains("error"))) return std::nullopt;
        return dumped(errorReply(nullptr, {invalidRequest, "a request has a method"}));
    }
    const auto found = message.find("id");
    if (found == message.end()) return std::nullopt; // a notification
    if (!found->is_string() && !found->is_number_integer())
        return dumped(errorReply(nullptr, {invalidRequest, "an id is a text or a whole number"}));
    const MessageJson id = *found;
    const MessageJson none = MessageJson::object();
    const MessageJson& params = message.contains("params") ? message["params"] : none;
    try {
        const auto meta = params.is_object() ? params.find("_meta") : params.end();
        const bool stateless =
            params.is_object() && meta != params.end() && meta->is_object() && meta->contains(versionKey);
        if (stateless && (*meta)[versionKey] != std::string(newest)) {
            MessageJson supported = MessageJson::array({std::string(newest)});
            throw Refusal{unknownVersion,
                          "this version of the protocol is not known without a handshake",
                          {{"supported", std::move(supported)}, {"requested", (*meta)[versionKey]}}};
        }
        MessageJson result = resultOf(message["method"].get<std::string>(), params, stateless);
        if (stateless || message["method"] == "server/discover") result["resultType"] = "complete";
        return dumped({{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}});
    } catch (const Refusal& refusal) {
        return dumped(errorReply(id, refusal));
    }
}

} // namespace stagewright
