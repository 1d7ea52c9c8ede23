#include "engine/transport/transport.h"

#include <chrono>
#include <thread>

#include "profiler/record/clock.h"

namespace stagewright {

// Looks again and again: messages of other processes ring no bell that messages from here ring, too.
bool Transport::awaitAny(int rank, std::span<const MessageKey> keys, bool sleeps, const std::function<bool()>& stopped,
                         std::vector<std::pair<std::size_t, Nanos>>& came)
{
    constexpr std::chrono::microseconds nap{20};
    for (;;) {
        const Nanos now = monotonicNow();
        for (std::size_t i = 0; i < keys.size(); ++i)
            if (ready(rank, keys[i])) came.emplace_back(i, now);
        if (!came.empty() || !sleeps) return true;
        if (stopped()) return false;
        std::this_thread::sleep_for(nap);
    }
}

} // namespace stagewright
