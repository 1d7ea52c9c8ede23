#include "traces/export/kineto_host.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "schedules/base/step_number.h"
#include "schedules/model/kinds.h"
#include "traces/analysis/device_idle.h"
#include "traces/foreign/label_rules.h"

namespace stagewright {

namespace {

constexpr std::string_view deviceSuffix = " on the device";

// The number after `word`; −1: none, or not a small one.
int numberAfter(std::string_view text, std::string_view word)
{
    const auto at = text.find(word);
    if (at == std::string_view::npos) return -1;
    int number = -1;
    const std::string_view rest = text.substr(at + word.size());
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    return error == std::errc() && number >= 0 ? number : -1;
}

// The track of the ranges whose times on the device this one has.
std::string_view hostOf(const Track& onDevice)
{
    return std::string_view(onDevice.name).substr(0, onDevice.name.size() - deviceSuffix.size());
}

bool namedAsOperator(std::string_view name)
{
    return name.starts_with("aten::") || name.starts_with("autograd::") || name.starts_with("c10d::");
}

} // namespace

std::string_view withoutRank(const Track& track)
{
    const std::string prefix = fmt::format("rank {} ", track.rank);
    const std::string_view name = track.name;
    return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

KinetoHost::KinetoHost(const Timeline& timeline, int rank) : m_timeline(timeline), m_rank(rank)
{
    for (int thread = 0; thread < 10; ++thread) m_taken.insert(thread);
    nameThreads();
    nameStreams();
    findSteps();
    placeOps();
    placeLaunches();
}

bool KinetoHost::onDevice(const Track& track) const
{
    return track.lane == Lane::Other && track.name.ends_with(deviceSuffix);
}

bool KinetoHost::isOperator(const Span& range) const
{
    return range.label == 0 || (!m_workInOperators && namedAsOperator(m_timeline.labelOf(range)));
}

int KinetoHost::freeThread()
{
    int thread = 10;
    while (!m_taken.insert(thread).second) ++thread;
    return thread;
}

void KinetoHost::nameThreads()
{
    for (const Track& track : m_timeline.tracks()) {
        if (track.rank != m_rank || track.lane != Lane::Other || onDevice(track)) continue;
        const std::string_view name = withoutRank(track);
        int number = name.starts_with("thread ") ? numberAfter(name, "thread ") : -1;
        if (number < 0 || !m_taken.insert(number).second) number = freeThread();
        m_threads[track.name] = {number, std::string(name)};
    }
}

void KinetoHost::nameStreams()
{
    std::set<std::pair<int, int>> taken;
    std::vector<const Track*> without;
    for (const Track& track : m_timeline.tracks()) {
        if (track.rank != m_rank || !isDeviceLane(track.lane)) continue;
        const std::string_view name = withoutRank(track);
        const int stream = numberAfter(name, "stream ");
        if (stream < 0) {
            without.push_back(&track);
            continue;
        }
        const std::pair place{std::max(0, numberAfter(name, "GPU ")), stream};
        m_streams[track.name] = place; // a stream's kernels and copies
        taken.insert(place);
    }
    int next = 7;
    for (const Track* track : without) {
        if (m_streams.contains(track->name)) continue;
        while (!taken.insert({0, next}).second) ++next;
        m_streams[track->name] = {0, next};
    }
}

std::optional<KinetoHost::Thread> KinetoHost::threadOf(const Track& track) const
{
    const auto found = m_threads.find(track.name);
    return found == m_threads.end() ? std::nullopt : std::optional(found->second);
}

std::pair<int, int> KinetoHost::streamOf(const Track& track) const
{
    const auto found = m_streams.find(track.name);
    return found == m_streams.end() ? std::pair(0, 7) : found->second;
}

std::pair<int, int> KinetoHost::firstStreamFrom(SpanId range) const
{
    const auto found = m_firstFrom.find(range);
    return found == m_firstFrom.end() ? std::pair(0, 7) : streamOf(m_timeline.trackOf(found->second));
}

void KinetoHost::findSteps()
{
    constexpr std::string_view mark = "ProfilerStep#";
    std::set<long long> numbers;
    for (const Track& track : m_timeline.tracks()) { // of any rank, so that all ranks number alike
        if (track.lane != Lane::Other) continue;
        for (const Span& span : m_timeline.spansOf(track)) {
            const std::string_view label = m_timeline.labelOf(span);
            m_workInOperators =
                m_workInOperators || (track.rank == m_rank && onDevice(track) && namedAsOperator(label));
            if (!label.starts_with(mark)) continue;
            m_marksSteps = true;
            if (const auto thread = onDevice(track) ? m_threads.find(hostOf(track)) : m_threads.end();
                track.rank == m_rank && thread != m_threads.end())
                m_stepThread = thread->second.number;
            if (const int number = numberAfter(label, mark); number >= 0 && span.step != outsideSteps)
                m_stepNumbers.try_emplace(span.step, number);
        }
    }
    for (const auto& [step, number] : m_stepNumbers) numbers.insert(number);
    bool rises = static_cast<int>(m_stepNumbers.size()) == m_timeline.steps() && numbers.size() == m_stepNumbers.size();
    for (auto at = m_stepNumbers.begin(); rises && at != m_stepNumbers.end() && std::next(at) != m_stepNumbers.end();
         ++at)
        rises = at->second < std::next(at)->second;
    if (rises) return;
    m_stepNumbers.clear();
    for (int step = 0; step < m_timeline.steps(); ++step) m_stepNumbers[step] = step;
}

void KinetoHost::placeOps()
{
    const LabelRules& rules = LabelRules::builtIn();
    std::map<std::pair<int, Op>, std::vector<SpanId>> ranges; // of the host, by step and op
    std::vector<std::int8_t> isOp;                            // by label: −1 not looked at
    for (const Track& track : m_timeline.tracks()) {
        if (track.rank != m_rank || track.lane != Lane::Other || onDevice(track)) continue;
        for (SpanId id = track.begin; id < track.end; ++id) {
            const Span& span = m_timeline.spans()[id];
            if (span.label >= isOp.size()) isOp.resize(span.label + 1, -1);
            if (isOp[span.label] == 0) continue;
            const auto meaning = span.label == 0 ? std::nullopt : rules.meaningOf(m_timeline.labelOf(span));
            isOp[span.label] =
                meaning && meaning->what == LabelMeaning::What::Op && meaning->dialect == LabelDialect::PyTorch ? 1 : 0;
            if (isOp[span.label] == 0) continue;
            for (Op op : meaning->ops) {
                ranges[{span.step, op}].push_back(id);
                if (!isFullBackward(op.kind)) continue;
                op.kind = otherReturn(op.kind); // as older labels are read
                ranges[{span.step, op}].push_back(id);
            }
        }
    }
    struct Calls {
        Nanos first = std::numeric_limits<Nanos>::max();
        Nanos last = std::numeric_limits<Nanos>::min();
    };
    const auto callsOf = [&](SpanId id, Calls& calls) {
        for (const Edge& edge : m_timeline.edgesFrom(id)) {
            if (edge.kind != EdgeKind::Launch) continue;
            calls.first = std::min(calls.first, edge.arrival);
            calls.last = std::max(calls.last, edge.arrival);
        }
    };
    const auto all = m_timeline.spans();
    std::vector<Span> apart;
    std::vector<std::pair<SpanId, int>> units; // first of an op or a pair, how many
    for (const Track& track : m_timeline.tracks()) {
        if (track.rank != m_rank || track.lane != Lane::Compute) continue;
        const auto rows = sublanes(m_timeline.spansOf(track));
        for (SpanId id = track.begin; id < track.end; ++id) {
            const Span& span = all[id];
            const bool pair = id + 1 < track.end && span.label == 0 && all[id + 1].label == 0 &&
                              all[id + 1].start == span.start && all[id + 1].end == span.end && span.end > span.start;
            Calls calls;
            callsOf(id, calls);
            if (pair) callsOf(id + 1, calls);
            HostOp place{span.start, span.end, kinetoHostThread, false};
            const bool inside = calls.last < calls.first ||
                                (calls.first >= span.start && calls.last < std::max(span.end, span.start + 1));
            if (const int row = rows[id - track.begin]; row > 0) place.thread = kinetoOverlapThread + row;
            if (const auto found = span.label == 0 ? ranges.find({span.step, span.op}) : ranges.end();
                found != ranges.end())
                for (const SpanId range : found->second) {
                    m_used.insert(range);
                    if (inside || all[range].start > calls.first || all[range].end < calls.last) continue;
                    place = {all[range].start, all[range].end, threadOf(m_timeline.trackOf(range))->number, true};
                }
            if (!inside && !place.apart) {
                place = {calls.first, calls.last + 1, -1, true};
                Span hull = span;
                hull.start = place.start;
                hull.end = place.end;
                apart.push_back(hull);
                units.emplace_back(id, pair ? 2 : 1);
            }
            m_ops[id] = place;
            if (pair) m_ops[++id] = place;
        }
    }
    // Those made of calls: where they overlap, on threads of their own, so that each call is within its op alone.
    std::vector<std::size_t> order(apart.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::pair(apart[a].start, apart[a].end) < std::pair(apart[b].start, apart[b].end);
    });
    std::vector<Span> sorted;
    sorted.reserve(order.size());
    for (const std::size_t i : order) sorted.push_back(apart[i]);
    const auto rows = sublanes(sorted);
    for (std::size_t k = 0; k < order.size(); ++k) {
        const auto& [id, count] = units[order[k]];
        for (int i = 0; i < count; ++i)
            m_ops[id + static_cast<SpanId>(i)].thread = rows[k] == 0 ? kinetoHostThread : kinetoOverlapThread + rows[k];
    }
}

SpanId KinetoHost::graphOf(SpanId work) const
{
    const auto found = m_graphOf.find(work);
    return found == m_graphOf.end() ? noSpan : found->second;
}

void KinetoHost::placeLaunches()
{
    std::unordered_map<Nanos, SpanId> graphs; // calls by their start
    for (const Track& track : m_timeline.tracks()) {
        if (track.rank != m_rank || track.lane != Lane::Other) continue;
        for (SpanId id = track.begin; id < track.end; ++id)
            if (const Span& span = m_timeline.spans()[id]; span.label != 0 && isGraphLaunch(m_timeline.labelOf(span)))
                graphs.emplace(span.start, id);
    }
    for (const Track& track : m_timeline.tracks()) {
        if (track.rank != m_rank || !isDeviceLane(track.lane)) continue;
        for (SpanId id = track.begin; id < track.end; ++id) {
            for (const Edge& edge : m_timeline.edgesInto(id)) {
                if (edge.kind != EdgeKind::Launch) continue;
                HostLaunch launch{id, edge.arrival, kinetoLaunchThread, noSpan};
                if (const auto graph = graphs.find(edge.arrival); graph != graphs.end()) {
                    launch.graph = graph->second;
                    m_graphOf.emplace(id, graph->second);
                    m_graphs.insert(graph->second);
                }
                const Track& from = m_timeline.trackOf(edge.from);
                if (edge.from != id && from.rank == m_rank) {
                    const auto [first, added] = m_firstFrom.try_emplace(edge.from, id);
                    if (!added && m_timeline.spans()[first->second].start > m_timeline.spans()[id].start)
                        first->second = id;
                    if (const auto op = m_ops.find(edge.from); op != m_ops.end()) {
                        launch.thread = op->second.thread;
                        launch.time =
                            std::clamp(launch.time, op->second.start, std::max(op->second.start, op->second.end - 1));
                    } else if (from.lane == Lane::Other) {
                        const auto thread = m_threads.find(onDevice(from) ? hostOf(from) : std::string_view(from.name));
                        if (thread != m_threads.end()) launch.thread = thread->second.number;
                    }
                }
                m_launches.push_back(launch);
                break; // one call launched it
            }
        }
    }
    std::stable_sort(m_launches.begin(), m_launches.end(),
                     [](const HostLaunch& a, const HostLaunch& b) { return a.time < b.time; });
}

} // namespace stagewright
