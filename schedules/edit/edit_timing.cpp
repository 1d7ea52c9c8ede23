#include "schedules/edit/edit_timing.h"

#include <algorithm>
#include <cctype>
#include <queue>

#include <fmt/format.h>

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
            if (!isWeightGrad(row[i].kind) || taken[i] != 0) continue;
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
            return fail(ErrorCode::Usage, fmt::format("rank {} has no op at place {}", rank, sorted[a].position));
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
                return fail(ErrorCode::Usage, fmt::format("rank {} has no op at place {}", rank, sorted[a].position));
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
            index.eachInput(row[i], [&](std::uint32_t from, const Need& need, std::size_t) {
                if (from == noOp || from == id) return;
                edges.push_back({from, id,
                                 need.stageOffset == 0 ? 0
                                                       : messageDelay(schedule, costs.links, boundary, row[i],
                                                                      row[i].stage + need.stageOffset, need.stageOffset,
                                                                      r, cells->slices)});
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
    std::vector<int> rankOf(count);
    for (int r = 0; r < schedule.ranks; ++r)
        for (std::size_t i = 0; i < schedule.order[static_cast<std::size_t>(r)].size(); ++i)
            rankOf[index.idOf(r, i)] = r;
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
        const auto r = static_cast<std::uint32_t>(rankOf[op]);
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

// Runs the lists without times. If they deadlock, something is carried.
class Carrier {
public:
    Carrier(Schedule& schedule, const OpIndex& index, const Op& moved, bool later)
        : m_schedule(schedule), m_index(index), m_later(later)
    {
        m_done.assign(index.opCount(), 0);
        for (int r = 0; r < schedule.ranks; ++r) {
            auto& row = m_rows.emplace_back(schedule, r);
            for (std::size_t i = 0; i < row.entries.size(); ++i) m_originals.push_back(row.entries[i].op);
        }
        mark(moved);
        if (later) follow(moved);
    }

    // False: nothing that may be carried helps.
    bool run()
    {
        m_head.assign(m_rows.size(), 0);
        while (true) {
            bool moved = false, left = false;
            for (std::size_t r = 0; r < m_rows.size(); ++r) {
                while (m_head[r] < m_rows[r].entries.size() && ready(r)) {
                    for (std::size_t n = width(r); n > 0; --n)
                        m_done[idOf(m_rows[r].entries[m_head[r]++].op, static_cast<int>(r))] = 1;
                    moved = true;
                }
                left = left || m_head[r] < m_rows[r].entries.size();
            }
            if (!left) break;
            if (!moved && !(m_later ? putOff() : bringForward())) return false;
        }
        for (std::size_t r = 0; r < m_rows.size(); ++r) m_rows[r].writeTo(m_schedule, static_cast<int>(r));
        return true;
    }

private:
    // Every op that needs `moved`, or that it needs, over any number of steps.
    void mark(const Op& moved)
    {
        m_marked.assign(m_index.opCount(), 0);
        std::vector<std::vector<std::uint32_t>> next(m_index.opCount());
        std::uint32_t id = 0, start = noOp;
        for (const Op& op : m_originals) {
            if (op == moved && start == noOp) start = id;
            m_index.eachInput(op, [&](std::uint32_t from, const Need&, std::size_t) {
                if (from == noOp || from == id) return;
                if (m_later)
                    next[from].push_back(id);
                else
                    next[id].push_back(from);
            });
            ++id;
        }
        std::vector<std::uint32_t> pending{start};
        if (start == noOp) return;
        m_marked[start] = 1;
        while (!pending.empty()) {
            const std::uint32_t at = pending.back();
            pending.pop_back();
            for (const std::uint32_t other : next[at])
                if (m_marked[other] == 0) {
                    m_marked[other] = 1;
                    pending.push_back(other);
                }
        }
    }
    // On its own rank, ops before it that depend on it go behind it.
    void follow(const Op& moved)
    {
        for (std::size_t r = 0; r < m_rows.size(); ++r) {
            auto& entries = m_rows[r].entries;
            const auto at = std::find_if(entries.begin(), entries.end(),
                                         [&](const EditRow::Entry& entry) { return entry.op == moved; });
            if (at == entries.end()) continue;
            const int rank = static_cast<int>(r);
            std::stable_partition(entries.begin(), at + 1, [&](const EditRow::Entry& entry) {
                return entry.op == moved || m_marked[idOf(entry.op, rank)] == 0;
            });
            return;
        }
    }
    std::uint32_t idOf(const Op& op, int rank) const
    {
        const Product product = productOf(op.kind);
        std::uint32_t id = noOp;
        if (product != Product::None)
            m_index.cells().each(op, op.stage, [&](std::size_t cell) {
                id = m_index.producer(product, cell);
                return false;
            });
        if (id != noOp && m_originals[id] == op && m_index.placeOf(id).rank == rank) return id;
        const std::uint32_t first = m_index.idOf(rank, 0);
        for (std::uint32_t i = first; i < first + m_rows[static_cast<std::size_t>(rank)].entries.size(); ++i)
            if (m_originals[i] == op) return i;
        return first;
    }
    std::size_t width(std::size_t r) const
    {
        const auto& entries = m_rows[r].entries;
        const std::size_t i = m_head[r];
        return i + 1 < entries.size() && entries[i].pairId >= 0 && entries[i + 1].pairId == entries[i].pairId ? 2 : 1;
    }
    bool ready(std::size_t r)
    {
        bool all = true;
        for (std::size_t n = 0; n < width(r); ++n) {
            const Op& op = m_rows[r].entries[m_head[r] + n].op;
            const std::uint32_t own = idOf(op, static_cast<int>(r));
            m_index.eachInput(op, [&](std::uint32_t from, const Need&, std::size_t) {
                if (from == noOp || from == own || m_done[from] != 0) return;
                const bool serial = n == 1 && from == idOf(m_rows[r].entries[m_head[r]].op, static_cast<int>(r));
                if (!serial) all = false;
            });
        }
        return all;
    }
    // A marked op at a head lets the first op behind it pass that is not marked.
    bool putOff()
    {
        for (std::size_t r = 0; r < m_rows.size(); ++r) {
            auto& entries = m_rows[r].entries;
            const std::size_t head = m_head[r];
            if (head >= entries.size() || m_marked[idOf(entries[head].op, static_cast<int>(r))] == 0) continue;
            for (std::size_t i = head + 1; i < entries.size(); ++i)
                if (m_marked[idOf(entries[i].op, static_cast<int>(r))] == 0) {
                    std::rotate(entries.begin() + static_cast<std::ptrdiff_t>(head),
                                entries.begin() + static_cast<std::ptrdiff_t>(i),
                                entries.begin() + static_cast<std::ptrdiff_t>(i) + 1);
                    return true;
                }
        }
        return false;
    }
    // What a marked op at a head waits for in the end comes to the head of its own rank.
    bool bringForward()
    {
        for (std::size_t r = 0; r < m_rows.size(); ++r) {
            if (m_head[r] >= m_rows[r].entries.size()) continue;
            const Op head = m_rows[r].entries[m_head[r]].op;
            if (m_marked[idOf(head, static_cast<int>(r))] == 0) continue;
            std::uint32_t wanted = noOp;
            Op chain = head; // followed to an op that lacks nothing
            for (bool more = true; more;) {
                more = false;
                m_index.eachInput(chain, [&](std::uint32_t from, const Need&, std::size_t) {
                    if (more || from == noOp || m_done[from] != 0 || m_originals[from] == chain) return;
                    wanted = from;
                    more = true;
                });
                if (more) chain = m_originals[wanted];
            }
            if (wanted == noOp) continue;
            const auto rank = static_cast<std::size_t>(m_index.placeOf(wanted).rank);
            auto& entries = m_rows[rank].entries;
            const auto first = entries.begin() + static_cast<std::ptrdiff_t>(m_head[rank]);
            const auto at = std::find_if(first, entries.end(),
                                         [&](const EditRow::Entry& entry) { return entry.op == m_originals[wanted]; });
            if (at == entries.end() || at == first) continue;
            std::rotate(first, at, at + 1);
            return true;
        }
        return false;
    }

    Schedule& m_schedule;
    const OpIndex& m_index;
    bool m_later;
    std::vector<Op> m_originals; // by id
    std::vector<char> m_done, m_marked;
    std::vector<EditRow> m_rows;
    std::vector<std::size_t> m_head;
};

} // namespace

Result<Edited> moveCarrying(const Schedule& schedule, OpPosition from, int to)
{
    const Op* op = opAt(schedule, from);
    if (op == nullptr)
        return fail(ErrorCode::Usage, fmt::format("rank {} has no op at place {}", from.rank, from.position));
    const Op moved = *op;
    auto out = moveOps(schedule, {from}, to - from.position);
    if (!out) return out;
    const auto cells = cellsOf(out->schedule);
    if (!cells || !canCarry(schedule) || validate(out->schedule).valid()) return out;
    const OpIndex index(out->schedule, *cells);
    Schedule carried = out->schedule;
    Carrier carrier(carried, index, moved, to > from.position);
    if (!carrier.run()) return out; // still the requested move; its faults are reported
    out->schedule = std::move(carried);
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
            index.eachInput(op, [&](std::uint32_t id, const Need&, std::size_t) {
                if (id == blockerId) direct = true;
                if (id == noOp || index.placeOf(id).rank == from.rank) return;
                via = index.placeOf(id);
                distant = true;
            });
            if (direct || !distant)
                out.reason = fmt::format("it needs {} of its own rank, at place {}", toText(blocker), range.first - 1);
            else
                out.reason = fmt::format("it needs {} of rank {}, which waits for {}, at place {} here",
                                         toText(schedule.order[static_cast<std::size_t>(via.rank)][via.position]),
                                         via.rank, toText(blocker), range.first - 1);
            return out;
        }
    } else if (range.last + 1 < row.size()) {
        const Op& waiting = row[range.last + 1];
        out.where = fmt::format("latest place: before {}", toText(waiting));
        const std::uint32_t own = index.idOf(from.rank, static_cast<std::size_t>(from.position));
        bool direct = false;
        index.eachInput(waiting, [&](std::uint32_t id, const Need&, std::size_t) { direct = direct || id == own; });
        OpPlace via;
        bool distant = false;
        for (int r = 0; r < schedule.ranks && !direct && !distant; ++r) {
            const auto& other = schedule.order[static_cast<std::size_t>(r)];
            for (std::size_t i = 0; i < other.size() && r != from.rank && !distant; ++i)
                index.eachInput(other[i], [&](std::uint32_t id, const Need&, std::size_t) {
                    if (id != own) return;
                    via = {r, i};
                    distant = true;
                });
        }
        out.reason = direct || !distant
                         ? fmt::format("{}, at place {} here, needs it", toText(waiting), range.last + 1)
                         : fmt::format("{} of rank {} needs it, and {}, at place {} here, waits for that",
                                       toText(schedule.order[static_cast<std::size_t>(via.rank)][via.position]),
                                       via.rank, toText(waiting), range.last + 1);
        return out;
    }
    out.reason = after.faults.front().message;
    return out;
}

} // namespace stagewright
