// Devices in traces of Ascend NPUs (trace_view.json of torch_npu, msprof's JSON): Chrome's events without categories, in
// processes "Ascend Hardware", "Communication" or "HCCL", "CANN", "Overlap Analysis". Names of processes come before or
// after their events, so an event's arguments say what it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/foreign/foreign_trace.h"
#include "traces/import/kineto/kineto_event.h"
#include "traces/import/kineto/trace_threads.h"

namespace stagewright {

enum class AscendPart : std::uint8_t {
    None,
    Kernel,
    Copy,
    Signal,     // a task of a stream that waits, or says that something is done
    Collective, // a whole collective or message, "hcom_allReduce__459_0"
    Piece,      // of a collective, on one of its planes
    Call,       // of the runtime on the host, "Node@launch"
};

class AscendDevices {
public:
    static AscendPart partOf(const KinetoEvent& event);
    // A collective's event with the name of its operation, "hcom_allReduce", and its group in the arguments. They point
    // into this object until the next call.
    void nameCollective(KinetoEvent& event);

    // Copies wait until the pieces of collectives are known: both list the same tasks. bytes −1: unknown.
    void addCopy(const DeviceSpan& copy, std::int64_t stream, std::int64_t task, Bytes bytes);
    void addPiece(const KinetoEvent& event, Nanos start, Nanos end);
    // From a framework's operator to the task of a device. thread: of a device for the end of one.
    void addFlow(char phase, std::string_view id, std::uint32_t thread, Nanos time);
    // Work on a device is launched where its operator asked for it, which another thread of the framework does later.
    void finish(TraceThreads& threads, ForeignRank& rank, std::vector<std::int64_t>& external);

private:
    struct Copy {
        DeviceSpan span;
        std::int64_t stream, task;
        Bytes bytes;
    };
    struct Piece { // of a collective or message, on one of its planes
        Nanos start, end;
        std::int64_t stream, task;
        int from, to; // places in the group; −1: unknown
        bool signal;  // waits for another rank, or signals to it; else it moves bytes
        bool waits;
    };
    void findPeers(ForeignRank& rank) const;
    void noteWaits(ForeignRank& rank) const;
    void keepCopies(ForeignRank& rank, std::vector<std::int64_t>& external);
    void leaveOutRepeats(const TraceThreads& threads, ForeignRank& rank);
    void nameThreads(const TraceThreads& threads, ForeignRank& rank);
    void tie(TraceThreads& threads, ForeignRank& rank);

    std::vector<Copy> m_copies;
    std::vector<Piece> m_pieces;
    std::map<std::string, std::pair<Nanos, std::uint32_t>, std::less<>> m_from;  // by flow
    std::vector<std::pair<std::pair<std::uint32_t, Nanos>, std::string>> m_into; // thread, start; flow
    std::string m_name, m_group;
    bool m_seen = false;
};

} // namespace stagewright
