// The text of engine/data/workshop.txt, built into the program.
#pragma once

#include <cstdint>
#include <span>

namespace stagewright {

std::span<const std::uint8_t> builtInText();

} // namespace stagewright
