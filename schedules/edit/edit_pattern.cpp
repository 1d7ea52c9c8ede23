#include "schedules/edit/edit_pattern.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "schedules/base/op_number.h"
#include "schedules/check/validate.h"
#include "schedules/edit/edit_row.h"
#include "schedules/library/registry.h"
#include "schedules/model/kinds.h"

namespace stagewright {

namespace {

bool takesMicrobatch(const Op& op) { return hasMicrobatch(op); }

// F, R and each other kind by itself; B stands for I and W.
bool replaces(const Op& fresh, const Op& there)
{
    if (fresh.stage != there.stage || fresh.microbatch != there.microbatch || fresh.slice != there.slice) return false;
    if (fresh.kind == there.kind) return fresh.half == there.half || fresh.half == 0 || there.half == 0;
    const bool freshSplit = isSplitBackward(fresh.kind);
    const bool thereSplit = isSplitBackward(there.kind);
    return (freshSplit && isFullBackward(there.kind)) || (isFullBackward(fresh.kind) && thereSplit);
}

} // namespace

Result<OpPattern> copyPattern(const Schedule& schedule, const CostModel& costs, const SimResult& times,
                              std::vector<OpPosition> positions)
{
    std::sort(positions.begin(), positions.end());
    OpPattern pattern;
    int least = -1, most = -1;
    std::vector<Nanos> work(schedule.order.size(), 0);
    for (const OpPosition at : positions) {
        const Op* op = opAt(schedule, at);
        if (op == nullptr)
            return fail(ErrorCode::Usage, fmt::format("rank {} has no op at place {}", at.rank, opNumber(at.position)));
        if (!takesMicrobatch(*op) && !isDelay(op->kind)) continue;
        if (takesMicrobatch(*op)) {
            least = least < 0 ? op->microbatch : std::min(least, op->microbatch);
            most = std::max(most, op->microbatch + op->count - 1);
        }
        const std::size_t id = times.indexOf(at.rank, static_cast<std::size_t>(at.position));
        pattern.items.push_back({at.rank, *op, id < times.start.size() ? times.start[id] : 0});
        work[static_cast<std::size_t>(at.rank)] += costs.duration(*op, at.rank);
    }
    if (least < 0)
        return fail(ErrorCode::Usage, "nothing to copy: no op with a microbatch is selected",
                    "select the ops of one microbatch");
    pattern.microbatches = most - least + 1;
    pattern.period = *std::max_element(work.begin(), work.end());
    return pattern;
}

Result<Stamped> stampPattern(const Schedule& schedule, const SimResult& times, const OpPattern& pattern, int k)
{
    if (pattern.empty()) return fail(ErrorCode::Usage, "nothing was copied", "select ops and copy them first");
    std::vector<OpPattern::Item> fresh = pattern.items;
    for (OpPattern::Item& item : fresh) {
        if (item.rank < 0 || static_cast<std::size_t>(item.rank) >= schedule.order.size() ||
            item.op.stage >= schedule.stages)
            return fail(ErrorCode::Usage, fmt::format("{} of rank {} was copied from a schedule of another shape",
                                                      toText(item.op), item.rank));
        item.start += k * pattern.period;
        if (!takesMicrobatch(item.op)) continue;
        item.op.microbatch += k * pattern.microbatches;
        const int last = item.op.microbatch + item.op.count - 1;
        if (last >= schedule.microbatches || item.op.microbatch < 0)
            return fail(ErrorCode::Usage,
                        fmt::format("the next copy of the pattern would be microbatch {}, but microbatches are 0 to {}",
                                    last, schedule.microbatches - 1),
                        "raise their number first");
        // Copies of a stage: the op goes where its microbatch is.
        if (item.op.stage < schedule.placement.stages() && schedule.placement.copiesOf(item.op.stage).size() > 1)
            item.rank = schedule.placement.rankOf(item.op.stage, item.op.microbatch);
    }
    std::stable_sort(fresh.begin(), fresh.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
    Stamped out{{schedule, {}}, 0};
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        const int rank = static_cast<int>(r);
        std::vector<const OpPattern::Item*> mine;
        std::multiset<std::tuple<int, int>> keys; // microbatch, stage: what may be replaced
        for (const auto& item : fresh) {
            if (takesMicrobatch(item.op)) keys.insert({item.op.microbatch, item.op.stage});
            if (item.rank == rank) mine.push_back(&item);
        }
        const EditRow row(schedule, rank);
        EditRow after(schedule, rank);
        after.entries.clear();
        std::size_t next = 0;
        bool fell = false; // a new op comes before
        auto put = [&](const OpPattern::Item& item) {
            out.edited.positions.push_back({rank, static_cast<int>(after.entries.size())});
            after.entries.push_back({item.op, -1});
        };
        for (std::size_t i = 0; i < row.entries.size(); ++i) {
            const Op& op = row.entries[i].op;
            if (takesMicrobatch(op) && keys.contains({op.microbatch, op.stage}) &&
                std::any_of(fresh.begin(), fresh.end(),
                            [&](const auto& item) { return takesMicrobatch(item.op) && replaces(item.op, op); }))
                continue;
            const std::size_t id = times.indexOf(rank, i);
            while (next < mine.size() && id < times.start.size() && mine[next]->start <= times.start[id]) {
                put(*mine[next++]);
                fell = true;
            }
            if (fell) ++out.shoved;
            after.entries.push_back(row.entries[i]);
        }
        while (next < mine.size()) put(*mine[next++]);
        after.writeTo(out.edited.schedule, rank);
    }
    return out;
}

namespace {

Result<Schedule> fewer(const Schedule& schedule, int count)
{
    Schedule out = schedule;
    out.microbatches = count;
    for (int r = 0; r < schedule.ranks; ++r) {
        EditRow row(schedule, r);
        std::vector<EditRow::Entry> kept;
        for (const EditRow::Entry& entry : row.entries) {
            if (takesMicrobatch(entry.op) && entry.op.microbatch < count &&
                entry.op.microbatch + entry.op.count > count)
                return fail(
                    ErrorCode::Usage,
                    fmt::format("rank {}: {} covers microbatches on both sides of {}", r, toText(entry.op), count),
                    "split it first");
            if (!takesMicrobatch(entry.op) || entry.op.microbatch < count) kept.push_back(entry);
        }
        row.entries = std::move(kept);
        row.writeTo(out, r);
    }
    std::vector<std::vector<Placement::Copy>> table;
    for (int s = 0; s < schedule.placement.stages(); ++s) {
        auto& copies = table.emplace_back(schedule.placement.copiesOf(s));
        copies.erase(std::remove_if(copies.begin() + 1, copies.end(),
                                    [&](const auto& copy) { return copy.firstMicrobatch >= count; }),
                     copies.end());
    }
    out.placement = Placement::of(std::move(table));
    return out;
}

// One microbatch more: `middle` comes a second time, all behind it one period later.
Schedule stretched(const Schedule& schedule, const SimResult& times, Nanos period, int middle)
{
    Schedule out = schedule;
    ++out.microbatches;
    for (int r = 0; r < schedule.ranks; ++r) {
        struct Timed {
            Nanos start;
            EditRow::Entry entry;
        };
        std::vector<Timed> list;
        const EditRow row(schedule, r);
        bool passed = false; // an op behind the middle came: what has no microbatch moves on too
        int mark = 0;
        for (const EditRow::Entry& entry : row.entries) mark = std::max(mark, entry.pairId + 1);
        for (std::size_t i = 0; i < row.entries.size(); ++i) {
            EditRow::Entry entry = row.entries[i];
            const Nanos start = times.start[times.indexOf(r, i)];
            const bool behind = takesMicrobatch(entry.op) ? entry.op.microbatch > middle : passed;
            if (takesMicrobatch(entry.op) && entry.op.microbatch >= middle) passed = true;
            if (behind) {
                if (takesMicrobatch(entry.op)) ++entry.op.microbatch;
                list.push_back({start + period, entry});
                continue;
            }
            list.push_back({start, entry});
            if (!takesMicrobatch(entry.op) || entry.op.microbatch != middle) continue;
            ++entry.op.microbatch;
            if (entry.pairId >= 0) entry.pairId += mark;
            list.push_back({start + period, entry});
        }
        std::stable_sort(list.begin(), list.end(), [](const Timed& a, const Timed& b) { return a.start < b.start; });
        EditRow after(schedule, r);
        after.entries.clear();
        for (const Timed& timed : list) after.entries.push_back(timed.entry);
        after.writeTo(out, r);
    }
    return out;
}

} // namespace

Result<Schedule> withMicrobatches(const Schedule& schedule, const CostModel& costs, int count)
{
    if (count < 1) return fail(ErrorCode::Usage, fmt::format("{} microbatches; at least one is needed", count));
    if (count == schedule.microbatches) return schedule;
    const bool valid = validate(schedule).valid();
    const std::string known = valid ? recognise(schedule) : std::string();
    if (!known.empty() && known.find(", ") == std::string::npos) { // a comma: a form that can't be made by name
        Shape shape(schedule.ranks, count, schedule.ranks > 0 ? schedule.stages / schedule.ranks : 0);
        if (auto made = makeSchedule(known, shape);
            made && made->ranks == schedule.ranks && made->stages == schedule.stages)
            return std::move(*made);
    }
    if (count < schedule.microbatches) return fewer(schedule, count);
    if (schedule.opCount() == 0 || !unplacedOps(schedule).empty()) { // the new ones are not placed yet
        Schedule out = schedule;
        out.microbatches = count;
        return out;
    }
    if (!valid)
        return fail(ErrorCode::Usage, "the order has a fault, so its pattern can't be repeated", "fix it first");
    if (schedule.placement.hasCopies())
        return fail(
            ErrorCode::Usage,
            fmt::format("{} microbatches: stages have copies, and it is unknown which copy takes the new ones", count),
            "create the schedule again from the library");
    for (const auto& row : schedule.order)
        for (const Op& op : row)
            if (op.count > 1)
                return fail(ErrorCode::Usage,
                            fmt::format("{} covers several microbatches, so the pattern can't be repeated", toText(op)),
                            "create the schedule again");
    Schedule out = schedule;
    const std::vector<Bytes> before = activationPeaks(schedule, costs);
    while (out.microbatches < count) {
        STAGEWRIGHT_TRY(auto times, simulate(out, costs));
        std::vector<OpPosition> middle;
        const int at = out.microbatches / 2;
        for (const OpPosition place : allPositions(out))
            if (const Op& op = *opAt(out, place); takesMicrobatch(op) && op.microbatch == at) middle.push_back(place);
        STAGEWRIGHT_TRY(auto pattern, copyPattern(out, costs, times, middle));
        out = stretched(out, times, pattern.period, at);
        if (!validate(out).valid())
            return fail(ErrorCode::Usage,
                        fmt::format("microbatch {} can't be repeated: the order has no steady part", at),
                        "place the new microbatches by hand: copy the ops of one and paste");
    }
    const std::vector<Bytes> after = activationPeaks(out, costs);
    for (std::size_t r = 0; r < after.size(); ++r)
        if (after[r] > before[r])
            return fail(ErrorCode::Usage,
                        fmt::format("{} microbatches: rank {} would hold more at its peak, so the pattern would change",
                                    count, r),
                        "place the new microbatches by hand: copy the ops of one and paste");
    return out;
}

} // namespace stagewright
