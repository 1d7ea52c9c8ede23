// The Model Context Protocol over lines of JSON-RPC 2.0: initialize of the versions until 2025-11-25, and 2026-07-28,
// which has no handshake; tools/list and tools/call, ping, server/discover. Pure: who calls it reads and writes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "app/cli/mcp/tools.h"

namespace stagewright {

// What a call of this program printed.
struct McpAnswer {
    bool good = true; // else text says what is wrong, and what to do
    std::string text;
};

class McpServer {
public:
    static constexpr std::size_t mostAnswerBytes = 12'000; // some 4,000 tokens
    static constexpr std::size_t mostLineBytes = std::size_t{1} << 20;

    // run: runs the words with --json, or without where the tool answers in text.
    McpServer(McpFolders folders, std::string version,
              std::function<McpAnswer(const std::vector<std::string>&, bool json)> run);

    // The reply to a message, without a newline; none to a notification.
    std::optional<std::string> reply(std::string_view line);

private:
    nlohmann::ordered_json resultOf(const std::string& method, const nlohmann::ordered_json& params, bool stateless);
    nlohmann::ordered_json called(const nlohmann::ordered_json& params);
    nlohmann::ordered_json listed() const;

    McpFolders m_folders;
    std::string m_version;
    std::function<McpAnswer(const std::vector<std::string>&, bool json)> m_run;
};

} // namespace stagewright
