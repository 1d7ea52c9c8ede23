#include "traces/step/step_ops.h"

#include <algorithm>

#include "schedules/model/kinds.h"

namespace stagewright {

bool isBusyOp(const Op& op) { return isBusy(op.kind) && op.microbatch >= 0; }

StepOps::StepOps(const Timeline& timeline, int step) : m_timeline(timeline), m_step(step)
{
    m_busy.resize(static_cast<std::size_t>(std::max(0, timeline.ranks())));
    m_all.resize(m_busy.size());
    const auto spans = timeline.spans();
    const auto byTime = [&](SpanId a, SpanId b) {
        return std::pair(spans[a].start, spans[a].end) < std::pair(spans[b].start, spans[b].end);
    };
    std::vector<int> lanes(m_busy.size(), 0); // compute lanes of the rank
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute) continue;
        auto& busy = m_busy[static_cast<std::size_t>(track.rank)];
        const auto [first, last] = timeline.stepRange(track, step);
        for (SpanId id = first; id < last; ++id) {
            const Span& span = spans[id];
            if (span.step != step || !isBusyOp(span.op)) continue;
            if (m_empty || span.start < m_begin) m_begin = span.start;
            if (m_empty || span.end > m_end) m_end = span.end;
            m_empty = false;
            busy.push_back(id);
            m_stages = std::max(m_stages, span.op.stage + 1);
            m_lastMicrobatch = std::max(m_lastMicrobatch, span.op.microbatch);
        }
        if (++lanes[static_cast<std::size_t>(track.rank)] > 1) std::stable_sort(busy.begin(), busy.end(), byTime);
    }
    if (m_empty) return;
    indexOps();
    for (const auto& busy : m_busy)
        for (std::size_t i = 0; i + 1 < busy.size(); ++i) {
            const Op& backward = spans[busy[i + 1]].op;
            if (!isRecompute(spans[busy[i]].op.kind)) continue;
            if (!isReturn(backward.kind)) continue;
            if (asRecompute(backward) == spans[busy[i]].op) m_heldFor[busy[i]] = busy[i + 1];
        }
    findPairs();
    if (timeline.schedule()) {
        m_stages = std::max(m_stages, timeline.schedule()->stages);
        m_graph = timeline.schedule()->graph;
    }
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute) continue;
        auto& all = m_all[static_cast<std::size_t>(track.rank)];
        SpanId first =
            static_cast<SpanId>(std::lower_bound(spans.begin() + track.begin, spans.begin() + track.end, m_begin,
                                                 [](const Span& span, Nanos time) { return span.start < time; }) -
                                spans.begin());
        while (first > track.begin && spans[first - 1].end > m_begin) --first;
        for (SpanId id = first; id < track.end && spans[id].start < m_end; ++id) all.push_back(id);
        if (lanes[static_cast<std::size_t>(track.rank)] > 1) std::stable_sort(all.begin(), all.end(), byTime);
    }
}

bool StepOps::isBusySpan(SpanId id) const
{
    const Span& span = m_timeline.spans()[id];
    return span.step == m_step && isBusyOp(span.op);
}

int StepOps::rankOf(SpanId id) const { return m_timeline.trackOf(id).rank; }

SpanId StepOps::find(const Op& op) const
{
    if (const std::size_t at = cellOf(op); at < m_whole.size()) return m_whole[at];
    const auto found = m_parts.find(op);
    return found == m_parts.end() ? noSpan : found->second;
}

std::size_t StepOps::cellOf(const Op& op) const
{
    constexpr auto outside = static_cast<std::size_t>(-1);
    if (op.count != 1 || op.slice >= 0 || op.half != 0 || op.delay != 0 ||
        static_cast<std::size_t>(op.kind) >= wholeKinds)
        return outside;
    if (op.microbatch < 0 || op.microbatch > m_lastMicrobatch || op.stage >= m_stages) return outside;
    const auto row = static_cast<std::size_t>(op.stage) * wholeKinds + static_cast<std::size_t>(op.kind);
    return row * (static_cast<std::size_t>(m_lastMicrobatch) + 1) + static_cast<std::size_t>(op.microbatch);
}

