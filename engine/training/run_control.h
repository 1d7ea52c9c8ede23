// RunControl: how the ranks of a training meet, take permits and stop. Every wait sleeps and ends at once on stop().
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "schedules/base/result.h"
#include "schedules/base/units.h"

namespace stagewright {

// What a rank is doing, for the watchdog's words.
enum class RankPhase : int {
    AtRest,
    Preparing,
    Waiting,
    Permit,
    Running,
    Sleeping,
    Barrier,
    Norm,
    Optimizer,
    Norms,
    Copies,
    Message,
    Reload,
};

struct RankStatus {
    std::atomic<RankPhase> phase = RankPhase::AtRest;
    std::atomic<int> position = -1;
    std::atomic<std::uint64_t> progress = 0; // grows with every change

    void set(RankPhase newPhase, int newPosition = -1)
    {
        position.store(newPosition, std::memory_order_relaxed);
        phase.store(newPhase, std::memory_order_relaxed);
        progress.fetch_add(1, std::memory_order_relaxed);
    }
};

class RunControl {
public:
    RunControl(int ranks, int permits); // permits: ops at a time; < 1: no limit

    // Any thread. The first error stays. Waits below return false from now on.
    void stop(Error error);
    bool stopped() const { return m_stopped.load(std::memory_order_acquire); }
    std::optional<Error> error() const;

    // All ranks meet; the last one to come runs `last` before any goes on.
    template <typename Last>
    bool meet(const Last& last)
    {
        std::unique_lock lock(m_mutex);
        if (stopped()) return false;
        if (++m_arrived == m_ranks) {
            m_arrived = 0;
            ++m_round;
            last();
            m_met.notify_all();
            return true;
        }
        const std::uint64_t round = m_round;
        m_met.wait(lock, [&] { return m_round != round || stopped(); });
        return m_round != round;
    }
    bool takePermit();
    void givePermit();
    bool sleepUntil(Nanos time); // CLOCK_MONOTONIC
    int permits() const { return m_permits; }

private:
    mutable std::mutex m_mutex;
    std::condition_variable m_met;
    std::condition_variable m_permitFree;
    std::condition_variable m_wake;
    std::atomic<bool> m_stopped = false;
    std::optional<Error> m_error;
    int m_ranks;
    int m_permits;
    int m_freePermits;
    int m_arrived = 0;
    std::uint64_t m_round = 0;
};

// Takes a permit for a scope.
class Permit {
public:
    explicit Permit(RunControl& control) : m_control(control), m_held(control.takePermit()) {}
    ~Permit()
    {
        if (m_held) m_control.givePermit();
    }
    Permit(const Permit&) = delete;
    Permit& operator=(const Permit&) = delete;
    explicit operator bool() const { return m_held; }

private:
    RunControl& m_control;
    bool m_held;
};

} // namespace stagewright
