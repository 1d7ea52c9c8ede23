#include "traces/lessons/reports.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "schedules/execute/deadlock.h"
#include "schedules/model/activation.h"
#include "schedules/model/collective_costs.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/timeline/timeline_of.h"
#include "traces/fit/executed_run.h"
#include "traces/report/run_report.h"

namespace stagewright::lessons {

namespace {

using Pairs = std::vector<std::pair<std::string, Value>>;

Value group(Pairs figures)
{
    return Value(std::shared_ptr<const Report>(std::make_shared<Figures>(std::move(figures))));
}

template <typename Items, typename Map>
Value listOf(const Items& items, const Map& map)
{
    List out;
    for (const auto& item : items) out.push_back(map(item));
    return Value(std::move(out));
}

// Figures of the report, under the keys of `report --json`.
Pairs analysedFigures(const Timeline& timeline, const RunReport& report)
{
    const Units& units = report.units;
    const auto time = [&](Nanos nanos) { return Value(units.timeValue(nanos)); };
    const auto memory = [&](double bytes) { return Value(bytes / static_cast<double>(units.memory)); };
    const auto idle = [&](const IdleByCause& causes) {
        Pairs out;
        for (std::size_t i = 0; i < idleCauseCount; ++i)
            out.emplace_back(std::string(toText(static_cast<IdleCause>(i))), time(causes[i]));
        return group(std::move(out));
    };
    Pairs out;
    std::vector<std::pair<std::string, Pairs>> groups;
    for (const document::Figure& figure : report.figures()) {
        Value value;
        if (!figure.unknown.empty()) {
        } else if (figure.kind == ColumnKind::Size) {
            if (figure.key != "weight_bytes" || units.memory == 1) value = listOf(figure.byRank, memory);
        } else {
            value = figure.kind == ColumnKind::Time ? Value(figure.value / static_cast<double>(units.time))
                                                    : Value(figure.value);
        }
        const std::size_t dot = figure.key.find('.');
        if (dot == std::string::npos) {
            out.emplace_back(figure.key, std::move(value));
            continue;
        }
        const std::string name = figure.key.substr(0, dot);
        if (groups.empty() || groups.back().first != name) groups.emplace_back(name, Pairs());
        groups.back().second.emplace_back(figure.key.substr(dot + 1), std::move(value));
    }
    if (std::none_of(groups.begin(), groups.end(), [](const auto& one) { return one.first == "sharing"; }))
        out.emplace_back("sharing", Value());
    for (auto& [name, figures] : groups) out.emplace_back(name, group(std::move(figures)));
    out.emplace_back("slow_replicas", report.slowReplicas.empty() ? Value() : Value(report.slowReplicas));
    const BubbleReport& bubbles = report.bubbles;
    out.emplace_back("ranks", timeline.ranks());
    out.emplace_back("makespan_ns", static_cast<double>(bubbles.makespan()));
    out.emplace_back("span_ns", static_cast<double>(bubbles.span));
    out.emplace_back("whole_step_ns", static_cast<double>(bubbles.stepTime()));
    List ranks;
    for (std::size_t r = 0; r < bubbles.ranks.size(); ++r) {
        const RankBubbles& rank = bubbles.ranks[r];
        ranks.push_back(group(
            {{"rank", static_cast<double>(r)},
             {"busy", time(rank.busy)},
             {"apart", time(rank.apart)},
             {"idle", time(rank.idle)},
             {"idle_by_cause", idle(rank.byCause)},
             {"peak_activation",
              r < report.memory.size() ? memory(static_cast<double>(report.peak(static_cast<int>(r)))) : Value()}}));
    }
    out.emplace_back("by_rank", Value(std::move(ranks)));
    out.emplace_back("critical_path", listOf(report.criticalPath, [&](const CriticalLink& link) {
                         return Value(toText(timeline.spans()[link.span].op));
                     }));
    const auto straggler = stragglerRank(bubbles);
    out.emplace_back("straggler_rank", straggler ? Value(*straggler) : Value());
    return out;
}

// Inputs that come from another rank.
int messagesOf(const Schedule& schedule)
{
    int count = 0;
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank)
        for (const Op& op : schedule.order[rank]) {
            if (!isCompute(op.kind) || isRecompute(op.kind)) continue;
            schedule.graph.eachNeed(op, schedule.stages, [&](const Need&, int from) {
                for (int k = 0; from != op.stage && k < op.count; ++k)
                    if (schedule.placement.rankOf(from, op.microbatch + k) != static_cast<int>(rank)) ++count;
            });
        }
    return count;
}

bool nothingMissing(const Schedule& schedule, const Validation& validation)
{
    for (const Fault& fault : validation.faults)
        if (fault.kind != FaultKind::Order && fault.kind != FaultKind::Deadlock) return false;
    for (const auto& tray : trayOf(schedule))
        if (!tray.empty()) return false;
    return true;
}

bool plainOps(const Schedule& schedule)
{
    for (const auto& list : schedule.order)
        for (const Op& op : list)
            if (op.slice >= 0 || op.count != 1 || op.half != 0) return false;
    return true;
}

} // namespace

