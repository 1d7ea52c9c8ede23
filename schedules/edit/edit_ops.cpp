#include "schedules/edit/edit_ops.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/edit/edit_row.h"
#include "schedules/messages/messages.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

Result<void> checkAll(const Schedule& schedule, const std::vector<OpPosition>& positions)
{
    if (positions.empty()) return fail(ErrorCode::Usage, "no op is selected", "select one first");
    for (const OpPosition at : positions)
        if (opAt(schedule, at) == nullptr)
            return fail(ErrorCode::Usage, fmt::format("rank {} has no op at place {}", at.rank, opNumber(at.position)));
    return {};
}

void sortUnique(std::vector<OpPosition>& positions)
{
    std::sort(positions.begin(), positions.end());
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
}

// [first, last) of one rank within sorted positions.
template <typename Visit>
void eachRank(const std::vector<OpPosition>& sorted, Visit&& visit)
{
    for (std::size_t first = 0; first < sorted.size();) {
        std::size_t last = first;
        while (last < sorted.size() && sorted[last].rank == sorted[first].rank) ++last;
        visit(sorted[first].rank, first, last);
        first = last;
    }
}

bool sameCell(const Op& a, const Op& b)
{
    return a.stage == b.stage && a.microbatch == b.microbatch && a.count == b.count && a.slice == b.slice &&
           a.half == b.half;
}

std::string ranksOf(const std::vector<Placement::Copy>& copies)
{
    std::vector<int> ranks;
    ranks.reserve(copies.size());
    for (const auto& copy : copies) ranks.push_back(copy.rank);
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    std::string out = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < ranks.size(); ++i)
        out += (i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ") + std::to_string(ranks[i]);
    return out;
}

} // namespace

const Op* opAt(const Schedule& schedule, OpPosition at)
{
    if (!at.valid() || static_cast<std::size_t>(at.rank) >= schedule.order.size()) return nullptr;
    const auto& row = schedule.order[static_cast<std::size_t>(at.rank)];
    return static_cast<std::size_t>(at.position) < row.size() ? &row[static_cast<std::size_t>(at.position)] : nullptr;
}

OpPosition positionOf(const Schedule& schedule, const Op& op, int rank)
{
    if (rank < 0 || static_cast<std::size_t>(rank) >= schedule.order.size()) return {};
    const auto& row = schedule.order[static_cast<std::size_t>(rank)];
    const auto at = std::find(row.begin(), row.end(), op);
    return at == row.end() ? OpPosition{} : OpPosition{rank, static_cast<int>(at - row.begin())};
}

Result<Edited> moveOps(const Schedule& schedule, std::vector<OpPosition> positions, int shift)
{
    STAGEWRIGHT_CHECK(checkAll(schedule, positions));
    sortUnique(positions);
    Edited out{schedule, {}};
    eachRank(positions, [&](int rank, std::size_t first, std::size_t last) {
        EditRow row(schedule, rank);
        const auto size = static_cast<long>(row.entries.size());
        const auto count = static_cast<long>(last - first);
        std::vector<EditRow::Entry> after(row.entries.size());
        std::vector<char> taken(row.entries.size(), 0), moves(row.entries.size(), 0);
        for (long i = 0; i < count; ++i) {
            const long from = positions[first + static_cast<std::size_t>(i)].position;
            const long to = std::clamp<long>(from + shift, i, size - count + i);
            after[static_cast<std::size_t>(to)] = row.entries[static_cast<std::size_t>(from)];
            taken[static_cast<std::size_t>(to)] = 1;
            moves[static_cast<std::size_t>(from)] = 1;
            out.positions.push_back({rank, static_cast<int>(to)});
        }
        std::size_t place = 0;
        for (std::size_t i = 0; i < row.entries.size(); ++i) {
            if (moves[i] != 0) continue;
            while (taken[place] != 0) ++place;
            after[place++] = row.entries[i];
        }
        row.entries = std::move(after);
        row.writeTo(out.schedule, rank);
    });
    return out;
}

