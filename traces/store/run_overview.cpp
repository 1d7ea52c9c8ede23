// The first view of a run from its stored pyramids, without reading the spans.
#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "traces/store/blocks.h"
#include "traces/store/pyramid.h"
#include "traces/store/run_store.h"
#include "traces/store/stored_text.h"

namespace stagewright {

namespace {

class OverviewReader {
public:
    OverviewReader(RunStore& store, std::int64_t id) : m_store(store), m_database(*store.database), m_id(id) {}

    Result<RunFile::Overview> read(int atLeastBuckets)
    {
        if (auto known = readRunInfo(m_store, m_id); !known) return tl::unexpected(known.error());
        if (auto done = readTracks(); !done) return tl::unexpected(done.error());
        if (auto done = readBounds(std::clamp(atLeastBuckets, 1, 1 << 20)); !done) return tl::unexpected(done.error());
        if (m_buckets == 0) return std::move(m_result);
        m_occupied.assign(m_result.tracks.size(), std::vector<Nanos>(m_buckets, 0));
        if (auto done = readPyramids(); !done) return tl::unexpected(done.error());
        m_result.busyByTrack.resize(m_occupied.size());
        for (std::size_t track = 0; track < m_occupied.size(); ++track)
            for (const Nanos occupied : m_occupied[track])
                m_result.busyByTrack[track].push_back(static_cast<float>(
                    std::min(1.0, static_cast<double>(occupied) / static_cast<double>(m_result.bucketWidth))));
        return std::move(m_result);
    }

private:
    Result<void> readTracks()
    {
        auto statement = m_database.prepare("SELECT track, rank, lane, name FROM track WHERE run=? ORDER BY track");
        if (!statement) return tl::unexpected(statement.error());
        statement->bind(m_id);
        std::vector<std::pair<std::int64_t, Track>> tracks;
        for (;;) {
            const auto row = m_database.step(*statement);
            if (!row) return tl::unexpected(row.error());
            if (!*row) break;
            const auto lane = laneOf(statement->text(2));
            if (lane) tracks.emplace_back(statement->integer(0), Track{statement->smallInteger(1), *lane, statement->text(3), 0, 0});
        }
        std::stable_sort(tracks.begin(), tracks.end(), [](const auto& a, const auto& b) {
            return std::tie(a.second.rank, a.second.lane, a.second.name) < std::tie(b.second.rank, b.second.lane, b.second.name);
        });
        for (auto& [number, track] : tracks) {
            m_places[number] = m_result.tracks.size();
            m_result.tracks.push_back(std::move(track));
        }
        return {};
    }

    Result<void> readBounds(int atLeastBuckets)
    {
        auto statement = m_database.prepare("SELECT begin_ns, end_ns FROM run WHERE id=?");
        if (!statement) return tl::unexpected(statement.error());
        statement->bind(m_id);
        const auto row = m_database.step(*statement);
        if (!row) return tl::unexpected(row.error());
        if (!*row || statement->isNull(0) || m_result.tracks.empty()) return {};
        constexpr Nanos farthest = Nanos{1} << 60;
        const Nanos begin = statement->integer(0);
        const Nanos end = statement->integer(1);
        if (begin < -farthest || end > farthest || end < begin)
            return fail(ErrorCode::Unreadable, fmt::format("file {}: run {}: damaged bounds {} … {} ns", m_store.path, m_id, begin, end),
                        "restore it from a copy");
        const auto length = static_cast<std::uint64_t>(end - begin);
        const std::uint64_t widest = length / static_cast<std::uint64_t>(atLeastBuckets);
        m_level = widest == 0 ? 0 : (std::bit_width(widest) - 1) / pyramidFanOut * pyramidFanOut;
        m_result.bucketWidth = Nanos{1} << m_level;
        m_firstIndex = begin >> m_level;
        m_result.begin = m_firstIndex << m_level;
        m_result.end = end;
        m_buckets = static_cast<std::size_t>(((end - 1) >> m_level) - m_firstIndex + 1);
        if (end == begin) m_buckets = 1;
        return {};
    }

