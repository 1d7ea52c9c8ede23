#include "schedules/messages/message_execution.h"

#include <algorithm>
#include <utility>

#include "schedules/messages/buckets.h"
#include "schedules/messages/message_delay.h"
#include "schedules/messages/wait_graph.h"
#include "schedules/model/groups.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

bool hasGathers(const Schedule& schedule)
{
    for (const auto& ops : schedule.order)
        for (const Op& op : ops)
            if (isGather(op.kind)) return true;
    return false;
}

} // namespace

bool needsMessageExecution(const Schedule& schedule)
{
    const bool copies = schedule.placement.hasCopies();
    for (const auto& ops : schedule.order)
        for (const Op& op : ops)
            if (isMessage(op.kind) || (copies && (isReduction(op.kind) || isGather(op.kind)))) return true;
    return false;
}

MessageExecution::MessageExecution(const Schedule& schedule, const OpIndex& index, const Channels& channels,
                                   std::span<const Nanos> durations, const Links& links,
                                   std::span<const Bytes> boundary)
    : m_schedule(schedule), m_index(index), m_channels(channels), m_durations(durations), m_pairs(schedule, index),
      m_links(links)
{
    const std::size_t ranks = schedule.order.size();
    m_out.offsets.push_back(0);
    for (const auto& ops : schedule.order) m_out.offsets.push_back(m_out.offsets.back() + ops.size());
    m_out.start.assign(m_out.offsets.back(), -1);
    m_out.end.assign(m_out.offsets.back(), -1);
    m_head.assign(ranks, 0);
    m_clock.assign(ranks, 0);
    m_waiting.resize(ranks);
    m_queued.assign(ranks, 0);
    prepareMessages(links, boundary);
    // Compute-only lists: a message is in flight from its producer's end on.
    prepareInputs();
    if (m_pairs.messages().empty() && sharesBandwidth(links, boundary, channels))
        prepareFlights(links, boundary);
    else if (m_pairs.messages().empty())
        for (std::uint32_t id = 0; id < m_index.opCount(); ++id) {
            const OpPlace place = index.placeOf(id);
            const Op& op = schedule.order[static_cast<std::size_t>(place.rank)][place.position];
            for (std::uint32_t i = m_inputOffsets[id]; i < m_inputOffsets[id + 1]; ++i) {
                Input& input = m_inputs[i];
                if (input.source == noOp) continue;
                const OpPlace from = index.placeOf(input.source);
                const int stage = schedule.order[static_cast<std::size_t>(from.rank)][from.position].stage;
                input.delay = messageDelay(schedule, links, boundary, op, stage, stage - op.stage, place.rank,
                                           index.cells().slices);
            }
        }
    prepareReductions();
}

void MessageExecution::prepareInputs()
{
    const CellSpace& cells = m_index.cells();
    const bool lowered = !m_pairs.messages().empty();
    const auto perStage = static_cast<std::size_t>(cells.microbatches) * cells.perMicrobatch();
    // The last op that needs an op or message; one place more for what is never there.
    std::vector<std::uint32_t> opFor(m_index.opCount() + 1, noOp);
    std::vector<std::uint32_t> messageFor(m_pairs.messages().size() + 1, noOp);
    m_inputOffsets.push_back(0);
    for (int r = 0; r < m_schedule.ranks; ++r) {
        const auto& ops = m_schedule.order[static_cast<std::size_t>(r)];
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Op& op = ops[i];
            const std::uint32_t self = m_index.idOf(r, i);
            auto add = [&](const Input& input) {
                auto& known = input.message ? messageFor : opFor;
                if (std::exchange(known[std::min<std::size_t>(input.source, known.size() - 1)], self) != self)
                    m_inputs.push_back(input);
            };
            const KindTraits& rule = ruleOf(op.kind);
            for (std::size_t n = 0; n < rule.needCount && !isReceive(op.kind); ++n) {
                const int stage = op.stage + rule.needs[n].stageOffset;
                if (stage < 0 || stage >= cells.stages) continue;
                const Product product = productOf(rule.needs[n].kind);
                cells.each(op, stage, [&](std::size_t cell) {
                    const std::uint32_t id = m_index.producer(product, cell);
                    if (id == noOp) {
                        add({});
                        return true;
                    }
                    const OpPlace place = m_index.placeOf(id);
                    if (place.rank == r) {
                        const bool together = place.position + 1 == i && m_schedule.isPaired(r, place.position);
                        if (place.position >= i || together) add({});
                        return true;
                    }
                    if (!lowered || !isCompute(op.kind)) {
                        add({id, false, 0});
                        return true;
                    }
                    const std::size_t own = cell - static_cast<std::size_t>(stage) * perStage + op.stage * perStage;
                    add({m_pairs.bringing(product == Product::Gradient, own), true, 0});
                    return true;
                });
            }
            m_inputOffsets.push_back(static_cast<std::uint32_t>(m_inputs.size()));
        }
    }
}