std::vector<int> warmupsOf(const Schedule& schedule)
{
    std::vector<int> out;
    for (const auto& list : schedule.order) {
        int forwards = 0;
        for (const Op& op : list) {
            if (isReturn(op.kind)) break;
            if (isForward(op.kind)) ++forwards;
        }
        out.push_back(forwards);
    }
    return out;
}

Result<Value> Figures::figure(std::string_view key) const
{
    std::string known;
    for (const auto& [name, value] : m_figures) {
        if (name == key) return value;
        known += (known.empty() ? "" : ", ") + name;
    }
    return fail(ErrorCode::Usage, fmt::format("there is no figure '{}'", key), "figures are " + known);
}

WeightUse weightUseOf(const Schedule& schedule)
{
    WeightUse use;
    const auto ranks = schedule.order.size();
    const bool two = schedule.weights == WeightRule::TwoVersions;
    use.versions.assign(ranks, two ? 2 : 1);
    use.delays.assign(ranks, two ? 1 : 0);
    if (schedule.weights != WeightRule::Stashed) return use;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::map<int, int> version;                  // by stage
        std::map<std::pair<int, int>, int> inFlight; // version by (stage, microbatch)
        for (const Op& op : schedule.order[rank]) {
            if (isForward(op.kind)) inFlight[{op.stage, op.microbatch}] = version[op.stage];
            if (isOptimizer(op.kind)) ++version[op.stage];
            const auto started = inFlight.find({op.stage, op.microbatch});
            if (isFullBackward(op.kind) && started != inFlight.end()) {
                use.delays[rank] = std::max(use.delays[rank], version[op.stage] - started->second);
                inFlight.erase(started);
            }
            std::set<std::pair<int, int>> held;
            for (const auto& [stage, now] : version) held.insert({stage, now});
            for (const auto& [at, of] : inFlight) held.insert({at.first, of});
            use.versions[rank] = std::max(use.versions[rank], static_cast<int>(held.size()));
        }
    }
    return use;
}

std::optional<CapFault> firstOverCap(const Schedule& schedule, const CostModel& costs, Bytes cap)
{
    return firstOverCap(schedule, costs, std::vector<Bytes>(schedule.order.size(), cap));
}

std::optional<CapFault> firstOverCap(const Schedule& schedule, const CostModel& costs, std::span<const Bytes> caps)
{
    const ActivationRule rule(schedule, costs);
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
        Bytes held = 0;
        const auto& list = schedule.order[rank];
        std::vector<Op> holders;
        for (std::size_t i = 0; i < list.size(); ++i) {
            const Op& op = list[i];
            for (int k = 0; k < op.count; ++k) held += rule.deltaOf(op, k);
            if (held > caps[rank])
                return CapFault{static_cast<int>(rank), static_cast<int>(i), op,
                                static_cast<double>(held) / static_cast<double>(costs.memoryUnit), std::move(holders)};
            if (isForward(op.kind)) holders.push_back(op);
            if (endsActivation(op.kind))
                std::erase_if(holders, [&](const Op& held_) {
                    return held_.stage == op.stage && held_.microbatch == op.microbatch;
                });
        }
    }
    return std::nullopt;
}

