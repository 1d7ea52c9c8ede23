// Bubbles, memory, overlap, critical path: hand-counted examples, and the sums that must come out exact on any
// timeline.
#include <QtTest/QtTest>

#include "sample_runs.h"
#include "schedules/base/quantity.h"
#include "traces/analysis/bubbles.h"
#include "traces/analysis/critical_path.h"
#include "traces/analysis/explain_gap.h"
#include "traces/analysis/memory.h"
#include "traces/analysis/step_context.h"

using namespace stagewright;

namespace {

constexpr Nanos unit = rankShare;

Nanos of(const IdleByCause& byCause, IdleCause cause) { return byCause[static_cast<std::size_t>(cause)]; }

Nanos sum(const IdleByCause& byCause)
{
    Nanos total = 0;
    for (const Nanos part : byCause) total += part;
    return total;
}

std::string name(const Timeline& timeline, SpanId id) { return timeline.nameOf(timeline.spans()[id]); }

// One rank, ops at given times, to test causes.
class Bench {
public:
    explicit Bench(int ranks) : m_builder(Provenance::Measured, "wall", ranks) {}

    SpanId add(int rank, Op op, Nanos start, Nanos end, Nanos cpu = -1)
    {
        Span span;
        span.op = op;
        span.start = start;
        span.end = end;
        return m_builder.addSpan(m_builder.addTrack(rank, Lane::Compute), span, cpu);
    }
    void edge(SpanId from, SpanId to, Nanos arrival) { m_builder.addEdge(from, to, EdgeKind::Data, arrival); }
    void memory(int rank, Nanos time, Bytes delta, int stage, int microbatch,
                MemoryCategory category = MemoryCategory::Activations, int step = 0)
    {
        MemoryEvent event;
        event.rank = static_cast<std::uint16_t>(rank);
        event.time = time;
        event.delta = delta;
        event.stage = static_cast<std::uint16_t>(stage);
        event.microbatch = microbatch;
        event.category = category;
        event.step = step;
        m_builder.addMemory(event);
    }
    std::shared_ptr<const Timeline> timeline() { return m_builder.build().value(); }

private:
    TimelineBuilder m_builder;
};

Op op(const char* text) { return parseOp(text).value(); }

} // namespace

class TestAnalysis : public QObject {
    Q_OBJECT

private slots:
    // The worked example of docs/numbers.md: 1F1B, p=2, m=2, F=1, B=2.
    void oneFOneBOnTwoRanks()
    {
        const auto timeline = samples::simulated("1f1b", 2, 2);
        const auto report = analyseBubbles(*timeline, 0).value();
        QCOMPARE(report.makespan(), 9 * unit);
        QCOMPARE(report.span, 9 * unit);
        QCOMPARE(report.busy, 12 * unit);
        QCOMPARE(report.idle, 6 * unit);
        QCOMPARE(report.bubbleFraction, 6.0 / 18.0);
        QCOMPARE(report.bubbleRateSpan, 1 - 6.0 / 9.0);
        QCOMPARE(of(report.byCause, IdleCause::Warmup), 1 * unit);
        QCOMPARE(of(report.byCause, IdleCause::Drain), 2 * unit);
        QCOMPARE(of(report.byCause, IdleCause::Dependency), 3 * unit);
        QCOMPARE(sum(report.byCause), report.idle);
        QCOMPARE(report.gaps.size(), std::size_t{4});
        QCOMPARE(report.gaps[0].start, 2 * unit); // rank 0 before 0B0
        QCOMPARE(report.gaps[0].end, 4 * unit);
        QCOMPARE(name(*timeline, report.gaps[0].next), std::string("0B0"));
        QCOMPARE(name(*timeline, report.gaps[0].blamed), std::string("1B0"));
        QCOMPARE(QString::fromStdString(explainGap(*timeline, report.gaps[0])),
                 QString("rank 0 waits 2 units before 0B0: 1B0 on rank 1 ends at 4 units"));
        QCOMPARE(report.ranks[1].byCause[static_cast<std::size_t>(IdleCause::Drain)], 2 * unit);
        QCOMPARE(report.ranks[0].busyByKind[static_cast<std::size_t>(OpKind::Backward)], 4 * unit);
        QStringList path;
        for (const CriticalLink& link : criticalPath(StepOps(*timeline, 0)))
            path << QString::fromStdString(name(*timeline, link.span));
        QCOMPARE(path.join(' '), QString("0F0 1F0 1B0 1F1 1B1 0B1"));
        QCOMPARE(peakByRank(*timeline, 0), (std::vector<Bytes>{2 * activationShare, activationShare}));
    }