void MessageExecution::prepareMessages(const Links& links, std::span<const Bytes> boundary)
{
    const auto& pairs = m_pairs.messages();
    m_out.messages.resize(pairs.size());
    m_transit.resize(pairs.size());
    m_channelOf.assign(pairs.size(), 0);
    if (m_channels.oneStream && !pairs.empty()) m_streams.emplace(m_schedule.order.size(), pairs.size());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        m_out.messages[i].send = pairs[i].send;
        m_out.messages[i].receive = pairs[i].receive;
        if (pairs[i].send == noOp || pairs[i].receive == noOp) continue;
        const OpPlace from = m_index.placeOf(pairs[i].send);
        const OpPlace to = m_index.placeOf(pairs[i].receive);
        const Op& send = m_schedule.order[static_cast<std::size_t>(from.rank)][from.position];
        const Op& receive = m_schedule.order[static_cast<std::size_t>(to.rank)][to.position];
        m_transit[i] = messageTransit(m_schedule, links, boundary, receive, send.stage, send.stage - receive.stage,
                                      to.rank, m_index.cells().slices);
        m_channelOf[i] = channelFor(from.rank, to.rank);
    }
}

std::uint32_t MessageExecution::channelFor(int from, int to)
{
    const auto key = (static_cast<std::uint64_t>(from) << 32) | static_cast<std::uint32_t>(to);
    const auto [at, fresh] = m_channelOfRanks.try_emplace(key, static_cast<std::uint32_t>(m_channelList.size()));
    if (fresh) m_channelList.push_back({{}, 0, LinkLane(m_channels)});
    return at->second;
}

// Each message takes its link once its producer ends, so that those of a link do in the order of the sender's list.
void MessageExecution::prepareFlights(const Links& links, std::span<const Bytes> boundary)
{
    m_flightOffsets.assign(m_index.opCount() + 1, 0);
    m_channels.perDirection = 0; // only sends and receives in the lists know of that
    for (const Message& message : messagesBySender(m_schedule, m_index)) {
        const auto flight = static_cast<std::uint32_t>(m_flights.size());
        m_flights.push_back(
            {channelFor(message.fromRank, message.toRank),
             messageTransit(m_schedule, links, boundary, message.receive, message.send.stage,
                            message.send.stage - message.receive.stage, message.toRank, m_index.cells().slices)});
        ++m_flightOffsets[message.producer + 1];
        for (std::uint32_t i = m_inputOffsets[message.consumer]; i < m_inputOffsets[message.consumer + 1]; ++i)
            if (m_inputs[i].source == message.producer) m_inputs[i].flight = flight;
    }
    for (std::size_t i = 1; i < m_flightOffsets.size(); ++i) m_flightOffsets[i] += m_flightOffsets[i - 1];
}

void MessageExecution::fly(std::uint32_t op)
{
    if (m_flightOffsets.empty()) return;
    const Nanos leaves = m_leaves.empty() ? m_out.end[op] : m_leaves[op];
    for (std::uint32_t i = m_flightOffsets[op]; i < m_flightOffsets[op + 1]; ++i) {
        Flight& flight = m_flights[i];
        flight.arrival = m_channelList[flight.lane].lane.take(leaves, flight.transit) + flight.transit.delay;
    }
}

