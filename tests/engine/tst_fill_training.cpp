// Factors and inversions of K-FAC as ops of the lists: a filled cycle against one with the same work at the ends of the
// same steps, bit for bit; what is of the cycle before; what is refused.
#include <QTest>

#include <algorithm>

#include "schedules/plan/fill_plan.h"
#include "schedules/timeline/timeline_of.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

TrainingOptions kfacOptions(ClockMode clock)
{
    TrainingOptions options = fakeOptions(clock);
    options.backend = "cpu";
    options.optimizer.kind = OptimizerKind::Kfac;
    options.optimizer.learningRate = 0.05;
    return options;
}

CostModel costsOf(const Schedule& schedule, double factor, double inversion, int pieces)
{
    CostModel costs = CostModel::uniform(schedule);
    const auto nanos = [&](double share) {
        return static_cast<Nanos>(share * static_cast<double>(costs.timeUnit) * schedule.ranks / schedule.stages);
    };
    for (int stage = 0; stage < schedule.stages; ++stage) {
        costs.setDuration(OpKind::FactorA, stage, nanos(factor));
        costs.setDuration(OpKind::FactorG, stage, nanos(factor));
        costs.setDuration(OpKind::Invert, stage, nanos(inversion / pieces));
    }
    return costs;
}

Result<std::vector<std::shared_ptr<const CheckedSchedule>>> cycleOf(const Schedule& schedule, const CostModel& costs,
                                                                    const FillRule& rule)
{
    STAGEWRIGHT_TRY(FilledCycle filled, fillSchedule(schedule, costs, rule));
    std::vector<std::shared_ptr<const CheckedSchedule>> out;
    for (Schedule& one : filled.schedules) {
        STAGEWRIGHT_TRY(auto checked, CheckedSchedule::of(std::move(one)));
        out.push_back(std::move(checked));
    }
    return out;
}

struct Trained {
    std::vector<double> losses;
    std::vector<std::vector<std::vector<float>>> weights; // by step and stage
};

Result<Trained> trainedBy(TrainingOptions options, std::vector<std::shared_ptr<const CheckedSchedule>> cycle, int steps)
{
    options.cycle = std::move(cycle);
    STAGEWRIGHT_TRY(auto training, Training::create(options.cycle.front(), options));
    Trained out;
    for (int step = 0; step < steps; ++step) {
        STAGEWRIGHT_TRY(const auto outcome, training->step({}));
        out.losses.push_back(outcome.loss);
        const Schedule& listed = options.cycle[static_cast<std::size_t>(step) % options.cycle.size()]->compute();
        STAGEWRIGHT_TRY(const Schedule ran, scheduleOf(*outcome.timeline, step));
        if (!(ran == listed)) return fail(ErrorCode::Failed, "a step did not run its schedule");
        auto& all = out.weights.emplace_back();
        for (int stage = 0; stage < listed.stages; ++stage) {
            auto& flat = all.emplace_back();
            for (const ParameterView& view : training->parameters(stage))
                flat.insert(flat.end(), view.value.begin(), view.value.end());
        }
    }
    return out;
}

QString faultOf(const TrainingOptions& options, std::vector<std::shared_ptr<const CheckedSchedule>> cycle)
{
    TrainingOptions own = options;
    own.cycle = std::move(cycle);
    const auto training = Training::create(own.cycle.front(), own);
    return QString::fromStdString(training ? "" : training.error().message);
}

std::shared_ptr<const CheckedSchedule> listed(std::vector<std::vector<const char*>> ranks)
{
    Schedule schedule = librarySchedule("gpipe", static_cast<int>(ranks.size()), 2);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
        schedule.order[r].clear();
        for (const char* op : ranks[r]) schedule.order[r].push_back(parseOp(op).value());
    }
    return CheckedSchedule::of(schedule).value();
}

} // namespace

