#include "traces/analysis/range_stacks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "schedules/model/kinds.h"
#include "traces/analysis/analysis_registry.h"
#include "traces/analysis/kernel_spans.h"
#include "traces/analysis/kernels.h"
#include "traces/analysis/step_context.h"

namespace stagewright {

namespace {

// as import names the tracks of ranges at the times of their kernels
constexpr std::string_view deviceSuffix = " on the device";

class Folder {
public:
    Folder(const Timeline& timeline, int step, Nanos begin, Nanos end, const std::vector<int>& ranks)
        : m_timeline(timeline), m_step(step), m_begin(begin), m_end(end), m_ranks(ranks)
    {
    }

    RangeStacks fold()
    {
        m_out.device = std::any_of(m_timeline.tracks().begin(), m_timeline.tracks().end(),
                                   [&](const Track& track) { return isWork(track) && any(track); });
        for (const bool onDevice : {true, false}) // ranges of the host, too, may be what launched a kernel
            for (const Track& track : m_timeline.tracks())
                if (wanted(track) && track.lane == Lane::Other && track.name.ends_with(deviceSuffix) == onDevice &&
                    (m_out.device || !onDevice))
                    placeRanges(track, onDevice);
        if (m_out.device)
            for (const Track& track : m_timeline.tracks())
                if (wanted(track) && isWork(track)) addWork(track);
        sum();
        return std::move(m_out);
    }

private:
    static bool isWork(const Track& track) { return isDeviceLane(track.lane); }
    bool wanted(const Track& track) const
    {
        return m_ranks.empty() || std::find(m_ranks.begin(), m_ranks.end(), track.rank) != m_ranks.end();
    }
    Nanos inside(const Span& span) const
    {
        return std::max<Nanos>(0, std::min(span.end, m_end) - std::max(span.start, m_begin));
    }
    bool seen(const Span& span) const
    {
        return span.step == m_step &&
               (inside(span) > 0 || (span.start == span.end && span.start >= m_begin && span.start < m_end));
    }
    bool any(const Track& track) const
    {
        const auto [first, last] = m_timeline.stepRange(track, m_step);
        return std::any_of(m_timeline.spans().begin() + first, m_timeline.spans().begin() + last,
                           [this](const Span& span) { return seen(span); });
    }

    int child(int parent, const std::string& name)
    {
        const auto [found, added] = m_places.try_emplace({parent, name}, static_cast<int>(m_out.nodes.size()));
        if (added) {
            StackNode node;
            node.name = name;
            node.parent = parent;
            node.depth = parent < 0 ? 0 : m_out.nodes[static_cast<std::size_t>(parent)].depth + 1;
            m_out.nodes.push_back(std::move(node));
            m_longest.push_back(-1);
        }
        return found->second;
    }

    void count(int node, SpanId id, Nanos time)
    {
        StackNode& to = m_out.nodes[static_cast<std::size_t>(node)];
        ++to.count;
        to.self += time;
        if (m_timeline.spans()[id].duration() <= m_longest[static_cast<std::size_t>(node)]) return;
        m_longest[static_cast<std::size_t>(node)] = m_timeline.spans()[id].duration();
        to.longest = id;
    }

    // Ranges of a thread nest: each lies in the last one before it that has not ended.
    void placeRanges(const Track& track, bool onDevice)
    {
        const auto [first, last] = m_timeline.stepRange(track, m_step);
        std::vector<SpanId> order;
        for (SpanId id = first; id < last; ++id)
            if (m_out.device ? m_timeline.spans()[id].step == m_step : seen(m_timeline.spans()[id]))
                order.push_back(id);
        const auto& spans = m_timeline.spans();
        std::stable_sort(order.begin(), order.end(), [&](SpanId a, SpanId b) {
            return spans[a].start != spans[b].start ? spans[a].start < spans[b].start : spans[a].end > spans[b].end;
        });
        std::vector<std::pair<SpanId, int>> open; // with their node
        for (const SpanId id : order) {
            while (!open.empty() &&
                   (spans[open.back().first].end < spans[id].end || spans[open.back().first].end <= spans[id].start))
                open.pop_back();
            const int node = child(open.empty() ? -1 : open.back().second, m_timeline.nameOf(spans[id]));
            if (m_out.device) {
                m_nodeOf[id] = node;
                if (onDevice) count(node, id, 0);
            } else {
                const Nanos time = inside(spans[id]);
                count(node, id, time);
                if (!open.empty()) m_out.nodes[static_cast<std::size_t>(open.back().second)].self -= time;
            }
            open.emplace_back(id, node);
        }
    }

    int holderOf(SpanId work)
    {
        const SpanId by = launchOf(m_timeline, work).by;
        if (by == noSpan) return -1;
        if (const auto range = m_nodeOf.find(by); range != m_nodeOf.end()) return range->second;
        const Lane lane = m_timeline.trackOf(by).lane;
        if (isDeviceLane(lane) || lane == Lane::Other) return -1;
        const OpKind kind = m_timeline.spans()[by].op.kind;
        const int node = child(-1, std::string(ruleOf(kind).title));
        m_out.nodes[static_cast<std::size_t>(node)].kind = kind;
        if (m_counted.try_emplace(by, true).second) count(node, by, 0);
        return node;
    }