void MessageExecution::prepareReductions()
{
    // who waits for whom, without times
    if (m_durations.empty() && (hasGathers(m_schedule) || m_schedule.replicas > 1))
        m_links.collectives = CollectiveLane::Beside;
    if (m_links.collectives != CollectiveLane::Compute) {
        const auto stages = static_cast<std::size_t>(m_schedule.stages);
        m_beside.assign(m_schedule.order.size(),
                        {0, std::vector<std::uint32_t>(stages, noOp), std::vector<std::uint32_t>(stages, noOp)});
        if (m_links.collectives == CollectiveLane::Shared) m_leaves.assign(m_index.opCount(), -1);
    }
    if (!m_schedule.placement.hasCopies()) return;
    std::unordered_map<std::uint64_t, std::uint32_t> known; // (stage, kind, how many before on the rank)
    for (int r = 0; r < m_schedule.ranks; ++r) {
        std::unordered_map<std::uint64_t, std::uint32_t> seen;
        const auto& ops = m_schedule.order[static_cast<std::size_t>(r)];
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (!isReduction(ops[i].kind) && (m_beside.empty() || !isGather(ops[i].kind))) continue;
            const std::uint64_t what =
                (static_cast<std::uint64_t>(ops[i].stage) << 1) | (isGather(ops[i].kind) ? 1 : 0);
            const auto key = (what << 32) | seen[what]++;
            const auto [at, fresh] = known.try_emplace(key, static_cast<std::uint32_t>(m_meetings.size()));
            if (fresh) m_meetings.emplace_back();
            m_meetings[at->second].push_back(m_index.idOf(r, i));
            m_meetingOf[m_index.idOf(r, i)] = at->second;
        }
    }
}

std::span<const MessageExecution::Input> MessageExecution::inputsOf(std::uint32_t op) const
{
    return std::span(m_inputs).subspan(m_inputOffsets[op], m_inputOffsets[op + 1] - m_inputOffsets[op]);
}

// Whether its end, arrival or departure is known.
bool MessageExecution::isThere(const Input& input) const
{
    if (input.source == noOp) return false;
    if (input.message) return m_out.messages[input.source].arrival >= 0;
    if (input.flight != noOp) return m_flights[input.flight].arrival >= 0;
    return m_out.end[input.source] >= 0 && (input.delay == 0 || m_leaves.empty() || m_leaves[input.source] >= 0);
}

bool MessageExecution::inputsThere(std::uint32_t op, int rank, Nanos& begin) const
{
    bool all = true;
    for (const Input& input : inputsOf(op)) {
        const Nanos at = input.source == noOp ? -1
                         : input.message      ? m_out.messages[input.source].arrival
                                              : m_out.end[input.source];
        if (!isThere(input))
            all = false;
        else if (input.flight != noOp)
            begin = std::max(begin, m_flights[input.flight].arrival);
        else
            begin =
                std::max(begin, (input.delay > 0 && !input.message && !m_leaves.empty() ? m_leaves[input.source] : at) +
                                    input.delay);
    }
    const OpPlace place = m_index.placeOf(op);
    const Op& own = m_schedule.order[static_cast<std::size_t>(place.rank)][place.position];
    eachCollectiveFor(own, rank, [&](std::uint32_t collective) {
        if (m_out.end[collective] < 0)
            all = false;
        else
            begin = std::max(begin, availableAt(collective, own, rank, m_durations.empty() ? 0 : m_durations[op]));
    });
    return all || m_forced == rank;
}