    void transfersAreTold()
    {
        const auto timeline = samples::simulated("1f1b", 2, 2, 0.25);
        const auto report = analyseBubbles(*timeline, 0).value();
        // before 0B0 and 0B1
        QCOMPARE(report.ranks[0].byCause[static_cast<std::size_t>(IdleCause::Transfer)], unit / 2);
        QCOMPARE(sum(report.byCause), report.idle);
        const OverlapReport overlap = StepContext(*timeline, 0).overlap();
        QCOMPARE(overlap.messages, 4); // two outputs, two gradients
        QCOMPARE(overlap.commTime, unit);
        QCOMPARE(overlap.hiddenTime + overlap.exposedTime, overlap.commTime);
        // hidden: the output of microbatch 1, which arrives while rank 1 works on 1F0 and 1B0
        QCOMPARE(overlap.hiddenTime, unit / 4);
        QCOMPARE(overlap.exposedByRank[0], unit / 2);
        QCOMPARE(overlap.exposedByRank[1], unit / 4);
    }

    void anotherOpThatWasReadyIsOrder()
    {
        // rank 0 waits for 0B0 from 2 to 6; 0F2 could have run all the time; 0W… would have been ready at 4
        Bench bench(2);
        const SpanId f0 = bench.add(0, op("0F0"), 0, 1);
        bench.add(0, op("0F1"), 1, 2);
        const SpanId b0 = bench.add(0, op("0B0"), 6, 8);
        bench.add(0, op("0F2"), 8, 9);
        const SpanId far = bench.add(1, op("1F0"), 1, 3);
        const SpanId back = bench.add(1, op("1B0"), 3, 5);
        bench.edge(f0, far, 1);
        bench.edge(back, b0, 6);
        const auto timeline = bench.timeline();
        const auto report = analyseBubbles(*timeline, 0).value();
        QCOMPARE(of(report.ranks[0].byCause, IdleCause::Order), 4);
        QVERIFY(report.gaps[0].hasReadyOp);
        QCOMPARE(report.gaps[0].readyOp, op("0F2"));
        QVERIFY(explainGap(*timeline, report.gaps[0]).find("0F2 could run") != std::string::npos);
    }

    void orderBeginsWhenTheOtherOpIsReady()
    {
        // rank 1: 1I0 ends at 3; the idle time before 1F1 (arrives 9, produced 8) goes from 3 to 10; 1W0 comes later
        // and is ready at 3; 1I1 and 1W1 are not.  Without 1W0 the gap is dependency, transfer, launch.
        const auto build = [](bool withWeightGradient) {
            Bench bench(2);
            const SpanId far = bench.add(0, op("0F1"), 5, 8);
            bench.add(1, op("1F0"), 0, 1);
            bench.add(1, op("1I0"), 1, 3);
            const SpanId late = bench.add(1, op("1F1"), 10, 11);
            bench.add(1, op("1I1"), 11, 12);
            if (withWeightGradient) bench.add(1, op("1W0"), 12, 13);
            bench.add(1, op("1W1"), 13, 14);
            bench.edge(far, late, 9);
            return bench.timeline();
        };
        const auto without = analyseBubbles(*build(false), 0).value().ranks[1];
        QCOMPARE(of(without.byCause, IdleCause::Dependency), 3);
        QCOMPARE(of(without.byCause, IdleCause::Imbalance), 2); // 0F1 takes 3, 1F1 takes 1
        QCOMPARE(of(without.byCause, IdleCause::Transfer), 1);
        QCOMPARE(of(without.byCause, IdleCause::Launch), 1 + 1); // before 1F1, and before 1W1
        const auto with = analyseBubbles(*build(true), 0).value().ranks[1];
        QCOMPARE(of(with.byCause, IdleCause::Order), 6);
        QCOMPARE(of(with.byCause, IdleCause::Launch), 1);
    }

