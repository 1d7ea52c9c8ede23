#include <cerrno>
#include <cstring>

#include <unistd.h>

#include <fmt/core.h>

#include "app/cli/command.h"
#include "app/cli/options/files.h"
#include "app/cli/session.h"

namespace stagewright {

namespace {

struct UiChoice {
    std::vector<std::string> files;
};

Result<int> runUi(const UiChoice& options)
{
    std::string program = siblingProgram("stagewright-ui");
    if (program.empty())
        return fail(ErrorCode::Unavailable, "the window (stagewright-ui) is neither next to this program nor on PATH",
                    "build it with Qt 6 installed: ./bootstrap.sh build");
    std::vector<std::string> words{program};
    words.insert(words.end(), options.files.begin(), options.files.end());
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(program.c_str(), arguments.data());
    return fail(ErrorCode::Unavailable, fmt::format("{} can't be started: {}", program, std::strerror(errno)));
}

} // namespace

Command command_ui()
{
    return {"ui", "Open the window",
            [](OptionSet& verb) -> Runner {
                auto options = std::make_shared<UiChoice>();
                verb.value("FILE", &options->files, "Run files to open");
                return [options](Session&) { return runUi(*options); };
            },
            false};
}

} // namespace stagewright
