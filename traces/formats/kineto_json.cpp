#include "traces/formats/kineto_json.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "traces/formats/kineto_event.h"
#include "traces/import/json_events.h"

namespace stagewright {

namespace {

using nlohmann::json;

enum class Category : std::uint8_t { Unknown, Annotation, DeviceAnnotation, HostOp, Launch, Kernel, Copy, LeftOut };

std::string lowered(std::string_view text)
{
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return lower;
}

// Names of today and of 2021 ("Operator", "Kernel", "Runtime", "Memcpy"), of NVIDIA, AMD, Intel and others.
Category categoryOf(std::string_view text)
{
    const std::string name = lowered(text);
    if (name == "user_annotation") return Category::Annotation;
    if (name == "gpu_user_annotation") return Category::DeviceAnnotation;
    if (name == "cpu_op" || name == "operator") return Category::HostOp;
    if (name == "kernel" || name == "concurrent_kernel") return Category::Kernel;
    if (name.ends_with("memcpy") || name.ends_with("memset")) return Category::Copy;
    if (name.ends_with("runtime") || name.ends_with("driver")) return Category::Launch;
    for (const std::string_view other : std::to_array<std::string_view>({"python_function", "overhead", "cuda_sync", "cuda_event", "trace", "cpu_instant_event",
                                                                          "external_correlation", "ac2g", "fwdbwd", "async", "collective_comm", "hardware_counters", "async_cpu_to_gpu", "forward_backward"}))
        if (name == other) return Category::LeftOut;
    return Category::Unknown;
}

bool isHostMessage(std::string_view name)
{
    return name == "c10d::send" || name == "c10d::recv_" || name == "c10d::recv_any_source_";
}

bool wantsArgs(std::string_view category, std::string_view name)
{
    return (category != "cpu_op" && category != "python_function" && category != "Operator") || isHostMessage(name);
}

// "[0, 2, 4]", "0,2,4"; empty where shortened ("0, 1, ..., 7") or no list.
std::vector<int> ranksOf(std::string_view text)
{
    std::vector<int> ranks;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '.') return {};
        if (std::isdigit(static_cast<unsigned char>(text[i])) == 0) continue;
        std::int64_t value = 0;
        while (i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0 && value < 100'000'000) value = value * 10 + (text[i++] - '0');
        ranks.push_back(static_cast<int>(value));
    }
    return ranks;
}

class JsonTraceReader {
public:
    JsonTraceReader(std::string path, const ImportOptions& options, const Progress& progress) : m_path(std::move(path)), m_options(options), m_progress(progress) {}

