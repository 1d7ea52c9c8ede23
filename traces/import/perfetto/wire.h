// How a field of a protobuf message is written: what a reader asks before it takes the field's value, as a damaged or
// foreign one may have another form.
#pragma once

#include <string_view>

#include <protozero/pbf_message.hpp>

namespace stagewright {

template <typename Message>
bool isNumber(const Message& message)
{
    return message.has_wire_type(protozero::pbf_wire_type::varint);
}
template <typename Message>
bool isDouble(const Message& message)
{
    return message.has_wire_type(protozero::pbf_wire_type::fixed64);
}
template <typename Message>
bool isBytes(const Message& message)
{
    return message.has_wire_type(protozero::pbf_wire_type::length_delimited);
}
template <typename Message>
std::string_view viewOf(Message& message)
{
    const auto view = message.get_view();
    return {view.data(), view.size()};
}

} // namespace stagewright
