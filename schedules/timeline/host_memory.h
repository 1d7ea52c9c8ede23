// What copies have moved to the hosts of ranks, as a counter of the timeline in bytes: the memory of ranks is their
// devices' alone.
#pragma once

#include <string_view>

namespace stagewright {

inline constexpr std::string_view hostMemoryCounter = "activations on the host";

} // namespace stagewright
