#include "traces/fit/fit_durations.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "schedules/base/median.h"
#include "schedules/model/kinds.h"
#include "traces/step/step_ops.h"

namespace stagewright {

namespace {

using Key = std::tuple<OpKind, int, int>;

Key keyOf(const Op& op, int rank) { return {op.kind, op.stage, rank}; }

bool isWhole(const Op& op) { return op.count == 1 && op.half == 0 && op.slice < 0; }

struct Whole {
    int microbatch = 0;
    Nanos duration = 0;
};

struct Samples {
    std::vector<Whole> whole;
    std::vector<Nanos> counted;               // by microbatch
    std::map<int, std::vector<Nanos>> slices; // by slice
    std::map<int, std::vector<Nanos>> halves; // 1, 2
    std::vector<Nanos> parted;                // of pairs, by processor time; as of a whole op
};

struct Pair {
    Op ops[2];
    int rank = 0;
    Nanos duration = 0;
    bool parted = false; // by processor time
};

Nanos medianOf(const std::vector<Whole>& whole)
{
    std::vector<Nanos> durations;
    durations.reserve(whole.size());
    for (const Whole& one : whole) durations.push_back(one.duration);
    return lowerMedian(durations);
}

// The spread of deviations from medians of `count` values each; |deviation| in the vector. Not robust against fewer
// than eight.
double spreadOf(std::vector<double>& deviations)
{
    return deviations.size() < 8 ? 0.0 : 1.4826 * lowerMedian(deviations);
}

class Durations {
public:
    Durations(const Timeline& timeline, int firstStep) : m_timeline(timeline), m_firstStep(firstStep)
    {
        if (timeline.schedule()) m_starts = sliceStartsOf(*timeline.schedule());
    }

    FittedDurations fit()
    {
        collect();
        for (auto& [key, samples] : m_samples)
            if (const std::optional<Nanos> duration = wholeOf(samples)) m_out.whole[key] = *duration;
        fitSlices();
        fitPairs();
        fitVariation();
        for (auto& [key, samples] : m_samples)
            if (!samples.parted.empty() && !m_out.whole.contains(key)) m_out.whole[key] = lowerMedian(samples.parted);
        partPairs();
        return std::move(m_out);
    }

private:
    bool isMeasured(const Span& span) const
    {
        if (span.label != 0 || isDelay(span.op.kind) || (span.flags & SpanDiscarded) != 0) return false;
        return span.step >= m_firstStep && (!isBusy(span.op.kind) || span.op.microbatch >= 0);
    }

    static bool sameInterval(const Span& a, const Span& b)
    {
        return a.end > a.start && a.start == b.start && a.end == b.end;
    }

    void collect()
    {
        for (const Track& track : m_timeline.tracks()) {
            const auto spans = m_timeline.spansOf(track);
            if (isCollectiveLane(track.lane))
                for (const Span& span : spans)
                    if (isMeasured(span) && isCollective(span.op.kind)) add(span.op, track.rank, span.duration());
            if (track.lane != Lane::Compute) continue;
            for (std::size_t i = 0; i < spans.size(); ++i) {
                const bool pairs = i + 1 < spans.size() && sameInterval(spans[i], spans[i + 1]);
                for (std::size_t k = i; k <= i + (pairs ? 1 : 0); ++k)
                    if (isMeasured(spans[k]) && isBusyOp(spans[k].op))
                        m_out.stages = std::max(m_out.stages, spans[k].op.stage + 1);
                if (!pairs) {
                    if (isMeasured(spans[i])) add(spans[i].op, track.rank, spans[i].duration());
                    continue;
                }
                if (isMeasured(spans[i]) && isMeasured(spans[i + 1])) addPair(track, i);
                ++i;
            }
        }
    }

