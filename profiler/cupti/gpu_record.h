// GpuRecord: one activity of a GPU or of the CUDA runtime, as CUPTI reported it, in a form that needs no CUDA header.
// Decoding (CUPTI's structs → GpuRecord) happens in the CUPTI module; everything after it is built and tested
// everywhere. Plain data of a fixed layout: it crosses the module's C interface.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stagewright {

enum class GpuRecordKind : std::uint8_t {
    Kernel = 1,
    Copy,     // within a device, or between host and device
    PeerCopy, // between devices
    Memset,
    Synchronization,
    Overhead, // of the tracing itself, and of loading code
    Context,
    Stream,
    ExternalId, // value: the id that was on top of the stack when the API call of this correlation was made
    RuntimeApi,
    DriverApi,
    Event,
};

enum GpuRecordFlag : std::uint8_t {
    GpuLaunches = 1,     // API: the call launches one kernel or copy
    GpuGreenContext = 2, // Context: a partition of the multiprocessors
    GpuFailed = 4,       // API, synchronization: it returned an error
};

struct GpuRecord {
    std::int64_t start = 0; // ns on CLOCK_MONOTONIC (the timestamp callback); 0: not stamped
    std::int64_t end = 0;
    // bytes of a copy or memset; the external id; multiprocessors of a context; device time of an event
    std::uint64_t value = 0;
    std::uint64_t graphNode = 0;   // of the CUDA graph it was launched from; 0: none
    std::uint32_t correlation = 0; // joins an API call, its external ids and the work it launched; wraps at 2^32
    std::uint32_t device = 0;
    std::uint32_t context = 0;
    std::uint32_t stream = 0; // API calls and overhead: the thread
    std::uint32_t name = 0;   // kernels, overhead: index into GpuTrace::names
    // copy: CUPTI's direction; API: its callback id; external id: its stack (3 … 5); synchronization: type
    std::uint32_t detail = 0;
    std::uint32_t grid[3] = {0, 0, 0};
    std::uint32_t block[3] = {0, 0, 0};
    std::uint32_t sharedBytes = 0; // static and dynamic, per block
    std::uint16_t registers = 0;   // per thread
    GpuRecordKind kind = GpuRecordKind::Kernel;
    std::uint8_t flags = 0;

    bool isWork() const { return kind >= GpuRecordKind::Kernel && kind <= GpuRecordKind::Memset; } // runs on the device
    bool isApi() const { return kind == GpuRecordKind::RuntimeApi || kind == GpuRecordKind::DriverApi; }
    auto operator<=>(const GpuRecord&) const = default;
};
static_assert(sizeof(GpuRecord) == 88);

// What a recording delivered, in the order of delivery, which is not the order of time: buffers belong to threads.
struct GpuTrace {
    std::vector<GpuRecord> records;
    std::vector<std::string> names{std::string()}; // as the compiler made them; 0: none
    std::int64_t dropped = 0;                      // records CUPTI had no room for
    std::int64_t damagedBuffers = 0;               // buffers that could not be read to their end
    std::int64_t unknownRecords = 0;               // of kinds this program does not read
    bool truncated = false;                        // the cap on buffers was reached: nothing was recorded from then on
};

// Names in O(1), each once.
class GpuNames {
public:
    explicit GpuNames(std::vector<std::string>& names);
    std::uint32_t intern(std::string_view name); // "" is 0

private:
    std::vector<std::string>& m_names;
    std::vector<std::uint32_t> m_slots; // open addressing, 0: free
    void grow();
};

// Appends other to trace; names are interned again.
void append(GpuTrace& trace, const GpuTrace& other);

enum class Collective : std::uint8_t {
    None,
    SendRecv,
    AllReduce,
    ReduceScatter,
    AllGather,
    Broadcast,
    Reduce,
    Other,
};
// By the kernel's name, mangled or not: NCCL's device kernels are ncclDevKernel_SendRecv,
// ncclDevKernel_AllReduce_Sum_f32_RING_LL …
Collective collectiveOf(std::string_view kernelName);
std::string_view toText(Collective collective); // "send and receive", "all-reduce" …

// For people: demangled, without return type and parameters, template arguments kept, at most 120 characters.
std::string readableKernelName(std::string_view name);
// "copy host to device", "copy within the device", "peer copy", "memset" …; of a kernel its readable name.
std::string workName(const GpuTrace& trace, const GpuRecord& record);

} // namespace stagewright
