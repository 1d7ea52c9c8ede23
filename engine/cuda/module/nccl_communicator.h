// NCCL between devices: a communicator whose ends one thread drives, so that a send is always in one group with its
// receive, and a collective with all its ends; or one end of a communicator whose others belong to other processes or
// threads. No CUDA call is made here; NCCL is a table, so that tests can replace it (tests/engine/tst_nccl_communicator.cpp).
//
// Communicators of this process are opened and used one at a time: their kernels are launched in one order on all devices, as
// NCCL demands of communicators that share devices, and no call waits for another thread. An end of others is posted in
// the order of its caller, which must be one that all ends follow: its calls wait for others while they connect, and so
// hold nothing that other communicators need. Kernels wait on the streams they are given.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include <nccl.h>

namespace stagewright::cuda::module {

// What of NCCL is used (2.18 and later); looked up at run time, as it is not part of the CUDA toolkit and one GPU does
// not need it.
struct NcclFunctions {
    decltype(&ncclGetVersion) version = nullptr;
    decltype(&ncclGetUniqueId) uniqueId = nullptr;
    decltype(&ncclCommInitRankConfig) init = nullptr;
    decltype(&ncclCommGetAsyncError) state = nullptr;
    decltype(&ncclCommAbort) abort = nullptr;
    decltype(&ncclCommDestroy) destroy = nullptr;
    decltype(&ncclGetErrorString) errorString = nullptr;
    decltype(&ncclGroupStart) groupStart = nullptr;
    decltype(&ncclGroupEnd) groupEnd = nullptr;
    decltype(&ncclSend) send = nullptr;
    decltype(&ncclRecv) receive = nullptr;
    decltype(&ncclAllReduce) allReduce = nullptr;
    decltype(&ncclReduceScatter) reduceScatter = nullptr;
    decltype(&ncclAllGather) allGather = nullptr;
    std::string missing; // why it can't be used; empty: it can
};
const NcclFunctions& theNccl(); // libnccl.so.2, loaded once

// What the ends of a communicator are opened with. 0, or another number and *error says why.
int newId(const NcclFunctions& nccl, ncclUniqueId* id, std::string* error);

class NcclCommunicator {
public:
    struct End {
        int device = 0;
        cudaStream_t stream = nullptr;
    };
    // enter: makes a device the calling thread's; 0: done. patience: how long a call may take in NCCL.
    NcclCommunicator(const NcclFunctions& nccl, std::function<int(int device)> enter,
                     std::chrono::nanoseconds patience = std::chrono::seconds(60));
    ~NcclCommunicator(); // aborted: leaves; else waits for what NCCL still has to do on the host
    NcclCommunicator(const NcclCommunicator&) = delete;
    NcclCommunicator& operator=(const NcclCommunicator&) = delete;

    // The calls below: 0, or another number and error() says why; the communicator is unusable then. Pointers: by end.
    int open(std::vector<End> ends); // each on a device of its own
    // One end of `count`: starts; settle() waits for the others. id: newId() of one of them.
    int join(End end, const ncclUniqueId& id, int number, int count);
    int settle();
    struct Post {
        bool sends = false;
        int peer = 0;
        void* data = nullptr;
        std::size_t count = 0; // bytes
    };
    int post(const std::vector<Post>& posts); // of a joined end: one group
    int transfer(int from, const void* bytes, int to, void* there, std::size_t count);
    int allReduce(const std::vector<const float*>& from, const std::vector<float*>& to, std::size_t count); // sums
    // end i: the i-th part
    int reduceScatter(const std::vector<const float*>& from, const std::vector<float*>& to, std::size_t each);
    int allGather(const std::vector<const float*>& from, const std::vector<float*>& to, std::size_t each);
    int poll(); // what went wrong since on the devices or between them
    const std::string& error() const { return m_error; }

    // Any thread, at any time: kernels that wait for their other end leave, calls under way return, later ones fail.
    void abort();

private:
    template <typename Work>
    int group(const char* what, Work&& work);
    template <typename Work>
    int groupLocked(const char* what, Work&& work);
    bool closed();                // with an error
    int settle(const char* what); // until NCCL has taken everything over
    int failed(const char* what, ncclResult_t result);
    void abortNow();

    const NcclFunctions& m_nccl;
    std::function<int(int)> m_enter;
    std::chrono::nanoseconds m_patience;
    std::vector<End> m_ends;
    std::vector<ncclComm_t> m_comms;
    std::mutex m_lock; // of the communicators
    std::atomic<bool> m_stop = false;
    bool m_aborted = false;
    std::string m_error;
};

} // namespace stagewright::cuda::module
