#include "traces/compare/ledger.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "schedules/base/median.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/critical_path.h"

namespace stagewright {

namespace {

struct ClassWords {
    std::string_view text, title, meaning;
};
constexpr ClassWords words[pathClassCount] = {
    {"work", "Work of the bottleneck rank", "Ops on the rank where the critical path spends most of its time."},
    {"fill", "Fill", "Ops on other ranks before the path first reaches the bottleneck rank."},
    {"return", "Return trip", "Ops on other ranks after the path has left the bottleneck rank for the last time."},
    {"detour", "Round trips", "Ops on other ranks between two stays on the bottleneck rank."},
    {"wire", "Wire", "From a producer's end to the arrival of its message on another rank."},
    {"order", "Order waits",
     "Ops that the next op on the path only queues behind on its rank, without needing their results."},
    {"straggler", "Straggler surplus",
     "Time of ops beyond the median of their kind, stage and rank over the measured steps."},
    {"apart", "Optimizer and collectives", "Optimizer, collectives and intended delays on the path."},
    {"launch", "Launch", "Everything was ready, but the op had not started."},
};

enum class By : std::uint8_t {
    Begin,
    Rank,
    Input,
};

struct Step {
    SpanId from = noSpan;
    Nanos released = 0; // when the input was there, or the span before on the rank had ended
    By by = By::Begin;
};

// The spans of the window with predecessors first, and for each what delayed it longest.
class TightGraph {
public:
    TightGraph(const Timeline& timeline, const StepOps& ops) : m_spans(timeline.spans()), m_ops(ops)
    {
        for (int rank = 0; rank < ops.ranks(); ++rank)
            for (const SpanId id : ops.all(rank))
                if (m_spans[id].start >= ops.windowBegin() && m_spans[id].end <= ops.windowEnd()) m_order.push_back(id);
        std::sort(m_order.begin(), m_order.end(), [this](SpanId a, SpanId b) {
            return std::tie(m_spans[a].start, m_spans[a].end, a) < std::tie(m_spans[b].start, m_spans[b].end, b);
        });
        for (std::size_t i = 0; i < m_order.size(); ++i) m_place[m_order[i]] = i;
        m_tight.resize(m_order.size());
        for (std::size_t i = 0; i < m_order.size(); ++i) findTight(i);
    }

    std::size_t size() const { return m_order.size(); }
    SpanId span(std::size_t place) const { return m_order[place]; }
    std::size_t placeOf(SpanId id) const { return m_place.at(id); }
    const std::vector<Step>& tight(std::size_t place) const { return m_tight[place]; }

private:
    void findTight(std::size_t place)
    {
        const SpanId id = m_order[place];
        const Nanos start = m_spans[id].start;
        std::vector<Step> found;
        const auto add = [&](SpanId from, Nanos released, By by) {
            const auto at = m_place.find(from);
            if (at == m_place.end() || at->second >= place || m_spans[from].end > start) return;
            released = std::clamp(released, m_spans[from].end, start);
            if (!found.empty() && released < found.front().released) return;
            if (!found.empty() && released > found.front().released) found.clear();
            found.push_back({from, released, by});
        };
        if (m_ops.isBusySpan(id))
            for (const Input& input : m_ops.inputs(id))
                add(input.from, input.arrival, m_ops.rankOf(input.from) == m_ops.rankOf(id) ? By::Rank : By::Input);
        const auto& all = m_ops.all(m_ops.rankOf(id));
        auto before = std::lower_bound(all.begin(), all.end(), start,
                                       [this](SpanId other, Nanos time) { return m_spans[other].start < time; });
        while (before != all.end() && *before != id) ++before; // spans without duration
        while (before != all.begin())
            if (--before; m_spans[*before].end <= start) {
                add(*before, m_spans[*before].end, By::Rank);
                break;
            }
        m_tight[place] = std::move(found);
    }

