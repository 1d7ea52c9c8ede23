// Command: one verb of the program. Each lives in verbs/<verb>.cpp as
//
//     Command command_<verb>();
//
// and has one line in commands.def. setUp adds the verb's options and returns what runs after parsing. The runner
// returns the exit code for success (0) or for a failed check (1), or an Error, which main.cpp turns into a message,
// or with --json into an object, and an exit code.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "app/cli/option_set.h"
#include "schedules/base/result.h"

namespace stagewright {

class Session;

enum ExitCode : int {
    ExitDone = 0,
    ExitDoesNotHold = 1,
    ExitUsage = 2,
    ExitUnreadable = 3,
    ExitUnavailable = 4,
    ExitFailed = 5,
    ExitInterrupted = 130,
};

using Runner = std::function<Result<int>(Session&)>;

struct Command {
    std::string_view name;
    std::string_view summary; // one line
    Runner (*setUp)(OptionSet& verb);
    bool json = true;      // takes --json
    bool longWork = false; // takes --progress and --stdin-control
    bool document = false; // takes --markdown
};

} // namespace stagewright
