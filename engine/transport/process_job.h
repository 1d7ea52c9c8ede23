// ProcessJob: the processes of one job and what each knows of the others: where they run, how their clocks stand,
// whether they live; small messages, whole. Any thread may call.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/transport/bells.h"
#include "engine/transport/clock_offset.h"
#include "engine/transport/processes.h"
#include "schedules/base/result.h"

namespace stagewright {

struct ProcessPlace {
    std::string host;
    std::string clock;    // processes with the same text share one clock
    std::string pidSpace; // and with this one see each other's process ids
    std::int64_t pid = 0;
    std::string version; // of the program
};

class ProcessJob {
public:
    // Every process of the job calls it: they tell each other where they run and set their clocks. Unavailable where
    // versions differ, naming the hosts; Failed where a process does not answer for a minute.
    static Result<std::shared_ptr<ProcessJob>> meet(std::unique_ptr<Processes> processes, const std::string& version);

    ~ProcessJob(); // waits a moment for what has not gone out
    ProcessJob(const ProcessJob&) = delete;
    ProcessJob& operator=(const ProcessJob&) = delete;

    Processes& processes() { return *m_processes; }
    int index() const { return m_processes->index(); }
    int count() const { return m_processes->count(); }
    const ProcessPlace& placeOf(int process) const { return m_places[static_cast<std::size_t>(process)]; }
    std::string nameOf(int process) const; // "process 4711 on host a"
    bool oneHost() const;
    int cores() const { return m_cores; } // of this host, that its processes may use together

    // As measured when the job began; known in the first process only. Of processes that share a clock it is not
    // applied: clockOf() is exact then.
    const ClockOffset& measuredClock(int process) const { return m_clocks[static_cast<std::size_t>(process)]; }
    ClockOffset clockOf(int process) const;
    bool sharesClock(int process) const; // with the first process

    // Tags of one training: the first of so many. The same in every process that asks in the same order.
    Result<int> reserveTags(std::int64_t count);

    // Every process calls it: the bytes that the first one gives. Failed where they do not come.
    Result<std::vector<std::byte>> fromFirst(std::vector<std::byte> own);
    // Likewise: the first one gets what each gives, by process; the others nothing.
    Result<std::vector<std::vector<std::byte>>> toFirst(std::vector<std::byte> own);

    // Copies the bytes; hear() gives nothing where nothing has come.
    void say(int to, int tag, std::vector<std::byte> bytes);
    std::optional<std::vector<std::byte>> hear(int from, int tag);
    void tidy(); // forgets what has gone out

    // All processes come to it; nothing can be said after it.
    void close();

    // That it has ended, or was given up; the former is only known of processes that share this one's process ids.
    bool hasEnded(int process) const;
    void giveUp(int process); // it does not answer any more. Any thread

    // As Processes, and what is sent or taken wakes the other process where it waits on this machine.
    Processes::Request send(int to, int tag, const void* data, std::size_t bytes, bool met = false);
    void taken(int from); // a message of its has been received

    // Until done() says so, which it is asked when a message may have come and at the latest every millisecond (or,
    // without bells, after short sleeps). False once stopped() does, or after atMost (< 0: never).
    template <typename Done, typename Stopped>
    bool await(Done&& done, Stopped&& stopped, Nanos atMost = -1) const
    {
        Pause pause(*this, atMost);
        for (;;) {
            pause.listen();
            if (done()) return true;
            if (stopped() || !pause.again()) return false;
        }
    }

private:
    class Pause {
    public:
        Pause(const ProcessJob& job, Nanos atMost);
        void listen(); // before it is asked
        bool again();  // false: the time is over

    private:
        const ProcessJob& m_job;
        int m_turns = 0;
        int m_looks = 0; // before it sleeps again
        std::uint32_t m_heard = 0;
        Nanos m_end;
    };
    struct Outgoing {
        Processes::Request request;
        std::vector<std::byte> bytes;
    };
    explicit ProcessJob(std::unique_ptr<Processes> processes) : m_processes(std::move(processes)) {}
    void awaitOutgoing();
    Result<std::vector<std::byte>> hearSoon(int from, int tag);
    Result<void> exchangePlaces(const std::string& version);
    Result<void> setClocks();
    Result<void> hangBells();

    std::unique_ptr<Processes> m_processes;
    std::unique_ptr<Bells> m_bells; // null: none
    std::vector<ProcessPlace> m_places;
    std::vector<ClockOffset> m_clocks;
    int m_cores = 1;
    std::atomic<int> m_givenUp = -1;
    bool m_crowded = false; // more processes than cores on this host
    std::mutex m_mutex;
    std::int64_t m_nextTag = 8; // the job's own come first
    std::vector<Outgoing> m_outgoing;
};

} // namespace stagewright
