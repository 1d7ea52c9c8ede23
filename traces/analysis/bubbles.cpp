#include "traces/analysis/bubbles.h"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "schedules/base/median.h"
#include "schedules/base/quantity.h"
#include "schedules/model/kinds.h"
#include "schedules/timeline/message_view.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/step_context.h"
#include "traces/run/run_facts.h"
#include "traces/step/whole_step.h"

namespace stagewright {

namespace {

constexpr Nanos never = std::numeric_limits<Nanos>::max();
constexpr Nanos always = std::numeric_limits<Nanos>::min();

// An idle interval before it is split by cause.
struct Idle {
    Nanos start = 0;
    Nanos end = 0;
    bool filler = false;
    SpanId apart = noSpan; // a reduction or optimizer step that ends it
};

struct Candidate { // a later op of the rank that could have run
    Nanos ready = never;
    SpanId span = noSpan;
};

// Activation memory of a rank against a cap.
class MemoryRoom {
public:
    MemoryRoom(const Timeline& timeline, int rank, int step, std::optional<Bytes> cap) : m_cap(cap)
    {
        if (!m_cap) return;
        m_series = memorySeries(timeline, rank);
        std::map<std::pair<int, int>, Bytes> grown;
        for (const MemoryEvent& event : timeline.memoryOf(rank)) {
            if (event.category != MemoryCategory::Activations || event.step != step || event.delta <= 0 ||
                event.microbatch < 0)
                continue;
            Bytes& bytes = grown[{event.stage, event.microbatch}];
            bytes += event.delta;
            Bytes& most = m_bytesOfStage[event.stage];
            most = std::max(most, bytes);
        }
    }

    // Would starting `op` at a time in [from, until) exceed the cap throughout?
    bool exceeded(const Op& op, Nanos from) const
    {
        if (!m_cap || !takesActivation(op.kind)) return false;
        const auto bytes = m_bytesOfStage.find(op.stage);
        if (bytes == m_bytesOfStage.end()) return false;
        auto after = std::upper_bound(m_series.points.begin(), m_series.points.end(), from,
                                      [](Nanos time, const MemoryPoint& point) { return time < point.time; });
        const Bytes inUse = after == m_series.points.begin() ? 0 : std::prev(after)->inUse;
        return inUse + bytes->second > *m_cap;
    }

private:
    std::optional<Bytes> m_cap;
    MemorySeries m_series;
    std::map<int, Bytes> m_bytesOfStage;
};

// The step replayed with microbatches that are alike, with median durations on ranks of equal speed, and with the mean
// over stages: the remaining part of a wait.
class Replays {
public:
    explicit Replays(const StepContext& context)
        : m_timeline(context.timeline()), m_graph(context.graph()), m_levels(context.levels())
    {
        StepScenario scenario = m_graph.asItWas();
        if (m_levels.even == scenario.duration && m_levels.mean == m_levels.even) return;
        if (!m_levels.longer.empty()) {
            scenario.duration = m_levels.alike;
            m_atAlike = m_graph.run(scenario);
        }
        scenario.duration = m_levels.even;
        m_atEven = m_graph.run(scenario);
        scenario.duration = m_levels.mean;
        m_atMean = m_graph.run(scenario);
        m_differ = m_atEven.has_value() && m_atMean.has_value();
    }

    const StepInputs& inputs() const { return m_graph.stepInputs(); }
    const std::vector<RankSlowness>& slowness() const { return m_levels.ranks; }

    const StepLevels& levels() const { return m_levels; }
    // By rank: what its ops of long microbatches take beyond the others.
    std::vector<Nanos> longerBy(int ranks) const
    {
        std::vector<Nanos> out(static_cast<std::size_t>(ranks), 0);
        for (SlotId id = 0; id < m_graph.size() && !m_levels.longer.empty(); ++id)
            if (const int rank = m_graph.slot(id).rank; rank < ranks)
                out[static_cast<std::size_t>(rank)] += m_graph.asItWas().duration[id] - m_levels.alike[id];
        return out;
    }

    enum class Excess : std::uint8_t {
        Imbalance,
        Straggler,
        Microbatch,
    };

