#include "traces/store/step_blocks.h"

#include <array>
#include <cstring>

#include <fmt/format.h>
#include <zlib.h>

#include "traces/store/schema.h"

namespace stagewright {

namespace {

constexpr std::string_view streamMark = "SWSTEPS1";
constexpr std::uint32_t blockMark = 0x4b425753; // "SWBK"

template <typename T>
void put(std::vector<std::byte>& bytes, T value)
{
    for (std::size_t i = 0; i < sizeof(T); ++i)
        bytes.push_back(static_cast<std::byte>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xff));
}

template <typename T>
T get(std::span<const std::byte> bytes, std::size_t at)
{
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
    return static_cast<T>(value);
}

std::uint32_t checksum(std::span<const std::byte> head, std::span<const std::byte> payload)
{
    uLong sum = crc32(0, reinterpret_cast<const Bytef*>(head.data()), static_cast<uInt>(head.size()));
    sum = crc32(sum, reinterpret_cast<const Bytef*>(payload.data()), static_cast<uInt>(payload.size()));
    return static_cast<std::uint32_t>(sum);
}

} // namespace

std::vector<std::byte> streamHead()
{
    std::vector<std::byte> bytes;
    for (const char c : streamMark) bytes.push_back(static_cast<std::byte>(c));
    put(bytes, static_cast<std::uint32_t>(runFileVersion()));
    put(bytes, std::uint32_t{0});
    return bytes;
}

std::string whyNoStream(std::span<const std::byte> head)
{
    if (head.size() < streamHeadBytes || std::memcmp(head.data(), streamMark.data(), streamMark.size()) != 0)
        return "not a stream of steps";
    const auto version = get<std::uint32_t>(head, streamMark.size());
    if (version != static_cast<std::uint32_t>(runFileVersion()))
        return fmt::format("its run file has version {}, this program's has {}", version, runFileVersion());
    return {};
}

std::vector<std::byte> blockBytes(StepBlockKind kind, std::uint32_t run, std::span<const std::byte> payload)
{
    std::vector<std::byte> bytes;
    bytes.reserve(blockHeadBytes + payload.size());
    put(bytes, blockMark);
    put(bytes, static_cast<std::uint32_t>(kind));
    put(bytes, run);
    put(bytes, static_cast<std::uint32_t>(payload.size()));
    const std::uint32_t sum = checksum(bytes, payload);
    put(bytes, sum);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
}

BlockState readBlock(std::span<const std::byte> bytes, StepBlock& block, std::size_t& length)
{
    if (bytes.size() >= sizeof(blockMark) && get<std::uint32_t>(bytes, 0) != blockMark) return BlockState::Damaged;
    if (bytes.size() < blockHeadBytes) return BlockState::Partial;
    const auto kind = get<std::uint32_t>(bytes, 4);
    const auto size = get<std::uint32_t>(bytes, 12);
    if (kind < static_cast<std::uint32_t>(StepBlockKind::Begin) ||
        kind > static_cast<std::uint32_t>(StepBlockKind::Remove) || size > mostPayload)
        return BlockState::Damaged;
    if (bytes.size() < blockHeadBytes + size) return BlockState::Partial;
    block.kind = static_cast<StepBlockKind>(kind);
    block.run = get<std::uint32_t>(bytes, 8);
    block.payload = bytes.subspan(blockHeadBytes, size);
    if (checksum(bytes.first(blockHeadBytes - 4), block.payload) != get<std::uint32_t>(bytes, 16))
        return BlockState::Damaged;
    length = blockHeadBytes + size;
    return BlockState::Whole;
}

void RowWriter::add(std::span<const std::byte> row) { m_bytes.insert(m_bytes.end(), row.begin(), row.end()); }

void RowWriter::number(std::int64_t value) { put(m_bytes, value); }

void RowWriter::add(std::uint8_t table, const Statement& row, int first, int count)
{
    put(m_bytes, table);
    put(m_bytes, static_cast<std::uint8_t>(count));
    for (int column = first; column < first + count; ++column) {
        const int type = sqlite3_column_type(row.handle(), column);
        put(m_bytes, static_cast<std::uint8_t>(type));
        if (type == SQLITE_INTEGER) put(m_bytes, row.integer(column));
        if (type == SQLITE_FLOAT) {
            const double value = row.real(column);
            std::uint64_t bits = 0;
            std::memcpy(&bits, &value, sizeof(bits));
            put(m_bytes, bits);
        }
        if (type == SQLITE_TEXT || type == SQLITE_BLOB) {
            const auto bytes = row.blob(column);
            put(m_bytes, static_cast<std::uint32_t>(bytes.size()));
            m_bytes.insert(m_bytes.end(), bytes.begin(), bytes.end());
        }
    }
}

std::optional<std::int64_t> RowReader::number()
{
    if (m_rest.size() < 8) return std::nullopt;
    const auto value = get<std::int64_t>(m_rest, 0);
    m_rest = m_rest.subspan(8);
    return value;
}

bool RowReader::next(StoredRow& row)
{
    if (m_rest.size() < 2) return false;
    row.table = get<std::uint8_t>(m_rest, 0);
    const auto count = get<std::uint8_t>(m_rest, 1);
    m_rest = m_rest.subspan(2);
    row.values.clear();
    for (int column = 0; column < count; ++column) {
        if (m_rest.empty()) return false;
        const auto type = get<std::uint8_t>(m_rest, 0);
        m_rest = m_rest.subspan(1);
        if (type == SQLITE_NULL) {
            row.values.emplace_back();
        } else if (type == SQLITE_INTEGER || type == SQLITE_FLOAT) {
            const auto bits = number();
            if (!bits) return false;
            double real = 0;
            std::memcpy(&real, &*bits, sizeof(real));
            type == SQLITE_INTEGER ? row.values.emplace_back(*bits) : row.values.emplace_back(real);
        } else if (type == SQLITE_TEXT || type == SQLITE_BLOB) {
            if (m_rest.size() < 4) return false;
            const std::size_t size = get<std::uint32_t>(m_rest, 0);
            if (m_rest.size() - 4 < size) return false;
            const auto bytes = m_rest.subspan(4, size);
            m_rest = m_rest.subspan(4 + size);
            if (type == SQLITE_BLOB)
                row.values.emplace_back(bytes);
            else
                row.values.emplace_back(std::string_view(reinterpret_cast<const char*>(bytes.data()), size));
        } else {
            return false;
        }
    }
    return true;
}

void bindValue(Statement& statement, const StoredValue& value)
{
    if (const auto* whole = std::get_if<std::int64_t>(&value))
        statement.bind(*whole);
    else if (const auto* real = std::get_if<double>(&value))
        statement.bind(*real);
    else if (const auto* text = std::get_if<std::string_view>(&value))
        statement.bind(*text);
    else if (const auto* bytes = std::get_if<std::span<const std::byte>>(&value))
        statement.bind(*bytes);
    else
        statement.bindNull();
}

} // namespace stagewright
