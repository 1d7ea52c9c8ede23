// The first view of a run from its stored pyramids, without reading the spans.
#include "traces/store/run_overview.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "schedules/base/time_limits.h"
#include "schedules/model/kinds.h"
#include "traces/store/blocks.h"
#include "traces/store/pyramid.h"
#include "traces/store/rows_in_parts.h"
#include "traces/store/run_reader.h"
#include "traces/store/run_store.h"
#include "traces/store/stored_text.h"

namespace stagewright {

namespace {

class OverviewReader {
public:
    OverviewReader(RunStore& store, std::int64_t id) : m_store(store), m_database(*store.database), m_id(id) {}

    // Occupied time of each bucket by work.
    using Sums = std::array<Nanos, 4>;

    Result<RunFile::Overview> read(int atLeastBuckets, std::optional<Lane> only)
    {
        m_only = only;
        STAGEWRIGHT_CHECK(readRunInfo(m_store, m_id));
        STAGEWRIGHT_CHECK(readTracks());
        STAGEWRIGHT_CHECK(readBounds(std::clamp(atLeastBuckets, 1, 1 << 20)));
        if (m_buckets == 0) return std::move(m_result);
        const auto tracks = m_result.tracks.size();
        m_result.busyByTrack.assign(tracks, std::vector<float>(m_buckets, 0));
        m_result.sharesByTrack.assign(tracks, std::vector<std::array<std::uint8_t, 4>>(m_buckets));
        STAGEWRIGHT_CHECK(eachTrack([&](std::size_t track) {
            const auto width = static_cast<double>(m_result.bucketWidth);
            for (std::size_t i = 0; i < m_buckets; ++i) {
                Nanos busy = 0;
                for (std::size_t work = 0; work < 4; ++work) {
                    busy += m_occupied[i][work];
                    const double share = static_cast<double>(m_occupied[i][work]) / width * 255;
                    // never nothing for work that occurs
                    m_result.sharesByTrack[track][i][work] =
                        static_cast<std::uint8_t>(m_occupied[i][work] == 0 ? 0 : std::clamp(share + 0.5, 1.0, 255.0));
                }
                m_result.busyByTrack[track][i] = static_cast<float>(std::min(1.0, static_cast<double>(busy) / width));
            }
        }));
        return std::move(m_result);
    }

    // Sums the segments' pyramids at about this many buckets and stores them as one more segment.
    Result<void> summarise(int atLeastBuckets, std::int64_t parts, const Progress& progress)
    {
        m_progress = &progress;
        m_parts = parts;
        if (auto done = readTracks(); !done) return done;
        if (auto done = readBounds(atLeastBuckets); !done) return done;
        if (m_buckets == 0) return {};
        std::vector<Bucket> buckets;
        Result<void> written;
        auto done = eachTrack([&](std::size_t track) {
            buckets.clear();
            for (std::size_t i = 0; i < m_buckets; ++i)
                for (std::size_t work = 0; work < 4; ++work)
                    if (m_occupied[i][work] > 0)
                        buckets.push_back({m_firstIndex + static_cast<std::int64_t>(i),
                                           firstOf(RunFile::Overview::works[work]), m_occupied[i][work]});
            for (std::size_t at = 0; at < buckets.size() && written; at += blockRows)
                written = store(m_numbers[track], at / blockRows,
                                std::span<const Bucket>(buckets).subspan(at, std::min(blockRows, buckets.size() - at)));
        });
        return done ? written : done;
    }

private:
    Result<void> readTracks()
    {
        STAGEWRIGHT_TRY(auto statement,
                        m_database.prepare("SELECT track, rank, lane, name FROM track WHERE run=? ORDER BY track"));
        statement.bind(m_id);
        std::vector<std::pair<std::int64_t, Track>> tracks;
        for (;;) {
            STAGEWRIGHT_TRY(const auto row, m_database.step(statement));
            if (!row) break;
            const auto lane = laneOf(statement.text(2));
            if (lane)
                tracks.emplace_back(statement.integer(0),
                                    Track{statement.smallInteger(1), *lane, statement.text(3), 0, 0});
        }
        std::stable_sort(tracks.begin(), tracks.end(), [](const auto& a, const auto& b) {
            return std::tie(a.second.rank, a.second.lane, a.second.name) <
                   std::tie(b.second.rank, b.second.lane, b.second.name);
        });
        for (auto& [number, track] : tracks) {
            m_places[number] = m_result.tracks.size();
            m_numbers.push_back(number);
            m_result.tracks.push_back(std::move(track));
        }
        return {};
    }