    struct Split {
        Nanos microbatch = 0;
        Nanos straggler = 0;
        Nanos imbalance = 0;
    };
    // Splits a wait of `length` for the producers of `next`'s inputs.
    Split splitOf(SpanId next, Nanos length) const
    {
        Split split;
        const SlotId slot = m_graph.slotOf(next);
        if (!m_differ || slot == noSlot || m_graph.before(slot) == noSlot) return split;
        const Nanos even = waitAt(slot, m_atEven->end);
        const Nanos asItWas = waitAsItWas(slot);
        const Nanos alike = m_atAlike ? waitAt(slot, m_atAlike->end) : asItWas;
        split.microbatch = std::clamp<Nanos>(asItWas - alike, 0, length);
        split.straggler = std::clamp<Nanos>(alike - even, 0, length - split.microbatch);
        split.imbalance =
            std::clamp<Nanos>(even - waitAt(slot, m_atMean->end), 0, length - split.microbatch - split.straggler);
        return split;
    }

    // Upstream of the span along what released each op: the op that takes longest beyond its median on a rank as fast
    // as others (straggler), of its kind for a long microbatch, or where that median is most above the mean
    // (imbalance). The span itself where none does.
    SpanId culprit(SpanId producer, Excess excess) const
    {
        const SlotId slot = m_graph.slotOf(producer);
        if (slot == noSlot) return producer;
        const Worst worst = worstUpstream(slot, excess);
        if (worst.excess <= 0) return producer;
        const Slot& found = m_graph.slot(worst.slot);
        const bool second = excess == Excess::Microbatch && found.second != noSpan &&
                            m_levels.longerOf(m_timeline.spans()[found.first].op.microbatch) <= 1;
        return second ? found.second : found.first;
    }

    // For a straggler op: the factor of its rank, if that explains more of its length than the time beyond its own
    // median; else 0.
    double rankFactor(SpanId culprit) const
    {
        const SlotId slot = m_graph.slotOf(culprit);
        if (slot == noSlot || !m_levels.slow(m_graph.slot(slot).rank)) return 0;
        const Nanos own = m_graph.asItWas().duration[slot] - m_levels.median[slot];
        return own < m_levels.median[slot] - m_levels.even[slot]
                   ? m_levels.ranks[static_cast<std::size_t>(m_graph.slot(slot).rank)].factor
                   : 0;
    }

private:
    struct Worst {
        SlotId slot = noSlot;
        Nanos excess = 0; // 0: none upstream takes longer
        bool seen = false;
    };
    // The least along the slot, what released it, and so on. Kept for every slot on the way, so that all of them
    // together take O(slots).
    Worst worstUpstream(SlotId slot, Excess kind) const
    {
        auto& known = m_worst[static_cast<std::size_t>(kind)];
        if (known.empty()) known.resize(m_graph.size());
        std::vector<SlotId> way;
        for (SlotId at = slot; at != noSlot && !known[at].seen; at = m_graph.releasedBy(at)) {
            known[at].seen = true;
            way.push_back(at);
        }
        if (way.empty()) return known[slot];
        const SlotId behind = m_graph.releasedBy(way.back());
        Worst worst = behind == noSlot ? Worst{noSlot, 0, true} : known[behind];
        for (auto at = way.rbegin(); at != way.rend(); ++at) {
            const Nanos excess = kind == Excess::Microbatch  ? m_graph.asItWas().duration[*at] - m_levels.alike[*at]
                                 : kind == Excess::Straggler ? m_levels.alike[*at] - m_levels.even[*at]
                                                             : m_levels.even[*at] - m_levels.mean[*at];
            if (m_graph.slot(*at).busy && excess > 0 && excess >= worst.excess) worst = {*at, excess, true};
            known[*at] = worst;
        }
        return worst;
    }

    Nanos endOf(SlotId slot) const { return m_timeline.spans()[m_graph.slot(slot).first].end; }
    Nanos waitAsItWas(SlotId slot) const
    {
        Nanos produced = std::numeric_limits<Nanos>::min();
        const auto [first, last] = m_graph.inputsOf(slot);
        for (std::size_t i = first; i < last; ++i) produced = std::max(produced, endOf(m_graph.inputs()[i].from));
        return first == last ? 0 : std::max<Nanos>(0, produced - endOf(m_graph.before(slot)));
    }
    Nanos waitAt(SlotId slot, const std::vector<Nanos>& end) const
    {
        Nanos produced = std::numeric_limits<Nanos>::min();
        const auto [first, last] = m_graph.inputsOf(slot);
        for (std::size_t i = first; i < last; ++i) produced = std::max(produced, end[m_graph.inputs()[i].from]);
        return first == last ? 0 : std::max<Nanos>(0, produced - end[m_graph.before(slot)]);
    }

