// An independent simulator, to compare the product's with: events in the order of time, one running op on each rank. It
// takes the values of Schedule and CostModel (orders, placement, pairs; durations of a kind on a stage and rank, links,
// memory) and none of their methods that compute, and shares no code with schedules/execute/simulate.h, place() or the
// tables of kinds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules/model/cost_model.h"
#include "schedules/model/schedule.h"

namespace stagewright::testing {

class EventSimulator {
public:
    struct Times {
        std::int64_t start = -1; // −1: never ran
        std::int64_t end = -1;
    };
    std::vector<std::vector<Times>> times; // by rank and position
    std::vector<std::int64_t> peaks;       // activations by rank; of whole ops only

    EventSimulator(const Schedule& schedule, const CostModel& costs) : m_schedule(schedule), m_costs(costs)
    {
        for (const auto& ops : schedule.order) {
            times.emplace_back(ops.size());
            for (const Op& op : ops) {
                m_slices = std::max(m_slices, op.slice + 1);
                if (op.half > 0) m_halves = 2;
                if (op.kind == OpKind::Recompute)
                    for (int k = 0; k < op.count; ++k) m_recomputed[{op.stage, op.microbatch + k}] = true;
            }
        }
        m_ranks.resize(schedule.order.size());
        for (std::size_t r = 0; r < m_ranks.size(); ++r) m_events.push({0, look, r});
        while (!m_events.empty()) {
            const Event event = m_events.top();
            m_events.pop();
            if (event.what == ended)
                finish(event.rank, event.time);
            else
                tryToStart(event.rank, event.time);
        }
        for (std::size_t r = 0; r < m_ranks.size(); ++r) peaks.push_back(m_ranks[r].peak);
    }

private:
    enum What {
        ended,
        look,
    }; // at one time what ended is seen by those who look
    struct Event {
        std::int64_t time;
        What what;
        std::size_t rank;
        bool operator<(const Event& other) const
        {
            return std::tie(time, what, rank) > std::tie(other.time, other.what, other.rank);
        }
    };
    struct Rank {
        std::size_t next = 0;    // op
        std::size_t running = 0; // running ops from `next` − running on
        bool busy = false;
        std::int64_t reachedReduction = -1; // when it came to the reduction that is its next op
        std::int64_t held = 0;
        std::int64_t peak = 0;
    };
    enum Thing {
        activation,
        gradient,
        inputGradient,
    };
    using Piece = std::tuple<int, int, int, int, int>; // thing, stage, microbatch, slice, half

    // The pieces of a thing that an op makes or needs at a stage.
    std::vector<Piece> piecesOf(Thing thing, const Op& op, int stage) const
    {
        std::vector<Piece> out;
        for (int j = op.microbatch; j < op.microbatch + op.count; ++j)
            for (int slice = 0; slice < m_slices; ++slice)
                for (int half = 0; half < m_halves; ++half)
                    if ((op.slice < 0 || op.slice == slice) && (op.half == 0 || op.half == half + 1))
                        out.emplace_back(thing, stage, j, slice, half);
        return out;
    }

    // A part of a whole that is cut by the op's slice and half, rounded so that the parts sum to the whole.
    std::int64_t part(std::int64_t whole, const Op& op) const
    {
        if (op.slice >= 0) {
            auto upTo = [&](int count) { // of the first slices
                std::int64_t sum = 0;
                for (int k = 0; k < count; ++k)
                    sum += k < static_cast<int>(m_schedule.sliceLengths.size())
                               ? m_schedule.sliceLengths[static_cast<std::size_t>(k)]
                               : 1;
                return sum;
            };
            whole = whole * upTo(op.slice + 1) / upTo(m_slices) - whole * upTo(op.slice) / upTo(m_slices);
        }
        if (op.half == 1) return whole / 2;
        if (op.half == 2) return whole - whole / 2;
        return whole;
    }

    std::int64_t durationOf(const Op& op, std::size_t rank) const
    {
        if (op.kind == OpKind::Filler) return op.delay;
        const std::int64_t whole = m_costs.duration(op.kind, op.stage, static_cast<int>(rank));
        Op first = op;
        first.half = 0;
        std::int64_t out = part(whole, first) * op.count;
        if (op.half == 1) out = out / 2;
        if (op.half == 2) out = out - out / 2;
        return out;
    }

    Link linkOf(std::size_t from, std::size_t to) const
    {
        Link link = m_costs.links.all;
        for (const auto& [ends, own] : m_costs.links.overrides)
            if (ends.first == static_cast<int>(from) && ends.second == static_cast<int>(to)) link = own;
        return link;
    }

