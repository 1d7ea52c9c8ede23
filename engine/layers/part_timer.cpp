#include "engine/layers/part_timer.h"

#include "profiler/record/clock.h"
#include "schedules/base/median.h"

namespace stagewright::layers {

void PartTimer::start(DeviceClock* clock, bool cpu, std::size_t parts)
{
    m_clock = clock;
    m_cpu = cpu;
    m_on = true;
    m_samples.assign(parts, {});
    for (Part& part : m_samples)
        for (const KindTraits& kind : allKinds())
            if (isForward(kind.kind) || isSplitBackward(kind.kind))
                part.kinds[static_cast<std::size_t>(kind.kind)].reserve(mostSamples);
    m_settled.assign(parts, {});
}

std::int64_t PartTimer::now() const
{
    if (m_clock) return m_clock->stamp();
    return m_cpu ? threadCpuNow() : monotonicNow();
}

void PartTimer::settle()
{
    for (std::size_t part = 0; part < m_samples.size(); ++part)
        for (std::size_t kind = 0; kind < allKinds().size(); ++kind) {
            auto& settled = m_settled[part][kind];
            for (const auto& [from, to] : m_samples[part].kinds[kind])
                if (settled.size() < 4 * mostSamples)
                    settled.push_back(m_clock ? m_clock->timeOf(to) - m_clock->timeOf(from) : to - from);
            m_samples[part].kinds[kind].clear();
        }
}

std::vector<std::array<Nanos, opKindRoom>> PartTimer::medians() const
{
    std::vector<std::array<Nanos, opKindRoom>> out(m_settled.size());
    for (std::size_t part = 0; part < m_settled.size(); ++part)
        for (std::size_t kind = 0; kind < allKinds().size(); ++kind)
            if (!m_settled[part][kind].empty()) out[part][kind] = lowerMedian(m_settled[part][kind]);
    return out;
}

} // namespace stagewright::layers