    const Timeline& m_timeline;
    const StepGraph& m_graph;
    const StepLevels& m_levels;
    std::optional<StepReplay> m_atAlike; // where there are long microbatches
    std::optional<StepReplay> m_atEven;
    std::optional<StepReplay> m_atMean;
    mutable std::array<std::vector<Worst>, 3> m_worst; // by slot, of each Excess
    bool m_differ = false;
};

class RankAnalysis {
public:
    RankAnalysis(const StepContext& context, const Replays& replays, int rank, bool arrivals)
        : m_timeline(context.timeline()), m_spans(m_timeline.spans()), m_ops(context.ops()), m_replays(replays),
          m_rank(rank), m_room(m_timeline, rank, context.step(), context.options().capOf(rank)), m_arrivals(arrivals)
    {
    }

    RankBubbles run(std::vector<Gap>& gaps)
    {
        cover();
        findCandidates();
        const std::size_t first = gaps.size();
        for (const Idle& idle : m_idle) explain(idle, gaps);
        for (std::size_t i = first; i < gaps.size(); ++i) {
            const Nanos length = gaps[i].end - gaps[i].start;
            m_result.idle += length;
            m_result.byCause[static_cast<std::size_t>(gaps[i].cause)] += length;
        }
        return m_result;
    }

private:
    // Walks the rank's compute lanes once: busy and apart time, and the idle intervals between.
    void cover()
    {
        const auto& all = m_ops.all(m_rank);
        Nanos cursor = m_ops.windowBegin();
        for (std::size_t i = 0; i < all.size();) {
            const Span& span = m_spans[all[i]];
            std::size_t next = i + 1; // spans over the very same interval are an overlapped pair
            while (next < all.size() && m_spans[all[next]].start == span.start && m_spans[all[next]].end == span.end)
                ++next;
            const Nanos start = std::max(span.start, cursor);
            const Nanos end = std::min(span.end, m_ops.windowEnd());
            const bool apart = !isDelay(span.op.kind) && !m_ops.isBusySpan(all[i]);
            if (start > cursor) m_idle.push_back({cursor, start, false, apart ? all[i] : noSpan});
            if (end > start) {
                if (isDelay(span.op.kind))
                    m_idle.push_back({start, end, true, noSpan});
                else
                    share(i, next, end - start);
                cursor = end;
            } else {
                cursor = std::max(cursor, start);
            }
            i = next;
        }
        if (cursor < m_ops.windowEnd()) m_idle.push_back({cursor, m_ops.windowEnd(), false, noSpan});
        if (!m_timeline.hasCpuTime()) return;
        for (const SpanId id : m_ops.busy(m_rank)) {
            const Nanos cpu = m_timeline.cpuTime(id);
            if (cpu >= 0) m_result.contention += std::max<Nanos>(0, m_spans[id].duration() - cpu);
        }
    }

    // Distributes the time over the spans [first, last) in equal parts, the remainder to the first.
    void share(std::size_t first, std::size_t last, Nanos time)
    {
        const auto& all = m_ops.all(m_rank);
        const Nanos count = static_cast<Nanos>(last - first);
        Nanos part = time / count + time % count;
        for (std::size_t i = first; i < last; ++i) {
            if (m_ops.isBusySpan(all[i])) {
                m_result.busy += part;
                m_result.busyByKind[static_cast<std::size_t>(m_spans[all[i]].op.kind)] += part;
            } else {
                m_result.apart += part;
            }
            part = time / count;
        }
    }

    // From the back: the earliest ready op at or after a position, separately for ops that take memory.
    void findCandidates()
    {
        const auto& busy = m_ops.busy(m_rank);
        m_freeing.resize(busy.size() + 1);
        m_holding.resize(busy.size() + 1);
        for (std::size_t i = busy.size(); i-- > 0;) {
            m_freeing[i] = m_freeing[i + 1];
            m_holding[i] = m_holding[i + 1];
            const Span& span = m_spans[busy[i]];
            // it belongs to its backward
            if ((span.flags & SpanDiscarded) != 0 || m_ops.heldFor(busy[i]) != noSpan) continue;
            Nanos ready = always;
            for (const Input& input : m_replays.inputs().of(m_rank, i)) ready = std::max(ready, input.arrival);
            Candidate& best = takesActivation(span.op.kind) ? m_holding[i] : m_freeing[i];
            if (ready <= best.ready) best = {ready, busy[i]};
        }
    }

