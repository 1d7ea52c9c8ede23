#include "schedules/timeline/timeline_of.h"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "schedules/messages/lower.h"
#include "schedules/messages/message_delay.h"
#include "schedules/messages/messages.h"
#include "schedules/model/activation.h"
#include "schedules/model/groups.h"
#include "schedules/model/kinds.h"
#include "schedules/model/mesh.h"
#include "schedules/model/op_index.h"
#include "schedules/model/placement_of.h"
#include "schedules/step/step_arrivals.h"
#include "schedules/timeline/state_memory.h"

namespace stagewright {

namespace {

Lane laneOf(const Op& op, const CostModel& costs)
{
    return costs.links.useOf(op.kind) == ResourceUse::Compute ? Lane::Compute : ruleOf(op.kind).lane;
}

// From a gather to the first op that needs the weights, from a reduction to the optimizer. spans: of the rank's ops.
void addCollectiveEdges(TimelineBuilder& builder, const std::vector<Op>& ops, const std::vector<SpanId>& spans,
                        const SimResult& result, int rank)
{
    std::map<int, std::size_t> gathers; // by stage, not needed yet
    std::map<int, std::size_t> reductions;
    const auto tie = [&](std::map<int, std::size_t>& awaited, std::size_t to) {
        const auto found = awaited.find(ops[to].stage);
        if (found == awaited.end()) return;
        // An optimizer that steps bucket by bucket starts before its reduction ends.
        const Nanos whole = result.end[result.indexOf(rank, found->second)];
        builder.addEdge(spans[found->second], spans[to], EdgeKind::Order,
                        std::min(whole, result.start[result.indexOf(rank, to)]));
        awaited.erase(found);
    };
    for (std::size_t i = 0; i < ops.size(); ++i) {
        if (isGather(ops[i].kind))
            gathers[ops[i].stage] = i;
        else if (isReduction(ops[i].kind))
            reductions[ops[i].stage] = i;
        else if (isOptimizer(ops[i].kind))
            tie(reductions, i);
        else if (ruleOf(ops[i].kind).needsWeights)
            tie(gathers, i);
    }
}

// Messages on the network cards that they take.
class CardSpans {
public:
    CardSpans(TimelineBuilder& builder, const CostModel& costs, const Channels& channels)
        : m_builder(builder), m_links(costs.links)
    {
        if (!channels.apart) m_places = m_links.cards.places();
    }
    void add(int from, int to, Span message)
    {
        if (m_places.empty() || !m_links.cards.between(from, to)) return;
        message.end -= m_links.of(from, to).latency; // which takes no card
        if (message.end <= message.start) return;
        for (const bool out : {true, false}) {
            const Cards::Place& place = m_places[static_cast<std::size_t>(out ? from : to)];
            const std::string name =
                fmt::format("host {} card {} {}", m_links.cards.hostOf(place.first), place.card, out ? "out" : "in");
            m_builder.addSpan(m_builder.addTrack(place.first, out ? Lane::CardOut : Lane::CardIn, name), message);
        }
    }

private:
    TimelineBuilder& m_builder;
    const Links& m_links;
    std::vector<Cards::Place> m_places;
};

// Messages of a lowered schedule: spans on communication lanes and the edges that tie them (message_view.h).
struct LoweredMessages {
    const Schedule& schedule;
    const SimResult& result;
    const OpIndex& index;
    const std::vector<SpanId>& spans; // by op
    TimelineBuilder& builder;
    CardSpans& cards;

