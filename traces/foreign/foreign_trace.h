// ForeignTrace: what a reader of another tool's trace found, before interpretation: host ranges, launches, device work,
// messages, memory, one ForeignRank for each process of the job. Times are nanoseconds of the rank's own clock.
// Readers fill it (traces/import/kineto/kineto_json.cpp, nsys_sqlite.cpp); assemble() builds runs from it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedules/base/text_map.h"
#include "schedules/base/units.h"
#include "schedules/timeline/timeline.h"

namespace stagewright {

// Names are stored once each, with each shape of their launches (Timeline::shapeOf); ids are stable. Not thread safe.
class NameTable {
public:
    NameTable() = default;
    NameTable(NameTable&&) = default;
    NameTable& operator=(NameTable&&) = default;
    NameTable(const NameTable&) = delete; // names are referenced by pointer
    NameTable& operator=(const NameTable&) = delete;

    std::uint32_t idOf(std::string_view name);
    std::uint32_t idOf(std::string_view name, std::string_view shape); // "": as without one
    std::uint32_t shaped(std::uint32_t name, std::string_view shape);  // the same name with this shape
    const std::string& operator[](std::uint32_t id) const { return *m_names[id]; }
    std::string_view shapeOf(std::uint32_t id) const
    {
        return id < m_shapes.size() && m_shapes[id] != nullptr ? std::string_view(*m_shapes[id]) : std::string_view();
    }
    std::size_t size() const { return m_names.size(); }

private:
    TextMap<std::uint32_t> m_ids;
    std::vector<const std::string*> m_names;
    TextMap<std::unordered_map<std::uint32_t, std::uint32_t>> m_byShape; // shape → name without one → with it
    // by id, up to the last that has one; null: none
    std::vector<const std::string*> m_shapes;
    std::unordered_map<std::uint32_t, std::uint32_t> m_plain; // name with a shape → without one
};

struct ForeignSpan {
    Nanos start = 0;
    Nanos end = 0;
    std::uint32_t name = 0;   // of ForeignRank::names
    std::uint32_t thread = 0; // of ForeignRank::threads: a host thread or a device's stream
};

inline constexpr std::uint32_t noThread = 0xffffffffu;

struct DeviceSpan : ForeignSpan {
    std::int64_t correlation = -1;         // of its launch; −1: none
    bool copy = false;                     // copies and fills of memory; else a kernel
    bool collective = false;               // a kernel of a communication library
    std::uint32_t launchedFrom = noThread; // the host's thread, once its launch is known (tieLaunches())
    Nanos launched = 0;                    // when; unless launchedFrom is noThread
};

struct Launch { // a call of the runtime or driver, on the host
    std::int64_t correlation = -1;
    Nanos time = 0;
    std::uint32_t thread = 0;
};

enum class MessageKind : std::uint8_t {
    Send,
    Receive,
    Collective,
};
struct ForeignMessage {
    Nanos start = 0;
    Nanos end = 0;
    MessageKind kind = MessageKind::Collective;
    std::uint32_t name = 0;  // "send", "all_reduce", "SendRecv"
    std::uint32_t group = 0; // name of the process group; "" if unknown
    int from = -1;           // ranks as recorded: of the job or of the group (see groups); −1: unknown
    int to = -1;
    std::int64_t sequence = -1; // −1: by order
    std::int64_t tag = 0;
    std::int64_t correlation = -1;
    // its span: in ForeignRank::device or, for the host's messages, in annotations; −1: none
    std::int64_t work = -1;
    std::int64_t bytes = -1;         // −1: unknown
    std::uint32_t thread = noThread; // of the host's messages, where the reader knows it
    bool device = false;             // times are the device's
    bool inGroup = false;            // from and to are places in the group, known or not
};

struct MemoryChangeSeen { // of the allocator, on the host
    Nanos time = 0;
    Bytes delta = 0;
    std::uint64_t address = 0;
    std::int64_t total = -1; // allocated after it; −1: unknown
    std::uint32_t thread = 0;
    bool device = false;
    // Its owner, if the trace has it: traces exported here do.
    std::optional<MemoryCategory> category = {};
    std::uint16_t stage = 0;
    std::int32_t microbatch = -1;
    int gpu = -1; // of the device's memory; −1: unknown
};

struct CounterSeen {
    std::string name;
    std::vector<CounterSample> samples;
    std::string unit = {};    // "": unknown
    std::string process = {}; // in traces written here, where a process is a rank; "": of the file
};

struct ForeignThread {
    std::string name; // "thread 59811", "stream 7"
    bool device = false;
    int gpu = -1; // of a stream: the device's number; −1: unknown
};

struct ForeignRank {
    std::string source; // the file
    std::string format; // "kineto", "chrome", "nsight"
    std::string run;    // the run's name, in traces exported here; "": unknown
    int rank = -1;      // −1: unknown
    int worldSize = 0;  // 0: unknown
    std::string host;   // "": unknown
    Nanos epoch = 0;    // to be added to times to align ranks
    std::string clock;  // ranks with the same one share it: devices of one process; "": its own
    NameTable names;
    std::vector<ForeignThread> threads;
    std::vector<ForeignSpan> annotations;       // host ranges that a user or library named
    std::vector<ForeignSpan> deviceAnnotations; // the same, on a stream
    std::vector<ForeignSpan> hostOps;           // operators of the framework; kept on demand
    std::vector<DeviceSpan> device;
    // by index in device, ascending: of copies and fills whose size the trace has
    std::vector<std::pair<std::uint32_t, Bytes>> copyBytes;
    // likewise: of work whose call of the runtime came later than `launched`, on another thread, the call's time
    std::vector<std::pair<std::uint32_t, Nanos>> laterCalls;
    std::vector<Launch> launches;
    std::vector<ForeignMessage> messages;
    std::vector<MemoryChangeSeen> memory;
    std::vector<CounterSeen> counters;
    // process group → ranks of the job, in order of the group
    std::map<std::string, std::vector<int>, std::less<>> groups;
    // process group → own place; of groups whose ranks the trace does not list
    std::map<std::string, int, std::less<>> placeInGroup;
    std::map<std::string, std::string, std::less<>> groupPurpose; // process group → "mesh_pp", "default_pg"
    std::vector<std::pair<std::string, std::string>> environment; // "device", "backend" … as text
    bool ownEvents = false;                                       // Chrome JSON that this program wrote
    std::int64_t events = 0;
    std::map<std::string, std::int64_t, std::less<>> leftOut; // counts of data not imported, by kind
    std::int64_t damaged = 0;                                 // events or rows that could not be read
    std::int64_t repaired = 0;                                // read after bad characters in them were replaced
    // work at times far from all others, as text: on no lane (import/outliers.h)
    std::vector<std::string> outliers;
    std::vector<std::string> notes; // sentences about anomalies
};

// The shape of a launch as timelines keep it, "grid 12×1×1, block 128×1×1"; "": a number is not known (0 or less), so
// nothing is.
std::string launchShape(const std::array<std::int64_t, 3>& grid, const std::array<std::int64_t, 3>& block);
// The same with the sizes of the operator's inputs, "[[64,512],[512]]" as PyTorch writes them: without spaces, cut at
// 240 characters.
std::string withInputs(std::string_view shape, std::string_view inputs);

// "rank_3", "worker3", "r12.", "_3.json" in a file's name (without its folders): the number and its position; −1: none.
struct RankInName {
    int rank = -1;
    // "rank" or "worker" says so; else it may as well be a step, a window, a count of GPUs or a version
    bool said = false;
    std::size_t begin = 0;
    std::size_t end = 0;
};
// "gpu-07" of "gpu-07_4711.1694128201545.pt.trace.json", as PyTorch's tensorboard_trace_handler names a file; "" for
// other names.
std::string hostInName(std::string_view fileName);
RankInName rankInName(std::string_view fileName);
// "rank4711234567" of a name whose number behind "rank" or "worker" is not a rank: it has more than six digits; "" for
// other names.
std::string noRankInName(std::string_view fileName);

} // namespace stagewright
