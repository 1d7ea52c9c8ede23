// How deep a JSON text nests, before it is parsed.
#pragma once

#include <cstddef>
#include <string_view>

namespace stagewright {

// The most brackets and braces that are open at a time, besides those in strings: a parser takes memory for each.
// O(length).
std::size_t nestingOf(std::string_view json);
// Deeper than anything that is read: what copies, compares or writes such a value would call itself until the stack
// ends.
inline bool nestedTooDeep(std::string_view json)
{
    constexpr std::size_t deepest = 100;
    return nestingOf(json) > deepest;
}

} // namespace stagewright
