// A step's plan: what runs it gives the same times, and lists stop where they stop whoever runs them.
#include <QTest>

#include <algorithm>
#include <random>

#include "random_schedules.h"
#include "schedules/model/shard_rules.h"
#include "schedules/step/plain_run.h"
#include "schedules/step/step_arrivals.h"
#include "schedules/step/step_deadlock.h"
#include "schedules/step/step_run.h"

using namespace stagewright;

namespace {

// Lists of any shape with what rules add to them: recomputation, halves, counts, slices, optimizers, gathers, reductions;
// sometimes two ops change places, so that they may not end.
Schedule anyLists(unsigned seed)
{
    std::mt19937 random(seed);
    Schedule out = test::randomSchedule(seed, random() % 2 == 0, random() % 2 == 0);
    if (const unsigned variation = random() % 8; variation < 5)
        out = test::varied(out, static_cast<test::Variation>(variation), seed);
    if (random() % 3 == 0) {
        const ShardRules rules{random() % 2 == 0 ? GatherRule::Batch : GatherRule::Microbatch, 0,
                               static_cast<ReduceRule>(random() % 4)};
        if (auto sharded = addShardOps(out, static_cast<ShardLevel>(random() % 4), rules)) out = std::move(*sharded);
    }
    if (random() % 4 == 0) {
        auto& row = out.order[random() % out.order.size()];
        if (row.size() > 1) std::swap(row[random() % row.size()], row[random() % row.size()]);
    }
    return out;
}

struct AnyRules {
    explicit AnyRules(const Schedule& schedule, unsigned seed)
    {
        std::mt19937 random(seed + 1);
        for (std::size_t i = 0; i < schedule.opCount(); ++i) durations.push_back(test::pick(random, 0, 1000));
        for (int stage = 0; stage < schedule.stages; ++stage) {
            boundary.push_back(test::pick(random, 0, 5000));
            buckets.push_back(test::pick(random, 1, 4));
        }
        rules.links.all = {test::pick(random, 0, 200), random() % 2 == 0 ? 1e10 : 0};
        rules.links.overrides[{0, schedule.ranks - 1}] = {test::pick(random, 0, 999), 0};
        rules.links.collectives = static_cast<ResourceUse>(random() % 3);
        rules.channels.apart = random() % 4 == 0;
        rules.boundary = boundary;
        if (random() % 2 == 0) rules.gradientBuckets = buckets;
    }
    std::vector<Nanos> durations;
    std::vector<Bytes> boundary;
    std::vector<int> buckets;
    StepRules rules;
};

} // namespace

class TestStep : public QObject {
    Q_OBJECT
private slots:
    // 10,000 cases: where both can run lists, both give every op the same times or stop at the same ops.
    void plainRunsEqualThePlans()
    {
        int compared = 0, beside = 0, shared = 0, stopped = 0;
        for (unsigned seed = 0; compared < 10'000; ++seed) {
            const Schedule lists = anyLists(seed);
            const AnyRules any(lists, seed);
            const auto cells = cellsOf(lists);
            if (!cells || !PlainRun::serves(lists, *cells, any.rules)) continue;
            ++compared;
            const OpIndex index(lists, *cells);
            const StepPlan plan(lists, index, any.rules);
            StepRun planned(plan, any.durations);
            PlainRun plain(lists, *cells, any.rules, any.durations);
            const std::string what = "seed " + std::to_string(seed);
            QVERIFY2(plain.run() == planned.run(), what.c_str());
            stopped += plain.waitingRank() >= 0 ? 1 : 0;
            beside += plain.collectivesBeside() ? 1 : 0;
            shared += plan.flights().empty() ? 0 : 1;
            std::size_t ran = 0;
            for (const std::size_t head : plain.heads()) ran += head;
            QVERIFY2(planned.done() == ran, what.c_str());
            QVERIFY2(std::ranges::equal(plain.clocks(), planned.clocks()), what.c_str());
            const std::vector<std::size_t> heads(plain.heads().begin(), plain.heads().end());
            PlainRun untimed(lists, *cells, any.rules);
            untimed.run();
            QVERIFY2(std::ranges::equal(untimed.heads(), heads), what.c_str());
            const SimResult one = plain.take();
            const SimResult other = planned.take();
            for (std::size_t r = 0; r < heads.size(); ++r)
                for (std::size_t id = one.offsets[r]; id < one.offsets[r] + heads[r]; ++id)
                    QVERIFY2(one.start[id] == other.start[id] && one.end[id] == other.end[id],
                             (what + ", op " + std::to_string(id)).c_str());
        }
        QVERIFY(beside > 500 && shared > 500 && stopped > 500); // all of them were met
    }

