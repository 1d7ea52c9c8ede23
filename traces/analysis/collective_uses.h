// Gathers of weights and reductions of gradients beside compute: how much of each is hidden behind ops, and what is
// exposed. Formulas: docs/numbers.md, "Collectives".
#pragma once

#include <optional>
#include <vector>

#include "schedules/timeline/timeline.h"
#include "traces/analysis/bubbles.h"
#include "traces/run/run.h"

namespace stagewright {

class CostModel;

// One gather or reduction.
struct CollectiveUse {
    SpanId span = noSpan;
    Nanos hidden = 0; // its rank runs an op meanwhile; of a rank without ops: a kernel that computes
    // idle time of its rank, of the cause collective, while it runs: the rank waits for it, or for one behind it
    Nanos awaited = 0;
    // before the first or after the last op of the step, while its rank runs nothing; without ops: the rest
    Nanos outside = 0;

    Nanos exposed() const { return awaited + outside; }
};

// A part of a gather or reduction that its rank waits for, or that lies outside the ops of the step. Timeline time.
struct ExposedPart {
    SpanId span = noSpan;
    Nanos begin = 0;
    Nanos end = 0;
};

struct CollectiveUses {
    std::vector<CollectiveUse> uses;  // by span
    std::vector<ExposedPart> exposed; // by span, then begin

    const CollectiveUse* of(SpanId span) const; // null: not a gather or reduction of the step. O(log uses)
};

// The uses in the report's step; releases of weights take no time and are left out. Empty where nothing is on the lanes
// gather and reduce. O(spans of the step · log).
CollectiveUses collectiveUses(const Timeline& timeline, const BubbleReport& report);

// A rank's collectives in a step, wherever they are: beside compute or on the compute lane.
struct RankCollectives {
    int gathers = 0;
    int reductions = 0;
    // bytes received: counted where the run did, else by the stages' sizes; nothing: these are not known
    std::optional<Bytes> gathered;
    std::optional<Bytes> reduced;
};

// The copies or additions of a recorded collective that came after its last piece: a span of their own beside it.
bool isTakenLater(const Timeline& timeline, const Span& span);

// By rank; empty if the step has neither gather nor reduction. costs: may be null.
std::vector<RankCollectives> rankCollectives(const Timeline& timeline, int step, const Schedule* schedule,
                                             const CostModel* costs);

// What was received in collectives, as counters that start from 0 in every step: as the run counted it, else of a
// simulated step by the stages' sizes. Exports write these, so that an import knows the bytes.
std::vector<Counter> receivedCounters(const Run& run);

} // namespace stagewright
