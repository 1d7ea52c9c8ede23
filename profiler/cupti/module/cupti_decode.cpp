#include "profiler/cupti/module/cupti_decode.h"

#include <cstring>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "profiler/cupti/module/recorded_calls.h"

namespace stagewright::cupti {

namespace {

static_assert(CUPTI_API_VERSION >= 130000, "records of CUPTI 13 are read");
static_assert(sizeof(CUpti_ActivityKernel10) == 216 && sizeof(CUpti_ActivityMemcpy6) == 96 &&
              sizeof(CUpti_ActivityMemcpyPtoP4) == 96 && sizeof(CUpti_ActivityMemset4) == 88 &&
              sizeof(CUpti_ActivityAPI) == 40 && sizeof(CUpti_ActivityOverhead3) == 56 &&
              sizeof(CUpti_ActivitySynchronization2) == 56 && sizeof(CUpti_ActivityExternalCorrelation) == 24 &&
              sizeof(CUpti_ActivityContext3) == 32 && sizeof(CUpti_ActivityStream) == 24 &&
              sizeof(CUpti_ActivityCudaEvent2) == 56);

template <typename T>
const T& as(const CUpti_Activity* record)
{
    return *reinterpret_cast<const T*>(record);
}

// Enumerators of damaged records may be none: they are read as numbers.
std::uint32_t number(const void* record, std::size_t offset)
{
    std::uint32_t out = 0;
    std::memcpy(&out, static_cast<const std::uint8_t*>(record) + offset, sizeof out);
    return out;
}

std::string_view overheadName(std::uint32_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER: return "driver compiles";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH: return "tracing: buffer flush";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION: return "tracing: instrumentation";
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE: return "tracing: resources";
    case CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING: return "module loading";
    case CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING: return "lazy function loading";
    case CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL: return "command buffer full";
    case CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST: return "tracing: buffer request";
    default: return "overhead";
    }
}

// Calls that surely put work on a device; their correlation is that of the work.
bool launches(GpuRecordKind kind, std::uint32_t callback)
{
    return kind == GpuRecordKind::RuntimeApi ? holds(runtimeCalls, callback) : holds(driverCalls, callback);
}

template <typename T>
void setWork(GpuRecord& out, const T& in)
{
    out.start = static_cast<std::int64_t>(in.start);
    out.end = static_cast<std::int64_t>(in.end);
    out.device = in.deviceId;
    out.context = in.contextId;
    out.stream = in.streamId;
    out.correlation = in.correlationId;
    out.graphNode = in.graphNodeId;
}

// name(pointer) gives the name at a record's pointer; in a dump pointers are offsets.
template <typename NameAt>
GpuRecord decode(const CUpti_Activity* record, GpuNames& names, NameAt&& nameAt)
{
    GpuRecord out;
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto& in = as<CUpti_ActivityKernel10>(record);
        out.kind = GpuRecordKind::Kernel;
        setWork(out, in);
        out.name = names.intern(nameAt(in.name));
        out.grid[0] = static_cast<std::uint32_t>(in.gridX);
        out.grid[1] = static_cast<std::uint32_t>(in.gridY);
        out.grid[2] = static_cast<std::uint32_t>(in.gridZ);
        out.block[0] = static_cast<std::uint32_t>(in.blockX);
        out.block[1] = static_cast<std::uint32_t>(in.blockY);
        out.block[2] = static_cast<std::uint32_t>(in.blockZ);
        out.registers = in.registersPerThread;
        out.sharedBytes =
            static_cast<std::uint32_t>(in.staticSharedMemory) + static_cast<std::uint32_t>(in.dynamicSharedMemory);
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& in = as<CUpti_ActivityMemcpy6>(record);
        out.kind = GpuRecordKind::Copy;
        setWork(out, in);
        out.value = in.bytes;
        out.detail = in.copyKind;
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto& in = as<CUpti_ActivityMemcpyPtoP4>(record);
        out.kind = GpuRecordKind::PeerCopy;
        setWork(out, in);
        out.value = in.bytes;
        out.detail = in.copyKind;
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& in = as<CUpti_ActivityMemset4>(record);
        out.kind = GpuRecordKind::Memset;
        setWork(out, in);
        out.value = in.bytes;
        break;
    }
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: {
        const auto& in = as<CUpti_ActivitySynchronization2>(record);
        out.kind = GpuRecordKind::Synchronization;
        out.start = static_cast<std::int64_t>(in.start);
        out.end = static_cast<std::int64_t>(in.end);
        out.correlation = in.correlationId;
        out.context = in.contextId;
        out.stream = in.streamId;
        out.detail = number(record, offsetof(CUpti_ActivitySynchronization2, type));
        if (in.returnValue != 0) out.flags |= GpuFailed;
        break;
    }
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
        const auto& in = as<CUpti_ActivityOverhead3>(record);
        out.kind = GpuRecordKind::Overhead;
        out.start = static_cast<std::int64_t>(in.start);
        out.end = static_cast<std::int64_t>(in.end);
        out.correlation = in.correlationId;
        out.detail = number(record, offsetof(CUpti_ActivityOverhead3, overheadKind));
        if (number(record, offsetof(CUpti_ActivityOverhead3, objectKind)) == CUPTI_ACTIVITY_OBJECT_THREAD)
            out.stream = in.objectId.pt.threadId;
        out.name = names.intern(overheadName(number(record, offsetof(CUpti_ActivityOverhead3, overheadKind))));
        break;
    }
    case CUPTI_ACTIVITY_KIND_CONTEXT: {
        const auto& in = as<CUpti_ActivityContext3>(record);
        out.kind = GpuRecordKind::Context;
        out.context = in.contextId;
        out.device = in.deviceId;
        out.value = in.numMultiprocessors;
        if (in.isGreenContext != 0) out.flags |= GpuGreenContext;
        break;
    }
    case CUPTI_ACTIVITY_KIND_STREAM: {
        const auto& in = as<CUpti_ActivityStream>(record);
        out.kind = GpuRecordKind::Stream;
        out.context = in.contextId;
        out.stream = in.streamId;
        out.correlation = in.correlationId;
        out.value = in.priority;
        break;
    }
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto& in = as<CUpti_ActivityExternalCorrelation>(record);
        out.kind = GpuRecordKind::ExternalId;
        out.correlation = in.correlationId;
        out.value = in.externalId;
        out.detail = number(record, offsetof(CUpti_ActivityExternalCorrelation, externalKind));
        break;
    }
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: {
        const auto& in = as<CUpti_ActivityCudaEvent2>(record);
        out.kind = GpuRecordKind::Event;
        out.correlation = in.correlationId;
        out.device = in.deviceId;
        out.context = in.contextId;
        out.stream = in.streamId;
        out.value = in.deviceTimestamp;
        break;
    }
    default: { // RUNTIME, DRIVER: recordBytes() lets no other through
        const auto& in = as<CUpti_ActivityAPI>(record);
        out.kind = in.kind == CUPTI_ACTIVITY_KIND_RUNTIME ? GpuRecordKind::RuntimeApi : GpuRecordKind::DriverApi;
        out.start = static_cast<std::int64_t>(in.start);
        out.end = static_cast<std::int64_t>(in.end);
        out.correlation = in.correlationId;
        out.stream = in.threadId;
        out.detail = in.cbid;
        if (in.returnValue != 0) out.flags |= GpuFailed;
        if (launches(out.kind, in.cbid)) out.flags |= GpuLaunches;
        break;
    }
    }
    return out;
}