SimulatedReport::SimulatedReport(Schedule schedule, CostModel costs, const Channels& channels,
                                 std::optional<double> cap)
    : m_schedule(std::move(schedule)), m_costs(std::move(costs)), m_channels(channels), m_cap(cap)
{
    m_validation = validate(m_schedule, m_channels);
    const bool valid = m_validation.valid();
    m_complete = valid || nothingMissing(m_schedule, m_validation);
    m_runnable = valid || m_complete || !plainOps(m_schedule) ? m_schedule : runnablePart(m_schedule);
    if (m_complete && !valid) return;
    if (auto simulated = simulate(m_runnable, m_costs, m_channels)) m_result = std::move(*simulated);
}

Result<std::shared_ptr<const SimulatedReport>> SimulatedReport::create(const Canvas& canvas)
{
    // one that can't be lowered is not valid, and says so
    Schedule schedule = shownOn(canvas).value_or(canvas.schedule);
    STAGEWRIGHT_TRY(auto costs, costsFor(schedule, canvas.settings));
    return std::make_shared<const SimulatedReport>(std::move(schedule), std::move(costs), channelsOf(canvas.settings),
                                                   canvas.settings.cap());
}

std::shared_ptr<const SimulatedReport> SimulatedReport::predicted(const Run& run)
{
    if (!run.schedule || !run.costs || !run.timeline) return nullptr;
    auto again = executedRun(run);
    if (!again) return nullptr;
    return std::make_shared<const SimulatedReport>(std::move(again->schedule), std::move(again->costs),
                                                   again->channels);
}

std::optional<double> SimulatedReport::makespan() const
{
    if (!m_result) return std::nullopt;
    return static_cast<double>(figuresOf(m_runnable, *m_result).makespan) / static_cast<double>(m_costs.timeUnit);
}

std::vector<double> SimulatedReport::peaks() const
{
    std::vector<double> out;
    for (const Bytes bytes : activationPeaks(m_schedule, m_costs))
        out.push_back(static_cast<double>(bytes) / static_cast<double>(m_costs.memoryUnit));
    return out;
}

void SimulatedReport::analyse() const
{
    std::call_once(m_once, [&] {
        if (!m_result) return;
        auto timeline = timelineOf(m_runnable, *m_result, m_costs, TimelineParts::All, m_channels);
        if (!timeline) return;
        Run run;
        run.schedule = std::make_shared<const Schedule>(m_runnable);
        run.costs = m_costs;
        run.timeline = *timeline;
        ReportOptions options;
        options.step = 0;
        options.ownCap = false;
        options.withoutSteps = true;
        if (m_cap) options.memoryCap = static_cast<Bytes>(*m_cap * static_cast<double>(m_costs.memoryUnit));
        auto report = reportOf(run, options);
        if (!report) return;
        m_analysed = std::make_shared<Figures>(analysedFigures(**timeline, *report));
        m_bubbles = std::move(report->bubbles);
        m_timeline = std::move(*timeline);
    });
}

std::shared_ptr<const Timeline> SimulatedReport::timeline() const
{
    analyse();
    return m_timeline;
}

const BubbleReport& SimulatedReport::bubbles() const
{
    analyse();
    return m_bubbles;
}

Result<Value> SimulatedReport::analysed(std::string_view key) const
{
    analyse();
    if (m_analysed) return m_analysed->figure(key);
    // The keys are known all the same: those of any timeline.
    static const Figures none(analysedFigures(**TimelineBuilder(Provenance::Simulated, "model", 1).build(), {}));
    auto known = none.figure(key);
    if (!known) return known;
    return known->report() ? group({}) : Value();
}

