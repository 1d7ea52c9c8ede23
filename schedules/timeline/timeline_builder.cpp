// Sorting is by counting where it can be: tracks, ranks and edge ends are small numbers. Spans that arrive track by
// track in order of time are not moved at all.
#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "schedules/base/release_items.h"
#include "schedules/base/step_number.h"
#include "schedules/timeline/timeline.h"

namespace stagewright {

namespace {

// Its memory, too, which assigning {} keeps.
template <typename List>
void giveBack(List& list)
{
    List().swap(list);
}

// A list that is copied from its start on frees this many items at a time.
constexpr std::size_t releasedAtOnce = 1 << 16;

} // namespace

struct TimelineBuilder::Pending {
    Timeline timeline;
    std::map<std::tuple<int, Lane, std::string>, int> trackNumbers;
    std::vector<Track> tracks;
    std::vector<Span> spans;
    std::vector<std::uint32_t> trackOf; // by span
    std::vector<Nanos> cpuTime;         // by span; empty until one is known
    std::vector<Edge> edges;            // of provisional ids
    std::vector<MemoryEvent> memory;
    std::vector<Counter> counters;
    std::map<std::tuple<int, std::string, std::string>, int> counterNumbers; // by rank, name and unit
    std::vector<std::string> labels{std::string()};
    std::vector<std::string> shapes;                             // by label, up to the last that has one
    std::unordered_map<std::string, std::uint32_t> labelNumbers; // by label, a zero and the shape
    std::vector<SpanId> newIds;                                  // final id by provisional id; empty: the same

