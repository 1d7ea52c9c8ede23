// How many bytes kernels of communication, copies and messages moved, where a trace says. A timeline keeps them as
// counters, one for each track, with a sample at the start of each span whose size is known.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "schedules/timeline/timeline.h"

namespace stagewright {

// of these counters: no level that lasts until the next sample
inline constexpr std::string_view workBytesUnit = "bytes moved";

std::string workBytesCounter(const std::string& track, Lane lane); // its name
inline bool isWorkBytes(const Counter& counter) { return counter.unit == workBytesUnit; }

class WorkBytes {
public:
    explicit WorkBytes(const Timeline& timeline);
    bool any() const { return !m_ofTrack.empty(); }
    std::optional<Bytes> of(SpanId span) const; // O(log samples)

private:
    const Timeline& m_timeline;
    std::map<const Track*, const Counter*> m_ofTrack;
};

// "12.5 GB/s" as a number: 10⁹ bytes a second; empty where no time passed.
inline std::optional<double> gigabytesPerSecond(Bytes bytes, Nanos time)
{
    return time > 0 ? std::optional(static_cast<double>(bytes) / static_cast<double>(time)) : std::nullopt;
}

} // namespace stagewright
