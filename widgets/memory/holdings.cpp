#include "widgets/memory/holdings.h"

#include <algorithm>
#include <tuple>

namespace stagewright {

namespace {

constexpr std::size_t checkpointEvery = 1024;

} // namespace

// `held` stays in the order in which holdings started.
void Holdings::apply(std::vector<Holding>& held, const Event& event)
{
    const auto at = std::find_if(held.begin(), held.end(), [&](const Holding& one) {
        return one.stage == event.stage && one.microbatch == event.microbatch;
    });
    if (at == held.end()) {
        if (event.delta == 0) return;
        held.push_back({event.stage, event.microbatch, event.step, event.delta, event.time, event.time});
        return;
    }
    at->bytes += event.delta;
    if (at->bytes == 0) held.erase(at);
}

Holdings::Holdings(const Timeline& timeline, int rank, const std::vector<bool>& shown)
{
    if (rank < 0 || rank >= timeline.ranks()) return;
    for (const MemoryEvent& event : timeline.memoryOf(rank)) {
        const auto category = static_cast<std::size_t>(event.category);
        if (category < shown.size() && shown[category])
            m_events.push_back({event.time, event.delta, event.microbatch, event.step, event.stage});
    }
    std::vector<Holding> held, most; // most: the maximum of each of `held`
    for (std::size_t i = 0; i < m_events.size(); ++i) {
        if (i % checkpointEvery == 0) m_checkpoints.push_back(held);
        const Event& event = m_events[i];
        const std::size_t before = held.size();
        const auto isIt = [&](const Holding& one) {
            return one.stage == event.stage && one.microbatch == event.microbatch;
        };
        const auto known = static_cast<std::size_t>(std::find_if(held.begin(), held.end(), isIt) - held.begin());
        apply(held, event);
        if (held.size() > before) {
            most.push_back(held.back());
        } else if (held.size() < before) {
            most[known].until = event.time;
            m_all.push_back(most[known]);
            most.erase(most.begin() + static_cast<std::ptrdiff_t>(known));
        } else if (known < held.size()) {
            most[known].bytes = std::max(most[known].bytes, held[known].bytes);
        }
    }
    for (Holding& one : most) {
        one.until = std::max(timeline.end(), m_events.back().time);
        m_all.push_back(one);
    }
    std::stable_sort(m_all.begin(), m_all.end(), [](const Holding& a, const Holding& b) {
        return std::tie(a.microbatch, a.since) < std::tie(b.microbatch, b.since);
    });
}

std::vector<Holding> Holdings::at(Nanos time) const
{
    const auto after =
        std::upper_bound(m_events.begin(), m_events.end(), time, [](Nanos t, const Event& e) { return t < e.time; });
    const auto count = static_cast<std::size_t>(after - m_events.begin());
    if (count == 0) return {};
    const std::size_t from = (count - 1) / checkpointEvery;
    std::vector<Holding> held = m_checkpoints[from];
    for (std::size_t i = from * checkpointEvery; i < count; ++i) apply(held, m_events[i]);
    std::stable_sort(held.begin(), held.end(), [](const Holding& a, const Holding& b) { return a.since < b.since; });
    return held;
}

std::vector<Holding> Holdings::of(int microbatch, int step) const
{
    std::vector<Holding> found;
    auto at = std::lower_bound(m_all.begin(), m_all.end(), microbatch,
                               [](const Holding& one, int wanted) { return one.microbatch < wanted; });
    for (; at != m_all.end() && at->microbatch == microbatch; ++at) {
        if (step < 0 || at->step == step) found.push_back(*at);
    }
    return found;
}

} // namespace stagewright
