#include "engine/training/run_control.h"

#include <chrono>

namespace stagewright {

RunControl::RunControl(int ranks, int permits) : m_ranks(ranks), m_permits(permits), m_freePermits(permits) {}

void RunControl::stop(Error error)
{
    {
        const std::lock_guard lock(m_mutex);
        if (!m_error) m_error = std::move(error);
        m_stopped.store(true, std::memory_order_release);
    }
    m_met.notify_all();
    m_permitFree.notify_all();
    m_wake.notify_all();
}

std::optional<Error> RunControl::error() const
{
    const std::lock_guard lock(m_mutex);
    return m_error;
}

bool RunControl::takePermit()
{
    if (m_permits < 1) return !stopped();
    std::unique_lock lock(m_mutex);
    m_permitFree.wait(lock, [this] { return m_freePermits > 0 || stopped(); });
    if (stopped()) return false;
    --m_freePermits;
    return true;
}

void RunControl::givePermit()
{
    if (m_permits < 1) return;
    {
        const std::lock_guard lock(m_mutex);
        ++m_freePermits;
    }
    m_permitFree.notify_one();
}

bool RunControl::sleepUntil(Nanos time)
{
    const std::chrono::steady_clock::time_point until(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::nanoseconds(time)));
    std::unique_lock lock(m_mutex);
    m_wake.wait_until(lock, until, [this] { return stopped(); });
    return !stopped();
}

} // namespace stagewright