// Copies of a stage reduce their gradients together.
bool MessageExecution::reductionThere(std::uint32_t op, int rank, Nanos now, Nanos& begin)
{
    const auto meeting = m_meetingOf.find(op);
    if (meeting == m_meetingOf.end()) return true;
    const auto [mine, fresh] = m_met.try_emplace(op, now);
    bool all = true;
    for (const std::uint32_t other : m_meetings[meeting->second]) {
        const int from = m_index.placeOf(other).rank;
        if (fresh && from != rank) wake(from);
        const auto met = m_met.find(other);
        all = all && met != m_met.end();
        if (met != m_met.end()) begin = std::max(begin, met->second + m_links.delay(from, rank, 0));
    }
    return all || m_forced == rank;
}

std::span<const std::uint32_t> MessageExecution::membersOf(const std::uint32_t& collective) const
{
    const auto meeting = m_meetingOf.find(collective);
    return meeting == m_meetingOf.end() ? std::span(&collective, 1)
                                        : std::span<const std::uint32_t>(m_meetings[meeting->second]);
}

bool MessageExecution::comeTo(std::uint32_t op, int rank, Nanos now)
{
    const OpPlace own = m_index.placeOf(op);
    const Op& collective = m_schedule.order[static_cast<std::size_t>(own.rank)][own.position];
    if (isRelease(collective.kind)) {
        m_out.start[op] = m_out.end[op] = now;
        return false;
    }
    Beside& lanes = m_beside[static_cast<std::size_t>(rank)];
    (isGather(collective.kind) ? lanes.gathered : lanes.reduced)[collective.stage] = op;
    m_met.try_emplace(op, now);
    const auto members = membersOf(op);
    return std::all_of(members.begin(), members.end(), [this](std::uint32_t member) { return m_met.contains(member); });
}

void MessageExecution::takeLanes(std::uint32_t op)
{
    Nanos begin = 0;
    Nanos lasts = 0;
    const auto members = membersOf(op);
    for (const std::uint32_t member : members) {
        begin =
            std::max({begin, m_met.at(member), m_beside[static_cast<std::size_t>(m_index.placeOf(member).rank)].lane});
        if (!m_durations.empty()) lasts = std::max(lasts, m_durations[member]);
    }
    for (const std::uint32_t member : members) {
        const int rank = m_index.placeOf(member).rank;
        m_out.start[member] = begin;
        m_out.end[member] = m_beside[static_cast<std::size_t>(rank)].lane = begin + lasts;
        wake(rank);
    }
}

// Takes its place on the lane once every rank of the stage has come to it; none waits for that.
void MessageExecution::issueBeside(std::uint32_t op, int rank, Nanos now)
{
    if (comeTo(op, rank, now)) takeLanes(op);
}

Nanos MessageExecution::runOps(std::uint32_t id, int rank, Nanos begin)
{
    const OpPlace place = m_index.placeOf(id);
    const std::size_t count = groupSize(m_schedule, rank, place.position);
    const auto duration = [this](std::uint32_t op) { return m_durations.empty() ? 0 : m_durations[op]; };
    // one after the other
    const bool serial =
        count == 2 && isRecompute(m_schedule.order[static_cast<std::size_t>(rank)][place.position].kind);
    const Nanos middle = begin + (serial ? duration(id) : 0);
    const Nanos end = begin + duration(id) + (count == 2 ? duration(id + 1) : 0);
    for (std::uint32_t k = id; k < id + count; ++k) {
        m_out.start[k] = k == id ? begin : middle;
        m_out.end[k] = serial && k == id ? middle : end;
    }
    return end;
}

void MessageExecution::awaitInputs(std::uint32_t op, int rank, std::size_t count)
{
    for (std::uint32_t k = op; k < op + count; ++k)
        for (const Input& input : inputsOf(k))
            if (!input.message && input.source != noOp && !isThere(input))
                m_waiting[static_cast<std::size_t>(m_index.placeOf(input.source).rank)].push_back(rank);
}

void MessageExecution::tellWaiting(int rank)
{
    for (const int waiter : std::exchange(m_waiting[static_cast<std::size_t>(rank)], {})) wake(waiter);
}

