#if __has_include(<nccl.h>) // a module without it says so (communicators.cpp)

#include "engine/cuda/module/nccl_communicator.h"

#include <set>
#include <thread>
#include <utility>

#include <dlfcn.h>

namespace stagewright::cuda::module {

namespace {

constexpr int oldest = 21800; // communicators that do not block, with a configuration
constexpr auto nap = std::chrono::microseconds(50);

std::mutex& issuing()
{
    static std::mutex mutex;
    return mutex;
}

template <typename Function>
void find(void* library, NcclFunctions& functions, Function& function, const char* name)
{
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr && functions.missing.empty()) functions.missing = std::string("NCCL has no ") + name;
}

NcclFunctions load()
{
    NcclFunctions f;
    void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* said = dlerror();
        f.missing = std::string("NCCL can't be loaded: ") + (said != nullptr ? said : "no reason given");
        return f;
    }
    find(library, f, f.version, "ncclGetVersion");
    find(library, f, f.uniqueId, "ncclGetUniqueId");
    find(library, f, f.init, "ncclCommInitRankConfig");
    find(library, f, f.state, "ncclCommGetAsyncError");
    find(library, f, f.abort, "ncclCommAbort");
    find(library, f, f.destroy, "ncclCommDestroy");
    find(library, f, f.errorString, "ncclGetErrorString");
    find(library, f, f.groupStart, "ncclGroupStart");
    find(library, f, f.groupEnd, "ncclGroupEnd");
    find(library, f, f.send, "ncclSend");
    find(library, f, f.receive, "ncclRecv");
    find(library, f, f.allReduce, "ncclAllReduce");
    find(library, f, f.reduceScatter, "ncclReduceScatter");
    find(library, f, f.allGather, "ncclAllGather");
    int version = 0;
    if (f.missing.empty() && (f.version(&version) != ncclSuccess || version < oldest))
        f.missing = "NCCL " + std::to_string(version) + " is too old, " + std::to_string(oldest) + " is needed";
    return f;
}

} // namespace

const NcclFunctions& theNccl()
{
    static const NcclFunctions functions = load();
    return functions;
}

NcclCommunicator::NcclCommunicator(const NcclFunctions& nccl, std::function<int(int)> enter,
                                   std::chrono::nanoseconds patience)
    : m_nccl(nccl), m_enter(std::move(enter)), m_patience(patience)
{
}

NcclCommunicator::~NcclCommunicator()
{
    const std::lock_guard lock(m_lock);
    if (m_aborted) return;
    for (const ncclComm_t comm : m_comms)
        if (comm != nullptr) (void)m_nccl.destroy(comm);
}

int NcclCommunicator::failed(const char* what, ncclResult_t result)
{
    if (m_error.empty()) m_error = std::string(what) + ": NCCL: " + m_nccl.errorString(result);
    abortNow(); // the other ends may wait for what this one did not post
    return 1;
}

void NcclCommunicator::abortNow()
{
    if (std::exchange(m_aborted, true)) return;
    for (const ncclComm_t comm : m_comms)
        if (comm != nullptr) (void)m_nccl.abort(comm);
}

void NcclCommunicator::abort()
{
    m_stop = true; // who holds the lock lets go of it
    const std::lock_guard lock(m_lock);
    if (m_error.empty()) m_error = "the connection between devices was aborted";
    abortNow();
}

int NcclCommunicator::settle(const char* what)
{
    const auto begin = std::chrono::steady_clock::now();
    for (const ncclComm_t comm : m_comms) {
        for (;;) {
            ncclResult_t state = ncclSuccess;
            const ncclResult_t asked = m_nccl.state(comm, &state);
            if (asked != ncclSuccess) return failed(what, asked);
            if (state == ncclSuccess) break;
            if (state != ncclInProgress) return failed(what, state);
            if (m_stop) {
                m_error = std::string(what) + ": aborted";
                return failed(what, ncclInProgress);
            }
            if (std::chrono::steady_clock::now() - begin > m_patience) {
                m_error = std::string(what) + ": NCCL made no progress for " +
                          std::to_string(std::chrono::duration_cast<std::chrono::seconds>(m_patience).count()) + " s";
                return failed(what, ncclInternalError);
            }
            std::this_thread::sleep_for(nap);
        }
    }
    return 0;
}

bool NcclCommunicator::closed()
{
    if (!m_aborted && !m_stop && !m_ends.empty()) return false;
    if (m_error.empty())
        m_error = m_ends.empty() ? "the connection between devices is not open"
                                 : "the connection between devices was aborted";
    return true;
}

// Everything that `work` posts, as one group; end by end.
template <typename Work>
int NcclCommunicator::groupLocked(const char* what, Work&& work)
{
    const std::lock_guard lock(m_lock);
    if (closed()) return 1;
    if (const ncclResult_t begun = m_nccl.groupStart(); begun != ncclSuccess) return failed(what, begun);
    ncclResult_t posted = ncclSuccess;
    for (std::size_t end = 0; end < m_ends.size() && (posted == ncclSuccess || posted == ncclInProgress); ++end)
        posted = m_enter(m_ends[end].device) == 0 ? work(end) : ncclUnhandledCudaError;
    const ncclResult_t ended = m_nccl.groupEnd(); // always: a group left open would take in what comes later
    for (const ncclResult_t result : {posted, ended})
        if (result != ncclSuccess && result != ncclInProgress) return failed(what, result);
    return settle(what);
}