void StepOps::indexOps()
{
    const auto spans = m_timeline.spans();
    std::size_t ops = 0;
    for (const auto& busy : m_busy) ops += busy.size();
    const std::size_t cells =
        static_cast<std::size_t>(m_stages) * wholeKinds * (static_cast<std::size_t>(m_lastMicrobatch) + 1);
    // else few ops with large numbers: a damaged or foreign run
    if (cells <= 16 * ops + 1024) m_whole.assign(cells, noSpan);
    for (const auto& busy : m_busy)
        for (const SpanId id : busy) {
            const Span& span = spans[id];
            if ((span.flags & SpanDiscarded) != 0) continue;
            if (const std::size_t at = cellOf(span.op); at < m_whole.size())
                m_whole[at] = id;
            else
                m_parts[span.op] = id;
        }
}

SpanId StepOps::heldFor(SpanId recompute) const
{
    const auto found = m_heldFor.find(recompute);
    return found == m_heldFor.end() ? noSpan : found->second;
}

void StepOps::findPairs()
{
    const auto spans = m_timeline.spans();
    const auto& schedule = m_timeline.schedule();
    for (std::size_t rank = 0; rank < m_busy.size(); ++rank) {
        std::unordered_map<Op, Op> issued; // first of a pair, second
        if (schedule && rank < schedule->paired.size())
            for (const std::uint32_t at : schedule->paired[rank])
                issued.emplace(schedule->order[rank][at], schedule->order[rank][at + 1]);
        const auto& busy = m_busy[rank];
        for (std::size_t i = 0; i + 1 < busy.size(); ++i) {
            const Span& one = spans[busy[i]];
            const Span& other = spans[busy[i + 1]];
            const bool together = one.end > one.start && one.start == other.start && one.end == other.end;
            const auto pair = issued.find(one.op);
            const bool serial = m_heldFor.contains(busy[i]) || (pair != issued.end() && pair->second == other.op);
            if (together || serial) m_issuedWith[busy[i]] = busy[i + 1];
            if (together) m_issuedWith[busy[i + 1]] = busy[i];
        }
    }
}

namespace {

// The first edge into `span` or a later one, searched from `from` in growing steps.
std::size_t firstEdgeInto(std::span<const Edge> edges, SpanId span, std::size_t from)
{
    const auto before = [span](const Edge& edge) { return edge.to < span; };
    if (from > edges.size() || (from > 0 && !before(edges[from - 1]))) from = 0;
    std::size_t step = 1;
    std::size_t low = from;
    while (low + step < edges.size() && before(edges[low + step])) {
        low += step;
        step *= 2;
    }
    const auto begin = edges.begin() + static_cast<std::ptrdiff_t>(low);
    const auto end = edges.begin() + static_cast<std::ptrdiff_t>(std::min(edges.size(), low + step + 1));
    return static_cast<std::size_t>(std::partition_point(begin, end, before) - edges.begin());
}

} // namespace

std::vector<Input> StepOps::inputs(SpanId id) const
{
    std::vector<Input> inputs;
    std::size_t edge = 0;
    appendInputs(id, inputs, edge);
    return inputs;
}

void StepOps::appendInputs(SpanId id, std::vector<Input>& to, std::size_t& edge) const
{
    const std::size_t first = to.size();
    appendOwn(id, to, first, edge);
    if (m_issuedWith.empty()) return;
    const auto other = m_issuedWith.find(id);
    if (other == m_issuedWith.end()) return;
    std::vector<Input> others;
    std::size_t place = edge;
    appendOwn(other->second, others, 0, place);
    for (const Input& input : others)
        if (input.from != id && input.arrival <= m_timeline.spans()[id].start) to.push_back(input);
}

void StepOps::appendOwn(SpanId id, std::vector<Input>& to, std::size_t first, std::size_t& edge) const
{
    const auto spans = m_timeline.spans();
    const auto edges = m_timeline.edges();
    edge = firstEdgeInto(edges, id, edge);
    for (std::size_t i = edge; i < edges.size() && edges[i].to == id; ++i) {
        if (edges[i].kind != EdgeKind::Data) continue;
        const Nanos ready = spans[edges[i].from].end;
        to.push_back({edges[i].from, ready, std::max(ready, edges[i].arrival)});
    }
    const Op& op = spans[id].op;
    if (op.count <= 1) {
        addNeeded(op, to, first);
    } else {
        Op one = op;
        one.count = 1;
        for (int i = 0; i < op.count && one.microbatch <= m_lastMicrobatch; ++i, ++one.microbatch)
            addNeeded(one, to, first);
    }
}

