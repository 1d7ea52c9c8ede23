// Changes of several ops, patterns, gaps, refusals and deltas: each by what it must leave as it is.
#include <QtTest>

#include "schedules/check/validate.h"
#include "schedules/edit/edit_ops.h"
#include "schedules/edit/edit_pattern.h"
#include "schedules/edit/edit_timing.h"
#include "schedules/library/registry.h"
#include "schedules/model/schedule_delta.h"
#include "schedules/text/csv.h"

using namespace stagewright;

namespace {

Schedule make(const char* name, int ranks = 4, int microbatches = 8)
{
    return *makeSchedule(name, Shape{ranks, microbatches, 0});
}

SimResult timesOf(const Schedule& schedule, const CostModel& costs) { return *simulate(schedule, costs); }

OpPosition find(const Schedule& schedule, const char* text)
{
    const Op op = *parseOp(text);
    for (int r = 0; r < schedule.ranks; ++r)
        if (const OpPosition at = positionOf(schedule, op, r); at.valid()) return at;
    return {};
}

std::vector<OpPosition> ofMicrobatch(const Schedule& schedule, int microbatch)
{
    std::vector<OpPosition> out;
    for (const OpPosition at : allPositions(schedule))
        if (opAt(schedule, at)->microbatch == microbatch) out.push_back(at);
    return out;
}

std::vector<Op> sorted(const Schedule& schedule)
{
    std::vector<Op> out;
    for (const auto& row : schedule.order) out.insert(out.end(), row.begin(), row.end());
    std::sort(out.begin(), out.end());
    return out;
}

} // namespace

class TestEditOps : public QObject {
    Q_OBJECT

private slots:
    void severalMoveTogether()
    {
        const Schedule schedule = make("gpipe", 2, 4);
        const auto& row = schedule.order[0];
        const auto moved = moveOps(schedule, {{0, 0}, {0, 2}}, 1);
        QVERIFY(moved.has_value());
        QCOMPARE(moved->positions, (std::vector<OpPosition>{{0, 1}, {0, 3}}));
        QCOMPARE(moved->schedule.order[0][1], row[0]);
        QCOMPARE(moved->schedule.order[0][3], row[2]);
        QCOMPARE(moved->schedule.order[0][0], row[1]);
        QCOMPARE(moved->schedule.order[0][2], row[3]);
        // As far as the row goes, and no further; all keep their order.
        const auto far = moveOps(schedule, {{0, 0}, {0, 2}}, 1000);
        const std::size_t n = row.size();
        QCOMPARE(far->schedule.order[0][n - 2], row[0]);
        QCOMPARE(far->schedule.order[0][n - 1], row[2]);
        QVERIFY(moveOps(schedule, *&moved->positions, -1).has_value());
        QVERIFY(moveOps(moved->schedule, moved->positions, -1)->schedule == schedule);
        QVERIFY(!moveOps(schedule, {}, 1).has_value());
        QVERIFY(!moveOps(schedule, {{7, 0}}, 1).has_value());
    }

    void splitAndMergeAreInverse()
    {
        const Schedule schedule = make("1f1b");
        const auto split = splitBackward(schedule, allPositions(schedule));
        QVERIFY(split.has_value());
        QVERIFY(validate(split->schedule).valid());
        QCOMPARE(split->schedule.opCount(), schedule.opCount() + 4 * 8);
        QVERIFY(split->schedule.splitsBackward());
        const auto merged = mergeBackward(split->schedule, allPositions(split->schedule));
        QVERIFY(merged.has_value());
        QVERIFY(merged->schedule == schedule);
        // One rank alone, and nothing to split.
        const auto one = splitBackward(schedule, allPositions(schedule, 2));
        QCOMPARE(one->schedule.opCount(), schedule.opCount() + 8);
        QVERIFY(validate(one->schedule).valid());
        QVERIFY(!splitBackward(split->schedule, allPositions(split->schedule)).has_value());
        QVERIFY(!mergeBackward(schedule, allPositions(schedule)).has_value());
    }

