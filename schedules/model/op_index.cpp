#include "schedules/model/op_index.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/model/work_counts.h"

namespace stagewright {

namespace {

// A shape far larger than the ops that fill it (a stray microbatch number) is refused before tables of its size are
// made.
constexpr std::size_t freeCells = std::size_t{1} << 22;
constexpr std::size_t cellsPerOp = 16;

} // namespace

std::string shapeFault(const Schedule& schedule)
{
    if (schedule.ranks < 1 || schedule.stages < 1 || schedule.microbatches < 1)
        return fmt::format("{} ranks, {} stages, {} microbatches: at least one of each is needed", schedule.ranks,
                           schedule.stages, schedule.microbatches);
    if (schedule.stages > std::numeric_limits<std::uint16_t>::max() + 1)
        return fmt::format("{} stages; at most 65536 are possible", schedule.stages);
    if (schedule.replicas < 1 || schedule.ranks % schedule.replicas != 0)
        return fmt::format("{} ranks in {} replicas, which must have equally many", schedule.ranks, schedule.replicas);
    if (schedule.order.size() != static_cast<std::size_t>(schedule.ranks))
        return fmt::format("{} rows of ops for {} ranks", schedule.order.size(), schedule.ranks);
    if (schedule.placement.stages() != schedule.stages)
        return fmt::format("the placement has {} stages, the schedule {}", schedule.placement.stages(),
                           schedule.stages);
    for (int s = 0; s < schedule.stages; ++s)
        for (const auto& copy : schedule.placement.copiesOf(s))
            if (copy.rank < 0 || copy.rank >= schedule.ranks)
                return fmt::format("stage {} is placed on rank {}, but ranks are 0 to {}", s, copy.rank,
                                   schedule.ranks - 1);
    const bool chain = schedule.graph.isChain();
    if (!chain && schedule.graph.stages() != schedule.stages)
        return fmt::format("the graph has {} stages, the schedule {}", schedule.graph.stages(), schedule.stages);
    if (schedule.opCount() >= noOp) return fmt::format("{} ops; fewer than {} are possible", schedule.opCount(), noOp);
    std::size_t covered = 0;
    std::size_t slices = 1;
    for (const auto& ops : schedule.order)
        for (const Op& op : ops) {
            covered += op.count;
            if (!chain && isMessage(op.kind))
                return fmt::format(
                    "{} says no partner, and the stages don't form a chain: leave sends and receives out", toText(op));
            if (op.slice >= 0 && !isInPieces(op.kind))
                slices = std::max<std::size_t>(slices, static_cast<std::size_t>(op.slice) + 1);
        }
    const std::size_t cells =
        static_cast<std::size_t>(schedule.stages) * static_cast<std::size_t>(schedule.microbatches) * slices;
    if (cells > freeCells && cells / cellsPerOp > covered)
        return fmt::format("{} stages × {} microbatches, but only {} ops", schedule.stages, schedule.microbatches,
                           schedule.opCount());
    if (schedule.paired.size() > schedule.order.size())
        return fmt::format("pairs are given for {} ranks of {}", schedule.paired.size(), schedule.ranks);
    for (std::size_t r = 0; r < schedule.paired.size(); ++r) {
        std::int64_t previous = -2;
        for (std::uint32_t position : schedule.paired[r]) {
            if (position + std::size_t{1} >= schedule.order[r].size())
                return fmt::format("rank {}: op {} is paired with the next one, but the row has {} ops", r,
                                   opNumber(position), schedule.order[r].size());
            // a group of more than two
            const bool joined = position == previous + 1 && isMessage(schedule.order[r][position].kind);
            if (position < previous + 2 && !joined)
                return fmt::format("rank {}: the pairs at ops {} and {} overlap or are out of order", r,
                                   opNumber(previous), opNumber(position));
            const Op& first = schedule.order[r][position];
            const Op& second = schedule.order[r][position + 1];
            if (isCopy(first.kind) || isCopy(second.kind))
                return fmt::format(
                    "rank {}, op {}: {} and {} are issued together, but copies run beside other ops anyway", r,
                    opNumber(position), toText(first), toText(second));
            if (isMessage(first.kind) != isMessage(second.kind))
                return fmt::format("rank {}, op {}: {} and {} are issued together, but only one of them is a message",
                                   r, opNumber(position), toText(first), toText(second));
            previous = position;
        }
    }
    return {};
}

std::string opFault(const Schedule& schedule, const Op& op)
{
    if (op.stage >= schedule.stages)
        return fmt::format("stage {}, but stages are 0 to {}", op.stage, schedule.stages - 1);
    if (isInPieces(op.kind)) return op.slice < 0 ? "has no piece" : "";
    if (!hasMicrobatch(op)) return {};
    if (op.count < 1) return "covers no microbatch";
    if (op.half > 2) return fmt::format("half {}, but halves are 1 and 2", op.half);
    if (op.microbatch < 0) return "has no microbatch";
    const std::int64_t last = static_cast<std::int64_t>(op.microbatch) + op.count - 1;
    if (last >= schedule.microbatches)
        return fmt::format("microbatch {}, but microbatches are 0 to {}", last, schedule.microbatches - 1);
    return {};
}

Result<CellSpace> cellsOf(const Schedule& schedule)
{
    countWork(&WorkCounts::cells);
    if (std::string fault = shapeFault(schedule); !fault.empty()) return fail(ErrorCode::Invalid, std::move(fault));
    CellSpace cells;
    cells.stages = schedule.stages;
    cells.microbatches = schedule.microbatches;
    for (int r = 0; r < schedule.ranks; ++r) {
        const auto& ops = schedule.order[static_cast<std::size_t>(r)];
        for (std::size_t i = 0; i < ops.size(); ++i) {
            const Op& op = ops[i];
            const bool simple = op.stage < schedule.stages && op.microbatch >= 0 &&
                                op.microbatch < schedule.microbatches && op.count == 1 && op.slice < 0 && op.half == 0;
            if (simple) continue;
            if (std::string fault = opFault(schedule, op); !fault.empty())
                return fail(ErrorCode::Invalid,
                            fmt::format("rank {}, op {} ({}): {}", r, opNumber(i), toText(op), fault));
            if (!ruleOf(op.kind).takesMicrobatch) continue;
            cells.plain = false;
            if (op.slice >= 0) cells.slices = std::max(cells.slices, op.slice + 1);
            if (op.half > 0) cells.halves = 2;
        }
    }
    return cells;
}

OpIndex::OpIndex(const Schedule& schedule, const CellSpace& cells) : m_cells(cells), m_graph(schedule.graph)
{
    countWork(&WorkCounts::indexes);
    m_offsets.push_back(0);
    std::uint32_t id = 0;
    for (const auto& ops : schedule.order) {
        for (const Op& op : ops) {
            const Product product = productOf(op.kind);
            if (product != Product::None) {
                auto& table = m_producer[static_cast<std::size_t>(product)];
                if (table.empty()) table.assign(cells.size(), noOp);
                cells.each(op, op.stage, [&](std::size_t cell) {
                    if (table[cell] == noOp) table[cell] = id;
                    return true;
                });
            }
            ++id;
        }
        m_offsets.push_back(id);
    }
}

OpPlace OpIndex::placeOf(std::uint32_t id) const
{
    const auto after = std::upper_bound(m_offsets.begin(), m_offsets.end(), id);
    const auto rank = static_cast<std::size_t>(after - m_offsets.begin()) - 1;
    return {static_cast<int>(rank), id - m_offsets[rank]};
}

} // namespace stagewright