Result<Edited> moveToRank(const Schedule& schedule, OpPosition from, int toRank, int to)
{
    const Op* found = opAt(schedule, from);
    if (found == nullptr)
        return fail(ErrorCode::Usage, fmt::format("rank {} has no op at place {}", from.rank, opNumber(from.position)));
    const Op op = *found;
    if (toRank < 0 || static_cast<std::size_t>(toRank) >= schedule.order.size())
        return fail(ErrorCode::Usage,
                    fmt::format("rank {}, but ranks are 0 to {}", toRank, static_cast<int>(schedule.order.size()) - 1));
    if (toRank == from.rank) return moveOps(schedule, {from}, to - from.position);
    Edited out{schedule, {}};
    EditRow source(schedule, from.rank), target(schedule, toRank);
    const auto at = static_cast<std::size_t>(std::clamp<long>(to, 0, static_cast<long>(target.entries.size())));
    if (isDelay(op.kind)) {
        const std::vector<int> stages = schedule.placement.stagesOf(toRank);
        source.erase(static_cast<std::size_t>(from.position));
        target.insert(at, makeFiller(stages.empty() ? 0 : stages.front(), op.delay));
        source.writeTo(out.schedule, from.rank);
        target.writeTo(out.schedule, toRank);
        out.positions.push_back({toRank, static_cast<int>(at)});
        return out;
    }
    const std::string name = fmt::format("{} can't go to rank {}", toText(op), toRank);
    if (!isCompute(op.kind))
        return fail(ErrorCode::Usage, fmt::format("{}: its kind belongs to rank {}", name, from.rank),
                    "move it along its own rank");
    if (isLowered(schedule))
        return fail(ErrorCode::Usage, name + ": the sends and receives of this order are fixed",
                    "edit the order without its messages");
    if (op.stage >= schedule.placement.stages())
        return fail(ErrorCode::Usage, fmt::format("{}: stage {} of {}", name, op.stage, schedule.placement.stages()));
    const auto& copies = schedule.placement.copiesOf(op.stage);
    if (std::none_of(copies.begin(), copies.end(), [&](const auto& copy) { return copy.rank == toRank; }))
        return fail(ErrorCode::Usage,
                    fmt::format("{}: the weights of stage {} are on {} alone", name, op.stage, ranksOf(copies)),
                    copies.size() > 1 ? fmt::format("drop it on one of the {}", ranksOf(copies))
                                      : std::string("only a stage with copies, as in Chimera, changes ranks"));
    const int first = op.microbatch, last = op.microbatch + op.count - 1;
    std::vector<std::pair<std::size_t, Op>> moved; // all of the stage that these microbatches need, by place
    for (std::size_t i = 0; i < source.entries.size(); ++i) {
        const Op& other = source.entries[i].op;
        if (other.stage != op.stage || !hasMicrobatch(other)) continue;
        const int otherLast = other.microbatch + other.count - 1;
        if (otherLast < first || other.microbatch > last) continue;
        if (other.microbatch < first || otherLast > last)
            return fail(ErrorCode::Usage, fmt::format("{}: {} covers microbatches {} to {}", name, toText(other),
                                                      other.microbatch, otherLast));
        moved.emplace_back(i, other);
    }
    std::vector<int> rankOf(static_cast<std::size_t>(schedule.microbatches));
    for (int j = 0; j < schedule.microbatches; ++j)
        rankOf[static_cast<std::size_t>(j)] = j >= first && j <= last ? toRank : schedule.placement.rankOf(op.stage, j);
    std::vector<std::vector<Placement::Copy>> table;
    table.reserve(static_cast<std::size_t>(schedule.placement.stages()));
    for (int s = 0; s < schedule.placement.stages(); ++s) table.push_back(schedule.placement.copiesOf(s));
    auto& own = table[op.stage];
    own.clear();
    for (int j = 0; j < schedule.microbatches; ++j) own.push_back({j, rankOf[static_cast<std::size_t>(j)]});
    for (std::size_t i = moved.size(); i-- > 0;) source.erase(moved[i].first);
    // The others keep their distance to the one that was dragged, in ops.
    std::size_t least = 0;
    for (const auto& [place, other] : moved) {
        const long wanted = static_cast<long>(at) + static_cast<long>(place) - from.position;
        const auto put = std::max(
            least, static_cast<std::size_t>(std::clamp<long>(wanted, 0, static_cast<long>(target.entries.size()))));
        target.insert(put, other);
        if (other == op) out.positions.push_back({toRank, static_cast<int>(put)});
        least = put + 1;
    }
    source.writeTo(out.schedule, from.rank);
    target.writeTo(out.schedule, toRank);
    out.schedule.placement = Placement::of(std::move(table));
    return out;
}