    void recomputeIsInsertedOnce()
    {
        const Schedule schedule = make("1f1b");
        const auto with = insertRecompute(schedule, allPositions(schedule, 1));
        QVERIFY(with.has_value());
        QVERIFY(validate(with->schedule).valid());
        QCOMPARE(with->schedule.opCount(), schedule.opCount() + 8);
        QVERIFY(!insertRecompute(with->schedule, allPositions(with->schedule, 1)).has_value());
        std::vector<OpPosition> again;
        for (const OpPosition at : allPositions(with->schedule))
            if (opAt(with->schedule, at)->kind == OpKind::Recompute) again.push_back(at);
        QVERIFY(removeOps(with->schedule, again)->schedule.order == schedule.order);
    }

    void copiesMayChangeRanks()
    {
        const Schedule schedule = make("chimera");
        const OpPosition from = find(schedule, "1F0");
        QVERIFY(from.valid());
        const auto& copies = schedule.placement.copiesOf(1);
        QVERIFY(copies.size() > 1);
        const int other = copies[0].rank == from.rank ? copies[1].rank : copies[0].rank;
        const auto moved = moveToRank(schedule, from, other, 0);
        QVERIFY2(moved.has_value(), moved ? "" : moved.error().message.c_str());
        QCOMPARE(moved->schedule.placement.rankOf(1, 0), other);
        QCOMPARE(sorted(moved->schedule), sorted(schedule)); // nothing lost, nothing twice
        for (const Fault& fault : validate(moved->schedule).faults)
            QVERIFY2(fault.kind != FaultKind::WrongRank && fault.kind != FaultKind::Count, fault.message.c_str());
        // A rank without a copy: refused, with the ranks that have one.
        int none = 0;
        while (none == copies[0].rank || none == copies[1].rank) ++none;
        const auto refused = moveToRank(schedule, from, none, 0);
        QVERIFY(!refused.has_value());
        QVERIFY(refused.error().message.find("weights of stage 1") != std::string::npos);
        // One copy only: refused. A delay: moves.
        const Schedule plain = make("1f1b");
        QVERIFY(!moveToRank(plain, {0, 0}, 1, 0).has_value());
        const auto delayed = insertOps(plain, 0, 3, {makeFiller(0, 5000)});
        const auto gone = moveToRank(delayed->schedule, {0, 3}, 2, 1);
        QVERIFY(gone.has_value());
        QCOMPARE(gone->schedule.order[2][1], makeFiller(2, 5000));
        QVERIFY(validate(gone->schedule).valid());
    }

    void whatWasRemovedIsMissing()
    {
        const Schedule schedule = make("zb-h1");
        QVERIFY(unplacedOps(schedule).empty());
        const OpPosition at = find(schedule, "2W3");
        const auto without = removeOps(schedule, {at});
        QCOMPARE(unplacedOps(without->schedule), std::vector<Op>{*parseOp("2W3")});
        QVERIFY(insertOps(without->schedule, at.rank, at.position, {*parseOp("2W3")})->schedule == schedule);
        const Schedule empty = emptySchedule(2, 4, 3);
        QCOMPARE(unplacedOps(empty).size(), std::size_t{4 * 3 * 2});
        QVERIFY(!validate(empty).valid());
    }