    Result<ForeignFile> read(ByteSource& source)
    {
        JsonEvents events(source);
        JsonEvents::Item item;
        m_rank.source = m_path;
        while (true) {
            auto more = events.next(item);
            if (!more) return tl::unexpected(std::move(more.error()));
            if (!*more) break;
            if (item.member) {
                readMember(item.key, item.text);
                continue;
            }
            if (!readEvent(item.text)) events.reject();
            if ((++m_rank.events & 0x3fff) == 0) {
                m_progress.tell("reading", source.consumed(), source.size());
                if (m_progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
            }
        }
        m_progress.tell("reading", source.size(), source.size());
        if (!events.sawEvents()) return fail(ErrorCode::Unreadable, "JSON, but no trace: there are no traceEvents");
        m_rank.damaged += events.damaged();
        if (m_rank.events == 0) return fail(ErrorCode::Unreadable, "the trace has no events");
        if (!source.damage().empty()) m_rank.notes.push_back(source.damage());
        else if (events.gaveUp()) m_rank.notes.push_back(fmt::format("damaged in {} places: not read further than byte {}", events.damaged(), events.bytes()));
        else if (events.cutOff()) m_rank.notes.push_back(fmt::format("the file ends within its events, after {} of them", m_rank.events));
        return finish();
    }

private:
    void readMember(std::string_view key, std::string_view text)
    {
        const auto number = [&](std::int64_t& to) {
            if (const auto value = wholeNumberOf(text)) to = *value;
        };
        if (key == "baseTimeNanoseconds") {
            m_kineto = true;
            number(m_rank.epoch);
            if (m_rank.epoch < 0 || m_rank.epoch > std::numeric_limits<Nanos>::max() / 4) m_rank.epoch = 0;
        } else if (key == "schemaVersion") {
            m_kineto = true;
        } else if (key == "distributedInfo") {
            m_kineto = true;
            const json info = json::parse(text, nullptr, false);
            if (info.is_object()) readJob(info);
        } else if (key == "deviceProperties") {
            m_kineto = true;
            const json devices = json::parse(text, nullptr, false);
            if (devices.is_array() && !devices.empty() && devices[0].is_object() && devices[0].contains("name") && devices[0]["name"].is_string())
                m_rank.environment.emplace_back("device", fmt::format("{} × {}", devices.size(), devices[0]["name"].get<std::string>()));
        }
    }

    static int smallNumber(const json& object, const char* key, int otherwise)
    {
        const auto found = object.find(key);
        if (found == object.end() || !found->is_number_integer()) return otherwise;
        const auto value = found->get<std::int64_t>();
        return value >= 0 && value < 1'000'000 ? static_cast<int>(value) : otherwise;
    }

    void readJob(const json& info)
    {
        m_rank.rank = smallNumber(info, "rank", -1);
        m_rank.worldSize = smallNumber(info, "world_size", 0);
        for (const char* key : {"backend", "nccl_version"})
            if (const auto found = info.find(key); found != info.end() && found->is_string() && !found->get<std::string>().empty()) m_rank.environment.emplace_back(key, found->get<std::string>());
        const auto groups = info.find("pg_config");
        if (groups == info.end() || !groups->is_array()) return;
        for (const json& group : *groups) {
            if (!group.is_object() || !group.contains("pg_name") || !group["pg_name"].is_string()) continue;
            const std::string name = group["pg_name"];
            std::vector<int> ranks;
            if (const auto list = group.find("ranks"); list != group.end()) {
                ranks = ranksOf(list->is_string() ? list->get<std::string>() : list->dump());
            }
            if (!ranks.empty()) m_rank.groups[name] = std::move(ranks);
            if (const auto what = group.find("pg_desc"); what != group.end() && what->is_string()) m_rank.groupPurpose[name] = what->get<std::string>();
        }
    }

    bool readEvent(std::string_view text)
    {
        if (m_parser.parse(text, m_event, wantsArgs)) return take();
        // Control characters and bytes that are no UTF-8 stand unescaped in names that some versions wrote.
        m_repair.assign(text);
        for (char& c : m_repair)
            if (static_cast<unsigned char>(c) < 0x20) c = ' ';
            else if (static_cast<unsigned char>(c) >= 0x80) c = '?';
        if (m_repair == text) return false;
        const std::size_t size = m_repair.size();
        m_repair.append(JsonEvents::padding, '\0');
        if (!m_parser.parse(std::string_view(m_repair).substr(0, size), m_event, wantsArgs)) return false;
        ++m_rank.repaired;
        return take();
    }

    std::uint32_t threadOf(bool device)
    {
        if (!m_threads.empty() && m_event.pid == m_lastPid && m_event.tid == m_lastTid && device == m_lastDevice) return m_lastThread;
        m_lastPid = m_event.pid;
        m_lastTid = m_event.tid;
        m_lastDevice = device;
        std::string key = fmt::format("{}\x1f{}\x1f{}", m_event.pid, m_event.tid, device);
        const auto [entry, added] = m_threads.try_emplace(std::move(key), static_cast<std::uint32_t>(m_rank.threads.size()));
        if (added) {
            m_rank.threads.push_back({fmt::format("{} {}", device ? "stream" : "thread", m_event.tid), device});
            m_pids.push_back(m_lastPid);
        }
        m_lastThread = entry->second;
        return m_lastThread;
    }

    bool take()
    {
        switch (m_event.phase) {
        case 'X': return m_event.time ? takeSpan(*m_event.time, m_event.duration.value_or(0)) : false;
        case 'B':
            if (!m_event.time) return false;
            m_open[threadOf(false)].push_back({*m_event.time, 0, m_rank.names.idOf(m_event.name), 0});
            return true;
        case 'E': {
            if (!m_event.time) return false;
            auto& open = m_open[threadOf(false)];
            if (open.empty()) {
                ++m_rank.leftOut["ends without a begin"];
                return true;
            }
            ForeignSpan span = open.back();
            open.pop_back();
            span.end = std::max(span.start, *m_event.time);
            span.thread = threadOf(false);
            m_rank.annotations.push_back(span);
            return true;
        }
        case 'b':
        case 'e': return takeAsync();
        case 'C': return takeCounter();
        case 'i':
        case 'I': return takeInstant();
        case 'M': return takeName();
        case 's':
        case 't':
        case 'f': ++m_rank.leftOut["flows"]; return true;
        case 0: ++m_rank.leftOut["events without a phase"]; return true;
        default: ++m_rank.leftOut["events of other phases"]; return true;
        }
    }

    bool takeSpan(Nanos start, Nanos duration)
    {
        if (duration < 0) return false;
        if (m_event.category != m_lastCategory) {
            m_lastCategory = m_event.category;
            m_category = categoryOf(m_event.category);
        }
        m_kineto = m_kineto || m_category == Category::HostOp || m_category == Category::Kernel || m_category == Category::Launch;
        ForeignSpan span{start, start + duration, 0, 0};
        const KinetoArgs& args = m_event.args;
        switch (m_category) {
        case Category::Kernel:
        case Category::Copy: {
            span.name = m_rank.names.idOf(m_event.name);
            span.thread = threadOf(true);
            DeviceSpan work{span, args.correlation, m_category == Category::Copy, false};
            if (m_category == Category::Kernel) takeCollective(work);
            m_rank.device.push_back(work);
            break;
        }
        case Category::Launch:
            if (args.correlation >= 0) m_rank.launches.push_back({args.correlation, start, threadOf(false)});
            else ++m_rank.leftOut["runtime calls"];
            break;
        case Category::HostOp:
            if (isHostMessage(m_event.name)) takeHostMessage(span);
            if (const std::uint32_t name = m_rank.names.idOf(m_event.name); isLabel(name)) {
                // In 2021 ranges of the user were operators like any other.
                m_rank.annotations.push_back({span.start, span.end, name, threadOf(false)});
            } else if (m_options.hostOps) {
                m_rank.hostOps.push_back({span.start, span.end, name, threadOf(false)});
            } else {
                ++m_rank.leftOut["operators of the host"];
            }
            break;
        case Category::DeviceAnnotation:
            span.name = m_rank.names.idOf(m_event.name);
            span.thread = threadOf(true);
            m_rank.deviceAnnotations.push_back(span);
            break;
        case Category::LeftOut: ++m_rank.leftOut[m_event.category == "python_function" ? "Python functions" : "spans of the profiler"]; break;
        case Category::Annotation:
        case Category::Unknown:
            span.name = m_rank.names.idOf(m_event.name);
            span.thread = threadOf(false);
            m_rank.annotations.push_back(span);
            break;
        }
        return true;
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
        ForeignMessage message;
        message.start = work.start;
        message.end = work.end;
        message.device = true;
        message.correlation = work.correlation;
        message.work = static_cast<std::int64_t>(m_rank.device.size());
        const std::string name = args.collective.empty() ? kernel : lowered(args.collective);
        if (name == "send" || name == "isend") message.kind = MessageKind::Send;
        if (name == "recv" || name == "irecv" || name == "recv_") message.kind = MessageKind::Receive;
        message.name = m_rank.names.idOf(name);
        message.group = m_rank.names.idOf(args.group);
        message.from = static_cast<int>(std::clamp<std::int64_t>(args.sourceRank, -1, 1'000'000));
        message.to = static_cast<int>(std::clamp<std::int64_t>(args.targetRank, -1, 1'000'000));
        message.sequence = args.sequence;
        m_rank.messages.push_back(message);
        if (args.group.empty()) return;
        if (!m_rank.groups.contains(args.group))
            if (auto ranks = ranksOf(args.groupRanks); !ranks.empty()) m_rank.groups.emplace(args.group, std::move(ranks));
        if (!args.groupPurpose.empty() && !m_rank.groupPurpose.contains(args.group)) m_rank.groupPurpose.emplace(args.group, args.groupPurpose);
    }

    // An operator that posts a message on the host; the range of the library that follows it tells when it was through.
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
        m_hostMessages.emplace_back(threadOf(false), message);
    }

