// The spans that ran on devices: those of the lanes Kernel and Copy.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "schedules/timeline/timeline.h"

namespace stagewright {

// visit(track, id, span) for each of them in the step, track by track in order of time.
template <typename Visit>
void eachDeviceSpan(const Timeline& timeline, int step, Visit&& visit)
{
    for (const Track& track : timeline.tracks()) {
        if (!isDeviceLane(track.lane)) continue;
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id)
            if (const Span& span = timeline.spans()[id]; span.step == step) visit(track, id, span);
    }
}

// The GPU that a track of a device says in its name, "rank 0 GPU 1 stream 7"; −1: none.
inline int gpuOf(const Track& track)
{
    constexpr std::string_view word = "GPU ";
    const std::size_t at = track.name.find(word);
    int gpu = -1;
    if (at == std::string::npos) return -1;
    const auto [end, error] =
        std::from_chars(track.name.data() + at + word.size(), track.name.data() + track.name.size(), gpu);
    return error == std::errc() && gpu >= 0 ? gpu : -1;
}

// The devices of a timeline: one for each rank, or for each of its GPUs where a rank has several. In order of ranks and
// GPUs.
class Devices {
public:
    struct Device {
        int rank = 0;
        int gpu = -1; // −1: the only one
    };
    explicit Devices(const Timeline& timeline) : m_timeline(timeline), m_of(timeline.tracks().size(), 0)
    {
        std::vector<std::vector<int>> gpus(static_cast<std::size_t>(std::max(0, timeline.ranks())));
        for (const Track& track : timeline.tracks())
            if (isDeviceLane(track.lane) && track.end > track.begin)
                gpus[static_cast<std::size_t>(track.rank)].push_back(gpuOf(track));
        std::vector<std::size_t> first;
        for (std::size_t rank = 0; rank < gpus.size(); ++rank) {
            std::vector<int>& of = gpus[rank];
            std::sort(of.begin(), of.end());
            of.erase(std::unique(of.begin(), of.end()), of.end());
            first.push_back(m_all.size());
            if (of.size() < 2) of.assign(1, -1);
            for (const int gpu : of) m_all.push_back({static_cast<int>(rank), gpu});
        }
        for (std::size_t t = 0; t < m_of.size(); ++t) {
            const Track& track = timeline.tracks()[t];
            const std::vector<int>& of = gpus[static_cast<std::size_t>(track.rank)];
            const auto place = of.size() < 2 ? of.begin() : std::lower_bound(of.begin(), of.end(), gpuOf(track));
            m_of[t] = first[static_cast<std::size_t>(track.rank)] +
                      (place == of.end() ? 0 : static_cast<std::size_t>(place - of.begin()));
        }
    }
    const std::vector<Device>& all() const { return m_all; }
    std::size_t size() const { return m_all.size(); }
    // a track of the timeline
    std::size_t of(const Track& track) const
    {
        return m_of[static_cast<std::size_t>(&track - m_timeline.tracks().data())];
    }

private:
    const Timeline& m_timeline;
    std::vector<Device> m_all;
    std::vector<std::size_t> m_of; // by track
};

} // namespace stagewright
