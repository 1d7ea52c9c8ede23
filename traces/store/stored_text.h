// Names of enumerators as stored in the run file, parsed. Unknown words get the mildest meaning.
#pragma once

#include <optional>
#include <string_view>

#include "traces/run/run.h"

namespace stagewright {

RunState runStateOf(std::string_view text);     // unknown: Interrupted
Provenance provenanceOf(std::string_view text); // unknown: Imported
std::optional<Lane> laneOf(std::string_view text);

} // namespace stagewright