template <typename Visit>
void MessageExecution::eachCollectiveFor(const Op& op, int rank, Visit&& visit) const
{
    if (m_beside.empty()) return;
    const Beside& lanes = m_beside[static_cast<std::size_t>(rank)];
    if (op.stage >= lanes.gathered.size()) return;
    if (ruleOf(op.kind).needsWeights && lanes.gathered[op.stage] != noOp) visit(lanes.gathered[op.stage]);
    if (isOptimizer(op.kind) && lanes.reduced[op.stage] != noOp) visit(lanes.reduced[op.stage]);
}

void MessageExecution::stepInBuckets(std::span<const int> gradientBuckets)
{
    m_gradientBuckets = gradientBuckets;
    m_stepsOnArrival.assign(gradientBuckets.empty() ? 0 : m_schedule.order.size(), 0);
    for (std::size_t rank = 0; rank < m_stepsOnArrival.size(); ++rank) {
        bool stepped = false;
        for (const Op& op : m_schedule.order[rank]) {
            if (stepped && !settles(op.kind)) m_stepsOnArrival[rank] = 1;
            stepped = stepped || isOptimizer(op.kind);
        }
    }
}

// From when an op, which takes `duration`, can run through with what a collective beside compute brings.
Nanos MessageExecution::availableAt(std::uint32_t collective, const Op& op, int rank, Nanos duration) const
{
    const Nanos end = m_out.end[collective];
    if (!isOptimizer(op.kind) || m_stepsOnArrival.empty() || m_stepsOnArrival[static_cast<std::size_t>(rank)] == 0 ||
        op.stage >= m_gradientBuckets.size())
        return end;
    const int buckets = std::max(1, m_gradientBuckets[op.stage]);
    return end - allButOnePart(std::min(end - m_out.start[collective], duration), buckets);
}

void MessageExecution::wake(int rank)
{
    char& queued = m_queued[static_cast<std::size_t>(rank)];
    if (queued) return;
    queued = 1;
    m_runnable.push_back(rank);
}

// Starts the messages that may start: where their number is limited in the order of the sends, else in the order in
// which they can leave.
void MessageExecution::advance(Channel& channel)
{
    const bool rendezvous = m_channels.sends == SendMode::Rendezvous;
    while (true) {
        std::uint32_t first = noOp;
        Nanos least = 0;
        for (std::size_t i = channel.next; i < channel.queue.size() && (first == noOp || !channel.lane.limited());
             ++i) {
            const MessageTimes& times = m_out.messages[channel.queue[i]];
            if (times.arrival >= 0) {
                if (i == channel.next) ++channel.next;
                continue;
            }
            if (rendezvous && times.receivePosted < 0) {
                if (channel.lane.limited()) return; // the others queue behind it
                continue;
            }
            const Nanos ready = rendezvous ? std::max(times.sendPosted, times.receivePosted) : times.sendPosted;
            if (first != noOp && ready >= least) continue;
            first = channel.queue[i];
            least = ready;
        }
        if (first == noOp) return;
        start(first, least);
    }
}

Nanos MessageExecution::start(std::uint32_t message, Nanos ready)
{
    MessageTimes& times = m_out.messages[message];
    times.begin = m_channelList[m_channelOf[message]].lane.take(ready, m_transit[message]);
    times.arrival = times.begin + m_transit[message].delay;
    wake(m_index.placeOf(times.send).rank);
    wake(m_index.placeOf(times.receive).rank);
    return times.arrival;
}

void MessageExecution::advanceStream(int rank)
{
    m_streams->advance(rank, [this](std::uint32_t message, Nanos ready) { return start(message, ready); });
}

bool MessageExecution::post(const Op& op, std::uint32_t id, Nanos now)
{
    const std::uint32_t message = m_pairs.messageOf(id);
    MessageTimes& times = m_out.messages[message];
    if ((isSend(op.kind) ? times.send : times.receive) != id) return false; // a second one of the same
    Nanos& posted = isSend(op.kind) ? times.sendPosted : times.receivePosted;
    if (posted >= 0) return false;
    posted = isSend(op.kind) && m_links.collectives == CollectiveLane::Shared
                 ? std::max(now, m_beside[static_cast<std::size_t>(m_index.placeOf(id).rank)].lane)
                 : now;
    if (times.send == noOp || times.receive == noOp) return false;
    if (isSend(op.kind) && !m_streams) m_channelList[m_channelOf[message]].queue.push_back(message);
    return true;
}