    // The building block of the lesson: one microbatch placed, stamped seven times, tiles.
    void stampingOneMicrobatchTiles()
    {
        const Schedule goal = make("1f1b");
        const CostModel costs = CostModel::uniform(goal);
        Schedule built = emptySchedule(4, 4, 8);
        std::vector<std::vector<Op>> first(4);
        for (int r = 0; r < 4; ++r) {
            first[static_cast<std::size_t>(r)] = {makeOp(OpKind::Forward, r, 0), makeOp(OpKind::Backward, r, 0)};
            built = insertOps(built, r, 0, first[static_cast<std::size_t>(r)])->schedule;
        }
        const SimResult alone = timesOf(goal, costs); // any times: only those of microbatch 0 are read below
        Q_UNUSED(alone);
        SimResult times;
        times.offsets = {0, 2, 4, 6, 8};
        for (int r = 0; r < 4; ++r) {
            const Nanos f = r * rankShare, b = 4 * rankShare + 2 * (3 - r) * rankShare;
            for (const Nanos t : {f, b}) {
                times.start.push_back(t);
                times.end.push_back(t + rankShare);
            }
        }
        const auto pattern = copyPattern(built, costs, times, allPositions(built));
        QVERIFY(pattern.has_value());
        QCOMPARE(pattern->period, 3 * rankShare);
        QCOMPARE(pattern->microbatches, 1);
        for (int k = 1; k < 8; ++k) {
            // Where the earlier copies are: as the block repeats.
            SimResult now;
            now.offsets = {0};
            for (int r = 0; r < 4; ++r) {
                for (const Op& op : built.order[static_cast<std::size_t>(r)]) {
                    const Nanos block =
                        op.kind == OpKind::Forward ? r * rankShare : 4 * rankShare + 2 * (3 - r) * rankShare;
                    now.start.push_back(block + op.microbatch * 3 * rankShare);
                    now.end.push_back(now.start.back() + rankShare);
                }
                now.offsets.push_back(now.start.size());
            }
            const auto stamped = stampPattern(built, now, *pattern, k);
            QVERIFY2(stamped.has_value(), stamped ? "" : stamped.error().message.c_str());
            QCOMPARE(stamped->edited.positions.size(), std::size_t{8});
            built = stamped->edited.schedule;
        }
        QVERIFY(validate(built).valid());
        QCOMPARE(simulate(built, costs)->makespan, simulate(goal, costs)->makespan);
        const auto beyond = stampPattern(built, times, *pattern, 8);
        QVERIFY(!beyond.has_value());
        QVERIFY(beyond.error().message.find("microbatches are 0 to 7") != std::string::npos);
    }

    void cutAndPasteBackIsNothing()
    {
        for (const char* name : {"1f1b", "zb-h1", "interleaved-1f1b", "gpipe"}) {
            const Schedule schedule = make(name);
            const CostModel costs = CostModel::uniform(schedule);
            const SimResult times = timesOf(schedule, costs);
            const auto chosen = ofMicrobatch(schedule, 3);
            const auto pattern = copyPattern(schedule, costs, times, chosen);
            QVERIFY(pattern.has_value());
            const auto same = stampPattern(schedule, times, *pattern, 0);
            QVERIFY(same.has_value());
            QVERIFY2(same->edited.schedule == schedule, name);
        }
    }

    void microbatchesFollowThePattern()
    {
        const Schedule eight = make("1f1b");
        const CostModel costs = CostModel::uniform(eight);
        const auto twelve = withMicrobatches(eight, costs, 12);
        QVERIFY(twelve.has_value());
        QVERIFY(twelve->order == make("1f1b", 4, 12).order);
        // No longer in the library, yet its steady part repeats.
        Schedule own = eight;
        own = insertOps(own, 2, static_cast<int>(own.order[2].size()), {makeFiller(2, 1000)})->schedule;
        const auto more = withMicrobatches(own, costs, 11);
        QVERIFY2(more.has_value(), more ? "" : more.error().message.c_str());
        QVERIFY(validate(*more).valid());
        QCOMPARE(more->microbatches, 11);
        QCOMPARE(activationPeaks(*more, costs), activationPeaks(own, costs));
        QCOMPARE(more->order[1], make("1f1b", 4, 11).order[1]);
        const auto less = withMicrobatches(own, costs, 5);
        QVERIFY(less.has_value());
        QVERIFY(validate(*less).valid());
        QVERIFY(!withMicrobatches(own, costs, 0).has_value());
    }

