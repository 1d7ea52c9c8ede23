// Reading a run back: rows, then blocks into a TimelineBuilder. Damaged blocks are left out and counted.
#include "traces/store/run_reader.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedules/base/step_number.h"
#include "schedules/text/cost_json.h"
#include "traces/run/run_facts.h"
#include "traces/store/blocks.h"
#include "traces/store/range_numbers.h"
#include "traces/store/rows.h"
#include "traces/store/rows_in_parts.h"
#include "traces/store/run_store.h"
#include "traces/store/schedule_text.h"
#include "traces/store/stored_text.h"
#include "traces/store/trust.h"

namespace stagewright {

namespace {

constexpr std::int64_t mostRanks = 65536; // ranks are 16 bits in memory events
constexpr std::size_t gap = 1'000'000;    // steps, and values of metrics, that no row has

constexpr std::string_view infoColumns =
    "id, name, schedule_name, note, created_unix_ms, state, provenance, clock, ranks, "
    "stages, microbatches, steps, warmup_steps, span_count";

RunInfo infoOf(RunStore& store, const Statement& row)
{
    RunInfo info;
    info.id = row.integer(0);
    info.name = row.text(1);
    info.scheduleName = row.text(2);
    info.note = row.text(3);
    info.createdUnixMs = row.integer(4);
    info.state = runStateOf(row.text(5));
    info.provenance = provenanceOf(row.text(6));
    info.clock = row.text(7);
    info.ranks = row.smallInteger(8);
    info.stages = row.smallInteger(9);
    info.microbatches = row.smallInteger(10);
    info.steps = row.smallInteger(11);
    info.warmupSteps = row.smallInteger(12);
    info.spanCount = row.integer(13);
    const bool written = info.state == RunState::Recording || info.state == RunState::Receiving;
    if (written && !store.lock.heldHere() && !store.lock.heldElsewhere()) info.state = RunState::Interrupted;
    return info;
}

// Left by a killed writer before its first measured step: nothing to show. The next writer removes it.
bool abandoned(std::string_view stored, const RunInfo& info)
{
    return stored == toText(RunState::Recording) && info.state != RunState::Recording && info.steps <= info.warmupSteps;
}

class Reader {
public:
    Reader(RunStore& store, std::int64_t id, StepRange steps, const Progress& progress)
        : m_store(store), m_database(*store.database), m_id(id), m_steps(steps), m_progress(progress)
    {
    }

    Result<Run> read()
    {
        if (!m_onlyHeader) // before anything is read: the view may be another one after it
            STAGEWRIGHT_CHECK(loadSteps());
        STAGEWRIGHT_TRY(m_run.info, readRunInfo(m_store, m_id));
        if (m_run.info.ranks < 0 || m_run.info.ranks > mostRanks)
            return fail(ErrorCode::Unreadable,
                        fmt::format("run {}: damaged ({} ranks; at most {})", m_id, m_run.info.ranks, mostRanks),
                        "restore the file from a copy");
        if (m_steps.header == nullptr)
            return readParts({&Reader::texts, &Reader::metrics, &Reader::documents, &Reader::timeline});
        takeHeader(*m_steps.header);
        return readParts({&Reader::timeline});
    }

    // Without spans; the timeline has the schedule it realises and its units.
    Result<Run> readHeader()
    {
        m_onlyHeader = true;
        return read();
    }

private:
    // last: no later ones
    Result<void> loadSteps(std::int64_t last = std::numeric_limits<std::int64_t>::max())
    {
        if (m_steps.times) return m_store.loadSteps(m_id, 0, last);
        if (m_steps.chosen.empty())
            return m_store.loadSteps(m_id, m_steps.first, std::min<std::int64_t>(m_steps.last, last));
        for (const int step : m_steps.chosen)
            if (auto done = m_store.loadSteps(m_id, step, step); !done) return done;
        return {};
    }

    // Blocks or the like, in the order of their keys; steps that are recorded meanwhile are not among them.
    Result<void> inParts(std::string_view columns, std::string_view table, std::string where, std::string_view keys,
                         const std::function<Result<void>(const Statement&)>& row)
    {
        return eachRowInParts(
            m_store, {columns, table, std::move(where), keys, [this] { return loadSteps(m_run.info.steps - 1); }}, m_id,
            row);
    }

