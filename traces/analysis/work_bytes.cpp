#include "traces/analysis/work_bytes.h"

#include <algorithm>

namespace stagewright {

std::string workBytesCounter(const std::string& track, Lane lane)
{
    return track + ", " + std::string(toText(lane)) + " bytes"; // kernels and copies of a stream are tracks of one name
}

WorkBytes::WorkBytes(const Timeline& timeline) : m_timeline(timeline)
{
    std::map<std::pair<int, std::string>, const Counter*> byName;
    for (const Counter& counter : timeline.counters())
        if (isWorkBytes(counter)) byName[{counter.rank, counter.name}] = &counter;
    if (byName.empty()) return;
    for (const Track& track : timeline.tracks())
        if (const auto found = byName.find({track.rank, workBytesCounter(track.name, track.lane)});
            found != byName.end())
            m_ofTrack[&track] = found->second;
}

std::optional<Bytes> WorkBytes::of(SpanId id) const
{
    if (m_ofTrack.empty()) return std::nullopt;
    const auto found = m_ofTrack.find(&m_timeline.trackOf(id));
    if (found == m_ofTrack.end()) return std::nullopt;
    const Nanos start = m_timeline.spans()[id].start;
    const auto& samples = found->second->samples;
    auto at = std::lower_bound(samples.begin(), samples.end(), start,
                               [](const CounterSample& sample, Nanos time) { return sample.time < time; });
    // Several spans may start together: each has its own sample.
    for (SpanId before = id; before > found->first->begin && m_timeline.spans()[before - 1].start == start; --before)
        if (at != samples.end() && at + 1 != samples.end() && (at + 1)->time == start) ++at;
    if (at == samples.end() || at->time != start) return std::nullopt;
    return static_cast<Bytes>(at->value);
}

} // namespace stagewright
