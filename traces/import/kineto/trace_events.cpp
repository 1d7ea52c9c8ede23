#include "traces/import/kineto/trace_events.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/foreign_json.h"
#include "schedules/base/shown_text.h"
#include "schedules/base/text.h"
#include "traces/analysis/device_idle.h"
#include "traces/analysis/kernels.h"
#include "traces/foreign/graph_node.h"
#include "traces/import/kineto/ascend_devices.h"
#include "traces/import/kineto/kineto_job.h"
#include "traces/import/kineto/kineto_launches.h"
#include "traces/import/kineto/own_events.h"
#include "traces/import/kineto/process_ranks.h"
#include "traces/import/kineto/trace_threads.h"
#include "traces/import/kineto/xla_devices.h"

namespace stagewright {

namespace {

using nlohmann::json;

enum class Category : std::uint8_t {
    Unknown,
    Annotation,
    DeviceAnnotation,
    HostOp,
    Launch,
    Kernel,
    Copy,
    LeftOut,
};

// Names of today and of 2021 ("Operator", "Kernel", "Runtime", "Memcpy"), of NVIDIA, AMD, Intel and others.
Category categoryOf(std::string_view text)
{
    const std::string name = lowered(text);
    if (name == "user_annotation") return Category::Annotation;
    if (name == "gpu_user_annotation") return Category::DeviceAnnotation;
    if (name == "cpu_op" || name == "operator") return Category::HostOp;
    if (name == "kernel" || name == "concurrent_kernel" || name == "mtia_ccp_events") return Category::Kernel;
    if (name.ends_with("memcpy") || name.ends_with("memset")) return Category::Copy;
    if (name.ends_with("runtime") || name.ends_with("driver") || name == "hpu_op") return Category::Launch;
    for (const std::string_view other : std::to_array<std::string_view>(
             {"python_function", "overhead", "cuda_sync", "cuda_event", "trace", "cpu_instant_event",
              "external_correlation", "ac2g", "fwdbwd", "async", "collective_comm", "hardware_counters",
              "async_cpu_to_gpu", "forward_backward", "xpu_sync", "mtia_insight", "enqueue", "dequeue"}))
        if (name == other) return Category::LeftOut;
    return Category::Unknown;
}

// Bytes of an element by the name that PyTorch or Ascend's libraries have for its type; 0: another type.
std::int64_t elementBytes(std::string_view type)
{
    constexpr std::pair<std::string_view, std::int64_t> sizes[] = {
        {"Float", 4},         {"Half", 2},        {"BFloat16", 2},     {"Double", 8},         {"Long", 8},
        {"Int", 4},           {"Short", 2},       {"Char", 1},         {"Byte", 1},           {"Bool", 1},
        {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}, {"ComplexFloat", 8}, {"ComplexDouble", 16}, {"FP32", 4},
        {"FP16", 2},          {"BFP16", 2},       {"FP64", 8},         {"INT8", 1},           {"UINT8", 1},
        {"INT16", 2},         {"UINT16", 2},      {"INT32", 4},        {"UINT32", 4},         {"INT64", 8},
        {"UINT64", 8}};
    for (const auto& [name, size] : sizes)
        if (type == name) return size;
    return 0;
}

// The bytes of the larger side: a gather's result, a scatter's input. −1: not known.
std::int64_t collectiveBytes(const KinetoArgs& args)
{
    const std::int64_t elements = std::max(args.elementsIn, args.elementsOut);
    const std::int64_t size = elementBytes(args.elementType);
    return elements < 0 || elements > (std::int64_t{1} << 50) || size == 0 ? -1 : elements * size;
}

bool isHostMessage(std::string_view name)
{
    return name == "c10d::send" || name == "c10d::recv_" || name == "c10d::recv_any_source_";
}

// The host's record of a collective or a message, with its known data.
bool isRecord(std::string_view name) { return name == "record_param_comms"; }

bool wantsArgs(std::string_view category, std::string_view name)
{
    return (category != "cpu_op" && category != "python_function" && category != "Operator") || isHostMessage(name) ||
           isRecord(name);
}

// With the sizes of operators' inputs.
bool wantsOperators(std::string_view category, std::string_view) { return category != "python_function"; }

class EventTaker final : public TraceEvents {
public:
    EventTaker(std::string path, const ImportOptions& options, const Progress& progress, bool own)
        : m_options(options), m_progress(progress), m_own(own)
    {
        m_rank.source = std::move(path);
    }

