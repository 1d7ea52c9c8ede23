// Timeline: what happened, whatever the source. Simulator, CPU recorder, CUPTI recorder and importers all build it
// through TimelineBuilder. Nothing downstream may branch on where it came from; provenance is a label, shown, never a
// switch. Immutable after build(); shared between threads as shared_ptr<const Timeline>.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"
#include "schedules/model/lanes.h"
#include "schedules/model/memory_category.h"
#include "schedules/model/schedule.h"

namespace stagewright {

enum class Provenance : std::uint8_t {
    Simulated,
    Measured,
    Composed,
    Imported,
};
std::string_view toText(Provenance provenance);

using SpanId = std::uint32_t; // index into Timeline::spans()
inline constexpr SpanId noSpan = 0xffffffffu;

enum SpanFlag : std::uint8_t {
    SpanDiscarded = 1, // superseded work (rolled back); not part of the schedule it realises
};

struct Span {
    Nanos start = 0;
    Nanos end = 0;
    Op op;                        // what it executed; foreign work keeps a label instead
    std::int32_t step = 0;        // 0-based; outsideSteps (step_number.h): in none, or in one that is not known
    std::uint32_t label : 24 = 0; // index into Timeline::labels(), 0: none, the op's text is its name
    std::uint32_t flags : 8 = 0;

    Nanos duration() const { return end - start; }
};
static_assert(sizeof(Span) == 40);

struct Track {
    int rank = 0;
    Lane lane = Lane::Compute;
    std::string name; // "rank 0", "rank 0 send"
    SpanId begin = 0; // spans of the track: [begin, end), sorted by start, then end
    SpanId end = 0;
};

enum class EdgeKind : std::uint8_t {
    Data,
    Transfer,
    Order,
    Launch,
};
struct Edge {
    SpanId from = noSpan;
    SpanId to : 30 = 0; // with `kind` in 32 bits: traces have an edge for each kernel
    EdgeKind kind : 2 = EdgeKind::Data;
    // Data: when the input was ready for `to` (from's end + transfer); ≤ to's start but for clock error. Launch: of the
    // call, to's start if unknown; from may be to
    Nanos arrival = 0;
    bool operator==(const Edge&) const = default;
};
static_assert(sizeof(Edge) == 16);
inline constexpr SpanId mostSpans = 0x3fffffffu; // of a timeline

// A change of memory in use. Sorted by (rank, time); ties keep the order they were added in.
struct MemoryEvent {
    Nanos time = 0;
    Bytes delta = 0;
    std::int32_t microbatch = -1; // −1: none (weights …)
    std::int32_t step = 0;
    std::uint16_t rank = 0;
    std::uint16_t stage = 0;
    MemoryCategory category = MemoryCategory::Activations;
};

struct CounterSample {
    Nanos time;
    double value;
};
struct Counter {
    int rank = -1; // −1: of the whole run
    std::string name;
    std::string unit;
    std::vector<CounterSample> samples; // sorted by time
};

// Bounds of a step on a rank: from the start of its first to the end of its last span. Named ranges (Lane::Other) count
// where the step has nothing else: a host runs ahead of its device. Work outside steps has no mark.
struct StepMark {
    int rank = 0;
    int step = 0;
    Nanos begin = 0;
    Nanos end = 0;
};

class Timeline {
public:
    Provenance provenance() const { return m_provenance; }
    const std::string& clock() const { return m_clock; } // "model", "wall", "virtual"
    int ranks() const { return m_ranks; }
    int steps() const { return m_steps; } // steps present are 0 … steps−1
    Nanos begin() const { return m_begin; }
    Nanos end() const { return m_end; }
    bool empty() const { return m_spans.empty(); }

    std::span<const Track> tracks() const { return m_tracks; } // sorted by (rank, lane, name)
    std::span<const Span> spans() const { return m_spans; }
    std::span<const Span> spansOf(const Track& track) const
    {
        return std::span<const Span>(m_spans).subspan(track.begin, track.end - track.begin);
    }
    const Track* trackOf(int rank, Lane lane) const; // the first such, nullptr if none
    const Track& trackOf(SpanId span) const;         // O(log tracks)
    // Spans of one step on a track, as [first, last) ids; a track's steps are contiguous unless work crosses steps, and
    // then the range covers every span of the step (filter by Span::step).
    std::pair<SpanId, SpanId> stepRange(const Track& track, int step) const;

    std::span<const Edge> edges() const { return m_edges; } // sorted by (to, from)
    std::span<const Edge> edgesInto(SpanId span) const;
    std::vector<Edge> edgesFrom(SpanId span) const; // O(edges of the span), through an index
    std::span<const MemoryEvent> memory() const { return m_memory; }
    std::span<const MemoryEvent> memoryOf(int rank) const;
    std::span<const Counter> counters() const { return m_counters; }
    std::span<const StepMark> stepMarks() const { return m_stepMarks; } // sorted by (step, rank)

