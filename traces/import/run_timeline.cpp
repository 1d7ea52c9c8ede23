#include "traces/import/run_timeline.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "schedules/base/quantity.h"
#include "schedules/base/release_items.h"
#include "schedules/base/step_number.h"
#include "schedules/base/text.h"
#include "schedules/model/kinds.h"
#include "schedules/model/op_index.h"
#include "traces/analysis/work_bytes.h"
#include "traces/import/message_ops.h"
#include "traces/import/rank_work.h"
#include "traces/import/rebuild_schedule.h"
#include "traces/run/rank_places.h"
#include "traces/run/run_facts.h"

namespace stagewright {

namespace {

// Frees its memory too, which assigning {} would keep.
template <typename List>
void giveBack(List& list)
{
    List().swap(list);
}

// Items of large lists processed between checks for a stop, and freed at a time.
constexpr std::size_t itemsAtOnce = 1 << 16;

// From a communication library or PyTorch's schedule; its data is on the lanes of messages.
bool isMessageRange(std::string_view name)
{
    if (name == "gloo:send" || name == "gloo:recv" || name.starts_with("nccl:send") || name.starts_with("nccl:recv"))
        return true;
    return name.starts_with("PP:") &&
           (name.find("SEND_") != std::string_view::npos || name.find("RECV_") != std::string_view::npos);
}

// The lane of a collective by its name: "all_gather_into_tensor", "_reduce_scatter_base", "allreduce". Nothing:
// neither a gather nor a reduction.
std::optional<Lane> dataParallelLane(std::string_view name)
{
    std::string plain;
    for (const char c : lowered(name))
        if (c >= 'a' && c <= 'z') plain += c;
    if (plain.find("allgather") != std::string::npos) return Lane::Gather;
    if (plain.find("reducescatter") != std::string::npos || plain.find("allreduce") != std::string::npos)
        return Lane::Reduce;
    return std::nullopt;
}

struct OpKey { // an op in a step, on a rank
    int step;
    int rank;
    Op op;
    bool operator==(const OpKey&) const = default;
};
struct OpKeyHash {
    std::size_t operator()(const OpKey& key) const noexcept
    {
        return std::hash<Op>()(key.op) ^ (static_cast<std::size_t>(key.step) * 0x9e3779b97f4a7c15u) ^
               (static_cast<std::size_t>(key.rank) << 40);
    }
};

struct Placed {
    SpanId span = noSpan;
    Nanos start = 0;
    Nanos end = 0;
};

class Assembler {
public:
    Assembler(JobParts parts, ImportedRun& out, const Progress& progress)
        : m_parts(std::move(parts)), m_out(out), m_progress(progress), m_ranks(static_cast<int>(m_parts.ranks.size())),
          m_builder(Provenance::Imported, "wall", m_ranks), m_collectiveSpan(m_parts.ranks.size())
    {
    }

    Result<std::shared_ptr<const Timeline>> build()
    {
        if (!place()) return cancelled();
        rebuild();
        findMessages();
        std::size_t spans = 0;
        for (std::size_t r = 0; r < m_parts.ranks.size(); ++r)
            spans += m_work[r].compute.size() + m_parts.ranks[r].device.size() +
                     2 * m_parts.ranks[r].annotations.size() + m_parts.ranks[r].deviceAnnotations.size() +
                     m_parts.ranks[r].hostOps.size();
        for (const auto& ends : m_parts.messages.collectives) spans += ends.size(); // an edge each
        m_builder.reserve(spans + 2 * m_parts.messages.pairs.size());
        for (int r = 0; r < m_ranks; ++r) {
            m_progress.tell("ranks", r, m_ranks);
            if (!addRank(r)) return cancelled();
        }
        m_progress.tell("ranks", m_ranks, m_ranks);
        if (!addMessageEdges()) return cancelled();
        addCollectives();
        if (!addDataEdges()) return cancelled();
        if (m_progress.cancelled()) return cancelled();
        m_builder.setSchedule(m_schedule);
        m_builder.setMissingRanks(partOfPipeline(m_out.run.configuration, m_ranks));
        m_out.run.schedule = m_schedule;
        auto timeline = m_builder.build();
        if (m_progress.cancelled()) return cancelled();
        return timeline;
    }

private:
    ForeignRank& rank(int r) { return m_parts.ranks[static_cast<std::size_t>(r)]; }
    RankOps& ops(int r) { return m_parts.ops.ranks[static_cast<std::size_t>(r)]; }
    static tl::unexpected<Error> cancelled() { return fail(ErrorCode::Cancelled, "importing was cancelled"); }
    bool goesOn(std::size_t item) const { return item % itemsAtOnce != 0 || !m_progress.cancelled(); }