    ForeignRank& rank() override { return m_rank; }
    KinetoEvent& event() override { return m_event; }
    bool saidOwnLate() const override { return m_ownLate; }

    void member(std::string_view key, std::string_view text) override
    {
        m_kineto = readTraceMember(key, text, m_rank) || m_kineto;
        m_ownLate = m_rank.ownEvents && !m_own && m_rank.events > 0;
        m_own = m_own || m_rank.ownEvents;
    }

    // Lists that double when they are full hold everything twice for a moment: they get room for as much as the rest of
    // the file will bring if it resembles the part already read. Unused capacity takes no memory.
    void makeRoom(const ByteSource& source) override
    {
        const double read =
            static_cast<double>(source.consumed()) / static_cast<double>(std::max<std::int64_t>(1, source.size()));
        const auto room = [read](auto& list) {
            const std::size_t size = list.size();
            if (size < 1 << 16 || size * 16 < list.capacity() * 15) return;
            const double wanted = static_cast<double>(size) * std::clamp(1.1 / std::max(read, 1e-3), 1.25, 256.0);
            list.reserve(static_cast<std::size_t>(wanted));
        };
        room(m_rank.device);
        room(m_external);
        room(m_inputs);
        room(m_rank.launches);
        room(m_rank.annotations);
        room(m_rank.hostOps);
        room(m_rank.memory);
    }

    // Operators' arguments are as much text as all else: a trace that was recorded without shapes shows in its first
    // ones.
    KinetoEventParser::WantArgs wanted() const override
    {
        constexpr std::int64_t tried = 1000;
        return !m_inputs.empty() || m_operatorsSeen < tried ? wantsOperators : wantsArgs;
    }

    bool take() override
    {
        const bool taken = takeAsPhase();
        if (taken && m_event.repaired) ++m_rank.repaired;
        return taken;
    }

    Result<ForeignFile> finish(ByteSource* again) override
    {
        m_ascend.finish(m_threads, m_rank, m_external);
        joinHostMessages();
        forgetSharedIds();
        nameByInputs();
        const IdOfProcess ids = [this](std::string_view process, std::int64_t id) { return idOf(process, id); };
        if (again != nullptr)
            STAGEWRIGHT_CHECK(tieWithoutLaunches(*again, m_external, ids, m_threads, m_rank, m_progress));
        return file();
    }

private:
    std::uint32_t threadOf(bool device)
    {
        if (m_event.place == nullptr) return m_threads.of(m_event.pid, m_event.tid, device, m_rank);
        std::uint32_t& number = m_event.place->numbers[device ? 1 : 0];
        if (number == KinetoPlace::unknown) number = m_threads.of(m_event.pid, m_event.tid, device, m_rank);
        return number;
    }
    std::uint32_t nameOf()
    {
        return m_event.nameId != KinetoEvent::unknown ? m_event.nameId : m_rank.names.idOf(m_event.name);
    }
    // With the shape of its launch and its place in a CUDA graph; a job launches the same kernels again and again.
    std::uint32_t nameOfKernel()
    {
        const auto& [gridX, gridY, gridZ] = m_event.args.grid;
        const std::uint32_t name = nameOf();
        const CudaGraphNode graph = graphNodeOf(m_event.args.graph, m_event.args.graphNode);
        if (graph.known())
            return m_rank.names.shaped(name, withGraph(launchShape(m_event.args.grid, m_event.args.block), graph));
        if (gridX <= 0) return name;
        Shaped& known = m_shaped[(name * 31 + static_cast<std::size_t>(gridX + gridY + gridZ)) % m_shaped.size()];
        if (known.name != name || known.grid != m_event.args.grid || known.block != m_event.args.block)
            known = {name, m_event.args.grid, m_event.args.block,
                     m_rank.names.shaped(name, launchShape(m_event.args.grid, m_event.args.block))};
        return known.shaped;
    }

