// Writing a run: a timeline cut into blocks, with the pyramids beside them.
#include <algorithm>

#include <fmt/format.h>

#include "schedules/base/time_limits.h"
#include "schedules/text/cost_json.h"
#include "traces/store/add_runs.h"
#include "traces/store/blocks.h"
#include "traces/store/pyramid.h"
#include "traces/store/run_store.h"
#include "traces/store/schedule_text.h"
#include "traces/store/schema.h"

namespace stagewright {

namespace {

// Runs a cached statement after binding its parameters.
template <typename Bind>
Result<void> write(Database& database, std::string_view sql, Bind bind)
{
    STAGEWRIGHT_TRY(auto statement, database.cached(sql));
    bind(*statement);
    return database.run(*statement);
}

// Its text, a zero and the shape of the launch.
std::string labelKey(const Timeline& timeline, const Span& span)
{
    std::string key(timeline.labelOf(span));
    key.append(1, '\0').append(timeline.shapeOf(span));
    return key;
}

// What no reader would take is not written.
Result<void> timesFit(const Timeline& timeline)
{
    const auto far = [](std::string_view what, Nanos time) {
        return fail(
            ErrorCode::Invalid,
            fmt::format("{} at {} ns is more than 36 years from the run's start: no run holds such times", what, time),
            "leave it out, or bring times that are closer together");
    };
    for (const Span& span : timeline.spans())
        if (!isStorableTime(span.start) || !isStorableTime(span.end) || !isStorableTime(span.duration()))
            return far(timeline.nameOf(span), isStorableTime(span.start) ? span.end : span.start);
    for (const MemoryEvent& event : timeline.memory())
        if (!isStorableTime(event.time)) return far("a memory event", event.time);
    for (const Edge& edge : timeline.edges())
        if (!isStorableTime(edge.arrival)) return far("an arrival", edge.arrival);
    for (const Counter& counter : timeline.counters())
        for (const CounterSample& sample : counter.samples)
            if (!isStorableTime(sample.time)) return far("a sample of " + counter.name, sample.time);
    return {};
}

} // namespace

Result<std::int64_t> RunRows::insertHeader(Database& database, const Run& run, RunState state)
{
    STAGEWRIGHT_CHECK(runNumbersAreLeft(database));
    const RunInfo& info = run.info;
    const Timeline* timeline = run.timeline.get();
    const Schedule* schedule = run.schedule ? run.schedule.get() : nullptr;
    const auto orElse = [](int given, int derived) { return std::int64_t{given > 0 ? given : derived}; };
    const std::string scheduleText = schedule ? writeScheduleText(*schedule) : std::string();
    const std::string costs = run.costs ? writeCostsJson(*run.costs) : std::string();
    const Provenance provenance = timeline ? timeline->provenance() : info.provenance;
    const std::string clock = timeline ? timeline->clock() : info.clock;
    const int ranks =
        timeline ? timeline->ranks() : static_cast<int>(orElse(info.ranks, schedule ? schedule->ranks : 0));
    const std::string scheduleName =
        info.scheduleName.empty() && schedule != nullptr ? schedule->name : info.scheduleName;
    const std::string name = info.name.empty() ? scheduleName : info.name;
    STAGEWRIGHT_CHECK(write(
        database,
        "INSERT INTO main.run(name, schedule_name, note, created_unix_ms, state, provenance, clock, ranks, stages, "
        "microbatches, steps, warmup_steps, span_count, time_unit, memory_unit, schedule, costs) "
        "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,0,?,?,?,?)",
        [&](Statement& s) {
            s.bind(name).bind(scheduleName).bind(info.note).bind(info.createdUnixMs);
            s.bind(toText(state)).bind(toText(provenance)).bind(clock).bind(std::int64_t{ranks});
            s.bind(orElse(info.stages, schedule ? schedule->stages : 0));
            s.bind(orElse(info.microbatches, schedule ? schedule->microbatches : 0));
            s.bind(std::int64_t{timeline ? timeline->steps() : 0}).bind(std::int64_t{info.warmupSteps});
            s.bind(timeline ? timeline->timeUnit() : Nanos{run.costs ? run.costs->timeUnit : 1});
            s.bind(timeline ? timeline->memoryUnit() : Bytes{run.costs ? run.costs->memoryUnit : 1});
            schedule ? s.bind(scheduleText) : s.bindNull();
            run.costs ? s.bind(costs) : s.bindNull();
        }));
    const std::int64_t id = database.lastId();
    for (const auto& [section, pairs] :
         {std::pair("configuration", &run.configuration), {"environment", &run.environment}}) {
        std::int64_t ordinal = 0;
        for (const auto& [key, value] : *pairs) {
            STAGEWRIGHT_CHECK(write(database, "INSERT INTO main.run_text VALUES(?,?,?,?,?)",
                                    [&, section = std::string_view(section), &key = key, &value = value](Statement& s) {
                                        s.bind(id).bind(section).bind(ordinal++).bind(key).bind(value);
                                    }));
        }
    }
    return id;
}

Result<void> RunRows::declareMetrics(const std::vector<Metric>& metrics)
{
    for (const Metric& metric : metrics) {
        if (m_known.metrics.contains(metric.name)) continue;
        const auto number = static_cast<std::int64_t>(m_known.metrics.size());
        auto done = write(m_database, "INSERT INTO main.metric VALUES(?,?,?,?)",
                          [&](Statement& s) { s.bind(m_run).bind(number).bind(metric.name).bind(metric.unit); });
        if (!done) return done;
        m_known.metrics.emplace(metric.name, number);
    }
    return {};
}

Result<void> RunRows::addMetric(const std::string& name, const std::string& unit, std::int64_t step, double value)
{
    if (auto declared = declareMetrics({{name, unit, {}}}); !declared) return declared;
    return write(m_database, "INSERT INTO main.metric_value VALUES(?,?,?,?)",
                 [&](Statement& s) { s.bind(m_run).bind(m_known.metrics[name]).bind(step).bind(value); });
}

Result<void> RunRows::setCosts(const CostModel& costs)
{
    const std::string text = writeCostsJson(costs);
    return write(m_database, "UPDATE main.run SET costs=? WHERE id=?", [&](Statement& s) { s.bind(text).bind(m_run); });
}

Result<void> RunRows::setSchedule(const Schedule& schedule)
{
    const std::string text = writeScheduleText(schedule);
    return write(m_database, "UPDATE main.run SET schedule=?, realised='' WHERE id=?",
                 [&](Statement& s) { s.bind(text).bind(m_run); });
}

Result<void> RunRows::setState(RunState state)
{
    return write(m_database, "UPDATE main.run SET state=? WHERE id=?",
                 [&](Statement& s) { s.bind(toText(state)).bind(m_run); });
}

Result<std::int64_t> RunRows::trackNumber(const Track& track)
{
    const auto key = std::tuple(track.rank, track.lane, track.name);
    if (const auto known = m_known.tracks.find(key); known != m_known.tracks.end()) return known->second;
    const auto number = static_cast<std::int64_t>(m_known.tracks.size());
    STAGEWRIGHT_CHECK(write(m_database, "INSERT INTO main.track VALUES(?,?,?,?,?)", [&](Statement& s) {
        s.bind(m_run).bind(number).bind(std::int64_t{track.rank}).bind(toText(track.lane)).bind(track.name);
    }));
    m_known.tracks.emplace(key, number);
    return number;
}

// The number of the label with this labelKey(); one that is new is stored.
Result<std::int64_t> RunRows::labelNumber(std::string_view label)
{
    if (const auto known = m_labelNumbers.find(label); known != m_labelNumbers.end()) return known->second;
    const std::int64_t number = m_known.labels + 1;
    const std::size_t end = label.rfind('\0');
    const std::string_view shape = label.substr(end + 1);
    auto done = write(m_database, "INSERT INTO main.label VALUES(?,?,?)",
                      [&](Statement& s) { s.bind(m_run).bind(number).bind(label.substr(0, end)); });
    if (done && !shape.empty())
        done = write(m_database, "INSERT INTO main.label_shape VALUES(?,?,?)",
                     [&](Statement& s) { s.bind(m_run).bind(number).bind(shape); });
    if (!done) return tl::unexpected(done.error());
    m_labelNumbers.emplace(std::string(label), number);
    m_known.labels = number;
    return number;
}

void RunRows::rollBack()
{
    m_known = m_committed;
    std::erase_if(m_labelNumbers, [this](const auto& label) { return label.second > m_known.labels; });
}

// In the timeline's own order, so that a run read back numbers its labels alike.
Result<void> RunRows::numberLabels(const Timeline& timeline)
{
    std::vector<const Span*> first; // with each label
    for (const Span& span : timeline.spans()) {
        if (span.label == 0) continue;
        if (span.label >= first.size()) first.resize(span.label + std::size_t{1}, nullptr);
        if (first[span.label] == nullptr) first[span.label] = &span;
    }
    m_labels.assign(first.size(), 0);
    m_labelNumbers.reserve(first.size());
    for (std::size_t label = 0; label < first.size(); ++label) {
        if (first[label] == nullptr) continue;
        STAGEWRIGHT_TRY(const auto number, labelNumber(labelKey(timeline, *first[label])));
        m_labels[label] = static_cast<std::uint32_t>(number) & 0xffffffu;
    }
    return {};
}

Result<void> RunRows::addSegment(const Timeline& timeline, const Progress& progress)
{
    if (auto fit = timesFit(timeline); !fit) return fit;
    if (auto done = numberLabels(timeline); !done) return done;
    for (const Track& track : timeline.tracks())
        if (auto done = addSpans(timeline, track, progress); !done) return done;
    if (auto done = addMemory(timeline, progress); !done) return done;
    if (auto done = addEdges(timeline, progress); !done) return done;
    if (auto done = addCounters(timeline); !done) return done;
    const auto spans = static_cast<std::int64_t>(timeline.spans().size());
    auto done = write(m_database, "INSERT INTO main.segment VALUES(?,?,?,?)",
                      [&](Statement& s) { s.bind(m_run).bind(m_known.segments).bind(m_known.spans).bind(spans); });
    if (!done) return done;
    if (auto updated = updateRun(timeline); !updated) return updated;
    ++m_known.segments;
    return {};
}

Result<void> RunRows::updateRun(const Timeline& timeline)
{
    if (!timeline.empty()) {
        const bool first = m_known.spans == 0;
        m_known.begin = first ? timeline.begin() : std::min(m_known.begin, timeline.begin());
        m_known.end = first ? timeline.end() : std::max(m_known.end, timeline.end());
    }
    m_known.spans += static_cast<std::int64_t>(timeline.spans().size());
    m_known.steps = std::max(m_known.steps, std::int64_t{timeline.steps()});
    if (!m_known.hasUnits) { // unknown when the header was written
        m_known.hasUnits = true;
        auto done = write(m_database,
                          "UPDATE main.run SET provenance=?, clock=?, ranks=?, time_unit=?, memory_unit=? WHERE id=?",
                          [&](Statement& s) {
                              s.bind(toText(timeline.provenance())).bind(timeline.clock());
                              s.bind(std::int64_t{timeline.ranks()});
                              s.bind(timeline.timeUnit()).bind(timeline.memoryUnit()).bind(m_run);
                          });
        if (!done) return done;
        if (const auto& realised = timeline.schedule()) { // '' says: the run's own schedule
            const std::string text = writeScheduleText(*realised);
            done = write(m_database, "UPDATE main.run SET realised=iif(schedule IS ?1, '', ?1) WHERE id=?2",
                         [&](Statement& s) { s.bind(text).bind(m_run); });
            if (!done) return done;
        }
    }
    return write(m_database, "UPDATE main.run SET span_count=?, steps=?, begin_ns=?, end_ns=? WHERE id=?",
                 [&](Statement& s) {
                     s.bind(m_known.spans).bind(m_known.steps);
                     m_known.spans > 0 ? s.bind(m_known.begin) : s.bindNull();
                     m_known.spans > 0 ? s.bind(m_known.end) : s.bindNull();
                     s.bind(m_run);
                 });
}

Result<void> RunRows::addSpans(const Timeline& timeline, const Track& track, const Progress& progress)
{
    STAGEWRIGHT_TRY(const auto number, trackNumber(track));
    const auto spans = timeline.spansOf(track);
    for (std::size_t at = 0; at < spans.size();) { // blocks end where the step changes
        std::size_t end = at + 1;
        while (end < spans.size() && end - at < blockRows && spans[end].step == spans[at].step) ++end;
        const auto block = spans.subspan(at, end - at);
        m_cpu.clear();
        const auto first = static_cast<SpanId>(track.begin + at);
        if (timeline.hasCpuTime())
            for (std::size_t i = 0; i < block.size(); ++i)
                m_cpu.push_back(timeline.cpuTime(first + static_cast<SpanId>(i)));
        const bool labelled = std::any_of(block.begin(), block.end(), [](const Span& s) { return s.label != 0; });
        if (labelled) { // labels are numbered within the run
            m_scratch.assign(block.begin(), block.end());
            for (Span& span : m_scratch)
                if (span.label != 0) span.label = m_labels[span.label];
        }
        const auto stored = labelled ? std::span<const Span>(m_scratch) : block;
        if (auto done = addSpanBlock(number, first, stored, m_cpu); !done) return done;
        at = end;
        progress.tell("storing spans", static_cast<std::int64_t>(track.begin + at),
                      static_cast<std::int64_t>(timeline.spans().size()));
        if (progress.cancelled()) return storingCancelled();
    }
    return addPyramid(number, spans);
}

Result<void> RunRows::addSpanBlock(std::int64_t track, SpanId first, std::span<const Span> spans,
                                   std::span<const Nanos> cpu)
{
    Nanos end = spans.front().end;
    for (const Span& span : spans) end = std::max(end, span.end);
    const auto data = encodeSpans(m_encoder, spans, cpu);
    return write(m_database, "INSERT INTO main.span_block VALUES(?,?,?,?,?,?,?,?,?)", [&](Statement& s) {
        s.bind(m_run).bind(m_known.segments).bind(track).bind(std::int64_t{first});
        s.bind(std::int64_t{spans.front().step}).bind(static_cast<std::int64_t>(spans.size()));
        s.bind(spans.front().start).bind(end).bind(data);
    });
}

Result<void> RunRows::addPyramid(std::int64_t track, std::span<const Span> spans)
{
    for (const PyramidLevel& level : buildPyramid(spans)) {
        const std::span<const Bucket> buckets(level.buckets);
        for (std::size_t at = 0; at < buckets.size(); at += blockRows) {
            const auto part = buckets.subspan(at, std::min(blockRows, buckets.size() - at));
            const auto data = encodeBuckets(m_encoder, part);
            auto done = write(m_database, "INSERT INTO main.pyramid VALUES(?,?,?,?,?,?,?)", [&](Statement& s) {
                s.bind(m_run).bind(m_known.segments).bind(track).bind(std::int64_t{level.level});
                s.bind(static_cast<std::int64_t>(at / blockRows))
                    .bind(static_cast<std::int64_t>(part.size()))
                    .bind(data);
            });
            if (!done) return done;
        }
    }
    return {};
}

// The memory in use at the start of the segment, so that a later step can be read without earlier ones.
Result<void> RunRows::addMemoryBase()
{
    std::vector<MemoryEvent> events;
    for (const auto& [key, event] : m_known.inUse)
        if (event.delta != 0) events.push_back(event);
    const std::span<const MemoryEvent> all(events);
    std::size_t at = 0;
    do { // also where nothing is in use: the row says so
        const auto part = all.subspan(at, std::min(blockRows, all.size() - at));
        const auto data = encodeMemoryBase(m_encoder, part);
        auto done = write(m_database, "INSERT INTO main.memory_base VALUES(?,?,?,?,?)", [&](Statement& s) {
            s.bind(m_run).bind(m_known.segments).bind(static_cast<std::int64_t>(at / blockRows));
            s.bind(static_cast<std::int64_t>(part.size())).bind(data);
        });
        if (!done) return done;
        at += blockRows;
    } while (at < all.size());
    return {};
}

Result<void> RunRows::addMemory(const Timeline& timeline, const Progress& progress)
{
    if (auto done = addMemoryBase(); !done) return done;
    for (const MemoryEvent& event : timeline.memory()) {
        MemoryEvent& sum = m_known.inUse[{event.rank, event.stage, event.category}];
        const Bytes inUse = sum.delta + event.delta;
        sum = event;
        sum.delta = inUse;
        sum.microbatch = -1;
    }
    for (int rank = 0; rank < timeline.ranks() && timeline.hasMemory(); ++rank) {
        const auto events = timeline.memoryOf(rank);
        for (std::size_t at = 0; at < events.size(); at += blockRows) {
            if (progress.cancelled()) return storingCancelled();
            const auto part = events.subspan(at, std::min(blockRows, events.size() - at));
            const auto data = encodeMemory(m_encoder, part);
            auto done = write(m_database, "INSERT INTO main.memory_block VALUES(?,?,?,?,?,?)", [&](Statement& s) {
                s.bind(m_run)
                    .bind(m_known.segments)
                    .bind(std::int64_t{rank})
                    .bind(static_cast<std::int64_t>(at / blockRows));
                s.bind(static_cast<std::int64_t>(part.size())).bind(data);
            });
            if (!done) return done;
        }
    }
    return {};
}

Result<void> RunRows::addEdges(const Timeline& timeline, const Progress& progress)
{
    const auto edges = timeline.edges();
    for (std::size_t at = 0; at < edges.size(); at += blockRows) {
        if (progress.cancelled()) return storingCancelled();
        const auto part = edges.subspan(at, std::min(blockRows, edges.size() - at));
        const auto data = encodeEdges(m_encoder, part);
        auto done = write(m_database, "INSERT INTO main.edge_block VALUES(?,?,?,?,?)", [&](Statement& s) {
            s.bind(m_run).bind(m_known.segments).bind(static_cast<std::int64_t>(at / blockRows));
            s.bind(static_cast<std::int64_t>(part.size())).bind(data);
        });
        if (!done) return done;
    }
    return {};
}

Result<void> RunRows::addCounters(const Timeline& timeline)
{
    for (const Counter& counter : timeline.counters()) {
        const auto key = std::tuple(counter.rank, counter.name, counter.unit);
        auto known = m_known.counters.find(key);
        if (known == m_known.counters.end()) {
            const auto number = static_cast<std::int64_t>(m_known.counters.size());
            auto done = write(m_database, "INSERT INTO main.counter VALUES(?,?,?,?,?)", [&](Statement& s) {
                s.bind(m_run).bind(number).bind(std::int64_t{counter.rank}).bind(counter.name).bind(counter.unit);
            });
            if (!done) return done;
            known = m_known.counters.emplace(key, number).first;
        }
        const std::span<const CounterSample> samples(counter.samples);
        for (std::size_t at = 0; at < samples.size(); at += blockRows) {
            const auto part = samples.subspan(at, std::min(blockRows, samples.size() - at));
            const auto data = encodeSamples(m_encoder, part);
            auto done = write(m_database, "INSERT INTO main.counter_block VALUES(?,?,?,?,?,?)", [&](Statement& s) {
                s.bind(m_run)
                    .bind(m_known.segments)
                    .bind(known->second)
                    .bind(static_cast<std::int64_t>(at / blockRows));
                s.bind(static_cast<std::int64_t>(part.size())).bind(data);
            });
            if (!done) return done;
        }
    }
    return {};
}

} // namespace stagewright
