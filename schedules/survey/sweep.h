// Sweep: many shapes, costs and latencies simulated; what `stagewright sweep` writes and the explorer draws.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright {

// A point of a grid: a library schedule generated for a shape and timed with unit costs, unless a SweepSource says
// otherwise.
struct SweepPoint {
    std::string schedule;       // "zb-h1", "bfs:order=descending"
    Shape shape;                // chunks 0: schedule default; costs: what generators may plan with
    CostModel::UnitCosts units; // latency: in rank shares
    std::string costs;          // as shown in tables: "F=1,I=1,W=1"
    double comm = 0;            // as shown in tables; below 0: the costs' own links
};
// shape.costs and texts follow the units
SweepPoint unitPoint(const std::string& schedule, const Shape& shape, const CostModel::UnitCosts& units);
// "F=1,I=1,W=1"; B where it is not I + W
std::string toText(const CostModel::UnitCosts& units);

struct SweepRow {
    SweepPoint point;
    bool done = false; // false: not reached before the sweep was cancelled
    std::string error; // why it could not be simulated
    int ranks = 0;
    int stages = 0;
    int microbatches = 0;
    Nanos timeUnit = 1;
    Bytes memoryUnit = 1;
    Nanos makespan = 0; // figures as SimFigures
    Nanos step = 0;
    Nanos span = 0;
    double bubbleFraction = 0;
    double bubbleRateSpan = 0;
    std::vector<Bytes> peaks; // activations by rank; empty: the costs have no sizes
    bool synchronous = true;  // the schedule's weights
    bool copies = false;      // ranks hold a second copy of stages

    bool good() const { return done && error.empty(); }
    Bytes peak() const; // of the fullest rank
    double timeValue(Nanos time) const { return static_cast<double>(time) / static_cast<double>(timeUnit); }
    double memoryValue(Bytes bytes) const { return static_cast<double>(bytes) / static_cast<double>(memoryUnit); }
};

struct SweepCase {
    Schedule schedule;
    CostModel costs;
};
using SweepSource = std::function<Result<SweepCase>(const SweepPoint&)>; // empty: libraryCase()
Result<SweepCase> libraryCase(const SweepPoint& point);                  // of the library, with the point's units
SweepRow simulatePoint(const SweepPoint& point, const SweepSource& source = {});

// Every point, on two threads, reported row by row as they finish (onRow: one call at a time, from either thread, with
// its index). Rows come in the order of the points. Cancelling leaves the rest undone; a point under way is finished.
std::vector<SweepRow> sweep(const std::vector<SweepPoint>& points, const SweepSource& source = {},
                            const Progress& progress = {},
                            const std::function<void(std::size_t, const SweepRow&)>& onRow = {});

// A line of titles and one per finished row: schedule, ranks, microbatches, chunks, stages, costs, comm, time_unit,
// makespan, span, bubble_fraction, bubble_rate_span, peak_activation, whole_step, error.
std::string sweepCsv(const std::vector<SweepRow>& rows);

// The requested chunks that the schedule takes: its own number if that is fixed. `unused` is set if it differs.
int chunksTaken(const std::string& schedule, int asked, bool* unused = nullptr);

// Rows that no other good row beats in both: a smaller peak and no longer, or shorter and no larger. By rising peak; of
// equal points the first. Only rows for which `eligible` holds (empty: all).
std::vector<std::size_t> frontierOf(const std::vector<SweepRow>& rows,
                                    const std::function<bool(const SweepRow&)>& eligible = {});

} // namespace stagewright
