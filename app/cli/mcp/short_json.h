// JSON answers within a length: an assistant pays for every character.
#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace stagewright {

// The value as text of at most `most` bytes where that is possible by cutting its lists and texts: long lists end with
// a text that says how many items are left out. What has no list and no long text stays as it is.
std::string shortJson(const nlohmann::ordered_json& value, std::size_t most);

} // namespace stagewright
