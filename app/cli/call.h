// A call of the program as it was typed: which verb, and what runs it.
#pragma once

#include <string>

#include "app/cli/command.h"

namespace stagewright {

struct Call {
    std::string verb;
    Runner run; // empty: help or the version was asked for and printed
};

// Sets the session's options, those that every verb takes. Wrong usage is an Error that names the option, says what is
// accepted and the nearest name there is.
Result<Call> readCall(int count, char** words, Session& session);

} // namespace stagewright
