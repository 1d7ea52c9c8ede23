// A second simulator of replicas that share state, to compare the product's with: gathers and reductions beside
// compute, one lane a rank, messages that wait for it or don't, optimizers that step bucket by bucket. It looks at
// every rank at every moment at which something can happen, in integers, and takes the values of Schedule (orders,
// replicas) and what is given here; it shares no code with schedules/messages and place().
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "schedules/model/schedule.h"

namespace stagewright::testing {

// What is simulated beside the lists: times by rank and position, of compute ops and optimizers their own, of
// collectives those of the whole.
struct SharedWork {
    std::vector<std::vector<std::int64_t>> takes;
    std::int64_t latency = 0; // of a message between ranks
    bool shared = false;      // messages wait for the lane
    std::vector<int> buckets; // by stage, of a reduction; empty: one
};

class SharingSimulator {
public:
    struct Times {
        std::int64_t start = -1;
        std::int64_t end = -1;
    };
    std::vector<std::vector<Times>> times; // by rank and position; −1: never ran

    SharingSimulator(const Schedule& schedule, const SharedWork& work)
        : m_schedule(schedule), m_work(work), m_ranks(schedule.order.size())
    {
        for (const auto& ops : schedule.order) times.emplace_back(ops.size());
        findMembers();
        findEarlySteps();
        std::set<std::int64_t> moments{0};
        while (!moments.empty()) {
            m_now = *moments.begin();
            moments.erase(moments.begin());
            while (startOps() | tellDepartures() | comeToCollectives()) {
            }
            for (const std::int64_t later : m_later)
                if (later > m_now) moments.insert(later);
            m_later.clear();
        }
    }

    std::int64_t makespan() const
    {
        std::int64_t last = 0;
        for (const auto& rank : times)
            for (const Times& one : rank) last = std::max(last, one.end);
        return last;
    }

private:
    using Place = std::pair<std::size_t, std::size_t>; // rank, position
    struct Rank {
        std::size_t next = 0;
        std::int64_t free = 0; // of compute
        std::int64_t lane = 0;
        std::map<int, Place> gather; // by stage: the newest it came to
        std::map<int, Place> reduction;
        bool stepsEarly = false;
    };

    static bool computes(OpKind kind)
    {
        return kind == OpKind::Forward || kind == OpKind::Backward || kind == OpKind::InputGrad ||
               kind == OpKind::WeightGrad;
    }
    const Op& at(const Place& place) const { return m_schedule.order[place.first][place.second]; }

    // The n-th gather, and the n-th reduction, of a stage on each rank that has it are one.
    void findMembers()
    {
        std::map<std::tuple<int, int, int>, std::vector<Place>> known;
        for (std::size_t r = 0; r < m_schedule.order.size(); ++r) {
            std::map<std::pair<int, int>, int> seen;
            for (std::size_t i = 0; i < m_schedule.order[r].size(); ++i) {
                const Op& op = m_schedule.order[r][i];
                if (op.kind != OpKind::Unshard && op.kind != OpKind::ReduceGrad) continue;
                const std::pair<int, int> what{op.stage, op.kind == OpKind::Unshard ? 0 : 1};
                known[{what.first, what.second, seen[what]++}].emplace_back(r, i);
            }
        }
        for (const auto& [key, places] : known)
            for (const Place& place : places) m_members[place] = places;
    }

    void findEarlySteps()
    {
        for (std::size_t r = 0; r < m_ranks.size(); ++r) {
            bool stepped = false;
            for (const Op& op : m_schedule.order[r]) {
                if (stepped && (computes(op.kind) || op.kind == OpKind::ReduceGrad)) m_ranks[r].stepsEarly = true;
                stepped = stepped || op.kind == OpKind::Optimizer;
            }
        }
    }

    // Where a microbatch's op of a kind at a stage runs.
    std::vector<Place> makersOf(std::initializer_list<OpKind> kinds, int stage, int microbatch) const
    {
        std::vector<Place> out;
        for (std::size_t r = 0; r < m_schedule.order.size(); ++r)
            for (std::size_t i = 0; i < m_schedule.order[r].size(); ++i) {
                const Op& op = m_schedule.order[r][i];
                if (op.stage == stage && op.microbatch == microbatch &&
                    std::find(kinds.begin(), kinds.end(), op.kind) != kinds.end())
                    out.emplace_back(r, i);
            }
        return out;
    }

