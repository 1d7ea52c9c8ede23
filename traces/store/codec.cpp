#include "traces/store/codec.h"

#include <bit>
#include <cstring>

#include <zlib.h>

namespace stagewright {

namespace {

constexpr std::size_t headerBytes = 4; // CRC-32 of the rest, little endian
constexpr std::size_t slack = 8;       // stores and loads are eight bytes wide

std::uint64_t zigzag(std::int64_t value)
{
    return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

std::int64_t unzigzag(std::uint64_t value)
{
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

void storeLittle(std::byte* to, std::uint64_t value)
{
    if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
    std::memcpy(to, &value, 8);
}

std::uint64_t loadLittle(const std::byte* from)
{
    std::uint64_t value = 0;
    std::memcpy(&value, from, 8);
    if constexpr (std::endian::native == std::endian::big) value = __builtin_bswap64(value);
    return value;
}

void storeLength(std::byte* to, std::uint32_t value)
{
    for (int i = 0; i < 4; ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint32_t loadLength(const std::byte* from)
{
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(from[i]) << (8 * i);
    return value;
}

// Nibbles first (two values a byte, the first in the low half), then each value's bytes, low byte first.
template <bool delta>
std::byte* pack(std::span<const std::int64_t> values, std::byte* to)
{
    std::byte* nibbles = to;
    std::byte* out = to + (values.size() + 1) / 2;
    std::uint64_t previous = 0;
    unsigned low = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        std::uint64_t value = static_cast<std::uint64_t>(values[i]);
        if constexpr (delta) {
            const std::uint64_t difference = value - previous; // wraps, and wraps back
            previous = value;
            value = difference;
        }
        value = zigzag(static_cast<std::int64_t>(value));
        const unsigned width = (static_cast<unsigned>(std::bit_width(value)) + 7) / 8;
        storeLittle(out, value);
        out += width;
        if ((i & 1) == 0) {
            low = width;
        } else {
            *nibbles++ = static_cast<std::byte>(low | (width << 4));
        }
    }
    if ((values.size() & 1) != 0) *nibbles = static_cast<std::byte>(low);
    return out;
}

template <bool delta>
bool unpack(std::span<const std::byte> bytes, const std::byte* readable, std::span<std::int64_t> values)
{
    const std::size_t head = (values.size() + 1) / 2;
    if (bytes.size() < head) return false;
    const std::byte* nibbles = bytes.data();
    const std::byte* from = bytes.data() + head;
    const std::byte* const end = bytes.data() + bytes.size();
    std::uint64_t previous = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto pair = static_cast<unsigned>(nibbles[i / 2]);
        const unsigned width = (i & 1) == 0 ? pair & 15u : pair >> 4;
        if (width > 8 || static_cast<std::size_t>(end - from) < width) return false;
        std::uint64_t value = 0;
        if (readable - from >= 8) {
            value = loadLittle(from);
            if (width < 8) value &= (std::uint64_t{1} << (8 * width)) - 1;
        } else {
            for (unsigned b = 0; b < width; ++b) value |= static_cast<std::uint64_t>(from[b]) << (8 * b);
        }
        from += width;
        value = static_cast<std::uint64_t>(unzigzag(value));
        if constexpr (delta) value = previous += value;
        values[i] = static_cast<std::int64_t>(value);
    }
    return from == end;
}

bool allEqual(std::span<const std::int64_t> values)
{
    for (const std::int64_t value : values)
        if (value != values[0]) return false;
    return true;
}

} // namespace

std::uint32_t checksum(std::span<const std::byte> bytes)
{
    return static_cast<std::uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
}

BlockEncoder::BlockEncoder() { clear(); }

void BlockEncoder::clear()
{
    m_size = headerBytes;
    if (m_bytes.size() < headerBytes) m_bytes.resize(headerBytes);
}

void BlockEncoder::add(std::span<const std::int64_t> values, ColumnForm form)
{
    // length, form, and at most half a byte and eight bytes a value
    const std::size_t most = m_size + 5 + (values.size() + 1) / 2 + values.size() * 8 + slack + 8;
    if (m_bytes.size() < most) m_bytes.resize(most * 2);
    std::byte* const length = m_bytes.data() + m_size;
    std::byte* const body = length + 5;
    std::byte* end = body;
    if (values.empty() || allEqual(values)) {
        form = ColumnForm::Constant;
        storeLittle(body, values.empty() ? 0 : static_cast<std::uint64_t>(values[0]));
        end = body + 8;
    } else if (form == ColumnForm::Delta) {
        end = pack<true>(values, body);
    } else {
        form = ColumnForm::Plain;
        end = pack<false>(values, body);
    }
    storeLength(length, static_cast<std::uint32_t>(end - body));
    length[4] = static_cast<std::byte>(form);
    m_size = static_cast<std::size_t>(end - m_bytes.data());
}

std::span<const std::byte> BlockEncoder::finish()
{
    const std::span<const std::byte> all(m_bytes.data(), m_size);
    storeLength(m_bytes.data(), checksum(all.subspan(headerBytes)));
    return all;
}

std::optional<std::int64_t> BlockDecoder::firstOf(std::span<const std::byte> bytes, std::size_t rows,
                                                  std::size_t column)
{
    std::size_t at = headerBytes;
    for (std::size_t before = 0;; ++before) {
        if (bytes.size() < at + 5) return std::nullopt;
        const std::size_t length = loadLength(bytes.data() + at);
        const auto form = static_cast<unsigned>(bytes[at + 4]);
        at += 5;
        if (bytes.size() - at < length) return std::nullopt;
        if (before < column) {
            at += length;
            continue;
        }
        const auto body = bytes.subspan(at, length);
        if (form == static_cast<unsigned>(ColumnForm::Constant))
            return length == 8 ? std::optional(static_cast<std::int64_t>(loadLittle(body.data()))) : std::nullopt;
        // A difference, too, is the value itself: the one to 0.
        const std::size_t head = (rows + 1) / 2;
        if (rows == 0 || body.size() < head) return std::nullopt;
        const auto width = static_cast<unsigned>(body[0]) & 15u;
        if (width > 8 || body.size() - head < width) return std::nullopt;
        std::uint64_t value = 0;
        for (unsigned b = 0; b < width; ++b) value |= static_cast<std::uint64_t>(body[head + b]) << (8 * b);
        return unzigzag(value);
    }
}

namespace {

thread_local std::vector<std::int64_t> spareValues;

} // namespace

BlockDecoder::~BlockDecoder()
{
    if (m_values.capacity() > spareValues.capacity()) spareValues = std::move(m_values);
}

std::optional<BlockDecoder> BlockDecoder::open(std::span<const std::byte> bytes, std::size_t rows, std::size_t columns)
{
    if (rows > blockRows || bytes.size() < headerBytes) return std::nullopt;
    if (loadLength(bytes.data()) != checksum(bytes.subspan(headerBytes))) return std::nullopt;
    BlockDecoder block;
    block.m_rows = rows;
    block.m_values = std::move(spareValues);
    spareValues = {};
    block.m_values.resize(rows * columns);
    const std::byte* const readable = bytes.data() + bytes.size();
    std::size_t at = headerBytes;
    for (std::size_t column = 0; column < columns; ++column) {
        if (bytes.size() - at < 5) return std::nullopt;
        const std::size_t length = loadLength(bytes.data() + at);
        const auto form = static_cast<unsigned>(bytes[at + 4]);
        at += 5;
        if (bytes.size() - at < length) return std::nullopt;
        const auto body = bytes.subspan(at, length);
        const std::span<std::int64_t> values(block.m_values.data() + column * rows, rows);
        if (form == static_cast<unsigned>(ColumnForm::Constant)) {
            if (length != 8) return std::nullopt;
            const auto value = static_cast<std::int64_t>(loadLittle(body.data()));
            for (std::int64_t& v : values) v = value;
        } else if (form == static_cast<unsigned>(ColumnForm::Delta)) {
            if (!unpack<true>(body, readable, values)) return std::nullopt;
        } else if (form == static_cast<unsigned>(ColumnForm::Plain)) {
            if (!unpack<false>(body, readable, values)) return std::nullopt;
        } else {
            return std::nullopt;
        }
        at += length;
    }
    if (at != bytes.size()) return std::nullopt;
    return block;
}

} // namespace stagewright