    bool takeAsync()
    {
        if (!m_event.time) return false;
        std::string key = fmt::format("{}\x1f{}\x1f{}", m_event.category, m_event.id, m_event.name);
        if (m_event.phase == 'b') {
            m_async[std::move(key)].push_back({*m_event.time, 0, m_rank.names.idOf(m_event.name), threadOf(false)});
            return true;
        }
        const auto open = m_async.find(key);
        if (open == m_async.end() || open->second.empty()) {
            ++m_rank.leftOut["ends without a begin"];
            return true;
        }
        ForeignSpan span = open->second.back();
        open->second.pop_back();
        span.end = std::max(span.start, *m_event.time);
        m_rank.annotations.push_back(span);
        return true;
    }

    bool takeCounter()
    {
        if (!m_event.time) return false;
        const json values = json::parse(m_event.args.object, nullptr, false);
        if (!values.is_object()) return false;
        for (const auto& [series, value] : values.items()) {
            if (!value.is_number()) continue;
            std::string name = fmt::format("{} {}", m_event.name, series);
            const auto [entry, added] = m_counters.try_emplace(name, m_rank.counters.size());
            if (added) m_rank.counters.push_back({std::move(name), {}});
            m_rank.counters[entry->second].samples.push_back({*m_event.time, value.get<double>()});
        }
        return true;
    }

