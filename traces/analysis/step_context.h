// StepContext: one step of a run, and what several analyses of it need. Each part is made once, by the thread that asks
// first; others that ask meanwhile wait for it.
#pragma once

#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/messages/sim_result.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/critical_path.h"
#include "traces/analysis/memory.h"
#include "traces/analysis/overlap.h"
#include "traces/analysis/slack.h"
#include "traces/fit/executed_run.h"
#include "traces/fit/residuals.h"
#include "traces/run/run_facts.h"
#include "traces/step/step_graph.h"

namespace stagewright {

class StepContext {
public:
    // The run or timeline must outlive it; a step that it does not have is empty. Once a stop is requested, bubbles,
    // costs and simulations that are not made yet fail (Cancelled).
    StepContext(const Run& run, int step, BubbleOptions options, std::stop_token stop = {});
    StepContext(const Run& run, int step); // with the run's own caps
    // Without costs. None of what is of a run may be asked for.
    StepContext(const Timeline& timeline, int step, BubbleOptions options = {});

    const Run& run() const { return *m_run; }
    const Timeline& timeline() const { return m_timeline; }
    int step() const { return m_step; }
    const BubbleOptions& options() const { return m_options; }
    const std::stop_token& stop() const { return m_stop; }

    const StepOps& ops() const;
    const StepGraph& graph() const;
    const StepLevels& levels() const;
    const Result<BubbleReport>& bubbles() const;
    const std::vector<Crossing>& crossings() const;
    const OverlapReport& overlap() const;
    const std::vector<CriticalLink>& criticalPath() const;
    const std::vector<OpSlack>& slack() const;
    const std::vector<RankMemory>& memory() const; // by rank; empty where the timeline has none
    // What it knows of the run:
    const Result<CostModel>& costs() const;      // costsOf()
    const Result<ExecutedRun>& executed() const; // with these costs, as likewise:
    const Result<SimResult>& simulated() const;
    const Result<Residuals>& residuals() const;

private:
    template <typename T>
    struct Part {
        std::once_flag once;
        std::optional<T> value;
        template <typename Make>
        const T& get(Make&& make)
        {
            std::call_once(once, [&] { value.emplace(make()); });
            return *value;
        }
    };
    const Run* m_run = nullptr;
    const Timeline& m_timeline;
    int m_step;
    BubbleOptions m_options;
    std::stop_token m_stop;
    mutable Part<StepOps> m_ops;
    mutable Part<StepGraph> m_graph;
    mutable Part<StepLevels> m_levels;
    mutable Part<Result<BubbleReport>> m_bubbles;
    mutable Part<std::vector<Crossing>> m_crossings;
    mutable Part<OverlapReport> m_overlap;
    mutable Part<std::vector<CriticalLink>> m_criticalPath;
    mutable Part<std::vector<OpSlack>> m_slack;
    mutable Part<std::vector<RankMemory>> m_memory;
    mutable Part<Result<CostModel>> m_costs;
    mutable Part<Result<ExecutedRun>> m_executed;
    mutable Part<Result<SimResult>> m_simulated;
    mutable Part<Result<Residuals>> m_residuals;
};

} // namespace stagewright