    Result<void> readBounds(int atLeastBuckets)
    {
        STAGEWRIGHT_TRY(auto statement, m_database.prepare("SELECT begin_ns, end_ns FROM run WHERE id=?"));
        statement.bind(m_id);
        STAGEWRIGHT_TRY(const auto row, m_database.step(statement));
        if (!row || statement.isNull(0) || m_result.tracks.empty()) return {};
        const Nanos begin = statement.integer(0);
        const Nanos end = statement.integer(1);
        if (!isStorableTime(begin) || !isStorableTime(end) || end < begin)
            return fail(ErrorCode::Unreadable,
                        fmt::format("file {}: run {}: damaged bounds {} … {} ns", m_store.path, m_id, begin, end),
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
    // Track by track, so that the sums of one are held.
    template <typename Done>
    Result<void> eachTrack(Done done)
    {
        STAGEWRIGHT_TRY(const auto summary, summaryLevel());
        const bool summed = summary >= 0 && summary <= m_level;
        STAGEWRIGHT_TRY(const auto parts, storedParts(summed));
        std::int64_t read = 0;
        for (auto part = parts.begin(); part != parts.end(); ++part) {
            if (part == parts.begin() || part[-1].track != part->track) m_occupied.assign(m_buckets, Sums{});
            const std::int64_t number = m_numbers[part->track];
            auto added = part->finest > m_level
                             ? addSpans(part->segment, number)
                             : addLevel(part->segment, number, std::min<int>(part->coarsest, m_level));
            if (added) added = m_store.renewWithSteps();
            if (!added) return added;
            constexpr std::int64_t partsBetween = 4096;
            if (++read % partsBetween == 0 && m_progress != nullptr)
                m_progress->tell("summarising the run", read, m_parts);
            if (part + 1 == parts.end() || part[1].track != part->track) done(part->track);
        }
        return {};
    }

    struct Part {
        std::int64_t segment;
        std::uint32_t track; // its place in m_result.tracks
        std::int16_t finest, coarsest;
    };
    // Track by track.
    Result<std::vector<Part>> storedParts(bool summed)
    {
        std::vector<Part> parts;
        const auto steps = [this] { return m_store.loadSteps(); };
        STAGEWRIGHT_CHECK(eachRowInParts(
            m_store,
            {"segment, track, level, ordinal", "pyramid",
             fmt::format(" AND segment{}{}", summed ? "=" : "<>", summarySegment), "segment, track, level, ordinal",
             steps},
            m_id, [&](const Statement& row) -> Result<void> {
                const auto place = m_places.find(row.integer(1));
                const std::int64_t level = row.integer(2);
                if (place == m_places.end() || (m_only && m_result.tracks[place->second].lane != *m_only) ||
                    level < 0 || level > highestLevel)
                    return {};
                const Part one{row.integer(0), static_cast<std::uint32_t>(place->second),
                               static_cast<std::int16_t>(level), static_cast<std::int16_t>(level)};
                if (parts.empty() || parts.back().segment != one.segment || parts.back().track != one.track)
                    parts.push_back(one);
                else
                    parts.back().coarsest = one.coarsest; // levels ascend
                return {};
            }));
        std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
            return std::tie(a.track, a.segment) < std::tie(b.track, b.segment);
        });
        return parts;
    }

    // −1: the run has no summary.
    Result<std::int64_t> summaryLevel()
    {
        STAGEWRIGHT_TRY(auto level, m_database.prepare(fmt::format(
                                        "SELECT min(level) FROM pyramid WHERE run=? AND segment={}", summarySegment)));
        level.bind(m_id);
        STAGEWRIGHT_TRY(const auto row, m_database.step(level));
        return row && !level.isNull(0) ? level.integer(0) : -1;
    }

    Result<void> store(std::int64_t track, std::size_t ordinal, std::span<const Bucket> buckets)
    {
        const auto data = encodeBuckets(m_encoder, buckets);
        STAGEWRIGHT_TRY(auto row, m_database.cached("INSERT INTO main.pyramid VALUES(?,?,?,?,?,?,?)"));
        (row)
            ->bind(m_id)
            .bind(summarySegment)
            .bind(track)
            .bind(std::int64_t{m_level})
            .bind(static_cast<std::int64_t>(ordinal));
        row->bind(static_cast<std::int64_t>(buckets.size())).bind(data);
        return m_database.run(*row);
    }

    static std::size_t workOf(OpKind kind)
    {
        const auto& works = RunFile::Overview::works;
        const auto own = std::find(works.begin(), works.end(), ruleOf(kind).colour);
        return own == works.end() ? works.size() - 1 : static_cast<std::size_t>(own - works.begin());
    }