Result<Value> SimulatedReport::figure(std::string_view key) const
{
    const auto whole = [](int number) { return Value(number); };
    if (key == "makespan") {
        const auto value = makespan();
        return value ? Value(*value) : Value();
    }
    if (key == "peak_activation") return listOf(peaks(), [](double peak) { return Value(peak); });
    if (key == "bubble_fraction" && m_result && m_runnable.opCount() > 0)
        return Value(figuresOf(m_runnable, *m_result).bubbleFraction);
    if (key == "step") { // with gathers and reductions
        const auto end = m_result ? std::max_element(m_result->end.begin(), m_result->end.end())
                                  : std::vector<Nanos>::const_iterator();
        return m_result && end != m_result->end.end()
                   ? Value(static_cast<double>(*end) / static_cast<double>(m_costs.timeUnit))
                   : Value();
    }
    if (key == "state") { // weights, gradients and optimizer state between steps, by rank, in 10⁹ bytes
        std::vector<double> held(static_cast<std::size_t>(m_schedule.ranks), 0);
        for (int stage = 0; stage < std::min(m_schedule.stages, m_costs.stages()); ++stage)
            for (const int rank : holdersOf(m_schedule.placement, stage))
                held[static_cast<std::size_t>(rank)] +=
                    static_cast<double>(heldState(m_costs, m_schedule, stage, rank).sum()) / 1e9;
        return listOf(held, [](double bytes) { return Value(bytes); });
    }
    // by rank: a step's gathers; what it receives, in multiples of its weights
    if (key == "gathers" || key == "traffic") {
        List list;
        for (std::size_t rank = 0; const CollectiveVolume& volume : collectiveVolumes(m_schedule, m_costs)) {
            double weights = 0;
            for (const int stage : m_schedule.placement.stagesOf(static_cast<int>(rank++)))
                if (stage < m_costs.stages())
                    weights += static_cast<double>(m_costs.memory[static_cast<std::size_t>(stage)].weight);
            list.push_back(key == "gathers" ? Value(volume.gathers)
                           : weights > 0    ? Value(static_cast<double>(volume.gathered + volume.reduced) / weights)
                                            : Value());
        }
        return Value(std::move(list));
    }
    if (key == "valid") return Value(m_validation.valid());
    if (key == "complete") return Value(m_complete);
    if (key == "fits")
        return Value(!m_cap || std::ranges::all_of(peaks(), [&](double peak) { return peak <= *m_cap + 1e-9; }));
    if (key == "schedule") return Value(m_schedule.name);
    if (key == "provenance") return Value("simulated");
    if (key == "clock") return Value("model");
    if (key == "time_unit") return Value(m_costs.timeUnit != 1 ? "rank_share" : "ns");
    if (key == "ranks") return Value(m_schedule.ranks);
    if (key == "stages") return Value(m_schedule.stages);
    if (key == "microbatches") return Value(m_schedule.microbatches);
    if (key == "messages") return Value(messagesOf(m_schedule));
    if (key == "warmups") return listOf(warmupsOf(m_schedule), whole);
    if (key == "versions") return listOf(weightUseOf(m_schedule).versions, whole);
    if (key == "delays") return listOf(weightUseOf(m_schedule).delays, whole);
    if (key == "stage_costs") {
        List out;
        for (int stage = 0; stage < m_schedule.stages; ++stage)
            out.push_back(Value(static_cast<double>(m_costs.forward(stage, m_schedule.placement.rankOf(stage, -1))) /
                                static_cast<double>(m_costs.timeUnit)));
        return Value(std::move(out));
    }
    if (key == "weight_copies") {
        double copies = 0;
        for (int stage = 0; stage < m_schedule.stages; ++stage)
            copies += static_cast<double>(m_schedule.placement.copiesOf(stage).size());
        return m_schedule.stages > 0 ? Value(copies / m_schedule.stages) : Value();
    }
    if (key == "hung") return Value(!m_validation.cycle.empty());
    if (key == "cycle" || key == "victims" || key == "circle") {
        auto deadlock = explainDeadlock(m_schedule, m_channels);
        if (!deadlock) return Value(List{});
        if (key == "circle") return listOf(deadlock->cycleOps, [](const CycleOp& op) { return Value(toText(op.op)); });
        return listOf(key == "cycle" ? deadlock->cycle : deadlock->victims, whole);
    }
    if (key == "name") return Value(m_schedule.name);
    if (key == "state") return Value("complete");
    if (key == "steps") return Value(1);
    if (key == "step_number") return Value(1);
    if (key == "step" || key == "warmup_steps" || key == "damaged_blocks") return Value(0);
    for (const std::string_view measured : {"loss", "step_time_ns", "wall_time_ns", "contention", "gradient_error",
                                            "deviation", "peak_activation_bytes", "run"})
        if (key == measured) return Value(); // of recorded runs
    return analysed(key);
}

