// How deep a JSON text nests, before it is parsed.
#pragma once

#include <cstddef>
#include <string_view>

namespace stagewright {

// The most brackets and braces that are open at a time, besides those in strings: a parser takes memory for each. O(length).
std::size_t nestingOf(std::string_view json);

} // namespace stagewright