    bool place() // this and the following functions return false if cancelled
    {
        std::int64_t clipped = 0;
        Nanos overlap = 0;
        std::int64_t projected = 0;
        for (int r = 0; r < m_ranks; ++r) {
            m_hostOps.push_back(ops(r).ops);
            m_work.push_back(placeWork(rank(r), ops(r), m_progress.stop));
            if (m_progress.cancelled()) return false;
            clipped += m_work.back().clipped;
            overlap += m_work.back().overlap;
            projected += m_work.back().projected;
            m_out.ops += static_cast<std::int64_t>(m_work.back().compute.size());
            m_out.kernels += static_cast<std::int64_t>(rank(r).device.size());
            m_out.kernelsUnderOps += m_work.back().launched;
        }
        if (clipped > 0)
            m_out.notes.push_back(
                fmt::format("{} ops start before the previous op ends, by {} in total: they are moved to its end",
                            clipped, formatDuration(overlap)));
        if (projected > 0 && projected < m_out.ops)
            m_out.notes.push_back(
                fmt::format("{} of {} ops are timed by their kernels, the others by their ranges on the host",
                            projected, m_out.ops));
        return true;
    }

    void rebuild()
    {
        RebuiltSchedule rebuilt = rebuildSchedule(m_parts.ops, m_work, m_out.run.info.name, m_out.notes);
        m_schedule = std::move(rebuilt.schedule);
        m_out.notRebuilt = std::move(rebuilt.why);
        m_out.recognised = std::move(rebuilt.recognised);
    }

    void findMessages()
    {
        const auto& pairs = m_parts.messages.pairs;
        m_out.messages = static_cast<std::int64_t>(pairs.size());
        m_out.unpaired = m_parts.messages.unpaired;
        m_carried.resize(pairs.size());
        if (m_schedule) m_carried = opsOfMessages(pairs, m_parts.ranks, m_parts.ops.ranks, m_work, *m_schedule);
    }

    Placed& collectiveSpan(int r, std::uint32_t message)
    {
        auto& ofRank = m_collectiveSpan[static_cast<std::size_t>(r)];
        if (ofRank.empty()) ofRank.resize(rank(r).messages.size());
        return ofRank[message];
    }
    const ForeignMessage& messageAt(const MessageEnd& end) const
    {
        return m_parts.ranks[end.rank].messages[end.message];
    }

    struct Row {
        Span span;
        std::uint32_t from; // what it was
    };
    template <typename Done>
    void addTrack(int r, Lane lane, const std::string& name, std::vector<Row>& rows, Done&& done)
    {
        if (rows.empty()) return;
        std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
            return std::tie(a.span.start, a.span.end) < std::tie(b.span.start, b.span.end);
        });
        const int track = m_builder.addTrack(r, lane, name);
        for (const Row& row : rows) done(row, m_builder.addSpan(track, row.span));
        rows.clear();
    }

    bool addRank(int r)
    {
        const std::size_t work = rank(r).device.size();
        addCompute(r);
        addMessageSpans(r);
        addDataParallel(r);
        if (!addDevice(r) || !addRanges(r) || !addMemory(r)) return false;
        auto messages = std::move(rank(r).messages); // of which other ranks have a side
        if (m_parts.messages.pairs.empty()) giveBack(messages);
        rank(r) = {};
        rank(r).messages = std::move(messages);
        m_freed.add(work * (sizeof(DeviceSpan) + sizeof(ForeignWork)));
        return true;
    }

    void addCompute(int r)
    {
        const auto& compute = m_work[static_cast<std::size_t>(r)].compute;
        m_spanOfOp.assign(ops(r).ops.size(), noSpan);
        if (compute.empty()) return;
        const int track = m_builder.addTrack(r, Lane::Compute);
        for (const std::uint32_t i : compute) {
            const OpRange& range = ops(r).ops[i];
            const SpanId id = m_builder.addSpan(track, spanOf(range));
            m_spanOfOp[i] = id;
            m_placed[{range.step, r, range.op}] = {id, range.start, range.end};
        }
    }

