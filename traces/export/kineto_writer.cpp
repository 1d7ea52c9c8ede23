#include "traces/export/kineto_writer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/collective_uses.h"
#include "traces/analysis/device_idle.h"
#include "traces/analysis/kernel_class.h"
#include "traces/analysis/work_bytes.h"
#include "traces/export/chrome_json.h"
#include "traces/export/kineto_host.h"
#include "traces/export/kineto_messages.h"
#include "traces/export/trace_walk.h"
#include "traces/foreign/graph_node.h"
#include "traces/step/step_ops.h"

namespace stagewright {

std::string toText(const KinetoCounts& counts)
{
    return fmt::format("{} ranks, {} spans, {} launches, {} memory events", counts.ranks, counts.spans, counts.launches,
                       counts.memoryEvents);
}

namespace {

constexpr std::size_t flushedAt = 1 << 20;

class RankWriter {
public:
    RankWriter(const Run& run, int rank, const Sink& out, KinetoCounts& counts, const Progress& progress)
        : m_run(run), m_timeline(*run.timeline), m_rank(rank), m_out(out), m_counts(counts), m_progress(progress),
          m_shift(traceShift(m_timeline)), m_host(m_timeline, rank), m_messages(run, rank), m_bytes(m_timeline)
    {
    }

    Result<void> write()
    {
        header();
        steps();
        launches();
        for (const Track& track : m_timeline.tracks()) {
            if (track.rank != m_rank) continue;
            if (track.lane == Lane::Compute)
                compute(track);
            else
                lane(track);
            if (!m_good) break;
        }
        if (m_good && !hasMessages(Lane::Receive)) {
            if (hasMessages(Lane::Send))
                receives();
            else if (whyNoArrivals(m_timeline).empty()) // else they would be invented
                arrivals();
        }
        if (m_good) memory();
        if (m_good) received();
        m_buffer += "\n]}\n";
        flush(0);
        if (m_progress.cancelled()) return fail(ErrorCode::Cancelled, "writing was cancelled");
        if (!m_good)
            return fail(ErrorCode::Failed, fmt::format("the trace of rank {} could not be written", m_rank),
                        "free some space or choose another location");
        ++m_counts.ranks;
        return {};
    }

private:
    void flush(std::size_t keep)
    {
        if (m_buffer.size() <= keep) return;
        m_good = m_good && !m_progress.cancelled() && m_out(m_buffer);
        m_buffer.clear();
        if (m_good)
            m_progress.tell("writing spans", m_counts.spans, static_cast<std::int64_t>(m_timeline.spans().size()));
    }

    template <typename... Args>
    void event(fmt::format_string<Args...> format, Args&&... args)
    {
        flush(flushedAt);
        m_buffer += m_first ? "\n" : ",\n";
        m_first = false;
        fmt::format_to(std::back_inserter(m_buffer), format, std::forward<Args>(args)...);
    }

    std::string at(Nanos time) const { return microseconds(time + m_shift); }
    int process() const { return 1000 + m_rank; }
    std::string environment(std::string_view name, std::string otherwise) const
    {
        for (const auto& [key, value] : m_run.environment)
            if (key == name) return value;
        return otherwise;
    }

