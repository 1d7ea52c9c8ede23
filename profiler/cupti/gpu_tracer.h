// GpuTracer: the CUPTI module as the engine sees it. Always built; the module (libstagewright_cupti.so) is loaded when
// a trace is requested and may be absent; every reason is a sentence. One trace at a time in a process.
//
//     auto tracer = GpuTracer::load();
//     if (tracer) (*tracer)->start({});             // Unavailable where another profiler is attached: record without
//     { GpuTracer::OpRange range(tracer, id, name); launch …; }    // on the thread that launches; tracer may be null
//     GpuTrace trace = (*tracer)->take();           // devices synchronised before; then correlate()
//     (*tracer)->stop();
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/cupti/external_id.h"
#include "profiler/cupti/gpu_record.h"
#include "profiler/cupti/module_abi.h"
#include "profiler/cupti/trace_facts.h"
#include "schedules/model/op.h"

namespace stagewright {

struct GpuTraceOptions {
    Bytes buffer = Bytes{4} << 20;
    // of all buffers together; beyond it nothing is recorded and the trace is truncated
    Bytes largest = Bytes{128} << 20;
    bool events = false;
    bool dump = false; // keep the raw buffers, for dump()
};

class GpuTracer {
public:
    // The module, loaded once a process and never unloaded. Unavailable, with the cause and a remedy: it is absent,
    // lacks a library of the toolkit, or is from another build. STAGEWRIGHT_CUPTI_MODULE names a file to take instead.
    static Result<std::shared_ptr<GpuTracer>> load();

    // start, take and stop while no rank launches. facts.state is set either way. Unavailable where CUPTI refuses or
    // another profiler is attached.
    Result<void> start(const GpuTraceOptions& options, TraceFacts& facts);
    GpuTrace take();
    void stop(TraceFacts& facts); // says whether CUPTI is detached
    bool started() const { return m_started; }
    // after stop(): the bytes of a CUPTI dump (docs/formats.md)
    Result<std::string> dump() const;
    Result<GpuTrace> decodeDump(std::string_view bytes) const; // no GPU needed

    void push(const ExternalId& id) const { m_table->push(stackOf(id.role), pack(id)); }
    void pop(ExternalRole role) const { m_table->pop(stackOf(role)); }
    // NVTX ranges, for Nsight and others: nothing happens where no tool listens. Independent of start().
    void rangePush(const char* name) const { m_table->rangePush(name); }
    void rangePop() const { m_table->rangePop(); }

    // An op's or message's id, and its NVTX range where a name is given, for as long as it lives. Without tracer:
    // nothing.
    class OpRange {
    public:
        OpRange(const GpuTracer* tracer, const ExternalId& id, const char* name = nullptr)
            : m_tracer(tracer), m_role(id.role), m_named(tracer != nullptr && name != nullptr)
        {
            if (m_named) m_tracer->rangePush(name);
            if (m_tracer != nullptr && m_tracer->m_started) m_tracer->push(id);
            m_pushed = m_tracer != nullptr && m_tracer->m_started;
        }
        ~OpRange()
        {
            if (m_pushed) m_tracer->pop(m_role);
            if (m_named) m_tracer->rangePop();
        }
        OpRange(const OpRange&) = delete;
        OpRange& operator=(const OpRange&) = delete;

    private:
        const GpuTracer* m_tracer;
        ExternalRole m_role;
        bool m_named;
        bool m_pushed = false;
    };

private:
    explicit GpuTracer(const StagewrightCuptiTable* table) : m_table(table) {}
    static Result<std::shared_ptr<GpuTracer>> loadFile(const std::string& path);
    static std::int32_t stackOf(ExternalRole role)
    {
        return role == ExternalRole::Send ? 1 : role == ExternalRole::Receive ? 2 : 0;
    }

    const StagewrightCuptiTable* m_table;
    bool m_started = false;
};

// As PyTorch names the ranges of a pipeline's actions: "PP:0F1".
std::string rangeName(const Op& op);

} // namespace stagewright
