// Small problems of every planner to start from.
#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace stagewright {

nlohmann::ordered_json exampleInput(std::string_view name); // of allExamples(); null: another name

} // namespace stagewright
