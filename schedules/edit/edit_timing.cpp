#include "schedules/edit/edit_timing.h"

#include <algorithm>
#include <cctype>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/edit/edit.h"
#include "schedules/edit/edit_row.h"
#include "schedules/messages/message_delay.h"
#include "schedules/model/kinds.h"
#include "schedules/model/op_index.h"
#include "schedules/step/step_arrivals.h"

namespace stagewright {

namespace {

bool canCarry(const Schedule& schedule) { return schedule.order.size() == static_cast<std::size_t>(schedule.ranks); }

} // namespace

std::vector<Nanos> arrivalsOf(const Schedule& schedule, const CostModel& costs, const SimResult& times)
{
    std::vector<Nanos> out(schedule.opCount(), 0);
    const auto cells = cellsOf(schedule);
    if (!cells || times.end.size() != out.size()) return out;
    const OpIndex index(schedule, *cells);
    const std::vector<Bytes> boundary = boundaryOf(schedule, costs);
    const StepRules rules{costs.links, {}, boundary};
    const StepArrivals arrivals(schedule, index, rules, times.end);
    for (int r = 0; r < schedule.ranks; ++r)
        for (std::size_t i = 0; i < schedule.order[static_cast<std::size_t>(r)].size(); ++i)
            arrivals.eachInput(r, i, [&](std::uint32_t, const Need&, const StepArrivals::Way& way) {
                Nanos& arrival = out[index.idOf(r, i)];
                arrival = std::max(arrival, way.arrival);
            });
    return out;
}

RowGap gapBefore(const SimResult& times, int rank, int place)
{
    RowGap gap{rank, place, 0, 0};
    const std::size_t first = times.indexOf(rank, 0), count = times.indexOf(rank + 1, 0) - first;
    if (place < 0 || static_cast<std::size_t>(place) >= count) return {};
    gap.begin = place == 0 ? 0 : times.end[first + static_cast<std::size_t>(place) - 1];
    gap.end = times.start[first + static_cast<std::size_t>(place)];
    return gap;
}

RowGap gapAt(const SimResult& times, int rank, Nanos time)
{
    if (rank < 0 || static_cast<std::size_t>(rank) + 1 >= times.offsets.size()) return {};
    const auto begin = times.start.begin() + static_cast<std::ptrdiff_t>(times.offsets[static_cast<std::size_t>(rank)]);
    const auto end =
        times.start.begin() + static_cast<std::ptrdiff_t>(times.offsets[static_cast<std::size_t>(rank) + 1]);
    const RowGap gap = gapBefore(times, rank, static_cast<int>(std::upper_bound(begin, end, time) - begin));
    return gap.valid() && gap.begin <= time ? gap : RowGap{};
}

Result<Edited> fillGap(const Schedule& schedule, const CostModel& costs, const SimResult& times, const RowGap& gap)
{
    if (!gap.valid() || static_cast<std::size_t>(gap.rank) >= schedule.order.size())
        return fail(ErrorCode::Usage, "no gap is chosen", "click an idle part of a row, or an op after one");
    const auto& row = schedule.order[static_cast<std::size_t>(gap.rank)];
    const std::vector<Nanos> arrivals = arrivalsOf(schedule, costs, times);
    const std::vector<Nanos> durations = durationsOf(schedule, costs);
    const std::size_t first = times.indexOf(gap.rank, 0);
    const auto unit = static_cast<double>(std::max<Nanos>(1, costs.timeUnit));
    std::vector<OpPosition> chosen;
    std::vector<char> taken(row.size(), 0);
    Nanos at = gap.begin;
    std::string nearest;
    while (true) {
        int best = -1;
        int missed = -1;
        for (std::size_t i = static_cast<std::size_t>(gap.before); i < row.size(); ++i) {
            if (!isDeferrable(row[i].kind) || taken[i] != 0) continue;
            if (arrivals[first + i] <= at && durations[first + i] <= gap.end - at) {
                if (best < 0 || durations[first + i] > durations[first + static_cast<std::size_t>(best)])
                    best = static_cast<int>(i);
            } else if (missed < 0) {
                missed = static_cast<int>(i);
            }
        }
        if (best < 0) {
            if (missed >= 0) {
                const std::size_t id = first + static_cast<std::size_t>(missed);
                nearest =
                    arrivals[id] > at
                        ? fmt::format("the next, {}, is ready at {:.6g}", toText(row[static_cast<std::size_t>(missed)]),
                                      static_cast<double>(arrivals[id]) / unit)
                        : fmt::format("{} takes {:.6g}", toText(row[static_cast<std::size_t>(missed)]),
                                      static_cast<double>(durations[id]) / unit);
            }
            break;
        }
        taken[static_cast<std::size_t>(best)] = 1;
        chosen.push_back({gap.rank, best});
        at += durations[first + static_cast<std::size_t>(best)];
        if (durations[first + static_cast<std::size_t>(best)] == 0) break;
    }
    if (chosen.empty())
        return fail(ErrorCode::Usage,
                    fmt::format("no weight gradient of rank {} fits the gap of {:.6g} at {:.6g}; {}", gap.rank,
                                static_cast<double>(gap.end - gap.begin) / unit, static_cast<double>(gap.begin) / unit,
                                nearest.empty() ? std::string("there is none after it") : nearest),
                    nearest.empty() ? "split a backward first" : "");
    EditRow list(schedule, gap.rank);
    std::vector<EditRow::Entry> after;
    Edited out{schedule, {}};
    for (std::size_t i = 0; i < row.size(); ++i) {
        if (i == static_cast<std::size_t>(gap.before))
            for (const OpPosition at2 : chosen) {
                out.positions.push_back({gap.rank, static_cast<int>(after.size())});
                after.push_back({row[static_cast<std::size_t>(at2.position)], -1});
            }
        if (taken[i] == 0) after.push_back(list.entries[i]);
    }
    list.entries = std::move(after);
    list.writeTo(out.schedule, gap.rank);
    return out;
}

Result<Edited> snapToEarliest(const Schedule& schedule, const CostModel& costs, const SimResult& times,
                              const std::vector<OpPosition>& positions)
{
    if (positions.empty()) return fail(ErrorCode::Usage, "no op is selected", "select one first");
    const std::vector<Nanos> arrivals = arrivalsOf(schedule, costs, times);
    std::vector<OpPosition> sorted = positions;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    Edited out{schedule, {}};
    for (std::size_t a = 0; a < sorted.size();) {
        const int rank = sorted[a].rank;
        if (opAt(schedule, sorted[a]) == nullptr)
            return fail(ErrorCode::Usage,
                        fmt::format("rank {} has no op at place {}", rank, opNumber(sorted[a].position)));
        EditRow row(schedule, rank);
        struct Place {
            std::size_t before; // the entry is in front of this place in the row
            int order;          // −1: it was moved there; those come first
            std::size_t from;
        };
        std::vector<Place> places;
        for (std::size_t i = 0; i < row.entries.size(); ++i) places.push_back({i, 0, i});
        const std::size_t first = times.indexOf(rank, 0);
        for (; a < sorted.size() && sorted[a].rank == rank; ++a) {
            if (opAt(schedule, sorted[a]) == nullptr)
                return fail(ErrorCode::Usage,
                            fmt::format("rank {} has no op at place {}", rank, opNumber(sorted[a].position)));
            const auto from = static_cast<std::size_t>(sorted[a].position);
            std::size_t to = 0;
            while (to < from && times.start[first + to] < arrivals[first + from]) ++to;
            if (to < from) places[from] = {to, -1, from};
        }
        std::stable_sort(places.begin(), places.end(), [](const Place& x, const Place& y) {
            return std::pair(x.before, x.order) < std::pair(y.before, y.order);
        });
        std::vector<EditRow::Entry> after;
        for (const Place& place : places) {
            if (std::binary_search(sorted.begin(), sorted.end(), OpPosition{rank, static_cast<int>(place.from)}))
                out.positions.push_back({rank, static_cast<int>(after.size())});
            after.push_back(row.entries[place.from]);
        }
        row.entries = std::move(after);
        row.writeTo(out.schedule, rank);
    }
    return out;
}

Schedule earliestOrder(const Schedule& schedule, const CostModel& costs, const std::vector<std::size_t>& kept)
{
    const auto cells = cellsOf(schedule);
    if (!cells || !canCarry(schedule)) return schedule;
    const OpIndex index(schedule, *cells);
    const std::vector<Nanos> durations = durationsOf(schedule, costs);
    const std::vector<Bytes> boundary = boundaryOf(schedule, costs);
    const std::size_t count = schedule.opCount();
    // How many inputs each op still waits for, and who waits for it. Stage ops and delays keep their place behind what
    // stood before them: each waits for its predecessor in the list, and its successor for it.
    std::vector<std::uint32_t> waits(count, 0), heads(count + 1, 0);
    struct Edge {
        std::uint32_t from, to;
        Nanos delay;
    };
    std::vector<Edge> edges;
    edges.reserve(count * 2);
    std::uint32_t id = 0;
    for (int r = 0; r < schedule.ranks; ++r) {
        const auto& row = schedule.order[static_cast<std::size_t>(r)];
        std::size_t fence = 0; // ops before the last one that keeps its place
        const std::uint32_t base = id;
        for (std::size_t i = 0; i < row.size(); ++i, ++id) {
            const bool pairSecond = i > 0 && schedule.isPaired(r, i - 1);
            if (!isCompute(row[i].kind)) {
                for (std::size_t k = fence; k < i; ++k) edges.push_back({base + static_cast<std::uint32_t>(k), id, 0});
                fence = i;
            } else if (fence > 0 || (!row.empty() && !isCompute(row[0].kind) && i > 0)) {
                edges.push_back({base + static_cast<std::uint32_t>(fence), id, 0});
            }
            if (pairSecond ||
                (i > 0 && static_cast<std::size_t>(r) < kept.size() && i < kept[static_cast<std::size_t>(r)]))
                edges.push_back({id - 1, id, 0});
            index.eachInput(row[i], [&](std::uint32_t from, const Need&, int stage) {
                if (from == noOp || from == id) return;
                edges.push_back(
                    {from, id, messageDelay(schedule, costs.links, boundary, row[i], stage, r, cells->slices)});
            });
        }
    }
    for (const Edge& edge : edges) {
        ++waits[edge.to];
        ++heads[edge.from + 1];
    }
    for (std::size_t i = 1; i < heads.size(); ++i) heads[i] += heads[i - 1];
    std::vector<std::uint32_t> byFrom(edges.size()), next(heads.begin(), heads.end() - 1);
    for (std::uint32_t e = 0; e < edges.size(); ++e) byFrom[next[edges[e].from]++] = e;

    using Ready = std::pair<Nanos, std::uint32_t>; // when its inputs are there, op
    using Queue = std::priority_queue<Ready, std::vector<Ready>, std::greater<>>;
    std::vector<Queue> ready(static_cast<std::size_t>(schedule.ranks));
    std::vector<Nanos> arrival(count, 0), clock(static_cast<std::size_t>(schedule.ranks), 0);
    // when a rank can start its next op; the rank. One counts for each rank, the earliest: what waits may be many
    Queue events;
    constexpr Nanos none = -1;
    std::vector<Nanos> pending(static_cast<std::size_t>(schedule.ranks), none);
    auto wake = [&](std::uint32_t rank, Nanos time) {
        if (pending[rank] != none && pending[rank] <= time) return;
        pending[rank] = time;
        events.push({time, rank});
    };
    auto announce = [&](std::uint32_t op) {
        const auto r = static_cast<std::uint32_t>(index.placeOf(op).rank);
        ready[r].push({arrival[op], op});
        wake(r, std::max(clock[r], arrival[op]));
    };
    for (std::uint32_t op = 0; op < count; ++op)
        if (waits[op] == 0) announce(op);
    std::vector<std::vector<std::uint32_t>> taken(static_cast<std::size_t>(schedule.ranks));
    while (!events.empty()) {
        const auto [time, rank] = events.top();
        events.pop();
        if (pending[rank] != time) continue; // an earlier one came after it
        pending[rank] = none;
        auto& queue = ready[rank];
        if (queue.empty()) continue;
        const Nanos start = std::max(clock[rank], queue.top().first);
        if (start > time) {
            wake(rank, start);
            continue;
        }
        const std::uint32_t op = queue.top().second;
        queue.pop();
        taken[rank].push_back(op);
        const Nanos end = start + durations[op];
        clock[rank] = end;
        for (std::uint32_t e = heads[op]; e < heads[op + 1]; ++e) {
            const Edge& edge = edges[byFrom[e]];
            arrival[edge.to] = std::max(arrival[edge.to], end + edge.delay);
            if (--waits[edge.to] == 0) announce(edge.to);
        }
        if (!queue.empty()) wake(rank, std::max(clock[rank], queue.top().first));
    }
    Schedule out = schedule;
    for (int r = 0; r < schedule.ranks; ++r) {
        const EditRow before(schedule, r);
        auto& list = taken[static_cast<std::size_t>(r)];
        if (list.size() != before.entries.size()) return schedule; // its needs form a cycle: stays as it is
        EditRow after(schedule, r);
        for (std::size_t i = 0; i < list.size(); ++i) after.entries[i] = before.entries[list[i] - index.idOf(r, 0)];
        after.writeTo(out, r);
    }
    return out;
}

namespace {

// Runs the lists without times. If they deadlock, something is carried. Ops keep their numbers, whatever their places.
class Carrier {
public:
    Carrier(const Schedule& schedule, const OpIndex& index, std::uint32_t moved, bool later)
        : m_index(index), m_later(later), m_done(index.opCount(), 0), m_marked(index.opCount(), 0),
          m_needs(index.opCount()), m_lists(schedule.order.size()), m_head(schedule.order.size(), 0)
    {
        std::uint32_t id = 0;
        for (std::size_t r = 0; r < m_lists.size(); ++r)
            for (const EditRow::Entry& entry : EditRow(schedule, static_cast<int>(r)).entries) {
                m_entries.push_back(entry);
                m_lists[r].push_back(id);
                index.eachInput(entry.op, [&](std::uint32_t from, const Need&, int) {
                    if (from != noOp && from != id) m_needs[id].push_back(from);
                });
                ++id;
            }
        mark(moved);
        if (later) follow(moved);
    }

