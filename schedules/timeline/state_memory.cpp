#include "schedules/timeline/state_memory.h"

#include <algorithm>

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
        const bool shared = m_costs.replicas > 1 || m_schedule.placement.hasCopies();
        if (!shared) return;
        for (int rank = 0; rank < m_schedule.ranks; ++rank) changes(rank);
    }

private:
    void changes(int rank)
    {
        const bool shardedWeights = m_costs.sharding.shards(ShardLevel::Weights);
        const bool shardedGradients = m_costs.sharding.shards(ShardLevel::Gradients);
        const auto& ops = m_schedule.order[static_cast<std::size_t>(rank)];
        std::vector<char> gathered(static_cast<std::size_t>(m_stages), 0);
        std::vector<char> whole(gathered.size(), 0); // gradients
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Op& op = ops[i];
            if (op.stage >= m_stages) continue;
            const std::size_t id = m_result.indexOf(rank, i);
            const StageMemory& memory = m_costs.memory[op.stage];
            char& isGathered = gathered[op.stage];
            char& isWhole = whole[op.stage];
            if (isGather(op.kind) && shardedWeights && !isGathered) {
                add(rank, op.stage, m_result.start[id], MemoryCategory::Gathered, memory.weight);
                isGathered = 1;
            } else if (isRelease(op.kind) && isGathered) {
                add(rank, op.stage, m_result.start[id], MemoryCategory::Gathered, -memory.weight);
                isGathered = 0;
            } else if (makesWeightGradient(op.kind) && shardedGradients && !isWhole) {
                add(rank, op.stage, m_result.start[id], MemoryCategory::Gradients, memory.gradient);
                isWhole = 1;
            } else if (isReduction(op.kind)) {
                const Bytes bucket =
                    m_costs.sharding.bucket > 0 ? std::min(m_costs.sharding.bucket, memory.gradient) : memory.gradient;
                add(rank, op.stage, m_result.start[id], MemoryCategory::Buckets, bucket);
                add(rank, op.stage, m_result.end[id], MemoryCategory::Buckets, -bucket);
                if (isWhole) add(rank, op.stage, m_result.end[id], MemoryCategory::Gradients, -memory.gradient);
                isWhole = 0;
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
