// Names of enumerators as stored in the run file, parsed. Unknown words get the mildest meaning.
#pragma once

#include <string_view>

#include "traces/run/run.h"

namespace stagewright {

RunState runStateOf(std::string_view text);     // unknown: Interrupted
Provenance provenanceOf(std::string_view text); // unknown: Imported

} // namespace stagewright