    bool takeAsPhase()
    {
        switch (m_event.phase) {
        case 'X':
            return m_event.time && m_event.duration && *m_event.duration >= 0
                       ? takeSpan(*m_event.time, *m_event.duration)
                       : false;
        case 'B': return m_event.time && begin(m_open[threadOf(false)]);
        case 'E': return m_event.time && end(m_open[threadOf(false)]);
        case 'b':
        case 'e': return takeAsync();
        case 'C': return takeCounter();
        case 'i':
        case 'I': return takeInstant();
        case 'M': return takeName();
        case 's':
        case 't':
        case 'f':
            ++m_flows;
            if (m_event.category == "async_npu" && m_event.time)
                m_ascend.addFlow(m_event.phase, m_event.id, threadOf(m_event.phase == 'f'), *m_event.time);
            return true;
        case 0:
            if (!m_event.name.empty() || m_event.time) ++m_rank.leftOut["events without a phase"]; // XLA ends with {}
            return true;
        default: ++m_rank.leftOut["events of other phases"]; return true;
        }
    }

    // A call that waits, or that launches a graph.
    bool isKeptCall()
    {
        const auto isKept = [this] { return isSynchronisingCall(m_event.name) || isGraphLaunch(m_event.name); };
        const std::uint32_t id = m_event.nameId;
        if (id == KinetoEvent::unknown) return isKept();
        if (id >= m_keptCalls.size()) m_keptCalls.resize(id + 1, -1);
        if (m_keptCalls[id] < 0) m_keptCalls[id] = isKept() ? 1 : 0;
        return m_keptCalls[id] == 1;
    }

    // A trace has few, in turn.
    Category knownCategory()
    {
        const std::uint32_t id = m_event.categoryId;
        if (id == KinetoEvent::unknown || id > mostCategoryIds) return knownCategory(m_event.category);
        if (id >= m_byId.size()) m_byId.resize(id + 1, -1);
        if (m_byId[id] < 0) m_byId[id] = static_cast<std::int8_t>(categoryOf(m_event.category));
        return static_cast<Category>(m_byId[id]);
    }
    Category knownCategory(std::string_view text)
    {
        for (const auto& [name, category] : m_categories)
            if (name == text) return category;
        const Category category = categoryOf(text);
        if (m_categories.size() < 16) m_categories.emplace_back(text, category);
        return category;
    }

    bool takeSpan(Nanos start, Nanos duration)
    {
        if (m_event.category.empty())
            if (const AscendPart part = AscendDevices::partOf(m_event); part != AscendPart::None)
                return takeAscend(part, start, duration);
        const Category category = m_event.category.empty()                          ? ofProcess()
                                  : m_own && m_event.category == toText(Lane::Copy) ? Category::Copy
                                                                                    : knownCategory();
        return takeAs(category, start, duration);
    }

    // An event of an NPU, which has no category.
    bool takeAscend(AscendPart part, Nanos start, Nanos duration)
    {
        const KinetoArgs& args = m_event.args;
        switch (part) {
        case AscendPart::Collective: m_ascend.nameCollective(m_event); return takeAs(Category::Kernel, start, duration);
        case AscendPart::Kernel: return takeAs(Category::Kernel, start, duration);
        case AscendPart::Call: return takeAs(Category::Launch, start, duration);
        case AscendPart::Copy: {
            const ForeignSpan span{start, start + duration, m_rank.names.idOf(m_event.name), threadOf(true)};
            m_ascend.addCopy({span, idOf(args.correlation), true, false}, args.stream, args.task, args.copied);
            break;
        }
        case AscendPart::Piece:
            m_ascend.addPiece(m_event, start, start + duration);
            ++m_rank.leftOut["pieces of collectives"];
            break;
        default: ++m_rank.leftOut["waits and signals of streams"];
        }
        return true;
    }