    static Span spanOf(const OpRange& range)
    {
        Span span;
        span.start = range.start;
        span.end = range.end;
        span.op = range.op;
        span.step = range.step;
        return span;
    }

    void addMessageSpans(int r)
    {
        std::vector<Row> sends, receives;
        const auto& pairs = m_parts.messages.pairs;
        if (m_sends.empty()) {
            m_sends.resize(m_parts.ranks.size());
            m_receives.resize(m_parts.ranks.size());
            for (std::uint32_t i = 0; i < pairs.size(); ++i) {
                m_sends[pairs[i].send.rank].push_back(i);
                m_receives[pairs[i].receive.rank].push_back(i);
            }
            m_sendSpan.assign(pairs.size(), noSpan);
            m_receiveSpan.assign(pairs.size(), noSpan);
        }
        const auto spanOf = [&](std::uint32_t i, bool send) {
            const ForeignMessage& from = messageAt(pairs[i].send);
            const ForeignMessage& to = messageAt(pairs[i].receive);
            const Nanos arrival = std::max({to.end, to.start, from.start});
            Span span;
            span.start = send ? std::max(from.start, std::min(to.start, arrival)) : std::min(to.start, arrival);
            span.end = arrival;
            const MessageOp& carried = m_carried[i];
            if (carried.rank < 0) {
                span.label =
                    m_builder.intern(fmt::format("message {} → {}", pairs[i].send.rank, pairs[i].receive.rank)) &
                    0xffffffu;
                span.step = stepOf(ops(r), rank(r), send ? from : to);
                return span;
            }
            span.step = carried.step;
            const bool forward = isForward(carried.op.kind);
            span.op = carried.op;
            span.op.kind = send ? sendKind(!forward) : receiveKind(!forward);
            if (!send) span.op.stage = static_cast<std::uint16_t>(carried.op.stage + (forward ? 1 : -1));
            return span;
        };
        for (const std::uint32_t i : m_sends[static_cast<std::size_t>(r)]) sends.push_back({spanOf(i, true), i});
        for (const std::uint32_t i : m_receives[static_cast<std::size_t>(r)]) receives.push_back({spanOf(i, false), i});
        BytesMoved moved(m_builder, r, fmt::format("rank {} {}", r, toText(Lane::Send)), Lane::Send);
        addTrack(r, Lane::Send, {}, sends, [&](const Row& row, SpanId id) {
            m_sendSpan[row.from] = id;
            const Bytes bytes =
                std::max(messageAt(pairs[row.from].send).bytes, messageAt(pairs[row.from].receive).bytes);
            if (bytes >= 0) moved.add(row.span.start, bytes);
        });
        addTrack(r, Lane::Receive, {}, receives, [&](const Row& row, SpanId id) { m_receiveSpan[row.from] = id; });
    }

    // Gathers and reductions over replicas are also on lanes of their own, beside the kernels or ranges that do them.
    // Where the trace names dimensions of parallelism, those of data alone.
    void addDataParallel(int r)
    {
        const ForeignRank& from = rank(r);
        const auto& purposes = from.groupPurpose;
        const bool named = std::any_of(purposes.begin(), purposes.end(),
                                       [](const auto& group) { return dimensionOf(group.second).has_value(); });
        std::vector<Row> gathers, reductions;
        for (const std::uint32_t i : m_work[static_cast<std::size_t>(r)].beside) {
            const OpRange& range = ops(r).ops[i];
            (isReduction(range.op.kind) ? reductions : gathers).push_back({spanOf(range), i});
        }
        const bool own = !gathers.empty() || !reductions.empty();
        for (const ForeignMessage& message : from.messages) {
            if (own || message.kind != MessageKind::Collective || message.end <= message.start || m_ranks < 2) continue;
            if (named) {
                const auto purpose = purposes.find(from.names[message.group]);
                if (purpose == purposes.end() || dimensionOf(purpose->second) != ParallelDimension::Data) continue;
            }
            const auto lane = dataParallelLane(from.names[message.name]);
            if (!lane) continue;
            Span span;
            span.start = message.start;
            span.end = message.end;
            span.step = stepOf(ops(r), from, message);
            span.label = labelOf(r, message.name);
            (*lane == Lane::Gather ? gathers : reductions).push_back({span, 0});
        }
        BesideOps gathered, reduced;
        addTrack(r, Lane::Gather, {}, gathers, [&](const Row& row, SpanId id) {
            if (own && isGather(row.span.op.kind))
                gathered[{row.span.step, row.span.op.stage}].push_back({id, row.span.start, row.span.end});
        });
        addTrack(r, Lane::Reduce, {}, reductions, [&](const Row& row, SpanId id) {
            if (own) reduced[{row.span.step, row.span.op.stage}].push_back({id, row.span.start, row.span.end});
        });
        if (own) tieCollectives(r, gathered, reduced);
    }