    void addWork(const Track& track)
    {
        const auto [first, last] = m_timeline.stepRange(track, m_step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = m_timeline.spans()[id];
            if (!seen(span)) continue;
            const int node = child(holderOf(id), m_timeline.nameOf(span));
            m_out.nodes[static_cast<std::size_t>(node)].of = m_classes.of(m_timeline, track, span);
            count(node, id, inside(span));
        }
    }

    // Totals from the leaves down, then children in the order of theirs, parents still first.
    void sum()
    {
        auto& nodes = m_out.nodes;
        for (std::size_t i = nodes.size(); i-- > 0;) {
            nodes[i].self = std::max<Nanos>(0, nodes[i].self); // ranges that overlap without nesting
            nodes[i].total += nodes[i].self;
            if (nodes[i].parent >= 0)
                nodes[static_cast<std::size_t>(nodes[i].parent)].total += nodes[i].total;
            else
                m_out.total += nodes[i].total;
        }
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < nodes.size(); ++i)
            if (nodes[i].total > 0) order.push_back(i); // ranges that launched nothing
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return nodes[a].depth != nodes[b].depth ? nodes[a].depth < nodes[b].depth : nodes[a].total > nodes[b].total;
        });
        std::vector<int> placeOf(nodes.size());
        for (std::size_t i = 0; i < order.size(); ++i) placeOf[order[i]] = static_cast<int>(i);
        std::vector<StackNode> sorted;
        sorted.reserve(order.size());
        for (const std::size_t i : order) {
            sorted.push_back(std::move(nodes[i]));
            if (sorted.back().parent >= 0)
                sorted.back().parent = placeOf[static_cast<std::size_t>(sorted.back().parent)];
        }
        nodes = std::move(sorted);
    }

    const Timeline& m_timeline;
    int m_step;
    Nanos m_begin, m_end;
    const std::vector<int>& m_ranks;
    RangeStacks m_out;
    std::map<std::pair<int, std::string>, int> m_places;
    std::vector<Nanos> m_longest; // by node
    std::unordered_map<SpanId, int> m_nodeOf;
    std::unordered_map<SpanId, bool> m_counted; // ops
    KernelClasses m_classes;
};

} // namespace

std::string RangeStacks::pathOf(int node) const
{
    std::string path;
    for (; node >= 0; node = nodes[static_cast<std::size_t>(node)].parent) {
        if (!path.empty()) path.insert(0, " › ");
        path.insert(0, nodes[static_cast<std::size_t>(node)].name);
    }
    return path;
}

RangeStacks foldRanges(const Timeline& timeline, int step, Nanos begin, Nanos end, const std::vector<int>& ranks)
{
    return Folder(timeline, step, begin, end, ranks).fold();
}

namespace analyses {

namespace {

std::vector<TableColumn> stackColumns()
{
    return {{"stack", "Stack", ColumnKind::Text, "Nested ranges, outermost first, and the kernel launched in them."},
            {"depth", "Depth", ColumnKind::Whole, "Number of ranges around it."},
            {"calls", "Calls", ColumnKind::Count, "In the step, over all ranks."},
            {"total_ns", "Total", ColumnKind::Time,
             "Time of the kernels in it, or of the ranges themselves where the step has no kernels; what ran at the "
             "same time counts twice. Choosing a row goes to the longest."},
            {"self_ns", "Itself", ColumnKind::Time, "Without what is nested in it."},
            {"share", "Share", ColumnKind::Share, "Of the total of all stacks."}};
}

std::string unknownWithoutRanges(const Run& run)
{
    const auto tracks = run.timeline->tracks();
    const bool any = std::any_of(tracks.begin(), tracks.end(), [](const Track& track) {
        return (track.lane == Lane::Other || isDeviceLane(track.lane)) && track.end > track.begin;
    });
    return any ? ""
               : "this run has neither named ranges nor kernels: traces of Kineto, Nsight Systems and Chrome JSON have "
                 "them";
}

Result<AnalysisRows> stackRows(const StepContext& context)
{
    constexpr std::size_t mostRows = 1000;
    const RangeStacks stacks = foldRanges(context.timeline(), context.step());
    std::vector<int> order(stacks.nodes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
        return stacks.nodes[static_cast<std::size_t>(a)].total > stacks.nodes[static_cast<std::size_t>(b)].total;
    });
    AnalysisRows out;
    if (order.size() > mostRows) {
        out.sentence =
            "the " + std::to_string(mostRows) + " stacks with the most time of " + std::to_string(order.size());
        order.resize(mostRows);
    }
    for (const int i : order) {
        const StackNode& node = stacks.nodes[static_cast<std::size_t>(i)];
        const double share = stacks.total > 0 ? static_cast<double>(node.total) / static_cast<double>(stacks.total) : 0;
        out.rows.push_back({stacks.pathOf(i), std::int64_t{node.depth}, node.count, node.total, node.self, share});
        out.ops.push_back(node.longest);
    }
    return out;
}

} // namespace

extern const AnalysisInfo range_stacks;
const AnalysisInfo range_stacks{"range_stacks", "Time by nested ranges", stackColumns, unknownWithoutRanges, stackRows};

} // namespace analyses

} // namespace stagewright