    std::span<const Span> m_spans;
    const StepOps& m_ops;
    std::vector<SpanId> m_order;
    std::unordered_map<SpanId, std::size_t> m_place;
    std::vector<std::vector<Step>> m_tight;
};

struct PathLink {
    SpanId span = noSpan;
    Step step; // the step that led to it
};

Nanos workOn(const Timeline& timeline, const StepOps& ops, SpanId id, int rank)
{
    return ops.rankOf(id) == rank && ops.isBusySpan(id) ? timeline.spans()[id].duration() : 0;
}

// The critical path with the most busy time on one rank.
std::vector<PathLink> pathOf(const Timeline& timeline, const StepOps& ops, int& bottleneck)
{
    const TightGraph graph(timeline, ops);
    std::vector<std::size_t> ends;
    for (std::size_t i = 0; i < graph.size(); ++i)
        if (timeline.spans()[graph.span(i)].end == ops.windowEnd() && ops.isBusySpan(graph.span(i))) ends.push_back(i);
    std::vector<Nanos> best(graph.size());
    std::vector<std::uint32_t> choice(graph.size());
    const auto spread = [&](int rank) { // returns the end with the most
        for (std::size_t i = 0; i < graph.size(); ++i) {
            best[i] = 0;
            choice[i] = 0;
            const auto& tight = graph.tight(i);
            for (std::size_t k = 0; k < tight.size(); ++k)
                if (const Nanos sum = best[graph.placeOf(tight[k].from)]; sum > best[i]) {
                    best[i] = sum;
                    choice[i] = static_cast<std::uint32_t>(k);
                }
            best[i] += workOn(timeline, ops, graph.span(i), rank);
        }
        return *std::max_element(ends.begin(), ends.end(),
                                 [&](std::size_t a, std::size_t b) { return best[a] < best[b]; });
    };
    Nanos most = -1;
    for (int rank = 0; rank < ops.ranks(); ++rank)
        if (const std::size_t end = spread(rank); best[end] >= most) { // of equals the rank nearest to the loss
            most = best[end];
            bottleneck = rank;
        }
    std::vector<PathLink> path;
    for (std::size_t at = spread(bottleneck);;) {
        const auto& tight = graph.tight(at);
        const Step step = tight.empty() ? Step{noSpan, ops.windowBegin(), By::Begin} : tight[choice[at]];
        path.push_back({graph.span(at), step});
        if (step.from == noSpan) break;
        at = graph.placeOf(step.from);
    }
    std::reverse(path.begin(), path.end());
    return path;
}

std::vector<PathLink> plainPath(const Timeline& timeline, const StepOps& ops, int& bottleneck)
{
    std::vector<PathLink> path;
    std::map<int, Nanos> work;
    for (const CriticalLink& link : criticalPath(ops)) {
        const SpanId from = path.empty() ? noSpan : path.back().span;
        Step how{from, from == noSpan ? ops.windowBegin() : timeline.spans()[from].end,
                 link.crossesRank ? By::Input : By::Rank};
        if (link.crossesRank)
            for (const Input& input : ops.inputs(link.span))
                if (input.from == from)
                    how.released = std::clamp(input.arrival, how.released, timeline.spans()[link.span].start);
        path.push_back({link.span, how});
        work[ops.rankOf(link.span)] += timeline.spans()[link.span].duration();
    }
    Nanos most = -1;
    for (const auto& [rank, time] : work)
        if (time >= most) {
            most = time;
            bottleneck = rank;
        }
    return path;
}

// Median durations of the path's kinds of op over the measured steps.
class Medians {
public:
    Medians(const Timeline& timeline, const StepOps& ops, const std::vector<PathLink>& path, int firstStep)
    {
        for (const PathLink& link : path)
            if (ops.isBusySpan(link.span)) m_durations[keyOf(timeline, link.span, ops.rankOf(link.span))];
        for (const Track& track : timeline.tracks()) {
            if (track.lane != Lane::Compute) continue;
            for (SpanId id = track.begin; id < track.end; ++id) {
                const Span& span = timeline.spans()[id];
                if (span.step < firstStep && timeline.steps() > firstStep) continue;
                if (const auto found = m_durations.find(keyOf(timeline, id, track.rank)); found != m_durations.end())
                    found->second.push_back(span.duration());
            }
        }
        for (auto& [key, durations] : m_durations) {
            if (!durations.empty()) durations = {lowerMedian(std::move(durations))};
        }
    }
    Nanos of(const Timeline& timeline, SpanId id, int rank) const
    {
        const auto found = m_durations.find(keyOf(timeline, id, rank));
        return found == m_durations.end() || found->second.empty() ? timeline.spans()[id].duration()
                                                                   : found->second.front();
    }

private:
    using Key = std::tuple<OpKind, int, int, int, int, int>; // kind, stage, rank, count, slice, half
    static Key keyOf(const Timeline& timeline, SpanId id, int rank)
    {
        const Op& op = timeline.spans()[id].op;
        return {op.kind, op.stage, rank, op.count, op.slice, op.half};
    }
    std::map<Key, std::vector<Nanos>> m_durations;
};

} // namespace

std::string_view toText(PathClass part) { return words[static_cast<std::size_t>(part)].text; }
std::string_view titleOf(PathClass part) { return words[static_cast<std::size_t>(part)].title; }
std::string_view meaningOf(PathClass part) { return words[static_cast<std::size_t>(part)].meaning; }

PathLedger ledgerOf(const Timeline& timeline, const StepOps& ops, int firstStep)
{
    PathLedger ledger;
    if (ops.empty()) return ledger;
    ledger.makespan = ops.windowEnd() - ops.windowBegin();
    std::size_t spans = 0;
    for (int rank = 0; rank < ops.ranks(); ++rank) spans += ops.all(rank).size();
    const bool small = spans * static_cast<std::size_t>(ops.ranks()) <= 40'000'000;
    const std::vector<PathLink> path =
        small ? pathOf(timeline, ops, ledger.bottleneck) : plainPath(timeline, ops, ledger.bottleneck);
    const Medians medians(timeline, ops, path, firstStep);
    std::size_t first = path.size();
    std::size_t last = 0;
    for (std::size_t i = 0; i < path.size(); ++i)
        if (ops.rankOf(path[i].span) == ledger.bottleneck) {
            first = std::min(first, i);
            last = i;
        }
    const auto add = [&](PathClass part, Nanos time) { ledger.byClass[static_cast<std::size_t>(part)] += time; };
    for (std::size_t i = 0; i < path.size(); ++i) {
        const PathLink& link = path[i];
        const Span& span = timeline.spans()[link.span];
        const int rank = ops.rankOf(link.span);
        const Nanos freed = link.step.from == noSpan ? ops.windowBegin() : timeline.spans()[link.step.from].end;
        if (link.step.by == By::Input) ++ledger.wires;
        add(PathClass::Wire, link.step.released - freed);
        add(PathClass::Launch, span.start - link.step.released);
        ledger.path.push_back(link.span);
        if (!ops.isBusySpan(link.span)) {
            add(PathClass::Apart, span.duration());
            continue;
        }
        const Nanos usual = std::min(span.duration(), medians.of(timeline, link.span, rank));
        add(PathClass::Straggler, span.duration() - usual);
        if (rank == ledger.bottleneck) {
            add(PathClass::Work, usual);
            continue;
        }
        bool needed = true; // by the next op
        if (i + 1 < path.size() && path[i + 1].step.by == By::Rank && ops.isBusySpan(path[i + 1].span)) {
            const auto inputs = ops.inputs(path[i + 1].span);
            needed =
                std::any_of(inputs.begin(), inputs.end(), [&](const Input& input) { return input.from == link.span; });
        }
        add(!needed     ? PathClass::Order
            : i < first ? PathClass::Fill
            : i > last  ? PathClass::Return
                        : PathClass::Detour,
            usual);
    }
    return ledger;
}

} // namespace stagewright
