// The blocks of a stream of steps: a header with kind, run, length and checksum, then rows of the run file's tables,
// value by value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "traces/store/database.h"

namespace stagewright {

enum class StepBlockKind : std::uint8_t {
    Begin = 1,  // the run's row; its rows follow
    Rows = 2,   // of the step that the next Commit completes
    Commit = 3, // the last segment, and the columns of the run's row that a step changes
    End = 4,    // as Commit, with the whole row of the run
    Remove = 5, // the run was not kept
};

struct StepBlock {
    StepBlockKind kind = StepBlockKind::Rows;
    std::uint32_t run = 0; // in the recorder's file
    std::span<const std::byte> payload;
};

inline constexpr std::size_t streamHeadBytes = 16;
inline constexpr std::size_t blockHeadBytes = 20;
inline constexpr std::size_t mostPayload = std::size_t{64} << 20;

std::vector<std::byte> streamHead();
// "": it is the head of a stream that this program reads; else what is wrong with it.
std::string whyNoStream(std::span<const std::byte> head);

std::vector<std::byte> blockBytes(StepBlockKind kind, std::uint32_t run, std::span<const std::byte> payload);

enum class BlockState {
    Whole,
    Partial, // more bytes are needed
    Damaged,
};
// Reads the block at the start of the bytes; `length` is the block's where it is Whole.
BlockState readBlock(std::span<const std::byte> bytes, StepBlock& block, std::size_t& length);

// A value as SQLite has it. Text and bytes point into the payload.
using StoredValue = std::variant<std::monostate, std::int64_t, double, std::string_view, std::span<const std::byte>>;

class RowWriter {
public:
    // Columns first … first + count − 1 of the statement's row, as a row of the table of that number.
    void add(std::uint8_t table, const Statement& row, int first, int count);
    void add(std::span<const std::byte> row); // as a RowReader had it
    void number(std::int64_t value);          // one that is not in a row
    std::span<const std::byte> bytes() const { return m_bytes; }
    void clear() { m_bytes.clear(); }

private:
    std::vector<std::byte> m_bytes;
};

struct StoredRow {
    std::uint8_t table = 0;
    std::vector<StoredValue> values;
};

class RowReader {
public:
    explicit RowReader(std::span<const std::byte> payload) : m_rest(payload) {}
    bool atEnd() const { return m_rest.empty(); }
    std::span<const std::byte> rest() const { return m_rest; }
    std::optional<std::int64_t> number();
    bool next(StoredRow& row); // false: damaged

private:
    std::span<const std::byte> m_rest;
};

void bindValue(Statement& statement, const StoredValue& value);

} // namespace stagewright
