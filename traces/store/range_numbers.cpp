#include "traces/store/range_numbers.h"

#include <map>
#include <set>

#include "traces/store/blocks.h"

namespace stagewright {

namespace {

constexpr std::int64_t fewBlocks = 4; // are read whole

// The span that the first edge of a block leads to: the blocks of a segment are in order of that.
class Targets {
public:
    Targets(Database& database, std::int64_t run, std::int64_t segment)
        : m_database(database), m_run(run), m_segment(segment)
    {
    }

    Result<SpanId> of(std::int64_t ordinal)
    {
        if (const auto known = m_known.find(ordinal); known != m_known.end()) return known->second;
        STAGEWRIGHT_TRY(
            auto row, m_database.cached("SELECT count, data FROM edge_block WHERE run=? AND segment=? AND ordinal=?"));
        row->bind(m_run).bind(m_segment).bind(ordinal);
        STAGEWRIGHT_TRY(const auto found, m_database.step(*row));
        const std::int64_t count = found ? row->integer(0) : 0;
        const SpanId first = count > 0 && count <= static_cast<std::int64_t>(blockRows)
                                 ? firstEdgeTarget(row->blob(1), static_cast<std::size_t>(count))
                                 : noSpan;
        row->reset();
        return m_known.emplace(ordinal, first).first->second;
    }

private:
    Database& m_database;
    std::int64_t m_run, m_segment;
    std::map<std::int64_t, SpanId> m_known;
};

} // namespace

Result<std::vector<std::int64_t>> edgeBlocksInto(Database& database, std::int64_t run, std::int64_t segment,
                                                 const std::vector<std::pair<SpanId, SpanId>>& ranges)
{
    STAGEWRIGHT_TRY(auto statement, database.cached("SELECT count(*) FROM edge_block WHERE run=? AND segment=?"));
    statement->bind(run).bind(segment);
    STAGEWRIGHT_TRY(const auto row, database.step(*statement));
    const std::int64_t blocks = row ? statement->integer(0) : 0;
    statement->reset();
    std::set<std::int64_t> wanted;
    if (blocks <= fewBlocks)
        for (std::int64_t ordinal = 0; ordinal < blocks; ++ordinal) wanted.insert(ordinal);
    Targets targets(database, run, segment);
    for (const auto& [first, last] : ranges) {
        if (blocks <= fewBlocks) break;
        std::int64_t low = 0, high = blocks; // the first block that starts with an edge into `first` or later
        while (low < high) {
            const std::int64_t middle = low + (high - low) / 2;
            STAGEWRIGHT_TRY(const auto of, targets.of(middle));
            if (of < first)
                low = middle + 1;
            else
                high = middle;
        }
        if (low > 0) wanted.insert(low - 1); // edges into the range may be in the middle of the one before
        for (; low < blocks; ++low) {
            STAGEWRIGHT_TRY(const auto of, targets.of(low));
            if (of >= last && of != noSpan) break;
            wanted.insert(low);
        }
    }
    return std::vector<std::int64_t>(wanted.begin(), wanted.end());
}

} // namespace stagewright