    // When what the op needs is there; −1: not known yet.
    std::int64_t ready(const Place& place) const
    {
        const Op& op = at(place);
        std::vector<Place> makers;
        const auto add = [&](std::initializer_list<OpKind> kinds, int stage) {
            for (const Place& maker : makersOf(kinds, stage, op.microbatch)) makers.push_back(maker);
        };
        if (op.kind == OpKind::Forward && op.stage > 0) add({OpKind::Forward}, op.stage - 1);
        if (op.kind == OpKind::Backward || op.kind == OpKind::InputGrad) {
            add({OpKind::Forward}, op.stage);
            if (op.stage + 1 < m_schedule.stages) add({OpKind::Backward, OpKind::InputGrad}, op.stage + 1);
        }
        if (op.kind == OpKind::WeightGrad) add({OpKind::InputGrad}, op.stage);
        std::int64_t there = 0;
        for (const Place& maker : makers) {
            const std::int64_t end = times[maker.first][maker.second].end;
            if (end < 0) return -1;
            if (maker.first == place.first) {
                there = std::max(there, end);
                continue;
            }
            const auto left = m_left.find(maker);
            if (left == m_left.end()) return -1;
            there = std::max(there, left->second + m_work.latency);
        }
        const Rank& rank = m_ranks[place.first];
        const auto endOf = [&](const Place& collective) { return times[collective.first][collective.second].end; };
        if (op.kind == OpKind::Forward || op.kind == OpKind::Backward || op.kind == OpKind::InputGrad)
            if (const auto gather = rank.gather.find(op.stage); gather != rank.gather.end()) {
                if (endOf(gather->second) < 0) return -1;
                there = std::max(there, endOf(gather->second));
            }
        if (op.kind != OpKind::Optimizer) return there;
        const auto reduction = rank.reduction.find(op.stage);
        if (reduction == rank.reduction.end()) return there;
        const std::int64_t end = endOf(reduction->second);
        if (end < 0) return -1;
        const std::int64_t n = rank.stepsEarly && !m_work.buckets.empty() ? m_work.buckets[op.stage] : 1;
        const std::int64_t began = times[reduction->second.first][reduction->second.second].start;
        const std::int64_t first = end - (end - began) * (n - 1) / n; // the first bucket's arrival
        const std::int64_t through = end - m_work.takes[place.first][place.second] * (n - 1) / n;
        return std::max({there, first, through});
    }

    bool startOps()
    {
        bool any = false;
        for (std::size_t r = 0; r < m_ranks.size(); ++r) {
            Rank& rank = m_ranks[r];
            const auto& ops = m_schedule.order[r];
            if (rank.next == ops.size() || rank.free > m_now) continue;
            const Place place{r, rank.next};
            if (!computes(ops[rank.next].kind) && ops[rank.next].kind != OpKind::Optimizer) continue;
            const std::int64_t there = ready(place);
            if (there < 0) continue;
            if (there > m_now) {
                m_later.push_back(there);
                continue;
            }
            rank.free = m_now + m_work.takes[r][rank.next];
            times[r][rank.next] = {m_now, rank.free};
            m_leaving.emplace_back(rank.free, place);
            m_later.push_back(rank.free);
            ++rank.next;
            any = true;
        }
        return any;
    }

    // Messages of ops that are over now leave behind the collectives that their rank's lane has by now, if they take
    // any time.
    bool tellDepartures()
    {
        bool any = false;
        for (std::size_t i = 0; i < m_leaving.size();) {
            const auto [end, place] = m_leaving[i];
            if (end > m_now) {
                ++i;
                continue;
            }
            m_left[place] = m_work.shared && m_work.latency > 0 ? std::max(end, m_ranks[place.first].lane) : end;
            m_leaving.erase(m_leaving.begin() + static_cast<std::ptrdiff_t>(i));
            any = true;
        }
        return any;
    }

    bool comeToCollectives()
    {
        bool any = false;
        std::vector<Place> whole;
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t r = 0; r < m_ranks.size(); ++r) {
                Rank& rank = m_ranks[r];
                const auto& ops = m_schedule.order[r];
                if (rank.next == ops.size() || rank.free > m_now) continue;
                const Place place{r, rank.next};
                const OpKind kind = ops[rank.next].kind;
                if (kind == OpKind::Reshard) {
                    times[r][rank.next] = {m_now, m_now};
                } else if (kind == OpKind::Unshard || kind == OpKind::ReduceGrad) {
                    (kind == OpKind::Unshard ? rank.gather : rank.reduction)[ops[rank.next].stage] = place;
                    m_came.insert(place);
                    const auto& members = m_members[place];
                    if (std::all_of(members.begin(), members.end(),
                                    [this](const Place& member) { return m_came.count(member) > 0; }))
                        whole.push_back(place);
                } else {
                    continue;
                }
                ++rank.next;
                moved = any = true;
            }
        }
        std::sort(whole.begin(), whole.end(), [this](const Place& a, const Place& b) { return keyOf(a) < keyOf(b); });
        for (const Place& place : whole) {
            std::int64_t begin = m_now, takes = 0;
            for (const Place& member : m_members[place]) {
                begin = std::max(begin, m_ranks[member.first].lane);
                takes = std::max(takes, m_work.takes[member.first][member.second]);
            }
            for (const Place& member : m_members[place]) {
                times[member.first][member.second] = {begin, begin + takes};
                m_ranks[member.first].lane = begin + takes;
            }
            m_later.push_back(begin + takes);
        }
        return any;
    }

    // If several are whole at one moment, the one that comes first in a list goes first.
    std::tuple<std::size_t, int, int> keyOf(const Place& place)
    {
        std::size_t first = place.second;
        for (const Place& member : m_members[place]) first = std::min(first, member.second);
        return {first, at(place).stage, static_cast<int>(at(place).kind)};
    }

    const Schedule& m_schedule;
    const SharedWork& m_work;
    std::vector<Rank> m_ranks;
    std::map<Place, std::vector<Place>> m_members;
    std::set<Place> m_came;
    std::map<Place, std::int64_t> m_left; // when an op's messages leave
    std::vector<std::pair<std::int64_t, Place>> m_leaving;
    std::vector<std::int64_t> m_later;
    std::int64_t m_now = 0;
};

} // namespace stagewright::testing
