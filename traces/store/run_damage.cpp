// What of a run can't be read: every row and block is looked at, one at a time, without a timeline of them.
#include "traces/store/run_damage.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "schedules/base/step_number.h"
#include "traces/store/blocks.h"
#include "traces/store/rows.h"
#include "traces/store/run_reader.h"
#include "traces/store/run_store.h"
#include "traces/store/stored_text.h"

namespace stagewright {

namespace {

class Looker {
public:
    Looker(RunStore& store, std::int64_t id, const Progress& progress)
        : m_store(store), m_database(*store.database), m_id(id), m_progress(progress)
    {
    }

    Result<RunDamage> look()
    {
        STAGEWRIGHT_TRY(const auto info, readRunInfo(m_store, m_id));
        m_ranks = info.ranks;
        m_total = info.spanCount;
        for (auto part : {&Looker::names, &Looker::spans, &Looker::memory, &Looker::edgesAndSamples})
            STAGEWRIGHT_CHECK((this->*part)());
        m_found.blocks += m_store.unfolded.damaged(m_id);
        return m_found;
    }

private:
    bool isRank(std::int64_t rank, std::int64_t least = 0) const { return rank >= least && rank < m_ranks; }
    static bool isCount(std::int64_t count) { return count >= 0 && count <= static_cast<std::int64_t>(blockRows); }

    Result<void> each(std::string_view sql, const std::function<bool(const Statement&)>& sound)
    {
        return forEachRow(m_database, sql, m_id, [&](const Statement& row) -> Result<void> {
            if (m_progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
            if (!sound(row)) ++m_found.blocks;
            return {};
        });
    }

    Result<void> names()
    {
        auto tracks = each("SELECT track, rank, lane FROM track WHERE run=?", [&](const Statement& row) {
            if (!laneOf(row.text(2)) || !isRank(row.integer(1))) return false;
            m_tracks.insert(row.integer(0));
            return true;
        });
        if (!tracks) return tracks;
        return each("SELECT counter, rank FROM counter WHERE run=?", [&](const Statement& row) {
            if (!isRank(row.integer(1), -1)) return false;
            m_counters.insert(row.integer(0));
            return true;
        });
    }

    Result<void> spans()
    {
        std::vector<StoredSpan> block;
        return each("SELECT track, step, count, first, data, begin_ns, end_ns FROM span_block WHERE run=?",
                    [&](const Statement& row) {
                        const std::int64_t step = row.integer(1), count = row.integer(2), first = row.integer(3);
                        const bool placed = m_tracks.contains(row.integer(0)) && step >= outsideSteps &&
                                            step < mostSteps && count > 0 && isCount(count) && first >= 0 &&
                                            first < std::numeric_limits<std::uint32_t>::max();
                        if (!placed ||
                            !decodeSpans(row.blob(4), static_cast<std::size_t>(count), static_cast<int>(step), block))
                            return false;
                        Nanos end = block.front().span.end;
                        for (const StoredSpan& stored : block) end = std::max(end, stored.span.end);
                        // views by time would miss it
                        if (block.front().span.start != row.integer(5) || end != row.integer(6)) return false;
                        m_found.spans += count;
                        m_progress.tell("reading spans", m_found.spans, m_total);
                        return true;
                    });
    }

    Result<void> memory()
    {
        std::vector<MemoryEvent> block;
        return each("SELECT rank, count, data FROM memory_block WHERE run=?", [&](const Statement& row) {
            return isRank(row.integer(0)) && isCount(row.integer(1)) &&
                   decodeMemory(row.blob(2), static_cast<std::size_t>(row.integer(1)), static_cast<int>(row.integer(0)),
                                block);
        });
    }

    Result<void> edgesAndSamples()
    {
        std::vector<Edge> edges;
        auto done = each("SELECT count, data FROM edge_block WHERE run=?", [&](const Statement& row) {
            return isCount(row.integer(0)) && decodeEdges(row.blob(1), static_cast<std::size_t>(row.integer(0)), edges);
        });
        if (!done) return done;
        std::vector<CounterSample> samples;
        return each("SELECT counter, count, data FROM counter_block WHERE run=?", [&](const Statement& row) {
            return m_counters.contains(row.integer(0)) && isCount(row.integer(1)) &&
                   decodeSamples(row.blob(2), static_cast<std::size_t>(row.integer(1)), samples);
        });
    }

    RunStore& m_store;
    Database& m_database;
    std::int64_t m_id;
    const Progress& m_progress;
    std::int64_t m_ranks = 0, m_total = 0;
    std::set<std::int64_t> m_tracks, m_counters;
    RunDamage m_found;
};

} // namespace

Result<RunDamage> damageOf(RunStore& store, std::int64_t id, const Progress& progress)
{
    return withAllSteps(
        store, [&] { return Looker(store, id, progress).look(); }, progress.stop);
}

} // namespace stagewright