    void add(const Op& op, int rank, Nanos duration)
    {
        Samples& samples = m_samples[keyOf(op, rank)];
        if (isWhole(op) || isInPieces(op.kind))
            samples.whole.push_back({op.microbatch, duration});
        else if (op.slice >= 0 && op.half == 0 && op.count == 1)
            samples.slices[op.slice].push_back(duration);
        else if (op.half != 0 && op.slice < 0 && op.count == 1)
            samples.halves[op.half].push_back(duration);
        else
            samples.counted.push_back(asWhole(op, static_cast<double>(duration)));
    }

    void addPair(const Track& track, std::size_t first)
    {
        const auto spans = m_timeline.spansOf(track);
        const SpanId id = track.begin + static_cast<SpanId>(first);
        const Nanos cpu[2] = {m_timeline.hasCpuTime() ? m_timeline.cpuTime(id) : -1,
                              m_timeline.hasCpuTime() ? m_timeline.cpuTime(id + 1) : -1};
        const Nanos duration = spans[first].duration();
        if (cpu[0] < 0 || cpu[1] < 0 || cpu[0] + cpu[1] <= 0) {
            m_pairs.push_back({{spans[first].op, spans[first + 1].op}, track.rank, duration, false});
            return;
        }
        m_pairs.push_back({{spans[first].op, spans[first + 1].op}, track.rank, duration, true});
        for (std::size_t k = 0; k < 2; ++k) {
            const Op& op = spans[first + k].op;
            const double part = static_cast<double>(cpu[k]) / static_cast<double>(cpu[0] + cpu[1]);
            m_samples[keyOf(op, track.rank)].parted.push_back(asWhole(op, part * static_cast<double>(duration)));
        }
    }

    // How much of a whole op it is.
    double sizeOf(const Op& op) const
    {
        double size = op.count;
        if (op.half != 0) size /= 2;
        if (op.slice >= 0 && m_starts.size() > static_cast<std::size_t>(op.slice) + 1) {
            const auto slice = static_cast<std::size_t>(op.slice);
            size *= static_cast<double>(m_starts[slice + 1] - m_starts[slice]) / static_cast<double>(m_starts.back());
        }
        return size;
    }
    Nanos asWhole(const Op& op, double duration) const { return std::llround(duration / sizeOf(op)); }

    static std::optional<Nanos> wholeOf(Samples& samples)
    {
        if (!samples.whole.empty()) return medianOf(samples.whole);
        if (!samples.counted.empty()) return lowerMedian(samples.counted);
        if (samples.halves.empty()) return std::nullopt;
        Nanos sum = 0;
        for (auto& [half, durations] : samples.halves) sum += lowerMedian(durations);
        return samples.halves.size() == 2 ? sum : 2 * sum;
    }

    void fitSlices()
    {
        std::size_t count = m_starts.empty() ? 0 : m_starts.size() - 1;
        std::vector<std::pair<Key, std::map<int, Nanos>>> medians;
        for (auto& [key, samples] : m_samples) {
            if (samples.slices.empty()) continue;
            std::map<int, Nanos> bySlice;
            for (auto& [slice, durations] : samples.slices) bySlice[slice] = lowerMedian(durations);
            count = std::max(count, static_cast<std::size_t>(bySlice.rbegin()->first) + 1);
            medians.emplace_back(key, std::move(bySlice));
        }
        if (medians.empty()) return;
        std::vector<std::int64_t> measured(count + 1, 0); // time by slice, then its beginnings
        bool explained = m_starts.size() == count + 1;
        for (const auto& [key, bySlice] : medians) {
            Nanos sum = 0;
            for (const auto& [slice, duration] : bySlice) {
                sum += duration;
                measured[static_cast<std::size_t>(slice) + 1] += duration;
            }
            if (bySlice.size() < count)
                sum = std::llround(static_cast<double>(sum * static_cast<Nanos>(count)) /
                                   static_cast<double>(bySlice.size()));
            for (const auto& [slice, duration] : bySlice)
                explained = explained && shareOfSlice(sum, m_starts, slice) == duration;
            m_out.whole.try_emplace(key, sum);
        }
        for (std::size_t i = 1; i < measured.size(); ++i) measured[i] += measured[i - 1];
        m_out.sliceStarts = explained ? m_starts : std::move(measured);
    }

