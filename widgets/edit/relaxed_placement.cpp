#include <algorithm>
#include <map>
#include <tuple>

#include "schedules/kinds.h"
#include "widgets/edit/schedule_editor.h"

namespace stagewright {
namespace {

// What an op makes known: one entry per (kind, stage, microbatch, slice, half).
using Key = std::tuple<OpKind, int, int, int, int>;

struct Done {
    Nanos end = 0;
    int rank = 0;
};

class Relaxed {
public:
    Relaxed(const Schedule& schedule, const CostModel& costs) : m_schedule(schedule), m_costs(costs) {}

    SimResult run()
    {
        SimResult result;
        const auto ranks = m_schedule.order.size();
        result.offsets.assign(1, 0);
        for (const auto& row : m_schedule.order)
            result.offsets.push_back(result.offsets.back() + row.size());
        result.start.assign(result.offsets.back(), 0);
        result.end.assign(result.offsets.back(), 0);
        const std::vector<Nanos> durations = durationsOf(m_schedule, m_costs);

        std::vector<std::size_t> head(ranks, 0);
        std::vector<Nanos> clock(ranks, 0);
        std::size_t left = result.offsets.back();
        bool force = false;
        while (left > 0) {
            bool moved = false;
            for (std::size_t r = 0; r < ranks; ++r) {
                while (head[r] < m_schedule.order[r].size()) {
                    const int rank = static_cast<int>(r);
                    const bool paired = m_schedule.isPaired(rank, head[r]);
                    Nanos ready = clock[r];
                    bool there = true; // of a pair the inputs of both
                    for (std::size_t i = head[r]; i <= head[r] + (paired ? 1 : 0); ++i)
                        there = inputs(m_schedule.order[r][i], rank, ready) && there;
                    if (!there && !force) break;
                    force = false;
                    const std::size_t first = result.offsets[r] + head[r];
                    const bool serial = paired && m_schedule.order[r][head[r]].kind == OpKind::Recompute;
                    const Nanos both = ready + durations[first] + (paired ? durations[first + 1] : 0);
                    for (std::size_t index = first; index <= first + (paired ? 1 : 0); ++index) {
                        result.start[index] = serial && index > first ? result.end[first] : ready;
                        result.end[index] = serial && index == first ? ready + durations[first] : both;
                        tell(m_schedule.order[r][head[r]], rank, result.end[index]);
                        ++head[r];
                        --left;
                    }
                    clock[r] = both;
                    moved = true;
                }
            }
            force = !moved;
        }
        for (std::size_t r = 0; r < ranks; ++r) {
            const std::size_t first = result.offsets[r];
            const std::size_t last = result.offsets[r + 1];
            if (first == last) continue;
            result.makespan = std::max(result.makespan, result.end[last - 1]);
            result.span = std::max(result.span, result.end[last - 1] - result.start[first]);
        }
        result.peakActivation = activationPeaks(m_schedule, m_costs);
        return result;
    }

private:
    // Raises `ready` to the arrival of each known input; false where one is missing.
    bool inputs(const Op& op, int rank, Nanos& ready)
    {
        const KindRule& rule = ruleOf(op.kind);
        if (op.kind == OpKind::ReduceGrad) return meets(op.stage, rank, ready);
        if (!rule.takesMicrobatch) return true;
        bool all = true;
        for (int n = 0; n < rule.needCount; ++n) {
            const Need& need = rule.needs[static_cast<std::size_t>(n)];
            const int stage = op.stage + need.stageOffset;
            if (stage < 0 || stage >= m_schedule.stages) continue;
            for (int m = op.microbatch; m < op.microbatch + op.count; ++m) {
                if (op.half != 0 && take(need, stage, m, op.slice, op.half, op.stage, rank, ready)) continue;
                if (take(need, stage, m, op.slice, 0, op.stage, rank, ready)) continue;
                const bool halves = op.half == 0 && take(need, stage, m, op.slice, 1, op.stage, rank, ready) &&
                                    take(need, stage, m, op.slice, 2, op.stage, rank, ready);
                all = all && halves;
            }
        }
        return all;
    }

    // Copies of a stage sum their gradients together: all wait for the last of them.
    bool meets(int stage, int rank, Nanos& ready)
    {
        auto& arrived = m_arrived[stage];
        arrived.emplace(rank, ready);
        bool all = true;
        for (const auto& copy : m_schedule.placement.copiesOf(stage)) {
            const auto at = arrived.find(copy.rank);
            all = all && at != arrived.end();
            if (at != arrived.end()) ready = std::max(ready, at->second + m_costs.links.delay(copy.rank, rank, 0));
        }
        return all;
    }

    bool take(const Need& need, int stage, int microbatch, int slice, int half, int ownStage, int rank, Nanos& ready) const
    {
        auto found = m_done.find({need.kind, stage, microbatch, slice, half});
        if (found == m_done.end()) found = m_done.find({need.orKind, stage, microbatch, slice, half});
        if (found == m_done.end()) return false;
        Bytes bytes = 0;
        if (!m_costs.memory.empty()) {
            const auto sender = static_cast<std::size_t>(std::min(stage, ownStage));
            if (sender < m_costs.memory.size()) bytes = m_costs.memory[sender].boundary;
        }
        const Nanos delay = found->second.rank == rank ? 0 : m_costs.links.delay(found->second.rank, rank, bytes);
        ready = std::max(ready, found->second.end + delay);
        return true;
    }

    void tell(const Op& op, int rank, Nanos end)
    {
        if (!ruleOf(op.kind).takesMicrobatch) return;
        for (int m = op.microbatch; m < op.microbatch + op.count; ++m)
            m_done[{op.kind, op.stage, m, op.slice, op.half}] = {end, rank};
    }

    const Schedule& m_schedule;
    const CostModel& m_costs;
    std::map<Key, Done> m_done;
    std::map<int, std::map<int, Nanos>> m_arrived; // at the reduction of a stage, by rank
};

} // namespace

SimResult placeRelaxed(const Schedule& schedule, const CostModel& costs) { return Relaxed(schedule, costs).run(); }

} // namespace stagewright
