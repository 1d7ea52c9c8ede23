#include "schedules/timeline/state_memory.h"

#include <algorithm>
#include <array>

#include "schedules/model/collective_costs.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"

namespace stagewright {

namespace {

class StateMemory {
public:
    StateMemory(TimelineBuilder& builder, const Schedule& schedule, const SimResult& result, const CostModel& costs)
        : m_builder(builder), m_schedule(schedule), m_result(result), m_costs(costs),
          m_stages(std::min(schedule.stages, costs.stages()))
    {
    }

    void run()
    {
        for (int stage = 0; stage < m_stages; ++stage)
            for (const int rank : holdersOf(m_schedule.placement, stage)) {
                const HeldState held = heldState(m_costs, m_schedule, stage, rank);
                add(rank, stage, 0, MemoryCategory::Weights, held.weights);
                add(rank, stage, 0, MemoryCategory::Gradients, held.gradients);
                add(rank, stage, 0, MemoryCategory::Optimizer, held.optimizer);
            }
        for (int rank = 0; rank < m_schedule.ranks; ++rank) changes(rank);
    }

private:
    // Whether ops change a stage's memory of this category: a stage that is not sharded has all of its state throughout.
    bool changes(MemoryCategory category) const
    {
        const bool shared = m_costs.replicas > 1 || m_schedule.placement.hasCopies();
        switch (category) {
        case MemoryCategory::Activations: return false; // by microbatch, see ActivationRule
        case MemoryCategory::Gathered: return shared && m_costs.sharding.shards(ShardLevel::Weights);
        case MemoryCategory::Gradients: return shared && m_costs.sharding.shards(ShardLevel::Gradients);
        default: return shared || !traitsOf(category).ofSharedState;
        }
    }
    void changes(int rank)
    {
        const auto& ops = m_schedule.order[static_cast<std::size_t>(rank)];
        std::vector<std::array<bool, memoryCategoryCount>> held(static_cast<std::size_t>(m_stages)); // by ops before
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Op& op = ops[i];
            if (op.stage >= m_stages) continue;
            const std::size_t id = m_result.indexOf(rank, i);
            for (const MemoryEffect& effect : ruleOf(op.kind).memory) {
                bool& isHeld = held[op.stage][static_cast<std::size_t>(effect.category)];
                if (!changes(effect.category) || isHeld == effect.takes) continue;
                isHeld = effect.takes;
                const Bytes bytes = shareOf(m_costs.memory[op.stage], effect.share, m_costs.sharding.bucket);
                add(rank, op.stage, effect.atEnd ? m_result.end[id] : m_result.start[id], effect.category,
                    effect.takes ? bytes : -bytes);
            }
        }
    }

    void add(int rank, int stage, Nanos time, MemoryCategory category, Bytes bytes)
    {
        if (bytes == 0) return;
        MemoryEvent event;
        event.time = time;
        event.delta = bytes;
        event.rank = static_cast<std::uint16_t>(rank);
        event.stage = static_cast<std::uint16_t>(stage);
        event.category = category;
        m_builder.addMemory(event);
    }

    TimelineBuilder& m_builder;
    const Schedule& m_schedule;
    const SimResult& m_result;
    const CostModel& m_costs;
    int m_stages;
};

} // namespace

void addStateMemory(TimelineBuilder& builder, const Schedule& schedule, const SimResult& result, const CostModel& costs)
{
    StateMemory(builder, schedule, result, costs).run();
}

} // namespace stagewright