// Pointers in a record that a dump must not hold.
template <typename Name>
void replacePointers(std::uint8_t* record, CUpti_ActivityKind kind, Name&& offsetOf)
{
    const auto zero = [record](std::size_t offset) { std::memset(record + offset, 0, sizeof(void*)); };
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const char* name = nullptr;
        std::memcpy(&name, record + offsetof(CUpti_ActivityKernel10, name), sizeof name);
        const std::uint64_t offset = offsetOf(name);
        std::memcpy(record + offsetof(CUpti_ActivityKernel10, name), &offset, sizeof offset);
        zero(offsetof(CUpti_ActivityKernel10, reserved0));
        zero(offsetof(CUpti_ActivityKernel10, pAccessPolicyWindow));
        break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: zero(offsetof(CUpti_ActivityMemcpy6, reserved0)); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2: zero(offsetof(CUpti_ActivityMemcpyPtoP4, reserved0)); break;
    case CUPTI_ACTIVITY_KIND_MEMSET: zero(offsetof(CUpti_ActivityMemset4, reserved0)); break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: zero(offsetof(CUpti_ActivityOverhead3, overheadData)); break;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: zero(offsetof(CUpti_ActivityCudaEvent2, reserved0)); break;
    default: break;
    }
}

CUpti_ActivityKind kindAt(const std::uint8_t* record)
{
    CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_INVALID;
    std::memcpy(&kind, record, sizeof kind);
    return kind;
}

} // namespace