    // From a gather to the first op that needs the weights, from a stage's reductions to its optimizer, as a recorder
    // does. An optimizer that steps bucket by bucket starts before its reduction ends.
    struct Beside {
        SpanId span;
        Nanos start, end;
    };
    using BesideOps = std::map<std::pair<int, int>, std::vector<Beside>>; // by step and stage, by start
    void tieCollectives(int r, BesideOps& gathered, BesideOps& reduced)
    {
        for (const std::uint32_t i : m_work[static_cast<std::size_t>(r)].compute) {
            const OpRange& range = ops(r).ops[i];
            const bool steps = isOptimizer(range.op.kind);
            if (!steps && !ruleOf(range.op.kind).needsWeights) continue;
            const auto found = (steps ? reduced : gathered).find({range.step, range.op.stage});
            if (found == (steps ? reduced : gathered).end()) continue;
            std::erase_if(found->second, [&](const Beside& one) {
                if ((steps ? one.start : one.end) > range.start) return false;
                m_builder.addEdge(one.span, m_spanOfOp[i], EdgeKind::Order, std::min(one.end, range.start));
                return true;
            });
        }
    }

    std::uint32_t labelOf(int r, std::uint32_t name)
    {
        auto& labels = m_labels;
        if (m_labelsOf != r) {
            labels.assign(rank(r).names.size(), 0);
            m_labelsOf = r;
        }
        if (labels.size() < rank(r).names.size()) labels.resize(rank(r).names.size(), 0);
        if (labels[name] == 0) {
            const std::string& text = rank(r).names[name];
            const bool many = m_shaped.size() >= mostShapes;
            const std::string_view shape = many ? std::string_view() : rank(r).names.shapeOf(name);
            labels[name] =
                m_builder.intern(text.empty() ? "unnamed" : std::string_view(text).substr(0, 2048), shape) & 0xffffffu;
            if (!shape.empty() && m_shaped.insert(labels[name]).second && m_shaped.size() == mostShapes)
                m_out.notes.push_back(
                    fmt::format("kernels were launched with {} shapes or more: from rank {} on they are kept without",
                                mostShapes, r));
        }
        return labels[name];
    }