Result<Edited> removeOps(const Schedule& schedule, std::vector<OpPosition> positions)
{
    STAGEWRIGHT_CHECK(checkAll(schedule, positions));
    sortUnique(positions);
    Edited out{schedule, {}};
    eachRank(positions, [&](int rank, std::size_t first, std::size_t last) {
        EditRow row(schedule, rank);
        std::vector<EditRow::Entry> kept;
        std::size_t next = first;
        for (std::size_t i = 0; i < row.entries.size(); ++i) {
            if (next < last && static_cast<std::size_t>(positions[next].position) == i)
                ++next;
            else
                kept.push_back(row.entries[i]);
        }
        row.entries = std::move(kept);
        row.writeTo(out.schedule, rank);
    });
    return out;
}

Result<Edited> insertOps(const Schedule& schedule, int rank, int at, const std::vector<Op>& ops)
{
    if (rank < 0 || static_cast<std::size_t>(rank) >= schedule.order.size())
        return fail(ErrorCode::Usage,
                    fmt::format("rank {}, but ranks are 0 to {}", rank, static_cast<int>(schedule.order.size()) - 1));
    Edited out{schedule, {}};
    EditRow row(schedule, rank);
    auto place = static_cast<std::size_t>(std::clamp<long>(at, 0, static_cast<long>(row.entries.size())));
    for (const Op& op : ops) {
        out.positions.push_back({rank, static_cast<int>(place)});
        row.insert(place++, op);
    }
    row.writeTo(out.schedule, rank);
    return out;
}

namespace {

// Rebuilds the rows that hold a selected op; `change` gets a row, the marks of its selected places, and collects the
// places of what it made.
template <typename Change>
Result<Edited> rebuild(const Schedule& schedule, std::vector<OpPosition> positions, Change&& change)
{
    STAGEWRIGHT_CHECK(checkAll(schedule, positions));
    sortUnique(positions);
    Edited out{schedule, {}};
    Result<void> done;
    eachRank(positions, [&](int rank, std::size_t first, std::size_t last) {
        if (!done) return;
        EditRow row(schedule, rank);
        std::vector<char> chosen(row.entries.size(), 0);
        for (std::size_t i = first; i < last; ++i) chosen[static_cast<std::size_t>(positions[i].position)] = 1;
        std::vector<int> made;
        done = change(row, chosen, made);
        for (const int place : made) out.positions.push_back({rank, place});
        row.writeTo(out.schedule, rank);
    });
    if (!done) return tl::unexpected(done.error());
    return out;
}

} // namespace

Result<Edited> splitBackward(const Schedule& schedule, const std::vector<OpPosition>& positions)
{
    auto out = rebuild(schedule, positions,
                       [](EditRow& row, const std::vector<char>& chosen, std::vector<int>& made) -> Result<void> {
                           std::vector<EditRow::Entry> after;
                           std::vector<Op> late; // W of a pair, behind it
                           for (std::size_t i = 0; i < row.entries.size(); ++i) {
                               EditRow::Entry entry = row.entries[i];
                               const bool pairGoesOn = entry.pairId >= 0 && i + 1 < row.entries.size() &&
                                                       row.entries[i + 1].pairId == entry.pairId;
                               if (chosen[i] != 0 && isFullBackward(entry.op.kind)) {
                                   late.push_back(asWeightGrad(entry.op));
                                   entry.op = asInputGrad(entry.op);
                                   made.push_back(static_cast<int>(after.size()));
                               }
                               after.push_back(entry);
                               if (pairGoesOn) continue;
                               for (const Op& op : late) after.push_back({op, -1});
                               late.clear();
                           }
                           row.entries = std::move(after);
                           return {};
                       });
    if (out && out->positions.empty())
        return fail(ErrorCode::Usage, "nothing to split: no full backward (B) is selected");
    return out;
}

Schedule splitEveryBackward(const Schedule& schedule)
{
    std::vector<OpPosition> positions;
    for (int rank = 0; rank < static_cast<int>(schedule.order.size()); ++rank) {
        const auto& row = schedule.order[static_cast<std::size_t>(rank)];
        for (int i = 0; i < static_cast<int>(row.size()); ++i)
            if (isFullBackward(row[static_cast<std::size_t>(i)].kind)) positions.push_back({rank, i});
    }
    auto split = splitBackward(schedule, positions);
    if (!split) return schedule;
    return std::move(split->schedule);
}