    Result<Run> readParts(std::initializer_list<Result<void> (Reader::*)()> parts)
    {
        for (auto part : parts)
            if (auto done = (this->*part)(); !done) {
                const std::string file = "file " + m_store.path;
                // SQLite's own faults name it
                if (done.error().message.starts_with(file)) return tl::unexpected(std::move(done.error()));
                return tl::unexpected(std::move(done.error()).with(file));
            }
        m_run.info.damagedBlocks = m_damaged + m_store.unfolded.damaged(m_id);
        return std::move(m_run);
    }

    void takeHeader(const Run& header)
    {
        RunInfo info = std::move(m_run.info);
        m_run = header;
        m_run.info = std::move(info);
        m_realised = header.timeline->schedule();
        m_timeUnit = header.timeline->timeUnit();
        m_memoryUnit = header.timeline->memoryUnit();
    }

    Result<void> texts()
    {
        return forEachRow(
            m_database,
            "SELECT section, key, value FROM run_text WHERE run=? AND section<>'digest' ORDER BY section, ordinal",
            m_id, [&](const Statement& row) -> Result<void> {
                TextPairs& pairs = row.text(0) == "environment" ? m_run.environment : m_run.configuration;
                pairs.emplace_back(row.text(1), row.text(2));
                return {};
            });
    }

    Result<void> metrics()
    {
        std::map<std::int64_t, std::size_t> places;
        std::size_t room = gap; // for values: no more than the rows that are there, and some gaps
        auto counted = forEachRow(m_database, "SELECT count(*) FROM metric_value WHERE run=?", m_id,
                                  [&](const Statement& row) -> Result<void> {
                                      room += 2 * static_cast<std::size_t>(row.integer(0));
                                      return {};
                                  });
        if (!counted) return counted;
        auto named = forEachRow(m_database, "SELECT metric, name, unit FROM metric WHERE run=? ORDER BY metric", m_id,
                                [&](const Statement& row) -> Result<void> {
                                    places[row.integer(0)] = m_run.metrics.size();
                                    m_run.metrics.push_back({row.text(1), row.text(2), {}});
                                    return {};
                                });
        if (!named) return named;
        return forEachRow(
            m_database, "SELECT metric, step, value FROM metric_value WHERE run=? ORDER BY metric, step", m_id,
            [&](const Statement& row) -> Result<void> {
                const auto place = places.find(row.integer(0));
                const std::int64_t step = row.integer(1);
                if (place == places.end() || step < 0 || step > mostSteps) {
                    ++m_damaged;
                    return {};
                }
                auto& values = m_run.metrics[place->second].values;
                const std::size_t grows =
                    static_cast<std::size_t>(step) + 1 - std::min(values.size(), static_cast<std::size_t>(step) + 1);
                if (grows > room) { // a step far beyond the others is damage
                    ++m_damaged;
                    return {};
                }
                room -= grows;
                values.resize(static_cast<std::size_t>(step) + 1, std::numeric_limits<double>::quiet_NaN());
                values.back() = std::isfinite(row.real(2)) ? row.real(2) : std::numeric_limits<double>::quiet_NaN();
                return {};
            });
    }

    Result<void> documents()
    {
        return forEachRow(m_database, "SELECT schedule, realised, costs, time_unit, memory_unit FROM run WHERE id=?",
                          m_id, [&](const Statement& row) -> Result<void> {
                              const auto schedule = [&](int column) -> Result<std::shared_ptr<const Schedule>> {
                                  STAGEWRIGHT_TRY(auto read, readScheduleText(row.text(column)));
                                  return std::make_shared<const Schedule>(std::move(read));
                              };
                              if (!row.isNull(0)) {
                                  STAGEWRIGHT_TRY(m_run.schedule, schedule(0));
                              }
                              if (!row.isNull(1)) {
                                  m_realised = m_run.schedule;
                                  if (!row.text(1).empty()) {
                                      STAGEWRIGHT_TRY(m_realised, schedule(1));
                                  }
                              }
                              if (!row.isNull(2)) {
                                  auto costs = readCostsJson(row.text(2));
                                  if (!costs) return tl::unexpected(std::move(costs.error()).with("stored costs"));
                                  m_run.costs = std::move(*costs);
                              }
                              m_timeUnit = std::max<Nanos>(1, row.integer(3));
                              m_memoryUnit = std::max<Bytes>(1, row.integer(4));
                              return {};
                          });
    }