    void header()
    {
        std::string ranks;
        for (int r = 0; r < m_timeline.ranks(); ++r) ranks += fmt::format("{}{}", r == 0 ? "" : ", ", r);
        m_ranks = "[" + ranks + "]";
        const std::string backend = jsonText(environment("backend", "stagewright"));
        m_buffer += fmt::format("{{\"schemaVersion\":1,\"deviceProperties\":[],\"distributedInfo\":{{\"backend\":{0},"
                                "\"rank\":{1},\"world_size\":{2},\"pg_count\":1,"
                                "\"pg_config\":[{{\"pg_name\":\"0\",\"pg_desc\":\"default_pg\",\"backend_config\":{0},"
                                "\"pg_size\":{2},\"ranks\":{3}}}]}},",
                                backend, m_rank, m_timeline.ranks(), m_ranks);
        m_buffer += fmt::format("\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":{},\"traceName\":{},",
                                std::max<std::int64_t>(0, m_run.info.createdUnixMs) * 1'000'000,
                                jsonText(fmt::format("rank{}.pt.trace.json", m_rank)));
        m_buffer += fmt::format("\"stagewright\":{{\"run\":{},\"schedule\":{},\"provenance\":{},\"clock\":{},\"origin_"
                                "ns\":{},\"time_unit_ns\":{}}},\"traceEvents\":[",
                                jsonText(m_run.info.name), jsonText(m_run.info.scheduleName),
                                jsonText(toText(m_timeline.provenance())), jsonText(m_timeline.clock()), -m_shift,
                                m_timeline.timeUnit());
        event(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"ts":0,"args":{{"name":"rank {}"}}}})", process(),
              m_rank);
        event(R"({{"ph":"M","name":"process_labels","pid":{},"tid":0,"ts":0,"args":{{"labels":"CPU"}}}})", process());
        event(R"({{"ph":"M","name":"process_sort_index","pid":{0},"tid":0,"ts":0,"args":{{"sort_index":{0}}}}})",
              process());
        nameThread(kinetoHostThread, "thread 1 (compute)");
    }

    void nameThread(int thread, const std::string& name)
    {
        event(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"ts":0,"args":{{"name":{}}}}})", process(), thread,
              jsonText(name));
    }

    void host(std::string_view category, std::string_view name, Nanos start, Nanos end, int thread,
              const std::string& more = {})
    {
        event(R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"External id":{}{}}}}})",
              category, jsonText(name), process(), thread, at(start), microseconds(end - start), m_nextId++, more);
    }

    using Bounds = std::map<int, std::pair<Nanos, Nanos>>; // by step
    static void hold(Bounds& bounds, int step, Nanos start, Nanos until)
    {
        auto& [begin, end] = bounds.try_emplace(step, start, until).first->second;
        begin = std::min(begin, start);
        end = std::max(end, until);
    }

    // Without ops a step reaches from its first call or range on the host to the next step's, because importing takes
    // the step of a launch. A step without either reaches over its spans.
    Bounds boundsOfSpans() const
    {
        Bounds bounds, others;
        for (const HostLaunch& launch : m_host.launches())
            if (const int step = m_timeline.spans()[launch.work].step; step != outsideSteps)
                hold(bounds, step, launch.time, launch.time + 1);
        for (const Track& track : m_timeline.tracks()) {
            if (track.rank != m_rank) continue;
            const bool device = isDeviceLane(track.lane) || m_host.onDevice(track);
            for (const Span& span : m_timeline.spansOf(track))
                if (span.step != outsideSteps)
                    hold(device ? others : bounds, span.step, span.start, device ? span.end : span.start + 1);
        }
        bounds.merge(others);
        for (auto at = bounds.begin(); at != bounds.end(); ++at)
            if (const auto next = std::next(at); next != bounds.end())
                at->second.second = std::max(at->second.first, std::min(at->second.second, next->second.first));
        return bounds;
    }

    // A step reaches from the first to the last of its compute spans on this rank, and further where its messages,
    // gathers, reductions and launches do: not into the compute spans of others.
    Bounds boundsOfSteps() const
    {
        Bounds bounds, messages;
        for (const Track& track : m_timeline.tracks()) {
            if (track.rank != m_rank) continue;
            for (SpanId id = track.begin; id < track.end; ++id)
                if (const Span& span = m_timeline.spans()[id]; track.lane == Lane::Compute) {
                    hold(bounds, span.step, m_host.opOf(id).start, m_host.opOf(id).end);
                } else if (isMessageLane(track.lane) || isBesideLane(track.lane)) {
                    if (span.label == 0 && span.step != outsideSteps) hold(messages, span.step, span.start, span.end);
                }
        }
        for (const HostLaunch& launch : m_host.launches()) // importing takes the step of a launch
            if (const int step = m_timeline.spans()[launch.work].step; step != outsideSteps)
                hold(messages, step, launch.time, launch.time + 1);
        Nanos before = std::numeric_limits<Nanos>::min(); // the end of the previous step
        for (auto at = bounds.begin(); at != bounds.end(); ++at) {
            auto& [begin, end] = at->second;
            if (const auto of = messages.find(at->first); of != messages.end()) {
                const auto next = std::next(at);
                begin = std::min(begin, std::max(before, of->second.first));
                end = std::max(end, next == bounds.end() ? of->second.second
                                                         : std::min(of->second.second, next->second.first));
            }
            before = end;
        }
        return bounds;
    }

    void steps()
    {
        Bounds bounds = boundsOfSteps();
        if (bounds.empty() && (m_host.marksSteps() || m_timeline.steps() > 1)) bounds = boundsOfSpans();
        const auto numbers = m_host.stepNumbers();
        bool apart = true;
        std::optional<Nanos> last;
        for (const auto& [step, bound] : bounds) {
            apart = apart && (!last || bound.first >= *last);
            last = bound.second;
        }
        if (!apart) nameThread(kinetoStepThread, "steps");
        int thread = m_host.stepThread();
        Nanos before = 0;
        for (const auto& [step, bound] : bounds) {
            thread = apart ? m_host.stepThread() : kinetoStepThread + (step % 2 == 0 || bound.first >= before ? 0 : 1);
            host("user_annotation", fmt::format("ProfilerStep#{}", numbers.contains(step) ? numbers.at(step) : step),
                 bound.first, bound.second, thread);
            before = bound.second;
        }
    }

    std::string rest(SpanId id, const Span& span) const
    {
        std::string more = span.step == outsideSteps
                               ? std::string()
                               : fmt::format(",\"step\":{},\"step_number\":{}", span.step, stepNumber(span.step));
        if (m_timeline.hasCpuTime() && m_timeline.cpuTime(id) >= 0)
            more += fmt::format(",\"cpu_us\":{}", microseconds(m_timeline.cpuTime(id)));
        if ((span.flags & SpanDiscarded) != 0) more += ",\"discarded\":true";
        return more;
    }

    void compute(const Track& track)
    {
        const auto all = m_timeline.spans();
        for (SpanId id = track.begin; id < track.end && m_good; ++id) {
            const Span& span = all[id];
            const bool pair = id + 1 < track.end && span.label == 0 && all[id + 1].label == 0 &&
                              all[id + 1].start == span.start && all[id + 1].end == span.end && span.end > span.start;
            const HostOp& place = m_host.opOf(id);
            if (span.label != 0)
                host("cpu_op", m_timeline.labelOf(span), place.start, place.end, place.thread, rest(id, span));
            else
                host("user_annotation",
                     pair ? fmt::format("PP:({};{})OVERLAP_F_B", toText(span.op), toText(all[id + 1].op))
                          : "PP:" + toText(span.op),
                     place.start, place.end, place.thread, rest(id, span));
            m_counts.spans += pair ? 2 : 1;
            if (pair) ++id;
        }
    }

    // Every call that launched work, and its arrow.
    void launches()
    {
        bool named = false;
        std::set<SpanId> graphs; // written
        for (const HostLaunch& launch : m_host.launches()) {
            if (!m_good) return;
            if (launch.thread == kinetoLaunchThread && !named) nameThread(kinetoLaunchThread, "launches");
            named = named || launch.thread == kinetoLaunchThread;
            if (launch.graph != noSpan && !graphs.insert(launch.graph).second) continue; // one call for all its work
            const Track& track = m_timeline.trackOf(launch.work);
            const Span* graph = launch.graph == noSpan ? nullptr : &m_timeline.spans()[launch.graph];
            const std::string name = graph != nullptr             ? m_timeline.nameOf(*graph)
                                     : track.lane == Lane::Kernel ? "cudaLaunchKernel"
                                     : isFill(launch.work)        ? "cudaMemsetAsync"
                                                                  : "cudaMemcpyAsync";
            event(
                R"({{"ph":"X","cat":"cuda_runtime","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"correlation":{}}}}})",
                jsonText(name), process(), launch.thread, at(launch.time),
                microseconds(graph == nullptr ? 1 : graph->duration()), correlationOf(launch.work));
            event(R"({{"ph":"s","cat":"ac2g","name":"ac2g","id":{},"pid":{},"tid":{},"ts":{}}})",
                  correlationOf(launch.work), process(), launch.thread, at(launch.time));
            ++m_counts.launches;
        }
    }

    bool isFill(SpanId copy) const
    {
        return classOfCopy(m_timeline.nameOf(m_timeline.spans()[copy])) == KernelClass::Fill;
    }

    // A kernel or copy has the correlation of the call that launched it: a number of its own, or that of the graph's
    // launch.
    std::uint64_t correlationOf(SpanId work) const
    {
        const SpanId graph = m_host.graphOf(work);
        return std::uint64_t{graph == noSpan ? work : graph} + 1;
    }

    void lane(const Track& track)
    {
        if (isDeviceLane(track.lane)) return device(track);
        if (m_host.onDevice(track)) return deviceRanges(track);
        if (const auto thread = m_host.threadOf(track)) return ranges(track, *thread);
        const auto lanes = sublanes(m_timeline.spansOf(track));
        const int rows = lanes.empty() ? 0 : 1 + *std::max_element(lanes.begin(), lanes.end());
        std::vector<int> threads;
        for (int row = 0; row < rows; ++row) {
            threads.push_back(m_host.freeThread());
            nameThread(threads.back(), rows == 1 ? track.name : fmt::format("{} ({})", track.name, row + 1));
        }
        for (SpanId id = track.begin; id < track.end && m_good; ++id) {
            const Span& span = m_timeline.spans()[id];
            const int thread = threads[lanes[id - track.begin]];
            ++m_counts.spans;
            if (span.label == 0 && isMessage(span.op.kind) && track.lane != Lane::Wait)
                message(id, span, thread);
            else
                host(isRange(span, track) ? "user_annotation" : "cpu_op", laneName(span, track), span.start, span.end,
                     thread, rest(id, span));
        }
    }

    // A gather, release or reduction beside compute is a range named as an op, as PyTorch names its own.
    static bool isRange(const Span& span, const Track& track)
    {
        return span.label == 0 && isCollective(span.op.kind) && track.lane != Lane::Wait;
    }
    std::string laneName(const Span& span, const Track& track) const
    {
        if (isRange(span, track)) return "PP:" + toText(span.op);
        return track.lane == Lane::Wait ? "wait " + m_timeline.nameOf(span) : m_timeline.nameOf(span);
    }

    // Ranges that the program or a library named, operators, and calls that wait for the device. They nest: one thread
    // has all.
    void ranges(const Track& track, const KinetoHost::Thread& thread)
    {
        nameThread(thread.number, thread.name);
        for (SpanId id = track.begin; id < track.end && m_good; ++id) {
            const Span& span = m_timeline.spans()[id];
            ++m_counts.spans;
            if (m_host.shownAsOp(id) || m_host.isLaunchedGraph(id)) continue; // written with its work
            const std::string name = m_timeline.nameOf(span);
            if (isSynchronisingCall(name) || isGraphLaunch(name))
                event(R"({{"ph":"X","cat":"cuda_runtime","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{}}}})",
                      jsonText(name), process(), thread.number, at(span.start), microseconds(span.duration()));
            else
                host(m_host.isOperator(span) ? "cpu_op" : "user_annotation", name, span.start, span.end, thread.number,
                     rest(id, span));
        }
    }

    // Whether work in no step, or in an unknown one, starts in [begin, end]: a step's range around it would say that it
    // is the step's.
    bool holdsWorkOfNoStep(Nanos begin, Nanos end)
    {
        if (!m_ofNoStep) {
            m_ofNoStep.emplace();
            for (const Track& track : m_timeline.tracks()) {
                if (track.rank != m_rank || !isDeviceLane(track.lane)) continue;
                for (const Span& span : m_timeline.spansOf(track))
                    if (span.step == outsideSteps) m_ofNoStep->push_back(span.start);
            }
            std::sort(m_ofNoStep->begin(), m_ofNoStep->end());
        }
        const auto first = std::lower_bound(m_ofNoStep->begin(), m_ofNoStep->end(), begin);
        return first != m_ofNoStep->end() && *first <= end;
    }

    // When the work of ranges ran, as PyTorch adds it; readers take it from the launches.
    void deviceRanges(const Track& track)
    {
        for (SpanId id = track.begin; id < track.end && m_good; ++id) {
            const Span& span = m_timeline.spans()[id];
            ++m_counts.spans;
            if (m_timeline.labelOf(span).starts_with("ProfilerStep#") && holdsWorkOfNoStep(span.start, span.end))
                continue;
            const auto [gpu, stream] = m_host.firstStreamFrom(id);
            event(
                R"({{"ph":"X","cat":"gpu_user_annotation","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                jsonText(m_timeline.nameOf(span)), gpu, stream, at(span.start), microseconds(span.duration()),
                span.step == outsideSteps ? std::string() : fmt::format("\"step\":{}", span.step));
        }
    }

    void device(const Track& track)
    {
        const auto [device, stream] = m_host.streamOf(track);
        for (SpanId id = track.begin; id < track.end && m_good; ++id) {
            const Span& span = m_timeline.spans()[id];
            ++m_counts.spans;
            event(
                R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"device":{},"context":1,"stream":{},"correlation":{}{}}}}})",
                track.lane == Lane::Kernel ? "kernel"
                : isFill(id)               ? "gpu_memset"
                                           : "gpu_memcpy",
                jsonText(m_timeline.nameOf(span)), device, stream, at(span.start), microseconds(span.duration()),
                device, stream, correlationOf(id),
                rest(id, span) + m_messages.argumentsOfKernel(id) + operation(span) + bytesOf(id, track) +
                    launchSizes(span));
            const auto into = m_timeline.edgesInto(id);
            if (std::any_of(into.begin(), into.end(), [](const Edge& edge) { return edge.kind == EdgeKind::Launch; }))
                event(R"({{"ph":"f","bp":"e","cat":"ac2g","name":"ac2g","id":{},"pid":{},"tid":{},"ts":{}}})",
                      correlationOf(id), device, stream, at(span.start));
        }
    }

    // What a collective is called whose kernel's name hides it, as PyTorch has it: AllToAll is "all_to_all". Sends and
    // receives have their own arguments.
    std::string operation(const Span& span) const
    {
        const std::string_view name = operationInShape(m_timeline.shapeOf(span));
        if (name.empty() ||
            classOfKernel(m_timeline.labelOf(span), m_timeline.shapeOf(span)) != KernelClass::Collective)
            return {};
        std::string text;
        for (const char c : name) {
            const bool capital = c >= 'A' && c <= 'Z';
            if (capital && !text.empty()) text += '_';
            text += capital ? static_cast<char>(c - 'A' + 'a') : c;
        }
        return fmt::format(R"(,"Collective name":{})", jsonText(text));
    }

    // "grid 8×2×1, block 128×1×1, …" as PyTorch has it: "grid":[8,2,1],"block":[128,1,1].
    std::string launchSizes(const Span& span) const
    {
        const std::string_view shape = m_timeline.shapeOf(span);
        std::string out;
        for (const std::string_view what : {"grid ", "block "}) {
            const std::size_t at = shape.find(what);
            if (at == std::string_view::npos || (at != 0 && shape[at - 1] != ' ')) continue;
            std::vector<std::string> sizes(1);
            for (const char c : shape.substr(at + what.size(), shape.find(',', at) - at - what.size()))
                if (c >= '0' && c <= '9')
                    sizes.back() += c;
                else if (!sizes.back().empty())
                    sizes.emplace_back();
            if (sizes.size() == 3 && !sizes.back().empty())
                out +=
                    fmt::format(R"(,"{}":[{},{},{}])", what.substr(0, what.size() - 1), sizes[0], sizes[1], sizes[2]);
        }
        const CudaGraphNode of = graphNodeIn(shape);
        if (of.graph) out += fmt::format(R"(,"graph id":{})", *of.graph);
        if (of.node) out += fmt::format(R"(,"graph node id":{})", *of.node);
        return out;
    }

    // As PyTorch says it: bytes of a copy, elements of a collective or message, here of one byte each.
    std::string bytesOf(SpanId id, const Track& track) const
    {
        const auto bytes = m_bytes.of(id);
        if (!bytes) return {};
        if (track.lane == Lane::Copy) return fmt::format(R"(,"bytes":{})", *bytes);
        return fmt::format(R"(,"In msg nelems":{0},"Out msg nelems":{0},"dtype":"Byte")", *bytes);
    }

    void message(SpanId id, const Span& span, int thread)
    {
        host("user_annotation", "PP:" + toText(span.op), span.start, span.end, thread, rest(id, span));
        if (const int peer = m_messages.peerOf(span.op); peer >= 0 && !m_messages.hasKernel(id))
            communication(isSend(span.op.kind), peer, span, thread, id);
    }

    void communication(bool sends, int peer, const Span& span, int thread, SpanId message = noSpan)
    {
        host("cpu_op", "record_param_comms", span.start, span.end, thread, m_messages.arguments(sends, peer, message));
    }

    bool hasMessages(Lane lane) const
    {
        const auto tracks = m_timeline.tracks();
        return std::any_of(tracks.begin(), tracks.end(),
                           [lane](const Track& track) { return track.lane == lane && track.end > track.begin; });
    }

    struct Message {
        Span span;
        int peer;
        std::uint64_t order; // among those with the same start, the same at both ends
    };

    // Records without ops of their own: they may start before the rank's step.
    void records(std::vector<Message>& messages, bool sends)
    {
        std::sort(messages.begin(), messages.end(), [](const Message& a, const Message& b) {
            return std::tie(a.span.start, a.order) < std::tie(b.span.start, b.order);
        });
        std::vector<Span> spans;
        spans.reserve(messages.size());
        for (const Message& message : messages) spans.push_back(message.span);
        const auto lanes = sublanes(spans);
        const int rows = lanes.empty() ? 0 : 1 + *std::max_element(lanes.begin(), lanes.end());
        const char* name = sends ? "send" : "receive";
        std::vector<int> threads;
        for (int row = 0; row < rows; ++row) {
            threads.push_back(m_host.freeThread());
            nameThread(threads.back(), rows == 1 ? name : fmt::format("{} ({})", name, row + 1));
        }
        for (std::size_t i = 0; i < messages.size() && m_good; ++i)
            communication(sends, messages[i].peer, messages[i].span, threads[lanes[i]]);
    }

    // If only senders record messages, from the producer's end to the arrival, this adds the other end, so that readers
    // pair both.
    void receives()
    {
        std::vector<Message> ends;
        for (const Track& track : m_timeline.tracks()) {
            if (track.lane != Lane::Send || track.rank == m_rank) continue;
            for (SpanId id = track.begin; id < track.end; ++id) {
                const Span& span = m_timeline.spans()[id];
                if (span.label == 0 && isSend(span.op.kind) && m_messages.peerOf(span.op) == m_rank)
                    ends.push_back({span, track.rank, id});
            }
        }
        records(ends, false);
    }

    // If only ops show messages, by their waits for other ranks: from the producer's end to the arrival at both ends.
    void arrivals()
    {
        std::vector<Message> sent, received;
        const auto add = [&](const Edge& edge, std::vector<Message>& to, SpanId other) {
            const Track& track = m_timeline.trackOf(other);
            if (edge.kind != EdgeKind::Data || track.rank == m_rank || track.lane != Lane::Compute) return;
            Span span;
            span.start = m_timeline.spans()[edge.from].end;
            span.end = std::max(span.start, edge.arrival);
            to.push_back({span, track.rank, std::uint64_t{edge.from} << 32 | edge.to});
        };
        for (const Track& track : m_timeline.tracks()) {
            if (track.rank != m_rank || track.lane != Lane::Compute) continue;
            for (SpanId id = track.begin; id < track.end; ++id) {
                for (const Edge& edge : m_timeline.edgesFrom(id)) add(edge, sent, edge.to);
                for (const Edge& edge : m_timeline.edgesInto(id)) add(edge, received, edge.from);
            }
        }
        records(sent, true);
        records(received, false);
    }

    void memory()
    {
        if (m_timeline.memoryUnit() != 1) return; // unit-cost work has no bytes
        Bytes total = 0;
        for (const MemoryEvent& one : m_timeline.memoryOf(m_rank)) {
            if (!m_good) return;
            total += one.delta;
            const std::uint64_t address = (static_cast<std::uint64_t>(one.category) + 1) << 48 |
                                          static_cast<std::uint64_t>(one.stage) << 32 |
                                          static_cast<std::uint32_t>(one.microbatch + 1);
            event(
                R"({{"ph":"i","s":"t","cat":"cpu_instant_event","name":"[memory]","pid":{},"tid":{},"ts":{},"args":{{"Total Allocated":{},"Bytes":{},"Addr":{},"Device Id":0,"Device Type":1,"category":"{}"}}}})",
                process(), kinetoHostThread, at(one.time), total, one.delta, address, toText(one.category));
            ++m_counts.memoryEvents;
        }
    }

    void received()
    {
        for (const Counter& counter : receivedCounters(m_run)) {
            if (counter.rank != m_rank || m_timeline.memoryUnit() != 1) continue;
            for (const CounterSample& sample : counter.samples)
                event(R"({{"ph":"C","name":{},"pid":{},"tid":0,"ts":{},"args":{{"{}":{:.0f}}}}})",
                      jsonText(counter.name), process(), at(sample.time), counter.unit, sample.value);
        }
    }

    const Run& m_run;
    const Timeline& m_timeline;
    int m_rank = 0;
    const Sink& m_out;
    KinetoCounts& m_counts;
    const Progress& m_progress;
    Nanos m_shift = 0;
    KinetoHost m_host;
    KinetoMessages m_messages;
    WorkBytes m_bytes;
    std::string m_buffer;
    std::string m_ranks;
    // starts of this rank's device work in no step; nothing: not looked for yet
    std::optional<std::vector<Nanos>> m_ofNoStep;
    bool m_first = true;
    bool m_good = true;
    std::int64_t m_nextId = 1;
};

} // namespace

Result<void> writeKinetoRank(const Run& run, int rank, const Sink& out, KinetoCounts& counts, const Progress& progress)
{
    if (!run.timeline) return fail(ErrorCode::Usage, fmt::format("run {} has no timeline", run.info.name));
    return RankWriter(run, rank, out, counts, progress).write();
}

Result<KinetoCounts> writeKinetoFolder(const Run& run, const std::string& folder, const Progress& progress)
{
    if (!run.timeline) return fail(ErrorCode::Usage, fmt::format("run {} has no timeline", run.info.name));
    KinetoCounts counts;
    STAGEWRIGHT_CHECK(writeFolderAtomically(folder, [&](const std::string& part) -> Result<void> {
        for (int rank = 0; rank < run.timeline->ranks(); ++rank) {
            auto done = writeFileAtomically(fmt::format("{}/rank{}.pt.trace.json", part, rank), [&](const Sink& out) {
                return writeKinetoRank(run, rank, out, counts, progress);
            });
            if (!done) return done;
        }
        return {};
    }));
    return counts;
}

} // namespace stagewright
