#include "app/cli/verbs/device_tracing.h"

#include <algorithm>

#include <fmt/format.h>

#include "traces/format/atomic_file.h"

namespace stagewright {

DeviceTracing::DeviceTracing(const std::string& backend, bool wanted, bool kept)
    : m_hasDevices(traitsOf(backend).hasDevices)
{
    if (!m_hasDevices || !wanted) return;
    auto loaded = GpuTracer::load();
    if (!loaded) {
        m_facts.state = TraceState::Failed;
        m_facts.reason = loaded.error().message;
        return;
    }
    m_tracer = *loaded; // if it does not start, it still names ranges for the attached profiler
    GpuTraceOptions options;
    options.dump = kept;
    (void)m_tracer->start(options, m_facts); // the facts say why
}

DeviceTracing::~DeviceTracing() { end(); }

void DeviceTracing::begin()
{
    if (m_tracer && m_tracer->started()) (void)m_tracer->take();
}

void DeviceTracing::end()
{
    if (m_tracer) m_tracer->stop(m_facts);
}

Result<void> DeviceTracing::keep(const std::string& file) const
{
    if (!m_tracer || m_facts.state != TraceState::Attached)
        return fail(
            ErrorCode::Unavailable, fmt::format("file {}: no GPU was traced, so there are no records to keep", file),
            "the run's gpu_trace says why: stagewright sql RUN \"SELECT value FROM run_text WHERE key = 'gpu_trace'\"");
    auto bytes = m_tracer->dump();
    if (!bytes) return tl::unexpected(std::move(bytes.error()).with("file " + file));
    return writeFileAtomically(file, *bytes);
}

std::vector<Nanos> DeviceTracing::untracedSteps(Training& training, std::size_t traced, const std::stop_token& stop)
{
    std::vector<Nanos> times;
    while (times.size() < std::min<std::size_t>(traced, costSteps)) {
        const auto outcome = training.step(stop);
        if (!outcome) break;
        times.push_back(outcome->wallTime);
    }
    return times;
}

TraceFacts DeviceTracing::factsOf(const Training& training, const std::vector<Nanos>& traced,
                                  const std::vector<Nanos>& untraced) const
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
