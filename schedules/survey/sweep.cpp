#include "schedules/survey/sweep.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <thread>

#include <fmt/format.h>

#include "schedules/base/csv_line.h"
#include "schedules/execute/simulate.h"
#include "schedules/library/registry.h"

namespace stagewright {

Bytes SweepRow::peak() const { return peaks.empty() ? 0 : *std::max_element(peaks.begin(), peaks.end()); }

Result<SweepCase> preparedCase(const Setup& point, const SetupSources& sources)
{
    SweepCase out;
    STAGEWRIGHT_TRY(out.state, simulatedLists(point.schedules.front(), point, sources));
    STAGEWRIGHT_TRY(out.costs, costsOf(out.state, out.state.schedule, point, sources));
    return out;
}

SweepRow simulatePoint(const Setup& point, const SweepSource& source)
{
    SweepRow row;
    row.point = point;
    row.done = true;
    const auto wrong = [&row](const Error& error) {
        row.error = error.message;
        return row;
    };
    try {
        const auto made = source ? source(point) : preparedCase(point);
        if (!made) return wrong(made.error());
        const Schedule* schedule = &made->state.schedule;
        const CostModel* costs = &made->costs;
        auto result = simulate(*schedule, *costs);
        if (!result) return wrong(result.error());
        const SimFigures figures = figuresOf(*schedule, *result);
        row.ranks = schedule->ranks;
        row.stages = schedule->stages;
        row.microbatches = schedule->microbatches;
        row.timeUnit = costs->timeUnit;
        row.memoryUnit = costs->memoryUnit;
        row.makespan = figures.makespan;
        row.step = figures.step;
        row.span = result->span;
        row.bubbleFraction = figures.bubbleFraction;
        row.bubbleRateSpan = figures.bubbleRateSpan;
        if (costs->knowsActivations()) row.peaks = std::move(result->peakActivation);
        row.synchronous = schedule->weights == WeightRule::Synchronous;
        row.copies = schedule->placement.hasCopies();
    } catch (const std::bad_alloc&) {
        row.error = "out of memory";
    }
    return row;
}

std::vector<SweepRow> sweep(const std::vector<Setup>& points, const SweepSource& source, const Progress& progress,
                            const std::function<void(std::size_t, const SweepRow&)>& onRow)
{
    std::vector<SweepRow> rows(points.size());
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::int64_t done = 0;
    const auto work = [&] {
        for (std::size_t i = next++; i < points.size() && !progress.cancelled(); i = next++) {
            SweepRow row = simulatePoint(points[i], source);
            const std::lock_guard lock(mutex);
            rows[i] = std::move(row);
            if (onRow) onRow(i, rows[i]);
            progress.tell("points", ++done, static_cast<std::int64_t>(points.size()));
        }
    };
    {
        const std::jthread second(points.size() > 1 ? std::jthread(work) : std::jthread());
        work();
    }
    for (std::size_t i = 0; i < points.size(); ++i)
        if (!rows[i].done) rows[i].point = points[i];
    return rows;
}

std::string sweepCsv(const std::vector<SweepRow>& rows)
{
    std::string text =
        csvLine({"schedule", "ranks", "microbatches", "chunks", "stages", "costs", "comm", "time_unit", "makespan",
                 "span", "bubble_fraction", "bubble_rate_span", "peak_activation", "whole_step", "error"});
    for (const SweepRow& row : rows) {
        if (!row.done) continue;
        const Setup& point = row.point;
        std::vector<std::string> cells{row.schedule(),
                                       std::to_string(point.ranks),
                                       std::to_string(point.microbatches),
                                       point.chunks > 0 ? std::to_string(point.chunks) : "auto",
                                       row.error.empty() ? std::to_string(row.stages) : "",
                                       point.costs.empty() ? point.costsFrom : point.costs,
                                       point.comm >= 0                   ? fmt::format("{}", point.comm)
                                       : row.good() && row.timeUnit != 1 ? "0"
                                                                         : ""};
        if (row.error.empty()) {
            for (std::string cell :
                 {std::string(row.timeUnit != 1 ? "rank_share" : "ns"), fmt::format("{}", row.timeValue(row.makespan)),
                  fmt::format("{}", row.timeValue(row.span)), fmt::format("{:.6g}", row.bubbleFraction),
                  fmt::format("{:.6g}", row.bubbleRateSpan),
                  row.peaks.empty() ? std::string() : fmt::format("{}", row.memoryValue(row.peak())),
                  fmt::format("{}", row.timeValue(row.step))})
                cells.push_back(std::move(cell));
        } else {
            cells.resize(14);
        }
        cells.push_back(row.error);
        text += csvLine(cells);
    }
    return text;
}

int chunksTaken(const std::string& schedule, int asked, bool* unused)
{
    const auto info = scheduleInfoOf(schedule);
    const bool fixed = info && (*info)->fixedChunks > 0 && asked > 0 && asked != (*info)->fixedChunks;
    if (unused != nullptr) *unused = fixed;
    return fixed ? (*info)->fixedChunks : asked;
}

std::vector<std::size_t> frontierOf(const std::vector<SweepRow>& rows,
                                    const std::function<bool(const SweepRow&)>& eligible)
{
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i].good() && (!eligible || eligible(rows[i]))) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&rows](std::size_t a, std::size_t b) {
        const Bytes peakA = rows[a].peak();
        const Bytes peakB = rows[b].peak();
        return peakA != peakB ? peakA < peakB : rows[a].step < rows[b].step;
    });
    std::vector<std::size_t> frontier;
    for (const std::size_t i : order)
        if (frontier.empty() || rows[i].step < rows[frontier.back()].step) frontier.push_back(i);
    return frontier;
}

} // namespace stagewright