    bool addDevice(int r)
    {
        ForeignRank& from = rank(r);
        m_ranges = placeRanges(from, m_progress.stop);
        nameOperations(from, m_ranges);
        findStepsOfUnlaunched(r);
        std::vector<SpanId> spanOf(from.messages.empty() ? 0 : from.device.size(), noSpan);
        auto tracks = takeDevice(from, m_work[static_cast<std::size_t>(r)], m_ranges, m_progress.stop);
        giveBack(from.launches);
        if (m_progress.cancelled()) return false;
        std::size_t ranged = 0;
        for (const DeviceTrack& of : tracks)
            for (const ForeignWork& seen : of.work) ranged += seen.op == noOpRange && seen.range != noOpRange ? 1 : 0;
        const auto bytes = bytesOfWork(from);
        giveBack(from.copyBytes);
        const auto calls = std::move(from.laterCalls);
        m_launchedIn.clear();
        m_launchedIn.reserve(ranged);
        for (DeviceTrack& of : tracks) {
            const std::string trackName = fmt::format("rank {} {}", r, of.name);
            const int track = m_builder.addTrack(r, of.copy ? Lane::Copy : Lane::Kernel, trackName);
            BytesMoved moved(m_builder, r, trackName, of.copy ? Lane::Copy : Lane::Kernel);
            for (std::size_t i = 0; i < of.work.size(); ++i) {
                const ForeignWork& seen = of.work[i];
                m_out.kernelsUnderRanges += seen.op != noOpRange || seen.range != noOpRange ? 1 : 0;
                Span span;
                span.start = seen.start;
                span.end = seen.end;
                span.label = labelOf(r, seen.name) & 0xffffffu;
                span.step = seen.op == noOpRange ? stepOfWork(r, seen) : ops(r).ops[seen.op].step;
                if (seen.op != noOpRange) span.op = ops(r).ops[seen.op].op;
                const SpanId id = m_builder.addSpan(track, span);
                if (!spanOf.empty()) spanOf[seen.item] = id;
                Nanos launched = seen.launched;
                if (const auto call = std::lower_bound(calls.begin(), calls.end(), std::pair(seen.item, Nanos{0}));
                    call != calls.end() && call->first == seen.item)
                    launched = std::min(call->second, seen.start);
                if (const auto size = std::lower_bound(bytes.begin(), bytes.end(), std::pair(seen.item, Bytes{0}));
                    size != bytes.end() && size->first == seen.item)
                    moved.add(seen.start, size->second);
                if (seen.op != noOpRange && m_spanOfOp[seen.op] != noSpan)
                    m_builder.addEdge(m_spanOfOp[seen.op], id, EdgeKind::Launch, std::min(launched, seen.start));
                // edges in order of kernels need no sorting
                else if (seen.range != noOpRange || (launched < seen.start && !m_launchedIn.empty()))
                    m_launchedIn.push_back({seen.range, id, launched});
                else if (launched < seen.start)
                    // by nobody with a name: only its time is known
                    m_builder.addEdge(id, id, EdgeKind::Launch, launched);
                if ((i + 1) % itemsAtOnce != 0) continue;
                if (m_progress.cancelled()) return false;
                releaseItems(of.work, i + 1 - itemsAtOnce, i + 1);
            }
            giveBack(of.work);
        }
        for (std::uint32_t i = 0; i < from.messages.size(); ++i)
            if (from.messages[i].kind == MessageKind::Collective && from.messages[i].device &&
                from.messages[i].work >= 0)
                collectiveSpan(r, i) = {spanOf[static_cast<std::size_t>(from.messages[i].work)], from.messages[i].start,
                                        from.messages[i].end};
        return true;
    }

    // Steps of device work whose launch is not known, and what the work in no step is.
    void findStepsOfUnlaunched(int r)
    {
        const ForeignRank& from = rank(r);
        const std::vector<std::uint32_t>& opOf = m_work[static_cast<std::size_t>(r)].opOfDevice;
        m_unlaunched.clear();
        for (std::uint32_t i = 0; i < from.device.size(); ++i) {
            if (opOf[i] != noOpRange) continue;
            const DeviceSpan& span = from.device[i];
            const bool launched = span.launchedFrom != noThread;
            const int step = stepOf(ops(r), from, span);
            if (step == outsideSteps) ++(launched ? m_out.launchedOutside : m_out.stepUnknown);
            if (!launched || ops(r).stepsOnDevice) m_unlaunched.emplace_back(i, step);
        }
    }
    int stepOfWork(int r, const ForeignWork& work) const
    {
        const auto found = std::lower_bound(m_unlaunched.begin(), m_unlaunched.end(),
                                            std::pair(work.item, std::numeric_limits<int>::min()));
        if (found != m_unlaunched.end() && found->first == work.item) return found->second;
        return stepAt(m_parts.ops.ranks[static_cast<std::size_t>(r)], work.launched);
    }

    // Bytes of copies, and of the messages and collectives that a kernel carries, by index of the device work.
    static std::vector<std::pair<std::uint32_t, Bytes>> bytesOfWork(const ForeignRank& from)
    {
        auto bytes = from.copyBytes;
        for (const ForeignMessage& message : from.messages)
            if (message.device && message.work >= 0 && message.bytes >= 0)
                bytes.emplace_back(static_cast<std::uint32_t>(message.work), message.bytes);
        std::sort(bytes.begin(), bytes.end());
        std::size_t kept = 0; // a kernel may carry several messages
        for (std::size_t i = 0; i < bytes.size(); ++i)
            if (kept > 0 && bytes[kept - 1].first == bytes[i].first)
                bytes[kept - 1].second += bytes[i].second;
            else
                bytes[kept++] = bytes[i];
        bytes.resize(kept);
        return bytes;
    }

