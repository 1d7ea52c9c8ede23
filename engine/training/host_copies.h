// HostCopies: what OFFLOAD and RELOAD do on a rank: a thread of its own moves activations between the rank's memory and an
// arena on the host, while the rank goes on with its list. One queue in the order of the list or, full duplex, one a
// direction.
//   OFFLOAD  the host takes when the copy starts, the rank's memory is free when it ends
//   RELOAD   starts behind its OFFLOAD; the rank's memory takes when it starts, the host is free when it ends
// Where speeds are given, a copy on the wall clock takes as long as they say, at least; the bytes move all the same.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/device/memory.h"
#include "engine/workload/stage_model.h"
#include "schedules/model/cost_model.h"
#include "schedules/model/op.h"

namespace stagewright {

class HostCopies {
public:
    // A copy that has ended.
    struct Done {
        struct Moved {
            int microbatch = 0;
            Bytes bytes = 0;
        };
        Op op;
        int position = 0; // in the rank's list
        Nanos begin = 0, end = 0;
        Nanos cpu = 0; // what it takes on the virtual clock: by the given speeds, else the thread's processor time
        std::vector<Moved> moved;
    };

    // device: the rank's, shared with the copies' threads (Allocator::share), which outlives them. limit: of the host's
    // arena in bytes; 0: none. paced: copies take as long as the speeds say. stopped: ends waits; any thread.
    HostCopies(Allocator& device, const Copies& speeds, bool paced, Bytes limit, std::function<bool()> stopped);
    ~HostCopies();
    HostCopies(const HostCopies&) = delete;
    HostCopies& operator=(const HostCopies&) = delete;

    // All below on the rank's thread. A copy's failure is thrown by whatever waits next, with the op's name.
    // kept: of each part of the op, the buffers that the stage keeps of it; they are the copies' until awaited.
    void offload(const Op& op, int position, std::span<const Part> parts, std::vector<std::vector<Buffer*>> kept);
    void reload(const Op& op, int position, std::span<const Part> parts);
    bool busy(int stage, int microbatch, int slice); // something of it is on its way
    // Until nothing is, or until all have ended. False: interrupted.
    bool await(int stage, int microbatch, int slice);
    bool awaitAll();
    // Until one more OFFLOAD has ended, so that there is room again; false: none is on its way.
    bool awaitRoom();
    std::vector<Done> ended(); // since the last call
    // After a step that was stopped: whatever is on its way ends or is dropped, and the arena is empty.
    void drop();

    Bytes hostPeak() const { return m_host.peak(MemoryCategory::Activations); } // since the last call of restart()
    void restart() { m_host.resetPeaks(); }

private:
    struct Job {
        Done done;
        bool out = false;
        std::vector<Part> parts;
    };
    // By stage and part: where the buffers belong, and what they are on the host.
    struct Held {
        std::vector<Buffer*> places;
        std::vector<Buffer> onHost;
        bool out = false; // it is all on the host
    };
    using Key = std::pair<int, Part>;

    void issue(Job job);
    void work(std::size_t lane);
    void run(Job& job, std::unique_lock<std::mutex>& lock);
    void moveOut(Job& job, std::unique_lock<std::mutex>& lock);
    void moveIn(Job& job, std::unique_lock<std::mutex>& lock);
    template <typename Until>
    bool awaitUntil(std::unique_lock<std::mutex>& lock, Until&& until);
    Nanos emulated(const Job& job, Bytes bytes) const; // 0: it is not
    void pace(const Job& job, Bytes bytes, std::unique_lock<std::mutex>& lock);
    bool concerns(const Job& job, int stage, int microbatch, int slice) const;
    bool under(int stage, int microbatch, int slice) const; // way; under the lock

    Allocator& m_device;
    Allocator m_host;
    Copies m_speeds;
    bool m_paced;
    mutable std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<Job> m_queue[2];   // of the ways out and in; half duplex: all in the first
    const Job* m_running[2] = {}; // null: none
    std::map<Key, Held> m_held;
    std::vector<Done> m_ended;
    std::uint64_t m_freed = 0; // OFFLOADs that have ended
    std::string m_failure;     // "": none
    bool m_awaited = false;    // the rank waits, and frees nothing meanwhile
    bool m_dropping = false, m_ends = false;
    std::function<bool()> m_stopped;
    std::vector<std::thread> m_threads;
};

} // namespace stagewright