std::size_t recordBytes(CUpti_ActivityKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_CONTEXT: return sizeof(CUpti_ActivityContext3);
    case CUPTI_ACTIVITY_KIND_STREAM: return sizeof(CUpti_ActivityStream);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: return sizeof(CUpti_ActivityCudaEvent2);
    default: return 0;
    }
}

void decodeBuffer(std::uint8_t* buffer, std::size_t validBytes, GpuTrace& trace)
{
    GpuNames names(trace.names);
    CUpti_Activity* record = nullptr;
    for (;;) {
        const CUptiResult result = cuptiActivityGetNextRecord(buffer, validBytes, &record);
        if (result == CUPTI_ERROR_MAX_LIMIT_REACHED || validBytes == 0) return;
        if (result != CUPTI_SUCCESS) {
            ++trace.damagedBuffers;
            return;
        }
        if (recordBytes(record->kind) == 0) {
            ++trace.unknownRecords;
            continue;
        }
        trace.records.push_back(
            decode(record, names, [](const char* name) { return std::string_view(name == nullptr ? "" : name); }));
    }
}

std::size_t dumpBuffer(const std::uint8_t* buffer, std::size_t validBytes, CuptiDump& dump)
{
    std::vector<std::uint8_t> copy;
    std::size_t at = 0;
    while (at + sizeof(CUpti_ActivityKind) <= validBytes) {
        const CUpti_ActivityKind kind = kindAt(buffer + at);
        const std::size_t size = recordBytes(kind);
        if (size == 0 || size > validBytes - at) break;
        copy.insert(copy.end(), buffer + at, buffer + at + size);
        replacePointers(copy.data() + at, kind, [&dump](const char* name) -> std::uint64_t {
            if (name == nullptr || *name == '\0') return 0;
            const std::string sought = std::string(1, '\0').append(name).append(1, '\0');
            std::size_t found = dump.strings.find(sought);
            if (found == std::string::npos) {
                found = dump.strings.size() - 1; // its leading zero byte is the table's last
                dump.strings.append(name).append(1, '\0');
            }
            return found + 2; // past the leading zero byte, plus 1
        });
        at += size;
    }
    dump.cuptiVersion = headerVersion;
    dump.buffers.push_back(std::move(copy));
    return at;
}

Result<GpuTrace> decodeDump(const CuptiDump& dump)
{
    if (dump.cuptiVersion != headerVersion)
        return fail(
            ErrorCode::Unreadable,
            fmt::format("this dump holds records of CUPTI {}, this build reads those of CUPTI {}: their layouts differ",
                        dump.cuptiVersion, headerVersion),
            "build with the CUDA toolkit that the dump was recorded with");
    GpuTrace trace;
    for (std::size_t i = 0; i < dump.buffers.size(); ++i) {
        std::vector<std::uint8_t> buffer = dump.buffers[i];
        for (std::size_t at = 0; at < buffer.size();) { // everything is checked before CUPTI sees it
            const std::size_t left = buffer.size() - at;
            const CUpti_ActivityKind kind =
                left >= sizeof(CUpti_ActivityKind) ? kindAt(buffer.data() + at) : CUPTI_ACTIVITY_KIND_INVALID;
            const std::size_t size = recordBytes(kind);
            if (size == 0 || size > left)
                return fail(ErrorCode::Unreadable,
                            fmt::format("CUPTI dump: buffer {}, byte {}: no record of kind {} fits in {} bytes", i, at,
                                        static_cast<std::uint32_t>(kind), left));
            if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) { // the name's pointer takes the place of its number
                std::uint8_t* field = buffer.data() + at + offsetof(CUpti_ActivityKernel10, name);
                std::uint64_t number = 0;
                std::memcpy(&number, field, sizeof number);
                STAGEWRIGHT_TRY(const std::string_view name, nameInDump(dump, number));
                const char* text = name.empty() ? nullptr : name.data();
                std::memcpy(field, &text, sizeof text);
            }
            at += size;
        }
        decodeBuffer(buffer.data(), buffer.size(), trace);
    }
    return trace;
}

Result<void> checkVersion(std::uint32_t libraryVersion)
{
    if (libraryVersion == headerVersion) return {};
    return fail(ErrorCode::Unavailable,
                fmt::format("the CUPTI library has version {}, this build was made for version {}: the layouts of "
                            "their records may differ",
                            libraryVersion, headerVersion),
                "install CUPTI of the CUDA toolkit that Stagewright was built with, or rebuild Stagewright");
}

} // namespace stagewright::cupti
