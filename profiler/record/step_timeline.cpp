#include "profiler/record/step_timeline.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "profiler/record/step_record.h"
#include "schedules/model/kinds.h"
#include "schedules/model/op_index.h"
#include "schedules/model/shard_rules.h"
#include "schedules/timeline/host_memory.h"

namespace stagewright {

namespace {

Nanos timeOf(const StepRecord& record, std::size_t rank, const MemoryChange& change)
{
    const std::vector<RecordedOp>& ops = record.ops[rank];
    if (change.when == MemoryChange::When::StepBegin || ops.empty()) return record.begin;
    if (change.op >= ops.size()) return ops.back().end;
    const RecordedOp& op = ops[change.op];
    if (change.when == MemoryChange::When::OpBegin) return op.begin;
    if (change.op + 1 < ops.size() && !isRecompute(op.op.kind) && op.end > op.begin) {
        // The first op of a pair in one interval holds or frees its memory before the second frees its own.
        const RecordedOp& other = ops[change.op + 1];
        if (other.begin == op.begin && other.end == op.end) return op.begin + (op.end - op.begin) / 2;
    }
    return op.end;
}

// The stage whose output (or input gradient) a message carries.
int producerStage(const MessageKey& key) { return key.gradient ? key.stage + 1 : key.stage - 1; }

class StepTimeline {
public:
    explicit StepTimeline(const StepRecord& record)
        : m_record(record), m_builder(Provenance::Measured, record.clock, static_cast<int>(record.ops.size()))
    {
        std::size_t spans = 3 * record.messages.size() + record.work.size();
        for (const std::vector<RecordedOp>& ops : record.ops) spans += ops.size();
        m_builder.reserve(spans);
        m_builder.setSchedule(computeOf(record.schedule));
        m_shared = sharesState(record.schedule->compute());
    }

    Result<std::shared_ptr<const Timeline>> build()
    {
        addOps();
        addEdges();
        addMessages();
        addMemory();
        addWork();
        return m_builder.build();
    }

private:
    SpanId add(int rank, Lane lane, Op op, Nanos begin, Nanos end, Nanos cpu = -1, std::uint32_t label = 0)
    {
        Span span;
        span.start = begin;
        span.end = end;
        span.op = op;
        span.step = m_record.step;
        span.label = label & 0xffffffu;
        return m_builder.addSpan(m_builder.addTrack(rank, lane), span, cpu);
    }

    // Ops outside the list: if it has such ops itself, the optimizer must not pass for one of them.
    std::uint32_t labelOf(const RecordedOp& op)
    {
        if (op.position >= 0) return 0;
        if (isReduction(op.op.kind)) return m_builder.intern("gradient norm");
        return m_listed ? m_builder.intern("optimizer") : 0;
    }

    void addOps()
    {
        for (const std::vector<Op>& list : m_record.schedule->compute().order)
            m_listed =
                m_listed || std::any_of(list.begin(), list.end(), [](const Op& op) { return isStageOp(op.kind); });
        m_ids.resize(m_record.ops.size());
        for (std::size_t rank = 0; rank < m_record.ops.size(); ++rank) {
            for (const RecordedOp& op : m_record.ops[rank]) {
                const std::uint32_t label = labelOf(op);
                if (m_shared && op.position >= 0 && isCollective(op.op.kind))
                    m_ids[rank].push_back(addCollective(static_cast<int>(rank), op));
                else
                    m_ids[rank].push_back(add(static_cast<int>(rank),
                                              runsApart(op.op.kind) ? ruleOf(op.op.kind).lane : Lane::Compute, op.op,
                                              op.begin, op.end, op.cpu, label));
            }
            if (m_shared) addCollectiveEdges(rank);
        }
    }

    // From its op until the last piece was there and, where that was taken at once, until then.
    SpanId addCollective(int rank, const RecordedOp& op)
    {
        const Lane lane = ruleOf(op.op.kind).lane;
        const bool later = op.takeBegin > op.arrived;
        SpanId last = add(rank, lane, op.op, op.begin, std::max(op.end, later ? op.arrived : op.takeEnd), op.cpu);
        const SpanId id = last;
        if (later)
            last = add(rank, lane, op.op, op.takeBegin, op.takeEnd, -1,
                       m_builder.intern(isReduction(op.op.kind) ? "additions" : "copies"));
        if (op.arrived >= 0) m_taken.emplace(id, last);
        if (op.bytes > 0) {
            Bytes& sum = (isReduction(op.op.kind) ? m_reduced : m_gathered)[rank];
            const int counter = m_builder.addCounter(
                rank, isReduction(op.op.kind) ? "gradients received" : "weights received", "bytes");
            m_builder.addSample(counter, op.takeEnd, static_cast<double>(sum += op.bytes));
        }
        return id;
    }