    SpanId add(std::uint32_t op, Lane lane, Nanos start, Nanos end) const
    {
        const OpPlace place = index.placeOf(op);
        Span span;
        span.start = start;
        span.end = end;
        span.op = schedule.order[static_cast<std::size_t>(place.rank)][place.position];
        return builder.addSpan(builder.addTrack(place.rank, lane), span);
    }
    void run() const
    {
        const MessageIndex pairs(schedule, index);
        std::vector<SpanId> receives(result.messages.size(), noSpan);
        for (std::size_t i = 0; i < result.messages.size(); ++i) {
            const MessageTimes& times = result.messages[i];
            if (times.arrival < 0) continue;
            const SpanId send = add(times.send, Lane::Send, times.begin, times.arrival);
            receives[i] =
                add(times.receive, Lane::Receive, times.receivePosted, std::max(times.arrival, times.receivePosted));
            builder.addEdge(send, receives[i], EdgeKind::Transfer, times.arrival);
            const OpPlace sender = index.placeOf(times.send);
            Span message;
            message.start = times.begin;
            message.end = times.arrival;
            message.op = schedule.order[static_cast<std::size_t>(sender.rank)][sender.position];
            cards.add(sender.rank, index.placeOf(times.receive).rank, message);
            for (const std::uint32_t op : {times.send, times.receive})
                if (result.end[op] > result.start[op]) add(op, Lane::Wait, result.start[op], result.end[op]);
            const OpPlace place = index.placeOf(times.send);
            index.eachInput(schedule.order[static_cast<std::size_t>(place.rank)][place.position],
                            [&](std::uint32_t producer, const Need&, int) {
                                if (producer != noOp)
                                    builder.addEdge(spans[producer], send, EdgeKind::Order, times.sendPosted);
                            });
        }
        for (int r = 0; r < schedule.ranks; ++r)
            for (std::size_t i = 0; i < schedule.order[static_cast<std::size_t>(r)].size(); ++i)
                addInputs(pairs, receives, r, i);
    }
    // Data edges with the arrival of the last message from each producer, Transfer edges from each receive.
    void addInputs(const MessageIndex& pairs, const std::vector<SpanId>& receives, int rank, std::size_t position) const
    {
        const Op& op = schedule.order[static_cast<std::size_t>(rank)][position];
        if (!isCompute(op.kind)) return;
        const SpanId to = spans[index.idOf(rank, position)];
        std::vector<std::pair<std::uint32_t, Nanos>> producers;
        std::vector<std::uint32_t> messages;
        pairs.eachDelivery(schedule, index, op, rank, [&](const Delivery& part) {
            if (part.producer == noOp || (part.from.rank != rank && part.message == noOp)) return true;
            Nanos arrival = result.end[part.producer];
            if (part.message != noOp) {
                arrival = result.messages[part.message].arrival;
                if (std::find(messages.begin(), messages.end(), part.message) == messages.end())
                    messages.push_back(part.message);
            }
            auto known = std::find_if(producers.begin(), producers.end(),
                                      [&](const auto& p) { return p.first == part.producer; });
            if (known == producers.end())
                producers.emplace_back(part.producer, arrival);
            else
                known->second = std::max(known->second, arrival);
            return true;
        });
        for (const auto& [producer, arrival] : producers) builder.addEdge(spans[producer], to, EdgeKind::Data, arrival);
        for (const std::uint32_t message : messages)
            builder.addEdge(receives[message], to, EdgeKind::Transfer, result.messages[message].arrival);
    }
};

} // namespace

Result<std::shared_ptr<const Timeline>> timelineOf(const Schedule& schedule, const SimResult& result,
                                                   const CostModel& costs, TimelineParts parts,
                                                   const Channels& channels)
{
    STAGEWRIGHT_TRY(auto cells, cellsOf(schedule));
    const std::size_t ops = schedule.opCount();
    if (result.start.size() != ops || result.end.size() != ops || result.offsets.size() != schedule.order.size() + 1)
        return fail(ErrorCode::Usage, fmt::format("the result has {} times for {} ops", result.start.size(), ops));
    if (schedule.ranks > std::numeric_limits<std::uint16_t>::max())
        return fail(ErrorCode::Usage, fmt::format("{} ranks; a timeline holds at most 65535", schedule.ranks));
    TimelineBuilder builder(Provenance::Simulated, "model", schedule.ranks);
    builder.setUnits(costs.timeUnit, costs.memoryUnit);
    builder.setSchedule(std::make_shared<const Schedule>(schedule), costs.sizes);
    builder.reserve(ops);
    const auto addOp = [&](const Op& op, int rank, std::size_t id, int track) {
        const Lane lane = laneOf(op, costs);
        Span span;
        span.start = result.start[id];
        span.end = result.end[id];
        span.op = op;
        return builder.addSpan(lane == Lane::Compute ? track : builder.addTrack(rank, lane), span);
    };
    if (parts == TimelineParts::SpansOnly) {
        for (int r = 0; r < schedule.ranks; ++r) {
            const int track = builder.addTrack(r, Lane::Compute);
            const auto& list = schedule.order[static_cast<std::size_t>(r)];
            for (std::size_t i = 0; i < list.size(); ++i)
                if (!isMessage(list[i].kind)) addOp(list[i], r, result.indexOf(r, i), track);
        }
        return builder.build();
    }
    const OpIndex index(schedule, cells);
    const ActivationRule activation(schedule, costs, Unheld::LeftOut);
    const std::vector<Bytes> boundary = boundaryOf(schedule, costs);
    addStateMemory(builder, schedule, result, costs);

    // Compute spans first: of a compute-only schedule span ids are then op numbers.
    const bool lowered = isLowered(schedule);
    std::vector<SpanId> spans(lowered ? ops : 0, noSpan);
    for (int r = 0; r < schedule.ranks; ++r) {
        const int track = builder.addTrack(r, Lane::Compute);
        const auto& list = schedule.order[static_cast<std::size_t>(r)];
        bool collectives = false;
        std::vector<SpanId> own(list.size(), noSpan);
        for (std::size_t i = 0; i < list.size(); ++i) {
            const std::size_t id = result.indexOf(r, i);
            if (isMessage(list[i].kind)) continue;
            own[i] = addOp(list[i], r, id, track);
            collectives = collectives || laneOf(list[i], costs) != Lane::Compute;
            if (lowered) spans[id] = own[i];
            if (isCollective(list[i].kind)) continue;
            const Nanos changed = activationChangesAt(schedule, result, r, i);
            for (int k = 0; k < list[i].count; ++k) {
                MemoryEvent event;
                event.time = changed;
                event.delta = activation.deltaOf(list[i], k);
                event.microbatch = list[i].microbatch + k;
                event.rank = static_cast<std::uint16_t>(r);
                event.stage = list[i].stage;
                if (event.delta != 0) builder.addMemory(event);
            }
        }
        if (collectives) addCollectiveEdges(builder, list, own, result, r);
    }
    CardSpans cards(builder, costs, channels);
    if (lowered) {
        if (result.messages.empty()) return fail(ErrorCode::Usage, "the result has no messages for a lowered schedule");
        LoweredMessages{schedule, result, index, spans, builder, cards}.run();
        return builder.build();
    }
    const StepRules rules{costs.links, channels, boundary};
    const StepArrivals arrivals(schedule, index, rules, result.end);
    for (int r = 0; r < schedule.ranks; ++r) {
        const auto& list = schedule.order[static_cast<std::size_t>(r)];
        for (std::size_t i = 0; i < list.size(); ++i) {
            const auto to = static_cast<SpanId>(result.indexOf(r, i));
            arrivals.eachInput(r, i, [&](std::uint32_t from, const Need& need, const StepArrivals::Way& way) {
                builder.addEdge(from, to, EdgeKind::Data, way.arrival);
                if (way.arrival <= way.begin) return;
                Span transfer;
                transfer.start = way.begin;
                transfer.end = way.arrival;
                const OpPlace place = index.placeOf(from);
                transfer.op = schedule.order[static_cast<std::size_t>(place.rank)][place.position];
                transfer.op.kind = sendKind(need.side == StageSide::After);
                builder.addSpan(builder.addTrack(place.rank, Lane::Send), transfer);
                cards.add(place.rank, r, transfer);
            });
        }
    }
    return builder.build();
}

Result<std::shared_ptr<const Timeline>> simulatedTimeline(const Schedule& schedule, const CostModel& costs,
                                                          const Channels& channels)
{
    STAGEWRIGHT_TRY(auto result, simulate(schedule, costs, channels));
    return timelineOf(schedule, result, costs, TimelineParts::All, channels);
}

namespace {

// The ops that are on the compute lane whatever the costs say.
Schedule withoutBeside(const Schedule& schedule)
{
    return without(schedule, [](const Op& op) { return isCollective(op.kind) || runsApart(op.kind); });
}

bool hasStageOps(const Schedule& schedule)
{
    for (const auto& ops : schedule.order)
        for (const Op& op : ops)
            if (isStageOp(op.kind)) return true;
    return false;
}

} // namespace

Result<Schedule> scheduleOf(const Timeline& timeline, int step)
{
    if (step < 0 || step >= timeline.steps())
        return fail(ErrorCode::Usage,
                    fmt::format("there is no step {}; the timeline has {}", stepNumber(step), timeline.steps()));
    Schedule out;
    out.ranks = timeline.ranks();
    out.order.resize(static_cast<std::size_t>(out.ranks));
    out.paired.resize(out.order.size());
    // Optimizer and reduction spans belong to the order only where the schedule has such ops; else they end the step.
    const auto& realised = timeline.schedule();
    const bool stageOps = realised && hasStageOps(*realised);
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute) continue;
        const auto r = static_cast<std::size_t>(track.rank);
        const auto [first, last] = timeline.stepRange(track, step);
        const Span* before = nullptr;
        for (SpanId id = first; id < last; ++id) {
            const Span& span = timeline.spans()[id];
            const bool kept = span.step == step && !(span.flags & SpanDiscarded) && span.label == 0 &&
                              (isCompute(span.op.kind) || isDelay(span.op.kind) || fillsGaps(span.op.kind) ||
                               (stageOps && isStageOp(span.op.kind)));
            if (!kept) continue;
            auto& pairs = out.paired[r];
            const bool together =
                before && before->start == span.start && before->end == span.end && span.end > span.start;
            const auto previous = static_cast<std::uint32_t>(out.order[r].size() - 1);
            if (together && (pairs.empty() || pairs.back() + 1 != previous)) pairs.push_back(previous);
            out.order[r].push_back(span.op);
            before = &span;
            out.stages = std::max(out.stages, span.op.stage + 1);
            if (hasMicrobatch(span.op))
                out.microbatches = std::max(out.microbatches, span.op.microbatch + span.op.count);
        }
    }
    if (out.opCount() == 0)
        return fail(
            ErrorCode::Invalid, fmt::format("step {} has no ops", stepNumber(step)),
            "a pipeline of a trace's ranges names its ops: Analyse › Make a pipeline of ranges, or import --rules");
    out.placement = placementOf(out.order, out.stages);
    if (realised) {
        out.name = realised->name;
        out.weights = realised->weights;
        out.sliceLengths = realised->sliceLengths;
        if (realised->stages == out.stages) out.graph = realised->graph;
        // A pair may be executed one after the other: how it was issued is known from the schedule.
        if (isLowered(*realised)) {
            const Schedule plain = withoutCommunication(*realised);
            out = withoutCommunication(out);
            if (plain.order == out.order) out.paired = plain.paired;
        } else if (realised->order == out.order) {
            out.paired = realised->paired;
        } else if (const Schedule listed = withoutBeside(*realised);
                   listed.opCount() != realised->opCount() && listed.order == withoutBeside(out).order) {
            out = *realised; // where ops beside compute were issued is known from the schedule
        }
        out.replicas = realised->ranks == out.ranks ? realised->replicas : 1;
    }
    return out;
}

} // namespace stagewright
