#include "traces/import/nsight/nvtx_payload.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace stagewright {

namespace {

constexpr std::size_t headerSize = 32;
constexpr std::int64_t farthestEntry = 1 << 24; // bytes; those of a damaged schema may be anywhere

struct IntegerType {
    std::size_t size = 0; // 0: no whole number
    bool isSigned = false;
};

// NVTX_PAYLOAD_ENTRY_TYPE_…: CHAR 1, UCHAR, SHORT, USHORT, INT 5, UINT, LONG, ULONG, LONGLONG, ULONGLONG 10, INT8 11,
// UINT8 … INT64 17, UINT64 18, SIZE 22. Sizes of C types are those of 64-bit Linux.
IntegerType integerType(std::int64_t type)
{
    static constexpr auto sizes =
        std::to_array<std::uint8_t>({0, 1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 1, 1, 2, 2, 4, 4, 8, 8});
    if (type == 22) return {8, false};
    if (type < 1 || type >= static_cast<std::int64_t>(sizes.size())) return {};
    return {sizes[static_cast<std::size_t>(type)], type % 2 == 1};
}

std::uint64_t numberAt(std::span<const std::byte> bytes, std::size_t at, std::size_t size)
{
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
        value |= std::uint64_t{std::to_integer<std::uint8_t>(bytes[at + i])} << (8 * i);
    return value;
}

std::int64_t valueAt(std::span<const std::byte> bytes, std::size_t at, const IntegerType& type)
{
    const std::uint64_t value = numberAt(bytes, at, type.size);
    const unsigned unused = 64 - 8 * static_cast<unsigned>(type.size);
    return type.isSigned ? static_cast<std::int64_t>(value << unused) >> unused : static_cast<std::int64_t>(value);
}

std::optional<std::uint8_t> digitOf(std::byte text)
{
    const auto c = std::to_integer<char>(text);
    if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
    return {};
}

// "0a1b…" as bytes; empty if the text has another form.
std::vector<std::byte> fromHexadecimal(std::span<const std::byte> text)
{
    std::vector<std::byte> bytes;
    if (text.size() % 2 != 0) return bytes;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const auto high = digitOf(text[i]), low = digitOf(text[i + 1]);
        if (!high || !low) return {};
        bytes.push_back(static_cast<std::byte>(*high << 4 | *low));
    }
    return bytes;
}

bool hasHeader(std::span<const std::byte> blob)
{
    if (blob.size() < headerSize) return false;
    const std::uint64_t payload = numberAt(blob, 16, 8), all = numberAt(blob, 24, 8);
    return all == blob.size() && payload == all - headerSize;
}

} // namespace

void NvtxPayloadSchemas::add(std::int64_t domain, std::int64_t schema, std::int64_t index, std::int64_t type,
                             std::string name, std::int64_t offset)
{
    if (offset > farthestEntry) return;
    auto& entries = m_schemas[{domain, schema}];
    if (std::any_of(entries.begin(), entries.end(), [index](const Entry& entry) { return entry.index == index; }))
        return;
    if (offset < 0) {
        const auto size = std::max<std::int64_t>(1, static_cast<std::int64_t>(integerType(type).size));
        const std::int64_t behind =
            entries.empty() ? 0
                            : entries.back().offset + static_cast<std::int64_t>(integerType(entries.back().type).size);
        offset = (behind + size - 1) / size * size;
    }
    entries.push_back({index, type, std::move(name), offset});
}

NvtxPayload NvtxPayloadSchemas::read(std::span<const std::byte> blob) const
{
    std::vector<std::byte> bytes;
    if (!hasHeader(blob)) {
        bytes = fromHexadecimal(blob);
        blob = bytes;
        if (!hasHeader(blob)) return {};
    }
    NvtxPayload payload;
    const auto schema = m_schemas.find(
        {static_cast<std::int64_t>(numberAt(blob, 0, 4)), static_cast<std::int64_t>(numberAt(blob, 8, 4))});
    if (schema == m_schemas.end()) return payload;
    const auto content = blob.subspan(headerSize);
    for (const Entry& entry : schema->second) {
        const IntegerType type = integerType(entry.type);
        const auto at = static_cast<std::size_t>(entry.offset);
        if (type.size == 0 || at > content.size() || type.size > content.size() - at) continue;
        payload.emplace(entry.name, valueAt(content, at, type));
    }
    return payload;
}

} // namespace stagewright
