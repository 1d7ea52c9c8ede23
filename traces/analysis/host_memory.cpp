#include "traces/analysis/host_memory.h"

#include <algorithm>

#include "schedules/timeline/host_memory.h"

namespace stagewright {

std::vector<Bytes> hostPeakByRank(const Timeline& timeline, int step)
{
    std::vector<Bytes> peaks;
    for (const Counter& counter : timeline.counters()) {
        if (counter.name != hostMemoryCounter || counter.rank < 0 || counter.rank >= timeline.ranks()) continue;
        peaks.resize(static_cast<std::size_t>(timeline.ranks()));
        const auto within = [&](Nanos time) {
            return step < 0 ||
                   std::any_of(timeline.stepMarks().begin(), timeline.stepMarks().end(), [&](const auto& mark) {
                       return mark.step == step && mark.rank == counter.rank && time >= mark.begin && time <= mark.end;
                   });
        };
        Bytes& peak = peaks[static_cast<std::size_t>(counter.rank)];
        for (const CounterSample& sample : counter.samples)
            if (within(sample.time)) peak = std::max(peak, static_cast<Bytes>(sample.value));
    }
    return peaks;
}

} // namespace stagewright
