// CuptiSession: CUPTI switched on, its buffers taken and decoded, and switched off again. One at a time in a process
// (CUPTI's callbacks carry no user data). start, take and stop from one thread; push and pop from the threads that
// launch.
//
// Threads: CUPTI asks for buffers and hands full ones back on threads of its own. Those callbacks only move pointers
// under a lock; a parser thread decodes. No call of CUPTI is made while the lock is held: CUPTI holds locks of its own
// around its callbacks. Clock: the timestamp callback gives CLOCK_MONOTONIC, as RankRecorder stamps. It is registered
// once in a process: each further registration leaves a record with a wrong time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "profiler/cupti/cupti_dump.h"
#include "profiler/cupti/gpu_record.h"
#include "profiler/cupti/module/cupti_functions.h"

namespace stagewright::cupti {

struct SessionOptions {
    std::size_t bufferBytes = std::size_t{4} << 20; // CUPTI advises 1 to 10 MiB
    // of all buffers that are out or not yet decoded; then nothing is recorded
    std::size_t largestBytes = std::size_t{128} << 20;
    bool events = false; // CUDA event records with device times
    bool dump = false;   // keep the buffers as they were filled
};

enum class StartState : std::uint8_t {
    Started,
    Conflict,
    Failed,
};

class CuptiSession {
public:
    explicit CuptiSession(const CuptiFunctions& functions = {});
    ~CuptiSession(); // stops
    CuptiSession(const CuptiSession&) = delete;
    CuptiSession& operator=(const CuptiSession&) = delete;

    // Conflict: another profiler has subscribed. Nothing is left enabled where it is not Started; reason() says why.
    StartState start(const SessionOptions& options);
    const std::string& reason() const { return m_reason; }

    // Around launches, on the thread that launches. stack 0: op, 1: send, 2: receive.
    void push(int stack, std::uint64_t id) { m_functions.push(kindOf(stack), id); }
    void pop(int stack)
    {
        std::uint64_t last = 0;
        m_functions.pop(kindOf(stack), &last);
    }

    // All records since the last call whose work has ended; synchronise the devices first. Waits for the parser.
    GpuTrace take();
    // Flushes by force, disables every kind, unsubscribes; records not yet taken remain for take().
    void stop();
    bool started() const { return m_started; }
    // After stop(): every kind was disabled, every buffer came back, the subscription is given up.
    bool detached() const { return m_detached; }
    const CuptiDump& dump() const { return m_dump; } // after stop()

private:
    struct Full {
        std::unique_ptr<std::uint8_t[]> bytes;
        std::size_t valid;
    };

    static CUpti_ExternalCorrelationKind kindOf(int stack)
    {
        return static_cast<CUpti_ExternalCorrelationKind>(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 + stack);
    }
    static void CUPTIAPI requested(std::uint8_t** buffer, std::size_t* size, std::size_t* records);
    static void CUPTIAPI completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t size,
                                   std::size_t valid);

    CUptiResult enableAll(const SessionOptions& options, const char*& what);
    bool disableAll();
    StartState failed(const char* what, CUptiResult result);
    void flush(std::uint32_t flag);
    void parse();

    CuptiFunctions m_functions;
    SessionOptions m_options;
    std::string m_reason;
    bool m_started = false;
    bool m_detached = false;
    CUpti_SubscriberHandle m_subscriber = nullptr;
    std::vector<CUpti_ActivityKind> m_enabled;
    std::thread m_parser;

    std::mutex m_lock; // of what follows
    std::condition_variable m_changed;
    std::vector<std::unique_ptr<std::uint8_t[]>> m_free;
    std::vector<std::unique_ptr<std::uint8_t[]>> m_out; // at CUPTI
    std::deque<Full> m_full;
    bool m_parsing = false;
    bool m_end = false;
    bool m_capped = false;
    GpuTrace m_trace;
    CuptiDump m_dump;
};

} // namespace stagewright::cupti