    // Per segment and track: the stored level nearest to the wanted one, or the spans where even the finest is coarser.
    Result<void> readPyramids()
    {
        auto levels = m_database.prepare("SELECT segment, track, min(level), max(level) FROM pyramid WHERE run=? "
                                         "GROUP BY segment, track");
        if (!levels) return tl::unexpected(levels.error());
        levels->bind(m_id);
        for (;;) {
            const auto row = m_database.step(*levels);
            if (!row) return tl::unexpected(row.error());
            if (!*row) return {};
            const auto place = m_places.find(levels->integer(1));
            if (place == m_places.end()) continue;
            const std::int64_t finest = levels->integer(2);
            const std::int64_t coarsest = levels->integer(3);
            if (finest < 0 || coarsest > highestLevel) continue;
            auto done = finest > m_level
                            ? addSpans(levels->integer(0), levels->integer(1), m_occupied[place->second])
                            : addLevel(levels->integer(0), levels->integer(1),
                                       static_cast<int>(std::min<std::int64_t>(coarsest, m_level)), m_occupied[place->second]);
            if (!done) return done;
        }
    }

    Result<void> addLevel(std::int64_t segment, std::int64_t track, int level, std::vector<Nanos>& occupied)
    {
        auto rows = m_database.cached("SELECT count, data FROM pyramid WHERE run=? AND segment=? AND track=? AND level=?");
        if (!rows) return tl::unexpected(rows.error());
        (*rows)->bind(m_id).bind(segment).bind(track).bind(std::int64_t{level});
        for (;;) {
            const auto row = m_database.step(**rows);
            if (!row) return tl::unexpected(row.error());
            if (!*row) break;
            const std::int64_t count = (*rows)->integer(0);
            if (count < 0 || count > static_cast<std::int64_t>(blockRows) ||
                !decodeBuckets((*rows)->blob(1), static_cast<std::size_t>(count), m_bucketRows))
                continue; // a damaged bucket row leaves its part of the picture empty; reading the run counts damage
            for (const Bucket& bucket : m_bucketRows) {
                const std::int64_t index = bucket.index >> (m_level - level);
                const auto at = static_cast<std::uint64_t>(index) - static_cast<std::uint64_t>(m_firstIndex);
                if (at < m_buckets) add(occupied[at], bucket.occupied);
            }
        }
        return {};
    }

    Result<void> addSpans(std::int64_t segment, std::int64_t track, std::vector<Nanos>& occupied)
    {
        auto rows = m_database.cached("SELECT count, data FROM span_block WHERE run=? AND segment=? AND track=?");
        if (!rows) return tl::unexpected(rows.error());
        (*rows)->bind(m_id).bind(segment).bind(track);
        for (;;) {
            const auto row = m_database.step(**rows);
            if (!row) return tl::unexpected(row.error());
            if (!*row) break;
            const std::int64_t count = (*rows)->integer(0);
            if (count < 0 || count > static_cast<std::int64_t>(blockRows) ||
                !decodeSpans((*rows)->blob(1), static_cast<std::size_t>(count), 0, m_spanRows))
                continue;
            for (const StoredSpan& stored : m_spanRows) addSpan(stored.span, occupied);
        }
        return {};
    }

    void addSpan(const Span& span, std::vector<Nanos>& occupied) const
    {
        if (span.op.kind == OpKind::Filler) return;
        const Nanos end = std::min(span.end, m_result.end);
        Nanos from = std::max(span.start, m_result.begin);
        for (std::int64_t index = from >> m_level; from < end; ++index) {
            const Nanos until = std::min(end, (index + 1) << m_level);
            add(occupied[static_cast<std::size_t>(index - m_firstIndex)], until - from);
            from = until;
        }
    }

    // Overlapping spans fill a bucket no more than wholly.
    void add(Nanos& occupied, Nanos time) const
    {
        occupied = std::min(m_result.bucketWidth, occupied + std::min(time, m_result.bucketWidth));
    }

    RunStore& m_store;
    Database& m_database;
    std::int64_t m_id;
    RunFile::Overview m_result;
    std::map<std::int64_t, std::size_t> m_places; // track in the file → place in m_result.tracks
    std::vector<std::vector<Nanos>> m_occupied;
    std::vector<Bucket> m_bucketRows;
    std::vector<StoredSpan> m_spanRows;
    std::size_t m_buckets = 0;
    int m_level = 0;
    std::int64_t m_firstIndex = 0;
};

} // namespace

Result<RunFile::Overview> readOverview(RunStore& store, std::int64_t id, int atLeastBuckets)
{
    return OverviewReader(store, id).read(atLeastBuckets);
}

} // namespace stagewright
