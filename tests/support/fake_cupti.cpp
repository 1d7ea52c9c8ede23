#include "tests/support/fake_cupti.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/cupti/module_abi.h"

namespace stagewright::fake {

namespace {

constexpr std::uint32_t firstStack = 3; // CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0

std::mutex theMutex;
bool theDump = false;
bool theStart = false;
std::uint32_t theCorrelation = 0;
std::uint32_t theThreads = 0;
int theDepth = 0; // ids on all stacks
std::int64_t theDropped = 0;
std::vector<GpuRecord> theRecords;
std::vector<std::string> theNames{std::string()};
std::vector<GpuRecord> theBatch;
std::string theBatchNames;
std::string theReason;

struct Thread {
    std::uint32_t number = 0;
    std::vector<std::uint64_t> ids[3];
};
thread_local Thread theThread;

std::string_view request()
{
    const char* text = std::getenv("STAGEWRIGHT_FAKE_CUPTI");
    return text != nullptr ? text : "";
}

// A range that was left open would assign later work to the wrong op.
void demand(bool holds, const char* what)
{
    if (holds) return;
    std::fprintf(stderr, "fake CUPTI: %s\n", what);
    std::abort();
}

std::uint32_t nameOf(std::string what) // as functions are named
{
    std::replace_if(
        what.begin(), what.end(), [](char c) { return c == ' ' || c == '\''; }, '_');
    const auto found = std::find(theNames.begin(), theNames.end(), what);
    if (found != theNames.end()) return static_cast<std::uint32_t>(found - theNames.begin());
    theNames.push_back(std::move(what));
    return static_cast<std::uint32_t>(theNames.size() - 1);
}

} // namespace

Launch launched(const char* what, std::size_t bytes, int device, std::uint32_t queue, int lane, std::int64_t begun,
                std::int64_t asked)
{
    const std::lock_guard lock(theMutex);
    Launch launch;
    launch.traced = theStart;
    if (!theStart) return launch;
    if (theThread.number == 0) theThread.number = ++theThreads;
    GpuRecord call;
    call.kind = GpuRecordKind::RuntimeApi;
    call.flags = GpuLaunches;
    call.start = begun;
    call.end = asked;
    call.correlation = ++theCorrelation;
    call.stream = theThread.number;
    for (std::uint32_t stack = 0; stack < 3; ++stack) {
        if (theThread.ids[stack].empty() || (request() == "orphans" && call.correlation % 10 == 0)) continue;
        GpuRecord id;
        id.kind = GpuRecordKind::ExternalId;
        id.value = theThread.ids[stack].back();
        id.correlation = call.correlation;
        id.detail = firstStack + stack;
        theRecords.push_back(id);
    }
    theRecords.push_back(call);
    GpuRecord& work = launch.record;
    const std::string_view name = what;
    const bool copy = name == "copy" || name == "upload" || name == "download";
    work.kind = copy ? GpuRecordKind::Copy : name == "clear" ? GpuRecordKind::Memset : GpuRecordKind::Kernel;
    work.detail = name == "upload" ? 1 : name == "download" ? 2 : copy ? 8 : 0;
    work.value = work.kind == GpuRecordKind::Kernel ? 0 : bytes;
    work.name = work.kind == GpuRecordKind::Kernel ? nameOf(what) : 0;
    work.correlation = call.correlation;
    work.device = static_cast<std::uint32_t>(device);
    work.context = static_cast<std::uint32_t>(device) + 1;
    work.stream = 64 * queue + static_cast<std::uint32_t>(lane) + 1;
    work.grid[0] = work.block[0] = 1;
    return launch;
}

void ran(const Launch& launch, std::int64_t start, std::int64_t end)
{
    if (!launch.traced) return;
    const std::lock_guard lock(theMutex);
    if (!theStart) return;
    if (request() == "lossy" && launch.record.correlation % 10 == 0) {
        ++theDropped;
        return;
    }
    GpuRecord record = launch.record;
    record.start = start;
    record.end = end;
    theRecords.push_back(record);
}

namespace {

std::uint32_t version() { return 130001; }
const char* lastError() { return theReason.c_str(); }
int start(const StagewrightCuptiOptions* options)
{
    const std::lock_guard lock(theMutex);
    theDump = options->dump != 0;
    if (request() == "conflict") return STAGEWRIGHT_CUPTI_CONFLICT;
    if (request() == "failed") {
        theReason = "the fake CUPTI does not start";
        return STAGEWRIGHT_CUPTI_FAILED;
    }
    theStart = true;
    theDropped = 0;
    theRecords.clear();
    return STAGEWRIGHT_CUPTI_STARTED;
}
void push(std::int32_t stack, std::uint64_t id)
{
    const std::lock_guard lock(theMutex);
    demand(theStart, "an id is pushed while nothing is traced");
    theThread.ids[stack].push_back(id);
    ++theDepth;
}
void pop(std::int32_t stack)
{
    const std::lock_guard lock(theMutex);
    demand(!theThread.ids[stack].empty(), "an id is popped that was not pushed");
    theThread.ids[stack].pop_back();
    --theDepth;
}
int take(StagewrightCuptiBatch* out)
{
    const std::lock_guard lock(theMutex);
    demand(theDepth == 0, "records are taken while an op runs");
    theBatch = std::move(theRecords);
    theRecords.clear();
    std::reverse(theBatch.begin(), theBatch.end()); // buffers come in any order
    theBatchNames.clear();
    for (const std::string& name : theNames) theBatchNames.append(name).push_back('\0');
    std::memset(out, 0, sizeof *out);
    out->records = theBatch.data();
    out->count = theBatch.size();
    out->names = theBatchNames.data();
    out->nameCount = theNames.size();
    out->dropped = std::exchange(theDropped, 0);
    return 0;
}
int stop()
{
    const std::lock_guard lock(theMutex);
    demand(theDepth == 0, "the tracing is stopped while an op runs");
    theStart = false;
    return request() == "stays" ? 0 : 1;
}
// A dump without buffers, if one was requested.
int dump(const char** bytes, std::uint64_t* size)
{
    static const char empty[] = "SWCUPTI1"
                                "\xd1\xfb\x01\0"
                                "\0\0\0\0"
                                "\1\0\0\0\0\0\0\0"
                                "\0";
    demand(!theStart, "a dump is taken while something is traced");
    if (!theDump) {
        theReason = "no buffers were kept";
        return 1;
    }
    *bytes = empty;
    *size = sizeof empty - 1;
    return 0;
}
int decodeDump(const char*, std::uint64_t, StagewrightCuptiBatch*)
{
    theReason = "the fake CUPTI decodes nothing";
    return 1;
}
void rangePush(const char* name)
{
    const char* path = std::getenv("STAGEWRIGHT_FAKE_NVTX");
    if (path == nullptr) return;
    const std::lock_guard lock(theMutex);
    std::ofstream(path, std::ios::app) << name << '\n';
}
void rangePop() {}

const StagewrightCuptiTable table = {STAGEWRIGHT_CUPTI_ABI,
                                     sizeof(StagewrightCuptiTable),
                                     sizeof(GpuRecord),
                                     sizeof(StagewrightCuptiBatch),
                                     version,
                                     lastError,
                                     start,
                                     push,
                                     pop,
                                     take,
                                     stop,
                                     dump,
                                     decodeDump,
                                     rangePush,
                                     rangePop};

} // namespace
} // namespace stagewright::fake

extern "C" __attribute__((visibility("default"))) const StagewrightCuptiTable* stagewright_cupti_module(void)
{
    return &stagewright::fake::table;
}
