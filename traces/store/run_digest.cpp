#include "traces/store/run_digest.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include <fmt/format.h>
#include <zlib.h>

#include "traces/store/rows.h"

namespace stagewright {

namespace {

// In the order of their keys. Without derived data (pyramids) and what users add later.
constexpr std::array<std::string_view, 12> digested{
    "SELECT schedule_name, created_unix_ms, provenance, clock, ranks, stages, microbatches, steps, warmup_steps, "
    "span_count, begin_ns, end_ns, "
    "time_unit, memory_unit, schedule, realised, costs FROM main.run WHERE id=?",
    "SELECT section, ordinal, key, value FROM main.run_text WHERE run=? AND section<>'digest' ORDER BY section, "
    "ordinal",
    "SELECT track, rank, lane, name FROM main.track WHERE run=? ORDER BY track",
    "SELECT label, text FROM main.label WHERE run=? ORDER BY label",
    "SELECT segment, first_span, spans FROM main.segment WHERE run=? ORDER BY segment",
    "SELECT counter, rank, name, unit FROM main.counter WHERE run=? ORDER BY counter",
    "SELECT metric, name, unit FROM main.metric WHERE run=? ORDER BY metric",
    "SELECT metric, step, value FROM main.metric_value WHERE run=? ORDER BY metric, step",
    "SELECT segment, track, first, step, count, begin_ns, end_ns FROM main.span_block WHERE run=? ORDER BY segment, "
    "track, first",
    "SELECT segment, rank, ordinal, count FROM main.memory_block WHERE run=? ORDER BY segment, rank, ordinal",
    "SELECT segment, ordinal, count FROM main.edge_block WHERE run=? ORDER BY segment, ordinal",
    "SELECT segment, counter, ordinal, count FROM main.counter_block WHERE run=? ORDER BY segment, counter, ordinal",
};

class Digest {
public:
    // Its type, its length, itself.
    void add(const Statement& row, int column)
    {
        const int type = sqlite3_column_type(row.handle(), column);
        addNumber(type);
        if (type == SQLITE_INTEGER) {
            addNumber(row.integer(column));
        } else if (type == SQLITE_FLOAT) {
            std::int64_t bits = 0;
            const double value = row.real(column);
            std::memcpy(&bits, &value, sizeof bits);
            addNumber(bits);
        } else if (type != SQLITE_NULL) {
            const std::span<const std::byte> bytes = row.blob(column);
            addNumber(static_cast<std::int64_t>(bytes.size()));
            addBytes(bytes.data(), bytes.size());
        }
    }
    void addNumber(std::int64_t value)
    {
        std::array<unsigned char, 8> bytes{};
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<unsigned char>(static_cast<std::uint64_t>(value) >> (8 * i));
        addBytes(bytes.data(), bytes.size());
    }
    std::string text() const { return fmt::format("{:08x}", m_sum); }

private:
    void addBytes(const void* bytes, std::size_t count)
    {
        const auto* at = static_cast<const Bytef*>(bytes);
        while (count > 0) {
            const auto part = static_cast<uInt>(std::min<std::size_t>(count, std::numeric_limits<uInt>::max()));
            m_sum = crc32(m_sum, at, part);
            at += part;
            count -= part;
        }
    }
    uLong m_sum = crc32(0, nullptr, 0);
};

Result<std::string> digestOf(Database& database, std::int64_t run)
{
    Digest digest;
    for (const std::string_view sql : digested) {
        std::int64_t rows = 0;
        STAGEWRIGHT_CHECK(forEachRow(database, sql, run, [&](const Statement& row) -> Result<void> {
            ++rows;
            for (int column = 0; column < sqlite3_column_count(row.handle()); ++column) digest.add(row, column);
            return {};
        }));
        digest.addNumber(rows);
    }
    return digest.text();
}

} // namespace

Result<void> storeDigest(Database& database, std::int64_t run)
{
    STAGEWRIGHT_TRY(const auto digest, digestOf(database, run));
    STAGEWRIGHT_TRY(auto insert, bound(database, "INSERT OR REPLACE INTO main.run_text VALUES(?,'digest',0,'crc32',?)",
                                       [&](Statement& s) { s.bind(run).bind(std::string_view(digest)); }));
    return database.run(insert);
}

Result<std::optional<bool>> digestHolds(Database& database, std::int64_t run)
{
    std::optional<std::string> stored;
    STAGEWRIGHT_CHECK(forEachRow(database, "SELECT value FROM main.run_text WHERE run=? AND section='digest'", run,
                                 [&](const Statement& row) -> Result<void> {
                                     stored = row.text(0);
                                     return {};
                                 }));
    if (!stored) return std::optional<bool>();
    STAGEWRIGHT_TRY(const auto digest, digestOf(database, run));
    return std::optional<bool>(digest == *stored);
}

} // namespace stagewright