    // Forced ops start without what is missing; both force the same ones.
    void forcedRunsEqualToo()
    {
        int forced = 0;
        for (unsigned seed = 0; seed < 2'000; ++seed) {
            const Schedule lists = anyLists(seed);
            const AnyRules any(lists, seed);
            const auto cells = cellsOf(lists);
            if (!cells || !PlainRun::serves(lists, *cells, any.rules)) continue;
            const OpIndex index(lists, *cells);
            const StepPlan plan(lists, index, any.rules);
            StepRun planned(plan, any.durations);
            QVERIFY(planned.run(PlacePolicy::Relaxed));
            PlainRun plain(lists, *cells, any.rules, any.durations);
            for (bool ended = plain.run(); !ended; ended = plain.runForcing(plain.waitingRank())) ++forced;
            const SimResult one = plain.take();
            const SimResult other = planned.take();
            QVERIFY2(one.start == other.start && one.end == other.end, std::to_string(seed).c_str());
        }
        QVERIFY(forced > 100);
    }

    // An op starts once its rank is free and all that it needs is there: of lists that end, nothing else delays it.
    void arrivalsAreWhatOpsWaitFor()
    {
        int waits = 0;
        for (unsigned seed = 0; seed < 1'000; ++seed) {
            const Schedule lists = test::randomSchedule(seed);
            AnyRules any(lists, seed);
            any.rules.links.collectives = ResourceUse::Compute;
            const auto cells = cellsOf(lists);
            QVERIFY(cells);
            if (!PlainRun::serves(lists, *cells, any.rules)) continue;
            const OpIndex index(lists, *cells);
            PlainRun plain(lists, *cells, any.rules, any.durations);
            QVERIFY(plain.run());
            const SimResult times = plain.take();
            const StepArrivals arrivals(lists, index, any.rules, times.end);
            for (int r = 0; r < lists.ranks; ++r)
                for (std::size_t i = 0; i < lists.order[static_cast<std::size_t>(r)].size(); ++i) {
                    const std::uint32_t id = index.idOf(r, i);
                    if (lists.isPaired(r, i) || (i > 0 && lists.isPaired(r, i - 1))) continue;
                    Nanos could = i == 0 ? 0 : times.end[id - 1];
                    arrivals.eachInput(r, i, [&](std::uint32_t, const Need&, const StepArrivals::Way& way) {
                        waits += way.arrival > could ? 1 : 0;
                        could = std::max(could, way.arrival);
                    });
                    QCOMPARE(times.start[id], could);
                }
        }
        QVERIFY(waits > 1'000);
    }

    // A cycle is found where lists stop for each other, and each of its waits is for an op that has not run.
    void cyclesAreOfOpsThatWait()
    {
        int found = 0;
        for (unsigned seed = 0; seed < 2'000; ++seed) {
            const Schedule lists = anyLists(seed);
            const auto cells = cellsOf(lists);
            if (!cells) continue;
            const OpIndex index(lists, *cells);
            const std::vector<Wait> cycle = findDeadlock(lists, index);
            for (std::size_t i = 0; i < cycle.size(); ++i) {
                QCOMPARE(cycle[(i + 1) % cycle.size()].rank, cycle[i].onRank);
                QVERIFY(cycle[i].onPosition >= cycle[(i + 1) % cycle.size()].position);
            }
            found += cycle.empty() ? 0 : 1;
        }
        QVERIFY(found > 50);
    }
};

QTEST_GUILESS_MAIN(TestStep)
#include "tst_step.moc"
