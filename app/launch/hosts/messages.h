// The JSON in frames of the kind Message, and how both ends read it.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

namespace stagewright {

using Message = nlohmann::json;

// one line; bytes that are not UTF-8 are replaced
inline std::string dumped(const Message& message)
{
    return message.dump(-1, ' ', false, Message::error_handler_t::replace);
}
// What is there with another type counts as missing.
// Empty: there is none. As it came: show it by plainText().
inline std::string textOf(const Message& message, const char* key)
{
    return message.contains(key) && message[key].is_string() ? message[key].get<std::string>() : std::string();
}

inline bool flagOf(const Message& message, const char* key)
{
    return message.contains(key) && message[key].is_boolean() && message[key].get<bool>();
}
inline std::uint64_t countOf(const Message& message, const char* key) // 0: there is none
{
    return message.contains(key) && message[key].is_number_unsigned() ? message[key].get<std::uint64_t>() : 0;
}
inline Message listOf(const Message& message, const char* key)
{
    return message.contains(key) && message[key].is_array() ? message[key] : Message::array();
}

} // namespace stagewright