    // Before pairs are divided: known durations are those of single ops.
    void fitPairs()
    {
        std::map<std::pair<Key, Key>, std::vector<Nanos>> durations;
        for (const Pair& pair : m_pairs) {
            if (!isWhole(pair.ops[0]) || !isWhole(pair.ops[1]) || isRecompute(pair.ops[0].kind)) continue;
            std::pair ends(keyOf(pair.ops[0], pair.rank), keyOf(pair.ops[1], pair.rank));
            if (ends.second < ends.first) std::swap(ends.first, ends.second);
            durations[ends].push_back(pair.duration);
        }
        for (auto& [ends, of] : durations) {
            const auto a = m_out.whole.find(ends.first);
            const auto b = m_out.whole.find(ends.second);
            const Nanos pair = lowerMedian(of);
            if (a == m_out.whole.end() || b == m_out.whole.end() || a->second + b->second == pair) continue;
            m_out.pairs.push_back({std::get<0>(ends.first), std::get<1>(ends.first), std::get<0>(ends.second),
                                   std::get<1>(ends.second), std::get<2>(ends.first), pair});
        }
    }

    // The spread of whole ops of one kind, stage and rank.
    struct Group {
        const Key* key;
        Nanos median = 0;
        std::size_t count = 0;
        std::map<int, std::vector<Nanos>> byMicrobatch;
    };

    void fitVariation()
    {
        std::vector<Group> groups;
        std::size_t ops = 0;
        std::size_t repeated = 0; // took exactly as long as another of the group
        for (const auto& [key, samples] : m_samples) {
            if (samples.whole.size() < 2 || !isBusy(std::get<0>(key))) continue;
            std::map<Nanos, std::size_t> times;
            Group group{&key, medianOf(samples.whole), samples.whole.size(), {}};
            for (const Whole& one : samples.whole) {
                group.byMicrobatch[one.microbatch].push_back(one.duration);
                ++times[one.duration];
            }
            ops += group.count;
            for (const auto& [duration, count] : times) repeated += count > 1 ? count : 0;
            if (group.median > 0) groups.push_back(std::move(group));
        }
        const bool exact = 2 * repeated >= ops;
        const double noise = exact ? 0.0 : withinMicrobatches(groups);
        std::vector<double> deviations;
        for (Group& group : groups)
            for (auto& [microbatch, durations] : group.byMicrobatch) {
                const Nanos own = lowerMedian(durations);
                const double standardError = 1.2533 * noise / std::sqrt(static_cast<double>(durations.size()));
                const double off =
                    own > 0 ? std::abs(std::log(static_cast<double>(own) / static_cast<double>(group.median))) : 0.0;
                const bool differs =
                    exact ? own != group.median : durations.size() >= 4 && off > std::max(0.005, 4 * standardError);
                if (differs) m_out.ofMicrobatch[{std::get<0>(*group.key), std::get<1>(*group.key), microbatch}] = own;
                const std::size_t count = differs ? durations.size() : group.count;
                for (const Nanos duration : durations)
                    addDeviation(duration, differs ? own : group.median, count, deviations);
            }
        if (!exact) m_out.jitter = std::round(spreadOf(deviations) * 1e6) / 1e6;
    }

    // A median of few values is nearer to them than the true one.
    static void addDeviation(Nanos duration, Nanos median, std::size_t count, std::vector<double>& to)
    {
        if (duration <= 0 || median <= 0 || count < 2) return;
        const double n = static_cast<double>(count);
        to.push_back(std::abs(std::log(static_cast<double>(duration) / static_cast<double>(median))) *
                     std::sqrt(n / (n - 1)));
    }