    Result<void> timeline()
    {
        m_builder.emplace(m_run.info.provenance, m_run.info.clock, m_run.info.ranks);
        m_builder->setUnits(m_timeUnit, m_memoryUnit);
        if (m_realised) m_builder->setSchedule(m_realised, replicaSizes(m_run));
        m_builder->setMissingRanks(partOfPipeline(m_run.configuration, m_run.info.ranks));
        if (auto done = m_onlyHeader ? Result<void>() : fill(); !done) return done;
        auto built = m_builder->build();
        if (!built) {
            if (built.error().code == ErrorCode::Invalid) built.error().code = ErrorCode::Unreadable;
            return tl::unexpected(std::move(built.error()).with(fmt::format("run {}", m_id)));
        }
        m_run.timeline = std::move(*built);
        return {};
    }

    Result<void> fill()
    {
        for (auto part : {&Reader::findSegments, &Reader::declareTracks, &Reader::declareLabels,
                          &Reader::declareCounters, &Reader::spans, &Reader::memory, &Reader::edges, &Reader::samples})
            if (auto done = (this->*part)(); !done) return done;
        return {};
    }

    // Steps are appended in order, so the requested ones are in the segments from m_firstSegment to m_lastSegment.
    Result<void> findSegments()
    {
        if (m_steps.whole()) {
            if (m_store.mode != OpenMode::Read || m_run.info.state != RunState::Recording) return {};
            return forEachRow(m_database, "SELECT max(segment) FROM segment WHERE run=?", m_id,
                              [&](const Statement& row) -> Result<void> {
                                  m_lastSegment = row.integer(0);
                                  m_grows = true;
                                  return {};
                              });
        }
        if (!m_steps.rows.empty()) {
            const auto [first, last] =
                std::minmax_element(m_steps.rows.begin(), m_steps.rows.end(),
                                    [](const auto& a, const auto& b) { return a.segment < b.segment; });
            m_firstSegment = first->segment;
            m_lastSegment = last->segment;
            return {};
        }
        if (!m_steps.chosen.empty()) {
            auto listed = forEachRow(m_database,
                                     fmt::format("SELECT DISTINCT segment FROM {} WHERE run=?{} ORDER BY segment",
                                                 m_store.unfolded.bounds(), inside()),
                                     m_id, [&](const Statement& row) -> Result<void> {
                                         m_segments.push_back(row.integer(0));
                                         return {};
                                     });
            m_firstSegment = m_segments.empty() ? std::numeric_limits<std::int64_t>::max() : m_segments.front();
            m_lastSegment = m_segments.empty() ? -1 : m_segments.back();
            return listed;
        }
        return forEachRow(
            m_database,
            fmt::format("SELECT min(segment), max(segment) FROM {} WHERE run=?{}", m_store.unfolded.bounds(), inside()),
            m_id, [&](const Statement& row) -> Result<void> {
                m_firstSegment = row.isNull(0) ? std::numeric_limits<std::int64_t>::max() : row.integer(0);
                m_lastSegment = row.integer(1);
                return {};
            });
    }

    // Blocks that are read, as a condition.
    std::string inside() const
    {
        if (!m_steps.rows.empty()) {
            std::string rows;
            for (const RunFile::BlockBounds& block : m_steps.rows)
                rows += fmt::format("{}{}", rows.empty() ? "" : ",", block.row);
            return " AND rowid IN (" + rows + ")";
        }
        if (m_steps.times)
            return fmt::format(" AND begin_ns<{} AND end_ns>{}", m_steps.times->second, m_steps.times->first);
        if (!m_steps.chosen.empty()) return fmt::format(" AND step IN ({})", fmt::join(m_steps.chosen, ","));
        return m_steps.whole() ? std::string()
                               : fmt::format(" AND +step>={} AND +step<={}", m_steps.first, m_steps.last);
    }
    bool overlaps(const Span& span) const
    {
        return !m_steps.times || (span.start < m_steps.times->second && span.end > m_steps.times->first);
    }

