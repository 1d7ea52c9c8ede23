#include "traces/import/outliers.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace stagewright {

namespace {

constexpr Nanos minute = 60'000'000'000;
constexpr Nanos hour = 60 * minute;
constexpr Nanos day = 24 * hour;

// How often each minute occurs among the times.
class Minutes {
public:
    void add(Nanos time)
    {
        const std::int64_t at = time / minute - (time % minute < 0 ? 1 : 0);
        if (m_last == nullptr || at != m_lastAt) {
            m_last = &m_counts[at];
            m_lastAt = at;
        }
        ++*m_last;
    }

    struct Bulk { // the minutes that belong together
        std::int64_t first = 0;
        std::int64_t last = 0;
        bool has(Nanos time) const
        {
            const std::int64_t at = time / minute - (time % minute < 0 ? 1 : 0);
            return at >= first && at <= last;
        }
    };
    // Nothing: all times belong together.
    std::optional<Bulk> bulk() const
    {
        struct Cluster {
            Bulk minutes;
            std::int64_t times = 0;
        };
        std::vector<Cluster> clusters;
        for (const auto& [at, times] : m_counts) {
            if (clusters.empty() || at - clusters.back().minutes.last > hour / minute)
                clusters.push_back({{at, at}, 0});
            clusters.back().minutes.last = at;
            clusters.back().times += times;
        }
        if (clusters.size() < 2) return std::nullopt;
        const Cluster most = *std::max_element(clusters.begin(), clusters.end(),
                                               [](const Cluster& a, const Cluster& b) { return a.times < b.times; });
        Bulk out = most.minutes; // and clusters of comparable size with what is between them
        constexpr std::int64_t monthApart = 30 * day / minute;
        for (const Cluster& one : clusters) {
            const std::int64_t apart =
                std::max(one.minutes.first - most.minutes.last, most.minutes.first - one.minutes.last);
            if (one.times * 4 <= most.times || apart >= monthApart) continue;
            out.first = std::min(out.first, one.minutes.first);
            out.last = std::max(out.last, one.minutes.last);
        }
        if (out.first == clusters.front().minutes.first && out.last == clusters.back().minutes.last)
            return std::nullopt;
        return out;
    }

private:
    std::map<std::int64_t, std::int64_t> m_counts;
    std::int64_t m_lastAt = 0;
    std::int64_t* m_last = nullptr;
};

template <typename Take>
void eachTimeOf(const ForeignRank& rank, Take&& take)
{
    for (const auto* spans : {&rank.annotations, &rank.deviceAnnotations, &rank.hostOps})
        for (const ForeignSpan& span : *spans) take(span.start), take(span.end);
    for (const DeviceSpan& span : rank.device) take(span.start), take(span.end);
    for (const Launch& launch : rank.launches) take(launch.time);
    for (const MemoryChangeSeen& seen : rank.memory) take(seen.time);
    for (const CounterSeen& counter : rank.counters)
        for (const CounterSample& sample : counter.samples) take(sample.time);
}

class Taker {
public:
    Taker(ForeignRank& rank, const Minutes::Bulk& bulk) : m_rank(rank), m_bulk(bulk) {}

    void takeAll()
    {
        const std::vector<std::uint32_t> annotations = takeSpans(m_rank.annotations, {"range", "ranges"});
        takeSpans(m_rank.deviceAnnotations, {"range of the device", "ranges of the device"});
        takeSpans(m_rank.hostOps, {"call of the host", "calls of the host"});
        const std::vector<std::uint32_t> device = takeDevice();
        renumber(annotations, device);
        std::int64_t others = 0;
        const auto outside = [&](Nanos time) {
            const bool out = !m_bulk.has(time);
            if (out) ++others, measure(time, time);
            return out;
        };
        std::erase_if(m_rank.launches, [&](const Launch& launch) { return !m_bulk.has(launch.time); });
        std::erase_if(m_rank.memory, [&](const MemoryChangeSeen& seen) { return outside(seen.time); });
        for (CounterSeen& counter : m_rank.counters)
            std::erase_if(counter.samples, [&](const CounterSample& sample) { return outside(sample.time); });
        std::erase_if(m_rank.counters, [](const CounterSeen& counter) { return counter.samples.empty(); });
        if (others > 0) note({"memory event or sample", "memory events or samples"}, others, {});
        for (const auto& [what, taken] : m_taken) note(taken.kind, taken.count, taken.example);
    }

private:
    struct Kind {
        const char* one;
        const char* many;
    };