    void gapsTakeWeightGradients()
    {
        // ZB-H1 with every W put to the end of its rank: gaps that W fit into.
        Schedule schedule = make("zb-h1");
        for (auto& row : schedule.order)
            std::stable_partition(row.begin(), row.end(), [](const Op& op) { return op.kind != OpKind::WeightGrad; });
        const CostModel costs = CostModel::uniform(schedule);
        SimResult times = timesOf(schedule, costs);
        const Nanos before = times.makespan;
        int filled = 0;
        for (int r = 0; r < 4; ++r)
            for (int i = 0; i < static_cast<int>(schedule.order[static_cast<std::size_t>(r)].size()); ++i) {
                const RowGap gap = gapBefore(times, r, i);
                if (!gap.valid()) continue;
                const auto done = fillGap(schedule, costs, times, gap);
                if (!done) {
                    QVERIFY(!done.error().message.empty());
                    continue;
                }
                ++filled;
                const SimResult after = timesOf(done->schedule, costs);
                QVERIFY(after.makespan <= times.makespan); // what fits delays nobody
                for (const OpPosition at : done->positions) {
                    const std::size_t id = after.indexOf(at.rank, static_cast<std::size_t>(at.position));
                    QVERIFY(after.start[id] >= gap.begin && after.end[id] <= gap.end);
                }
                schedule = done->schedule;
                times = after;
            }
        QVERIFY(filled > 3);
        QVERIFY(times.makespan < before);
        QVERIFY(validate(schedule).valid());
        QVERIFY(!fillGap(schedule, costs, times, RowGap{}).has_value());
    }

    // What an edit is timed by has the network cards: an op starts when its rank is free and its inputs have come over
    // them, and an order that can't run counts them, too.
    void editsCountNetworkCards()
    {
        const Schedule schedule = make("gpipe");
        CostModel costs = CostModel::uniform(schedule);
        for (StageMemory& memory : costs.memory) memory.boundary = 1'000'000;
        for (int rank = 0; rank < schedule.ranks; ++rank) costs.links.cards.hosts.push_back(rank % 2);
        costs.links.cards.link.bytesPerSecond = 1e8; // a message takes as long as a forward
        CostModel apart = costs;
        apart.links.cards.perHost = schedule.ranks;
        const auto moved = moveOps(schedule, {find(schedule, "0F2")}, 1);
        QVERIFY(moved.has_value());
        const Schedule& order = moved->schedule;
        const SimResult times = timesOf(order, costs);
        QVERIFY(times.makespan > timesOf(order, apart).makespan); // ranks of a host queue on the one card
        const std::vector<Nanos> arrivals = arrivalsOf(order, costs, times);
        for (int r = 0; r < order.ranks; ++r)
            for (std::size_t i = 0; i < order.order[static_cast<std::size_t>(r)].size(); ++i) {
                const std::size_t id = times.indexOf(r, i);
                QCOMPARE(times.start[id], std::max(arrivals[id], i > 0 ? times.end[id - 1] : 0));
            }
        Schedule broken = order; // a forward is missing
        std::erase(broken.order[1], makeForward(1, 0));
        QVERIFY(simulateRelaxed(broken, costs).makespan > simulateRelaxed(broken, apart).makespan);
    }

    void snappingNeverBreaksAndClosesDelays()
    {
        for (const char* name : {"1f1b", "zb-h1", "interleaved-1f1b", "zbv", "chimera", "gpipe"}) {
            const Schedule schedule = make(name);
            const CostModel costs = CostModel::uniform(schedule);
            const Schedule earliest = earliestOrder(schedule, costs);
            QVERIFY2(validate(earliest).valid(), name);
            QCOMPARE(sorted(earliest), sorted(schedule));
            // No op waits on an idle rank if its inputs are ready.
            const SimResult times = timesOf(earliest, costs);
            const std::vector<Nanos> arrivals = arrivalsOf(earliest, costs, times);
            for (int r = 0; r < earliest.ranks; ++r)
                for (std::size_t i = 0; i < earliest.order[static_cast<std::size_t>(r)].size(); ++i) {
                    const RowGap gap = gapBefore(times, r, static_cast<int>(i));
                    if (!gap.valid()) continue;
                    for (std::size_t k = i; k < earliest.order[static_cast<std::size_t>(r)].size(); ++k)
                        QVERIFY2(arrivals[times.indexOf(r, k)] >= gap.end || earliest.isPaired(r, k) ||
                                     (k > 0 && earliest.isPaired(r, k - 1)),
                                 name);
                }
        }
        // One op dragged late goes back to where it belongs.
        const Schedule schedule = make("1f1b");
        const CostModel costs = CostModel::uniform(schedule);
        const OpPosition at = find(schedule, "0F2");
        const auto late = moveOps(schedule, {at}, 1);
        QVERIFY(validate(late->schedule).valid());
        const auto back = snapToEarliest(late->schedule, costs, timesOf(late->schedule, costs), late->positions);
        QVERIFY(back->positions.front().position <= at.position);
        QVERIFY(validate(back->schedule).valid());
    }

