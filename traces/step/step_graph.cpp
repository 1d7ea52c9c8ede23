#include "traces/step/step_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "schedules/base/median.h"
#include "schedules/model/partial_backward.h"

namespace stagewright {

namespace {

// Key of comparable durations: the ops of a slot without their microbatches; [0] and [1] are the stages, [2] the rank.
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

struct KindHash {
    std::size_t operator()(const SlotKind& kind) const
    {
        std::uint64_t hash = 0;
        for (const int part : kind) hash = (hash ^ static_cast<std::uint32_t>(part)) * 0x9e3779b97f4a7c15u;
        return hash ^ (hash >> 32);
    }
};
using KindNumbers = std::unordered_map<SlotKind, std::uint32_t, KindHash>;

std::uint32_t numberOf(KindNumbers& numbers, const SlotKind& kind)
{
    return numbers.try_emplace(kind, static_cast<std::uint32_t>(numbers.size())).first->second;
}

} // namespace

StepGraph::StepGraph(const Timeline& timeline, const StepOps& ops)
    : m_timeline(timeline), m_stepInputs(ops), m_begin(ops.windowBegin())
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
            if (m_runs.empty() || m_runs.back().first + m_runs.back().count != all[i])
                m_runs.push_back({all[i], 0, m_slotOfRun.size()});
            ++m_runs.back().count;
            m_slotOfRun.push_back(static_cast<SlotId>(m_slots.size() - 1));
        }
    }
    std::sort(m_runs.begin(), m_runs.end(), [](const Run& a, const Run& b) { return a.first < b.first; });

    m_firstInput.push_back(0);
    std::vector<std::size_t> position(m_scenario.order.size(), 0); // slots are in the order of the rank's spans
    for (SlotId id = 0; id < m_slots.size(); ++id) {
        for (const SpanId member : {m_slots[id].first, m_slots[id].second}) {
            if (member == noSpan || !ops.isBusySpan(member)) continue;
            const auto& busy = ops.busy(m_slots[id].rank);
            std::size_t& at = position[static_cast<std::size_t>(m_slots[id].rank)];
            if (at >= busy.size() || busy[at] != member)
                at = static_cast<std::size_t>(std::find(busy.begin(), busy.end(), member) - busy.begin());
            if (at == busy.size()) continue;
            for (const Input& input : m_stepInputs.of(m_slots[id].rank, at++)) {
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
    sortSlots();
}

void StepGraph::sortSlots()
{
    KindNumbers places, sorts;
    m_place.assign(m_slots.size(), 0);
    for (SlotId id = 0; id < m_slots.size(); ++id) {
        if (!m_slots[id].busy) continue;
        const SlotKind kind = kindOf(m_timeline, m_slots[id]);
        m_place[id] = numberOf(places, kind);
        if (m_place[id] == m_sort.size()) m_sort.push_back(numberOf(sorts, withoutPlace(kind)));
    }
    m_sorts = static_cast<std::uint32_t>(sorts.size());
}

SlotId StepGraph::slotOf(SpanId span) const
{
    const auto after =
        std::upper_bound(m_runs.begin(), m_runs.end(), span, [](SpanId id, const Run& run) { return id < run.first; });
    if (after == m_runs.begin() || span - (after - 1)->first >= (after - 1)->count) return noSlot;
    return m_slotOfRun[(after - 1)->at + (span - (after - 1)->first)];
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
    std::vector<std::vector<Nanos>> values(m_sort.size());
    for (SlotId id = 0; id < m_slots.size(); ++id)
        if (m_slots[id].busy) values[m_place[id]].push_back(m_scenario.duration[id]);
    std::vector<Nanos> median;
    median.reserve(values.size());
    for (auto& of : values) median.push_back(lowerMedian(std::move(of)));
    std::vector<Nanos> out = m_scenario.duration;
    for (SlotId id = 0; id < m_slots.size(); ++id)
        if (m_slots[id].busy) out[id] = median[m_place[id]];
    return out;
}

std::vector<Nanos> StepGraph::meanDurations(const std::vector<Nanos>& medians) const
{
    struct Sum {
        Nanos total = 0;
        Nanos count = 0;
    };
    std::vector<Sum> sums(m_sorts);
    std::vector<bool> counted(m_sort.size(), false); // one entry a place, however many slots it has
    for (SlotId id = 0; id < m_slots.size(); ++id) {
        if (!m_slots[id].busy || counted[m_place[id]]) continue;
        counted[m_place[id]] = true;
        Sum& sum = sums[m_sort[m_place[id]]];
        sum.total += medians[id];
        ++sum.count;
    }
    std::vector<Nanos> out = m_scenario.duration;
    for (SlotId id = 0; id < m_slots.size(); ++id) {
        if (!m_slots[id].busy) continue;
        const Sum& sum = sums[m_sort[m_place[id]]];
        out[id] = (sum.total + sum.count / 2) / sum.count;
    }
    return out;
}

// Overlapped pairs are of two stages: they say nothing of either.
std::vector<RankSlowness> StepGraph::slowness(const std::vector<Nanos>& medians) const
{
    const Schedule* schedule = m_timeline.schedule().get();
    if (schedule && static_cast<std::size_t>(schedule->ranks) != m_scenario.order.size()) schedule = nullptr;
    const std::vector<int> back = schedule ? firstStagesBack(*schedule) : std::vector<int>();
    std::vector<ChunkWork> work;
    std::vector<std::size_t> ofPlace(m_sort.size(), 0); // 1 + its entry
    for (SlotId id = 0; id < m_slots.size(); ++id) {
        if (!m_slots[id].busy || m_slots[id].second != noSpan) continue;
        std::size_t& entry = ofPlace[m_place[id]];
        if (entry > 0) {
            ++work[entry - 1].count;
            continue;
        }
        const int stage = m_timeline.spans()[m_slots[id].first].op.stage;
        // like is compared with like
        const auto share =
            static_cast<std::int64_t>(schedule ? backwardShare(*schedule, back, m_slots[id].rank, stage) : 0);
        const std::int64_t sizes = std::max<std::int64_t>(1, std::ssize(m_timeline.sizes()));
        const std::int64_t size = schedule ? sizeClass(m_timeline.sizes(), schedule->replicaOf(m_slots[id].rank)) : 0;
        work.push_back({m_slots[id].rank, stage,
                        (3 * static_cast<std::int64_t>(m_sort[m_place[id]]) + share) * sizes + size, 1, medians[id]});
        entry = work.size();
    }
    return slownessOf(work, static_cast<int>(m_scenario.order.size()));
}

// Only stages in twos or more show a long microbatch: on one alone a long op may be due to its rank. A factor is the
// least of its stages', and counts beyond twice what stages usually disagree by.
std::vector<double> StepGraph::longMicrobatches(const std::vector<Nanos>& medians) const
{
    struct Work {
        int microbatch = 0;
        double own = 0;
        double usual = 0;
    };
    std::unordered_map<std::uint64_t, std::size_t> places;
    std::vector<Work> work; // by microbatch and stage
    for (SlotId id = 0; id < m_slots.size(); ++id) {
        if (!m_slots[id].busy || m_slots[id].second != noSpan) continue;
        const Op& op = m_timeline.spans()[m_slots[id].first].op;
        if (op.microbatch < 0 || op.count != 1) continue;
        const auto key = (static_cast<std::uint64_t>(op.microbatch) << 16) | op.stage;
        const std::size_t place = places.try_emplace(key, work.size()).first->second;
        if (place == work.size()) work.push_back({op.microbatch, 0, 0});
        work[place].own += static_cast<double>(m_scenario.duration[id]);
        work[place].usual += static_cast<double>(medians[id]);
    }
    struct Factors {
        int stages = 0;
        double least = std::numeric_limits<double>::max();
        double most = 0;
    };
    std::unordered_map<int, Factors> factors; // by microbatch
    for (const Work& of : work) {
        Factors& all = factors[of.microbatch];
        const double factor = of.usual > 0 ? of.own / of.usual : 1.0;
        ++all.stages;
        all.least = std::min(all.least, factor);
        all.most = std::max(all.most, factor);
    }
    std::erase_if(factors, [](const auto& of) { return of.second.stages < 2; });
    std::vector<double> apart; // half of the way between a microbatch's stages
    for (const auto& [microbatch, all] : factors) apart.push_back((all.most - all.least) / 2);
    const double noise = apart.empty() ? 0 : lowerMedian(std::move(apart));
    std::vector<double> out;
    for (const auto& [microbatch, all] : factors) {
        if (all.least <= slowRank || all.least - 1 <= 2 * noise) continue;
        out.resize(std::max(out.size(), static_cast<std::size_t>(microbatch) + 1), 1);
        out[static_cast<std::size_t>(microbatch)] = all.least;
    }
    return out;
}

StepLevels StepGraph::levels() const
{
    StepLevels out;
    out.median = medianDurations();
    out.longer = longMicrobatches(out.median);
    out.alike = m_scenario.duration;
    for (SlotId id = 0; id < m_slots.size() && !out.longer.empty(); ++id) {
        if (!m_slots[id].busy) continue;
        const auto isLong = [&](SpanId span) {
            return span != noSpan && out.longerOf(m_timeline.spans()[span].op.microbatch) > 1;
        };
        if (isLong(m_slots[id].first) || isLong(m_slots[id].second))
            out.alike[id] = std::min(out.alike[id], out.median[id]);
    }
    out.ranks = slowness(out.median);
    out.even = out.median;
    for (SlotId id = 0; id < m_slots.size(); ++id)
        if (m_slots[id].busy && out.slow(m_slots[id].rank))
            out.even[id] = std::llround(static_cast<double>(out.median[id]) /
                                        out.ranks[static_cast<std::size_t>(m_slots[id].rank)].factor);
    out.mean = meanDurations(out.even);
    return out;
}

std::vector<Nanos> StepGraph::slack() const
{
    std::vector<Nanos> latestEnd(m_slots.size(), m_begin + m_makespan);
    for (SlotId id = 0; id < m_slots.size(); ++id) // work apart may end after the window: it delays nothing by itself
        if (!m_slots[id].busy) latestEnd[id] = std::max(latestEnd[id], m_timeline.spans()[m_slots[id].first].end);
    std::vector<Nanos> out(m_slots.size(), 0);
    for (std::size_t i = m_order.size(); i-- > 0;) {
        const SlotId id = m_order[i];
        // latest max(before, inputs)
        const Nanos could = latestEnd[id] - m_scenario.duration[id] - m_scenario.delay[id];
        out[id] = latestEnd[id] - m_timeline.spans()[m_slots[id].first].end;
        if (m_before[id] != noSlot) latestEnd[m_before[id]] = std::min(latestEnd[m_before[id]], could);
        for (std::size_t n = m_firstInput[id]; n < m_firstInput[id + 1]; ++n)
            latestEnd[m_inputs[n].from] = std::min(latestEnd[m_inputs[n].from], could - m_scenario.transfer[n]);
    }
    return out;
}

} // namespace stagewright
