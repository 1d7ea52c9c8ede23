// Sweep: many shapes, costs and latencies simulated; what `stagewright sweep` writes and the explorer draws.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "schedules/setup/prepare.h"

namespace stagewright {

// A point of the grid is a setup with one schedule.
struct SweepRow {
    Setup point;
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

    const std::string& schedule() const { return point.schedules.front(); }
    bool good() const { return done && error.empty(); }
    Bytes peak() const; // of the fullest rank
    double timeValue(Nanos time) const { return static_cast<double>(time) / static_cast<double>(timeUnit); }
    double memoryValue(Bytes bytes) const { return static_cast<double>(bytes) / static_cast<double>(memoryUnit); }
};

struct SweepCase {
    ReplicaLists state;
    CostModel costs;
};
using SweepSource = std::function<Result<SweepCase>(const Setup&)>; // empty: preparedCase() without files
Result<SweepCase> preparedCase(const Setup& point, const SetupSources& sources = {});
SweepRow simulatePoint(const Setup& point, const SweepSource& source = {});

// Every point, on two threads, reported row by row as they finish (onRow: one call at a time, from either thread, with
// its index). Rows come in the order of the points. Cancelling leaves the rest undone; a point under way is finished.
std::vector<SweepRow> sweep(const std::vector<Setup>& points, const SweepSource& source = {},
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