    // For so many rows more of what a file of this size can hold: blocks of one value repeated are small.
    bool hasRoomFor(std::int64_t rows)
    {
        if (m_room < 0) m_room = mostRowsFor(m_store.bytesNow());
        if (rows > m_room) return false;
        m_room -= rows;
        return true;
    }

    // Segments that are read, as a condition; a damaged file may number them as it likes.
    std::string wanted() const
    {
        if (!m_steps.chosen.empty()) return fmt::format(" AND segment IN ({})", fmt::join(m_segments, ","));
        return m_steps.whole() && !m_grows
                   ? std::string()
                   : fmt::format(" AND segment>={} AND segment<={}", m_firstSegment, m_lastSegment);
    }

    Result<void> declareTracks()
    {
        return forEachRow(m_database, "SELECT track, rank, lane, name FROM track WHERE run=? ORDER BY track", m_id,
                          [&](const Statement& row) -> Result<void> {
                              const auto lane = laneOf(row.text(2));
                              const std::int64_t rank = row.integer(1);
                              if (!lane || rank < 0 || rank >= m_run.info.ranks) {
                                  ++m_damaged;
                                  return {};
                              }
                              m_tracks[row.integer(0)] =
                                  m_builder->addTrack(static_cast<int>(rank), *lane, row.text(3));
                              return {};
                          });
    }

    Result<void> declareLabels()
    {
        STAGEWRIGHT_TRY(const auto table,
                        m_database.integer("SELECT count(*) FROM sqlite_schema WHERE name='label_shape'"));
        const bool shapes = table != 0; // else a file of version 5 or older
        return forEachRow(m_database,
                          shapes ? "SELECT l.label, l.text, s.text FROM label l LEFT JOIN label_shape s ON s.run=l.run "
                                   "AND s.label=l.label WHERE l.run=? ORDER BY l.label"
                                 : "SELECT label, text, NULL FROM label WHERE run=? ORDER BY label",
                          m_id, [&](const Statement& row) -> Result<void> {
                              m_labels[row.integer(0)] = m_builder->intern(row.text(1), row.text(2));
                              return {};
                          });
    }

    Result<void> declareCounters()
    {
        return forEachRow(m_database, "SELECT counter, rank, name, unit FROM counter WHERE run=? ORDER BY counter",
                          m_id, [&](const Statement& row) -> Result<void> {
                              const std::int64_t rank = row.integer(1);
                              if (rank < -1 || rank >= m_run.info.ranks) {
                                  ++m_damaged;
                                  return {};
                              }
                              m_counters[row.integer(0)] =
                                  m_builder->addCounter(static_cast<int>(rank), row.text(2), row.text(3));
                              return {};
                          });
    }

    // Steps are numbered through: one far beyond the number of blocks is damage, and asks for memory.
    bool isNear(std::int64_t step)
    {
        if (step <= static_cast<std::int64_t>(gap)) return true;
        if (m_blocks < 0) {
            m_blocks =
                m_database.integer(fmt::format("SELECT count(*) FROM {} WHERE run={}", m_store.unfolded.bounds(), m_id))
                    .value_or(0);
            if (m_store.logs)
                m_blocks += m_database.integer(fmt::format("SELECT count(*) FROM main.step_log WHERE run={}", m_id))
                                .value_or(0);
        }
        return step <= static_cast<std::int64_t>(gap) + m_blocks;
    }