void StepOps::addNeeded(const Op& op, std::vector<Input>& inputs, std::size_t first) const
{
    m_graph.eachNeed(op, m_stages, [&](const Need& need, int stage) {
        Op producer = op;
        producer.stage = static_cast<std::uint16_t>(stage);
        producer.kind = need.kind;
        SpanId from = find(producer);
        if (from == noSpan && need.orKind != need.kind) {
            producer.kind = need.orKind;
            from = find(producer);
        }
        if (from == noSpan) return;
        const bool known = std::any_of(inputs.begin() + static_cast<std::ptrdiff_t>(first), inputs.end(),
                                       [from](const Input& input) { return input.from == from; });
        if (known) return;
        const Nanos ready = m_timeline.spans()[from].end;
        inputs.push_back({from, ready, ready});
    });
}

StepInputs::StepInputs(const StepOps& ops)
{
    std::size_t spans = 0;
    for (int rank = 0; rank < ops.ranks(); ++rank) spans += ops.busy(rank).size();
    m_inputs.reserve(spans + spans / 2);
    m_first.reserve(spans + 1);
    m_first.push_back(0);
    for (int rank = 0; rank < ops.ranks(); ++rank) {
        m_firstOfRank.push_back(m_first.size() - 1);
        std::size_t edge = 0;
        for (const SpanId id : ops.busy(rank)) {
            ops.appendInputs(id, m_inputs, edge);
            m_first.push_back(static_cast<std::uint32_t>(m_inputs.size()));
        }
    }
}

std::vector<Crossing> crossingsOf(const StepOps& ops)
{
    const Timeline& timeline = ops.timeline();
    const auto edges = timeline.edges();
    std::vector<Crossing> out;
    const Track* near = nullptr; // that of the last producer: the next one is mostly on it
    for (int rank = 0; rank < ops.ranks(); ++rank) {
        std::size_t edge = 0;
        for (const SpanId id : ops.busy(rank))
            for (edge = firstEdgeInto(edges, id, edge); edge < edges.size() && edges[edge].to == id; ++edge) {
                const SpanId from = edges[edge].from;
                if (edges[edge].kind != EdgeKind::Data) continue;
                if (near == nullptr || from < near->begin || from >= near->end) near = &timeline.trackOf(from);
                const Nanos produced = timeline.spans()[from].end;
                if (near->rank != rank && near->rank >= 0)
                    out.push_back({id, near->rank, rank, produced, std::max(produced, edges[edge].arrival)});
            }
    }
    return out;
}

bool hasOps(const Timeline& timeline)
{
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute) continue;
        const auto spans = timeline.spansOf(track);
        if (std::any_of(spans.begin(), spans.end(), [](const Span& span) { return isBusyOp(span.op); })) return true;
    }
    return false;
}

std::vector<int> stepsFrom(const Timeline& timeline, int first)
{
    std::vector<int> steps;
    for (const StepMark& mark : timeline.stepMarks())
        if (mark.step >= first && (steps.empty() || steps.back() != mark.step)) steps.push_back(mark.step);
    return steps;
}

std::string_view whyNoArrivals(const Timeline& timeline)
{
    if (timeline.clock() != "wall" || timeline.ranks() < 2) return {};
    const auto spans = timeline.spans();
    bool needed = false;
    for (const Edge& edge : timeline.edges()) {
        if (edge.kind != EdgeKind::Data && edge.kind != EdgeKind::Transfer) continue;
        const Track& from = timeline.trackOf(edge.from);
        if (from.rank == timeline.trackOf(edge.to).rank) continue;
        if (edge.kind == EdgeKind::Data ? edge.arrival > spans[edge.from].end : from.lane == Lane::Send) return {};
        needed = needed || edge.kind == EdgeKind::Data;
    }
    if (needed) return noArrivalSeen;
    const Span* first = nullptr; // without edges: ranks with ops of several stages need something of each other
    int rank = 0;
    for (const Track& track : timeline.tracks()) {
        if (track.lane != Lane::Compute) continue;
        for (const Span& span : timeline.spansOf(track)) {
            if (!isBusyOp(span.op)) continue;
            if (first == nullptr) {
                first = &span;
                rank = track.rank;
            } else if (track.rank != rank && span.op.stage != first->op.stage) {
                return noArrivalSeen;
            }
        }
    }
    return {};
}

std::string_view whyNoOps(const Timeline& timeline)
{
    const auto tracks = timeline.tracks();
    const bool ranges = std::any_of(tracks.begin(), tracks.end(), [](const Track& track) {
        return track.lane == Lane::Other && track.end > track.begin;
    });
    return ranges ? noOpRecognised : noRanges;
}

} // namespace stagewright