    Result<void> addLevel(std::int64_t segment, std::int64_t track, int level)
    {
        auto rows =
            m_database.cached("SELECT count, data FROM pyramid WHERE run=? AND segment=? AND track=? AND level=?");
        if (!rows) return tl::unexpected(rows.error());
        (*rows)->bind(m_id).bind(segment).bind(track).bind(std::int64_t{level});
        for (;;) {
            STAGEWRIGHT_TRY(const auto row, m_database.step(**rows));
            if (!row) break;
            const std::int64_t count = (*rows)->integer(0);
            if (count < 0 || count > static_cast<std::int64_t>(blockRows) ||
                !decodeBuckets((*rows)->blob(1), static_cast<std::size_t>(count), m_bucketRows))
                continue; // a damaged bucket row leaves its part of the picture empty; reading the run counts damage
            for (const Bucket& bucket : m_bucketRows) {
                const std::int64_t index = bucket.index >> (m_level - level);
                const auto at = static_cast<std::uint64_t>(index) - static_cast<std::uint64_t>(m_firstIndex);
                if (at < m_buckets) add(m_occupied[at], bucket.kind, bucket.occupied);
            }
        }
        return {};
    }

    Result<void> addSpans(std::int64_t segment, std::int64_t track)
    {
        STAGEWRIGHT_TRY(auto rows,
                        m_database.cached("SELECT count, data FROM span_block WHERE run=? AND segment=? AND track=?"));
        rows->bind(m_id).bind(segment).bind(track);
        for (;;) {
            STAGEWRIGHT_TRY(const auto row, m_database.step(*rows));
            if (!row) break;
            const std::int64_t count = rows->integer(0);
            if (count < 0 || count > static_cast<std::int64_t>(blockRows) ||
                !decodeSpans(rows->blob(1), static_cast<std::size_t>(count), 0, m_spanRows))
                continue;
            for (const StoredSpan& stored : m_spanRows) addSpan(stored.span);
        }
        return {};
    }

    void addSpan(const Span& span)
    {
        if (isDelay(span.op.kind)) return;
        const Nanos end = std::min(span.end, m_result.end);
        Nanos from = std::max(span.start, m_result.begin);
        for (std::int64_t index = from >> m_level; from < end; ++index) {
            const Nanos until = std::min(end, (index + 1) << m_level);
            add(m_occupied[static_cast<std::size_t>(index - m_firstIndex)], span.op.kind, until - from);
            from = until;
        }
    }

    // Overlapping spans fill a bucket no more than wholly.
    void add(Sums& occupied, OpKind kind, Nanos time) const
    {
        const Nanos room = m_result.bucketWidth - occupied[0] - occupied[1] - occupied[2] - occupied[3];
        occupied[workOf(kind)] += std::clamp<Nanos>(time, 0, room);
    }

    RunStore& m_store;
    Database& m_database;
    std::int64_t m_id;
    RunFile::Overview m_result;
    std::map<std::int64_t, std::size_t> m_places; // track in the file → place in m_result.tracks
    std::vector<std::int64_t> m_numbers;          // the way back
    std::optional<Lane> m_only;
    std::vector<Sums> m_occupied; // of the track at hand
    BlockEncoder m_encoder;
    std::vector<Bucket> m_bucketRows;
    std::vector<StoredSpan> m_spanRows;
    std::size_t m_buckets = 0;
    int m_level = 0;
    const Progress* m_progress = nullptr;
    std::int64_t m_parts = 0; // segments × tracks
    std::int64_t m_firstIndex = 0;
};

} // namespace

Result<RunFile::Overview> readOverview(RunStore& store, std::int64_t id, int atLeastBuckets, std::optional<Lane> only)
{
    return OverviewReader(store, id).read(atLeastBuckets, only);
}

Result<void> summarisePyramids(RunStore& store, std::int64_t id, const Progress& progress)
{
    constexpr std::int64_t fewSegments = 8; // are added up quickly enough
    STAGEWRIGHT_TRY(
        auto counts,
        store.database->prepare(
            "SELECT span_count, (SELECT count(*) FROM segment WHERE run=id), (SELECT count(*) FROM track WHERE run=id) "
            "FROM run WHERE id=?"));
    counts.bind(id);
    STAGEWRIGHT_TRY(const auto row, store.database->step(counts));
    if (!row || counts.integer(1) <= fewSegments) return {};
    const std::int64_t perTrack = counts.integer(0) / std::max<std::int64_t>(1, counts.integer(2));
    const std::int64_t parts = counts.integer(1) * counts.integer(2);
    counts.reset();
    STAGEWRIGHT_TRY(auto transaction, Transaction::begin(*store.database));
    const auto buckets =
        static_cast<int>(std::clamp<std::int64_t>(perTrack / (std::int64_t{8} * spansPerBucket), 16, 1024));
    if (auto done = OverviewReader(store, id).summarise(buckets, parts, progress); !done) return done;
    return transaction.commit();
}

} // namespace stagewright
