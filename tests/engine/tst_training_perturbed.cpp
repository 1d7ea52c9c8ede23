// Disturbances of real training, found again by the analysis: slow ranks, slow links, late launches, delayed
// recomputations.
#include <QTest>

#include "schedules/execute/jitter.h"
#include "schedules/model/recompute.h"
#include "traces/analysis/gap_explainer.h"
#include "traces/fit/fit_costs.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

constexpr Nanos unit = 300'000;

// One step after a cold one: every F, I, W and R burns the unit.
std::shared_ptr<const Timeline> trained(const Schedule& schedule, const char* disturbance)
{
    FakeOptions fake;
    fake.hook = [](OpKind kind, int, int) {
        if (kind != OpKind::Optimizer) burn(unit);
    };
    TrainingOptions options = fakeOptions(ClockMode::Virtual);
    const Perturbation perturbation = parsePerturbation(disturbance, schedule.ranks).value();
    options.perturbation = runPerturbation(perturbation, schedule.ranks, unit, 1);
    setLatency(perturbation, unit, options.links);
    auto training = fakeTraining(schedule, options, fake);
    if (!training) return nullptr;
    std::shared_ptr<const Timeline> timeline;
    for (int step = 0; step < 2; ++step) {
        auto outcome = (*training)->step({});
        if (!outcome) return nullptr;
        timeline = outcome->timeline;
    }
    return timeline;
}

// Analyses the measured step, and checks that its idle time sums.
BubbleReport analysed(const Timeline& timeline)
{
    const BubbleReport report = analyseBubbles(timeline, 1).value();
    Nanos idle = 0;
    for (const Nanos part : report.byCause) idle += part;
    if (idle != report.idle)
        qFatal("causes sum to %lld of %lld", static_cast<long long>(idle), static_cast<long long>(report.idle));
    return report;
}

Nanos of(const BubbleReport& report, IdleCause cause) { return report.byCause[static_cast<std::size_t>(cause)]; }

const Gap* largest(const BubbleReport& report, IdleCause cause)
{
    const Gap* found = nullptr;
    for (const Gap& gap : report.gaps)
        if (gap.cause == cause && (!found || gap.end - gap.start > found->end - found->start)) found = &gap;
    return found;
}

} // namespace

class TestTrainingPerturbed : public QObject {
    Q_OBJECT

private slots:
    void aSlowRank()
    {
        const auto timeline = trained(librarySchedule("gpipe", 3, 6), "rank=1:2");
        QVERIFY(timeline);
        const BubbleReport report = analysed(*timeline);
        QCOMPARE(stragglerRank(report), std::optional<int>(1));
        QVERIFY(report.ranks[1].busy > report.ranks[0].busy && report.ranks[1].busy > report.ranks[2].busy);
        const Gap* gap = largest(report, IdleCause::Imbalance);
        QVERIFY(gap);
        QCOMPARE(timeline->trackOf(gap->blamed).rank, 1);
        const GapExplanation explanation = GapExplainer(StepContext(*timeline, 1)).explain(*gap);
        QVERIFY(explanation.experiment && explanation.experiment->after < explanation.experiment->before);
    }

    void aSlowLink()
    {
        const auto timeline = trained(librarySchedule("gpipe", 3, 4), "link=0-1:3");
        QVERIFY(timeline);
        const BubbleReport report = analysed(*timeline);
        const Gap* gap = largest(report, IdleCause::Transfer);
        QVERIFY(gap);
        QCOMPARE(gap->rank, 0); // the first gradient; the first output is rank 1's warm-up
        QCOMPARE(timeline->trackOf(gap->blamed).rank, 1);
        const CostModel costs = fitCosts(*timeline, 1).value();
        QCOMPARE(costs.links.delay(0, 1, 0), 3 * unit);
        QCOMPARE(costs.links.delay(1, 2, 0), Nanos{0});
    }

    void lateLaunches()
    {
        const auto timeline = trained(librarySchedule("gpipe", 3, 4), "launch=2:0.5");
        QVERIFY(timeline);
        const BubbleReport report = analysed(*timeline);
        for (int rank = 0; rank < 2; ++rank)
            QCOMPARE(report.ranks[static_cast<std::size_t>(rank)].byCause[static_cast<std::size_t>(IdleCause::Launch)],
                     Nanos{0});
        QVERIFY(of(report, IdleCause::Launch) >= 5 * unit / 2); // of eight ops; the first is warm-up, and some hide
    }

