#include "schedules/step/step_run.h"

#include <algorithm>
#include <utility>

#include "schedules/model/groups.h"
#include "schedules/model/kinds.h"

namespace stagewright {

StepRun::StepRun(const StepPlan& plan, std::span<const Nanos> durations)
    : m_plan(plan), m_schedule(plan.schedule()), m_index(plan.index()), m_channels(plan.rules().channels),
      m_durations(durations), m_cards(plan.rules().links, plan.rules().channels)
{
    const std::size_t ranks = m_schedule.order.size();
    m_out.offsets.push_back(0);
    for (const auto& ops : m_schedule.order) m_out.offsets.push_back(m_out.offsets.back() + ops.size());
    m_out.start.assign(m_out.offsets.back(), -1);
    m_out.end.assign(m_out.offsets.back(), -1);
    m_head.assign(ranks, 0);
    m_clock.assign(ranks, 0);
    m_waiting.resize(ranks);
    m_queued.assign(ranks, 0);
    m_out.messages.resize(plan.messages().size());
    for (std::size_t i = 0; i < m_out.messages.size(); ++i) {
        m_out.messages[i].send = plan.messages()[i].pair.send;
        m_out.messages[i].receive = plan.messages()[i].pair.receive;
    }
    Channels carried = m_channels;
    if (plan.messages().empty()) carried.perDirection = 0; // only sends and receives in the lists know of that
    m_links.assign(plan.linkCount(), {{}, 0, LinkLane(carried)});
    if (m_channels.oneStream && !plan.messages().empty()) m_streams.emplace(ranks, plan.messages().size());
    m_arrivals.assign(plan.flights().size(), -1);
    if (plan.collectivesBeside()) {
        const auto stages = static_cast<std::size_t>(m_schedule.stages);
        m_beside.assign(ranks, {0, std::vector<std::uint32_t>(stages, noOp), std::vector<std::uint32_t>(stages, noOp)});
        if (plan.rules().links.collectives == ResourceUse::Shared) m_leaves.assign(m_index.opCount(), -1);
    }
}

void StepRun::fly(std::uint32_t op)
{
    const auto [first, last] = m_plan.flightsOf(op);
    for (std::uint32_t i = first; i < last; ++i) {
        const StepPlan::Flight& flight = m_plan.flights()[i];
        const Nanos leaves = m_leaves.empty() ? m_out.end[op] : m_leaves[op];
        m_arrivals[i] = takeLink(flight.link, leaves, flight.transit) + flight.transit.delay;
    }
}

Nanos StepRun::takeLink(std::uint32_t link, Nanos ready, const Transit& transit)
{
    const auto [from, to] = m_plan.ranksOf(link);
    return m_cards.take(m_links[link].lane, from, to, ready, transit);
}

// Whether its end, arrival or departure is known.
bool StepRun::isThere(const StepInput& input) const
{
    if (input.source == noOp) return false;
    if (input.message) return m_out.messages[input.source].arrival >= 0;
    if (input.flight != noOp) return m_arrivals[input.flight] >= 0;
    return m_out.end[input.source] >= 0 && (input.delay == 0 || m_leaves.empty() || m_leaves[input.source] >= 0);
}

bool StepRun::inputsThere(std::uint32_t op, int rank, Nanos& begin) const
{
    bool all = true;
    for (const StepInput& input : m_plan.inputsOf(op)) {
        const Nanos at = input.source == noOp ? -1
                         : input.message      ? m_out.messages[input.source].arrival
                                              : m_out.end[input.source];
        if (!isThere(input))
            all = false;
        else if (input.flight != noOp)
            begin = std::max(begin, m_arrivals[input.flight]);
        else
            begin =
                std::max(begin, (input.delay > 0 && !input.message && !m_leaves.empty() ? m_leaves[input.source] : at) +
                                    input.delay);
    }
    if (m_beside.empty()) return all || m_forced == rank;
    const Op& own = m_plan.op(op);
    eachCollectiveFor(own, rank, [&](std::uint32_t collective) {
        if (m_out.end[collective] < 0)
            all = false;
        else
            begin = std::max(begin, availableAt(collective, own, rank, m_durations.empty() ? 0 : m_durations[op]));
    });
    return all || m_forced == rank;
}

// Copies of a stage reduce their gradients together.
bool StepRun::reductionThere(std::uint32_t op, int rank, Nanos now, Nanos& begin)
{
    const auto members = m_plan.meetingOf(op);
    if (members.empty()) return true;
    const auto [mine, fresh] = m_met.try_emplace(op, now);
    bool all = true;
    for (const std::uint32_t other : members) {
        const int from = m_index.placeOf(other).rank;
        if (fresh && from != rank) wake(from);
        const auto met = m_met.find(other);
        all = all && met != m_met.end();
        if (met != m_met.end()) begin = std::max(begin, met->second + m_plan.rules().links.delay(from, rank, 0));
    }
    return all || m_forced == rank;
}

std::span<const std::uint32_t> StepRun::membersOf(const std::uint32_t& collective) const
{
    const auto members = m_plan.meetingOf(collective);
    return members.empty() ? std::span(&collective, 1) : members;
}

bool StepRun::comeTo(std::uint32_t op, int rank, Nanos now)
{
    const Op& collective = m_plan.op(op);
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

void StepRun::takeLanes(std::uint32_t op)
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
void StepRun::issueBeside(std::uint32_t op, int rank, Nanos now)
{
    if (comeTo(op, rank, now)) takeLanes(op);
}

Nanos StepRun::runOps(std::uint32_t id, int rank, Nanos begin)
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

// On a resource beside compute an op starts once that is free and its inputs are there; the list goes on behind it at
// once.
Nanos StepRun::runAny(std::uint32_t id, int rank, Nanos now, Nanos begin)
{
    const OpKind kind = m_plan.op(id).kind;
    if (!runsApart(kind)) return runOps(id, rank, begin);
    Nanos& taken = m_apart[{rank, m_plan.rules().links.queueOf(kind)}];
    taken = runOps(id, rank, std::max(begin, taken));
    return now;
}

void StepRun::awaitInputs(std::uint32_t op, int rank, std::size_t count)
{
    for (std::uint32_t k = op; k < op + count; ++k)
        for (const StepInput& input : m_plan.inputsOf(k))
            if (!input.message && input.source != noOp && !isThere(input))
                m_waiting[static_cast<std::size_t>(m_index.placeOf(input.source).rank)].push_back(rank);
}

void StepRun::tellWaiting(int rank)
{
    for (const int waiter : std::exchange(m_waiting[static_cast<std::size_t>(rank)], {})) wake(waiter);
}

template <typename Visit>
void StepRun::eachCollectiveFor(const Op& op, int rank, Visit&& visit) const
{
    if (m_beside.empty()) return;
    const Beside& lanes = m_beside[static_cast<std::size_t>(rank)];
    if (op.stage >= lanes.gathered.size()) return;
    if (ruleOf(op.kind).needsWeights && lanes.gathered[op.stage] != noOp) visit(lanes.gathered[op.stage]);
    if (ruleOf(op.kind).behind == Behind::Reductions && lanes.reduced[op.stage] != noOp) visit(lanes.reduced[op.stage]);
}

// From when an op, which takes `duration`, can run through with what a collective beside compute brings.
Nanos StepRun::availableAt(std::uint32_t collective, const Op& op, int rank, Nanos duration) const
{
    const Nanos end = m_out.end[collective];
    if (ruleOf(op.kind).behind != Behind::Reductions) return end;
    const int buckets = m_plan.bucketsOf(op, rank);
    return buckets > 1 ? gradientsArrive(m_out.start[collective], end, duration, buckets) : end;
}

void StepRun::wake(int rank)
{
    char& queued = m_queued[static_cast<std::size_t>(rank)];
    if (queued) return;
    queued = 1;
    m_runnable.push_back(rank);
}

// Starts the messages that may start: where their number is limited in the order of the sends, else in the order in
// which they can leave.
void StepRun::advance(LinkQueue& link)
{
    const bool rendezvous = m_channels.sends == SendMode::Rendezvous;
    while (true) {
        std::uint32_t first = noOp;
        Nanos least = 0;
        for (std::size_t i = link.next; i < link.messages.size() && (first == noOp || !link.lane.limited()); ++i) {
            const MessageTimes& times = m_out.messages[link.messages[i]];
            if (times.arrival >= 0) {
                if (i == link.next) ++link.next;
                continue;
            }
            if (rendezvous && times.receivePosted < 0) {
                if (link.lane.limited()) return; // the others queue behind it
                continue;
            }
            const Nanos ready = rendezvous ? std::max(times.sendPosted, times.receivePosted) : times.sendPosted;
            if (first != noOp && ready >= least) continue;
            first = link.messages[i];
            least = ready;
        }
        if (first == noOp) return;
        start(first, least);
    }
}

Nanos StepRun::start(std::uint32_t message, Nanos ready)
{
    MessageTimes& times = m_out.messages[message];
    const StepPlan::Message& sent = m_plan.messages()[message];
    times.begin = takeLink(sent.link, ready, sent.transit);
    times.arrival = times.begin + sent.transit.delay;
    wake(m_index.placeOf(times.send).rank);
    wake(m_index.placeOf(times.receive).rank);
    return times.arrival;
}

void StepRun::advanceStream(int rank)
{
    m_streams->advance(rank, [this](std::uint32_t message, Nanos ready) { return start(message, ready); });
}

bool StepRun::post(const Op& op, std::uint32_t id, Nanos now)
{
    const std::uint32_t message = m_plan.messageOf(id);
    MessageTimes& times = m_out.messages[message];
    if ((isSend(op.kind) ? times.send : times.receive) != id) return false; // a second one of the same
    Nanos& posted = isSend(op.kind) ? times.sendPosted : times.receivePosted;
    if (posted >= 0) return false;
    posted = isSend(op.kind) && m_plan.rules().links.collectives == ResourceUse::Shared
                 ? std::max(now, m_beside[static_cast<std::size_t>(m_index.placeOf(id).rank)].lane)
                 : now;
    if (times.send == noOp || times.receive == noOp) return false;
    if (isSend(op.kind) && !m_streams) m_links[m_plan.messages()[message].link].messages.push_back(message);
    return true;
}

// Whether the rank may continue after a posted message, and when.
bool StepRun::messageEnd(const Op& op, std::uint32_t message, Nanos& end) const
{
    const bool stands = isSend(op.kind) ? m_channels.sends == SendMode::Rendezvous : m_channels.blockingReceives();
    if (!stands) return true;
    const Nanos arrival = m_out.messages[message].arrival;
    end = std::max(end, arrival);
    return arrival >= 0;
}

bool StepRun::runMessages(int rank, std::size_t position, std::size_t count, Nanos& now)
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
            posted.push_back({m_plan.messageOf(m_index.idOf(rank, i)), isSend(ops[i].kind)});
    if (m_streams && !posted.empty()) {
        Nanos since = now;
        for (const auto& side : posted)
            since = std::max(since, side.send ? m_out.messages[side.message].sendPosted : now);
        m_streams->append(rank, posted, since);
        advanceStream(rank);
    } else {
        for (const auto& side : posted)
            if (m_out.messages[side.message].sendPosted >= 0) advance(m_links[m_plan.messages()[side.message].link]);
    }
    bool all = true;
    for (std::size_t i = position; i < position + count; ++i)
        all = messageEnd(ops[i], m_plan.messageOf(m_index.idOf(rank, i)), end) && all;
    if (!all && m_forced != rank) return false;
    for (std::size_t i = position; i < position + count; ++i) {
        m_out.start[m_index.idOf(rank, i)] = now;
        m_out.end[m_index.idOf(rank, i)] = end;
    }
    now = end;
    return true;
}

void StepRun::runRank(int rank)
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
            now = runAny(id, rank, now, begin);
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

bool StepRun::run(PlacePolicy policy)
{
    const bool inTime = lanesAreShared() && (policy == PlacePolicy::Strict || m_cards.any());
    if (inTime) {
        runInTime();
        if (policy == PlacePolicy::Strict || done() == m_index.opCount()) return done() == m_index.opCount();
    }
    for (int r = m_schedule.ranks - 1; r >= 0 && !inTime; --r) wake(r);
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

std::size_t StepRun::done() const
{
    std::size_t sum = 0;
    for (const std::size_t head : m_head) sum += head;
    return sum;
}

std::vector<StepRun::Obstacle> StepRun::obstacles(int rank) const
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
        const LinkQueue& link = m_links[m_plan.messages()[message].link]; // behind another message
        out.push_back({op, m_out.messages[link.messages[link.next]].receive});
    };
    const std::size_t count = groupSize(m_schedule, rank, at);
    for (std::size_t i = at; i < at + count; ++i) {
        const std::uint32_t id = m_index.idOf(rank, i);
        for (const StepInput& input : m_plan.inputsOf(id)) {
            if (input.source == noOp)
                out.push_back({id, noOp});
            else if (input.message)
                addMessage(id, input.source);
            else if (m_out.end[input.source] < 0)
                out.push_back({id, input.source});
        }
        eachCollectiveFor(ops[i], rank, [&](std::uint32_t collective) {
            if (m_out.end[collective] >= 0) return;
            for (const std::uint32_t other : m_plan.meetingOf(collective))
                if (!m_met.contains(other)) out.push_back({id, other});
        });
        if (isMessage(ops[i].kind)) {
            Nanos end = 0;
            const std::uint32_t message = m_plan.messageOf(id);
            if (!messageEnd(ops[i], message, end)) addMessage(id, message);
        } else {
            for (const std::uint32_t other : m_plan.meetingOf(id))
                if (!m_met.contains(other)) out.push_back({id, other});
        }
    }
    return out;
}

// Both sides are posted, but one stream or both have not come to it.
void StepRun::addHeldBack(int rank, std::uint32_t op, std::uint32_t message, std::vector<Obstacle>& out) const
{
    for (const bool send : {true, false}) {
        if (m_streams->reached({message, send})) continue;
        const std::uint32_t side = send ? m_out.messages[message].send : m_out.messages[message].receive;
        if (m_index.placeOf(side).rank != rank) return out.push_back({op, side});
    }
    // Its own stream alone: the obstacle of that stream says what it waits for.
}

} // namespace stagewright
