// libstagewright_cupti.so: the table of module_abi.h over CuptiSession, decoding and NVTX.
#include <string>

#include <nvtx3/nvToolsExt.h>

#include "profiler/cupti/cupti_dump.h"
#include "profiler/cupti/module/cupti_decode.h"
#include "profiler/cupti/module/cupti_session.h"
#include "profiler/cupti/module_abi.h"

namespace {

using namespace stagewright;

thread_local std::string error;

// What the last take() or decodeDump() gave out, and the one session.
struct State {
    cupti::CuptiSession session;
    GpuTrace taken;
    std::string names;
    std::string dump;
};
// Never destroyed: CUPTI may call back until the process ends.
State& state()
{
    static State& one = *new State;
    return one;
}

void give(StagewrightCuptiBatch& out)
{
    State& s = state();
    s.names.clear();
    for (const std::string& name : s.taken.names) s.names.append(name.c_str()).append(1, '\0');
    out = {};
    out.records = s.taken.records.data();
    out.count = s.taken.records.size();
    out.names = s.names.data();
    out.nameCount = s.taken.names.size();
    out.dropped = s.taken.dropped;
    out.damagedBuffers = s.taken.damagedBuffers;
    out.unknownRecords = s.taken.unknownRecords;
    out.truncated = s.taken.truncated ? 1 : 0;
}

// No exception leaves the module: memory may run out.
template <typename Call>
int guarded(Call&& call, int failed)
{
    try {
        return call();
    } catch (const std::exception& thrown) {
        error = thrown.what();
        return failed;
    }
}

std::uint32_t cuptiVersion()
{
    std::uint32_t version = 0;
    cuptiGetVersion(&version);
    return version;
}

int start(const StagewrightCuptiOptions* options)
{
    return guarded(
        [options] {
            cupti::SessionOptions wanted;
            if (options->bufferBytes != 0) wanted.bufferBytes = options->bufferBytes;
            if (options->largestBytes != 0) wanted.largestBytes = options->largestBytes;
            wanted.events = options->events != 0;
            wanted.dump = options->dump != 0;
            const cupti::StartState started = state().session.start(wanted);
            if (started == cupti::StartState::Started) return int{STAGEWRIGHT_CUPTI_STARTED};
            error = state().session.reason();
            return started == cupti::StartState::Conflict ? int{STAGEWRIGHT_CUPTI_CONFLICT}
                                                          : int{STAGEWRIGHT_CUPTI_FAILED};
        },
        STAGEWRIGHT_CUPTI_FAILED);
}

int take(StagewrightCuptiBatch* out)
{
    return guarded(
        [out] {
            state().taken = state().session.take();
            give(*out);
            return 0;
        },
        1);
}

int stop()
{
    return guarded(
        [] {
            state().session.stop();
            return state().session.detached() ? 1 : 0;
        },
        0);
}

int dump(const char** bytes, std::uint64_t* size)
{
    return guarded(
        [=] {
            state().dump = writeCuptiDump(state().session.dump());
            *bytes = state().dump.data();
            *size = state().dump.size();
            return 0;
        },
        1);
}

int decodeDump(const char* bytes, std::uint64_t size, StagewrightCuptiBatch* out)
{
    return guarded(
        [=] {
            const Result<CuptiDump> read = readCuptiDump({bytes, size});
            if (!read) {
                error = read.error().message;
                return 1;
            }
            Result<GpuTrace> trace = cupti::decodeDump(*read);
            if (!trace) {
                error = trace.error().message + "; " + trace.error().remedy;
                return 1;
            }
            state().taken = std::move(*trace);
            give(*out);
            return 0;
        },
        1);
}

const StagewrightCuptiTable table{
    STAGEWRIGHT_CUPTI_ABI,
    sizeof(StagewrightCuptiTable),
    sizeof(GpuRecord),
    sizeof(StagewrightCuptiBatch),
    cuptiVersion,
    [] { return error.c_str(); },
    start,
    [](std::int32_t stack, std::uint64_t id) { state().session.push(stack, id); },
    [](std::int32_t stack) { state().session.pop(stack); },
    take,
    stop,
    dump,
    decodeDump,
    [](const char* name) { nvtxRangePushA(name); },
    [] { nvtxRangePop(); },
};

} // namespace

extern "C" __attribute__((visibility("default"))) const StagewrightCuptiTable* stagewright_cupti_module()
{
    return &table;
}