    bool takeInstant()
    {
        if (m_event.name != "[memory]" || !m_event.time) {
            ++m_rank.leftOut["instants"];
            return true;
        }
        const KinetoArgs& args = m_event.args;
        m_rank.memory.push_back({*m_event.time, args.bytes, args.address, args.total, threadOf(false), args.deviceType > 0});
        return true;
    }

    bool takeName()
    {
        if (m_event.name == "process_name") m_processNames[std::string(m_event.pid)] = m_event.args.name;
        else if (m_event.name == "thread_name" && !m_event.args.name.empty()) m_threadNames[fmt::format("{}\x1f{}", m_event.pid, m_event.tid)] = m_event.args.name;
        return true;
    }

    void joinHostMessages()
    {
        if (m_hostMessages.empty()) return;
        std::vector<ForeignSpan> library;
        for (const ForeignSpan& span : m_rank.annotations)
            if (const std::string& name = m_rank.names[span.name]; name == "gloo:send" || name == "gloo:recv" || name == "gloo:recvAnySource" || name.starts_with("mpi:send") || name.starts_with("mpi:recv"))
                library.push_back(span);
        std::sort(library.begin(), library.end(), [](const ForeignSpan& a, const ForeignSpan& b) { return std::pair(a.thread, a.start) < std::pair(b.thread, b.start); });
        for (auto& [thread, message] : m_hostMessages) {
            const auto first = std::lower_bound(library.begin(), library.end(), std::pair(thread, message.start),
                                                [](const ForeignSpan& span, const auto& at) { return std::pair(span.thread, span.start) < at; });
            if (first != library.end() && first->thread == thread && first->start <= message.end) message.end = std::max(message.end, first->end);
            m_rank.messages.push_back(message);
        }
    }

    Result<ForeignFile> finish()
    {
        for (const auto& [thread, open] : m_open)
            if (!open.empty()) m_rank.leftOut["begins without an end"] += static_cast<std::int64_t>(open.size());
        for (const auto& [key, open] : m_async)
            if (!open.empty()) m_rank.leftOut["begins without an end"] += static_cast<std::int64_t>(open.size());
        joinHostMessages();
        for (const auto& [key, number] : m_threads) {
            const std::string thread = key.substr(0, key.rfind('\x1f'));
            if (const auto name = m_threadNames.find(thread); name != m_threadNames.end() && !m_rank.threads[number].device) m_rank.threads[number].name = name->second;
        }
        m_rank.format = m_kineto ? "kineto" : "chrome";
        ForeignFile file;
        if (m_kineto || m_pids.empty() || std::all_of(m_pids.begin(), m_pids.end(), [&](const std::string& pid) { return pid == m_pids.front(); })) {
            file.ranks.push_back(std::move(m_rank));
            return file;
        }
        splitByProcess(file);
        return file;
    }

