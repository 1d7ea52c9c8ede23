// Small problems of every planner to start from.
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace stagewright {

nlohmann::ordered_json exampleInput(std::string_view program); // null: an unknown program

} // namespace stagewright
