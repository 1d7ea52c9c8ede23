// Threads and streams of a JSON trace by the process and thread named in its events.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traces/foreign/foreign_trace.h"

namespace stagewright {

class TraceThreads {
public:
    // The number of a thread, or of a stream, in ForeignRank::threads; a new one is added there.
    std::uint32_t of(std::string_view process, std::string_view thread, bool device, ForeignRank& rank);
    // From metadata events, in any position.
    void nameProcess(std::string_view process, std::string_view name);
    void nameThread(std::string_view process, std::string_view thread, std::string_view name);

    bool nameDevices() const { return m_devices; }                  // some process is one of XLA's
    std::string_view processName(const std::string& process) const; // "": it has none
    std::map<std::string_view, std::string_view> threadNames(const std::string& process) const; // by thread

    bool oneProcess() const;
    // Whether processes are ranks: some name holds a rank's number ("rank 3", "worker 1"), or none has a name. Others
    // are threads, tensors, devices.
    bool nameRanks() const;
    std::map<std::string, int> namedRanks() const; // by process, of those whose name holds one
    // for the threads of the host; ofProcesses: with that of their process
    void useNames(ForeignRank& rank, bool ofProcesses) const;
    // Every process is a rank: by the number in its name, else in order of their numbers. One without a number where
    // others have one belongs to the first rank. Counters, counts and notes are the first one's.
    std::vector<ForeignRank> byProcess(ForeignRank rank) const;
    const std::vector<std::string>& processes() const { return m_processes; } // by thread
    const std::vector<std::string>& threads() const { return m_threads; }     // what the trace calls it, likewise

private:
    std::string laneOf(const std::string& process, const std::string& threadName, const std::string& otherwise) const;

    std::unordered_map<std::string, std::uint32_t> m_numbers; // by process, thread and whether it is a stream
    std::vector<std::string> m_processes;                     // by number
    std::vector<std::string> m_threads;                       // likewise
    std::map<std::string, std::string> m_processNames;
    std::map<std::string, std::string> m_threadNames;
    bool m_devices = false; // some process is "/device:…"
    struct Last {           // of the host and of streams, whose events take turns
        bool known = false;
        std::string process, thread;
        std::uint32_t number = 0;
    };
    std::array<Last, 2> m_last;
};

// Streams of a rank with several GPUs have the GPU in their name: "GPU 1 stream 7".
void nameStreamsByGpu(ForeignRank& rank);

} // namespace stagewright