    // False: nothing that may be carried helps, and the schedule stays as it is.
    bool run(Schedule& schedule)
    {
        while (true) {
            bool moved = false, left = false;
            for (std::size_t r = 0; r < m_lists.size(); ++r) {
                while (m_head[r] < m_lists[r].size() && ready(r)) {
                    for (std::size_t n = width(r); n > 0; --n) m_done[m_lists[r][m_head[r]++]] = 1;
                    moved = true;
                }
                left = left || m_head[r] < m_lists[r].size();
            }
            if (!left) break;
            if (!moved && !(m_later ? putOff() : bringForward())) return false;
        }
        for (std::size_t r = 0; r < m_lists.size(); ++r) {
            EditRow row(schedule, static_cast<int>(r));
            for (std::size_t i = 0; i < m_lists[r].size(); ++i) row.entries[i] = m_entries[m_lists[r][i]];
            row.writeTo(schedule, static_cast<int>(r));
        }
        return true;
    }

private:
    // Every op that needs `moved`, or that it needs, over any number of steps.
    void mark(std::uint32_t moved)
    {
        std::vector<std::vector<std::uint32_t>> needing(m_later ? m_needs.size() : 0);
        for (std::uint32_t id = 0; id < needing.size(); ++id)
            for (const std::uint32_t from : m_needs[id]) needing[from].push_back(id);
        m_marked[moved] = 1;
        for (std::vector<std::uint32_t> pending{moved}; !pending.empty();) {
            const std::uint32_t at = pending.back();
            pending.pop_back();
            for (const std::uint32_t other : (m_later ? needing : m_needs)[at])
                if (std::exchange(m_marked[other], 1) == 0) pending.push_back(other);
        }
    }
    // On its own rank, ops before it that depend on it go behind it.
    void follow(std::uint32_t moved)
    {
        auto& list = m_lists[static_cast<std::size_t>(m_index.placeOf(moved).rank)];
        std::stable_partition(list.begin(), std::find(list.begin(), list.end(), moved) + 1,
                              [&](std::uint32_t id) { return id == moved || m_marked[id] == 0; });
    }
    std::size_t width(std::size_t r) const
    {
        const auto& list = m_lists[r];
        const std::size_t i = m_head[r];
        const int pair = m_entries[list[i]].pairId;
        return pair >= 0 && i + 1 < list.size() && m_entries[list[i + 1]].pairId == pair ? 2 : 1;
    }
    bool ready(std::size_t r) const
    {
        const std::uint32_t first = m_lists[r][m_head[r]];
        for (std::size_t n = 0; n < width(r); ++n)
            for (const std::uint32_t from : m_needs[m_lists[r][m_head[r] + n]])
                if (m_done[from] == 0 && (n == 0 || from != first)) return false;
        return true;
    }
    // A marked op at a head lets the first op behind it pass that is not marked.
    bool putOff()
    {
        for (std::size_t r = 0; r < m_lists.size(); ++r) {
            const auto head = m_lists[r].begin() + static_cast<std::ptrdiff_t>(m_head[r]);
            if (head == m_lists[r].end() || m_marked[*head] == 0) continue;
            const auto free = std::find_if(head, m_lists[r].end(), [&](std::uint32_t id) { return m_marked[id] == 0; });
            if (free == m_lists[r].end()) continue;
            std::rotate(head, free, free + 1);
            return true;
        }
        return false;
    }
    // What a marked op at a head waits for in the end comes to the head of its own rank.
    bool bringForward()
    {
        for (std::size_t r = 0; r < m_lists.size(); ++r) {
            if (m_head[r] >= m_lists[r].size() || m_marked[m_lists[r][m_head[r]]] == 0) continue;
            std::uint32_t wanted = m_lists[r][m_head[r]]; // followed to an op that lacks nothing
            for (bool more = true; more;) {
                const auto& needs = m_needs[wanted];
                const auto lacking =
                    std::find_if(needs.begin(), needs.end(), [&](std::uint32_t from) { return m_done[from] == 0; });
                more = lacking != needs.end();
                if (more) wanted = *lacking;
            }
            const auto rank = static_cast<std::size_t>(m_index.placeOf(wanted).rank);
            const auto first = m_lists[rank].begin() + static_cast<std::ptrdiff_t>(m_head[rank]);
            const auto at = std::find(first, m_lists[rank].end(), wanted);
            if (at == m_lists[rank].end() || at == first) continue;
            std::rotate(first, at, at + 1);
            return true;
        }
        return false;
    }