    bool takeAs(Category category, Nanos start, Nanos duration)
    {
        m_kineto =
            m_kineto || category == Category::HostOp || category == Category::Kernel || category == Category::Launch;
        ForeignSpan span{start, start + duration, 0, 0};
        if (m_own && m_ownEvents.take(m_event, span, m_threads, m_rank)) return true;
        const KinetoArgs& args = m_event.args;
        switch (category) {
        case Category::Kernel:
        case Category::Copy: {
            span.name = nameOfKernel();
            span.thread = threadOf(true);
            DeviceSpan work{span, idOf(args.correlation), category == Category::Copy, false};
            if (category == Category::Kernel) takeCollective(work);
            if (work.copy && args.copied >= 0)
                m_rank.copyBytes.emplace_back(static_cast<std::uint32_t>(m_rank.device.size()), args.copied);
            m_rank.device.push_back(work);
            m_external.push_back(idOf(args.external));
            break;
        }
        case Category::Launch:
            if (isKeptCall()) m_rank.hostOps.push_back({start, start + duration, nameOf(), threadOf(false)});
            if (const std::int64_t correlation = idOf(args.correlation); correlation >= 0)
                m_rank.launches.push_back({correlation, start, threadOf(false)});
            else
                ++m_rank.leftOut["runtime calls"];
            break;
        case Category::HostOp:
            ++m_operatorsSeen;
            if (const std::int64_t external = idOf(args.external); external >= 0 && args.inputs.size() > 2)
                m_inputs.emplace_back(external, m_inputTexts.idOf(args.inputs));
            if (isHostMessage(m_event.name))
                takeHostMessage(span);
            else if (isRecord(m_event.name))
                takeRecord(span);
            if (const std::uint32_t name = nameOf(); isLabel(name)) {
                // In 2021 user ranges were ordinary operators.
                m_rank.annotations.push_back({span.start, span.end, name, threadOf(false)});
            } else if (m_options.hostOps) {
                m_rank.hostOps.push_back({span.start, span.end, name, threadOf(false)});
            } else {
                ++m_operators;
            }
            break;
        case Category::DeviceAnnotation:
            span.name = m_xla.seen() ? m_rank.names.idOf(profilerStep(m_event.name)) : nameOf();
            span.thread = threadOf(true);
            m_rank.deviceAnnotations.push_back(span);
            break;
        case Category::LeftOut:
            ++m_rank.leftOut[m_event.category == "python_function" ? "Python functions"
                             : m_event.category.empty()            ? "spans that repeat the time of others"
                                                                   : "spans of the profiler"];
            break;
        case Category::Annotation:
        case Category::Unknown:
            span.name = nameOf();
            span.thread = threadOf(false);
            m_rank.annotations.push_back(span);
            if (m_threads.nameDevices()) takeHostOfXla(m_event, span, idOf(m_event.args.correlation), m_rank);
            break;
        }
        return true;
    }

    // Without categories. PyTorch's profiler before Kineto has two processes that are one rank.
    Category ofProcess()
    {
        if (m_event.pid == "CUDA functions") return Category::Kernel;
        if (m_event.pid == "CPU functions") {
            m_kineto = true;
            return Category::HostOp;
        }
        switch (m_xla.lineOf(m_event.pid, m_event.tid)) {
        case XlaLine::Work:
            return m_event.name.starts_with("Memcpy") || m_event.name.starts_with("Memset") ? Category::Copy
                                                                                            : Category::Kernel;
        case XlaLine::Steps: return Category::DeviceAnnotation;
        case XlaLine::Repeats: return Category::LeftOut;
        case XlaLine::None: break;
        }
        return Category::Unknown;
    }

