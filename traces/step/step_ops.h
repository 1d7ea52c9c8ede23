// Shared by the analyses of one step: its window, each rank's work in order, and what each op waited for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

// Something an op needed before it could start.
struct Input {
    SpanId from = noSpan;
    Nanos ready = 0;   // from's end
    Nanos arrival = 0; // when it was there; ready if no transfer is known
};

// The ops of one step over a timeline, which must outlive it.
class StepOps {
public:
    StepOps(const Timeline& timeline, int step);

    const Timeline& timeline() const { return m_timeline; }
    int step() const { return m_step; }
    bool empty() const { return m_empty; } // no busy span: no window
    Nanos windowBegin() const { return m_begin; }
    Nanos windowEnd() const { return m_end; }
    int ranks() const { return static_cast<int>(m_busy.size()); }

    // Busy spans (F, B, I, W, R) of the step on the rank's compute lanes, by start, then end.
    const std::vector<SpanId>& busy(int rank) const { return m_busy[static_cast<std::size_t>(rank)]; }
    // Everything on the rank's compute lanes that touches the window, of any step and kind, by start, then end.
    const std::vector<SpanId>& all(int rank) const { return m_all[static_cast<std::size_t>(rank)]; }

    bool isBusySpan(SpanId id) const; // a busy op of this step
    int rankOf(SpanId id) const;
    SpanId find(const Op& op) const; // the span of the step that executed it (not a discarded one), noSpan if none

    // The backward that directly follows a recomputation on its rank: it is issued with it. noSpan: none.
    SpanId heldFor(SpanId recompute) const;

    // Data edges into the span and, without an edge, the needs of its kind: the producer's end. One entry per producer.
    // Ops issued together (one interval, or paired in the timeline's schedule and run one after the other; a
    // recomputation and its backward) start with the inputs of both: those of the other that were there when the span
    // started also count as its own.
    std::vector<Input> inputs(SpanId id) const;

private:
    friend class StepInputs;
    static constexpr std::size_t wholeKinds = 5; // F, B, I, W, R

    // `edge` is the position to look at first among the timeline's edges, updated to where they were: spans requested
    // in order are found at once.
    void appendInputs(SpanId id, std::vector<Input>& to, std::size_t& edge) const;
    void findPairs();
    void appendOwn(SpanId id, std::vector<Input>& to, std::size_t first, std::size_t& edge) const;
    void indexOps();
    std::size_t cellOf(const Op& op) const; // in m_whole; beyond it if the op is not whole
    void addNeeded(const Op& op, std::vector<Input>& inputs, std::size_t first) const;

    const Timeline& m_timeline;
    int m_step;
    bool m_empty = true;
    int m_stages = 0;
    StageGraph m_graph;
    int m_lastMicrobatch = 0;
    Nanos m_begin = 0;
    Nanos m_end = 0;
    std::vector<std::vector<SpanId>> m_busy;
    std::vector<std::vector<SpanId>> m_all;
    std::vector<SpanId> m_whole;            // by stage, kind and microbatch: ops over one whole microbatch
    std::unordered_map<Op, SpanId> m_parts; // all others
    std::unordered_map<SpanId, SpanId> m_heldFor;
    std::unordered_map<SpanId, SpanId> m_issuedWith;
};

// What every busy span of a step waited for, found once: StepOps::inputs() by rank and position in StepOps::busy().
class StepInputs {
public:
    explicit StepInputs(const StepOps& ops);
    std::span<const Input> of(int rank, std::size_t position) const
    {
        const std::size_t at = m_firstOfRank[static_cast<std::size_t>(rank)] + position;
        return std::span<const Input>(m_inputs).subspan(m_first[at], m_first[at + 1] - m_first[at]);
    }

private:
    std::vector<Input> m_inputs;
    std::vector<std::uint32_t> m_first; // by busy span, rank after rank
    std::vector<std::size_t> m_firstOfRank;
};

// What a busy span took from an op of another rank.
struct Crossing {
    SpanId to = noSpan;
    int fromRank = 0;
    int rank = 0;
    Nanos produced = 0;
    Nanos arrival = 0; // not before
};
// By rank and position in StepOps::busy(). O(spans + edges of the step).
std::vector<Crossing> crossingsOf(const StepOps& ops);

// A run may be read without some of its steps: those from `first` on that have spans, in order.
std::vector<int> stepsFrom(const Timeline& timeline, int first);
// An op that names a microbatch of a busy kind; foreign work with a label alone is not one.
bool isBusyOp(const Op& op);
// Whether a compute lane holds such an op in any step. O(spans) where none does.
bool hasOps(const Timeline& timeline);
std::string_view whyNoOps(const Timeline& timeline); // of one without: a clause, lower case
// Why it is not known when inputs from other ranks arrived: a clause, lower case; "": it is, or there are none. By the
// wall clock no message arrives the moment it is sent: a timeline whose inputs all do says nothing of messages.
// O(edges) where there are no messages.
std::string_view whyNoArrivals(const Timeline& timeline);
inline constexpr std::string_view noArrivalSeen = "the trace does not say when messages between ranks arrived";
inline constexpr std::string_view noOpRecognised =
    "no range of the trace is recognised as an op: name them in rules (import --rules)";
inline constexpr std::string_view noRanges =
    "the trace has no named ranges to recognise ops by: record with record_function or NVTX ranges around the passes";

} // namespace stagewright
