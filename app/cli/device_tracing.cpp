#include "app/cli/device_tracing.h"

#include <algorithm>

namespace stagewright {

DeviceTracing::DeviceTracing(const std::string& backend, bool wanted) : m_hasDevices(backend != "cpu")
{
    if (!m_hasDevices || !wanted) return;
    auto loaded = GpuTracer::load();
    if (!loaded) {
        m_facts.state = TraceState::Failed;
        m_facts.reason = loaded.error().message;
        return;
    }
    m_tracer = *loaded;              // where it does not start it still names ranges for the profiler that is there
    (void)m_tracer->start({}, m_facts); // the facts say why
}

DeviceTracing::~DeviceTracing()
{
    end();
}

void DeviceTracing::begin()
{
    if (m_tracer && m_tracer->started()) (void)m_tracer->take();
}

void DeviceTracing::end()
{
    if (m_tracer) m_tracer->stop(m_facts);
}

std::vector<Nanos> DeviceTracing::untracedSteps(Training& training, std::size_t traced, std::stop_token stop)
{
    std::vector<Nanos> times;
    while (times.size() < std::min<std::size_t>(traced, costSteps)) {
        const auto outcome = training.step(stop);
        if (!outcome) break;
        times.push_back(outcome->wallTime);
    }
    return times;
}

TraceFacts DeviceTracing::factsOf(const Training& training, const std::vector<Nanos>& traced, const std::vector<Nanos>& untraced) const
{
    TraceFacts facts = training.traceFacts();
    facts.state = m_facts.state;
    facts.reason = m_facts.reason;
    facts.cuptiVersion = m_facts.cuptiVersion;
    facts.detached = m_facts.detached;
    facts.setCost(traced, untraced);
    return facts;
}

} // namespace stagewright