    bool isLabel(std::uint32_t name)
    {
        if (name >= m_labels.size()) m_labels.resize(name + 1, -1);
        if (m_labels[name] < 0) m_labels[name] = m_options.rules.meaningOf(m_rank.names[name]).has_value() ? 1 : 0;
        return m_labels[name] == 1;
    }

    void takeCollective(DeviceSpan& work)
    {
        const std::string kernel = collectiveOfKernel(m_event.name);
        const KinetoArgs& args = m_event.args;
        if (kernel.empty() && args.collective.empty()) return;
        work.collective = true;
        ForeignMessage message = messageOf(work, args.collective.empty() ? kernel : lowered(args.collective));
        message.device = true;
        message.correlation = work.correlation;
        message.work = static_cast<std::int64_t>(m_rank.device.size());
        m_rank.messages.push_back(message);
        m_records.clear(); // the device's times say more
        m_deviceMessages = true;
    }

    // Sends and receives without device spans: a job without GPUs.
    void takeRecord(const ForeignSpan& span)
    {
        if (m_deviceMessages || m_event.args.collective.empty()) return;
        ForeignMessage message = messageOf(span, lowered(m_event.args.collective));
        message.thread = threadOf(false);
        if (message.kind != MessageKind::Collective) m_records.push_back(message);
    }

    ForeignMessage messageOf(const ForeignSpan& span, const std::string& name)
    {
        const KinetoArgs& args = m_event.args;
        ForeignMessage message;
        message.start = span.start;
        message.end = span.end;
        if (name == "send" || name == "isend") message.kind = MessageKind::Send;
        if (name == "recv" || name == "irecv" || name == "recv_") message.kind = MessageKind::Receive;
        message.name = m_rank.names.idOf(name);
        message.group = m_rank.names.idOf(args.group);
        message.from = static_cast<int>(std::clamp<std::int64_t>(args.sourceRank, -1, 1'000'000));
        message.to = static_cast<int>(std::clamp<std::int64_t>(args.targetRank, -1, 1'000'000));
        message.sequence = args.sequence;
        message.bytes = collectiveBytes(args);
        if (args.group.empty()) return message;
        const auto keep = [&args](auto& groups, auto& purposes) {
            if (!groups.contains(args.group))
                if (auto ranks = ranksInText(args.groupRanks); !ranks.empty())
                    groups.emplace(args.group, std::move(ranks));
            if (!args.groupPurpose.empty() && !purposes.contains(args.group))
                purposes.emplace(args.group, args.groupPurpose);
        };
        keep(m_rank.groups, m_rank.groupPurpose);
        if (const std::string_view tag = processTag(m_event.pid); !tag.empty()) {
            auto& own = m_groupsOfTag[std::string(tag)];
            keep(own.first, own.second);
        }
        return message;
    }

    // An operator that posts a message on the host; the range of the library that follows it gives its end.
    void takeHostMessage(const ForeignSpan& span)
    {
        ForeignMessage message;
        message.start = span.start;
        message.end = span.end;
        message.kind = m_event.name == "c10d::send" ? MessageKind::Send : MessageKind::Receive;
        message.name = m_rank.names.idOf(message.kind == MessageKind::Send ? "send" : "recv");
        message.group = m_rank.names.idOf("");
        const int peer = static_cast<int>(std::clamp<std::int64_t>(m_event.args.peer, -1, 1'000'000));
        (message.kind == MessageKind::Send ? message.to : message.from) = peer;
        message.tag = m_event.args.tag;
        message.thread = threadOf(false);
        m_hostMessages.emplace_back(message.thread, message);
    }

    bool takeAsync()
    {
        if (!m_event.time) return false;
        auto& open = m_async[fmt::format("{}\x1f{}\x1f{}", m_event.category, m_event.id, m_event.name)];
        return m_event.phase == 'b' ? begin(open) : end(open);
    }