    // The counter of a track (work_bytes.h), made with its first sample.
    class BytesMoved {
    public:
        BytesMoved(TimelineBuilder& builder, int rank, const std::string& track, Lane lane)
            : m_builder(builder), m_rank(rank), m_name(workBytesCounter(track, lane))
        {
        }
        void add(Nanos start, Bytes bytes)
        {
            if (m_counter < 0) m_counter = m_builder.addCounter(m_rank, m_name, std::string(workBytesUnit));
            m_builder.addSample(m_counter, start, static_cast<double>(bytes));
        }

    private:
        TimelineBuilder& m_builder;
        int m_rank;
        std::string m_name;
        int m_counter = -1;
    };

    bool addRanges(int r)
    {
        ForeignRank& from = rank(r);
        // Ranges on the compute lane are not repeated, unless they have other times there: those of their kernels.
        std::set<std::tuple<std::uint32_t, Nanos, Nanos>> shown;
        for (std::size_t i = 0; i < ops(r).ops.size(); ++i)
            if (const OpRange& range = ops(r).ops[i]; m_spanOfOp[i] != noSpan && !range.device)
                shown.insert({range.thread, range.start, range.end});
        std::unordered_map<std::uint32_t, std::uint32_t> messageOf; // by annotation
        for (std::uint32_t i = 0; i < from.messages.size(); ++i)
            if (from.messages[i].kind == MessageKind::Collective && !from.messages[i].device &&
                from.messages[i].work >= 0)
                messageOf[static_cast<std::uint32_t>(from.messages[i].work)] = i;
        RangeRows tracks;
        const auto add = [&](const ForeignSpan& seen, std::uint32_t index) {
            addRow(tracks, r, seen, {seen.start, seen.end}, stepAt(ops(r), seen.start), false, index);
        };
        for (std::uint32_t i = 0; i < from.annotations.size(); ++i) {
            if (!goesOn(i)) return false;
            const ForeignSpan& seen = from.annotations[i];
            const std::string& name = from.names[seen.name];
            const bool message = !m_parts.messages.pairs.empty() && isMessageRange(name);
            if (message || name.starts_with("ProfilerStep") || shown.contains({seen.thread, seen.start, seen.end}))
                continue;
            add(seen, i);
        }
        for (const ForeignSpan& seen : from.hostOps) add(seen, noSpan);
        if (m_progress.cancelled()) return false;
        addDeviceRanges(r, tracks);
        std::unordered_map<std::uint32_t, SpanId> onDevice; // by annotation
        for (auto& [key, rows] : tracks.byName)
            addTrack(r, Lane::Other, key.first, rows, [&, device = key.second](const Row& row, SpanId id) {
                if (device)
                    onDevice[row.from] = id;
                else if (const auto found = messageOf.find(row.from); found != messageOf.end())
                    collectiveSpan(r, found->second) = {id, row.span.start, row.span.end};
            });
        for (std::size_t i = 0; i < m_launchedIn.size(); ++i) {
            const auto& [range, kernel, launched] = m_launchedIn[i];
            if (range == noOpRange)
                m_builder.addEdge(kernel, kernel, EdgeKind::Launch, launched);
            else if (const auto found = onDevice.find(range); found != onDevice.end())
                m_builder.addEdge(found->second, kernel, EdgeKind::Launch, launched);
            if ((i + 1) % itemsAtOnce == 0) releaseItems(m_launchedIn, i + 1 - itemsAtOnce, i + 1);
        }
        giveBack(m_launchedIn);
        for (const CounterSeen& counter : from.counters) {
            const int number = m_builder.addCounter(r, counter.name, counter.unit);
            for (const CounterSample& sample : counter.samples) m_builder.addSample(number, sample.time, sample.value);
        }
        return !m_progress.cancelled();
    }

