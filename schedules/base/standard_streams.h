// Standard input, output and error, which whoever calls the program may have closed or tied to a full disk.
#pragma once

#include <string_view>

namespace stagewright {

// First of all in main(): a closed one is tied to /dev/null, so that no file of the program gets its number and what is
// said to it.
void tieStandardStreams() noexcept;
// To standard error. What can't be written is lost, and nothing else: what the program does, and its exit code, stay.
void sayOnStandardError(std::string_view text) noexcept;

} // namespace stagewright
