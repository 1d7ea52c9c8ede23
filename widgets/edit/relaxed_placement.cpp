#include <algorithm>
#include <array>
#include <map>

#include "schedules/activation.h"
#include "schedules/kinds.h"
#include "widgets/edit/schedule_editor.h"

namespace stagewright {
namespace {

struct Done {
    Nanos end = -1; // < 0: not yet
    int rank = 0;
};

// What an op makes known: one entry per (kind, stage, microbatch, slice, half) of the kinds that occur.
class DoneTable {
public:
    explicit DoneTable(const Schedule& schedule)
    {
        m_kindAt.fill(-1);
        int kinds = 0, stages = 0, microbatches = 0;
        for (const auto& row : schedule.order)
            for (const Op& op : row) {
                if (!ruleOf(op.kind).takesMicrobatch || op.microbatch < 0) continue;
                if (m_kindAt[static_cast<std::size_t>(op.kind)] < 0) m_kindAt[static_cast<std::size_t>(op.kind)] = kinds++;
                stages = std::max(stages, op.stage + 1);
                microbatches = std::max(microbatches, op.microbatch + op.count);
                m_slices = std::max(m_slices, op.slice + 2);
                if (op.half != 0) m_halves = 3;
            }
        m_stages = std::min(stages, std::max(0, schedule.stages)); // what lies outside the shape is not there
        m_microbatches = std::min(microbatches, std::max(0, schedule.microbatches));
        m_entries.resize(static_cast<std::size_t>(kinds) * static_cast<std::size_t>(m_stages) * static_cast<std::size_t>(m_microbatches) * static_cast<std::size_t>(m_slices) * static_cast<std::size_t>(m_halves));
    }
    Done* at(OpKind kind, int stage, int microbatch, int slice, int half)
    {
        const int k = m_kindAt[static_cast<std::size_t>(kind)];
        if (k < 0 || stage < 0 || stage >= m_stages || microbatch < 0 || microbatch >= m_microbatches || slice + 2 > m_slices || half >= m_halves) return nullptr;
        const auto place = (((static_cast<std::size_t>(k) * static_cast<std::size_t>(m_stages) + static_cast<std::size_t>(stage)) * static_cast<std::size_t>(m_microbatches) + static_cast<std::size_t>(microbatch)) *
                                static_cast<std::size_t>(m_slices) + static_cast<std::size_t>(slice + 1)) * static_cast<std::size_t>(m_halves) + static_cast<std::size_t>(half);
        return &m_entries[place];
    }

private:
    std::array<int, opKindCount> m_kindAt{};
    int m_stages = 0, m_microbatches = 0, m_slices = 1, m_halves = 1;
    std::vector<Done> m_entries;
};

class Relaxed {
public:
    Relaxed(const Schedule& schedule, const CostModel& costs) : m_schedule(schedule), m_costs(costs), m_done(schedule) {}

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
        result.peakActivation = peaksOf(m_schedule, ActivationRule(m_schedule, m_costs, Unheld::LeftOut));
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

    bool take(const Need& need, int stage, int microbatch, int slice, int half, int ownStage, int rank, Nanos& ready)
    {
        const Done* found = m_done.at(need.kind, stage, microbatch, slice, half);
        if (found == nullptr || found->end < 0) found = m_done.at(need.orKind, stage, microbatch, slice, half);
        if (found == nullptr || found->end < 0) return false;
        Bytes bytes = 0;
        if (!m_costs.memory.empty()) {
            const auto sender = static_cast<std::size_t>(std::min(stage, ownStage));
            if (sender < m_costs.memory.size()) bytes = m_costs.memory[sender].boundary;
        }
        const Nanos delay = found->rank == rank ? 0 : m_costs.links.delay(found->rank, rank, bytes);
        ready = std::max(ready, found->end + delay);
        return true;
    }

    void tell(const Op& op, int rank, Nanos end)
    {
        if (!ruleOf(op.kind).takesMicrobatch) return;
        for (int m = op.microbatch; m < op.microbatch + op.count; ++m)
            if (Done* entry = m_done.at(op.kind, op.stage, m, op.slice, op.half)) *entry = {end, rank};
    }

    const Schedule& m_schedule;
    const CostModel& m_costs;
    DoneTable m_done;
    std::map<int, std::map<int, Nanos>> m_arrived; // at the reduction of a stage, by rank
};

} // namespace

SimResult placeRelaxed(const Schedule& schedule, const CostModel& costs) { return Relaxed(schedule, costs).run(); }

} // namespace stagewright