    // A range from one event to another, of ranges in each other.
    bool begin(std::vector<ForeignSpan>& open)
    {
        open.push_back({*m_event.time, 0, m_rank.names.idOf(m_event.name), threadOf(false)});
        return true;
    }
    bool end(std::vector<ForeignSpan>& open)
    {
        if (open.empty()) {
            ++m_rank.leftOut["end events without a start event"];
            return true;
        }
        ForeignSpan span = open.back();
        open.pop_back();
        span.end = std::max(span.start, *m_event.time);
        m_rank.annotations.push_back(span);
        return true;
    }

    bool takeCounter()
    {
        if (!m_event.time) return false;
        if (m_event.value) {
            addSample(m_event.category, *m_event.value);
            return true;
        }
        const json values = readForeignJson(m_event.args.object);
        if (!values.is_object()) return false;
        for (const auto& [series, value] : values.items())
            if (value.is_number()) addSample(series, value.get<double>());
        return true;
    }

    void addSample(std::string_view series, double value)
    {
        const bool own = !m_rank.run.empty(); // one series, named as its unit
        std::string name =
            own || series.empty() ? std::string(m_event.name) : fmt::format("{} {}", m_event.name, series);
        const auto [entry, added] =
            m_counters.try_emplace(own ? fmt::format("{} {}", m_event.pid, name) : name, m_rank.counters.size());
        if (added)
            m_rank.counters.push_back({std::move(name),
                                       {},
                                       own && series != "value" ? std::string(series) : std::string(),
                                       own ? std::string(m_event.pid) : std::string()});
        m_rank.counters[entry->second].samples.push_back({*m_event.time, value});
    }

    bool takeInstant()
    {
        if (m_event.name != "[memory]" || !m_event.time) {
            ++m_rank.leftOut["instants"];
            return true;
        }
        const KinetoArgs& args = m_event.args;
        MemoryChangeSeen seen{*m_event.time,
                              args.bytes,
                              args.address,
                              args.total,
                              threadOf(false),
                              args.deviceType > 0,
                              std::nullopt,
                              0,
                              -1,
                              args.deviceId >= 0 && args.deviceId < 1'000'000 ? static_cast<int>(args.deviceId) : -1};
        // as exported here: the address encodes category, stage and microbatch
        for (std::size_t k = 0; k < memoryCategoryCount; ++k) {
            if (args.category != toText(static_cast<MemoryCategory>(k)) || args.address >> 48 != k + 1) continue;
            seen.category = static_cast<MemoryCategory>(k);
            seen.stage = static_cast<std::uint16_t>(args.address >> 32);
            seen.microbatch = static_cast<std::int32_t>(static_cast<std::uint32_t>(args.address)) - 1;
        }
        m_rank.memory.push_back(seen);
        return true;
    }

    bool takeName()
    {
        if (m_event.name == "process_name")
            m_threads.nameProcess(m_event.pid, m_event.args.name);
        else if (m_event.name == "thread_name")
            m_threads.nameThread(m_event.pid, m_event.tid, m_event.args.name);
        return true;
    }

    // 0 is none, and so is what is below. Ids of merged ranks (process_ranks.h) differ by their processes' tags.
    std::int64_t idOf(std::int64_t id) { return idOf(m_event.pid, id); }
    std::int64_t idOf(std::string_view process, std::int64_t id)
    {
        constexpr int tagBits = 40;
        if (id <= 0) return -1;
        if (process == m_tagged) return id + m_idOffset;
        m_tagged = process;
        const std::string_view tag = processTag(process);
        m_idOffset =
            tag.empty()
                ? 0
                : static_cast<std::int64_t>(m_tags.try_emplace(std::string(tag), m_tags.size() + 1).first->second)
                      << tagBits;
        return id + m_idOffset;
    }