    // The input whose producer ended last, the one that arrived last, and the part of the arrival due to a reload.
    struct Arrival {
        Input produced{noSpan, always, always};
        Input arrived{noSpan, always, always};
        Nanos withoutReload = always; // when all but reloaded activations were there
        SpanId reload = noSpan;       // the reload, where it arrived last
    };
    Arrival arrivalOf(std::span<const Input> inputs) const
    {
        Arrival out;
        for (const Input& input : inputs) {
            if (isReload(m_spans[input.from].op.kind)) {
                if (out.reload == noSpan || input.arrival > m_spans[out.reload].end) out.reload = input.from;
            } else {
                if (input.ready > out.produced.ready) out.produced = input;
                out.withoutReload = std::max(out.withoutReload, input.arrival);
            }
            if (input.arrival > out.arrived.arrival) out.arrived = input;
        }
        if (out.arrived.from != out.reload) out.reload = noSpan;
        return out;
    }

    void explain(const Idle& idle, std::vector<Gap>& gaps)
    {
        const auto& busy = m_ops.busy(m_rank);
        while (m_next < busy.size() && m_spans[busy[m_next]].start < idle.end) ++m_next;
        if (m_next == busy.size()) {
            const Nanos cut = addCollective(gaps, idle.start, idle.end, noSpan, idle.apart);
            return add(gaps, cut, idle.end, IdleCause::Drain);
        }
        const SpanId next = busy[m_next];
        if (m_next == 0) {
            const Nanos there =
                std::clamp(arrivalOf(m_replays.inputs().of(m_rank, 0)).arrived.arrival, idle.start, idle.end);
            add(gaps, idle.start, there, IdleCause::Warmup, next);
            const Nanos cut = addCollective(gaps, there, idle.end, next, next);
            return add(gaps, cut, idle.end, IdleCause::Warmup, next);
        }
        if (idle.filler) return add(gaps, idle.start, idle.end, IdleCause::Order, next);

        const std::span<const Input> inputs = m_replays.inputs().of(m_rank, m_next);
        const Arrival input = arrivalOf(inputs);
        // of a recomputation that waits for its backward's gradient: the part that could run during the wait
        Nanos recompute = 0;
        if (m_ops.heldFor(next) != noSpan) {
            Nanos own = always;
            for (const Input& each : inputs)
                if (isForward(m_spans[each.from].op.kind)) own = std::max(own, each.arrival);
            if (input.arrived.arrival > own) recompute = m_spans[next].duration();
        }
        std::size_t later = m_next + 1;
        while (later < busy.size() && m_spans[busy[later]].start == m_spans[next].start) ++later;
        const Candidate& freeing = m_freeing[later];
        const Candidate& holding = m_holding[later];

        // Cuts of the interval, from its end: launch; what the rank could have recomputed; a reload alone; another op
        // being ready; on the way; not yet produced.
        const Nanos launch = std::clamp(input.arrived.arrival, idle.start, idle.end);
        const Nanos hoist = std::max(idle.start, launch - recompute);
        const Nanos reload = input.reload == noSpan ? hoist : std::clamp(input.withoutReload, idle.start, hoist);
        const Nanos order = std::clamp(std::min(freeing.ready, holding.ready), idle.start, reload);
        const Nanos produce = std::clamp(input.produced.ready, idle.start, order);
        addDependency(gaps, idle.start, produce, next, input.produced.from);
        addTransfer(gaps, produce, order, next, input.arrived.from);
        addReady(gaps, order, reload, next, freeing, holding);
        add(gaps, reload, hoist, IdleCause::ReloadWait, next, input.reload);
        add(gaps, hoist, launch, IdleCause::RecomputeWait, next, input.arrived.from);
        addStanding(gaps, launch, idle.end, next, [&](Nanos start, Nanos end) {
            start = addCollective(gaps, start, end, next, idle.apart == noSpan ? next : idle.apart);
            if (idle.apart == noSpan) {
                add(gaps, start, end, IdleCause::Launch, next);
                if (start < end)
                    gaps.back().unsure =
                        !m_arrivals && std::any_of(inputs.begin(), inputs.end(), [this](const Input& each) {
                            return m_ops.rankOf(each.from) != m_rank;
                        });
            } else {
                add(gaps, start, end, IdleCause::PeerWait, next, lastToCome(idle.apart));
            }
        });
    }

