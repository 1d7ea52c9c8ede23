// The JSON in frames of the kind Message, and how both ends read it.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace stagewright {

using Message = nlohmann::json;

inline std::string dumped(const Message& message) { return message.dump(-1, ' ', false, Message::error_handler_t::replace); } // one line; bytes that are not UTF-8 are replaced
// Empty: there is none. As it came: show it by plainText().
inline std::string textOf(const Message& message, const char* key)
{
    return message.contains(key) && message[key].is_string() ? message[key].get<std::string>() : std::string();
}

} // namespace stagewright
