// What happened in the selected areas, one row per kind of op, stage, microbatch or rank: count, total, mean, shortest,
// longest and share, every op trimmed to the range. Of runs without ops their kernels and copies, by class, name or
// rank.
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
    Name, // of kernels and copies, beside ops too; ops: as Kind
};

// How long they took: figures are of the durations themselves, and bars of equal width divide the axis from the shortest
// to the longest.
struct DurationSpread {
    Nanos least = 0;
    Nanos most = 0;
    Nanos median = 0;               // of an even number the lower of the two in the middle
    Nanos percentile95 = 0;         // the shortest duration that 95 % of them do not exceed
    std::vector<std::int64_t> bars; // how many are in each; one if all take equally long

    static DurationSpread of(std::vector<Nanos> durations);
    double begin(std::size_t bar) const; // in ns; the end of the last one for bars.size()
};

struct AggregateLine {
    enum class What {
        Ops,
        Work, // kernels and copies under the ops
        Transfers,
        Idle,
    }; // work and transfers run beside the ops: their share is extra
    QString name;
    What what = What::Ops;
    std::optional<OpKind> kind;    // if it is all of one kind
    std::optional<KernelClass> of; // … or of one class
    int panel = 0;                 // A, B …
    std::int64_t count = 0;        // for idle time: gaps
    Nanos total = 0;
    double squares = 0; // sum of squared durations
    DurationSpread durations;
    double share = 0; // of ranks × range
    Nanos mean() const { return count > 0 ? total / count : 0; }
    Nanos spread() const; // standard deviation
};

struct AggregateTable {
    std::vector<AggregateLine> lines; // ops by kind, stage, microbatch, rank; then work, transfers, idle time
    TimeRange range;                  // axis time; union over the areas
    int ranks = 0;                    // (panel, rank) pairs
    Nanos rankTime =
        0; // ranks × range, each cut to its panel, and as often as a rank without ops has GPUs: the basis of shares
    std::int64_t ops = 0;
    std::int64_t kernels = 0; // and copies, of runs without ops
};

// plan: the places of ranks; null: in numerical order. A rank in two areas counts in both. O(slices in the range × log
// lines).
AggregateTable aggregateTable(const std::vector<std::shared_ptr<const TimelinePanel>>& panels,
                              const std::vector<AreaSelection>& areas, const RowPlan* plan, AggregateBy by);
// The number of slices it would read. O(ranks × log slices).
std::int64_t slicesIn(const std::vector<std::shared_ptr<const TimelinePanel>>& panels,
                      const std::vector<AreaSelection>& areas);

} // namespace stagewright
