// Memory snapshots of PyTorch (torch.cuda.memory._record_memory_history, _dump_snapshot), converted from pickle to
// JSON:
//
//     {"segments": [{"device": 0, "total_size": …, "blocks": [{"size": …, "state": "active_allocated"}, …]}, …],
//      "device_traces": [[{"action": "alloc", "addr": …, "size": …, "time_us": …}, …], …],
//      "external_annotations": [{"stage": "START", "name": …, "device": 0, "time_us": …}, …]}
//
// Every device with events is a rank. What was in use before the first event follows from the blocks in use at the end.
// Read as a stream of values: memory depends on the number of events, not on the stacks that come with them.
#include "traces/import/memory/memory_snapshot.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "schedules/base/time_limits.h"
#include "traces/foreign/byte_iterator.h"
#include "traces/format/format_registry.h"

namespace stagewright {

namespace {

using nlohmann::json;

constexpr int mostDevices = 1024;
constexpr std::int64_t mostMicroseconds = farthestReading / 1000;

enum class Action : std::uint8_t {
    None,
    Alloc,
    FreeRequested,
    FreeCompleted,
    SegmentAlloc,
    SegmentFree,
    OutOfMemory,
    Other,
};

Action actionOf(std::string_view text)
{
    if (text == "alloc") return Action::Alloc;
    if (text == "free_requested") return Action::FreeRequested;
    if (text == "free_completed" || text == "free") return Action::FreeCompleted;
    if (text == "segment_alloc" || text == "segment_map") return Action::SegmentAlloc;
    if (text == "segment_free" || text == "segment_unmap") return Action::SegmentFree;
    if (text == "oom") return Action::OutOfMemory;
    return Action::Other;
}

struct Event {
    Action action = Action::None;
    std::int64_t address = 0;
    std::int64_t size = -1;
    std::int64_t time = -1; // µs
};

struct Mark {
    std::string name;
    bool start = false;
    int device = 0;
    std::int64_t time = -1;
};

struct Snapshot {
    std::map<int, std::vector<Event>> traces; // by device
    std::map<int, std::int64_t> inUse;        // at the end: of blocks
    std::map<int, std::int64_t> reserved;     // at the end: of segments
    std::vector<Mark> marks;
    std::int64_t damaged = 0;
    bool sawTraces = false;
};

// Values as they come; the number of containers around one says what it is. Stacks ("frames") are passed over.
class SnapshotSax {
public:
    SnapshotSax(Snapshot& out, const Progress& progress, const ByteSource& source)
        : m_out(out), m_progress(progress), m_source(source)
    {
    }