template <typename Work>
int NcclCommunicator::group(const char* what, Work&& work)
{
    const std::lock_guard order(issuing());
    return groupLocked(what, std::forward<Work>(work));
}

int newId(const NcclFunctions& nccl, ncclUniqueId* id, std::string* error)
{
    *error = nccl.missing;
    if (!error->empty()) return 1;
    const ncclResult_t made = nccl.uniqueId(id);
    if (made == ncclSuccess) return 0;
    *error = std::string("opening a connection between devices: NCCL: ") + nccl.errorString(made);
    return 1;
}

int NcclCommunicator::join(End end, const ncclUniqueId& id, int number, int count)
{
    const char* what = "joining the connection between devices";
    const std::lock_guard lock(m_lock);
    if (!m_nccl.missing.empty()) {
        m_error = m_nccl.missing;
        return 1;
    }
    m_ends = {end};
    m_comms = {nullptr};
    if (closed()) return 1;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t begun =
        m_enter(end.device) == 0 ? m_nccl.init(&m_comms[0], count, id, number, &config) : ncclUnhandledCudaError;
    return begun == ncclSuccess || begun == ncclInProgress ? 0 : failed(what, begun);
}

int NcclCommunicator::settle()
{
    const std::lock_guard lock(m_lock);
    return closed() ? 1 : settle("joining the connection between devices");
}

int NcclCommunicator::post(const std::vector<Post>& posts)
{
    return groupLocked("messages between devices", [&](std::size_t end) {
        ncclResult_t result = ncclSuccess;
        for (const Post& one : posts) {
            result = one.sends
                         ? m_nccl.send(one.data, one.count, ncclUint8, one.peer, m_comms[end], m_ends[end].stream)
                         : m_nccl.receive(one.data, one.count, ncclUint8, one.peer, m_comms[end], m_ends[end].stream);
            if (result != ncclSuccess && result != ncclInProgress) break;
        }
        return result;
    });
}

int NcclCommunicator::open(std::vector<End> ends)
{
    if (!m_nccl.missing.empty()) {
        m_error = m_nccl.missing;
        return 1;
    }
    std::set<int> devices;
    for (const End& end : ends) {
        if (devices.insert(end.device).second) continue;
        m_error = "NCCL serves one rank per device, but device " + std::to_string(end.device) + " has two";
        return 1;
    }
    m_ends = std::move(ends);
    m_comms.assign(m_ends.size(), nullptr);
    ncclUniqueId id{};
    if (std::string error; newId(m_nccl, &id, &error) != 0) {
        m_error = error;
        abortNow();
        return 1;
    }
    return group("opening a connection between devices", [&](std::size_t end) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0; // errors are polled, and a call can be given up
        return m_nccl.init(&m_comms[end], static_cast<int>(m_ends.size()), id, static_cast<int>(end), &config);
    });
}

int NcclCommunicator::transfer(int from, const void* bytes, int to, void* there, std::size_t count)
{
    return group("a message between devices", [&](std::size_t end) {
        const auto number = static_cast<int>(end);
        if (number == from) return m_nccl.send(bytes, count, ncclUint8, to, m_comms[end], m_ends[end].stream);
        if (number == to) return m_nccl.receive(there, count, ncclUint8, from, m_comms[end], m_ends[end].stream);
        return ncclSuccess;
    });
}

int NcclCommunicator::allReduce(const std::vector<const float*>& from, const std::vector<float*>& to, std::size_t count)
{
    return group("a sum over devices", [&](std::size_t end) {
        return m_nccl.allReduce(from[end], to[end], count, ncclFloat32, ncclSum, m_comms[end], m_ends[end].stream);
    });
}

int NcclCommunicator::reduceScatter(const std::vector<const float*>& from, const std::vector<float*>& to,
                                    std::size_t each)
{
    return group("a scattered sum over devices", [&](std::size_t end) {
        return m_nccl.reduceScatter(from[end], to[end], each, ncclFloat32, ncclSum, m_comms[end], m_ends[end].stream);
    });
}

int NcclCommunicator::allGather(const std::vector<const float*>& from, const std::vector<float*>& to, std::size_t each)
{
    return group("gathering from devices", [&](std::size_t end) {
        return m_nccl.allGather(from[end], to[end], each, ncclFloat32, m_comms[end], m_ends[end].stream);
    });
}

int NcclCommunicator::poll()
{
    const std::lock_guard lock(m_lock);
    if (m_aborted) return 1;
    for (const ncclComm_t comm : m_comms) {
        ncclResult_t state = ncclSuccess;
        const ncclResult_t asked = m_nccl.state(comm, &state);
        if (asked != ncclSuccess) return failed("the connection between devices", asked);
        if (state != ncclSuccess && state != ncclInProgress) return failed("the connection between devices", state);
    }
    return 0;
}

} // namespace stagewright::cuda::module

#endif
