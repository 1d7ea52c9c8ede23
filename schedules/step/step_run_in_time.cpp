// StepRun in the order of time: where several ranks share collectives, who takes a rank's lane first depends
// on when all have come to them, and not on the order in which ranks are looked at; so does who takes a network card.
#include "schedules/step/step_run.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "schedules/model/groups.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

enum class What : std::uint8_t { // in this order at one moment
    Runs,                        // a rank starts its next op, sends or receives
    Leaves,                      // an op is over: when its messages leave is known
    Comes,                       // a rank comes to a collective
};

struct Moment {
    Nanos time = 0;
    What what = What::Runs;
    int rank = 0;
    std::uint32_t op = noOp; // Leaves
    bool operator<(const Moment& other) const
    {
        return std::tie(time, what, rank, op) > std::tie(other.time, other.what, other.rank, other.op);
    }
};

} // namespace

bool StepRun::lanesAreShared() const
{
    return !m_durations.empty() && (m_cards.any() || (!m_beside.empty() && m_plan.ranksMeet()));
}

void StepRun::runInTime()
{
    std::priority_queue<Moment> moments;
    std::vector<char> expected(m_schedule.order.size(), 0); // ranks whose next op has its moment
    const auto expect = [&](int rank) {
        const auto r = static_cast<std::size_t>(rank);
        const auto& ops = m_schedule.order[r];
        if (expected[r] || m_head[r] >= ops.size()) return;
        const std::size_t at = m_head[r];
        const std::uint32_t id = m_index.idOf(rank, at);
        Moment next{m_clock[r], What::Runs, rank, noOp};
        if (isCollective(ops[at].kind) && !m_beside.empty()) {
            next.what = What::Comes;
        } else if (!isMessage(ops[at].kind)) {
            bool there = true;
            const std::size_t count = groupSize(m_schedule, rank, at);
            for (std::uint32_t k = id; k < id + count; ++k)
                there = inputsThere(k, rank, next.time) && there && reductionThere(k, rank, m_clock[r], next.time);
            if (!there) return awaitInputs(id, rank, count);
            if (runsApart(ops[at].kind)) next.time = m_clock[r]; // the list does not wait for its start
        }
        expected[r] = 1;
        moments.push(next);
    };
    const auto lookAgain = [&] {
        while (!m_runnable.empty()) {
            const int rank = m_runnable.back();
            m_runnable.pop_back();
            m_queued[static_cast<std::size_t>(rank)] = 0;
            expect(rank);
        }
    };
    for (int r = 0; r < m_schedule.ranks; ++r) expect(r);
    lookAgain();
    std::vector<std::uint32_t> met; // collectives that all have come to at this moment, one op of each
    while (!moments.empty()) {
        const Moment now = moments.top();
        moments.pop();
        const auto r = static_cast<std::size_t>(now.rank);
        if (now.what == What::Leaves) {
            if (!m_leaves.empty()) m_leaves[now.op] = std::max(now.time, m_beside[r].lane);
            fly(now.op);
            tellWaiting(now.rank);
        } else {
            expected[r] = 0;
            const std::size_t at = m_head[r];
            const std::uint32_t id = m_index.idOf(now.rank, at);
            if (now.what == What::Comes) {
                if (comeTo(id, now.rank, now.time)) met.push_back(id);
                ++m_head[r];
            } else if (isMessage(m_schedule.order[r][at].kind)) {
                const std::size_t count = groupSize(m_schedule, now.rank, at);
                if (runMessages(now.rank, at, count, m_clock[r])) m_head[r] += count;
            } else {
                Nanos begin = now.time;
                if (runsApart(m_schedule.order[r][at].kind)) inputsThere(id, now.rank, begin);
                m_clock[r] = runAny(id, now.rank, now.time, begin);
                for (std::uint32_t k = id; k < id + groupSize(m_schedule, now.rank, at); ++k) {
                    ++m_head[r];
                    if (m_leaves.empty() && !m_cards.any())
                        fly(k);
                    else
                        moments.push({m_out.end[k], What::Leaves, now.rank, k});
                }
                tellWaiting(now.rank);
            }
            if (m_head[r] > at) expect(now.rank); // else it waits in a message, and is woken
        }
        lookAgain();
        if (met.empty() || (!moments.empty() && moments.top().time == now.time && moments.top().what == What::Comes))
            continue;
        // All that were met at this moment, in the order of their lists.
        const auto place = [this](std::uint32_t op) {
            std::size_t first = m_index.placeOf(op).position;
            for (const std::uint32_t member : membersOf(op))
                first = std::min<std::size_t>(first, m_index.placeOf(member).position);
            const Op& of = m_plan.op(op);
            return std::tuple(first, of.stage, of.kind);
        };
        std::stable_sort(met.begin(), met.end(), [&](std::uint32_t a, std::uint32_t b) { return place(a) < place(b); });
        for (const std::uint32_t op : met) takeLanes(op);
        met.clear();
        lookAgain();
    }
}

} // namespace stagewright