    Result<void> spans()
    {
        std::vector<StoredSpan> block;
        std::int64_t read = 0, numbered = 0;
        // spans that the blocks can hold: the limit of valid numbers
        std::int64_t most = 0;
        if (!m_steps.rows.empty()) most = std::numeric_limits<std::uint32_t>::max(); // their numbers are in a map
        auto counted =
            !m_steps.rows.empty()
                ? Result<void>()
                : forEachRow(m_database,
                             fmt::format("SELECT count(*) FROM {} WHERE run=?{}", m_store.unfolded.bounds(), wanted()),
                             m_id, [&](const Statement& row) -> Result<void> {
                                 most = row.integer(0) * static_cast<std::int64_t>(blockRows);
                                 return {};
                             });
        if (!counted) return counted;
        return inParts(
            "segment, track, first, step, count, data", "span_block",
            (m_steps.rows.empty() ? wanted() : std::string()) + inside(), "segment, track, first",
            [&](const Statement& row) -> Result<void> {
                if (m_progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
                const auto track = m_tracks.find(row.integer(1));
                const std::int64_t first = row.integer(2);
                const std::int64_t step = row.integer(3);
                const std::int64_t count = row.integer(4);
                const auto segment = m_ids.find(row.integer(0));
                const std::int64_t before =
                    segment == m_ids.end() ? 0 : static_cast<std::int64_t>(segment->second.size());
                const bool placed =
                    first >= 0 && first < most && count > 0 && count <= static_cast<std::int64_t>(blockRows) &&
                    // of all segments together
                    (m_steps.times || numbered + std::max<std::int64_t>(0, first + count - before) <= most);
                const bool known = track != m_tracks.end() && step >= outsideSteps && step < mostSteps && isNear(step);
                if (!placed || !known ||
                    !decodeSpans(row.blob(5), static_cast<std::size_t>(count), static_cast<int>(step), block) ||
                    !hasRoomFor(count)) {
                    ++m_damaged;
                    return {};
                }
                auto& ids = m_ids[row.integer(0)];
                std::vector<SpanId> part; // of a range, instead of ids
                const auto end = static_cast<std::size_t>(first + count);
                if (m_steps.times) {
                    part.assign(block.size(), noSpan);
                } else if (ids.size() < end) {
                    numbered += static_cast<std::int64_t>(end - ids.size());
                    ids.resize(end, noSpan);
                }
                for (std::size_t i = 0; i < block.size(); ++i) {
                    Span& span = block[i].span;
                    if (!overlaps(span)) continue;
                    if (span.label != 0) {
                        const auto label = m_labels.find(span.label);
                        span.label = (label == m_labels.end() ? 0 : label->second) & 0xffffffu;
                    }
                    const SpanId id = m_builder->addSpan(track->second, span, block[i].cpu);
                    (m_steps.times ? part[i] : ids[static_cast<std::size_t>(first) + i]) = id;
                }
                if (m_steps.times) m_parts[row.integer(0)].add(static_cast<SpanId>(first), std::move(part));
                read += count;
                m_progress.tell("reading spans", read, m_run.info.spanCount);
                return {};
            });
    }

    // The memory in use at the start of the first requested segment, if the file has it.
    Result<bool> memoryBase(std::map<std::tuple<int, int, MemoryCategory>, MemoryEvent>& carried)
    {
        if (m_steps.first <= 0 && !m_steps.times) return false;
        STAGEWRIGHT_TRY(const auto table,
                        m_database.integer("SELECT count(*) FROM sqlite_schema WHERE name='memory_base'"));
        if (table == 0) return false; // a file of version 1
        bool found = false;
        std::vector<MemoryEvent> block;
        auto done =
            forEachRow(m_database,
                       fmt::format("SELECT count, data FROM memory_base WHERE run=? AND segment={} ORDER BY ordinal",
                                   m_firstSegment),
                       m_id, [&](const Statement& row) -> Result<void> {
                           const std::int64_t count = row.integer(0);
                           found = true;
                           if (count < 0 || count > static_cast<std::int64_t>(blockRows) ||
                               !decodeMemoryBase(row.blob(1), static_cast<std::size_t>(count), block)) {
                               ++m_damaged;
                               return {};
                           }
                           for (const MemoryEvent& event : block)
                               if (event.rank < m_run.info.ranks)
                                   carried[{event.rank, event.stage, event.category}] = event;
                           return {};
                       });
        if (!done) return tl::unexpected(done.error());
        return found;
    }

    // The memory of chosen steps: what happened between them is one event for each rank, stage and category.
    Result<void> memoryOfChosen()
    {
        using Key = std::tuple<int, int, MemoryCategory>;
        std::map<Key, MemoryEvent> latest;    // as the builder has it; delta: in use
        std::map<Key, MemoryEvent> between;   // what it lacks so far
        std::map<std::int64_t, bool> started; // segments with a base: it has been applied
        std::vector<MemoryEvent> block;
        STAGEWRIGHT_TRY(const auto table,
                        m_database.integer("SELECT count(*) FROM sqlite_schema WHERE name='memory_base'"));
        auto bases = table == 0
                         ? Result<void>()
                         : forEachRow(m_database, "SELECT DISTINCT segment FROM memory_base WHERE run=?" + wanted(),
                                      m_id, [&](const Statement& row) -> Result<void> {
                                          started[row.integer(0)] = false;
                                          return {};
                                      });
        if (!bases) return bases;
        // else of an early version: everything from the start on
        const bool based = started.size() == m_segments.size();
        const auto apply = [&](std::int64_t segment) -> Result<void> {
            started[segment] = true;
            std::map<Key, MemoryEvent> base;
            auto read = forEachRow(
                m_database,
                fmt::format("SELECT count, data FROM memory_base WHERE run=? AND segment={} ORDER BY ordinal", segment),
                m_id, [&](const Statement& row) -> Result<void> {
                    const std::int64_t count = row.integer(0);
                    if (count < 0 || count > static_cast<std::int64_t>(blockRows) ||
                        !decodeMemoryBase(row.blob(1), static_cast<std::size_t>(count), block)) {
                        ++m_damaged;
                        return {};
                    }
                    for (const MemoryEvent& event : block)
                        if (event.rank < m_run.info.ranks) base[{event.rank, event.stage, event.category}] = event;
                    return {};
                });
            if (!read) return read;
            for (const auto& [key, event] : latest)
                if (event.delta != 0 && !base.contains(key)) { // freed since
                    MemoryEvent& freed = base[key] = event;
                    freed.delta = 0;
                    freed.step = -1;
                    ++freed.time;
                }
            for (auto& [key, event] : base) {
                event.delta -= latest[key].delta;
                between[key] = event;
            }
            return {};
        };
        const auto put = [&](const Key& key, const MemoryEvent& event) {
            m_builder->addMemory(event);
            MemoryEvent& sum = latest[key];
            const Bytes inUse = sum.delta + event.delta;
            sum = event;
            sum.delta = inUse;
            sum.microbatch = -1;
        };
        const auto settle = [&](const Key& key) {
            const auto found = between.find(key);
            if (found == between.end() || found->second.delta == 0) return;
            put(key, found->second);
            found->second.delta = 0;
        };
        const std::string segments = based ? wanted() : fmt::format(" AND segment<={}", m_lastSegment);
        auto done = inParts(
            "segment, rank, ordinal, count, data", "memory_block", segments, "segment, rank, ordinal",
            [&](const Statement& row) -> Result<void> {
                if (m_progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
                const std::int64_t segment = row.integer(0), rank = row.integer(1), count = row.integer(3);
                if (based && !started[segment]) {
                    for (const auto& [key, event] : between) settle(key);
                    if (auto applied = apply(segment); !applied) return applied;
                }
                if (rank < 0 || rank >= m_run.info.ranks || count < 0 || count > static_cast<std::int64_t>(blockRows) ||
                    !decodeMemory(row.blob(4), static_cast<std::size_t>(count), static_cast<int>(rank), block) ||
                    !hasRoomFor(count)) {
                    ++m_damaged;
                    return {};
                }
                for (const MemoryEvent& event : block) {
                    const Key key{event.rank, event.stage, event.category};
                    if (std::binary_search(m_steps.chosen.begin(), m_steps.chosen.end(), event.step)) {
                        settle(key);
                        put(key, event);
                    } else {
                        const Bytes delta = between[key].delta + event.delta;
                        between[key] = event;
                        between[key].delta = delta;
                        between[key].microbatch = -1;
                    }
                }
                return {};
            });
        if (!done) return done;
        for (const auto& [key, event] : between) settle(key);
        return {};
    }

    Result<void> memory()
    {
        if (!m_steps.chosen.empty()) return memoryOfChosen();
        std::vector<MemoryEvent> block;
        std::map<std::tuple<int, int, MemoryCategory>, MemoryEvent> carried;
        STAGEWRIGHT_TRY(const auto base, memoryBase(carried));
        std::string segments;
        if (base) segments = fmt::format(" AND segment>={}", m_firstSegment);
        if (!m_steps.whole() || m_grows) segments += fmt::format(" AND segment<={}", m_lastSegment);
        auto done = inParts(
            "segment, rank, ordinal, count, data", "memory_block", segments, "segment, rank, ordinal",
            [&](const Statement& row) -> Result<void> {
                if (m_progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
                const std::int64_t rank = row.integer(1);
                const std::int64_t count = row.integer(3);
                if (rank < 0 || rank >= m_run.info.ranks || count < 0 || count > static_cast<std::int64_t>(blockRows) ||
                    !decodeMemory(row.blob(4), static_cast<std::size_t>(count), static_cast<int>(rank), block) ||
                    !hasRoomFor(count)) {
                    ++m_damaged;
                    return {};
                }
                for (const MemoryEvent& event : block) {
                    if (event.step > m_steps.last || (m_steps.times && event.time >= m_steps.times->second)) continue;
                    if (m_steps.times ? event.time >= m_steps.times->first
                                      : m_steps.first <= 0 || event.step >= m_steps.first) {
                        m_builder->addMemory(event);
                        continue;
                    }
                    MemoryEvent& sum = carried[{event.rank, event.stage, event.category}];
                    const Bytes inUse = sum.delta + event.delta;
                    sum = event;
                    sum.delta = inUse;
                    sum.microbatch = -1;
                }
                return {};
            });
        if (!done) return done;
        for (const auto& [key, event] : carried)
            if (event.delta != 0) m_builder->addMemory(event);
        return {};
    }

    Result<void> edges()
    {
        if (m_steps.times) return edgesOfRange();
        std::vector<Edge> block;
        const auto idOf = [](const std::vector<SpanId>& ids, SpanId local) {
            return local < ids.size() ? ids[local] : noSpan;
        };
        return inParts("segment, ordinal, count, data", "edge_block", wanted(), "segment, ordinal",
                       [&](const Statement& row) -> Result<void> {
                           const std::int64_t count = row.integer(2);
                           if (count < 0 || count > static_cast<std::int64_t>(blockRows) ||
                               !decodeEdges(row.blob(3), static_cast<std::size_t>(count), block) ||
                               !hasRoomFor(count)) {
                               ++m_damaged;
                               return {};
                           }
                           const auto& ids = m_ids[row.integer(0)];
                           for (const Edge& edge : block) { // an edge of a lost span is lost with it
                               const SpanId from = idOf(ids, edge.from);
                               const SpanId to = idOf(ids, edge.to);
                               if (from != noSpan && to != noSpan)
                                   m_builder->addEdge(from, to, edge.kind, edge.arrival);
                           }
                           return {};
                       });
    }

    Result<void> edgesOfRange()
    {
        std::vector<Edge> block;
        for (const auto& [segment, numbers] : m_parts) {
            STAGEWRIGHT_TRY(const auto ordinals, edgeBlocksInto(m_database, m_id, segment, numbers.ranges()));
            for (const std::int64_t ordinal : ordinals) {
                if (m_progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
                auto done = forEachRow(
                    m_database,
                    fmt::format("SELECT count, data FROM edge_block WHERE run=? AND segment={} AND ordinal={}", segment,
                                ordinal),
                    m_id, [&, &of = numbers](const Statement& row) -> Result<void> {
                        const std::int64_t count = row.integer(0);
                        if (count < 0 || count > static_cast<std::int64_t>(blockRows) ||
                            !decodeEdges(row.blob(1), static_cast<std::size_t>(count), block) || !hasRoomFor(count)) {
                            ++m_damaged;
                            return {};
                        }
                        for (const Edge& edge : block)
                            if (const SpanId from = of.of(edge.from), to = of.of(edge.to);
                                from != noSpan && to != noSpan)
                                m_builder->addEdge(from, to, edge.kind, edge.arrival);
                        return {};
                    });
                if (!done) return done;
            }
        }
        return {};
    }

    Result<void> samples()
    {
        std::vector<CounterSample> block;
        return inParts(
            "segment, counter, ordinal, count, data", "counter_block", wanted(), "segment, counter, ordinal",
            [&](const Statement& row) -> Result<void> {
                const auto counter = m_counters.find(row.integer(1));
                const std::int64_t count = row.integer(3);
                if (counter == m_counters.end() || count < 0 || count > static_cast<std::int64_t>(blockRows) ||
                    !decodeSamples(row.blob(4), static_cast<std::size_t>(count), block) || !hasRoomFor(count)) {
                    ++m_damaged;
                    return {};
                }
                for (const CounterSample& sample : block)
                    if (!m_steps.times || (sample.time >= m_steps.times->first && sample.time < m_steps.times->second))
                        m_builder->addSample(counter->second, sample.time, sample.value);
                return {};
            });
    }

    RunStore& m_store;
    Database& m_database;
    std::int64_t m_id;
    StepRange m_steps;
    bool m_onlyHeader = false;
    const Progress& m_progress;
    Run m_run;
    std::shared_ptr<const Schedule> m_realised;
    Nanos m_timeUnit = 1;
    Bytes m_memoryUnit = 1;
    std::optional<TimelineBuilder> m_builder;
    std::map<std::int64_t, int> m_tracks; // number in the file → builder's
    std::map<std::int64_t, std::uint32_t> m_labels;
    std::map<std::int64_t, int> m_counters;
    std::map<std::int64_t, std::vector<SpanId>> m_ids; // by segment: local id → builder's
    std::map<std::int64_t, RangeNumbers> m_parts;      // the same where a range is read
    std::vector<std::int64_t> m_segments;              // of the chosen steps, ascending
    std::int64_t m_firstSegment = std::numeric_limits<std::int64_t>::min();
    std::int64_t m_lastSegment = std::numeric_limits<std::int64_t>::max();
    bool m_grows = false; // while it is read
    std::int64_t m_damaged = 0;
    std::int64_t m_blocks = -1; // of the run, once they are counted
    std::int64_t m_room = -1;   // rows that may still be read, once it is known
};

} // namespace

Result<RunInfo> readRunInfo(RunStore& store, std::int64_t id)
{
    STAGEWRIGHT_TRY(auto statement, bound(*store.database, fmt::format("SELECT {} FROM run WHERE id=?", infoColumns),
                                          [&](Statement& s) { s.bind(id); }));
    STAGEWRIGHT_TRY(const auto row, store.database->step(statement));
    if (!row)
        return fail(ErrorCode::Usage, fmt::format("file {}: no run {}", store.path, id), "list the runs of the file");
    return infoOf(store, statement);
}

Result<void> eachRunInfo(RunStore& store, const std::function<Result<void>(RunInfo)>& sink)
{
    std::int64_t last = std::numeric_limits<std::int64_t>::min();
    return forEachRow(*store.database, fmt::format("SELECT {} FROM run WHERE id > ? ORDER BY id", infoColumns),
                      std::numeric_limits<std::int64_t>::min(), [&](const Statement& row) -> Result<void> {
                          RunInfo info = infoOf(store, row);
                          if (info.id <= last)
                              return fail(ErrorCode::Unreadable,
                                          fmt::format("file {}: damaged (its runs are not in order)", store.path),
                                          "restore it from a copy, or record again");
                          last = info.id;
                          return abandoned(row.text(5), info) ? Result<void>() : sink(std::move(info));
                      });
}

Result<std::vector<RunInfo>> readRunInfos(RunStore& store)
{
    std::vector<RunInfo> infos;
    STAGEWRIGHT_CHECK(eachRunInfo(store, [&](RunInfo info) -> Result<void> {
        infos.push_back(std::move(info));
        return {};
    }));
    return infos;
}

Result<Run> readRun(RunStore& store, std::int64_t id, StepRange steps, const Progress& progress)
{
    return inSnapshot(
        store, [&] { return Reader(store, id, steps, progress).read(); }, progress.stop);
}

Result<Run> readRunHeader(RunStore& store, std::int64_t id)
{
    const Progress silent;
    return inSnapshot(store, [&] { return Reader(store, id, {}, silent).readHeader(); });
}

} // namespace stagewright
