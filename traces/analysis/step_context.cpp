#include "traces/analysis/step_context.h"

#include <utility>

#include "schedules/execute/simulate.h"
#include "traces/fit/fit_costs.h"

namespace stagewright {

namespace {

template <typename T, typename Make>
Result<T> unlessStopped(const std::stop_token& stop, Make&& make)
{
    if (stop.stop_requested()) return fail(ErrorCode::Cancelled, "the analysis was cancelled");
    return make();
}

} // namespace

StepContext::StepContext(const Run& run, int step, BubbleOptions options, std::stop_token stop)
    : m_run(&run), m_timeline(*run.timeline), m_step(step), m_options(std::move(options)), m_stop(std::move(stop))
{
}

StepContext::StepContext(const Run& run, int step) : StepContext(run, step, bubbleOptionsOf(run)) {}

StepContext::StepContext(const Timeline& timeline, int step, BubbleOptions options)
    : m_timeline(timeline), m_step(step), m_options(std::move(options))
{
}

const StepOps& StepContext::ops() const
{
    return m_ops.get([this] { return StepOps(m_timeline, m_step); });
}

const StepGraph& StepContext::graph() const
{
    return m_graph.get([this] { return StepGraph(m_timeline, ops()); });
}

const StepLevels& StepContext::levels() const
{
    return m_levels.get([this] { return graph().levels(); });
}

const Result<BubbleReport>& StepContext::bubbles() const
{
    return m_bubbles.get([this] { return analyseBubbles(*this); });
}

const std::vector<Crossing>& StepContext::crossings() const
{
    return m_crossings.get([this] { return crossingsOf(ops()); });
}

const OverlapReport& StepContext::overlap() const
{
    return m_overlap.get([this] { return analyseOverlap(ops(), crossings()); });
}

const std::vector<CriticalLink>& StepContext::criticalPath() const
{
    return m_criticalPath.get([this] { return stagewright::criticalPath(ops()); });
}

const std::vector<OpSlack>& StepContext::slack() const
{
    return m_slack.get([this] { return slackOf(ops(), graph()); });
}

const std::vector<RankMemory>& StepContext::memory() const
{
    return m_memory.get([this] { return memoryByRank(m_timeline, m_step); });
}

const Result<CostModel>& StepContext::costs() const
{
    return m_costs.get([this] { return unlessStopped<CostModel>(m_stop, [this] { return costsOf(run()); }); });
}

const Result<ExecutedRun>& StepContext::executed() const
{
    return m_executed.get([this] {
        if (!run().schedule) return executedRun(run()); // the error that comes first
        return costs().and_then([this](const CostModel& own) { return executedRun(run(), own, CostsAre::Own); });
    });
}

const Result<SimResult>& StepContext::simulated() const
{
    return m_simulated.get([this] {
        return executed().and_then([this](const ExecutedRun& what) {
            return unlessStopped<SimResult>(m_stop, [&] { return simulate(what.schedule, what.costs, what.channels); });
        });
    });
}

const Result<Residuals>& StepContext::residuals() const
{
    return m_residuals.get([this]() -> Result<Residuals> {
        STAGEWRIGHT_CHECK(hasSchedule(run()));
        return simulated().and_then([this](const SimResult& predicted) {
            return residualsOf(run(), *costs(), figuresOf(executed()->schedule, predicted).makespan);
        });
    });
}

} // namespace stagewright