    // Several processes without a tag number their operators alike.
    void forgetSharedIds()
    {
        const auto& processes = m_threads.processes();
        const bool shared = std::any_of(m_rank.launches.begin(), m_rank.launches.end(), [&](const Launch& launch) {
            return processes[launch.thread] != processes[m_rank.launches.front().thread];
        });
        if (shared && m_tags.empty()) m_inputs.clear();
    }

    void joinHostMessages()
    {
        if (m_hostMessages.empty()) {
            m_rank.messages.insert(m_rank.messages.end(), m_records.begin(), m_records.end());
            return;
        }
        std::vector<ForeignSpan> library;
        for (const ForeignSpan& span : m_rank.annotations)
            if (const std::string& name = m_rank.names[span.name];
                name == "gloo:send" || name == "gloo:recv" || name == "gloo:recvAnySource" ||
                name.starts_with("mpi:send") || name.starts_with("mpi:recv"))
                library.push_back(span);
        std::sort(library.begin(), library.end(), [](const ForeignSpan& a, const ForeignSpan& b) {
            return std::pair(a.thread, a.start) < std::pair(b.thread, b.start);
        });
        for (auto& [thread, message] : m_hostMessages) {
            const auto first = std::lower_bound(
                library.begin(), library.end(), std::pair(thread, message.start),
                [](const ForeignSpan& span, const auto& at) { return std::pair(span.thread, span.start) < at; });
            if (first != library.end() && first->thread == thread && first->start <= message.end)
                message.end = std::max(message.end, first->end);
            m_rank.messages.push_back(message);
        }
    }

