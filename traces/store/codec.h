// Columns of integers as bytes (docs/database.md, "Blocks"). A block is a checksum and its columns; each column is
// either one value, or a nibble per value with its number of bytes (0 to 8) followed by those bytes, plain or as
// differences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace stagewright {

inline constexpr std::size_t blockRows = 4096; // values per column at most
inline constexpr std::int64_t mostSteps = std::int64_t{1} << 30;

std::uint32_t checksum(std::span<const std::byte> bytes); // CRC-32

enum class ColumnForm : std::uint8_t {
    Constant = 0,
    Plain = 1,
    Delta = 2,
};

// Collects the columns of one block; all columns have the same length, which is not stored.
class BlockEncoder {
public:
    BlockEncoder();
    void clear();
    void add(std::span<const std::int64_t> values, ColumnForm form); // equal values become Constant
    std::span<const std::byte> finish();                             // valid until clear()

private:
    std::vector<std::byte> m_bytes;
    std::size_t m_size = 0;
};

// Reads a block of `rows` values per column. Damaged bytes (checksum, lengths) give nullopt, never a read out of
// bounds. The memory of the last one of a thread serves the next: block after block is read.
class BlockDecoder {
public:
    BlockDecoder(BlockDecoder&&) = default;
    ~BlockDecoder();
    static std::optional<BlockDecoder> open(std::span<const std::byte> bytes, std::size_t rows, std::size_t columns);
    // The first value of a column alone, of a block whose checksum nobody has looked at: for finding a block, not for
    // its data.
    static std::optional<std::int64_t> firstOf(std::span<const std::byte> bytes, std::size_t rows, std::size_t column);
    std::span<const std::int64_t> column(std::size_t i) const
    {
        return std::span<const std::int64_t>(m_values).subspan(i * m_rows, m_rows);
    }

private:
    BlockDecoder() = default;
    std::size_t m_rows = 0;
    std::vector<std::int64_t> m_values;
};

} // namespace stagewright
