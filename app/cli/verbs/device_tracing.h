// DeviceTracing: the GPU trace of a recording, one for all its trainings, as CUPTI serves one at a time. Without one
// the recording continues, and its runs say why.
#pragma once

#include <memory>
#include <stop_token>
#include <vector>

#include "engine/training/training.h"
#include "profiler/cupti/gpu_tracer.h"

namespace stagewright {

class DeviceTracing {
public:
    // wanted: the devices of `backend` are to be traced. The CPU's ops need none. kept: CUPTI's buffers stay in memory,
    // for keep().
    DeviceTracing(const std::string& backend, bool wanted, bool kept);
    ~DeviceTracing();
    DeviceTracing(const DeviceTracing&) = delete;
    DeviceTracing& operator=(const DeviceTracing&) = delete;

    bool hasDevices() const { return m_hasDevices; }
    const std::shared_ptr<GpuTracer>& tracer() const { return m_tracer; } // for TrainingOptions; null: none
    // the trainings are made: what they set up belongs to no step
    void begin();
    void end(); // no training is running
    // After end(): writes CUPTI's buffers (docs/formats.md), whole or not at all. Unavailable where nothing was traced.
    Result<void> keep(const std::string& file) const;

    // After end(): steps that a training makes more, untraced, to learn what tracing costs; stops at the first that
    // fails.
    static constexpr int costSteps = 3;
    static std::vector<Nanos> untracedSteps(Training& training, std::size_t traced, const std::stop_token& stop);
    // Facts of one training. traced, untraced: wall times of steps, as costSteps of each are enough.
    TraceFacts factsOf(const Training& training, const std::vector<Nanos>& traced,
                       const std::vector<Nanos>& untraced) const;

private:
    bool m_hasDevices;
    std::shared_ptr<GpuTracer> m_tracer;
    TraceFacts m_facts; // state, reason, version, detached
};

} // namespace stagewright
