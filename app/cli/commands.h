// The verbs of commands.def.
#pragma once

#include "app/cli/command.h"

namespace stagewright {

ExitCode exitCodeOf(ErrorCode code); // the only such mapping
std::vector<Command> allCommands();  // in the order of commands.def

} // namespace stagewright