// Whether the rank may continue after a posted message, and when.
bool MessageExecution::messageEnd(const Op& op, std::uint32_t message, Nanos& end) const
{
    const bool stands = isSend(op.kind) ? m_channels.sends == SendMode::Rendezvous : m_channels.blockingReceives();
    if (!stands) return true;
    const Nanos arrival = m_out.messages[message].arrival;
    end = std::max(end, arrival);
    return arrival >= 0;
}

bool MessageExecution::runMessages(int rank, std::size_t position, std::size_t count, Nanos& now)
{
    const auto& ops = m_schedule.order[static_cast<std::size_t>(rank)];
    Nanos end = now;
    for (std::size_t i = position; i < position + count; ++i) {
        Nanos begin = now;
        if (!inputsThere(m_index.idOf(rank, i), rank, begin)) return false; // sends what is not made yet
    }
    std::vector<CommunicationStreams::Side>& posted = m_posted;
    posted.clear();
    for (std::size_t i = position; i < position + count; ++i)
        if (post(ops[i], m_index.idOf(rank, i), now))
            posted.push_back({m_pairs.messageOf(m_index.idOf(rank, i)), isSend(ops[i].kind)});
    if (m_streams && !posted.empty()) {
        Nanos since = now;
        for (const auto& side : posted)
            since = std::max(since, side.send ? m_out.messages[side.message].sendPosted : now);
        m_streams->append(rank, posted, since);
        advanceStream(rank);
    } else {
        for (const auto& side : posted)
            if (m_out.messages[side.message].sendPosted >= 0) advance(m_channelList[m_channelOf[side.message]]);
    }
    bool all = true;
    for (std::size_t i = position; i < position + count; ++i)
        all = messageEnd(ops[i], m_pairs.messageOf(m_index.idOf(rank, i)), end) && all;
    if (!all && m_forced != rank) return false;
    for (std::size_t i = position; i < position + count; ++i) {
        m_out.start[m_index.idOf(rank, i)] = now;
        m_out.end[m_index.idOf(rank, i)] = end;
    }
    now = end;
    return true;
}

void MessageExecution::runRank(int rank)
{
    const auto r = static_cast<std::size_t>(rank);
    const auto& ops = m_schedule.order[r];
    Nanos now = m_clock[r];
    std::size_t i = m_head[r];
    while (i < ops.size()) {
        const std::size_t count = groupSize(m_schedule, rank, i);
        const std::uint32_t id = m_index.idOf(rank, i);
        if (isMessage(ops[i].kind)) {
            if (!runMessages(rank, i, count, now)) break;
        } else if (!m_beside.empty() && isCollective(ops[i].kind)) {
            issueBeside(id, rank, now);
        } else {
            Nanos begin = now;
            bool there = true;
            for (std::uint32_t k = id; k < id + count; ++k)
                there = there && inputsThere(k, rank, begin) && reductionThere(k, rank, now, begin);
            if (!there) {
                awaitInputs(id, rank, count);
                break;
            }
            now = runOps(id, rank, begin);
            for (std::uint32_t k = id; k < id + count; ++k) {
                if (!m_leaves.empty()) m_leaves[k] = std::max(m_out.end[k], m_beside[r].lane);
                fly(k);
            }
        }
        m_forced = -1;
        i += count;
    }
    const bool moved = i != m_head[r];
    m_head[r] = i;
    m_clock[r] = now;
    if (moved) tellWaiting(rank);
}