Result<Edited> mergeBackward(const Schedule& schedule, const std::vector<OpPosition>& positions)
{
    auto out = rebuild(
        schedule, positions, [](EditRow& row, const std::vector<char>& chosen, std::vector<int>& made) -> Result<void> {
            using Key = std::tuple<int, int, int, int>;
            auto keyOf = [](const Op& op) { return Key(op.stage, op.microbatch, op.slice, op.half); };
            std::map<Key, std::size_t> inputs, weights;
            for (std::size_t i = 0; i < row.entries.size(); ++i) {
                if (isInputGrad(row.entries[i].op.kind)) inputs.emplace(keyOf(row.entries[i].op), i);
                if (isWeightGrad(row.entries[i].op.kind)) weights.emplace(keyOf(row.entries[i].op), i);
            }
            std::vector<char> becomes(row.entries.size(), 0), goes(row.entries.size(), 0);
            for (std::size_t i = 0; i < row.entries.size(); ++i) {
                const Op& op = row.entries[i].op;
                if (chosen[i] == 0 || !isSplitBackward(op.kind)) continue;
                const auto input = inputs.find(keyOf(op)), weight = weights.find(keyOf(op));
                if (input == inputs.end() || weight == weights.end() ||
                    !sameCell(row.entries[input->second].op, row.entries[weight->second].op))
                    return fail(
                        ErrorCode::Usage,
                        fmt::format("{} can't be merged: its {} covers other microbatches, or is not on this rank",
                                    toText(op), isInputGrad(op.kind) ? "W" : "I"),
                        "merge ops of one microbatch");
                becomes[input->second] = 1;
                goes[weight->second] = 1;
            }
            std::vector<EditRow::Entry> after;
            for (std::size_t i = 0; i < row.entries.size(); ++i) {
                if (goes[i] != 0) continue;
                EditRow::Entry entry = row.entries[i];
                if (becomes[i] != 0) {
                    entry.op = asBackward(entry.op);
                    made.push_back(static_cast<int>(after.size()));
                }
                after.push_back(entry);
            }
            row.entries = std::move(after);
            return {};
        });
    if (out && out->positions.empty())
        return fail(ErrorCode::Usage, "nothing to merge: no input gradient (I) or weight gradient (W) is selected");
    return out;
}

Result<Edited> insertRecompute(const Schedule& schedule, const std::vector<OpPosition>& positions)
{
    auto out = rebuild(
        schedule, positions, [](EditRow& row, const std::vector<char>& chosen, std::vector<int>& made) -> Result<void> {
            std::vector<Op> wanted; // cells of the selected ops
            for (std::size_t i = 0; i < row.entries.size(); ++i)
                if (chosen[i] != 0 && isCompute(row.entries[i].op.kind)) wanted.push_back(row.entries[i].op);
            auto overlaps = [](const Op& a, const Op& b) {
                return a.stage == b.stage && a.microbatch < b.microbatch + b.count &&
                       b.microbatch < a.microbatch + a.count && (a.slice == b.slice || a.slice < 0 || b.slice < 0);
            };
            std::vector<EditRow::Entry> after;
            int fresh = static_cast<int>(row.entries.size()); // pair marks not used yet
            std::vector<Op> has;
            for (const EditRow::Entry& entry : row.entries)
                if (isRecompute(entry.op.kind)) has.push_back(entry.op);
            for (std::size_t i = 0; i < row.entries.size(); ++i) {
                EditRow::Entry entry = row.entries[i];
                const bool second = i > 0 && entry.pairId >= 0 && row.entries[i - 1].pairId == entry.pairId;
                if (isReturn(entry.op.kind) &&
                    std::any_of(wanted.begin(), wanted.end(), [&](const Op& op) { return overlaps(op, entry.op); }) &&
                    std::none_of(has.begin(), has.end(), [&](const Op& op) { return overlaps(op, entry.op); })) {
                    Op again = asRecompute(entry.op);
                    again.half = 0;
                    has.push_back(again);
                    if (second) { // before the pair
                        after.insert(after.end() - 1, {again, -1});
                        made.push_back(static_cast<int>(after.size()) - 2);
                    } else {
                        made.push_back(static_cast<int>(after.size()));
                        const bool alone = entry.pairId < 0;
                        after.push_back({again, alone ? fresh : -1});
                        if (alone) entry.pairId = fresh++;
                    }
                }
                after.push_back(entry);
            }
            row.entries = std::move(after);
            return {};
        });
    if (out && out->positions.empty())
        return fail(ErrorCode::Usage, "nothing to recompute: no selected backward lacks an R");
    return out;
}

