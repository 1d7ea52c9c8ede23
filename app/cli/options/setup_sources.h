// What a setup names that is in files and runs, and where its notes go, in a call of the program.
#pragma once

#include "schedules/setup/prepare.h"

namespace stagewright {

class Session;

SetupSources sourcesOf(Session& session); // which outlives them

} // namespace stagewright