    // Capabilities: analyses ask these, never the provenance.
    bool hasCpuTime() const { return !m_cpuTime.empty(); }
    bool hasMemory() const { return !m_memory.empty(); }
    bool hasEdges() const { return !m_edges.empty(); }
    Nanos cpuTime(SpanId span) const { return m_cpuTime[span]; } // precondition: hasCpuTime(); −1: unknown
    std::string_view labelOf(const Span& span) const { return m_labels[span.label]; }
    // How its work was launched, of a kernel whose trace says so: "grid 12×1×1, block 128×1×1, inputs [[64,512],[512]]"
    // or a part of that; else "".
    std::string_view shapeOf(const Span& span) const
    {
        return span.label < m_shapes.size() ? std::string_view(m_shapes[span.label]) : std::string_view();
    }
    std::string nameOf(const Span& span) const; // label, or the op's text

    // Units for printing: rankShare / activationShare for unit-cost work, else 1.
    Nanos timeUnit() const { return m_timeUnit; }
    Bytes memoryUnit() const { return m_memoryUnit; }

    const std::shared_ptr<const Schedule>& schedule() const { return m_schedule; } // the one it realises, may be null
    // By replica of the schedule: samples of its microbatches against each other's; empty: all alike, or not known.
    std::span<const double> sizes() const { return m_sizes; }
    // "only 1 of the pipeline's 4 ranks is in the run": what its idle time waited for, its bubbles and the critical path
    // of the job are unknown then. "": all are here, or it is not known.
    const std::string& missingRanks() const { return m_missingRanks; }

private:
    friend class TimelineBuilder;
    Provenance m_provenance = Provenance::Simulated;
    std::string m_clock;
    int m_ranks = 0;
    int m_steps = 0;
    Nanos m_begin = 0;
    Nanos m_end = 0;
    Nanos m_timeUnit = 1;
    Bytes m_memoryUnit = 1;
    std::vector<Track> m_tracks;
    std::vector<Span> m_spans;
    std::vector<Nanos> m_cpuTime; // empty or one per span
    std::vector<Edge> m_edges;
    std::vector<std::uint32_t> m_edgesByFrom; // indices into m_edges, sorted by from
    std::vector<MemoryEvent> m_memory;
    std::vector<std::size_t> m_memoryByRank; // offsets, ranks + 1
    std::vector<Counter> m_counters;
    std::vector<StepMark> m_stepMarks;
    struct StepRange {
        std::uint32_t track;
        int step;
        SpanId first;
        SpanId last;
    };
    std::vector<StepRange> m_stepRanges;              // sorted by (track, step)
    std::vector<std::string> m_labels{std::string()}; // a text once for each shape
    std::shared_ptr<const Schedule> m_schedule;
    std::vector<double> m_sizes;
    std::string m_missingRanks;
    std::vector<std::string> m_shapes; // by label, up to the last that has one
};

// Builds a Timeline. Spans may be added in any order; ids returned by addSpan are provisional and serve addEdge only.
class TimelineBuilder {
public:
    TimelineBuilder(Provenance provenance, std::string clock, int ranks);

    // returns the track's number; same (rank, lane, name) is reused
    int addTrack(int rank, Lane lane, std::string name = {});
    SpanId addSpan(int track, const Span& span, Nanos cpuTime = -1);
    std::uint32_t intern(std::string_view label); // for Span::label
    // labels of other shapes have other numbers; "": as without one
    std::uint32_t intern(std::string_view label, std::string_view shape);
    void addEdge(SpanId from, SpanId to, EdgeKind kind, Nanos arrival);
    void addMemory(const MemoryEvent& event);
    int addCounter(int rank, std::string name, std::string unit);
    void addSample(int counter, Nanos time, double value);
    void setUnits(Nanos timeUnit, Bytes memoryUnit);
    void setSchedule(std::shared_ptr<const Schedule> schedule, std::vector<double> sizes = {});
    void setMissingRanks(std::string why);
    // every span, edge, memory event and counter of another timeline (same ranks), times kept
    void append(const Timeline& other);
    void reserve(std::size_t spans);

    // Sorts, indexes, derives step marks. Errors: a span that ends before it starts, a rank outside 0 … ranks−1, spans
    // that overlap on a Compute lane though not paired. The builder is empty afterwards.
    Result<std::shared_ptr<const Timeline>> build();

private:
    struct Pending;
    std::shared_ptr<Pending> m_pending;
};

// Splits overlapping spans of a track into sub-lanes (first fit, by start): the sub-lane of each span of the track.
std::vector<std::uint16_t> sublanes(std::span<const Span> spans);

} // namespace stagewright
