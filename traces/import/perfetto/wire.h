// The fields of a protobuf message, one after the other, and how each is written: what a reader asks before it takes the
// field's value, as a damaged or foreign one may have another form.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <protozero/exception.hpp>
#include <protozero/types.hpp>

namespace stagewright {

// A number and where it ends; passed by value, so that a reader's position stays in a register.
struct Varint {
    std::uint64_t value;
    const char* end;
};

// A number of several bytes. Throws protozero::exception where the message is damaged.
inline Varint longVarintAt(const char* at, const char* end)
{
    std::uint64_t value = 0;
    if constexpr (std::endian::native == std::endian::little)
        if (end - at >= 8) { // the ends of bytes that more follow are put together, pair by pair
            std::memcpy(&value, at, sizeof value);
            if (const std::uint64_t ends = ~value & 0x8080808080808080u; ends != 0) {
                at += (std::countr_zero(ends) >> 3) + 1;
                value &= ends ^ (ends - 1);
                value = (value & 0x007F007F007F007Fu) | ((value & 0x7F007F007F007F00u) >> 1);
                value = (value & 0x00003FFF00003FFFu) | ((value & 0x3FFF00003FFF0000u) >> 2);
                return {(value & 0x000000000FFFFFFFu) | ((value & 0x0FFFFFFF00000000u) >> 4), at};
            }
            value = 0;
        }
    for (int shift = 0; shift < 70; shift += 7) {
        if (at == end) throw protozero::end_of_buffer_exception();
        const auto byte = static_cast<unsigned char>(*at++);
        if (shift < 64) value |= std::uint64_t{byte & 0x7FU} << shift;
        if (byte < 0x80) return {value, at};
    }
    throw protozero::varint_too_long_exception();
}

// Throws protozero::exception where the message is damaged.
[[gnu::always_inline]] inline Varint varintAt(const char* at, const char* end)
{
    return at != end && static_cast<signed char>(*at) >= 0 ? Varint{static_cast<std::uint64_t>(*at), at + 1}
                                                           : longVarintAt(at, end);
}

template <typename Tag>
class Fields {
public:
    explicit Fields(std::string_view message) : m_at(message.data()), m_end(message.data() + message.size()) {}
    Fields(const char* data, std::size_t size) : Fields(std::string_view(data, size)) {}

    [[gnu::always_inline]] bool next()
    {
        if (m_at == m_end) return false;
        const std::uint64_t key = readNumber();
        if (key - 8 >= std::uint64_t{0x20000000} << 3) throw protozero::invalid_tag_exception();
        m_key = static_cast<std::uint32_t>(key);
        switch (typeOf(m_key)) {
        case protozero::pbf_wire_type::varint: m_number = readNumber(); return true;
        case protozero::pbf_wire_type::fixed64: m_number = fixed<std::uint64_t>(); return true;
        case protozero::pbf_wire_type::fixed32: m_number = fixed<std::uint32_t>(); return true;
        case protozero::pbf_wire_type::length_delimited: {
            const std::uint64_t size = readNumber();
            if (size > static_cast<std::uint64_t>(m_end - m_at)) throw protozero::end_of_buffer_exception();
            m_bytes = {m_at, static_cast<std::size_t>(size)};
            m_at += size;
            return true;
        }
        default: throw protozero::unknown_pbf_wire_type_exception();
        }
    }

    Tag tag() const { return static_cast<Tag>(m_key >> 3); }
    bool isNumber() const { return typeOf(m_key) == protozero::pbf_wire_type::varint; }
    bool isBytes() const { return typeOf(m_key) == protozero::pbf_wire_type::length_delimited; }
    bool isDouble() const { return typeOf(m_key) == protozero::pbf_wire_type::fixed64; }
    std::uint64_t number() const { return m_number; }
    std::int64_t whole() const { return static_cast<std::int64_t>(m_number); }
    std::int32_t small() const { return static_cast<std::int32_t>(m_number); }
    double real() const { return std::bit_cast<double>(m_number); }
    std::string_view bytes() const { return m_bytes; }
    const char* position() const { return m_at; } // behind the field

private:
    static protozero::pbf_wire_type typeOf(std::uint32_t key) { return static_cast<protozero::pbf_wire_type>(key & 7); }
    [[gnu::always_inline]] std::uint64_t readNumber()
    {
        const auto [value, end] = varintAt(m_at, m_end);
        m_at = end;
        return value;
    }
    template <typename Number>
    Number fixed()
    {
        Number number = 0;
        if (m_end - m_at < static_cast<std::ptrdiff_t>(sizeof number)) throw protozero::end_of_buffer_exception();
        std::memcpy(&number, m_at, sizeof number);
        m_at += sizeof number;
        return number;
    }

    const char* m_at;
    const char* m_end;
    std::uint32_t m_key = 7; // of the field: its number and how it is written; 7: none yet
    std::uint64_t m_number = 0;
    std::string_view m_bytes;
};

} // namespace stagewright