    // By name of the track, and whether it is of the device: in the order the timeline has them, so that nothing is
    // moved there.
    struct RangeRows {
        std::map<std::pair<std::string, bool>, std::vector<Row>> byName;
        std::map<std::pair<std::uint32_t, bool>, std::vector<Row>*> ofThread;
    };
    void addRow(RangeRows& tracks, int r, const ForeignSpan& seen, std::pair<Nanos, Nanos> times, int step, bool device,
                std::uint32_t index)
    {
        Span span;
        std::tie(span.start, span.end) = times;
        span.label = labelOf(r, seen.name) & 0xffffffu;
        span.step = step;
        std::vector<Row>*& rows = tracks.ofThread[{seen.thread, device}];
        if (rows == nullptr)
            rows = &tracks.byName[{
                fmt::format("rank {} {}{}", r, rank(r).threads[seen.thread].name, device ? " on the device" : ""),
                device}];
        rows->push_back({span, index});
    }

    // The times of the kernels of named ranges; ranges of the device itself if there are no launches.
    void addDeviceRanges(int r, RangeRows& tracks)
    {
        ForeignRank& from = rank(r);
        bool any = false;
        for (std::uint32_t i = 0; i < from.annotations.size(); ++i)
            if (const auto& [begin, end] = m_ranges.extent[i]; end >= begin) {
                addRow(tracks, r, from.annotations[i], {begin, end}, stepAt(ops(r), from.annotations[i].start), true,
                       i);
                any = true;
            }
        if (any) return;
        for (const ForeignSpan& seen : from.deviceAnnotations)
            addRow(tracks, r, seen, {seen.start, seen.end}, stepOf(ops(r), from, seen, notLaunched), true, noSpan);
    }

    bool addMemory(int r)
    {
        addMemoryByGpu(r);
        auto events = memoryOf(rank(r), m_hostOps[static_cast<std::size_t>(r)], ops(r), r, m_progress.stop);
        for (std::size_t i = 0; i < events.size(); ++i) {
            m_builder.addMemory(events[i]);
            if ((i + 1) % itemsAtOnce == 0) releaseItems(events, i + 1 - itemsAtOnce, i + 1);
        }
        giveBack(m_hostOps[static_cast<std::size_t>(r)]);
        return !m_progress.cancelled();
    }

    // Where a rank has several GPUs, the memory in use on each: figures by category are the rank's.
    void addMemoryByGpu(int r)
    {
        std::map<int, std::vector<const MemoryChangeSeen*>> byGpu;
        for (const MemoryChangeSeen& seen : rank(r).memory)
            if (seen.device && seen.gpu >= 0) byGpu[seen.gpu].push_back(&seen);
        if (byGpu.size() < 2) return;
        for (auto& [gpu, changes] : byGpu) {
            std::stable_sort(changes.begin(), changes.end(),
                             [](const auto* a, const auto* b) { return a->time < b->time; });
            const int counter = m_builder.addCounter(r, fmt::format("rank {} GPU {} memory in use", r, gpu), "bytes");
            Bytes used = 0, most = 0;
            for (const MemoryChangeSeen* change : changes) {
                used = change->total >= 0 ? change->total : used + change->delta;
                most = std::max(most, used);
                m_builder.addSample(counter, change->time, static_cast<double>(used));
            }
            m_out.notes.push_back(
                fmt::format("rank {} has {} GPUs: GPU {} holds {} at most; figures of memory by rank are the sum", r,
                            byGpu.size(), gpu, formatBytes(most)));
        }
    }