    void refusalsNameTheOpAndTheNearestPlace()
    {
        const Schedule schedule = make("1f1b");
        int refused = 0;
        for (const OpPosition from : allPositions(schedule))
            for (int to = 0; to < static_cast<int>(schedule.order[static_cast<std::size_t>(from.rank)].size()); ++to) {
                const MoveRefusal why = explainMove(schedule, from, to);
                const bool valid = validate(moveOps(schedule, {from}, to - from.position)->schedule).valid();
                QCOMPARE(why.refused, !valid);
                if (valid) continue;
                ++refused;
                QVERIFY(!why.reason.empty() && !why.where.empty());
                QVERIFY(why.goThere >= 0);
                QVERIFY(validate(moveOps(schedule, {from}, why.goThere - from.position)->schedule).valid());
            }
        QVERIFY(refused > 100);
        const MoveRefusal why = explainMove(schedule, find(schedule, "0B1"), 0);
        QVERIFY2(why.sentence(*parseOp("0B1")).rfind("0B1 can't go there: it needs 1B1 of rank 1", 0) == 0,
                 why.sentence(*parseOp("0B1")).c_str());
    }

    void dependantsAreCarried()
    {
        for (const char* name : {"1f1b", "zb-h1", "interleaved-1f1b"}) {
            const Schedule schedule = make(name);
            for (const OpPosition from : allPositions(schedule, 1))
                for (int to = 0; to < static_cast<int>(schedule.order[1].size()); to += 3) {
                    const auto moved = moveCarrying(schedule, from, to);
                    QVERIFY(moved.has_value());
                    QCOMPARE(sorted(moved->schedule), sorted(schedule));
                    const Validation after = validate(moved->schedule);
                    QVERIFY2(
                        after.valid(),
                        qPrintable(QStringLiteral("%1, %2 to %3: %4")
                                       .arg(QLatin1String(name))
                                       .arg(from.position)
                                       .arg(to)
                                       .arg(after.valid() ? QString()
                                                          : QString::fromStdString(after.faults.front().message))));
                }
        }
    }

    void deltasAreExactAndSmall()
    {
        const Schedule a = make("dualpipe", 4, 8);
        const Schedule b = make("zb-h1", 6, 5);
        for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a), std::pair(a, a), std::pair(a, serialised(a)),
                                   std::pair(emptySchedule(2, 2, 2), b)}) {
            const ScheduleDelta delta(x, y);
            Schedule there = x;
            delta.redo(there);
            QVERIFY(there == y);
            QCOMPARE(there.name, y.name);
            delta.undo(there);
            QVERIFY(there == x);
            QCOMPARE(there.name, x.name);
        }
        const Schedule large = make("zb-h1", 16, 64);
        const auto moved = moveOps(large, {{3, 20}}, 4);
        QVERIFY(ScheduleDelta(large, moved->schedule).memoryUse() < 1000);
    }
    void everyBackwardIsSplitAlsoInPairs()
    {
        const Schedule s = *readScheduleCsv("0F0,(0F1;0B0)OVERLAP_F_B,0B1,0F2,0B2\n");
        const Schedule split = splitEveryBackward(s);
        QCOMPARE(QString::fromStdString(toText(split)).split('\n')[0],
                 QString("0F0 (0F1;0I0) 0W0 0I1 0W1 0F2 0I2 0W2"));
        QVERIFY(validate(split).valid());
        QCOMPARE(splitEveryBackward(split), split);
    }
};

QTEST_APPLESS_MAIN(TestEditOps)
#include "tst_edit_ops.moc"
