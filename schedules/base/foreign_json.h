// JSON that something else wrote, or may have changed: a host, a learner, another program.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "schedules/base/nesting.h"

namespace stagewright {

// Discarded where it is not JSON or nested too deep. What is in it may still have any type.
template <typename Json = nlohmann::json>
Json readForeignJson(std::string_view text)
{
    return nestedTooDeep(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
}

} // namespace stagewright
