#include "schedules/edit/edit.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/edit/edit_row.h"
#include "schedules/model/groups.h"
#include "schedules/model/kinds.h"
#include "schedules/model/op_index.h"

namespace stagewright {

namespace {

EditResult with(const Schedule& schedule, int rank, const EditRow& row)
{
    EditResult out{schedule, {}};
    row.writeTo(out.schedule, rank);
    out.validation = validate(out.schedule);
    return out;
}

Result<void> checkPosition(const Schedule& schedule, int rank, std::size_t position, bool endAllowed = false)
{
    if (rank < 0 || static_cast<std::size_t>(rank) >= schedule.order.size())
        return fail(ErrorCode::Usage,
                    fmt::format("rank {}, but ranks are 0 to {}", rank, static_cast<int>(schedule.order.size()) - 1));
    const std::size_t size = schedule.order[static_cast<std::size_t>(rank)].size();
    if (position < size || (endAllowed && position == size)) return {};
    return fail(ErrorCode::Usage, fmt::format("rank {} has no op {}; its row has {}", rank, opNumber(position), size));
}

} // namespace

Result<EditResult> insertDelay(const Schedule& schedule, int rank, std::size_t position, std::uint32_t delay)
{
    STAGEWRIGHT_CHECK(checkPosition(schedule, rank, position, true));
    const std::vector<int> stages = schedule.placement.stagesOf(rank);
    EditRow row(schedule, rank);
    row.insert(position, makeFiller(stages.empty() ? 0 : stages.front(), delay));
    return with(schedule, rank, row);
}

Result<EditResult> removeDelay(const Schedule& schedule, int rank, std::size_t position)
{
    STAGEWRIGHT_CHECK(checkPosition(schedule, rank, position));
    const Op& op = schedule.order[static_cast<std::size_t>(rank)][position];
    if (!isDelay(op.kind))
        return fail(
            ErrorCode::Usage,
            fmt::format("rank {}, op {} ({}): only a delay can be removed", rank, opNumber(position), toText(op)),
            "every other op is needed; move it instead");
    EditRow row(schedule, rank);
    row.erase(position);
    return with(schedule, rank, row);
}

namespace {

// How far one op's needs reach, followed over all ranks in one direction. Whatever reaches a position of a rank reaches
// all before it (or after it), so that one number per rank is the whole state.
struct Reach {
    const Schedule& schedule;
    const OpIndex& index;
    int rank; // of the op that moves, and its position
    std::size_t from;

    // Earliest position after every op that must end before the op starts.
    std::size_t first() const
    {
        std::vector<std::size_t> reached(schedule.order.size(), 0); // positions < reached are ancestors
        std::vector<std::size_t> done(schedule.order.size(), 0);
        std::vector<int> pending;
        auto add = [&](std::uint32_t id) {
            if (id == noOp) return;
            const OpPlace place = index.placeOf(id);
            const auto r = static_cast<std::size_t>(place.rank);
            const std::size_t end = place.position + groupSize(schedule, place.rank, place.position);
            if (end <= reached[r]) return;
            reached[r] = end;
            pending.push_back(place.rank);
        };
        auto expand = [&](const Op& op) { index.eachInput(op, [&](std::uint32_t id, const Need&, int) { add(id); }); };
        expand(schedule.order[static_cast<std::size_t>(rank)][from]);
        while (!pending.empty()) {
            const auto r = static_cast<std::size_t>(pending.back());
            pending.pop_back();
            while (done[r] < reached[r]) expand(schedule.order[r][done[r]++]);
        }
        return std::min(reached[static_cast<std::size_t>(rank)], from);
    }

    // Latest position before every op that waits for the op.
    std::size_t last() const
    {
        // Consumers by producer: the inputs turned round, in one pass.
        std::vector<std::uint32_t> counts(index.opCount() + 1, 0);
        auto eachEdge = [&](auto&& visit) {
            for (int r = 0; r < schedule.ranks; ++r) {
                const auto& ops = schedule.order[static_cast<std::size_t>(r)];
                for (std::size_t i = 0; i < ops.size(); ++i)
                    index.eachInput(ops[i], [&](std::uint32_t id, const Need&, int) {
                        if (id != noOp) visit(id, OpPlace{r, i});
                    });
            }
        };
        eachEdge([&](std::uint32_t id, const OpPlace&) { ++counts[id + 1]; });
        for (std::size_t i = 1; i < counts.size(); ++i) counts[i] += counts[i - 1];
        std::vector<OpPlace> consumers(counts.back());
        std::vector<std::uint32_t> next(counts.begin(), counts.end() - 1);
        eachEdge([&](std::uint32_t id, const OpPlace& place) { consumers[next[id]++] = place; });

        std::vector<std::size_t> reached; // positions >= reached are descendants
        for (const auto& ops : schedule.order) reached.push_back(ops.size());
        std::vector<std::size_t> done = reached;
        std::vector<int> pending;
        auto expand = [&](std::uint32_t id) {
            for (std::uint32_t c = counts[id]; c < counts[id + 1]; ++c) {
                const auto r = static_cast<std::size_t>(consumers[c].rank);
                const std::size_t begin = groupBegin(schedule, consumers[c].rank, consumers[c].position);
                if (begin >= reached[r]) continue;
                reached[r] = begin;
                pending.push_back(consumers[c].rank);
            }
        };
        expand(index.idOf(rank, from));
        while (!pending.empty()) {
            const int r = pending.back();
            pending.pop_back();
            const auto row = static_cast<std::size_t>(r);
            while (done[row] > reached[row]) expand(index.idOf(r, --done[row]));
        }
        return std::max(reached[static_cast<std::size_t>(rank)], from + 1) - 1;
    }
};

} // namespace

MoveRange validMoves(const Schedule& schedule, int rank, std::size_t from)
{
    if (!checkPosition(schedule, rank, from)) return {from, from};
    const auto cells = cellsOf(schedule);
    if (!cells || !validate(schedule).valid()) return {from, from};
    const OpIndex index(schedule, *cells);
    const Reach reach{schedule, index, rank, from};
    return {reach.first(), reach.last()};
}

} // namespace stagewright
