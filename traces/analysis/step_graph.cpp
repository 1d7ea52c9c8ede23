#include "traces/analysis/step_graph.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

namespace stagewright {

namespace {

// What makes durations comparable: the ops of a slot without their microbatches; [0] and [1] are the stages, [2] the rank.
using SlotKind = std::array<int, 11>;

SlotKind kindOf(const Timeline& timeline, const Slot& slot)
{
    SlotKind kind{};
    const Op& a = timeline.spans()[slot.first].op;
    kind[0] = a.stage;
    kind[2] = slot.rank;
    kind[3] = static_cast<int>(a.kind);
    kind[4] = a.count;
    kind[5] = a.slice;
    kind[6] = a.half;
    if (slot.second == noSpan) return kind;
    const Op& b = timeline.spans()[slot.second].op;
    kind[1] = b.stage;
    kind[7] = 1 + static_cast<int>(b.kind);
    kind[8] = b.count;
    kind[9] = b.slice;
    kind[10] = b.half;
    return kind;
}

SlotKind withoutPlace(SlotKind kind)
{
    kind[0] = kind[1] = kind[2] = 0;
    return kind;
}

} // namespace

StepGraph::StepGraph(const Timeline& timeline, const StepOps& ops) : m_timeline(timeline), m_begin(ops.windowBegin())
{
    const auto spans = timeline.spans();
    m_scenario.order.resize(static_cast<std::size_t>(ops.ranks()));
    for (int rank = 0; rank < ops.ranks(); ++rank) {
        const auto& all = ops.all(rank);
        for (std::size_t i = 0; i < all.size(); ++i) {
            const Span& span = spans[all[i]];
            auto& order = m_scenario.order[static_cast<std::size_t>(rank)];
            const bool pair = !order.empty() && span.end > span.start && m_slots[order.back()].second == noSpan &&
                              spans[m_slots[order.back()].first].start == span.start &&
                              spans[m_slots[order.back()].first].end == span.end;
            if (!pair) {
                order.push_back(static_cast<SlotId>(m_slots.size()));
                m_before.push_back(order.size() > 1 ? order[order.size() - 2] : noSlot);
                m_slots.push_back({all[i], noSpan, rank, false});
                m_scenario.duration.push_back(span.duration());
            } else {
                m_slots.back().second = all[i];
            }
            m_slots.back().busy = m_slots.back().busy || ops.isBusySpan(all[i]);
            m_slotOfSpan.emplace_back(all[i], static_cast<SlotId>(m_slots.size() - 1));
        }
    }
    std::sort(m_slotOfSpan.begin(), m_slotOfSpan.end());

    m_firstInput.push_back(0);
    for (SlotId id = 0; id < m_slots.size(); ++id) {
        for (const SpanId member : {m_slots[id].first, m_slots[id].second}) {
            if (member == noSpan || !ops.isBusySpan(member)) continue;
            for (const Input& input : ops.inputs(member)) {
                const SlotId from = slotOf(input.from);
                // An input that began after its consumer is an error of clocks or of the recording, no dependency.
                if (from == noSlot || from == id || spans[input.from].start > spans[member].start) continue;
                m_inputs.push_back({from, id});
                m_scenario.transfer.push_back(input.arrival - input.ready);
            }
        }
        m_firstInput.push_back(m_inputs.size());
    }

    m_scenario.delay.assign(m_slots.size(), 0);
    Nanos last = m_begin;
    for (SlotId id = 0; id < m_slots.size(); ++id) {
        const Span& span = spans[m_slots[id].first];
        Nanos could = m_before[id] == noSlot ? m_begin : spans[m_slots[m_before[id]].first].end;
        for (std::size_t i = m_firstInput[id]; i < m_firstInput[id + 1]; ++i)
            could = std::max(could, spans[m_slots[m_inputs[i].from].first].end + m_scenario.transfer[i]);
        m_scenario.delay[id] = span.start - could;
        if (m_slots[id].busy) last = std::max(last, span.end);
    }
    m_makespan = last - m_begin;
    m_order = topologicalOrder(m_scenario.order);
}

SlotId StepGraph::slotOf(SpanId span) const
{
    const auto found = std::lower_bound(m_slotOfSpan.begin(), m_slotOfSpan.end(), std::pair(span, SlotId{0}));
    return found == m_slotOfSpan.end() || found->first != span ? noSlot : found->second;
}

SlotId StepGraph::releasedBy(SlotId id) const
{
    const auto endOf = [&](SlotId slot) { return m_timeline.spans()[m_slots[slot].first].end; };
    SlotId from = m_before[id];
    Nanos released = from == noSlot ? m_begin : endOf(from);
    for (std::size_t i = m_firstInput[id]; i < m_firstInput[id + 1]; ++i) {
        const Nanos arrival = endOf(m_inputs[i].from) + m_scenario.transfer[i];
        if (from != noSlot && arrival <= released) continue;
        from = m_inputs[i].from;
        released = arrival;
    }
    return from;
}

std::vector<SlotId> StepGraph::topologicalOrder(const std::vector<std::vector<SlotId>>& order) const
{
    std::vector<std::uint32_t> waits(m_slots.size(), 0);
    std::vector<SlotId> next(m_slots.size(), noSlot);
    for (const auto& row : order)
        for (std::size_t i = 0; i + 1 < row.size(); ++i) {
            next[row[i]] = row[i + 1];
            ++waits[row[i + 1]];
        }
    std::vector<std::uint32_t> firstConsumer(m_slots.size() + 1, 0);
    for (const SlotInput& input : m_inputs) {
        ++waits[input.to];
        ++firstConsumer[input.from + 1];
    }
    for (std::size_t i = 0; i < m_slots.size(); ++i) firstConsumer[i + 1] += firstConsumer[i];
    std::vector<SlotId> consumers(m_inputs.size());
    std::vector<std::uint32_t> at(firstConsumer.begin(), firstConsumer.end() - 1);
    for (const SlotInput& input : m_inputs) consumers[at[input.from]++] = input.to;

    std::vector<SlotId> out;
    out.reserve(m_slots.size());
    for (SlotId id = 0; id < m_slots.size(); ++id)
        if (waits[id] == 0) out.push_back(id);
    const auto release = [&](SlotId id) {
        if (--waits[id] == 0) out.push_back(id);
    };
    for (std::size_t i = 0; i < out.size(); ++i) {
        const SlotId id = out[i];
        if (next[id] != noSlot) release(next[id]);
        for (std::uint32_t c = firstConsumer[id]; c < firstConsumer[id + 1]; ++c) release(consumers[c]);
    }
    if (out.size() != m_slots.size()) out.clear();
    return out;
}

std::optional<StepReplay> StepGraph::run(const StepScenario& scenario) const
{
    const bool sameOrder = scenario.order == m_scenario.order;
    std::vector<SlotId> changed;
    std::vector<SlotId> before;
    if (!sameOrder) {
        changed = topologicalOrder(scenario.order);
        before.assign(m_slots.size(), noSlot);
        for (const auto& row : scenario.order)
            for (std::size_t i = 1; i < row.size(); ++i) before[row[i]] = row[i - 1];
    }
    const auto& order = sameOrder ? m_order : changed;
    const auto& prior = sameOrder ? m_before : before;
    if (order.size() != m_slots.size()) return std::nullopt;
    StepReplay out;
    out.start.resize(m_slots.size());
    out.end.resize(m_slots.size());
    Nanos first = std::numeric_limits<Nanos>::max();
    Nanos last = std::numeric_limits<Nanos>::min();
    for (const SlotId id : order) {
        Nanos start = prior[id] == noSlot ? m_begin : out.end[prior[id]];
        for (std::size_t i = m_firstInput[id]; i < m_firstInput[id + 1]; ++i)
            start = std::max(start, out.end[m_inputs[i].from] + scenario.transfer[i]);
        out.start[id] = start + scenario.delay[id];
        out.end[id] = out.start[id] + scenario.duration[id];
        if (!m_slots[id].busy) continue;
        first = std::min(first, out.start[id]);
        last = std::max(last, out.end[id]);
    }
    if (first <= last) out.makespan = last - first;
    return out;
}

std::vector<Nanos> StepGraph::medianDurations() const
{
    std::map<SlotKind, std::vector<SlotId>> groups;
    for (SlotId id = 0; id < m_slots.size(); ++id)
        if (m_slots[id].busy) groups[kindOf(m_timeline, m_slots[id])].push_back(id);
    std::vector<Nanos> out = m_scenario.duration;
    std::vector<Nanos> values;
    for (const auto& [kind, members] : groups) {
        values.clear();
        for (const SlotId id : members) values.push_back(m_scenario.duration[id]);
        const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
        std::nth_element(values.begin(), middle, values.end());
        for (const SlotId id : members) out[id] = *middle;
    }
    return out;
}

std::vector<Nanos> StepGraph::meanDurations() const
{
    struct Sum {
        Nanos total = 0;
        Nanos count = 0;
    };
    const std::vector<Nanos> medians = medianDurations();
    std::map<SlotKind, Nanos> places; // one entry a place, however many slots it has
    for (SlotId id = 0; id < m_slots.size(); ++id)
        if (m_slots[id].busy) places[kindOf(m_timeline, m_slots[id])] = medians[id];
    std::map<SlotKind, Sum> sums;
    for (const auto& [kind, median] : places) {
        Sum& sum = sums[withoutPlace(kind)];
        sum.total += median;
        ++sum.count;
    }
    std::vector<Nanos> out = m_scenario.duration;
    for (SlotId id = 0; id < m_slots.size(); ++id) {
        if (!m_slots[id].busy) continue;
        const Sum& sum = sums[withoutPlace(kindOf(m_timeline, m_slots[id]))];
        out[id] = (sum.total + sum.count / 2) / sum.count;
    }
    return out;
}

std::vector<Nanos> StepGraph::slack() const
{
    std::vector<Nanos> latestEnd(m_slots.size(), m_begin + m_makespan);
    for (SlotId id = 0; id < m_slots.size(); ++id) // work apart may end after the window: it holds up nobody by itself
        if (!m_slots[id].busy) latestEnd[id] = std::max(latestEnd[id], m_timeline.spans()[m_slots[id].first].end);
    std::vector<Nanos> out(m_slots.size(), 0);
    for (std::size_t i = m_order.size(); i-- > 0;) {
        const SlotId id = m_order[i];
        const Nanos could = latestEnd[id] - m_scenario.duration[id] - m_scenario.delay[id]; // latest max(before, inputs)
        out[id] = latestEnd[id] - m_timeline.spans()[m_slots[id].first].end;
        if (m_before[id] != noSlot) latestEnd[m_before[id]] = std::min(latestEnd[m_before[id]], could);
        for (std::size_t n = m_firstInput[id]; n < m_firstInput[id + 1]; ++n)
            latestEnd[m_inputs[n].from] = std::min(latestEnd[m_inputs[n].from], could - m_scenario.transfer[n]);
    }
    return out;
}

} // namespace stagewright