    // What the op has made leaves for each op of another rank that takes some of it, in the order of microbatches and
    // their parts. A link carries the bytes of one message after the other; its latency delays each.
    void send(const Op& op, std::size_t from, Thing thing, std::int64_t now)
    {
        const int stage = op.stage + (thing == activation ? 1 : -1);
        struct Parcel {
            int microbatch, slice, half, count;
            std::size_t to;
            bool operator<(const Parcel& other) const
            {
                return std::tie(microbatch, slice, half) < std::tie(other.microbatch, other.slice, other.half);
            }
        };
        std::vector<Parcel> parcels;
        for (std::size_t r = 0; r < m_schedule.order.size(); ++r)
            for (const Op& other : m_schedule.order[r]) {
                const bool takes = thing == activation
                                       ? other.kind == OpKind::Forward
                                       : other.kind == OpKind::Backward || other.kind == OpKind::InputGrad;
                const bool apart = (op.slice >= 0 && other.slice >= 0 && op.slice != other.slice) ||
                                   (op.half > 0 && other.half > 0 && op.half != other.half);
                const int first = std::max(op.microbatch, other.microbatch);
                const int behind = std::min(op.microbatch + op.count, other.microbatch + other.count);
                if (r == from || !takes || static_cast<int>(other.stage) != stage || apart || first >= behind) continue;
                parcels.push_back({first, std::max<int>(op.slice, other.slice), std::max<int>(op.half, other.half),
                                   behind - first, r});
            }
        std::stable_sort(parcels.begin(), parcels.end());
        for (const Parcel& parcel : parcels) {
            const Link link = linkOf(from, parcel.to);
            Op cut = op;
            cut.slice = static_cast<decltype(cut.slice)>(parcel.slice);
            cut.half = static_cast<decltype(cut.half)>(parcel.half);
            cut.microbatch = parcel.microbatch;
            cut.count = static_cast<decltype(cut.count)>(parcel.count);
            // Between stages s and s + 1 the message has the size of stage s's boundary.
            const std::int64_t bytes = part(
                m_costs.memory[static_cast<std::size_t>(std::min<int>(stage, op.stage))].boundary * parcel.count, cut);
            std::int64_t& taken = m_taken[{from, parcel.to}];
            std::int64_t begin = now;
            std::int64_t carried = 0;
            if (link.bytesPerSecond > 0)
                carried =
                    static_cast<std::int64_t>(std::llround(static_cast<double>(bytes) / link.bytesPerSecond * 1e9));
            if (carried > 0) {
                begin = std::max(begin, taken);
                taken = begin + carried;
            }
            for (const Piece& piece : piecesOf(thing, cut, op.stage))
                m_there[{piece, parcel.to}] = begin + carried + link.latency;
        }
    }

    std::int64_t news(std::size_t from, std::size_t to) const { return from == to ? 0 : linkOf(from, to).latency; }

    // When what the op needs of a thing made at a stage is on its rank; −1: not known yet.
    std::int64_t arrivalOf(Thing thing, const Op& op, int stage, std::size_t rank) const
    {
        std::int64_t latest = 0;
        for (const Piece& piece : piecesOf(thing, op, stage)) {
            const auto made = m_made.find(piece);
            if (made == m_made.end()) return -1;
            const auto there = m_there.find({piece, rank});
            // it was made here, or sent here
            latest = std::max(latest, there == m_there.end() ? made->second : there->second);
        }
        return latest;
    }

    // When an op could start for what it needs; −1: not known yet.
    std::int64_t readyAt(const Op& op, std::size_t rank) const
    {
        std::vector<std::pair<Thing, int>> needs;
        const int last = m_schedule.stages - 1;
        if (op.kind == OpKind::Forward && op.stage > 0) needs.emplace_back(activation, op.stage - 1);
        if (op.kind == OpKind::Backward || op.kind == OpKind::InputGrad) {
            needs.emplace_back(activation, op.stage);
            if (op.stage < last) needs.emplace_back(gradient, op.stage + 1);
        }
        if (op.kind == OpKind::Recompute) needs.emplace_back(activation, op.stage);
        if (op.kind == OpKind::WeightGrad) needs.emplace_back(inputGradient, op.stage);
        std::int64_t ready = 0;
        for (const auto& [thing, stage] : needs) {
            const std::int64_t at = arrivalOf(thing, op, stage, rank);
            if (at < 0) return -1;
            ready = std::max(ready, at);
        }
        return ready;
    }

    bool hasCopies(int stage) const { return m_schedule.placement.copiesOf(stage).size() > 1; }

    // Copies of a stage reduce together: all ranks must have reached it, and that news takes a message.
    std::int64_t reductionAt(const Op& op, std::size_t rank, std::int64_t now)
    {
        if (!hasCopies(op.stage)) return now;
        Rank& own = m_ranks[rank];
        if (own.reachedReduction < 0) {
            own.reachedReduction = now;
            m_reached[{op.stage, rank}].push_back(now);
            for (std::size_t r = 0; r < m_ranks.size(); ++r)
                if (r != rank) m_events.push({now, look, r});
        }
        const std::size_t turn = m_reached[{op.stage, rank}].size() - 1;
        std::int64_t begin = now;
        for (std::size_t r = 0; r < m_ranks.size(); ++r) {
            const auto& ops = m_schedule.order[r];
            const auto wanted = std::count_if(ops.begin(), ops.end(), [&](const Op& other) {
                return other.kind == OpKind::ReduceGrad && other.stage == op.stage;
            });
            if (static_cast<std::size_t>(wanted) <= turn) continue;
            const auto& reached = m_reached[{op.stage, r}];
            if (reached.size() <= turn) return -1;
            begin = std::max(begin, reached[turn] + news(r, rank));
        }
        return begin;
    }