    const OpIndex& m_index;
    bool m_later;
    std::vector<char> m_done, m_marked;              // by op
    std::vector<EditRow::Entry> m_entries;           // likewise
    std::vector<std::vector<std::uint32_t>> m_needs; // likewise
    std::vector<std::vector<std::uint32_t>> m_lists; // ops by rank
    std::vector<std::size_t> m_head;
};

} // namespace

Result<Edited> moveCarrying(const Schedule& schedule, OpPosition from, int to)
{
    const Op* op = opAt(schedule, from);
    if (op == nullptr)
        return fail(ErrorCode::Usage, fmt::format("rank {} has no op at place {}", from.rank, opNumber(from.position)));
    const Op moved = *op;
    auto out = moveOps(schedule, {from}, to - from.position);
    if (!out) return out;
    const auto cells = cellsOf(out->schedule);
    if (!cells || !canCarry(schedule) || validate(out->schedule).valid()) return out;
    const OpIndex index(out->schedule, *cells);
    const OpPosition at = positionOf(out->schedule, moved, from.rank);
    Carrier carrier(out->schedule, index, index.idOf(at.rank, static_cast<std::size_t>(at.position)),
                    to > from.position);
    if (!carrier.run(out->schedule)) return out; // still the requested move; its faults are reported
    out->positions = {positionOf(out->schedule, moved, from.rank)};
    return out;
}

std::string MoveRefusal::sentence(const Op& op) const
{
    std::string out = fmt::format("{} can't go there: {}.", toText(op), reason);
    if (!where.empty())
        out += fmt::format(" {}{}.", static_cast<char>(std::toupper(static_cast<unsigned char>(where[0]))),
                           where.substr(1));
    return out;
}

MoveRefusal explainMove(const Schedule& schedule, OpPosition from, int to)
{
    MoveRefusal out;
    const Op* found = opAt(schedule, from);
    if (found == nullptr || to == from.position) return out;
    const Op op = *found;
    auto moved = moveOps(schedule, {from}, to - from.position);
    if (!moved) return out;
    const Validation after = validate(moved->schedule);
    if (after.valid()) return out;
    if (!validate(schedule).valid()) { // no place is right while the order has other faults
        out.refused = true;
        out.reason = after.faults.front().message;
        return out;
    }
    out.refused = true;
    const MoveRange range = validMoves(schedule, from.rank, static_cast<std::size_t>(from.position));
    const auto& row = schedule.order[static_cast<std::size_t>(from.rank)];
    const bool early = to < from.position;
    out.goThere = static_cast<int>(early ? range.first : range.last);
    const auto cells = cellsOf(schedule);
    if (!cells) return out;
    const OpIndex index(schedule, *cells);
    if (early) {
        const Op& blocker = row[range.first == 0 ? 0 : range.first - 1];
        out.where = range.first == 0 ? std::string("earliest place: first on its rank")
                                     : fmt::format("earliest place: after {}", toText(blocker));
        if (range.first > 0) {
            const std::uint32_t blockerId = index.idOf(from.rank, range.first - 1);
            OpPlace via;
            bool direct = false, distant = false;
            index.eachInput(op, [&](std::uint32_t id, const Need&, int) {
                if (id == blockerId) direct = true;
                if (id == noOp || index.placeOf(id).rank == from.rank) return;
                via = index.placeOf(id);
                distant = true;
            });
            if (direct || !distant)
                out.reason = fmt::format("it needs {} of its own rank", toText(blocker));
            else
                out.reason = fmt::format("it needs {} of rank {}, which waits for {} here",
                                         toText(schedule.order[static_cast<std::size_t>(via.rank)][via.position]),
                                         via.rank, toText(blocker));
            return out;
        }
    } else if (range.last + 1 < row.size()) {
        const Op& waiting = row[range.last + 1];
        out.where = fmt::format("latest place: before {}", toText(waiting));
        const std::uint32_t own = index.idOf(from.rank, static_cast<std::size_t>(from.position));
        bool direct = false;
        index.eachInput(waiting, [&](std::uint32_t id, const Need&, int) { direct = direct || id == own; });
        OpPlace via;
        bool distant = false;
        for (int r = 0; r < schedule.ranks && !direct && !distant; ++r) {
            const auto& other = schedule.order[static_cast<std::size_t>(r)];
            for (std::size_t i = 0; i < other.size() && r != from.rank && !distant; ++i)
                index.eachInput(other[i], [&](std::uint32_t id, const Need&, int) {
                    if (id != own) return;
                    via = {r, i};
                    distant = true;
                });
        }
        out.reason = direct || !distant
                         ? fmt::format("{} needs it", toText(waiting))
                         : fmt::format("{} of rank {} needs it, and {} here waits for that",
                                       toText(schedule.order[static_cast<std::size_t>(via.rank)][via.position]),
                                       via.rank, toText(waiting));
        return out;
    }
    out.reason = after.faults.front().message;
    return out;
}

} // namespace stagewright