    // From a gather to the first op that needs the weights, from a stage's reductions to its optimizer.
    void addCollectiveEdges(std::size_t rank)
    {
        const std::vector<RecordedOp>& ops = m_record.ops[rank];
        std::map<int, std::vector<std::size_t>> gathers; // by stage, not needed yet
        std::map<int, std::vector<std::size_t>> reductions;
        const auto tie = [&](std::vector<std::size_t>& awaited, std::size_t to) {
            for (const std::size_t from : awaited)
                if (const auto taken = m_taken.find(m_ids[rank][from]); taken != m_taken.end())
                    m_builder.addEdge(taken->second, m_ids[rank][to], EdgeKind::Order,
                                      std::min(ops[from].takeEnd, std::max(ops[from].begin, ops[to].begin)));
            awaited.clear();
        };
        for (std::size_t i = 0; i < ops.size(); ++i) {
            if (ops[i].position < 0) continue;
            const int stage = ops[i].op.stage;
            if (isGather(ops[i].op.kind))
                gathers[stage].push_back(i);
            else if (isReduction(ops[i].op.kind))
                reductions[stage].push_back(i);
            else if (isOptimizer(ops[i].op.kind))
                tie(reductions[stage], i);
            else if (ruleOf(ops[i].op.kind).needsWeights)
                tie(gathers[stage], i);
        }
    }

    // One edge for each producer of an op's inputs: on the same rank with the producer's end, else with the arrival of
    // the last message from it.
    void addEdges()
    {
        const Schedule& schedule = m_record.schedule->compute();
        const OpIndex& index = m_record.schedule->index();
        for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
            for (std::size_t i = 0; i < schedule.order[rank].size(); ++i) {
                index.eachInput(schedule.order[rank][i], [&](std::uint32_t producer, const Need&, int) {
                    if (producer == noOp) return;
                    const OpPlace from = index.placeOf(producer);
                    if (static_cast<std::size_t>(from.rank) != rank) return;
                    m_builder.addEdge(m_ids[rank][from.position], m_ids[rank][i], EdgeKind::Data,
                                      m_record.ops[rank][from.position].end);
                });
            }
        }
        const std::vector<RecordedMessage>& messages = m_record.messages; // in the order of their consumers
        for (std::size_t i = 0; i < messages.size();) {
            const RecordedMessage& first = messages[i];
            Nanos arrival = first.arrival;
            for (++i; i < messages.size() && messages[i].toRank == first.toRank && messages[i].toOp == first.toOp &&
                      messages[i].fromRank == first.fromRank && messages[i].fromOp == first.fromOp;
                 ++i) {
                arrival = std::max(arrival, messages[i].arrival);
            }
            m_builder.addEdge(m_ids[static_cast<std::size_t>(first.fromRank)][first.fromOp],
                              m_ids[static_cast<std::size_t>(first.toRank)][first.toOp], EdgeKind::Data, arrival);
        }
    }

    void addMessages()
    {
        for (const RecordedMessage& message : m_record.messages) {
            const auto opOf = [&message](OpKind kind, int stage) {
                Op op = makeOp(kind, stage, message.key.microbatch);
                op.slice = message.key.slice;
                op.half = message.key.half;
                return op;
            };
            const Op send = opOf(sendKind(message.key.gradient), producerStage(message.key));
            const Op receive = opOf(receiveKind(message.key.gradient), message.key.stage);
            const Nanos produced = m_record.ops[static_cast<std::size_t>(message.fromRank)][message.fromOp].end;
            if (message.sendPosted >= 0) {
                addMet(message, send, receive);
                continue;
            }
            const Nanos available = std::max(message.sent, message.available);
            if (available > produced) add(message.fromRank, Lane::Send, send, produced, available);
            if (message.takeEnd > message.takeBegin) {
                add(message.toRank, Lane::Receive, receive, message.takeBegin, message.takeEnd);
            }
            // On the virtual clock it is taken at the start of its op, which may be launched later than the message is
            // there.
            const Nanos waited =
                m_record.clock == "virtual" ? std::min(message.takeBegin, message.available) : message.takeBegin;
            if (message.waitBegin >= 0 && waited > message.waitBegin) {
                add(message.toRank, Lane::Wait, receive, message.waitBegin, waited);
            }
        }
    }

