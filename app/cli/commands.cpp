#include "app/cli/commands.h"

#include "app/cli/command.h"

namespace stagewright {

#define STAGEWRIGHT_COMMAND(name) Command command_##name();
#include "app/cli/commands.def"
#undef STAGEWRIGHT_COMMAND

std::vector<Command> allCommands()
{
    return {
#define STAGEWRIGHT_COMMAND(name) command_##name(),
#include "app/cli/commands.def"
#undef STAGEWRIGHT_COMMAND
    };
}

ExitCode exitCodeOf(ErrorCode code)
{
    switch (code) {
    case ErrorCode::Invalid: return ExitDoesNotHold;
    case ErrorCode::Usage: return ExitUsage;
    case ErrorCode::Unreadable: return ExitUnreadable;
    case ErrorCode::Unavailable: return ExitUnavailable;
    case ErrorCode::Failed: return ExitFailed;
    case ErrorCode::Cancelled: return ExitInterrupted;
    }
    return ExitFailed;
}

} // namespace stagewright
