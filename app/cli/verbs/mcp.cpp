#include <cstdio>
#include <filesystem>
#include <iostream>
#include <string>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/mcp/protocol.h"
#include "app/cli/options/files.h"
#include "app/cli/session.h"
#include "app/launch/child_process.h"
#include "app/version/version.h"

namespace stagewright {

namespace {

struct McpChoice {
    std::vector<std::string> folders;
    std::string write;
    double seconds = 60;
};

Result<std::string> folderOf(const std::string& name, const char* option)
{
    std::error_code failed;
    const auto path = std::filesystem::canonical(name, failed);
    if (failed || !std::filesystem::is_directory(path, failed))
        return fail(ErrorCode::Unreadable, fmt::format("{}: there is no folder {}", option, name),
                    "make it, or name another one");
    return path.string();
}

// This program with these words, in a process of its own: what it says, or why it can't.
McpAnswer ask(const std::string& program, std::vector<std::string> words, bool json, double seconds)
{
    ChildStart start;
    start.ownErrors = true;
    start.variables = {{"NO_COLOR", "1"}, {"COLUMNS", "140"}};
    start.arguments = {program, words.front(), "--log-level=error"};
    if (json) start.arguments.emplace_back("--json");
    start.arguments.insert(start.arguments.end(), words.begin() + 1, words.end());
    const auto said = runToEnd(start, seconds, std::size_t{64} << 20);
    if (!said)
        return {false, fmt::format("{}: {}. Ask for less, or start it with a larger --time-limit.", words.front(),
                                   said.error().message)};
    // A check that does not hold is an answer; so is an error, whose object says what is wrong.
    if (said->end.good() || (said->end.signal == 0 && said->end.code == ExitDoesNotHold && !said->out.empty()))
        return {true, said->out};
    return {false, !said->out.empty() ? said->out : !said->err.empty() ? said->err : toText(said->end)};
}

Result<int> runMcp(const McpChoice& options, Session& session)
{
    McpFolders folders;
    for (const std::string& name : options.folders.empty() ? std::vector<std::string>{"."} : options.folders) {
        STAGEWRIGHT_TRY(auto folder, folderOf(name, "--folder"));
        folders.read.push_back(std::move(folder));
    }
    if (!options.write.empty()) {
        STAGEWRIGHT_TRY(folders.write, folderOf(options.write, "--write"));
        folders.read.push_back(folders.write);
    }
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    McpServer server(
        std::move(folders), std::string(programVersion()),
        [&](const std::vector<std::string>& words, bool json) { return ask(program, words, json, options.seconds); });
    std::string line;
    while (std::getline(std::cin, line)) {
        const auto reply = server.reply(line);
        if (!reply) continue;
        session.out(*reply + "\n");
        STAGEWRIGHT_CHECK(session.finish());
    }
    return ExitDone;
}

} // namespace

Command command_mcp()
{
    return {"mcp", "Answer an assistant's questions by the Model Context Protocol, on standard input and output",
            [](OptionSet& verb) -> Runner {
                auto options = std::make_shared<McpChoice>();
                verb.value("--folder", &options->folders,
                           "A folder whose files may be asked about; may be repeated [this one]")
                    .form("DIR");
                verb.value("--write", &options->write,
                           "A folder that imports and exports may be written to; without it nothing is written")
                    .form("DIR");
                verb.value("--time-limit", &options->seconds, "Longest answer, in seconds [60]").form("S");
                verb.notes("It is started by the assistant's program, with a command such as\n"
                           "    stagewright mcp --folder ~/runs\n"
                           "and ends with its input. docs/guide/assistants.md has the configuration of some of them.");
                return [options](Session& session) { return runMcp(*options, session); };
            },
            false};
}

} // namespace stagewright
