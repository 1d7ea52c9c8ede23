#include "profiler/cupti/module/cupti_session.h"

#include <algorithm>
#include <array>
#include <atomic>

#include <fmt/format.h>

#include "profiler/cupti/module/cupti_decode.h"
#include "profiler/cupti/module/recorded_calls.h"
#include "profiler/record/clock.h"

namespace stagewright::cupti {

namespace {

std::atomic<CuptiSession*> theSession{nullptr}; // whose callbacks CUPTI calls

std::uint64_t CUPTIAPI timestamp() { return static_cast<std::uint64_t>(monotonicNow()); }
void CUPTIAPI nothing(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

// KERNEL would serialise the kernels. External ids come with API records only, hence the calls below.
constexpr std::array kinds{
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUPTI_ACTIVITY_KIND_OVERHEAD,
    CUPTI_ACTIVITY_KIND_CONTEXT,
    CUPTI_ACTIVITY_KIND_STREAM,
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
};

// f(call) for every recorded call of the runtime.
template <typename Visit>
bool eachRuntimeCall(Visit&& f)
{
    return std::all_of(runtimeCalls.begin(), runtimeCalls.end(), f) &&
           std::all_of(runtimeOtherCalls.begin(), runtimeOtherCalls.end(), f);
}
// And of the driver.
template <typename Visit>
bool eachDriverCall(Visit&& f)
{
    return std::all_of(driverCalls.begin(), driverCalls.end(), f) &&
           std::all_of(driverOtherCalls.begin(), driverOtherCalls.end(), f);
}

} // namespace

CuptiSession::CuptiSession(const CuptiFunctions& functions) : m_functions(functions) {}

CuptiSession::~CuptiSession() { stop(); }

StartState CuptiSession::failed(const char* what, CUptiResult result)
{
    const char* text = nullptr;
    m_functions.getResultString(result, &text);
    m_reason = fmt::format("CUPTI: {} answers {} ({})", what, text != nullptr ? text : "an unknown error",
                           static_cast<int>(result));
    if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
        m_reason +=
            "; ask the administrator to open the GPU's profiling to all users (NVreg_RestrictProfilingToAdminUsers=0)";
    if (result == CUPTI_ERROR_UNKNOWN || result == CUPTI_ERROR_NOT_INITIALIZED)
        m_reason += "; is an NVIDIA driver installed and loaded?";
    return result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? StartState::Conflict : StartState::Failed;
}

StartState CuptiSession::start(const SessionOptions& options)
{
    if (m_started) return StartState::Started;
    m_reason.clear();
    std::uint32_t version = 0;
    m_functions.getVersion(&version);
    if (const Result<void> same = checkVersion(version); !same) {
        m_reason = same.error().message + "; " + same.error().remedy;
        return StartState::Failed;
    }
    CuptiSession* none = nullptr;
    if (!theSession.compare_exchange_strong(none, this)) {
        m_reason = "a GPU trace is already being recorded in this process";
        return StartState::Failed;
    }
    m_options = options;
    m_options.bufferBytes = std::max<std::size_t>(4096, m_options.bufferBytes / 8 * 8);
    const auto giveUp = [this](const char* what, CUptiResult result) {
        const StartState state = failed(what, result);
        disableAll();
        if (m_subscriber != nullptr) m_functions.unsubscribe(m_subscriber);
        m_subscriber = nullptr;
        theSession = nullptr;
        return state;
    };
    CUptiResult result = m_functions.subscribe(&m_subscriber, nothing, nullptr);
    if (result != CUPTI_SUCCESS) {
        m_subscriber = nullptr;
        return giveUp("cuptiSubscribe", result);
    }
    static std::atomic<bool> stamped{false};
    if (!stamped) {
        result = m_functions.registerTimestamp(timestamp);
        if (result != CUPTI_SUCCESS) return giveUp("cuptiActivityRegisterTimestampCallback", result);
        stamped = true;
    }
    result = m_functions.registerBuffers(requested, completed);
    if (result != CUPTI_SUCCESS) return giveUp("cuptiActivityRegisterCallbacks", result);
    m_end = m_capped = m_detached = false;
    m_trace = {};
    m_dump = {};
    m_dump.cuptiVersion = version;
    m_parser = std::thread(&CuptiSession::parse, this);
    m_started = true;
    const char* what = "";
    result = enableAll(m_options, what);
    if (result == CUPTI_SUCCESS) return StartState::Started;
    const StartState state = failed(what, result);
    const std::string reason = m_reason;
    stop();
    m_reason = reason;
    return state;
}

CUptiResult CuptiSession::enableAll(const SessionOptions& options, const char*& what)
{
    what = "cuptiActivityEnable";
    std::vector<CUpti_ActivityKind> wanted(kinds.begin(), kinds.end());
    if (options.events) {
        const CUptiResult result = m_functions.enableEventTimes(1);
        if (result != CUPTI_SUCCESS) return result;
        wanted.push_back(CUPTI_ACTIVITY_KIND_CUDA_EVENT);
    }
    for (const CUpti_ActivityKind kind : wanted) {
        const CUptiResult result = m_functions.enable(kind);
        if (result != CUPTI_SUCCESS) return result;
        m_enabled.push_back(kind);
    }
    what = "cuptiActivityEnableRuntimeApi";
    CUptiResult result = CUPTI_SUCCESS;
    if (!eachRuntimeCall(
            [&](CUpti_CallbackId call) { return (result = m_functions.enableRuntime(call, 1)) == CUPTI_SUCCESS; }))
        return result;
    what = "cuptiActivityEnableDriverApi";
    (void)eachDriverCall(
        [&](CUpti_CallbackId call) { return (result = m_functions.enableDriver(call, 1)) == CUPTI_SUCCESS; });
    return result;
}

bool CuptiSession::disableAll()
{
    bool done = true;
    for (const CUpti_ActivityKind kind : m_enabled) done = m_functions.disable(kind) == CUPTI_SUCCESS && done;
    if (!m_enabled.empty()) {
        (void)eachRuntimeCall([&](CUpti_CallbackId call) {
            done = m_functions.enableRuntime(call, 0) == CUPTI_SUCCESS && done;
            return true;
        });
        (void)eachDriverCall([&](CUpti_CallbackId call) {
            done = m_functions.enableDriver(call, 0) == CUPTI_SUCCESS && done;
            return true;
        });
    }
    if (m_options.events && !m_enabled.empty()) m_functions.enableEventTimes(0);
    m_enabled.clear();
    return done;
}

void CuptiSession::requested(std::uint8_t** buffer, std::size_t* size, std::size_t* records)
{
    *buffer = nullptr; // refused: allowed since CUPTI 12.9
    *size = 0;
    *records = 0;
    CuptiSession* session = theSession;
    if (session == nullptr) return;
    const std::lock_guard lock(session->m_lock);
    std::unique_ptr<std::uint8_t[]> bytes;
    if (!session->m_free.empty()) {
        bytes = std::move(session->m_free.back());
        session->m_free.pop_back();
    } else {
        const std::size_t inUse = session->m_out.size() + session->m_full.size() + (session->m_parsing ? 1 : 0);
        if ((inUse + 1) * session->m_options.bufferBytes > session->m_options.largestBytes) {
            session->m_capped = true;
            return;
        }
        bytes.reset(new std::uint8_t[session->m_options.bufferBytes]); // aligned to 16 bytes
    }
    *buffer = bytes.get();
    *size = session->m_options.bufferBytes;
    session->m_out.push_back(std::move(bytes));
}

void CuptiSession::completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid)
{
    CuptiSession* session = theSession;
    if (session == nullptr || buffer == nullptr) return;
    const std::lock_guard lock(session->m_lock);
    const auto at = std::find_if(session->m_out.begin(), session->m_out.end(),
                                 [buffer](const auto& bytes) { return bytes.get() == buffer; });
    if (at == session->m_out.end()) return;
    session->m_full.push_back({std::move(*at), std::min(valid, session->m_options.bufferBytes)});
    session->m_out.erase(at);
    session->m_changed.notify_all();
}

void CuptiSession::parse()
{
    std::unique_lock lock(m_lock);
    for (;;) {
        m_changed.wait(lock, [this] { return m_end || !m_full.empty(); });
        if (m_full.empty()) return;
        Full full = std::move(m_full.front());
        m_full.pop_front();
        m_parsing = true;
        lock.unlock();
        GpuTrace trace;
        decodeBuffer(full.bytes.get(), full.valid, trace);
        lock.lock();
        if (m_options.dump && full.valid != 0) dumpBuffer(full.bytes.get(), full.valid, m_dump);
        append(m_trace, trace);
        m_free.push_back(std::move(full.bytes));
        m_parsing = false;
        m_changed.notify_all();
    }
}

void CuptiSession::flush(std::uint32_t flag)
{
    m_functions.flushAll(flag);
    std::size_t dropped = 0;
    const bool known = m_functions.droppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS; // since the last call
    std::unique_lock lock(m_lock);
    m_changed.wait(lock, [this] { return m_full.empty() && !m_parsing; });
    if (known) m_trace.dropped += static_cast<std::int64_t>(dropped);
    m_trace.truncated = m_trace.truncated || m_capped;
}

GpuTrace CuptiSession::take()
{
    if (m_started) flush(0);
    const std::lock_guard lock(m_lock);
    GpuTrace taken = std::move(m_trace);
    m_trace = {};
    return taken;
}

void CuptiSession::stop()
{
    if (!m_started) return;
    flush(0);
    const bool disabled = disableAll();
    flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); // may hold records whose work never ended: they have no times
    const bool left = m_functions.unsubscribe(m_subscriber) == CUPTI_SUCCESS;
    m_subscriber = nullptr;
    {
        const std::lock_guard lock(m_lock);
        m_detached = disabled && left && m_out.empty();
        m_end = true;
        // A buffer that CUPTI still holds is never freed: it may be written to yet.
        for (std::unique_ptr<std::uint8_t[]>& bytes : m_out) (void)bytes.release();
        m_out.clear();
        m_free.clear();
        m_changed.notify_all();
    }
    m_parser.join();
    theSession = nullptr;
    m_started = false;
}

} // namespace stagewright::cupti
