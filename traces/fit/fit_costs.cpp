#include "traces/fit/fit_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "schedules/base/median.h"
#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "traces/fit/fit_durations.h"
#include "traces/step/step_graph.h"

namespace stagewright {

namespace {

class Fit {
public:
    Fit(const Timeline& timeline, int firstStep) : m_timeline(timeline), m_firstStep(std::max(0, firstStep)) {}

    Result<CostModel> run()
    {
        const FittedDurations durations = fitDurations(m_timeline, m_firstStep);
        m_stages = durations.stages;
        if (m_stages == 0)
            return fail(
                ErrorCode::Invalid,
                fmt::format("no op to fit costs from in steps {} to {}", stepNumber(m_firstStep), m_timeline.steps()),
                "choose a run with complete steps");
        if (m_timeline.schedule()) m_stages = std::max(m_stages, m_timeline.schedule()->stages);
        m_costs = CostModel(m_stages, CostSource::Fitted);
        m_costs.memory.resize(static_cast<std::size_t>(m_stages));
        const int steps = m_timeline.steps() - m_firstStep,
                  there = static_cast<int>(stepsFrom(m_timeline, m_firstStep).size());
        const std::string some = there < steps ? fmt::format("{} of ", there) : std::string(); // of a large run
        m_costs.origin = fmt::format("fitted from {}steps {} to {} of {} {} timeline", some, stepNumber(m_firstStep),
                                     m_timeline.steps(), m_timeline.provenance() == Provenance::Imported ? "an" : "a",
                                     toText(m_timeline.provenance()));
        m_costs.timeUnit = m_timeline.timeUnit();
        m_costs.memoryUnit = m_timeline.memoryUnit();
        m_costs.sliceStarts = durations.sliceStarts;
        setDurations(durations);
        setVariation(durations);
        setLaunch();
        setLinks();
        setMemory();
        return m_costs;
    }

private:
    // One duration a (kind, stage) where its ranks agree, else one a rank.
    void setDurations(const FittedDurations& durations)
    {
        std::map<std::pair<OpKind, int>, std::vector<std::pair<int, Nanos>>> byStage;
        for (const auto& [key, duration] : durations.whole) {
            const auto& [kind, stage, rank] = key;
            if (stage < m_stages) byStage[{kind, stage}].emplace_back(rank, duration);
        }
        for (const auto& [key, ranks] : byStage) {
            const bool alike = std::all_of(ranks.begin(), ranks.end(),
                                           [first = ranks[0].second](const auto& r) { return r.second == first; });
            m_costs.setDuration(key.first, key.second, ranks[0].second);
            if (alike) continue;
            for (const auto& [rank, duration] : ranks) m_costs.setDuration(key.first, key.second, rank, duration);
        }
    }

    void setVariation(const FittedDurations& durations)
    {
        for (const auto& [key, duration] : durations.ofMicrobatch)
            if (std::get<1>(key) < m_stages)
                m_costs.setMicrobatchDuration(std::get<0>(key), std::get<1>(key), std::get<2>(key), duration);
        std::map<std::tuple<OpKind, int, OpKind, int>, std::vector<const FittedPair*>> byOps;
        for (const FittedPair& pair : durations.pairs)
            byOps[{pair.a, pair.stageA, pair.b, pair.stageB}].push_back(&pair);
        for (const auto& [ops, pairs] : byOps) {
            const bool alike = std::all_of(pairs.begin(), pairs.end(), [first = pairs[0]->duration](const auto* pair) {
                return pair->duration == first;
            });
            for (const FittedPair* pair : pairs)
                m_costs.setPairDuration(pair->a, pair->stageA, pair->b, pair->stageB, alike ? -1 : pair->rank,
                                        pair->duration);
        }
        m_costs.jitter = durations.jitter;
    }

    // By rank the median delay of its compute ops after their inputs and their rank were ready, over at most 16 steps.
    // A rank that waits in a send or receive is not free; a backward after its recomputation was launched with it.
    void setLaunch()
    {
        constexpr std::size_t mostSteps = 16;
        const std::vector<int> steps = stepsFrom(m_timeline, m_firstStep);
        std::vector<std::vector<Nanos>> delays(static_cast<std::size_t>(std::max(0, m_timeline.ranks())));
        m_waits.resize(delays.size());
        for (const Track& track : m_timeline.tracks())
            if (track.lane == Lane::Wait) m_waits[static_cast<std::size_t>(track.rank)].push_back(&track);
        const std::size_t asked = std::min(steps.size(), mostSteps);
        for (std::size_t k = 0; k < asked; ++k) addDelays(steps[k * steps.size() / asked], delays);
        std::vector<Nanos> launch;
        launch.reserve(delays.size());
        for (auto& of : delays) launch.push_back(of.empty() ? 0 : lowerMedian(of));
        if (std::any_of(launch.begin(), launch.end(), [](Nanos delay) { return delay > 0; }))
            m_costs.launch = std::move(launch);
    }