    void tryToStart(std::size_t r, std::int64_t now)
    {
        Rank& rank = m_ranks[r];
        const auto& ops = m_schedule.order[r];
        if (rank.busy || rank.next == ops.size()) return;
        const Op& op = ops[rank.next];
        const bool pair =
            r < m_schedule.paired.size() && std::count(m_schedule.paired[r].begin(), m_schedule.paired[r].end(),
                                                       static_cast<std::uint32_t>(rank.next)) > 0;
        std::int64_t ready = readyAt(op, r);
        if (ready >= 0 && pair) {
            const std::int64_t other = readyAt(ops[rank.next + 1], r);
            ready = other < 0 ? -1 : std::max(ready, other);
        }
        if (ready >= 0 && op.kind == OpKind::ReduceGrad) ready = reductionAt(op, r, now);
        if (ready < 0) return;
        if (ready > now) {
            m_events.push({ready, look, r});
            return;
        }
        const bool computes = op.kind == OpKind::Forward || op.kind == OpKind::Backward ||
                              op.kind == OpKind::InputGrad || op.kind == OpKind::WeightGrad ||
                              op.kind == OpKind::Recompute;
        const std::int64_t start = now + (computes && r < m_costs.launch.size() ? m_costs.launch[r] : 0);
        std::int64_t end = start + durationOf(op, r);
        times[r][rank.next] = {start, end};
        if (pair) {
            const std::int64_t more = durationOf(ops[rank.next + 1], r);
            const bool oneAfterTheOther = op.kind == OpKind::Recompute;
            times[r][rank.next + 1] = {oneAfterTheOther ? end : start, end + more};
            end += more;
            if (!oneAfterTheOther) times[r][rank.next].end = end;
        }
        rank.running = pair ? 2 : 1;
        rank.next += rank.running;
        rank.busy = true;
        rank.reachedReduction = -1;
        m_events.push({end, ended, r});
    }

    void finish(std::size_t r, std::int64_t now)
    {
        Rank& rank = m_ranks[r];
        for (std::size_t at = rank.next - rank.running; at < rank.next; ++at) {
            const Op& op = m_schedule.order[r][at];
            auto make = [&](Thing thing) {
                for (const Piece& piece : piecesOf(thing, op, op.stage)) m_made.try_emplace(piece, now);
            };
            if (op.kind == OpKind::Forward) make(activation);
            if (op.kind == OpKind::Forward) send(op, r, activation, now);
            if (op.kind == OpKind::Backward || op.kind == OpKind::InputGrad) make(gradient);
            if (op.kind == OpKind::Backward || op.kind == OpKind::InputGrad) send(op, r, gradient, now);
            if (op.kind == OpKind::InputGrad) make(inputGradient);
            if (op.kind == OpKind::Backward) make(inputGradient);
            count(rank, op);
        }
        rank.busy = false;
        for (std::size_t other = 0; other < m_ranks.size(); ++other) m_events.push({now, look, other});
    }

    void count(Rank& rank, const Op& op)
    {
        if (op.slice >= 0 || op.half > 0) return;
        for (int j = op.microbatch; j < op.microbatch + op.count; ++j) {
            const StageMemory& memory = m_costs.memory[op.stage];
            const bool again = m_recomputed.count({op.stage, j}) > 0;
            if (op.kind == OpKind::Forward) rank.held += again ? memory.boundary : memory.activation;
            if (op.kind == OpKind::Recompute) rank.held += memory.activation - memory.boundary;
            if (op.kind == OpKind::Backward) rank.held -= memory.activation;
            if (op.kind == OpKind::InputGrad) rank.held -= memory.freedAtInput;
            if (op.kind == OpKind::WeightGrad) rank.held -= memory.activation - memory.freedAtInput;
        }
        rank.peak = std::max(rank.peak, rank.held);
    }

    const Schedule& m_schedule;
    const CostModel& m_costs;
    int m_slices = 1;
    int m_halves = 1;
    std::map<std::pair<int, int>, bool> m_recomputed; // stage, microbatch
    std::vector<Rank> m_ranks;
    std::priority_queue<Event> m_events;
    std::map<Piece, std::int64_t> m_made;                                // when
    std::map<std::pair<Piece, std::size_t>, std::int64_t> m_there;       // when it has come to another rank
    std::map<std::pair<std::size_t, std::size_t>, std::int64_t> m_taken; // until when a link's bandwidth is
    // reductions, by stage and rank: when it came to each
    std::map<std::pair<int, std::size_t>, std::vector<std::int64_t>> m_reached;
};

} // namespace stagewright::testing