    // Rendezvous: both sides are known (schedules/timeline/message_view.h).
    void addMet(const RecordedMessage& message, const Op& send, const Op& receive)
    {
        const Nanos posted = std::min(message.receivePosted, message.takeBegin);
        const Nanos begin = std::min(std::max(message.sendPosted, posted), message.available);
        const SpanId sent = add(message.fromRank, Lane::Send, send, begin, message.available);
        const SpanId received = add(message.toRank, Lane::Receive, receive, posted, message.takeEnd);
        if (message.sent > message.sendPosted)
            add(message.fromRank, Lane::Wait, send, message.sendPosted, message.sent);
        if (message.waitBegin >= 0 && message.takeBegin > message.waitBegin)
            add(message.toRank, Lane::Wait, receive, message.waitBegin, message.takeBegin);
        m_builder.addEdge(m_ids[static_cast<std::size_t>(message.fromRank)][message.fromOp], sent, EdgeKind::Order,
                          message.sendPosted);
        m_builder.addEdge(sent, received, EdgeKind::Transfer, message.available);
        m_builder.addEdge(received, m_ids[static_cast<std::size_t>(message.toRank)][message.toOp], EdgeKind::Transfer,
                          message.arrival);
    }

    void addWork()
    {
        std::vector<std::uint32_t> labels;
        for (const std::string& name : m_record.workNames) labels.push_back(m_builder.intern(name));
        for (const RecordedWork& work : m_record.work) {
            Span span;
            span.start = work.begin;
            span.end = work.end;
            span.step = m_record.step;
            span.label = labels[work.name] & 0xffffffu;
            const std::string track =
                work.collective ? "rank " + std::to_string(work.rank) + " kernel, collective" : std::string();
            const SpanId id = m_builder.addSpan(m_builder.addTrack(work.rank, work.lane, track), span);
            if (work.op < 0) continue;
            const SpanId owner = m_ids[static_cast<std::size_t>(work.rank)][static_cast<std::size_t>(work.op)];
            m_builder.addEdge(owner, id, EdgeKind::Launch,
                              work.launched >= 0 ? std::min(work.launched, work.begin) : work.begin);
        }
    }

    void addMemory()
    {
        for (std::size_t rank = 0; rank < m_record.memory.size(); ++rank) {
            // A collective may end behind the ops that its list goes on with: what is freed in these is not before what
            // it took. by category, stage and microbatch: when it last grew
            std::map<std::tuple<MemoryCategory, int, int>, Nanos> taken;
            std::vector<std::pair<Nanos, Bytes>> host;
            for (const MemoryChange& change : m_record.memory[rank]) {
                Nanos time = timeOf(m_record, rank, change);
                if (change.onHost) {
                    host.emplace_back(time, change.delta);
                    continue;
                }
                Nanos& last = taken.try_emplace({change.category, change.stage, change.microbatch}, time).first->second;
                if (change.delta < 0)
                    time = std::max(time, last);
                else
                    last = std::max(last, time);
                addEvent(static_cast<int>(rank), time, change.delta, change.category, change.stage, change.microbatch);
            }
            addHost(static_cast<int>(rank), std::move(host));
        }
        for (const RecordedMessage& message :
             // the sender's copy lives until the receiver has its own, and the sender has come to know of it
             m_record.messages) {
            if (message.released == 0) continue;
            const auto& ops = m_record.ops[static_cast<std::size_t>(message.fromRank)];
            const auto after = static_cast<std::size_t>(std::max<std::int64_t>(0, message.releasedAfter));
            const Nanos known = message.releasedAfter >= 0 && after < ops.size() ? ops[after].end : message.takeEnd;
            addEvent(message.fromRank, std::max(message.takeEnd, known), message.released,
                     MemoryCategory::Communication, static_cast<std::uint16_t>(producerStage(message.key)),
                     message.key.microbatch);
        }
    }

    // What copies have moved to the rank's host, as a counter.
    void addHost(int rank, std::vector<std::pair<Nanos, Bytes>> changes)
    {
        if (changes.empty()) return;
        std::sort(changes.begin(), changes.end()); // what is freed at a moment before what is taken
        const int counter = m_builder.addCounter(rank, std::string(hostMemoryCounter), "bytes");
        Bytes held = 0;
        for (const auto& [time, delta] : changes)
            m_builder.addSample(counter, time, static_cast<double>(held += delta));
    }

    void addEvent(int rank, Nanos time, Bytes delta, MemoryCategory category, std::uint16_t stage, int microbatch)
    {
        MemoryEvent event;
        event.time = time;
        event.delta = delta;
        event.microbatch = microbatch;
        event.step = m_record.step;
        event.rank = static_cast<std::uint16_t>(rank);
        event.stage = stage;
        event.category = category;
        m_builder.addMemory(event);
    }

    const StepRecord& m_record;
    TimelineBuilder m_builder;
    std::vector<std::vector<SpanId>> m_ids; // provisional, by rank and op
    bool m_listed = false;                  // the schedule has optimizer or reduction ops
    bool m_shared = false;                  // its ranks share state
    std::map<SpanId, SpanId> m_taken;       // by collective: the span whose end others waited for
    std::map<int, Bytes> m_gathered;        // by rank: so far
    std::map<int, Bytes> m_reduced;
};

} // namespace

Result<std::shared_ptr<const Timeline>> timelineOf(const StepRecord& record) { return StepTimeline(record).build(); }

} // namespace stagewright