    void addDelays(int step, std::vector<std::vector<Nanos>>& delays) const
    {
        const StepOps ops(m_timeline, step);
        if (ops.empty()) return;
        const StepGraph graph(m_timeline, ops);
        const auto spans = m_timeline.spans();
        for (SlotId id = 0; id < graph.size(); ++id) {
            const Slot& slot = graph.slot(id);
            const SlotId before = graph.before(id);
            const auto [first, last] = graph.inputsOf(id);
            if (!slot.busy || (before == noSlot && first == last)) continue;
            if (before != noSlot && ops.heldFor(graph.slot(before).first) == slot.first) continue;
            const Nanos start = spans[slot.first].start;
            const Nanos could = collectivesUntil(slot.first, start - graph.asItWas().delay[id], start);
            delays[static_cast<std::size_t>(slot.rank)].push_back(
                std::max<Nanos>(0, start - std::max(could, messagesUntil(slot.rank, could, start))));
        }
    }

    // The last end in (from, to] of a collective beside compute that the op needs; from: none.
    Nanos collectivesUntil(SpanId op, Nanos from, Nanos to) const
    {
        for (const Edge& edge : m_timeline.edgesInto(op)) {
            const Lane lane = m_timeline.trackOf(edge.from).lane;
            if (edge.kind == EdgeKind::Order && isCollectiveLane(lane))
                from = std::clamp(m_timeline.spans()[edge.from].end, from, std::max(from, to));
        }
        return from;
    }

    // The last end in (from, to] of a wait of the rank in a send or receive; from: none.
    Nanos messagesUntil(int rank, Nanos from, Nanos to) const
    {
        if (from >= to) return from;
        for (const Track* track : m_waits[static_cast<std::size_t>(rank)]) {
            const auto waits = m_timeline.spansOf(*track);
            auto after =
                std::partition_point(waits.begin(), waits.end(), [&](const Span& span) { return span.start < to; });
            for (; after != waits.begin() && (after - 1)->end > from; --after)
                if ((after - 1)->end <= to) return (after - 1)->end;
        }
        return from;
    }

    // Messages of one size don't determine the bandwidth: a transfer counts as latency.
    void setLinks()
    {
        for (const Track& track : m_timeline.tracks())
            if (isCollectiveLane(track.lane)) m_costs.links.collectives = ResourceUse::Beside;
        std::map<std::pair<int, int>, std::vector<Nanos>> delays;
        std::vector<Nanos> all;
        for (const Edge& edge : m_timeline.edges()) {
            const Span& from = m_timeline.spans()[edge.from];
            if (edge.kind != EdgeKind::Data || from.step < m_firstStep) continue;
            const int fromRank = m_timeline.trackOf(edge.from).rank;
            const int toRank = m_timeline.trackOf(edge.to).rank;
            if (fromRank == toRank) continue;
            const Nanos delay = std::max<Nanos>(0, edge.arrival - from.end);
            delays[{fromRank, toRank}].push_back(delay);
            all.push_back(delay);
        }
        if (all.empty()) return;
        m_costs.links.all.latency = lowerMedian(all);
        for (auto& [ranks, of] : delays) {
            const Nanos delay = lowerMedian(of);
            if (delay != m_costs.links.all.latency) m_costs.links.overrides[ranks] = {delay, 0};
        }
    }

    void setMemory()
    {
        // For memory that stays: the balance of each category over the whole run; for transient memory: its largest
        // event.
        std::map<std::tuple<MemoryCategory, int, int>, Bytes> balance; // (category, stage, rank)
        for (const MemoryEvent& event : m_timeline.memory()) {
            if (event.stage >= m_stages) continue;
            StageMemory& stage = m_costs.memory[event.stage];
            Bytes& held = balance[{event.category, event.stage, event.rank}];
            held += event.delta;
            if (event.category == MemoryCategory::Weights) stage.weight = std::max(stage.weight, held);
            if (event.category == MemoryCategory::Gradients) stage.gradient = std::max(stage.gradient, held);
            if (event.category == MemoryCategory::Optimizer) stage.optimizer = std::max(stage.optimizer, held);
            if (event.category == MemoryCategory::Workspace) stage.workspace = std::max(stage.workspace, held);
            if (event.category == MemoryCategory::Communication) stage.boundary = std::max(stage.boundary, event.delta);
        }
        setActivations();
    }

    // The combined effect of the ops of one microbatch on a stage on its activations.
    struct Held {
        Bytes forward = 0;
        Bytes again = 0; // R
        Bytes freed = 0; // I
        bool input = false;
        bool recomputed = false;
    };