    // The part of an interval in which a collective beside compute kept `waiting` (an op, or one issued with it) from
    // starting; where it ends.
    Nanos addCollective(std::vector<Gap>& gaps, Nanos start, Nanos end, SpanId next, SpanId waiting)
    {
        if (waiting == noSpan || start >= end) return start;
        SpanId awaited = noSpan;
        const auto take = [&](SpanId id) {
            for (const Edge& edge : m_timeline.edgesInto(id)) {
                if (edge.kind != EdgeKind::Order) continue;
                const Track& track = m_timeline.trackOf(edge.from);
                const bool beside = isCollectiveLane(track.lane);
                if (beside && track.rank == m_rank &&
                    (awaited == noSpan || m_spans[edge.from].end > m_spans[awaited].end))
                    awaited = edge.from;
            }
        };
        take(waiting);
        const auto& busy = m_ops.busy(m_rank);
        for (std::size_t i = m_next;
             waiting == next && i < busy.size() && m_spans[busy[i]].start == m_spans[next].start; ++i)
            take(busy[i]);
        if (awaited == noSpan) return start;
        // Before it starts the rank's lane may be taken by others; while it is free, another rank of the stage has not
        // come to it.
        const Nanos cut = std::clamp(m_spans[awaited].end, start, end);
        const Nanos begun = std::clamp(m_spans[awaited].start, start, cut);
        Nanos now = start;
        for (const SpanId id : onLanes(start, begun)) {
            add(gaps, now, std::max(now, m_spans[id].start), IdleCause::PeerWait, next, awaited);
            now = std::max(now, m_spans[id].start);
            const Nanos until = std::clamp(m_spans[id].end, now, begun);
            add(gaps, now, until, IdleCause::Collective, next, id);
            now = until;
        }
        add(gaps, now, begun, IdleCause::PeerWait, next, awaited);
        add(gaps, begun, cut, IdleCause::Collective, next, awaited);
        return cut;
    }

    // The rank's gathers and reductions that run at some time within [start, end), by start.
    std::vector<SpanId> onLanes(Nanos start, Nanos end) const
    {
        std::vector<SpanId> out;
        for (const Lane kind : {Lane::Gather, Lane::Reduce}) {
            const Track* lane = m_timeline.trackOf(m_rank, kind);
            if (lane == nullptr) continue;
            const auto spans = m_timeline.spansOf(*lane);
            auto at = static_cast<std::size_t>(
                std::partition_point(spans.begin(), spans.end(), [end](const Span& span) { return span.start < end; }) -
                spans.begin());
            while (at-- > 0) {
                const Span& span = spans[at];
                if (span.end > start && span.end > span.start) out.push_back(lane->begin + static_cast<SpanId>(at));
                // one after the other, but for what was taken later
                if (span.end <= start && span.end > span.start && span.label == 0) break;
            }
        }
        std::sort(out.begin(), out.end(), [this](SpanId a, SpanId b) {
            return std::pair(m_spans[a].start, a) < std::pair(m_spans[b].start, b);
        });
        return out;
    }

    // A reduction starts on all ranks of its stage at once: the previous op of the last rank to reach it. noSpan:
    // unknown.
    SpanId lastToCome(SpanId reduction) const
    {
        const Span& own = m_spans[reduction];
        SpanId last = noSpan;
        for (int rank = 0; rank < m_ops.ranks(); ++rank) {
            SpanId before = noSpan;
            for (const SpanId id : m_ops.all(rank)) {
                const Span& span = m_spans[id];
                if (rank != m_rank && before != noSpan && span.op == own.op && span.step == own.step &&
                    span.label == own.label && (last == noSpan || m_spans[before].end > m_spans[last].end))
                    last = before;
                before = id;
            }
        }
        return last;
    }

    // A message's way within [start, end): behind others in its sender's list, waiting for its peer, on the wire; what
    // it waited for a channel is the last part, which would not be there had the channel been free. What is left of the
    // interval after its arrival is returned.
    Nanos addMessage(std::vector<Gap>& gaps, Nanos start, Nanos end, SpanId next, const MessageView& message,
                     SpanId wait = noSpan)
    {
        const bool met = message.begin >= message.receivePosted; // else a buffer took it, whoever was there
        const Nanos both = met ? std::max(message.sendPosted, message.receivePosted) : message.sendPosted;
        const std::array<std::pair<Nanos, IdleCause>, 5> parts{
            {{message.produced, IdleCause::Dependency},
             {message.sendPosted, IdleCause::HeadOfLine},
             {both, IdleCause::PeerWait},
             {both + message.arrival - message.begin, IdleCause::Transfer},
             {message.arrival, IdleCause::HeadOfLine}}};
        for (const auto& [until, cause] : parts) {
            const Nanos cut = std::clamp(until, start, end);
            add(gaps, start, cut, cause, next, message.producer, noSpan, wait);
            start = cut;
        }
        return start;
    }

    void addTransfer(std::vector<Gap>& gaps, Nanos start, Nanos end, SpanId next, SpanId from)
    {
        if (start >= end) return;
        for (const MessageView& message : messagesInto(m_timeline, next))
            if (message.producer == from) start = addMessage(gaps, start, end, next, message);
        add(gaps, start, end, IdleCause::Transfer, next, from);
    }