    // The launch of an op is separate from the wait for its message.
    void lateLaunchesBehindMessages()
    {
        const auto timeline =
            trained(librarySchedule("1f1b", 4, 6), "launch=1:0.4,link=0-1:0.6,link=1-2:0.6,link=2-3:0.6");
        QVERIFY(timeline);
        const CostModel costs = fitCosts(*timeline, 1).value();
        QCOMPARE(costs.launch, (std::vector<Nanos>{0, 2 * unit / 5, 0, 0}));
    }

    // One rank, one step: the second of two.
    void aTransient()
    {
        std::vector<double> slow; // in the step, and in another one
        for (const char* transient : {"transient=1@2:3", "transient=1@1:3"}) {
            const auto timeline = trained(librarySchedule("gpipe", 3, 6), transient);
            QVERIFY(timeline);
            const BubbleReport report = analysed(*timeline);
            slow.push_back(static_cast<double>(report.ranks[1].busy) / static_cast<double>(report.ranks[0].busy));
        }
        QVERIFY2(slow[0] > slow[1], qPrintable(QStringLiteral("%1 and %2").arg(slow[0]).arg(slow[1])));
    }

    // The ops of the second step have the factors that the seed says, in both directions.
    void jitter()
    {
        const auto timeline = trained(librarySchedule("gpipe", 3, 8), "jitter=0.5");
        QVERIFY(timeline);
        std::vector<std::pair<double, Nanos>> ops; // the factor, and what the op took
        for (const Span& span : timeline->spans())
            if (span.step == 1 && span.op.kind == OpKind::Forward)
                ops.emplace_back(jitterFactor(0.5, 1, 1, span.op), span.duration());
        QCOMPARE(ops.size(), std::size_t{24});
        std::sort(ops.begin(), ops.end());
        const auto together = [&](std::size_t from) {
            Nanos sum = 0;
            for (std::size_t i = from; i < from + 8; ++i) sum += ops[i].second;
            return sum;
        };
        QVERIFY(ops.front().first < 1 && ops.back().first > 1);
        QVERIFY(together(0) < together(16)); // an order, that a busy machine keeps
    }

    void heldBackRecomputations()
    {
        const Schedule plain = librarySchedule("1f1b", 3, 6);
        const auto timeline = trained(withRecompute(plain, {true, true, false}), "");
        QVERIFY(timeline);
        const BubbleReport report = analysed(*timeline);
        const Gap* gap = largest(report, IdleCause::RecomputeWait);
        QVERIFY(gap);
        QCOMPARE(timeline->spans()[gap->next].op.kind, OpKind::Recompute);
        const auto hoisted = trained(withRecompute(plain, {true, true, false}, true), "");
        QVERIFY(hoisted);
        QVERIFY(of(analysed(*hoisted), IdleCause::RecomputeWait) < of(report, IdleCause::RecomputeWait));
    }

    // On the wall clock, too: the delay lies before the op, the slowness within it.
    void onTheWallClock()
    {
        FakeOptions fake;
        fake.hook = [](OpKind kind, int, int) {
            if (kind != OpKind::Optimizer) burn(unit);
        };
        TrainingOptions options = fakeOptions(ClockMode::Wall);
        options.perturbation = runPerturbation(parsePerturbation("rank=0:3,launch=0:2", 1).value(), 1, unit, 1);
        auto training = fakeTraining(librarySchedule("gpipe", 1, 3), options, fake);
        QVERIFY(training.has_value());
        const auto outcome = (*training)->step({});
        QVERIFY(outcome.has_value());
        const BubbleReport report = analyseBubbles(*outcome->timeline, 0).value();
        QVERIFY(of(report, IdleCause::Launch) >= 5 * 2 * unit);
        QVERIFY(report.busy >= 9 * 3 * unit); // 3 F, and 3 B of two units each
    }
};

QTEST_GUILESS_MAIN(TestTrainingPerturbed)
#include "tst_training_perturbed.moc"
