// Lines of any bytes to the server of the Model Context Protocol, and answers of any bytes of the program behind it: a
// reply is one line of JSON-RPC within its length, no file outside of the folder is named to the program. The input is
// lines, a line "---", and the program's answer.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "app/cli/mcp/protocol.h"
#include "require.h"

using namespace stagewright;

namespace fs = std::filesystem;

namespace {

// With a run file, another folder beside it, and a link that leads out.
const fs::path& mcpFolder()
{
    static const fs::path folder = [] {
        const fs::path made = fs::absolute("fuzz_mcp_folder");
        fs::remove_all(made);
        fs::create_directories(made / "runs");
        std::ofstream(made / "runs" / "demo.stagewright") << "x";
        std::ofstream(made / "secret.stagewright") << "x";
        fs::create_symlink(made / "secret.stagewright", made / "runs" / "link.stagewright");
        return made / "runs";
    }();
    return folder;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::size_t cut = text.find("\n---\n");
    const std::string_view lines = text.substr(0, cut);
    const std::string answer(cut == std::string_view::npos ? std::string_view() : text.substr(cut + 5));
    const std::string inside = mcpFolder().string() + "/";
    McpServer server({{mcpFolder().string()}, size % 2 == 0 ? mcpFolder().string() : std::string()}, "0",
                     [&](const std::vector<std::string>& words, bool) {
                         require(!words.empty() && words.front().front() != '-');
                         for (const std::string& word : words)
                             require(word.find("secret") == std::string::npos || !word.starts_with("/"));
                         return McpAnswer{size % 3 != 0, answer};
                     });
    for (std::size_t at = 0; at < lines.size();) {
        const std::size_t end = std::min(lines.find('\n', at), lines.size());
        if (const auto reply = server.reply(lines.substr(at, end - at))) {
            require(reply->find('\n') == std::string::npos);
            // what has no list and no long text to cut stays as it is
            require(reply->size() <= 8 * McpServer::mostAnswerBytes + 8 * size);
            const auto json = nlohmann::json::parse(*reply, nullptr, false);
            require(json.is_object() && json.at("jsonrpc") == "2.0" && json.contains("id"));
            require(json.contains("result") != json.contains("error"));
        }
        at = end + 1;
    }
    return 0;
}