    // An interval in which the rank may have waited in a message of its own, or in one for a later op; the rest has
    // another cause.
    template <typename Rest>
    void addStanding(std::vector<Gap>& gaps, Nanos start, Nanos end, SpanId next, Rest&& rest)
    {
        const Track* lane = m_timeline.trackOf(m_rank, Lane::Wait);
        const auto waits = lane ? m_timeline.spansOf(*lane) : std::span<const Span>();
        const auto after = std::upper_bound(waits.begin(), waits.end(), start,
                                            [](Nanos time, const Span& span) { return time < span.start; });
        auto at = static_cast<std::size_t>(after - waits.begin());
        if (at > 0) --at; // one may reach into the interval
        for (; at < waits.size() && start < end; ++at) {
            const SpanId id = lane->begin + static_cast<SpanId>(at);
            const Span& wait = m_spans[id];
            if (wait.end <= start) continue;
            if (wait.start >= end) break;
            const auto message = messageOfWait(m_timeline, id);
            if (!message || message->consumer == next) continue;
            rest(start, std::max(start, wait.start));
            start = addMessage(gaps, std::max(start, wait.start), std::min(end, wait.end), next, *message, id);
        }
        if (start < end) rest(start, end);
    }

    void addDependency(std::vector<Gap>& gaps, Nanos start, Nanos end, SpanId next, SpanId producer)
    {
        if (start >= end) return;
        const Replays::Split split = m_replays.splitOf(next, end - start);
        const Nanos microbatch = end - split.microbatch;
        const Nanos straggler = microbatch - split.straggler;
        const Nanos imbalance = straggler - split.imbalance;
        add(gaps, start, imbalance, IdleCause::Dependency, next, producer);
        if (split.imbalance > 0)
            add(gaps, imbalance, straggler, IdleCause::Imbalance, next,
                m_replays.culprit(producer, Replays::Excess::Imbalance));
        if (split.straggler > 0) {
            const SpanId culprit = m_replays.culprit(producer, Replays::Excess::Straggler);
            add(gaps, straggler, microbatch, IdleCause::Straggler, next, culprit, noSpan, noSpan,
                m_replays.rankFactor(culprit));
        }
        if (split.microbatch == 0) return;
        const SpanId culprit = m_replays.culprit(producer, Replays::Excess::Microbatch);
        add(gaps, microbatch, end, IdleCause::Microbatch, next, culprit);
        gaps.back().microbatchFactor = m_replays.levels().longerOf(m_spans[culprit].op.microbatch);
    }

    void addReady(std::vector<Gap>& gaps, Nanos start, Nanos end, SpanId next, const Candidate& freeing,
                  const Candidate& holding)
    {
        if (start >= end) return;
        const Nanos free = std::clamp(freeing.ready, start, end);
        if (start < free) // only ops that take memory were ready
            addStanding(gaps, start, free, next, [&](Nanos from, Nanos to) {
                const bool full = m_room.exceeded(m_spans[holding.span].op, from);
                add(gaps, from, to, full ? IdleCause::Memory : IdleCause::Order, next, noSpan, holding.span);
            });
        if (free < end)
            addStanding(gaps, free, end, next, [&](Nanos from, Nanos to) {
                add(gaps, from, to, IdleCause::Order, next, noSpan, freeing.span);
            });
    }

    void add(std::vector<Gap>& gaps, Nanos start, Nanos end, IdleCause cause, SpanId next = noSpan,
             SpanId blamed = noSpan, SpanId readySpan = noSpan, SpanId wait = noSpan, double rankFactor = 0)
    {
        if (start >= end) return;
        Gap gap;
        gap.rank = m_rank;
        gap.start = start;
        gap.end = end;
        gap.cause = cause;
        gap.next = next;
        gap.blamed = blamed;
        gap.wait = wait;
        gap.rankFactor = rankFactor;
        if (readySpan != noSpan) {
            gap.readyOp = m_spans[readySpan].op;
            gap.hasReadyOp = true;
        }
        if (!gaps.empty()) {
            Gap& last = gaps.back();
            if (last.rank == gap.rank && last.end == gap.start && last.cause == gap.cause && last.next == gap.next &&
                last.blamed == gap.blamed && last.wait == gap.wait && last.hasReadyOp == gap.hasReadyOp &&
                last.readyOp == gap.readyOp) {
                last.end = gap.end;
                return;
            }
        }
        gaps.push_back(gap);
    }