    bool null() { return true; }
    bool boolean(bool) { return true; }
    bool number_integer(std::int64_t number) { return take(number); }
    bool number_unsigned(std::uint64_t number)
    {
        return take(static_cast<std::int64_t>(std::min<std::uint64_t>(number, INT64_MAX)));
    }
    bool number_float(double number, const std::string&)
    {
        return take(number > -9e18 && number < 9e18 ? static_cast<std::int64_t>(number) : -1);
    }
    bool string(std::string& text)
    {
        if (m_root == Root::Traces && m_depth == inEvent && m_key == "action") m_event.action = actionOf(text);
        if (m_root == Root::Segments && m_depth == inBlock && m_inBlocks && m_key == "state")
            m_active = text.starts_with("active");
        if (m_root == Root::Marks && m_depth == inEntry && m_key == "name") m_mark.name = text;
        if (m_root == Root::Marks && m_depth == inEntry && m_key == "stage") m_mark.start = text == "START";
        return true;
    }
    bool binary(json::binary_t&) { return false; }
    bool key(std::string& name)
    {
        m_key = name;
        if (m_depth != 1) return true;
        m_root = name == "device_traces"          ? Root::Traces
                 : name == "segments"             ? Root::Segments
                 : name == "external_annotations" ? Root::Marks
                                                  : Root::Other;
        m_out.sawTraces = m_out.sawTraces || m_root == Root::Traces;
        return true;
    }
    bool start_object(std::size_t)
    {
        ++m_depth;
        if (m_root == Root::Traces && m_depth == inEvent) m_event = {};
        if (m_root == Root::Segments && m_depth == inEntry) m_segment = {};
        if (m_root == Root::Segments && m_depth == inBlock) m_active = false, m_blockSize = 0;
        if (m_root == Root::Marks && m_depth == inEntry) m_mark = {};
        return true;
    }
    bool end_object()
    {
        if (m_root == Root::Traces && m_depth == inEvent) endEvent();
        if (m_root == Root::Segments && m_depth == inBlock && m_inBlocks && m_active)
            m_segment.active += std::max<std::int64_t>(0, m_blockSize);
        if (m_root == Root::Segments && m_depth == inEntry) {
            m_out.inUse[m_segment.device] += m_segment.active;
            m_out.reserved[m_segment.device] += m_segment.size;
        }
        if (m_root == Root::Marks && m_depth == inEntry && m_mark.time >= 0 && !m_mark.name.empty())
            m_out.marks.push_back(m_mark);
        --m_depth;
        return true;
    }
    bool start_array(std::size_t)
    {
        ++m_depth;
        if (m_root == Root::Traces && m_depth == inTrace) m_device = m_nextDevice++;
        if (m_root == Root::Segments && m_depth == inBlock - 1) m_inBlocks = m_key == "blocks";
        return true;
    }
    bool end_array()
    {
        --m_depth;
        return !m_progress.cancelled();
    }
    bool parse_error(std::size_t position, const std::string&, const json::exception&)
    {
        m_errorAt = static_cast<std::int64_t>(position);
        return false;
    }
    std::int64_t errorAt() const { return m_errorAt; } // byte; −1: none

private:
    enum class Root {
        None,
        Traces,
        Segments,
        Marks,
        Other,
    };
    // Containers open where the values are: root, list, then …
    static constexpr int inEntry = 3; // a segment or an annotation
    static constexpr int inTrace = 3; // the list of a device
    static constexpr int inEvent = 4;
    static constexpr int inBlock = 5; // within the list of a segment

    bool take(std::int64_t number)
    {
        if (m_root == Root::Traces && m_depth == inEvent) {
            if (m_key == "addr") m_event.address = number;
            if (m_key == "size") m_event.size = number;
            if (m_key == "time_us") m_event.time = number;
        } else if (m_root == Root::Segments && m_depth == inEntry) {
            if (m_key == "device") m_segment.device = deviceOf(number);
            if (m_key == "total_size") m_segment.size = std::clamp<std::int64_t>(number, 0, mostMemoryBytes);
        } else if (m_root == Root::Segments && m_depth == inBlock && m_inBlocks) {
            if (m_key == "size") m_blockSize = std::clamp<std::int64_t>(number, 0, mostMemoryBytes);
        } else if (m_root == Root::Marks && m_depth == inEntry) {
            if (m_key == "device") m_mark.device = deviceOf(number);
            if (m_key == "time_us") m_mark.time = number;
        }
        return true;
    }
    static int deviceOf(std::int64_t number)
    {
        return static_cast<int>(std::clamp<std::int64_t>(number, 0, mostDevices - 1));
    }
    void endEvent()
    {
        if (m_event.action == Action::None || m_event.size < 0 || m_event.size > mostMemoryBytes ||
            m_event.time > mostMicroseconds || m_device >= mostDevices) {
            ++m_out.damaged;
            return;
        }
        auto& events = m_out.traces[m_device];
        events.push_back(m_event);
        if ((events.size() & 0xffff) == 0) m_progress.tell("reading", m_source.consumed(), m_source.size());
    }

