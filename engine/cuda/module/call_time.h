// How long work of a queue takes on the device, for choices by measurement.
#pragma once

#include <algorithm>
#include <limits>

#include "engine/cuda/module/queue.cuh"

namespace stagewright::cuda::module {

// Another way is taken if it needs less than this share of the usual one's time: nearer is noise.
inline constexpr double worthwhile = 0.97;

// Two events, destroyed with it. Not for partitions: their events belong to their own context.
class CallTimer {
public:
    explicit CallTimer(const StagewrightQueue& queue) : m_queue(queue)
    {
        m_ready = cudaEventCreate(&m_begin) == cudaSuccess && cudaEventCreate(&m_end) == cudaSuccess;
    }
    CallTimer(const CallTimer&) = delete;
    CallTimer& operator=(const CallTimer&) = delete;
    ~CallTimer()
    {
        for (const cudaEvent_t event : {m_begin, m_end})
            if (event) (void)cudaEventDestroy(event);
        (void)cudaGetLastError();
    }

    // Seconds of one call, by the shortest of three batches of about `expected` · calls = 1 ms; infinity where a call
    // fails. call(): asks the queue's compute lane for the work; whether that succeeded. The first call, which may load
    // code, does not count.
    template <typename Call>
    double seconds(double expected, Call&& call) const
    {
        constexpr int batches = 3;
        const int calls = std::clamp(static_cast<int>(1e-3 / expected), 2, 100);
        double best = std::numeric_limits<double>::infinity();
        bool runs = m_ready && call();
        for (int batch = 0; runs && batch < batches; ++batch) {
            runs = cudaEventRecord(m_begin, m_queue.compute()) == cudaSuccess;
            for (int i = 0; runs && i < calls; ++i) runs = call();
            float milliseconds = 0;
            runs = runs && cudaEventRecord(m_end, m_queue.compute()) == cudaSuccess &&
                   cudaEventSynchronize(m_end) == cudaSuccess &&
                   cudaEventElapsedTime(&milliseconds, m_begin, m_end) == cudaSuccess;
            if (runs) best = std::min(best, 1e-3 * milliseconds / calls);
        }
        return runs ? best : std::numeric_limits<double>::infinity();
    }

private:
    const StagewrightQueue& m_queue;
    cudaEvent_t m_begin = nullptr;
    cudaEvent_t m_end = nullptr;
    bool m_ready = false;
};

} // namespace stagewright::cuda::module