    void aMemoryCapTurnsOrderIntoMemory()
    {
        const auto waiting = [] {
            Bench b(2);
            b.add(0, op("0F0"), 0, 1);
            const SpanId back = b.add(0, op("0B0"), 5, 6);
            b.add(0, op("0F1"), 6, 7);
            b.add(1, op("1F0"), 1, 2);
            const SpanId producer = b.add(1, op("1B0"), 2, 5);
            b.edge(producer, back, 5);
            b.memory(0, 1, 100, 0, 0);
            b.memory(0, 6, -100, 0, 0);
            b.memory(0, 7, 100, 0, 1);
            return b.timeline();
        }();
        BubbleOptions options;
        QCOMPARE(of(analyseBubbles(*waiting, 0, options).value().ranks[0].byCause, IdleCause::Order), 4);
        options.memoryCap = 199;
        const auto capped = analyseBubbles(*waiting, 0, options).value();
        QCOMPARE(of(capped.ranks[0].byCause, IdleCause::Memory), 4);
        QVERIFY(explainGap(*waiting, capped.gaps[0]).find("memory cap") != std::string::npos);
        options.memoryCap = 200;
        QCOMPARE(of(analyseBubbles(*waiting, 0, options).value().ranks[0].byCause, IdleCause::Order), 4);
    }

    void delaysAreOrder()
    {
        Schedule schedule = samples::schedule("1f1b", 2, 2);
        schedule.order[0].insert(schedule.order[0].begin() + 1, makeFiller(0, 5'000'000));
        const auto timeline = simulatedTimeline(schedule, samples::unitCosts(schedule)).value();
        const auto report = analyseBubbles(*timeline, 0).value();
        QCOMPARE(of(report.ranks[0].byCause, IdleCause::Order), 5'000'000);
        QCOMPARE(sum(report.byCause), report.idle);
        QCOMPARE(report.idle, 2 * report.makespan() - report.busy);
        QVERIFY(explainGap(*timeline, report.gaps[0]).find("delay") != std::string::npos);
    }

    void optimizerTimeIsApart()
    {
        Bench bench(2);
        bench.add(0, op("0F0"), 0, 10);
        bench.add(0, op("0OPT"), 10, 30);
        bench.add(1, op("1F0"), 10, 40);
        bench.add(1, op("1OPT"), 40, 90); // beyond the window
        const auto report = analyseBubbles(*bench.timeline(), 0).value();
        QCOMPARE(report.makespan(), 40);
        QCOMPARE(report.ranks[0].apart, 20);
        QCOMPARE(report.ranks[1].apart, 0);
        QCOMPARE(report.idle, 10 + 10);
        QCOMPARE(of(report.byCause, IdleCause::Drain), 10);
        QCOMPARE(of(report.byCause, IdleCause::Warmup), 10);
    }

    void contentionIsTimeOffTheProcessor()
    {
        Bench bench(1);
        bench.add(0, op("0F0"), 0, 100, 70);
        bench.add(0, op("0B0"), 100, 200, 120); // more CPU than wall time: a clock's grain
        bench.add(0, op("0F1"), 200, 300);      // unknown
        const auto report = analyseBubbles(*bench.timeline(), 0).value();
        QCOMPARE(report.ranks[0].contention, 30);
        QCOMPARE(report.ranks[0].busy, 300);
    }

    void anOverlappedPairCountsOnce()
    {
        Bench bench(1);
        bench.add(0, op("0F1"), 0, 30);
        bench.add(0, op("1B0"), 0, 30);
        const auto report = analyseBubbles(*bench.timeline(), 0).value();
        QCOMPARE(report.busy, 30);
        QCOMPARE(report.ranks[0].busyByKind[static_cast<std::size_t>(OpKind::Forward)], 15);
        QCOMPARE(report.ranks[0].busyByKind[static_cast<std::size_t>(OpKind::Backward)], 15);
    }

    // Without edges the needs of the kinds say who waited for whom.
    void importedWorkWithoutEdgesIsExplained()
    {
        Bench bench(2);
        bench.add(0, op("0F0"), 0, 10);
        bench.add(1, op("1F0"), 10, 20);
        bench.add(1, op("1B0"), 20, 40);
        bench.add(0, op("0B0"), 45, 60);
        const auto timeline = bench.timeline();
        const auto report = analyseBubbles(*timeline, 0).value();
        QCOMPARE(of(report.ranks[0].byCause, IdleCause::Dependency), 28);
        QCOMPARE(of(report.ranks[0].byCause, IdleCause::Imbalance), 2); // 1B0 takes 20, the mean is 18
        QCOMPARE(of(report.ranks[0].byCause, IdleCause::Launch), 5);
        QCOMPARE(name(*timeline, report.gaps[0].blamed), std::string("1B0"));
    }