    struct Segment {
        int device = 0;
        std::int64_t size = 0;
        std::int64_t active = 0;
    };
    Snapshot& m_out;
    const Progress& m_progress;
    const ByteSource& m_source;
    int m_depth = 0;
    Root m_root = Root::None;
    std::string m_key; // the last one, of whatever depth
    int m_device = 0, m_nextDevice = 0;
    Event m_event;
    Mark m_mark;
    Segment m_segment;
    bool m_inBlocks = false, m_active = false;
    std::int64_t m_blockSize = 0;
    std::int64_t m_errorAt = -1;
};

// Ranges that a START and an END of one name make; what is open at the end ends there.
void addMarks(const Snapshot& snapshot, int device, Nanos last, ForeignRank& rank)
{
    std::vector<std::pair<std::string, Nanos>> open;
    const auto close = [&](std::size_t at, Nanos end) {
        rank.annotations.push_back(
            {open[at].second, std::max(open[at].second, end), rank.names.idOf(open[at].first), 0});
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
    };
    for (const Mark& mark : snapshot.marks) {
        if (mark.device != device) continue;
        const Nanos time = mark.time * 1000;
        if (mark.start) {
            if (open.size() < 1024) open.emplace_back(mark.name, time);
            continue;
        }
        bool found = false;
        for (std::size_t at = open.size(); at-- > 0 && !found;)
            if (open[at].first == mark.name) close(at, time), found = true;
        if (!found) ++rank.leftOut["end events without a start event"];
    }
    while (!open.empty()) close(open.size() - 1, last);
}

ForeignRank rankOf(const Snapshot& snapshot, int device, const std::vector<Event>& events)
{
    ForeignRank rank;
    rank.format = "snapshot";
    rank.events = static_cast<std::int64_t>(events.size());
    rank.threads.push_back({"host", false});
    // A block is free when the allocator has completed it; older versions record only that.
    const bool completed = std::any_of(events.begin(), events.end(),
                                       [](const Event& event) { return event.action == Action::FreeCompleted; });
    std::int64_t change = 0, reservedChange = 0;
    std::int64_t outOfMemory = 0;
    for (const Event& event : events) {
        if (event.action == Action::Alloc) change += event.size;
        if (event.action == (completed ? Action::FreeCompleted : Action::FreeRequested)) change -= event.size;
        if (event.action == Action::SegmentAlloc) reservedChange += event.size;
        if (event.action == Action::SegmentFree) reservedChange -= event.size;
    }
    const auto sizeOf = [device](const std::map<int, std::int64_t>& sizes) {
        const auto found = sizes.find(device);
        return found == sizes.end() ? std::int64_t{0} : found->second;
    };
    std::int64_t total = std::max<std::int64_t>(0, sizeOf(snapshot.inUse) - change);
    std::int64_t reserved = std::max<std::int64_t>(0, sizeOf(snapshot.reserved) - reservedChange);
    CounterSeen reservedCounter{"reserved by the allocator (bytes)", {}};
    Nanos first = 0, last = 0;
    bool any = false;
    for (const Event& event : events) {
        if (event.time < 0) {
            ++rank.damaged;
            continue;
        }
        const Nanos time = event.time * 1000;
        first = any ? std::min(first, time) : time;
        last = any ? std::max(last, time) : time;
        any = true;
        switch (event.action) {
        case Action::Alloc:
            total += event.size;
            rank.memory.push_back(
                {time, event.size, static_cast<std::uint64_t>(event.address), total, 0, true, std::nullopt, 0, -1, -1});
            break;
        case Action::FreeRequested:
        case Action::FreeCompleted:
            if ((event.action == Action::FreeCompleted) != completed) break;
            total -= event.size;
            rank.memory.push_back({time, -event.size, static_cast<std::uint64_t>(event.address),
                                   std::max<std::int64_t>(0, total), 0, true, std::nullopt, 0, -1, -1});
            break;
        case Action::SegmentAlloc:
        case Action::SegmentFree:
            reserved += event.action == Action::SegmentAlloc ? event.size : -event.size;
            reservedCounter.samples.push_back({time, static_cast<double>(reserved)});
            break;
        case Action::OutOfMemory: ++outOfMemory; break;
        case Action::None:
        case Action::Other: ++rank.leftOut["other events of the allocator"]; break;
        }
    }
    if (!reservedCounter.samples.empty()) rank.counters.push_back(std::move(reservedCounter));
    if (outOfMemory > 0)
        rank.notes.push_back(
            fmt::format("the allocator ran out of memory {} time{}", outOfMemory, outOfMemory == 1 ? "" : "s"));
    addMarks(snapshot, device, last, rank);
    if (rank.annotations.empty()) rank.annotations.push_back({first, last, rank.names.idOf("memory history"), 0});
    return rank;
}

Result<ForeignFile> readSnapshot(const std::string& path, const ImportOptions& options, const Progress& progress)
{
    (void)options;
    STAGEWRIGHT_TRY(auto source, ByteSource::open(path));
    return readMemorySnapshot(*source, path, progress);
}

bool looksLikeSnapshot(std::string_view head)
{
    const std::size_t open = head.find_first_not_of("\xef\xbb\xbf \t\r\n");
    if (open == std::string_view::npos || head[open] != '{') return false;
    const std::size_t key = head.find_first_not_of(" \t\r\n", open + 1);
    if (key == std::string_view::npos) return false;
    const std::string_view rest = head.substr(key);
    return rest.starts_with("\"segments\"") || rest.starts_with("\"device_traces\"") ||
           rest.starts_with("\"allocator_settings\"") || rest.starts_with("\"external_annotations\"");
}

} // namespace

Result<ForeignFile> readMemorySnapshot(ByteSource& source, const std::string& name, const Progress& progress)
{
    Snapshot snapshot;
    SnapshotSax sax(snapshot, progress, source);
    const bool whole = json::sax_parse(ByteIterator(source), ByteIterator(), &sax);
    if (progress.cancelled()) return fail(ErrorCode::Cancelled, "reading was cancelled");
    if (!snapshot.sawTraces)
        return fail(ErrorCode::Unreadable,
                    whole ? "not a memory snapshot: device_traces is missing"
                          : fmt::format("damaged at byte {}", sax.errorAt()),
                    "record the history of allocations: torch.cuda.memory._record_memory_history()");
    ForeignFile out;
    bool timed = false;
    for (const auto& [device, events] : snapshot.traces) {
        if (events.empty()) continue;
        timed = timed || std::any_of(events.begin(), events.end(), [](const Event& event) { return event.time >= 0; });
        ForeignRank rank = rankOf(snapshot, device, events);
        rank.source = name;
        rank.environment.emplace_back("device", fmt::format("cuda:{}", device));
        if (!whole)
            rank.notes.push_back(
                source.damage().empty()
                    ? fmt::format("the file is damaged at byte {}: what comes after it is missing", sax.errorAt())
                    : source.damage());
        out.ranks.push_back(std::move(rank));
    }
    if (out.ranks.empty())
        return fail(ErrorCode::Unreadable, "the snapshot has no events",
                    "record the history of allocations: torch.cuda.memory._record_memory_history()");
    if (!timed)
        return fail(ErrorCode::Unreadable, "the snapshot's events have no times",
                    "record it with PyTorch 2.1 or newer");
    out.ranks.front().damaged += snapshot.damaged;
    if (out.ranks.size() > 1)
        for (std::size_t i = 0; i < out.ranks.size(); ++i) out.ranks[i].rank = static_cast<int>(i);
    return out;
}

namespace formats {

extern const FormatInfo memory_snapshot;
const FormatInfo memory_snapshot{
    .name = "snapshot",
    .title = "Memory snapshot of PyTorch",
    .reads = "memory snapshots of PyTorch as JSON",
    .suffixes = {".json", ".json.gz"},
    .sniff = looksLikeSnapshot,
    .read = readSnapshot,
};

} // namespace formats

} // namespace stagewright
