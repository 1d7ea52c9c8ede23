// Reading a run in parts: its steps, its tracks, its blocks one after the other. Nothing of the size of the run is
// held.
#include "traces/store/run_stream.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "schedules/base/time_limits.h"
#include "traces/store/blocks.h"
#include "traces/store/rows.h"
#include "traces/store/rows_in_parts.h"
#include "traces/store/run_reader.h"
#include "traces/store/run_store.h"
#include "traces/store/schedule_text.h"
#include "traces/store/stored_text.h"
#include "traces/store/trust.h"

namespace stagewright {

namespace {

constexpr std::int64_t mostLabels = std::int64_t{1} << 24;

struct NumberedTrack {
    std::int64_t number = 0; // in the file
    Track track;
};

Result<std::vector<NumberedTrack>> readTracks(Database& database, std::int64_t id, int ranks)
{
    std::vector<NumberedTrack> tracks;
    STAGEWRIGHT_CHECK(forEachRow(database, "SELECT track, rank, lane, name FROM track WHERE run=? ORDER BY track", id,
                                 [&](const Statement& row) -> Result<void> {
                                     const auto lane = laneOf(row.text(2));
                                     const int rank = row.smallInteger(1);
                                     if (lane && rank >= 0 && rank < ranks)
                                         tracks.push_back({row.integer(0), {rank, *lane, row.text(3), 0, 0}});
                                     return {};
                                 }));
    std::stable_sort(tracks.begin(), tracks.end(), [](const NumberedTrack& a, const NumberedTrack& b) {
        return std::tie(a.track.rank, a.track.lane, a.track.name) < std::tie(b.track.rank, b.track.lane, b.track.name);
    });
    return tracks;
}

Result<void> readMetrics(RunStore& store, std::int64_t id, RunFile::Content& content)
{
    Database& database = *store.database;
    std::map<std::int64_t, std::size_t> places;
    auto done = forEachRow(database, "SELECT metric, name, unit FROM metric WHERE run=? ORDER BY metric", id,
                           [&](const Statement& row) -> Result<void> {
                               places[row.integer(0)] = content.metrics.size();
                               content.metrics.push_back({row.text(1), row.text(2), {}});
                               return {};
                           });
    if (!done) return done;
    std::size_t room = 1'000'000; // values that no row has
    done = forEachRow(database, "SELECT count(*) FROM metric_value WHERE run=?", id,
                      [&](const Statement& row) -> Result<void> {
                          room += 2 * static_cast<std::size_t>(row.integer(0));
                          return {};
                      });
    if (!done) return done;
    return eachRowInParts(
        store, {"metric, step, value", "metric_value", {}, "metric, step"}, id,
        [&](const Statement& row) -> Result<void> {
            const auto place = places.find(row.integer(0));
            const std::int64_t step = row.integer(1);
            if (place == places.end() || step < 0 || step >= std::max(1, content.info.steps)) return {};
            auto& values = content.metrics[place->second].values;
            const std::size_t grows =
                static_cast<std::size_t>(step) + 1 - std::min(values.size(), static_cast<std::size_t>(step) + 1);
            if (grows > room) return {}; // far beyond the others: damage
            room -= grows;
            values.resize(static_cast<std::size_t>(step) + 1, std::numeric_limits<double>::quiet_NaN());
            values.back() = std::isfinite(row.real(2)) ? row.real(2) : std::numeric_limits<double>::quiet_NaN();
            return {};
        });
}

// The sink has enough: not an error.
Result<void> ended() { return tl::unexpected(Error{ErrorCode::Cancelled, {}, {}}); }

bool isEnded(const Error& error) { return error.code == ErrorCode::Cancelled && error.message.empty(); }

// Rows of the table of bounds, `columns` of blocks or of their groups, for some thousand steps at a time: between them
// the view may be renewed.
Result<void> eachBoundInParts(RunStore& store, std::string_view columns, std::string_view groups, std::int64_t id,
                              const std::function<Result<void>(const Statement&)>& row)
{
    constexpr std::int64_t stepsAtOnce = 4096, last = std::numeric_limits<std::int64_t>::max();
    Database& database = *store.database;
    for (std::int64_t next = std::numeric_limits<std::int64_t>::min();;) {
        STAGEWRIGHT_TRY(
            auto from, database.prepare(fmt::format("SELECT step FROM {} WHERE run=? AND step>=? ORDER BY step LIMIT 1",
                                                    store.unfolded.bounds())));
        from.bind(id).bind(next);
        STAGEWRIGHT_TRY(const auto any, database.step(from));
        if (!any) return {};
        const std::int64_t first = from.integer(0), until = first > last - stepsAtOnce ? last : first + stepsAtOnce - 1;
        from = Statement();
        auto done = forEachRow(database,
                               fmt::format("SELECT {} FROM {} WHERE run=? AND step BETWEEN {} AND {}{}", columns,
                                           store.unfolded.bounds(), first, until, groups),
                               id, row);
        if (!done || until == last) return done;
        next = until + 1;
        if (auto renewed = store.renewWithSteps(); !renewed) return renewed;
    }
}

} // namespace

Result<std::vector<RunFile::BlockBounds>> readBlockBounds(RunStore& store, std::int64_t id)
{
    STAGEWRIGHT_CHECK(readRunInfo(store, id));
    std::vector<RunFile::BlockBounds> blocks;
    auto done = eachBoundInParts(
        store, "rowid, segment, step, begin_ns, end_ns, count", "", id, [&](const Statement& row) -> Result<void> {
            const std::int64_t step = row.integer(2), spans = row.integer(5);
            if (step >= outsideSteps && step < mostSteps && spans > 0 && spans <= static_cast<std::int64_t>(blockRows))
                blocks.push_back(
                    {row.integer(0), row.integer(1), static_cast<int>(step), row.integer(3), row.integer(4), spans});
            return {};
        });
    if (!done) return tl::unexpected(std::move(done.error()).with("file " + store.path));
    return blocks;
}

Result<std::vector<RunFile::StepBounds>> readStepBounds(RunStore& store, std::int64_t id)
{
    STAGEWRIGHT_CHECK(readRunInfo(store, id));
    STAGEWRIGHT_TRY(const auto tracks, readTracks(*store.database, id, std::numeric_limits<int>::max()));
    std::string ranges; // tracks of named ranges, which bound a step where it has no work (TimelineBuilder)
    for (const NumberedTrack& track : tracks)
        if (track.track.lane == Lane::Other) ranges += fmt::format("{}{}", ranges.empty() ? "" : ",", track.number);
    const std::string columns =
        ranges.empty()
            ? "step, min(begin_ns), max(end_ns), sum(count)"
            : fmt::format("step, ifnull(min(CASE WHEN track NOT IN ({0}) THEN begin_ns END), min(begin_ns)), "
                          "ifnull(max(CASE WHEN track NOT IN ({0}) THEN end_ns END), max(end_ns)), sum(count)",
                          ranges);
    std::vector<RunFile::StepBounds> steps;
    auto done =
        eachBoundInParts(store, columns, " GROUP BY step ORDER BY step", id, [&](const Statement& row) -> Result<void> {
            const std::int64_t step = row.integer(0);
            if (step >= 0 && step < mostSteps)
                steps.push_back({static_cast<int>(step), row.integer(1), row.integer(2), row.integer(3)});
            return {};
        });
    if (!done) return tl::unexpected(std::move(done.error()).with("file " + store.path));
    return steps;
}

Result<RunFile::Content> readContent(RunStore& store, std::int64_t id)
{
    Database& database = *store.database;
    RunFile::Content content;
    STAGEWRIGHT_TRY(content.info, readRunInfo(store, id));
    STAGEWRIGHT_TRY(const auto tracks, readTracks(database, id, content.info.ranks));
    std::map<std::int64_t, std::size_t> places;
    for (const NumberedTrack& track : tracks) {
        places[track.number] = content.tracks.size();
        content.tracks.push_back(track.track);
    }
    content.spanCount.assign(content.tracks.size(), 0);
    const auto read = [&]() -> Result<void> {
        auto done = eachBoundInParts(
            store, "track, sum(count)", " GROUP BY track", id, [&](const Statement& row) -> Result<void> {
                if (const auto place = places.find(row.integer(0)); place != places.end()) {
                    std::int64_t& spans = content.spanCount[place->second];
                    const std::int64_t most = std::max<std::int64_t>(0, content.info.spanCount);
                    spans += std::clamp<std::int64_t>(row.integer(1), 0, most - spans);
                }
                return {};
            });
        if (!done) return done;
        content.labels.assign(1, {});
        done = forEachRow(database, "SELECT label, text FROM label WHERE run=? ORDER BY label", id,
                          [&](const Statement& row) -> Result<void> {
                              const std::int64_t label = row.integer(0);
                              // numbered through
                              if (label < 1 || label >= mostLabels ||
                                  label > static_cast<std::int64_t>(content.labels.size()))
                                  return {};
                              content.labels.push_back(row.text(1));
                              return {};
                          });
        if (!done) return done;
        // not in files of version 5 or older
        STAGEWRIGHT_TRY(const auto shaped,
                        database.integer("SELECT count(*) FROM sqlite_schema WHERE name='label_shape'"));
        if (shaped != 0)
            done = forEachRow(database, "SELECT label, text FROM label_shape WHERE run=?", id,
                              [&](const Statement& row) -> Result<void> {
                                  const std::int64_t label = row.integer(0);
                                  if (label < 1 || label >= static_cast<std::int64_t>(content.labels.size())) return {};
                                  content.shapes.resize(content.labels.size());
                                  content.shapes[static_cast<std::size_t>(label)] = row.text(1);
                                  return {};
                              });
        if (!done) return done;
        if (done = readMetrics(store, id, content); !done) return done;
        done = forEachRow(database,
                          "SELECT key, value FROM run_text WHERE run=? AND section='configuration' ORDER BY ordinal",
                          id, [&](const Statement& row) -> Result<void> {
                              content.configuration.emplace_back(row.text(0), row.text(1));
                              return {};
                          });
        if (!done) return done;
        return forEachRow(database, "SELECT schedule, begin_ns, end_ns, time_unit, memory_unit FROM run WHERE id=?", id,
                          [&](const Statement& row) -> Result<void> {
                              if (!row.isNull(0)) {
                                  STAGEWRIGHT_TRY(auto schedule, readScheduleText(row.text(0)));
                                  content.schedule = std::make_shared<const Schedule>(std::move(schedule));
                              }
                              content.begin = std::clamp(row.integer(1), -farthestTime, farthestTime);
                              content.end = std::clamp(row.integer(2), content.begin, farthestTime);
                              content.timeUnit = std::max<Nanos>(1, row.integer(3));
                              content.memoryUnit = std::max<Bytes>(1, row.integer(4));
                              return {};
                          });
    };
    if (auto done = read(); !done) return tl::unexpected(std::move(done.error()).with("file " + store.path));
    return content;
}

Result<std::int64_t> streamSpans(RunStore& store, std::int64_t id, const RunFile::SpanSink& sink,
                                 const Progress& progress)
{
    return withAllSteps(
        store,
        [&]() -> Result<std::int64_t> {
            Database& database = *store.database;
            STAGEWRIGHT_TRY(const auto info, readRunInfo(store, id));
            STAGEWRIGHT_TRY(const auto tracks, readTracks(database, id, info.ranks));
            std::map<std::int64_t, std::size_t> places;
            for (std::size_t i = 0; i < tracks.size(); ++i) places[tracks[i].number] = i;
            std::vector<StoredSpan> stored;
            std::vector<Span> spans;
            std::int64_t damaged = 0, read = 0, room = mostRowsFor(store.bytesNow());
            auto done = eachRowInParts(
                store,
                {"segment, track, first, step, count, data",
                 "span_block",
                 {},
                 "segment, track, first",
                 [&] { return store.loadSteps(id, 0, info.steps - 1); }},
                id, [&](const Statement& row) -> Result<void> {
                    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
                    const auto place = places.find(row.integer(1));
                    const std::int64_t step = row.integer(3), count = row.integer(4);
                    if (step >= info.steps && info.state == RunState::Recording) return {}; // recorded since
                    if (place == places.end() || step < outsideSteps || step >= mostSteps || count <= 0 ||
                        count > static_cast<std::int64_t>(blockRows) ||
                        !decodeSpans(row.blob(5), static_cast<std::size_t>(count), static_cast<int>(step), stored) ||
                        count > room) {
                        ++damaged;
                        return {};
                    }
                    room -= count;
                    spans.clear();
                    for (const StoredSpan& one : stored) spans.push_back(one.span);
                    if (!sink({place->second, static_cast<int>(step), spans})) return ended();
                    read += count;
                    progress.tell("reading spans", read, info.spanCount);
                    return {};
                });
            if (!done && !isEnded(done.error())) return tl::unexpected(std::move(done.error()));
            return damaged;
        },
        progress.stop);
}

Result<std::int64_t> streamMemory(RunStore& store, std::int64_t id, const RunFile::MemorySink& sink,
                                  const Progress& progress)
{
    return withAllSteps(
        store,
        [&]() -> Result<std::int64_t> {
            STAGEWRIGHT_TRY(const auto info, readRunInfo(store, id));
            std::vector<MemoryEvent> block;
            std::int64_t damaged = 0, room = mostRowsFor(store.bytesNow());
            auto done = eachRowInParts(
                store,
                {"segment, rank, ordinal, count, data",
                 "memory_block",
                 {},
                 "segment, rank, ordinal",
                 [&] { return store.loadSteps(id, 0, info.steps - 1); }},
                id, [&](const Statement& row) -> Result<void> {
                    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
                    const std::int64_t rank = row.integer(1), count = row.integer(3);
                    if (rank < 0 || rank >= info.ranks || count < 0 || count > static_cast<std::int64_t>(blockRows) ||
                        !decodeMemory(row.blob(4), static_cast<std::size_t>(count), static_cast<int>(rank), block) ||
                        count > room) {
                        ++damaged;
                        return {};
                    }
                    room -= count;
                    if (info.state == RunState::Recording)
                        std::erase_if(block, [&](const MemoryEvent& event) { return event.step >= info.steps; });
                    return block.empty() || sink(block) ? Result<void>() : ended();
                });
            if (!done && !isEnded(done.error())) return tl::unexpected(std::move(done.error()));
            return damaged;
        },
        progress.stop);
}

} // namespace stagewright
