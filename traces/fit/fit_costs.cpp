#include "traces/fit/fit_costs.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "schedules/kinds.h"
#include "traces/analysis/step_ops.h"

namespace stagewright {

namespace {

template <typename T>
T median(std::vector<T>& values) // of an even number the lower one: a value that occurred
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

class Fit {
public:
    Fit(const Timeline& timeline, int firstStep) : m_timeline(timeline), m_firstStep(std::max(0, firstStep)) {}

    Result<CostModel> run()
    {
        collectDurations();
        if (m_stages == 0)
            return fail(ErrorCode::Invalid, fmt::format("no op to fit costs from in steps {} to {}", m_firstStep, m_timeline.steps() - 1),
                        "choose a run with complete steps");
        if (m_timeline.schedule()) m_stages = std::max(m_stages, m_timeline.schedule()->stages);
        m_costs = CostModel(m_stages, CostSource::Fitted);
        m_costs.memory.resize(static_cast<std::size_t>(m_stages));
        m_costs.origin = fmt::format("fitted from steps {} to {} of a {} timeline", m_firstStep, m_timeline.steps() - 1,
                                     toText(m_timeline.provenance()));
        m_costs.timeUnit = m_timeline.timeUnit();
        m_costs.memoryUnit = m_timeline.memoryUnit();
        setDurations();
        setLinks();
        setMemory();
        return m_costs;
    }

private:
    static bool whole(const Op& op) { return op.count == 1 && op.half == 0 && op.slice < 0; }

    bool paired(const std::span<const Span>& spans, std::size_t i) const
    {
        const auto same = [&](std::size_t other) {
            return spans[i].end > spans[i].start && spans[other].start == spans[i].start && spans[other].end == spans[i].end;
        };
        return (i > 0 && same(i - 1)) || (i + 1 < spans.size() && same(i + 1));
    }

    void collectDurations()
    {
        for (const Track& track : m_timeline.tracks()) {
            if (track.lane != Lane::Compute) continue;
            const auto spans = m_timeline.spansOf(track);
            for (std::size_t i = 0; i < spans.size(); ++i) {
                const Span& span = spans[i];
                const bool op = span.label == 0 && span.op.kind != OpKind::Filler && (span.flags & SpanDiscarded) == 0;
                if (!op || span.step < m_firstStep || !whole(span.op) || paired(spans, i)) continue;
                if (isBusy(span.op.kind) && span.op.microbatch < 0) continue;
                m_durations[{span.op.kind, span.op.stage, track.rank}].push_back(span.duration());
                if (isBusyOp(span.op)) m_stages = std::max(m_stages, span.op.stage + 1);
            }
        }
    }

    // One duration a (kind, stage) where its ranks agree, else one a rank.
    void setDurations()
    {
        std::map<std::pair<OpKind, int>, std::vector<std::pair<int, Nanos>>> byStage;
        for (auto& [key, durations] : m_durations) {
            const auto& [kind, stage, rank] = key;
            if (stage < m_stages) byStage[{kind, stage}].emplace_back(rank, median(durations));
        }
        for (const auto& [key, ranks] : byStage) {
            const bool alike = std::all_of(ranks.begin(), ranks.end(), [&](const auto& r) { return r.second == ranks[0].second; });
            m_costs.setDuration(key.first, key.second, ranks[0].second);
            if (alike) continue;
            for (const auto& [rank, duration] : ranks) m_costs.setDuration(key.first, key.second, rank, duration);
        }
    }

    // Bandwidth can't be told from messages of one size: all of a transfer is latency.
    void setLinks()
    {
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
        m_costs.links.all.latency = median(all);
        for (auto& [ranks, of] : delays) {
            const Nanos delay = median(of);
            if (delay != m_costs.links.all.latency) m_costs.links.overrides[ranks] = {delay, 0};
        }
    }

    void setMemory()
    {
        collectActivations();
        for (auto& [stage, bytes] : m_activation) m_costs.memory[static_cast<std::size_t>(stage)].activation = median(bytes);
        for (auto& [stage, bytes] : m_freed) m_costs.memory[static_cast<std::size_t>(stage)].freedAtInput = median(bytes);
        // What stays: the balance of each category over the whole run; what comes and goes: its largest event.
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
    }

    // What F takes, and what I gives back: the changes of its own (stage, microbatch) in (start, end] of the op.
    void collectActivations()
    {
        struct Change {
            Nanos time;
            Bytes delta;
        };
        std::map<std::tuple<int, int, int, int>, std::vector<Change>> changes; // (rank, step, stage, microbatch)
        for (const MemoryEvent& event : m_timeline.memory())
            if (event.category == MemoryCategory::Activations && event.step >= m_firstStep)
                changes[{event.rank, event.step, event.stage, event.microbatch}].push_back({event.time, event.delta});
        for (const Track& track : m_timeline.tracks()) {
            if (track.lane != Lane::Compute) continue;
            for (const Span& span : m_timeline.spansOf(track)) {
                const bool takes = span.op.kind == OpKind::Forward;
                const bool gives = span.op.kind == OpKind::InputGrad;
                if ((!takes && !gives) || span.op.microbatch < 0 || span.step < m_firstStep || !whole(span.op)) continue;
                if (span.op.stage >= m_stages) continue;
                const auto found = changes.find({track.rank, span.step, span.op.stage, span.op.microbatch});
                if (found == changes.end()) continue;
                Bytes sum = 0;
                for (const Change& change : found->second)
                    if (change.time > span.start && change.time <= span.end) sum += change.delta;
                if (takes) m_activation[span.op.stage].push_back(sum);
                if (gives) m_freed[span.op.stage].push_back(-sum);
            }
        }
    }

    const Timeline& m_timeline;
    int m_firstStep;
    int m_stages = 0;
    CostModel m_costs;
    std::map<std::tuple<OpKind, int, int>, std::vector<Nanos>> m_durations;
    std::map<int, std::vector<Bytes>> m_activation;
    std::map<int, std::vector<Bytes>> m_freed;
};

} // namespace

Result<CostModel> fitCosts(const Timeline& timeline, int firstStep)
{
    return Fit(timeline, firstStep).run();
}

} // namespace stagewright