class TestFillTraining : public QObject {
    Q_OBJECT

private slots:
    void filledAsApart_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<bool>("cyclic");
        QTest::addColumn<double>("factor");
        QTest::addColumn<double>("inversion");
        for (const char* name : {"1f1b", "gpipe", "interleaved-1f1b"})
            for (const bool cyclic : {false, true})
                for (const auto& [factor, inversion] : {std::pair(0.1, 0.4), {0.3, 2.0}}) {
                    QTest::addRow("%s %d %.1f", name, cyclic ? 1 : 0, factor) << name << cyclic << factor << inversion;
                }
        QTest::addRow("v-half") << "v-half" << true << 0.2 << 1.0; // I and W apart
        QTest::addRow("dualpipev") << "dualpipev" << true << 0.2 << 1.0;
    }

    void filledAsApart()
    {
        QFETCH(QString, name);
        QFETCH(bool, cyclic);
        QFETCH(double, factor);
        QFETCH(double, inversion);
        const Schedule schedule = librarySchedule(name.toStdString(), 4, 8);
        FillRule rule{.any = true, .pieces = 3, .cyclic = cyclic, .both = true};
        const CostModel costs = costsOf(schedule, factor, inversion, 3);
        const auto filled = cycleOf(schedule, costs, rule);
        rule.apart = true;
        const auto apart = cycleOf(schedule, costs, rule);
        QVERIFY2(filled && apart, filled ? "" : filled.error().message.c_str());
        QCOMPARE(filled->size(), apart->size());
        TrainingOptions options = kfacOptions(ClockMode::Virtual);
        options.workload = test::gpt({16, 16, 2, 8, 256});
        const int steps = 2 * static_cast<int>(filled->size()) + 3;
        const auto a = trainedBy(options, *filled, steps), b = trainedBy(options, *apart, steps);
        QVERIFY2(a, a ? "" : a.error().message.c_str());
        QVERIFY2(b, b ? "" : b.error().message.c_str());
        QCOMPARE(a->losses, b->losses);
        QVERIFY(a->weights == b->weights);
        options.clock = ClockMode::Wall;
        const auto wall = trainedBy(options, *filled, steps);
        QVERIFY(wall && wall->losses == a->losses);
        // it is not training without factors
        const auto none = trainedBy(options, {CheckedSchedule::of(schedule).value()}, steps);
        QVERIFY(none && none->losses != a->losses);
        QVERIFY(a->losses.back() < a->losses.front());
    }

    // All in one step, with the pieces behind everything: K-FAC as its optimizer does it, as there is no step between
    // W and the inversion.
    void atTheEndOfAStep()
    {
        const auto one =
            listed({{"0F0", "0F1", "0B0", "0B1", "0FACTOR_A0", "0FACTOR_A1", "0FACTOR_G0", "0FACTOR_G1", "0INVERT.0"}});
        const auto plain = listed({{"0F0", "0F1", "0B0", "0B1"}});
        const TrainingOptions options = kfacOptions(ClockMode::Virtual);
        const auto a = trainedBy(options, {one}, 5), b = trainedBy(options, {plain}, 5);
        QVERIFY2(a, a ? "" : a.error().message.c_str());
        QVERIFY(b);
        QCOMPARE(a->losses, b->losses);
        QVERIFY(a->weights == b->weights);
        // before W, too: between F and B the inputs are made as the backward makes them
        const auto between =
            listed({{"0F0", "0FACTOR_A0", "0F1", "0FACTOR_A1", "0B0", "0FACTOR_G0", "0B1", "0FACTOR_G1", "0INVERT.0"}});
        const auto c = trainedBy(options, {between}, 5);
        QVERIFY2(c, c ? "" : c.error().message.c_str());
        QVERIFY(c->weights == a->weights);
    }

    void refused()
    {
        const TrainingOptions options = kfacOptions(ClockMode::Virtual);
        const auto good =
            listed({{"0F0", "0F1", "0B0", "0B1", "0FACTOR_A0", "0FACTOR_A1", "0FACTOR_G0", "0FACTOR_G1", "0INVERT.0"}});
        QCOMPARE(faultOf(options, {good}), QString());
        QVERIFY(faultOf(options, {good, good}).contains("8 factors of the stage, not 4"));
        QVERIFY(faultOf(options, {good, listed({{"0F0", "0F1", "0B1", "0B0"}})}).contains("differ in more"));
        QVERIFY(
            faultOf(options,
                    {listed({{"0F0", "0F1", "0B0", "0B1", "0FACTOR_A0", "0FACTOR_A1", "0FACTOR_G0", "0FACTOR_G1"}})})
                .contains("nothing inverts"));
        QVERIFY(faultOf(options, {listed({{"0FACTOR_A0", "0INVERT.0", "0FACTOR_A1", "0F0", "0F1", "0B0", "0B1",
                                           "0FACTOR_G0", "0FACTOR_G1"}})})
                    .contains("comes before 0FACTOR_A1"));
        QVERIFY(faultOf(options, {listed({{"0F0", "0F1", "0B0", "0B1", "0FACTOR_A0", "0FACTOR_A1", "0FACTOR_G0",
                                           "0FACTOR_G1", "0INVERT.1"}})})
                    .contains("pieces 0 to 0"));
        TrainingOptions other = options;
        other.optimizer.kind = OptimizerKind::Sgd;
        QVERIFY(faultOf(other, {good}).contains("of K-FAC"));
        other = options;
        other.optimizer.refresh = 2;
        QVERIFY(faultOf(other, {good}).contains("a refresh is a cycle"));
    }
};

QTEST_GUILESS_MAIN(TestFillTraining)
#include "tst_fill_training.moc"