bool MessageExecution::run(PlacePolicy policy)
{
    if (policy == PlacePolicy::Strict && lanesAreShared()) {
        runInTime();
        return done() == m_index.opCount();
    }
    for (int r = m_schedule.ranks - 1; r >= 0; --r) wake(r);
    while (true) {
        while (!m_runnable.empty()) {
            const int rank = m_runnable.back();
            m_runnable.pop_back();
            m_queued[static_cast<std::size_t>(rank)] = 0;
            runRank(rank);
        }
        if (policy == PlacePolicy::Strict) break;
        std::size_t waiting = 0;
        while (waiting < m_head.size() && m_head[waiting] == m_schedule.order[waiting].size()) ++waiting;
        if (waiting == m_head.size()) break;
        m_forced = static_cast<int>(waiting);
        wake(m_forced);
    }
    return done() == m_index.opCount();
}

std::size_t MessageExecution::done() const
{
    std::size_t sum = 0;
    for (const std::size_t head : m_head) sum += head;
    return sum;
}

std::vector<MessageExecution::Obstacle> MessageExecution::obstacles(int rank) const
{
    std::vector<Obstacle> out;
    const auto r = static_cast<std::size_t>(rank);
    const auto& ops = m_schedule.order[r];
    const std::size_t at = m_head[r];
    if (m_streams)
        // its list may be past it: what is behind it on the stream waits with it
        if (const auto held = m_streams->heldBy(rank)) {
            const MessageTimes& times = m_out.messages[held->message];
            out.push_back({held->send ? times.send : times.receive, held->send ? times.receive : times.send});
        }
    if (at >= ops.size()) return out;
    auto addMessage = [&](std::uint32_t op, std::uint32_t message) {
        const MessageTimes& times = m_out.messages[message];
        if (times.arrival >= 0) return;
        if (times.send == noOp || times.receive == noOp) return out.push_back({op, noOp});
        if (times.sendPosted < 0) return out.push_back({op, times.send});
        if (times.receivePosted < 0) return out.push_back({op, times.receive});
        if (m_streams) return addHeldBack(rank, op, message, out);
        const Channel& channel = m_channelList[m_channelOf[message]]; // behind another message
        out.push_back({op, m_out.messages[channel.queue[channel.next]].receive});
    };
    const std::size_t count = groupSize(m_schedule, rank, at);
    for (std::size_t i = at; i < at + count; ++i) {
        const std::uint32_t id = m_index.idOf(rank, i);
        for (const Input& input : inputsOf(id)) {
            if (input.source == noOp)
                out.push_back({id, noOp});
            else if (input.message)
                addMessage(id, input.source);
            else if (m_out.end[input.source] < 0)
                out.push_back({id, input.source});
        }
        eachCollectiveFor(ops[i], rank, [&](std::uint32_t collective) {
            const auto meeting = m_meetingOf.find(collective);
            if (m_out.end[collective] >= 0 || meeting == m_meetingOf.end()) return;
            for (const std::uint32_t other : m_meetings[meeting->second])
                if (!m_met.contains(other)) out.push_back({id, other});
        });
        if (isMessage(ops[i].kind)) {
            Nanos end = 0;
            const std::uint32_t message = m_pairs.messageOf(id);
            if (!messageEnd(ops[i], message, end)) addMessage(id, message);
        } else if (const auto meeting = m_meetingOf.find(id); meeting != m_meetingOf.end()) {
            for (const std::uint32_t other : m_meetings[meeting->second])
                if (!m_met.contains(other)) out.push_back({id, other});
        }
    }
    return out;
}

// Both sides are posted, but one stream or both have not come to it.
void MessageExecution::addHeldBack(int rank, std::uint32_t op, std::uint32_t message, std::vector<Obstacle>& out) const
{
    for (const bool send : {true, false}) {
        if (m_streams->reached({message, send})) continue;
        const std::uint32_t side = send ? m_out.messages[message].send : m_out.messages[message].receive;
        if (m_index.placeOf(side).rank != rank) return out.push_back({op, side});
    }
    // Its own stream alone: the obstacle of that stream says what it waits for.
}

} // namespace stagewright