    static constexpr std::uint32_t gone = 0xffffffffu;
    static constexpr std::size_t mostKept = 1000; // as text

    void measure(Nanos start, Nanos end)
    {
        const Nanos first = m_bulk.first * minute, last = (m_bulk.last + 1) * minute;
        m_farthest = std::max({m_farthest, first - start, end - last});
    }

    bool isOut(const ForeignSpan& span, const Kind& kind)
    {
        if (m_bulk.has(span.start) && m_bulk.has(span.end)) return false;
        const std::string& name = m_rank.names[span.name];
        measure(span.start, span.end);
        Taken& taken = m_taken.try_emplace(kind.one, Taken{kind, 0, name.substr(0, 80)}).first->second;
        ++taken.count;
        if (m_rank.outliers.size() < mostKept)
            m_rank.outliers.push_back(fmt::format("{} {} on {}: from {} to {} ns", kind.one, name.substr(0, 400),
                                                  m_rank.threads[span.thread].name, span.start, span.end));
        else if (m_rank.outliers.size() == mostKept)
            m_rank.outliers.emplace_back("…");
        return true;
    }

    // Where each is now, by where it was; gone: taken.
    std::vector<std::uint32_t> takeSpans(std::vector<ForeignSpan>& spans, const Kind& kind)
    {
        std::vector<std::uint32_t> now(spans.size(), gone);
        std::uint32_t kept = 0;
        for (std::size_t i = 0; i < spans.size(); ++i)
            if (!isOut(spans[i], kind)) now[i] = kept, spans[kept++] = spans[i];
        spans.resize(kept);
        return now;
    }

    std::vector<std::uint32_t> takeDevice()
    {
        auto& device = m_rank.device;
        std::vector<std::uint32_t> now(device.size(), gone);
        std::uint32_t kept = 0;
        for (std::size_t i = 0; i < device.size(); ++i) {
            if (isOut(device[i], device[i].copy ? Kind{"copy", "copies"} : Kind{"kernel", "kernels"})) continue;
            if (device[i].launchedFrom != noThread && !m_bulk.has(device[i].launched))
                device[i].launchedFrom = noThread, device[i].launched = 0;
            now[i] = kept;
            device[kept++] = device[i];
        }
        device.resize(kept);
        return now;
    }

    void renumber(const std::vector<std::uint32_t>& annotations, const std::vector<std::uint32_t>& device)
    {
        for (auto* const list : {&m_rank.copyBytes, &m_rank.laterCalls})
            std::erase_if(*list, [&](auto& of) { return (of.first = device[of.first]) == gone; });
        std::erase_if(m_rank.messages, [&](ForeignMessage& message) {
            if (!m_bulk.has(message.start) || !m_bulk.has(message.end)) return true;
            if (message.work < 0) return false;
            const std::uint32_t now = (message.device ? device : annotations)[static_cast<std::size_t>(message.work)];
            message.work = now;
            return now == gone;
        });
    }

    void note(const Kind& kind, std::int64_t count, const std::string& example)
    {
        m_rank.notes.push_back(fmt::format(
            "{} {} from everything else by up to {}: left out of lanes and figures{}", count,
            count == 1 ? fmt::format("{} is apart", kind.one) : fmt::format("{} are apart", kind.many),
            farText(m_farthest),
            example.empty() ? std::string()
                            : fmt::format(" and listed as outliers in the run's configuration, such as {}", example)));
    }

    ForeignRank& m_rank;
    Minutes::Bulk m_bulk;
    struct Taken {
        Kind kind;
        std::int64_t count;
        std::string example; // the first one's name
    };
    std::map<std::string, Taken> m_taken;
    Nanos m_farthest = 0;
};

} // namespace

std::string farText(Nanos time)
{
    const double days = static_cast<double>(time) / static_cast<double>(day);
    if (days >= 730) return fmt::format("{:.0f} years", days / 365.25);
    if (days >= 2) return fmt::format("{:.0f} days", days);
    return fmt::format("{:.1f} h", days * 24);
}

void takeOutliers(ForeignRank& rank)
{
    Nanos first = std::numeric_limits<Nanos>::max(), last = std::numeric_limits<Nanos>::min();
    eachTimeOf(rank, [&](Nanos time) { first = std::min(first, time), last = std::max(last, time); });
    if (first > last || last / 2 - first / 2 <= hour / 2) return;
    Minutes minutes;
    eachTimeOf(rank, [&minutes](Nanos time) { minutes.add(time); });
    if (const auto bulk = minutes.bulk()) Taker(rank, *bulk).takeAll();
}

} // namespace stagewright