    // Every process is a rank: by the number in its name where all have one, else in order of their numbers.
    void splitByProcess(ForeignFile& file)
    {
        std::map<std::pair<std::int64_t, std::string>, std::size_t> processes;
        for (const std::string& pid : m_pids) processes.try_emplace({wholeNumberOf(pid).value_or(std::numeric_limits<std::int64_t>::max()), pid}, 0);
        std::size_t next = 0;
        for (auto& [key, number] : processes) {
            number = next++;
            ForeignRank rank;
            rank.source = m_path;
            rank.format = m_rank.format;
            rank.epoch = m_rank.epoch;
            rank.rank = rankInName(m_processNames[key.second]).rank;
            file.ranks.push_back(std::move(rank));
        }
        std::vector<std::pair<std::size_t, std::uint32_t>> places;
        for (std::size_t thread = 0; thread < m_pids.size(); ++thread) {
            const std::size_t number = processes.at({wholeNumberOf(m_pids[thread]).value_or(std::numeric_limits<std::int64_t>::max()), m_pids[thread]});
            places.emplace_back(number, static_cast<std::uint32_t>(file.ranks[number].threads.size()));
            file.ranks[number].threads.push_back(m_rank.threads[thread]);
        }
        for (const ForeignSpan& span : m_rank.annotations) {
            const auto& [number, thread] = places[span.thread];
            ForeignRank& rank = file.ranks[number];
            rank.annotations.push_back({span.start, span.end, rank.names.idOf(m_rank.names[span.name]), thread});
            ++rank.events;
        }
        ForeignRank& first = file.ranks.front();
        first.counters = std::move(m_rank.counters);
        first.leftOut = std::move(m_rank.leftOut);
        first.damaged = m_rank.damaged;
        first.repaired = m_rank.repaired;
        first.notes = std::move(m_rank.notes);
        if (std::any_of(file.ranks.begin(), file.ranks.end(), [](const ForeignRank& rank) { return rank.rank < 0; }))
            for (std::size_t i = 0; i < file.ranks.size(); ++i) file.ranks[i].rank = static_cast<int>(i);
    }

    std::string m_path;
    const ImportOptions& m_options;
    const Progress& m_progress;
    ForeignRank m_rank;
    KinetoEventParser m_parser;
    KinetoEvent m_event;
    std::string m_repair;
    bool m_kineto = false;
    std::string m_lastCategory;
    Category m_category = Category::Unknown;
    std::string m_lastPid, m_lastTid;
    bool m_lastDevice = false;
    std::uint32_t m_lastThread = 0;
    std::unordered_map<std::string, std::uint32_t> m_threads; // by pid, tid and whether it is a stream
    std::vector<std::string> m_pids;                          // by thread
    std::vector<std::int8_t> m_labels;                        // by name: −1 not looked at
    std::unordered_map<std::uint32_t, std::vector<ForeignSpan>> m_open;
    std::unordered_map<std::string, std::vector<ForeignSpan>> m_async;
    std::unordered_map<std::string, std::size_t> m_counters;
    std::map<std::string, std::string> m_processNames;
    std::map<std::string, std::string> m_threadNames;
    std::vector<std::pair<std::uint32_t, ForeignMessage>> m_hostMessages; // with their thread
};

Result<ForeignFile> readFile(const std::string& path, const ImportOptions& options, const Progress& progress)
{
    auto source = ByteSource::open(path);
    if (!source) return tl::unexpected(std::move(source.error()));
    return readJsonTrace(**source, path, options, progress);
}

bool looksLikeJson(std::string_view head)
{
    const std::size_t first = head.find_first_not_of("\xef\xbb\xbf \t\r\n");
    return first != std::string_view::npos && (head[first] == '{' || head[first] == '[');
}

} // namespace

Result<ForeignFile> readJsonTrace(ByteSource& source, const std::string& name, const ImportOptions& options, const Progress& progress)
{
    return JsonTraceReader(name, options, progress).read(source);
}

namespace formats {

extern const FormatInfo kineto_json;
const FormatInfo kineto_json{
    .name = "kineto",
    .title = "PyTorch profiler (Kineto) or Chrome JSON trace",
    .suffix = ".json",
    .write = nullptr,
    .sniff = looksLikeJson,
    .read = readFile,
};

} // namespace formats

} // namespace stagewright