    void sumsAreExact_data()
    {
        QTest::addColumn<std::shared_ptr<const Timeline>>("timeline");
        for (const char* kind : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1"})
            for (const double latency : {0.0, 0.25, 3.0})
                QTest::addRow("%s %g", kind, latency) << samples::simulated(kind, 4, 8, latency);
        for (std::uint32_t seed = 0; seed < 12; ++seed)
            QTest::addRow("random %u", seed) << samples::randomTimeline(seed, 3, 3, 400);
        QTest::addRow("empty") << TimelineBuilder(Provenance::Imported, "", 2).build().value();
    }

    void sumsAreExact()
    {
        QFETCH(std::shared_ptr<const Timeline>, timeline);
        for (int step = 0; step <= timeline->steps(); ++step) { // the last does not exist
            const auto report = analyseBubbles(*timeline, step).value();
            Nanos busy = 0;
            Nanos apart = 0;
            for (std::size_t r = 0; r < report.ranks.size(); ++r) {
                const RankBubbles& rank = report.ranks[r];
                QCOMPARE(sum(rank.byCause), rank.idle);
                QCOMPARE(rank.busy + rank.apart + rank.idle, report.makespan());
                Nanos kinds = 0;
                for (const Nanos part : rank.busyByKind) kinds += part;
                QCOMPARE(kinds, rank.busy);
                busy += rank.busy;
                apart += rank.apart;
            }
            QCOMPARE(sum(report.byCause), report.idle);
            QCOMPARE(report.idle, timeline->ranks() * report.makespan() - busy - apart);
            Nanos byGaps = 0;
            const Gap* before = nullptr;
            for (const Gap& gap : report.gaps) {
                QVERIFY(gap.end > gap.start);
                if (before != nullptr && before->rank == gap.rank) QVERIFY(before->end <= gap.start);
                byGaps += gap.end - gap.start;
                QVERIFY(!explainGap(*timeline, gap).empty());
                before = &gap;
            }
            QCOMPARE(byGaps, report.idle);

            const auto path = criticalPath(StepOps(*timeline, step));
            Nanos covered = 0;
            for (const CriticalLink& link : path) {
                QVERIFY(link.waitBefore >= 0);
                covered += link.waitBefore + timeline->spans()[link.span].duration();
            }
            QCOMPARE(covered, report.makespan());
            const OverlapReport overlap = StepContext(*timeline, step).overlap();
            QVERIFY(overlap.hiddenTime >= 0 && overlap.exposedTime >= 0);
            QCOMPARE(overlap.hiddenTime + overlap.exposedTime, overlap.commTime);
        }
    }

    void theCriticalPathCrossesRanks()
    {
        const auto timeline = samples::simulated("1f1b", 4, 4, 0.25);
        const auto path = criticalPath(StepOps(*timeline, 0));
        QStringList names;
        int crossings = 0;
        for (const CriticalLink& link : path) {
            names << QString::fromStdString(name(*timeline, link.span));
            crossings += link.crossesRank ? 1 : 0;
            if (link.crossesRank) QCOMPARE(link.waitBefore, unit / 4);
        }
        QCOMPARE(names.first(), QString("0F0"));
        QCOMPARE(names.last(), QString("0B3"));
        QVERIFY(names.contains("3B0"));
        QVERIFY(crossings >= 6);
    }

    void memoryIsSampledAfterAllChangesAtATime()
    {
        Bench bench(1);
        bench.add(0, op("0F0"), 0, 10);
        bench.memory(0, 10, 100, 0, 0);
        bench.memory(0, 10, -30, 0, 0);
        bench.memory(0, 20, 50, 1, 1);
        bench.memory(0, 20, 7, 0, -1, MemoryCategory::Weights);
        bench.memory(0, 30, -120, 1, 1);
        const auto timeline = bench.timeline();
        const auto series = memorySeries(*timeline, 0);
        QCOMPARE(series.points.size(), std::size_t{3});
        QCOMPARE(series.points[0].inUse, 70);
        QCOMPARE(series.peak, 120);
        QCOMPARE(series.peakTime, 20);
        const auto holders = holdersAt(*timeline, 0, 20);
        QCOMPARE(holders.size(), std::size_t{2});
        QCOMPARE(holders[0].bytes, 70);
        QCOMPARE(holders[1].stage, 1);
        QVERIFY(holdersAt(*timeline, 0, 9).empty());
        QVERIFY(memorySeries(*timeline, 5).points.empty());
    }

    void aStepCarriesWhatEarlierOnesHold()
    {
        TimelineBuilder builder(Provenance::Measured, "wall", 1);
        const int track = builder.addTrack(0, Lane::Compute);
        for (int step = 0; step < 2; ++step) {
            Span span;
            span.op = op("0F0");
            span.step = step;
            span.start = step * 100;
            span.end = span.start + 10;
            builder.addSpan(track, span);
        }
        const auto event = [&](Nanos time, Bytes delta, int step, MemoryCategory category) {
            MemoryEvent e;
            e.time = time;
            e.delta = delta;
            e.step = step;
            e.category = category;
            builder.addMemory(e);
        };
        event(0, 1000, 0, MemoryCategory::Weights);
        event(5, 40, 0, MemoryCategory::Activations);
        event(105, -40, 1, MemoryCategory::Activations);
        const auto timeline = builder.build().value();
        QCOMPARE(peakByRank(*timeline, 1, MemoryCategory::Weights), std::vector<Bytes>{1000});
        const auto carried = memorySeries(*timeline, 0, 1);
        QCOMPARE(carried.points.size(), std::size_t{2});
        QCOMPARE(carried.points[0].time, 100);
        QCOMPARE(carried.points[0].inUse, 40);
        QCOMPARE(carried.points[1].inUse, 0);
        QCOMPARE(carried.peak, 40);
    }

    void peaksOfSchedulesAreThoseOfTheSimulator_data()
    {
        QTest::addColumn<QString>("schedule");
        for (const char* kind : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1"}) QTest::addRow("%s", kind) << kind;
    }

    void peaksOfSchedulesAreThoseOfTheSimulator()
    {
        QFETCH(QString, schedule);
        const Schedule s = samples::schedule(schedule.toStdString(), 4, 8);
        const CostModel costs = samples::unitCosts(s);
        const auto result = simulate(s, costs).value();
        const auto timeline = timelineOf(s, result, costs).value();
        QCOMPARE(peakByRank(*timeline, 0), result.peakActivation);
        QCOMPARE(analyseBubbles(*timeline, 0).value().makespan(), result.makespan);
        QCOMPARE(analyseBubbles(*timeline, 0).value().span, result.span);
    }

    void quantities()
    {
        QCOMPARE(formatDuration(840), std::string("840 ns"));
        QCOMPARE(formatDuration(3140), std::string("3.14 µs"));
        QCOMPARE(formatDuration(12'400'000), std::string("12.4 ms"));
        QCOMPARE(formatDuration(-12'400'000), std::string("−12.4 ms"));
        QCOMPARE(formatDuration(999'960), std::string("1.00 ms"));
        QCOMPARE(formatDuration(1'250'000'000), std::string("1.25 s"));
        QCOMPARE(formatDuration(27 * unit, unit), std::string("27 units"));
        QCOMPARE(formatDuration(unit / 4, unit), std::string("0.25 units"));
        QCOMPARE(formatDuration(-unit / 3, unit), std::string("−0.333 units"));
        QCOMPARE(formatDuration(0, unit), std::string("0 units"));
        QCOMPARE(formatBytes(512), std::string("512 B"));
        QCOMPARE(formatBytes(1536 * 1024), std::string("1.50 MiB"));
        QCOMPARE(formatBytes(-(Bytes{20} << 30)), std::string("−20.0 GiB"));
        QCOMPARE(formatBytes(4 * activationShare, activationShare), std::string("4 microbatches"));
        QCOMPARE(formatDuration(unit, unit), std::string("1 unit"));
        QCOMPARE(formatDuration(0), std::string("0 ns"));
        QCOMPARE(formatDuration(253'000, 1, TimeUnit::Milliseconds), std::string("0.253 ms"));
        QCOMPARE(formatBytes(0), std::string("0 B"));
        QCOMPARE(formatBytes(Bytes{150} << 20), std::string("150.0 MiB"));
        QCOMPARE(formatBytes(Bytes{3} << 40), std::string("3.00 TiB"));
        QCOMPARE(formatBytes(activationShare, activationShare), std::string("1 microbatch"));
        QCOMPARE(shortNumber(1.625), std::string("1.625"));
        QCOMPARE(shortNumber(-0.0001), std::string("0"));
        QCOMPARE(fixedNumber(-1.5, 2), std::string("−1.50"));
        QCOMPARE(formatChange(0.041), std::string("+4.1 %"));
        QCOMPARE(formatChange(11), std::string("× 12"));
        QCOMPARE(formatPercent(0.16667), std::string("16.7 %"));
        QCOMPARE(formatPercent(-0.0001), std::string("0.0 %"));
        QCOMPARE(formatPercent(std::numeric_limits<double>::quiet_NaN()), std::string("–"));
    }
};

QTEST_APPLESS_MAIN(TestAnalysis)
#include "tst_analysis.moc"