    static double withinMicrobatches(std::vector<Group>& groups)
    {
        std::vector<double> deviations;
        for (Group& group : groups)
            for (auto& [microbatch, durations] : group.byMicrobatch) {
                if (durations.size() < 4) continue;
                const Nanos own = lowerMedian(durations);
                for (const Nanos duration : durations) addDeviation(duration, own, durations.size(), deviations);
            }
        return spreadOf(deviations);
    }

    // Pairs without known processor times.
    void partPairs()
    {
        std::map<std::pair<Key, Key>, std::vector<Pair>> groups;
        for (const Pair& pair : m_pairs)
            if (!pair.parted) groups[{keyOf(pair.ops[0], pair.rank), keyOf(pair.ops[1], pair.rank)}].push_back(pair);
        for (;;) {
            std::map<Key, std::vector<Nanos>> left;
            for (const auto& [keys, pairs] : groups) {
                const auto first = m_out.whole.find(keys.first);
                const auto second = m_out.whole.find(keys.second);
                if ((first == m_out.whole.end()) == (second == m_out.whole.end())) continue;
                const std::size_t known = first == m_out.whole.end() ? 1 : 0;
                const Nanos whole = known == 0 ? first->second : second->second;
                for (const Pair& pair : pairs) {
                    const double rest =
                        static_cast<double>(pair.duration) - sizeOf(pair.ops[known]) * static_cast<double>(whole);
                    left[known == 0 ? keys.second : keys.first].push_back(
                        asWhole(pair.ops[1 - known], std::max(rest, 0.0)));
                }
            }
            for (auto& [key, durations] : left) m_out.whole[key] = lowerMedian(durations);
            if (!left.empty()) continue;
            const auto unknown = std::find_if(groups.begin(), groups.end(), [&](const auto& group) {
                return !m_out.whole.contains(group.first.first) && !m_out.whole.contains(group.first.second);
            });
            if (unknown == groups.end()) return;
            partByKind(unknown->second);
        }
    }

    void partByKind(const std::vector<Pair>& pairs)
    {
        std::vector<Nanos> parts[2];
        for (const Pair& pair : pairs) {
            const double a = usualOf(pair.ops[0].kind) * sizeOf(pair.ops[0]);
            const double b = usualOf(pair.ops[1].kind) * sizeOf(pair.ops[1]);
            const double duration = static_cast<double>(pair.duration);
            parts[0].push_back(asWhole(pair.ops[0], duration * a / (a + b)));
            parts[1].push_back(asWhole(pair.ops[1], duration * b / (a + b)));
        }
        for (std::size_t k = 0; k < 2; ++k)
            m_out.whole[keyOf(pairs.front().ops[k], pairs.front().rank)] = lowerMedian(parts[k]);
    }

    // The known duration of a kind, averaged the same way for all kinds; else relative to a forward.
    double usualOf(OpKind kind) const
    {
        double sum[2] = {0, 0};
        int count[2] = {0, 0};
        for (const auto& [key, duration] : m_out.whole) {
            const std::size_t which = std::get<0>(key) == kind ? 0 : 1;
            if (which == 1 && !isForward(std::get<0>(key))) continue;
            sum[which] += static_cast<double>(duration);
            ++count[which];
        }
        if (count[0] > 0 && sum[0] > 0) return sum[0] / count[0];
        const double forward = count[1] > 0 && sum[1] > 0 ? sum[1] / count[1] : 1.0;
        return isFullBackward(kind) ? 2 * forward : forward;
    }

    const Timeline& m_timeline;
    int m_firstStep;
    std::vector<std::int64_t> m_starts;
    std::map<Key, Samples> m_samples;
    std::vector<Pair> m_pairs;
    FittedDurations m_out;
};

} // namespace

FittedDurations fitDurations(const Timeline& timeline, int firstStep) { return Durations(timeline, firstStep).fit(); }

} // namespace stagewright
