// PartTimer: how long the parts of a stage (embedding, blocks, head) take within its ops, while requested. One reading
// of the clock per part, no span: on the clock that the run's ops are timed by. On the rank's thread but for what says
// otherwise.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "profiler/record/device_clock.h"
#include "schedules/model/kinds.h"

namespace stagewright::layers {

class PartTimer {
public:
    static constexpr std::size_t mostSamples = 64; // of a part and kind

    // Between ops, any thread. clock: of the device that computes; null: the thread's CPU time, or the wall clock.
    void start(DeviceClock* clock, bool cpu, std::size_t parts);
    void stop() { m_on = false; }

    // Only an op over one whole microbatch is timed.
    void begin(bool whole)
    {
        m_timing = m_on && whole;
        if (m_timing) m_last = now();
    }
    void lap(OpKind kind, std::size_t part)
    {
        if (!m_timing) return;
        const std::int64_t at = now();
        auto& samples = m_samples[part].kinds[static_cast<std::size_t>(kind)];
        if (samples.size() < mostSamples) samples.emplace_back(m_last, at);
        m_last = at;
    }

    // Between ops, any thread, while nothing is under way and before a device forgets its stamps: once a step.
    void settle();
    // By part; 0: never timed. Any thread, settled.
    std::vector<std::array<Nanos, opKindRoom>> medians() const;

private:
    std::int64_t now() const;

    struct Part {
        std::array<std::vector<std::pair<std::int64_t, std::int64_t>>, opKindRoom> kinds; // clock readings, not settled
    };
    std::vector<Part> m_samples;
    std::vector<std::array<std::vector<Nanos>, opKindRoom>> m_settled;
    DeviceClock* m_clock = nullptr;
    std::int64_t m_last = 0;
    bool m_cpu = false;
    bool m_on = false;
    bool m_timing = false;
};

} // namespace stagewright::layers
