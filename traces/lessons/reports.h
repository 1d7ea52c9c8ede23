// Reports: figures of a simulated order or of a recorded run under the names that `simulate --json` and `report --json`
// use, for expressions. For unit-cost work times are in rank shares and memory in microbatch-activations, for runs in
// ns and bytes.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schedules/check/validate.h"
#include "schedules/execute/simulate.h"
#include "schedules/model/cost_model.h"
#include "traces/analysis/bubbles.h"
#include "traces/lessons/edit_command.h"
#include "traces/lessons/expression.h"
#include "traces/run/run.h"

namespace stagewright::lessons {

// The first op, by rank and position, after which its rank holds more than the cap.
struct CapFault {
    int rank = 0;
    int position = 0;
    Op op;
    double held = 0;         // microbatch-activations after it
    std::vector<Op> holders; // the forwards whose activations are not freed yet, in order
};
std::optional<CapFault> firstOverCap(const Schedule& schedule, const CostModel& costs, Bytes cap);
// by rank
std::optional<CapFault> firstOverCap(const Schedule& schedule, const CostModel& costs, std::span<const Bytes> caps);

std::vector<int> warmupsOf(const Schedule& schedule); // forwards before the first backward, by rank

// Figures by name.
class Figures : public Report {
public:
    explicit Figures(std::vector<std::pair<std::string, Value>> figures) : m_figures(std::move(figures)) {}
    Result<Value> figure(std::string_view key) const override;

private:
    std::vector<std::pair<std::string, Value>> m_figures;
};

// Beyond the keys of --json: valid, complete, runs (it ends), messages, warmups, stage_costs, weight_copies, versions,
// delays, step (with gathers and reductions), state, gathers, traffic.
// An order that can't run has no times; an incomplete order has those of the part that runs.
class SimulatedReport : public Report {
public:
    SimulatedReport(Schedule schedule, CostModel costs, const Channels& channels, std::optional<double> cap = {});
    // Reports a canvas with its settings; fails where these don't fit the order.
    static Result<std::shared_ptr<const SimulatedReport>> create(const Canvas& canvas);
    // What a recorded run was predicted to do: with the costs fitted from it, and its own links, channels and lowering.
    // Null where it has no schedule or no costs, or can't be simulated.
    static std::shared_ptr<const SimulatedReport> predicted(const Run& run);

    Result<Value> figure(std::string_view key) const override;

    const Schedule& schedule() const { return m_schedule; } // as executed: recomputed, lowered
    const CostModel& costs() const { return m_costs; }
    const Channels& channels() const { return m_channels; }
    const Validation& validation() const { return m_validation; }
    bool complete() const { return m_complete; }
    const std::optional<SimResult>& result() const { return m_result; }
    std::optional<double> makespan() const; // in rank shares
    std::vector<double> peaks() const;
    std::shared_ptr<const Timeline> timeline() const; // null if it can't run
    const BubbleReport& bubbles() const;              // empty in the same case

private:
    Value time(Nanos nanos) const { return static_cast<double>(nanos) / static_cast<double>(m_costs.timeUnit); }
    void analyse() const;
    Result<Value> analysed(std::string_view key) const;

    Schedule m_schedule;
    CostModel m_costs;
    Channels m_channels;
    std::optional<double> m_cap;
    Validation m_validation;
    bool m_complete = false;
    Schedule m_runnable; // the schedule of m_result
    std::optional<SimResult> m_result;
    mutable std::once_flag m_once;
    mutable std::shared_ptr<const Timeline> m_timeline;
    mutable BubbleReport m_bubbles;
    mutable std::shared_ptr<const Report> m_analysed;
};

// A stored run in its representative step.
class RecordedReport : public Report {
public:
    explicit RecordedReport(std::shared_ptr<const Run> run);
    Result<Value> figure(std::string_view key) const override;
    const Run& run() const { return *m_run; }

private:
    std::shared_ptr<const Run> m_run;
    mutable std::once_flag m_once;
    mutable std::shared_ptr<const Report> m_analysed;
};

// For schedules whose weights go stale: by rank, how many versions a rank keeps, and after how many updates a backward
// uses the weights of its forward. Synchronous: 1 and 0.
struct WeightUse {
    std::vector<int> versions;
    std::vector<int> delays;
};
WeightUse weightUseOf(const Schedule& schedule);

} // namespace stagewright::lessons
