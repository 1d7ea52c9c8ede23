#include "traces/import/perfetto/trace_clocks.h"

#include <algorithm>
#include <vector>

#include "schedules/base/time_limits.h"
#include "traces/export/perfetto_fields.h"
#include "traces/import/perfetto/wire.h"

namespace stagewright {

namespace pf = perfetto;

bool PerfettoClocks::take(std::string_view bytes, PerfettoSequence& sequence)
{
    struct Reading {
        std::uint32_t id = 0;
        std::int64_t time = 0, multiplier = 1;
        bool incremental = false;
    };
    std::vector<Reading> readings;
    Fields<pf::ClockSnapshot> snapshot(bytes.data(), bytes.size());
    while (snapshot.next()) {
        if (snapshot.tag() != pf::ClockSnapshot::clock || !snapshot.isBytes()) continue;
        Fields<pf::Clock> clock(snapshot.bytes());
        Reading& reading = readings.emplace_back();
        while (clock.next())
            if (!clock.isNumber())
                continue;
            else if (clock.tag() == pf::Clock::id)
                reading.id = static_cast<std::uint32_t>(clock.number());
            else if (clock.tag() == pf::Clock::timestamp)
                reading.time = static_cast<std::int64_t>(clock.number());
            else if (clock.tag() == pf::Clock::isIncremental)
                reading.incremental = (clock.number() != 0);
            else if (clock.tag() == pf::Clock::multiplier)
                reading.multiplier = std::clamp<std::int64_t>(clock.whole(), 1, 1'000'000'000);
    }
    const auto nanos = [](const Reading& reading) { return reading.time * reading.multiplier; };
    std::erase_if(readings, [](const Reading& reading) {
        return reading.time < 0 || reading.time > farthestReading / reading.multiplier;
    });
    const auto boot = std::find_if(readings.begin(), readings.end(),
                                   [](const Reading& reading) { return reading.id == pf::boottime; });
    if (boot == readings.end()) return false;
    const bool unsaid = !m_epoch;
    for (const Reading& reading : readings) {
        const PerfettoSequence::Clock clock{nanos(*boot) - nanos(reading), reading.multiplier, reading.incremental,
                                            reading.time};
        if (reading.id >= 64 && reading.id < 128)
            sequence.clocks[reading.id] = clock;
        else if (reading.id != pf::boottime)
            m_clocks[reading.id] = clock;
        if (reading.id == pf::realtime && !m_epoch) m_epoch = -clock.offset;
    }
    return unsaid && m_epoch.has_value();
}

std::optional<Nanos> PerfettoClocks::timeOf(std::uint64_t time, std::uint32_t id, PerfettoSequence& sequence)
{
    if (time > static_cast<std::uint64_t>(farthestReading)) return std::nullopt;
    const auto value = static_cast<std::int64_t>(time);
    if (id == 0 || id == pf::boottime) return value;
    auto& clocks = id >= 64 && id < 128 ? sequence.clocks : m_clocks;
    const auto found = clocks.find(id);
    if (found == clocks.end()) {
        m_unknown.insert(id);
        ++m_ofUnknown;
        return value;
    }
    PerfettoSequence::Clock& clock = found->second;
    std::int64_t reading = value;
    if (clock.incremental) {
        if (value > farthestReading - clock.last) return std::nullopt;
        reading = clock.last += value;
    }
    if (reading > farthestReading / clock.multiplier) return std::nullopt;
    return reading * clock.multiplier + clock.offset;
}

} // namespace stagewright
