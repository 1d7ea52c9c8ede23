#include <algorithm>
#include <map>
#include <tuple>

#include "schedules/kinds.h"
#include "widgets/edit/schedule_editor.h"

namespace stagewright {
namespace {

// What an op makes known: one entry per (kind, stage, microbatch, slice, half).
using Key = std::tuple<OpKind, int, int, int>;

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
                    const Op& op = m_schedule.order[r][head[r]];
                    Nanos ready = clock[r];
                    if (!inputs(op, static_cast<int>(r), ready) && !force) break;
                    force = false;
                    const std::size_t index = result.offsets[r] + head[r];
                    result.start[index] = ready;
                    result.end[index] = ready + durations[index];
                    clock[r] = result.end[index];
                    tell(op, static_cast<int>(r), result.end[index]);
                    ++head[r];
                    --left;
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
    bool inputs(const Op& op, int rank, Nanos& ready) const
    {
        const KindRule& rule = ruleOf(op.kind);
        if (!rule.takesMicrobatch) return true;
        bool all = true;
        for (int n = 0; n < rule.needCount; ++n) {
            const Need& need = rule.needs[static_cast<std::size_t>(n)];
            const int stage = op.stage + need.stageOffset;
            if (stage < 0 || stage >= m_schedule.stages) continue;
            for (int m = op.microbatch; m < op.microbatch + op.count; ++m) {
                auto found = m_done.find({need.kind, stage, m, op.slice});
                if (found == m_done.end()) found = m_done.find({need.orKind, stage, m, op.slice});
                if (found == m_done.end()) {
                    all = false;
                    continue;
                }
                Bytes bytes = 0;
                if (!m_costs.memory.empty()) {
                    const auto sender = static_cast<std::size_t>(std::min<int>(stage, op.stage));
                    if (sender < m_costs.memory.size()) bytes = m_costs.memory[sender].boundary;
                }
                const Nanos delay =
                    found->second.rank == rank ? 0 : m_costs.links.delay(found->second.rank, rank, bytes);
                ready = std::max(ready, found->second.end + delay);
            }
        }
        return all;
    }

    void tell(const Op& op, int rank, Nanos end)
    {
        if (!ruleOf(op.kind).takesMicrobatch) return;
        for (int m = op.microbatch; m < op.microbatch + op.count; ++m)
            m_done[{op.kind, op.stage, m, op.slice}] = {end, rank};
    }

    const Schedule& m_schedule;
    const CostModel& m_costs;
    std::map<Key, Done> m_done;
};

} // namespace

SimResult placeRelaxed(const Schedule& schedule, const CostModel& costs) { return Relaxed(schedule, costs).run(); }

} // namespace stagewright