RecordedReport::RecordedReport(std::shared_ptr<const Run> run) : m_run(std::move(run)) {}

Result<Value> RecordedReport::figure(std::string_view key) const
{
    const Run& run = *m_run;
    const auto metric = [&](std::string_view name) {
        const Metric* found = run.metric(name);
        return found ? listOf(found->values, [](double value) { return Value(value); }) : Value();
    };
    if (key == "schedule") return Value(run.info.scheduleName);
    if (key == "provenance") return Value(std::string(stagewright::toText(run.info.provenance)));
    if (key == "clock") return Value(run.info.clock);
    if (key == "complete") return Value(run.info.state == RunState::Complete);
    if (key == "steps") return Value(run.info.steps);
    if (key == "warmup_steps") return Value(run.info.warmupSteps);
    if (key == "step" || key == "step_number") {
        const int step =
            run.timeline->steps() > 0 ? std::clamp(run.representativeStep(), 0, run.timeline->steps() - 1) : 0;
        return Value(key == "step" ? step : stepNumber(step));
    }
    if (key == "run") return Value(static_cast<double>(run.info.id));
    if (key == "name") return Value(run.info.name);
    if (key == "state") return Value(std::string(stagewright::toText(run.info.state)));
    if (key == "damaged_blocks") return Value(static_cast<double>(run.info.damagedBlocks));
    if (key == "time_unit") return Value(run.timeline->timeUnit() != 1 ? "rank_share" : "ns");
    if (key == "stages") return Value(run.info.stages);
    if (key == "microbatches") return Value(run.info.microbatches);
    if (key == "loss" || key == "step_time_ns" || key == "wall_time_ns" || key == "contention") return metric(key);
    if (key == "step_time") { // mean over the measured steps
        const Metric* found = run.metric("step_time_ns");
        double sum = 0;
        int count = 0;
        for (std::size_t i = static_cast<std::size_t>(std::max(run.info.warmupSteps, 0));
             found && i < found->values.size(); ++i, ++count)
            sum += found->values[i];
        return count > 0 ? Value(sum / count) : Value();
    }
    if (key == "deviation") {
        const Metric* found = run.metric(key);
        return found && !found->values.empty() ? Value(found->values.back()) : Value();
    }
    if (key == "peak_activation_bytes") return figure("peak_activation");
    if (key == "hung" || key == "refused") return Value(false);
    if (key == "cycle" || key == "victims") return Value(List{});
    if (key == "gradient_error") return Value();
    if (run.schedule) {
        if (key == "versions") return listOf(weightUseOf(*run.schedule).versions, [](int n) { return Value(n); });
        if (key == "delays") return listOf(weightUseOf(*run.schedule).delays, [](int n) { return Value(n); });
        if (key == "warmups") return listOf(warmupsOf(*run.schedule), [](int n) { return Value(n); });
        if (key == "messages") return Value(messagesOf(*run.schedule));
        if (key == "gathers") // of a step, by rank
            return listOf(run.schedule->order, [](const std::vector<Op>& ops) {
                return Value(static_cast<double>(
                    std::count_if(ops.begin(), ops.end(), [](const Op& op) { return isGather(op.kind); })));
            });
    }
    std::call_once(m_once, [&] {
        const auto report = reportOf(run, {.ownCap = false, .withoutSteps = true});
        m_analysed = std::make_shared<Figures>(analysedFigures(*run.timeline, report ? *report : RunReport{}));
    });
    return m_analysed->figure(key);
}

} // namespace stagewright::lessons