    const Timeline& m_timeline;
    std::span<const Span> m_spans;
    const StepOps& m_ops;
    const Replays& m_replays;
    int m_rank;
    MemoryRoom m_room;
    bool m_arrivals; // of inputs from other ranks are known
    RankBubbles m_result;
    std::vector<Idle> m_idle;
    std::vector<Candidate> m_freeing; // ops that take no activation memory
    std::vector<Candidate> m_holding; // ops that do
    std::size_t m_next = 0;
};

} // namespace

bool BubbleReport::knows(IdleCause cause) const
{
    const bool ofMessages =
        cause == IdleCause::Transfer || cause == IdleCause::PeerWait || cause == IdleCause::HeadOfLine;
    // waits for reductions are known
    if (partial) return false;
    return noArrivals.empty() || !ofMessages || byCause[static_cast<std::size_t>(cause)] != 0;
}

BubbleOptions bubbleOptionsOf(const Run& run, std::optional<Bytes> cap)
{
    if (cap) return {cap, {}};
    return {memoryCapOf(run), rankCapsOf(run)};
}

Result<BubbleReport> analyseBubbles(const Timeline& timeline, int step, const BubbleOptions& options)
{
    return StepContext(timeline, step, options).bubbles();
}

Result<BubbleReport> analyseBubbles(const StepContext& context)
{
    const Timeline& timeline = context.timeline();
    BubbleReport report;
    report.step = context.step();
    report.ranks.resize(static_cast<std::size_t>(std::max(0, timeline.ranks())));
    const StepOps& ops = context.ops();
    if (ops.empty()) return report;
    report.windowBegin = ops.windowBegin();
    report.windowEnd = ops.windowEnd();
    const StepExtent whole = wholeStep(timeline, context.step());
    report.stepBegin = std::min(whole.begin, report.windowBegin);
    report.stepEnd = std::max(whole.end, report.windowEnd);
    report.noArrivals = timeline.missingRanks();
    report.partial = !report.noArrivals.empty();
    if (!report.partial) report.noArrivals = whyNoArrivals(timeline);
    const Replays replays(context);
    report.slowness = replays.slowness();
    report.longer = replays.levels().longer;
    report.longerBy = replays.longerBy(ops.ranks());
    Nanos ideal = 0;
    for (int rank = 0; rank < ops.ranks(); ++rank) {
        if (context.stop().stop_requested()) return fail(ErrorCode::Cancelled, "the analysis was cancelled");
        RankBubbles& bubbles = report.ranks[static_cast<std::size_t>(rank)];
        bubbles = RankAnalysis(context, replays, rank, report.noArrivals.empty()).run(report.gaps);
        report.busy += bubbles.busy;
        report.idle += bubbles.idle;
        for (std::size_t cause = 0; cause < idleCauseCount; ++cause) report.byCause[cause] += bubbles.byCause[cause];
        const auto& busy = ops.busy(rank);
        if (busy.empty()) continue;
        Nanos last = 0;
        for (const SpanId id : busy) last = std::max(last, timeline.spans()[id].end);
        const Nanos span = last - timeline.spans()[busy.front()].start;
        if (span > report.span) {
            report.span = span;
            ideal = bubbles.busy;
        }
    }
    const double area = static_cast<double>(ops.ranks()) * static_cast<double>(report.makespan());
    if (area > 0) report.bubbleFraction = static_cast<double>(report.idle) / area;
    if (report.span > 0) report.bubbleRateSpan = 1 - static_cast<double>(ideal) / static_cast<double>(report.span);
    if (report.partial) {
        for (Gap& gap : report.gaps) gap.unsure = true;
        report.bubbleFraction = report.bubbleRateSpan = std::numeric_limits<double>::quiet_NaN();
    }
    return report;
}

namespace {

struct Longest {
    int rank = -1;
    Nanos busy = 0;
    Nanos median = 0; // over ranks
};

Longest busyLongest(const BubbleReport& report)
{
    Longest out;
    std::vector<Nanos> busy;
    for (const RankBubbles& rank : report.ranks) busy.push_back(rank.busy);
    if (busy.empty()) return out;
    const auto most = std::max_element(busy.begin(), busy.end());
    out.rank = static_cast<int>(most - busy.begin());
    out.busy = *most;
    out.median = lowerMedian(std::move(busy));
    return out;
}

// "microbatch 2 takes 4.00× as long as the others"
std::string longMicrobatchesText(const BubbleReport& report)
{
    std::string out;
    for (std::size_t microbatch = 0; microbatch < report.longer.size(); ++microbatch)
        if (report.longer[microbatch] > 1)
            out += fmt::format("{}microbatch {} takes {:.2f}×", out.empty() ? "" : ", ", microbatch,
                               report.longer[microbatch]);
    return out + " as long as the others on every stage";
}

// Whether the rank is busy longest only because long microbatches run on it.
bool byMicrobatches(const BubbleReport& report, const Longest& longest)
{
    const auto rank = static_cast<std::size_t>(longest.rank);
    const Nanos more = rank < report.longerBy.size() ? report.longerBy[rank] : 0;
    return more > 0 && static_cast<double>(longest.busy - more) <= slowRank * static_cast<double>(longest.median);
}

} // namespace

std::optional<int> stragglerRank(const BubbleReport& report)
{
    if (report.ranks.size() < 2) return std::nullopt;
    const Longest longest = busyLongest(report);
    if (static_cast<double>(longest.busy) <= slowRank * static_cast<double>(longest.median)) return std::nullopt;
    if (byMicrobatches(report, longest)) return std::nullopt;
    const auto rank = static_cast<std::size_t>(longest.rank);
    if (rank < report.slowness.size() && report.slowness[rank].known && report.slowness[rank].factor <= slowRank)
        return std::nullopt;
    return longest.rank;
}

std::string stragglerSentence(const BubbleReport& report, Nanos timeUnit)
{
    const std::optional<int> rank = stragglerRank(report);
    const Longest longest = busyLongest(report);
    if (!rank) {
        const bool any =
            std::any_of(report.longer.begin(), report.longer.end(), [](double factor) { return factor > 1; });
        return any ? longMicrobatchesText(report) + ": the microbatch is long, no rank is slow" : std::string();
    }
    std::string text = fmt::format("rank {} is busy {}", *rank, formatDuration(longest.busy, timeUnit));
    if (longest.median > 0)
        text += fmt::format(", {} longer than the median rank",
                            formatPercent(static_cast<double>(longest.busy) / static_cast<double>(longest.median) - 1));
    const RankSlowness slow = static_cast<std::size_t>(*rank) < report.slowness.size()
                                  ? report.slowness[static_cast<std::size_t>(*rank)]
                                  : RankSlowness{};
    if (slow.known)
        return text +
               fmt::format(
                   ": it takes {:.2f}× as long as other ranks for the same work, so the rank is slow, not its stages",
                   slow.factor);
    return text + ": the rank is slow or its stage costs more; with one stage on it alone a step can't show which";
}

namespace analyses {

namespace {

std::vector<TableColumn> bubbleColumns()
{
    std::vector<TableColumn> columns{{"rank", "Rank", ColumnKind::Whole},
                                     {"busy_ns", "Busy", ColumnKind::Time},
                                     {"apart_ns", "Optimizer and collectives", ColumnKind::Time},
                                     {"idle_ns", "Idle", ColumnKind::Time}};
    for (std::size_t cause = 0; cause < idleCauseCount; ++cause) {
        const auto which = static_cast<IdleCause>(cause);
        columns.push_back({std::string(toText(which)) + "_ns", std::string(titleOf(which)), ColumnKind::Time,
                           std::string(meaningOf(which))});
    }
    return columns;
}

Result<AnalysisRows> bubbleRows(const StepContext& context)
{
    if (!context.bubbles()) return tl::unexpected(context.bubbles().error());
    const BubbleReport& report = *context.bubbles();
    AnalysisRows out;
    for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
        const RankBubbles& bubbles = report.ranks[rank];
        auto& row = out.rows.emplace_back(
            std::vector<TableCell>{static_cast<std::int64_t>(rank), bubbles.busy, bubbles.apart, bubbles.idle});
        for (std::size_t cause = 0; cause < idleCauseCount; ++cause) {
            TableCell& cell = row.emplace_back();
            if (report.knows(static_cast<IdleCause>(cause))) cell = bubbles.byCause[cause];
        }
    }
    out.sentence = stragglerSentence(report, context.timeline().timeUnit());
    if (!report.noArrivals.empty())
        out.sentence = report.noArrivals +
                       (report.partial ? ": what idle time waited for is unknown" : ": their time is in Launch") +
                       (out.sentence.empty() ? "" : "; ") + out.sentence;
    return out;
}

} // namespace

extern const AnalysisInfo bubbles;
const AnalysisInfo bubbles{"bubbles", "Idle time by rank and cause", bubbleColumns, unknownWithoutOps, bubbleRows};

} // namespace analyses

} // namespace stagewright