Result<Edited> swapTwo(const Schedule& schedule, OpPosition a, OpPosition b)
{
    STAGEWRIGHT_CHECK(checkAll(schedule, {a, b}));
    if (a.rank != b.rank)
        return fail(ErrorCode::Usage,
                    fmt::format("{} is on rank {}, {} on rank {}", toText(*opAt(schedule, a)), a.rank,
                                toText(*opAt(schedule, b)), b.rank),
                    "swap two ops of one rank");
    Edited out{schedule, {b, a}};
    EditRow row(schedule, a.rank);
    std::swap(row.entries[static_cast<std::size_t>(a.position)], row.entries[static_cast<std::size_t>(b.position)]);
    row.writeTo(out.schedule, a.rank);
    return out;
}

std::vector<OpPosition> allPositions(const Schedule& schedule, int rank)
{
    std::vector<OpPosition> out;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        if (rank >= 0 && static_cast<std::size_t>(rank) != r) continue;
        for (std::size_t i = 0; i < schedule.order[r].size(); ++i)
            out.push_back({static_cast<int>(r), static_cast<int>(i)});
    }
    return out;
}

std::vector<Op> unplacedOps(const Schedule& schedule)
{
    enum : char {
        HasF = 1,
        HasB = 2,
        HasI = 4,
        HasW = 8,
    };
    const auto stages = static_cast<std::size_t>(std::max(0, schedule.stages)),
               microbatches = static_cast<std::size_t>(std::max(0, schedule.microbatches));
    std::vector<char> has(stages * microbatches, 0);
    bool splits = false, whole = false;
    for (const auto& row : schedule.order)
        for (const Op& op : row) {
            const char bit = isForward(op.kind)        ? HasF
                             : isFullBackward(op.kind) ? HasB
                             : isInputGrad(op.kind)    ? HasI
                             : isWeightGrad(op.kind)   ? HasW
                                                       : 0;
            splits = splits || bit == HasI || bit == HasW;
            whole = whole || bit == HasB;
            if (bit == 0 || op.stage >= schedule.stages || op.microbatch < 0) continue;
            for (int k = 0; k < op.count && op.microbatch + k < schedule.microbatches; ++k)
                has[op.stage * microbatches + static_cast<std::size_t>(op.microbatch + k)] |= bit;
        }
    std::vector<Op> out;
    for (std::size_t s = 0; s < stages; ++s)
        for (std::size_t j = 0; j < microbatches; ++j) {
            const char there = has[s * microbatches + j];
            auto lacks = [&](char bit, const Op& op) {
                if ((there & bit) == 0) out.push_back(op);
            };
            const Op forward = makeForward(static_cast<int>(s), static_cast<int>(j));
            lacks(HasF, forward);
            if ((there & HasB) != 0) continue;
            if ((there & (HasI | HasW)) != 0 || (splits && !whole)) {
                lacks(HasI, asInputGrad(forward));
                lacks(HasW, asWeightGrad(forward));
            } else {
                lacks(HasB, asBackward(forward));
            }
        }
    return out;
}

std::optional<Op> unplacedInput(const Schedule& schedule, const Op& op)
{
    const std::vector<Op> unplaced = unplacedOps(schedule);
    std::optional<Op> first;
    schedule.graph.eachNeed(op, schedule.stages, [&](const Need& need, int stage) {
        for (const Op& other : unplaced) {
            const bool made = other.kind == need.kind || other.kind == need.orKind;
            const bool covered = other.microbatch >= op.microbatch && other.microbatch < op.microbatch + op.count;
            if (!first && made && covered && other.stage == stage) first = other;
        }
    });
    return first;
}

Schedule emptySchedule(int ranks, int stages, int microbatches)
{
    Schedule out;
    out.name = "empty";
    out.ranks = ranks;
    out.stages = stages;
    out.microbatches = microbatches;
    out.placement = Placement::loop(ranks, stages);
    out.order.resize(static_cast<std::size_t>(ranks));
    return out;
}

} // namespace stagewright
