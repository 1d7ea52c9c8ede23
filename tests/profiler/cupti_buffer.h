// Activity buffers filled by hand with CUPTI's own structs, as CUPTI would fill them.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include <cupti.h>

namespace stagewright::test {

class CuptiBuffer {
public:
    template <typename T>
    CuptiBuffer& add(const T& record)
    {
        append(&record, sizeof record);
        return *this;
    }

    CuptiBuffer& kernel(std::uint32_t correlation, std::uint64_t start, std::uint64_t end, const char* name,
                        std::uint32_t stream = 7)
    {
        CUpti_ActivityKernel10 record;
        std::memset(&record, 0, sizeof record);
        record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        record.start = start;
        record.end = end;
        record.deviceId = 1;
        record.contextId = 2;
        record.streamId = stream;
        record.gridX = 132;
        record.gridY = 2;
        record.gridZ = 1;
        record.blockX = 256;
        record.blockY = record.blockZ = 1;
        record.registersPerThread = 168;
        record.staticSharedMemory = 1024;
        record.dynamicSharedMemory = 200'000;
        record.correlationId = correlation;
        record.graphNodeId = 9;
        record.name = name;
        record.reserved0 = this; // must not reach a dump
        return add(record);
    }
    CuptiBuffer& copy(std::uint32_t correlation, std::uint64_t start, std::uint64_t end, std::uint64_t bytes)
    {
        CUpti_ActivityMemcpy6 record;
        std::memset(&record, 0, sizeof record);
        record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
        record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
        record.bytes = bytes;
        record.start = start;
        record.end = end;
        record.contextId = 2;
        record.streamId = 8;
        record.correlationId = correlation;
        return add(record);
    }
    CuptiBuffer& externalId(std::uint32_t correlation, std::uint64_t id, int stack = 0)
    {
        CUpti_ActivityExternalCorrelation record;
        std::memset(&record, 0, sizeof record);
        record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
        record.externalKind =
            static_cast<CUpti_ExternalCorrelationKind>(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 + stack);
        record.externalId = id;
        record.correlationId = correlation;
        return add(record);
    }
    CuptiBuffer& api(std::uint32_t correlation, std::uint64_t start, std::uint64_t end, std::uint32_t thread,
                     CUpti_CallbackId call = CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000)
    {
        CUpti_ActivityAPI record;
        std::memset(&record, 0, sizeof record);
        record.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
        record.cbid = call;
        record.start = start;
        record.end = end;
        record.threadId = thread;
        record.correlationId = correlation;
        return add(record);
    }

    std::uint8_t* data() { return m_bytes.data(); }
    std::size_t size() const { return m_bytes.size(); }
    std::vector<std::uint8_t>& bytes() { return m_bytes; }

private:
    [[gnu::noinline]] void append(const void* record, std::size_t size)
    {
        const std::size_t at = m_bytes.size();
        m_bytes.resize(at + size);
        std::memcpy(m_bytes.data() + at, record, size);
    }

    std::vector<std::uint8_t> m_bytes;
};

} // namespace stagewright::test