    Result<void> check() const;
    void arrange();
    Result<void> checkOverlaps() const;
    void deriveSteps();
    Result<void> arrangeEdges();
    Result<void> arrangeMemory();
};

TimelineBuilder::TimelineBuilder(Provenance provenance, std::string clock, int ranks)
    : m_pending(std::make_shared<Pending>())
{
    m_pending->timeline.m_provenance = provenance;
    m_pending->timeline.m_clock = std::move(clock);
    m_pending->timeline.m_ranks = ranks;
}

int TimelineBuilder::addTrack(int rank, Lane lane, std::string name)
{
    if (name.empty()) {
        name = fmt::format("rank {}", rank);
        if (lane != Lane::Compute) name += fmt::format(" {}", toText(lane));
    }
    auto& pending = *m_pending;
    const auto [entry, added] =
        pending.trackNumbers.try_emplace({rank, lane, name}, static_cast<int>(pending.tracks.size()));
    if (added) pending.tracks.push_back(Track{rank, lane, std::move(name), 0, 0});
    return entry->second;
}

SpanId TimelineBuilder::addSpan(int track, const Span& span, Nanos cpuTime)
{
    auto& pending = *m_pending;
    const auto id = static_cast<SpanId>(pending.spans.size());
    pending.spans.push_back(span);
    pending.trackOf.push_back(static_cast<std::uint32_t>(track));
    if (cpuTime >= 0 && pending.cpuTime.empty()) pending.cpuTime.assign(id, -1);
    if (cpuTime >= 0 || !pending.cpuTime.empty()) pending.cpuTime.push_back(cpuTime);
    return id;
}

std::uint32_t TimelineBuilder::intern(std::string_view label) { return intern(label, {}); }

std::uint32_t TimelineBuilder::intern(std::string_view label, std::string_view shape)
{
    if (label.empty()) return 0;
    auto& pending = *m_pending;
    std::string key(label);
    key.append(1, '\0').append(shape);
    const auto [entry, added] =
        pending.labelNumbers.try_emplace(std::move(key), static_cast<std::uint32_t>(pending.labels.size()));
    if (added) pending.labels.emplace_back(label);
    if (added && !shape.empty()) {
        pending.shapes.resize(pending.labels.size());
        pending.shapes.back() = shape;
    }
    return entry->second;
}

void TimelineBuilder::addEdge(SpanId from, SpanId to, EdgeKind kind, Nanos arrival)
{
    Edge& edge = m_pending->edges.emplace_back();
    edge.from = from;
    edge.to = to & mostSpans; // build() refuses a span that is not there
    edge.kind = kind;
    edge.arrival = arrival;
}

void TimelineBuilder::addMemory(const MemoryEvent& event) { m_pending->memory.push_back(event); }

int TimelineBuilder::addCounter(int rank, std::string name, std::string unit)
{
    auto& counters = m_pending->counters;
    const auto [known, added] =
        m_pending->counterNumbers.try_emplace({rank, name, unit}, static_cast<int>(counters.size()));
    if (added) counters.push_back({rank, std::move(name), std::move(unit), {}});
    return known->second;
}

void TimelineBuilder::addSample(int counter, Nanos time, double value)
{
    m_pending->counters[static_cast<std::size_t>(counter)].samples.push_back({time, value});
}

void TimelineBuilder::setUnits(Nanos timeUnit, Bytes memoryUnit)
{
    m_pending->timeline.m_timeUnit = timeUnit;
    m_pending->timeline.m_memoryUnit = memoryUnit;
}

void TimelineBuilder::setSchedule(std::shared_ptr<const Schedule> schedule, std::vector<double> sizes)
{
    const bool each = schedule && sizes.size() == static_cast<std::size_t>(schedule->replicas);
    m_pending->timeline.m_sizes = each ? std::move(sizes) : std::vector<double>();
    m_pending->timeline.m_schedule = std::move(schedule);
}

void TimelineBuilder::setMissingRanks(std::string why) { m_pending->timeline.m_missingRanks = std::move(why); }

void TimelineBuilder::append(const Timeline& other)
{
    auto& pending = *m_pending;
    if (pending.timeline.m_missingRanks.empty()) pending.timeline.m_missingRanks = other.m_missingRanks;
    const auto base = static_cast<SpanId>(pending.spans.size());
    std::vector<std::uint32_t> labels;
    for (std::size_t i = 0; i < other.m_labels.size(); ++i)
        labels.push_back(intern(other.m_labels[i],
                                i < other.m_shapes.size() ? std::string_view(other.m_shapes[i]) : std::string_view()));
    const bool relabel = labels.size() > 1;
    pending.spans.reserve(std::max(pending.spans.capacity(), pending.spans.size() + other.m_spans.size()));
    for (const Track& track : other.m_tracks) {
        const auto number = static_cast<std::uint32_t>(addTrack(track.rank, track.lane, track.name));
        const auto spans = other.spansOf(track);
        pending.spans.insert(pending.spans.end(), spans.begin(), spans.end());
        pending.trackOf.insert(pending.trackOf.end(), spans.size(), number);
    }
    if (relabel)
        for (std::size_t i = base; i < pending.spans.size(); ++i)
            pending.spans[i].label = labels[pending.spans[i].label] & 0xffffffu;
    if (other.hasCpuTime() || !pending.cpuTime.empty()) {
        pending.cpuTime.resize(base, -1);
        pending.cpuTime.insert(pending.cpuTime.end(), other.m_cpuTime.begin(), other.m_cpuTime.end());
        pending.cpuTime.resize(pending.spans.size(), -1);
    }
    for (Edge edge : other.m_edges) {
        edge.from += base;
        edge.to = (edge.to + base) & mostSpans;
        pending.edges.push_back(edge);
    }
    pending.memory.insert(pending.memory.end(), other.m_memory.begin(), other.m_memory.end());
    for (const Counter& counter : other.m_counters) {
        auto& samples =
            pending.counters[static_cast<std::size_t>(addCounter(counter.rank, counter.name, counter.unit))].samples;
        samples.insert(samples.end(), counter.samples.begin(), counter.samples.end());
    }
}

void TimelineBuilder::reserve(std::size_t spans)
{
    m_pending->spans.reserve(spans);
    m_pending->trackOf.reserve(spans);
    m_pending->edges.reserve(spans); // about as many; room that is not used takes no memory
}

Result<void> TimelineBuilder::Pending::check() const
{
    const int ranks = timeline.m_ranks;
    if (ranks < 0) return fail(ErrorCode::Invalid, fmt::format("timeline: {} ranks", ranks));
    if (spans.size() >= mostSpans)
        return fail(ErrorCode::Invalid, fmt::format("timeline: {} spans are too many", spans.size()));
    if (labels.size() > 0xffffffu)
        return fail(ErrorCode::Invalid, fmt::format("timeline: {} labels are too many", labels.size()));
    for (const Track& track : tracks)
        if (track.rank < 0 || track.rank >= ranks)
            return fail(ErrorCode::Invalid, fmt::format("timeline: track '{}' of rank {}, but ranks are 0 to {}",
                                                        track.name, track.rank, ranks - 1));
    for (std::size_t i = 0; i < spans.size(); ++i) {
        const Span& span = spans[i];
        if (trackOf[i] >= tracks.size())
            return fail(ErrorCode::Invalid,
                        fmt::format("timeline: a span on track {} of {}", trackOf[i], tracks.size()));
        if (span.end < span.start || span.step < outsideSteps || span.label >= labels.size())
            return fail(ErrorCode::Invalid, fmt::format("timeline: '{}', span {} ({}) goes from {} to {} ns in step {}",
                                                        tracks[trackOf[i]].name, i, toText(span.op), span.start,
                                                        span.end, stepNumber(span.step)));
    }
    return {};
}

// Final order of tracks and spans: by counting per track, then by (start, end) within it where it isn't in order
// already.
void TimelineBuilder::Pending::arrange()
{
    std::vector<std::uint32_t> byOrder(tracks.size());
    std::iota(byOrder.begin(), byOrder.end(), 0u);
    std::sort(byOrder.begin(), byOrder.end(), [this](std::uint32_t a, std::uint32_t b) {
        return std::tie(tracks[a].rank, tracks[a].lane, tracks[a].name) <
               std::tie(tracks[b].rank, tracks[b].lane, tracks[b].name);
    });
    std::vector<SpanId> counts(tracks.size(), 0);
    for (std::uint32_t track : trackOf) ++counts[track];
    std::vector<SpanId> next(tracks.size(), 0); // where the next span of a track goes
    SpanId begin = 0;
    auto& out = timeline.m_tracks;
    for (std::uint32_t track : byOrder) {
        next[track] = begin;
        out.push_back(std::move(tracks[track]));
        out.back().begin = begin;
        begin += counts[track];
        out.back().end = begin;
    }
    bool inPlace = true;
    for (std::size_t i = 0; i < spans.size() && inPlace; ++i) inPlace = next[trackOf[i]]++ == i;
    if (inPlace) {
        timeline.m_spans = std::move(spans);
        timeline.m_cpuTime = std::move(cpuTime);
    } else {
        SpanId at = 0;
        for (std::uint32_t track : byOrder) {
            next[track] = at;
            at += counts[track];
        }
        newIds.resize(spans.size());
        timeline.m_spans.resize(spans.size());
        if (!cpuTime.empty()) timeline.m_cpuTime.resize(spans.size());
        for (std::size_t i = 0; i < spans.size(); ++i) {
            const SpanId to = next[trackOf[i]]++;
            newIds[i] = to;
            timeline.m_spans[to] = spans[i];
            if (!cpuTime.empty()) timeline.m_cpuTime[to] = cpuTime[i];
            if ((i + 1) % releasedAtOnce == 0) releaseItems(spans, i + 1 - releasedAtOnce, i + 1);
        }
        giveBack(spans);
        giveBack(cpuTime);
    }
    giveBack(trackOf);

    auto earlier = [](const Span& a, const Span& b) { return std::tie(a.start, a.end) < std::tie(b.start, b.end); };
    std::vector<SpanId> moved; // final id by id before sorting; only made where a track is out of order
    for (const Track& track : timeline.m_tracks) {
        auto* first = timeline.m_spans.data() + track.begin;
        auto* last = timeline.m_spans.data() + track.end;
        if (std::is_sorted(first, last, earlier)) continue;
        if (moved.empty()) {
            moved.resize(timeline.m_spans.size());
            std::iota(moved.begin(), moved.end(), SpanId{0});
        }
        std::vector<SpanId> ids(track.end - track.begin);
        std::iota(ids.begin(), ids.end(), track.begin);
        std::stable_sort(ids.begin(), ids.end(),
                         [&](SpanId a, SpanId b) { return earlier(timeline.m_spans[a], timeline.m_spans[b]); });
        std::vector<Span> sorted;
        std::vector<Nanos> cpu;
        sorted.reserve(ids.size());
        for (std::size_t i = 0; i < ids.size(); ++i) {
            sorted.push_back(timeline.m_spans[ids[i]]);
            if (!timeline.m_cpuTime.empty()) cpu.push_back(timeline.m_cpuTime[ids[i]]);
            moved[ids[i]] = track.begin + static_cast<SpanId>(i);
        }
        std::copy(sorted.begin(), sorted.end(), first);
        if (!cpu.empty()) std::copy(cpu.begin(), cpu.end(), timeline.m_cpuTime.begin() + track.begin);
    }
    if (moved.empty()) return;
    if (newIds.empty())
        newIds = std::move(moved);
    else
        for (SpanId& id : newIds) id = moved[id];
}

Result<void> TimelineBuilder::Pending::checkOverlaps() const
{
    for (const Track& track : timeline.m_tracks) {
        if (track.lane != Lane::Compute) continue;
        const auto of = timeline.spansOf(track);
        for (std::size_t i = 1; i < of.size(); ++i) {
            const Span& before = of[i - 1];
            const Span& span = of[i];
            const bool pair = before.start == span.start && before.end == span.end; // issued together
            if (span.start >= before.end || pair) continue;
            return fail(ErrorCode::Invalid,
                        fmt::format("timeline: '{}': {} from {} to {} ns overlaps {} from {} to {} ns", track.name,
                                    toText(span.op), span.start, span.end, toText(before.op), before.start, before.end),
                        "ops that overlap belong on a communication lane or are issued as a pair of one interval");
        }
    }
    return {};
}

void TimelineBuilder::Pending::deriveSteps()
{
    // by (step, rank): of work, and of named ranges, which count where there is no work
    std::map<std::pair<int, int>, StepMark> marks, ranges;
    bool first = true;
    for (std::size_t t = 0; t < timeline.m_tracks.size(); ++t) {
        const Track& track = timeline.m_tracks[t];
        std::map<int, Timeline::StepRange> found;
        Timeline::StepRange* range = nullptr;
        StepMark* mark = nullptr;
        for (SpanId id = track.begin; id < track.end; ++id) {
            const Span& span = timeline.m_spans[id];
            if (range == nullptr || range->step != span.step) {
                range =
                    &found.try_emplace(span.step, Timeline::StepRange{static_cast<std::uint32_t>(t), span.step, id, id})
                         .first->second;
                mark = &(track.lane == Lane::Other ? ranges : marks)
                            .try_emplace({span.step, track.rank}, StepMark{track.rank, span.step, span.start, span.end})
                            .first->second;
                timeline.m_steps = std::max(timeline.m_steps, span.step + 1);
            }
            range->last = id + 1;
            mark->begin = std::min(mark->begin, span.start);
            mark->end = std::max(mark->end, span.end);
        }
        for (const auto& [step, range] : found) timeline.m_stepRanges.push_back(range);
    }
    for (const auto* part : {&marks, &ranges})
        for (const auto& [key, mark] : *part) {
            timeline.m_begin = first ? mark.begin : std::min(timeline.m_begin, mark.begin);
            timeline.m_end = first ? mark.end : std::max(timeline.m_end, mark.end);
            first = false;
        }
    marks.merge(ranges);
    for (const auto& [key, mark] : marks)
        if (mark.step != outsideSteps) timeline.m_stepMarks.push_back(mark);
}

Result<void> TimelineBuilder::Pending::arrangeEdges()
{
    const std::size_t spanCount = timeline.m_spans.size();
    for (Edge& edge : edges) {
        if (edge.from >= spanCount || edge.to >= spanCount)
            return fail(ErrorCode::Invalid, fmt::format("timeline: an edge from span {} to {}, but there are {}",
                                                        edge.from, SpanId{edge.to}, spanCount));
        if (!newIds.empty()) {
            edge.from = newIds[edge.from];
            edge.to = newIds[edge.to] & mostSpans;
        }
    }
    auto order = [](const Edge& a, const Edge& b) { return std::tie(a.to, a.from) < std::tie(b.to, b.from); };
    const auto tail = std::is_sorted_until(edges.begin(), edges.end(), order);
    const auto rest = edges.end() - tail;
    if (rest > 0 && (static_cast<std::size_t>(rest) * 8 < edges.size() || std::is_sorted(tail, edges.end(), order))) {
        std::stable_sort(tail, edges.end(), order);
        std::inplace_merge(edges.begin(), tail, edges.end(), order);
    } else if (rest > 0) {
        std::vector<std::uint32_t> offsets(spanCount + 1, 0);
        for (const Edge& edge : edges) ++offsets[edge.to + std::size_t{1}];
        std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
        std::vector<Edge> sorted(edges.size());
        std::vector<std::uint32_t> at(offsets.begin(), offsets.end() - 1);
        for (std::size_t e = 0; e < edges.size(); ++e) {
            sorted[at[edges[e].to]++] = edges[e];
            if ((e + 1) % releasedAtOnce == 0) releaseItems(edges, e + 1 - releasedAtOnce, e + 1);
        }
        for (std::size_t s = 0; s < spanCount; ++s)
            if (offsets[s + 1] - offsets[s] > 1)
                std::stable_sort(sorted.begin() + offsets[s], sorted.begin() + offsets[s + 1], order);
        edges = std::move(sorted);
    }
    timeline.m_edges = std::move(edges);
    if (timeline.m_edges.empty()) return {};
    std::vector<std::uint32_t> at(spanCount + 1, 0);
    for (const Edge& edge : timeline.m_edges) ++at[edge.from + std::size_t{1}];
    std::partial_sum(at.begin(), at.end(), at.begin());
    timeline.m_edgesByFrom.resize(timeline.m_edges.size());
    for (std::size_t e = 0; e < timeline.m_edges.size(); ++e)
        timeline.m_edgesByFrom[at[timeline.m_edges[e].from]++] = static_cast<std::uint32_t>(e);
    return {};
}

Result<void> TimelineBuilder::Pending::arrangeMemory()
{
    const auto ranks = static_cast<std::size_t>(timeline.m_ranks);
    std::vector<std::size_t> offsets(ranks + 1, 0);
    for (const MemoryEvent& event : memory) {
        if (event.rank >= ranks)
            return fail(ErrorCode::Invalid, fmt::format("timeline: a memory event of rank {}, but ranks are 0 to {}",
                                                        event.rank, timeline.m_ranks - 1));
        ++offsets[event.rank + std::size_t{1}];
    }
    std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
    auto byRankAndTime = [](const MemoryEvent& a, const MemoryEvent& b) {
        return std::tie(a.rank, a.time) < std::tie(b.rank, b.time);
    };
    if (!std::is_sorted(memory.begin(), memory.end(), byRankAndTime)) {
        std::vector<MemoryEvent> sorted(memory.size());
        std::vector<std::size_t> at(offsets.begin(), offsets.end() - 1);
        for (std::size_t e = 0; e < memory.size(); ++e) {
            sorted[at[memory[e].rank]++] = memory[e];
            if ((e + 1) % releasedAtOnce == 0) releaseItems(memory, e + 1 - releasedAtOnce, e + 1);
        }
        auto earlier = [](const MemoryEvent& a, const MemoryEvent& b) { return a.time < b.time; };
        for (std::size_t r = 0; r < ranks; ++r) {
            const auto first = sorted.begin() + static_cast<std::ptrdiff_t>(offsets[r]);
            const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(offsets[r + 1]);
            if (!std::is_sorted(first, last, earlier)) std::stable_sort(first, last, earlier);
        }
        memory = std::move(sorted);
    }
    timeline.m_memory = std::move(memory);
    timeline.m_memoryByRank = std::move(offsets);
    return {};
}

Result<std::shared_ptr<const Timeline>> TimelineBuilder::build()
{
    const auto pending = m_pending;
    m_pending = std::make_shared<Pending>();
    m_pending->timeline.m_provenance = pending->timeline.m_provenance;
    m_pending->timeline.m_clock = pending->timeline.m_clock;
    m_pending->timeline.m_ranks = pending->timeline.m_ranks;

    STAGEWRIGHT_CHECK(pending->check());
    pending->arrange();
    STAGEWRIGHT_CHECK(pending->checkOverlaps());
    pending->deriveSteps();
    STAGEWRIGHT_CHECK(pending->arrangeEdges());
    STAGEWRIGHT_CHECK(pending->arrangeMemory());
    Timeline& timeline = pending->timeline;
    timeline.m_counters = std::move(pending->counters);
    for (Counter& counter : timeline.m_counters)
        std::stable_sort(counter.samples.begin(), counter.samples.end(),
                         [](const CounterSample& a, const CounterSample& b) { return a.time < b.time; });
    timeline.m_labels = std::move(pending->labels);
    timeline.m_shapes = std::move(pending->shapes);
    return std::make_shared<const Timeline>(std::move(timeline));
}

} // namespace stagewright
