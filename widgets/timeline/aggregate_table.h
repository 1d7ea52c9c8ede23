// What happened in the selected areas, one row per kind of op, stage, microbatch or rank: count, total, mean, shortest,
// longest and share, every op trimmed to the range. Of runs without ops their kernels and copies, by class, name or rank.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QString>

#include "widgets/timeline/timeline_panel.h"
#include "widgets/timeline/view_state.h"

namespace stagewright {

enum class AggregateBy {
    Kind,
    Stage,
    Microbatch,
    Rank,
    StageAndKind,
    RankAndKind,
    Name, // of kernels and copies; ops: as Kind
};

struct AggregateLine {
    enum class What {
        Ops,
        Transfers,
        Idle,
    }; // transfers run beside the ops: their share is extra
    QString name;
    What what = What::Ops;
    std::optional<OpKind> kind;    // if it is all of one kind
    std::optional<KernelClass> of; // … or of one class
    int panel = 0;                 // A, B …
    std::int64_t count = 0;        // for idle time: gaps
    Nanos total = 0;
    Nanos least = 0;
    Nanos most = 0;
    double share = 0; // of ranks × range
    Nanos mean() const { return count > 0 ? total / count : 0; }
};

struct AggregateTable {
    std::vector<AggregateLine> lines; // ops by kind, stage, microbatch, rank; then transfers, then idle time
    TimeRange range;                  // axis time; union over the areas
    int ranks = 0;                    // (panel, rank) pairs
    Nanos rankTime = 0;               // ranks × range, each cut to its panel: the basis of shares
    std::int64_t ops = 0;
    std::int64_t kernels = 0; // and copies, of runs without ops
};

// plan: the places of ranks; null: in numerical order. A rank in two areas counts in both. O(slices in the range × log lines).
AggregateTable aggregateTable(const std::vector<std::shared_ptr<const TimelinePanel>>& panels, const std::vector<AreaSelection>& areas,
                              const RowPlan* plan, AggregateBy by);
// The number of slices it would read. O(ranks × log slices).
std::int64_t slicesIn(const std::vector<std::shared_ptr<const TimelinePanel>>& panels, const std::vector<AreaSelection>& areas);

} // namespace stagewright