    // Kernels have the sizes of the inputs of the operator that launched them in their shape.
    void nameByInputs()
    {
        if (m_inputs.empty()) return;
        std::stable_sort(m_inputs.begin(), m_inputs.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
        for (std::size_t i = 0; i < m_rank.device.size(); ++i) {
            DeviceSpan& work = m_rank.device[i];
            // some traces repeat the correlation
            if (work.copy || m_external[i] < 0 || m_external[i] == work.correlation) continue;
            const auto found = std::lower_bound(m_inputs.begin(), m_inputs.end(), m_external[i],
                                                [](const auto& at, std::int64_t id) { return at.first < id; });
            if (found == m_inputs.end() || found->first != m_external[i]) continue;
            const auto [entry, added] = known.try_emplace({work.name, found->second}, 0);
            if (added)
                entry->second = m_rank.names.shaped(
                    work.name, withInputs(m_rank.names.shapeOf(work.name), m_inputTexts[found->second]));
            work.name = entry->second;
        }
        std::vector<std::pair<std::int64_t, std::uint32_t>>().swap(m_inputs);
    }

    // Named like ops of PyTorch's schedules, with numbers that no op has.
    void noteAbsurdLabels()
    {
        std::int64_t count = 0;
        std::string example;
        std::vector<std::int8_t> absurd(m_rank.names.size(), -1);
        for (const ForeignSpan& span : m_rank.annotations) {
            std::int8_t& known = absurd[span.name];
            if (const std::string& name = m_rank.names[span.name]; known < 0) {
                std::size_t digits = 0, longest = 0;
                for (const char c : name)
                    longest =
                        std::max(longest, digits = std::isdigit(static_cast<unsigned char>(c)) != 0 ? digits + 1 : 0);
                known = name.starts_with("PP:") && name.size() > 3 &&
                                std::isdigit(static_cast<unsigned char>(name[3])) != 0 && longest >= 5 &&
                                !m_options.rules.meaningOf(name)
                            ? 1
                            : 0;
                if (known == 1 && example.empty()) example = name.substr(0, 60);
            }
            count += known;
        }
        if (count > 0)
            m_rank.notes.push_back(fmt::format(
                "{} named like an op with a stage or microbatch that none has, such as {}: read as plain ranges",
                count == 1 ? "1 range is" : fmt::format("{} ranges are", count), example));
    }

    Result<ForeignFile> file()
    {
        for (const auto& [thread, open] : m_open)
            if (!open.empty())
                m_rank.leftOut["start events without an end event"] += static_cast<std::int64_t>(open.size());
        for (const auto& [key, open] : m_async)
            if (!open.empty())
                m_rank.leftOut["start events without an end event"] += static_cast<std::int64_t>(open.size());
        if (m_flows > 0) m_rank.leftOut["flows"] += m_flows;
        if (m_operators > 0) m_rank.leftOut["operators of the host"] += m_operators;
        m_ownEvents.finish(m_rank, [this](std::uint32_t name) { return isLabel(name); });
        const bool ranks = m_threads.nameRanks();
        m_threads.useNames(m_rank, !m_kineto && !ranks);
        noteAbsurdLabels();
        if (m_xla.seen()) m_rank.clock = m_rank.source;
        m_rank.format = m_kineto && !m_xla.seen() && !m_own ? "kineto" : "chrome";
        ForeignFile file;
        if (m_kineto)
            file.ranks = ranksOfKineto(m_threads, std::move(m_groupsOfTag), std::move(m_rank), m_xla.seen());
        else if (m_threads.oneProcess() || !ranks)
            file.ranks.push_back(std::move(m_rank));
        else
            file.ranks = m_threads.byProcess(std::move(m_rank));
        return file;
    }

    const ImportOptions& m_options;
    const Progress& m_progress;
    ForeignRank m_rank;
    KinetoEvent m_event;
    bool m_kineto = false; // has work of devices, or operators
    bool m_own;            // written by this program
    bool m_ownLate = false;
    OwnEvents m_ownEvents;
    std::vector<std::pair<std::string, Category>> m_categories; // the first few of the file
    static constexpr std::uint32_t mostCategoryIds = 1 << 20;
    std::vector<std::int8_t> m_byId;      // categories by KinetoEvent::categoryId; −1: not known yet
    std::vector<std::int8_t> m_keptCalls; // likewise, by KinetoEvent::nameId
    struct Shaped {
        std::uint32_t name = KinetoEvent::unknown;
        std::array<std::int64_t, 3> grid{}, block{};
        std::uint32_t shaped = 0;
    };
    std::array<Shaped, 256> m_shaped;          // names of kernels with their shapes that were seen last
    std::int64_t m_flows = 0, m_operators = 0; // left out
    TraceThreads m_threads;
    XlaDevices m_xla{m_threads};
    AscendDevices m_ascend;
    std::map<std::string, GroupsOfTag, std::less<>> m_groupsOfTag;
    std::map<std::string, std::size_t, std::less<>> m_tags;       // of processes, numbered from 1 (idOf())
    std::string m_tagged;                                         // the process that had an id last
    std::int64_t m_idOffset = 0;                                  // its ids'
    std::vector<std::int64_t> m_external;                         // by ForeignRank::device
    std::vector<std::pair<std::int64_t, std::uint32_t>> m_inputs; // of operators: "External id" → of m_inputTexts
    NameTable m_inputTexts;
    std::int64_t m_operatorsSeen = 0;
    std::vector<std::int8_t> m_labels; // by name: −1 not checked yet
    std::unordered_map<std::uint32_t, std::vector<ForeignSpan>> m_open;
    std::unordered_map<std::string, std::vector<ForeignSpan>> m_async;
    std::unordered_map<std::string, std::size_t> m_counters;
    std::vector<std::pair<std::uint32_t, ForeignMessage>> m_hostMessages; // with their thread
    std::vector<ForeignMessage> m_records;
    bool m_deviceMessages = false;
};

} // namespace

std::unique_ptr<TraceEvents> TraceEvents::make(std::string path, const ImportOptions& options, const Progress& progress,
                                               bool own)
{
    return std::make_unique<EventTaker>(std::move(path), options, progress, own);
}

} // namespace stagewright