    // The changes of each op's own (stage, microbatch) in (start, end] of the op, summed over its slices and halves.
    void setActivations()
    {
        struct Change {
            Nanos time;
            Bytes delta;
        };
        using Cell = std::tuple<int, int, int, int>; // (rank, step, stage, microbatch)
        std::map<Cell, std::vector<Change>> changes;
        for (const MemoryEvent& event : m_timeline.memory())
            if (event.category == MemoryCategory::Activations && event.step >= m_firstStep)
                changes[{event.rank, event.step, event.stage, event.microbatch}].push_back({event.time, event.delta});
        if (changes.empty()) return;
        std::map<Cell, Held> held;
        for (const Track& track : m_timeline.tracks()) {
            if (track.lane != Lane::Compute) continue;
            for (const Span& span : m_timeline.spansOf(track)) {
                const Op& op = span.op;
                const bool counts = isForward(op.kind) || isInputGrad(op.kind) || isRecompute(op.kind);
                if (!counts || op.microbatch < 0 || span.step < m_firstStep || op.stage >= m_stages) continue;
                for (int k = 0; k < op.count; ++k) {
                    const Cell cell{track.rank, span.step, op.stage, op.microbatch + k};
                    const auto found = changes.find(cell);
                    Bytes sum = 0;
                    Bytes most = 0; // an R in one interval with its backward: the amount before that freed it
                    if (found != changes.end())
                        for (const Change& change : found->second)
                            if (change.time > span.start && change.time <= span.end)
                                most = std::max(most, sum += change.delta);
                    Held& of = held[cell];
                    if (isForward(op.kind)) of.forward += sum;
                    if (isRecompute(op.kind)) of.again += most;
                    if (isInputGrad(op.kind)) of.freed -= sum;
                    of.input = of.input || isInputGrad(op.kind);
                    of.recomputed = of.recomputed || isRecompute(op.kind);
                }
            }
        }
        std::map<int, std::vector<Bytes>> activation;
        std::map<int, std::vector<Bytes>> freed;
        std::map<int, std::vector<Bytes>> kept;
        for (const auto& [cell, of] : held) {
            const int stage = std::get<2>(cell);
            activation[stage].push_back(of.forward + of.again);
            if (of.input) freed[stage].push_back(of.freed);
            if (of.recomputed) kept[stage].push_back(of.forward);
        }
        // If memory is not recorded by category, a forward may leave less than before: then activations are unknown.
        for (auto& [stage, bytes] : activation)
            m_costs.memory[static_cast<std::size_t>(stage)].activation = std::max<Bytes>(0, lowerMedian(bytes));
        for (auto& [stage, bytes] : freed) {
            auto& memory = m_costs.memory[static_cast<std::size_t>(stage)];
            // below 0 if I adds memory that W needs
            memory.freedAtInput = memory.activation > 0 ? lowerMedian(bytes) : 0;
        }
        // a stage's input is as large as its output; messages give its size if there are any
        for (auto& [stage, bytes] : kept)
            if (Bytes& boundary = m_costs.memory[static_cast<std::size_t>(stage)].boundary; boundary == 0)
                boundary = std::max<Bytes>(0, lowerMedian(bytes));
    }

    const Timeline& m_timeline;
    int m_firstStep;
    int m_stages = 0;
    std::vector<std::vector<const Track*>> m_waits; // by rank
    CostModel m_costs;
};

} // namespace

Result<CostModel> fitCosts(const Timeline& timeline, int firstStep) { return Fit(timeline, firstStep).run(); }

namespace {

// Bytes of optimizer state for one of a weight: AdamW keeps two averages, SGD one where it has momentum.
double optimizerShare(const Run& run)
{
    const auto found = std::find_if(run.configuration.begin(), run.configuration.end(),
                                    [](const auto& fact) { return fact.first == "optimizer"; });
    if (found == run.configuration.end()) return 0;
    if (found->second.starts_with("adam")) return 2;
    return found->second.find("momentum") != std::string::npos ? 1 : 0;
}

// What a recording's costs don't say of weights: how large its stages' are. Gradients are as large.
void completeState(CostModel& costs, const Run& run)
{
    const bool known = std::any_of(costs.memory.begin(), costs.memory.end(), [](const StageMemory& memory) {
        return memory.weight > 0 || memory.gradient > 0 || memory.optimizer > 0;
    });
    if (known || !run.timeline) return;
    std::map<std::pair<int, int>, Bytes> held; // by stage and rank
    for (const MemoryEvent& event : run.timeline->memory()) {
        if (event.category != MemoryCategory::Weights || event.stage >= costs.stages()) continue;
        StageMemory& memory = costs.memory[event.stage];
        memory.weight = std::max(memory.weight, held[{event.stage, event.rank}] += event.delta);
    }
    const double share = optimizerShare(run);
    for (StageMemory& memory : costs.memory) {
        memory.gradient = memory.weight;
        memory.optimizer = std::llround(share * static_cast<double>(memory.weight));
    }
}

} // namespace

Result<CostModel> costsOf(const Run& run)
{
    if (run.costs) {
        CostModel costs = *run.costs;
        if (run.info.provenance == Provenance::Measured) completeState(costs, run);
        return costs;
    }
    return fitCosts(*run.timeline, std::clamp(run.info.warmupSteps, 0, std::max(0, run.timeline->steps() - 1)));
}

} // namespace stagewright