    bool addMessageEdges()
    {
        const auto& pairs = m_parts.messages.pairs;
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            if (!goesOn(i)) return false;
            const MessageOp& carried = m_carried[i];
            Op consumer;
            if (carried.rank < 0 || !consumerOf(carried.op, m_schedule->stages, consumer)) continue;
            const int to = static_cast<int>(pairs[i].receive.rank);
            const auto producer = m_placed.find({carried.step, carried.rank, carried.op});
            auto needs = m_placed.find({carried.step, to, consumer});
            if (needs == m_placed.end() && !isForward(consumer.kind)) {
                consumer.kind = otherReturn(consumer.kind);
                needs = m_placed.find({carried.step, to, consumer});
            }
            if (producer == m_placed.end() || needs == m_placed.end()) continue;
            const Nanos arrival = std::max(messageAt(pairs[i].receive).end, messageAt(pairs[i].send).start);
            m_builder.addEdge(producer->second.span, m_sendSpan[i], EdgeKind::Order, messageAt(pairs[i].send).start);
            m_builder.addEdge(m_sendSpan[i], m_receiveSpan[i], EdgeKind::Transfer, arrival);
            m_builder.addEdge(m_receiveSpan[i], needs->second.span, EdgeKind::Transfer, arrival);
            auto& last = m_arrivals.try_emplace({producer->second.span, needs->second.span}, arrival).first->second;
            last = std::max(last, arrival);
        }
        return true;
    }

    // From the one that came last, whom the others waited for.
    void addCollectives()
    {
        m_out.collectives = static_cast<std::int64_t>(m_parts.messages.collectives.size());
        for (const auto& ends : m_parts.messages.collectives) {
            const auto spanOf = [&](const MessageEnd& end) {
                const auto& ofRank = m_collectiveSpan[end.rank];
                return end.message < ofRank.size() ? ofRank[end.message] : Placed{};
            };
            Placed last;
            for (const MessageEnd& end : ends)
                if (const Placed placed = spanOf(end);
                    placed.span != noSpan && (last.span == noSpan || placed.start > last.start))
                    last = placed;
            for (const MessageEnd& end : ends)
                if (const Placed placed = spanOf(end); placed.span != noSpan && placed.span != last.span)
                    m_builder.addEdge(last.span, placed.span, EdgeKind::Transfer, last.start);
        }
    }

    bool addDataEdges()
    {
        if (!m_schedule) return true;
        const auto cells = cellsOf(*m_schedule);
        if (!cells) return true;
        const OpIndex index(*m_schedule, *cells);
        std::size_t looked = 0;
        for (const auto& [key, placed] : m_placed) {
            if (!goesOn(looked++)) return false;
            if (!isCompute(key.op.kind)) continue;
            const bool inside = key.op.stage < m_schedule->stages && key.op.microbatch >= 0 &&
                                key.op.microbatch + key.op.count <= m_schedule->microbatches &&
                                opFault(*m_schedule, key.op).empty();
            if (!inside) continue;
            index.eachInput(key.op, [&, step = key.step, &to = placed](std::uint32_t producer, const Need&, int) {
                if (producer == noOp) return;
                const OpPlace place = index.placeOf(producer);
                const Op& from = m_schedule->order[static_cast<std::size_t>(place.rank)][place.position];
                const auto found = m_placed.find({step, place.rank, from});
                if (found == m_placed.end()) return;
                const auto arrival = m_arrivals.find({found->second.span, to.span});
                m_builder.addEdge(found->second.span, to.span, EdgeKind::Data,
                                  arrival == m_arrivals.end() ? found->second.end : arrival->second);
            });
        }
        return true;
    }

    JobParts m_parts;
    ImportedRun& m_out;
    const Progress& m_progress;
    int m_ranks;
    TimelineBuilder m_builder;
    std::vector<RankWork> m_work;
    std::vector<std::vector<OpRange>> m_hostOps; // where the host named them
    std::shared_ptr<const Schedule> m_schedule;
    std::unordered_map<OpKey, Placed, OpKeyHash> m_placed;
    struct LaunchedIn {
        std::uint32_t range; // noOpRange: none, only the time is known
        SpanId kernel;
        Nanos launched;
    };
    DeviceRanges m_ranges; // of the rank that is being added
    // its device spans under no op, from the first that is under a range
    std::vector<LaunchedIn> m_launchedIn;
    std::vector<SpanId> m_spanOfOp;                          // of the rank that is being added
    std::vector<std::pair<std::uint32_t, int>> m_unlaunched; // of its device work without a launch: its step, by index
    std::vector<std::uint32_t> m_labels;
    int m_labelsOf = -1;
    static constexpr std::size_t mostShapes = 1 << 16; // texts of labels; memory stays that of the kernels
    std::set<std::uint32_t> m_shaped;                  // labels with a shape
    FreedMemory m_freed;
    std::vector<std::vector<std::uint32_t>> m_sends, m_receives; // pairs by rank
    std::vector<SpanId> m_sendSpan, m_receiveSpan;               // by pair
    std::vector<MessageOp> m_carried;                            // by pair
    std::vector<std::vector<Placed>> m_collectiveSpan;           // by rank and message
    std::map<std::pair<SpanId, SpanId>, Nanos> m_arrivals;
};

} // namespace

Result<std::shared_ptr<const Timeline>> buildTimeline(JobParts parts, ImportedRun& out, const Progress& progress)
{
    return Assembler(std::move(parts), out, progress).build();
}

} // namespace stagewright
