// Ranks that find the order of their ops while they train: bits as those of the list, on both clocks; limits; what ran
// is a schedule like any other; stops.
#include <QTest>

#include <algorithm>
#include <stdexcept>

#include "schedules/model/recompute.h"
#include "schedules/timeline/timeline_of.h"
#include "training_rig.h"
#include <fmt/core.h>

using namespace stagewright;
using namespace stagewright::test;

namespace {

TrainingOptions optionsOf(const std::string& order, ClockMode clock, double jitter = 0.5)
{
    TrainingOptions options = fakeOptions(clock);
    options.backend = "cpu";
    options.order = parseReadyOrder(order).value();
    options.links.all = {20'000, 1e9};
    Perturbation perturbation;
    perturbation.jitter = jitter;
    options.perturbation = runPerturbation(perturbation, 4, 100'000, 3);
    return options;
}

struct Trained {
    std::vector<double> losses;
    std::vector<std::vector<std::vector<float>>> gradients; // by step
    std::vector<Schedule> ran;
};

Result<Trained> trained(const Schedule& schedule, const TrainingOptions& options, int steps = 3)
{
    STAGEWRIGHT_TRY(auto training, trainingOf(schedule, options));
    training->keepGradients(true);
    Trained out;
    for (int step = 0; step < steps; ++step) {
        STAGEWRIGHT_TRY(const auto outcome, training->step({}));
        out.losses.push_back(outcome.loss);
        out.gradients.push_back(training->lastGradients());
        out.ran.push_back(*outcome.timeline->schedule());
        STAGEWRIGHT_TRY(const Schedule seen, scheduleOf(*outcome.timeline, step));
        if (!(seen == out.ran.back())) return fail(ErrorCode::Failed, "the timeline's order is not its schedule's");
    }
    return out;
}

std::vector<Op> sorted(std::vector<Op> ops)
{
    std::sort(ops.begin(), ops.end());
    return ops;
}

// Most microbatches of its stage that a rank holds.
int mostHeld(const std::vector<Op>& list)
{
    int held = 0, most = 0;
    for (const Op& op : list) {
        held += isForward(op.kind) ? 1 : isFullBackward(op.kind) ? -1 : 0;
        most = std::max(most, held);
    }
    return most;
}

} // namespace

class TestReadyTraining : public QObject {
    Q_OBJECT

private slots:
    void bitsAsByTheList_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("order");
        for (const char* order : {"arrival", "arrival:limit=8", "arrival:limit=2,rule=forward_first",
                                  "arrival:limit=6,rule=backward_first", "hint", "hint:limit=6"})
            QTest::addRow("1f1b %s", order) << "1f1b" << order;
        for (const char* name : {"gpipe", "zb-h1", "zb-h2", "interleaved-1f1b", "zbv", "dualpipev", "chimera"})
            QTest::addRow("%s", name) << name << "hint";
        QTest::addRow("recomputed") << "recomputed"
                                    << "hint";
    }

    void bitsAsByTheList()
    {
        QFETCH(QString, name);
        QFETCH(QString, order);
        const bool recomputed = name == "recomputed";
        Schedule schedule = librarySchedule(recomputed ? "1f1b" : name.toStdString(), 4, 8);
        if (recomputed) schedule = withRecompute(schedule, std::vector<bool>(4, true), false);
        const auto listed = trained(schedule, optionsOf("list", ClockMode::Virtual));
        QVERIFY2(listed, listed ? "" : listed.error().message.c_str());
        int moved = 0;
        for (const ClockMode clock : {ClockMode::Virtual, ClockMode::Wall}) {
            const auto found = trained(schedule, optionsOf(order.toStdString(), clock));
            QVERIFY2(found, found ? "" : found.error().message.c_str());
            QCOMPARE(found->losses, listed->losses);
            QVERIFY(found->gradients == listed->gradients);
            for (const Schedule& ran : found->ran) {
                moved += ran == schedule ? 0 : 1;
                for (std::size_t rank = 0; rank < ran.order.size(); ++rank)
                    QVERIFY(sorted(ran.order[rank]) == sorted(schedule.order[rank]));
            }
        }
        if (order.contains("limit=6") || order.contains("limit=8")) QVERIFY(moved > 0);
    }

    void aLimitHolds()
    {
        for (const int limit : {1, 3, 5})
            for (const ClockMode clock : {ClockMode::Virtual, ClockMode::Wall}) {
                const auto found =
                    trained(librarySchedule("1f1b", 4, 8), optionsOf(fmt::format("arrival:limit={}", limit), clock), 2);
                QVERIFY2(found, found ? "" : found.error().message.c_str());
                for (const Schedule& ran : found->ran)
                    for (const auto& list : ran.order) QVERIFY(mostHeld(list) <= limit);
            }
    }

    // At virtual times an order is that of the simulator's rule, whoever ran first on this machine: forwards that are
    // ten times as long as backwards let the ranks behind run dry.
    void atVirtualTimes()
    {
        FakeOptions fake;
        fake.hook = [](OpKind kind, int stage, int) {
            if (kind != OpKind::Optimizer) burn(stage == 1 ? 2'000'000 : 200'000);
        };
        const Schedule schedule = librarySchedule("1f1b", 3, 6);
        for (const char* order : {"arrival", "arrival:limit=5", "hint:limit=5"}) {
            TrainingOptions options = fakeOptions(ClockMode::Virtual);
            options.order = parseReadyOrder(order).value();
            auto training = fakeTraining(schedule, options, fake);
            QVERIFY2(training, training ? "" : training.error().message.c_str());
            const auto outcome = (*training)->step({});
            QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
            CostModel costs = CostModel::uniform(schedule);
            for (int stage = 0; stage < 3; ++stage)
                for (const OpKind kind : {OpKind::Forward, OpKind::Backward})
                    costs.setDuration(kind, stage, (stage == 1 ? 10 : 1) * costs.timeUnit);
            const auto simulated = orderByReadiness(schedule, costs, options.order);
            QVERIFY(simulated);
            for (std::size_t rank = 0; rank < 3; ++rank)
                QCOMPARE(outcome->timeline->schedule()->order[rank], simulated->order[rank]);
        }
    }

    void stops()
    {
        for (const ClockMode clock : {ClockMode::Virtual, ClockMode::Wall}) {
            FakeOptions fake;
            fake.hook = [](OpKind kind, int stage, int microbatch) {
                if (isInputGrad(kind) && stage == 1 && microbatch == 2) throw std::runtime_error("broken");
            };
            TrainingOptions options = fakeOptions(clock);
            options.order = parseReadyOrder("arrival").value();
            auto training = fakeTraining(librarySchedule("1f1b", 3, 6), options, fake);
            QVERIFY(training);
            const auto outcome = (*training)->step({});
            QVERIFY(!outcome);
            QVERIFY2(outcome.error().message.find("1B2") != std::string::npos, outcome.error().message.c_str());
        }
    }

    void refused()
    {
        const auto faultOf = [](const Schedule& schedule, const TrainingOptions& options) {
            const auto training = trainingOf(schedule, options);
            return training ? std::string() : training.error().message;
        };
        const Schedule schedule = librarySchedule("1f1b", 4, 8);
        QVERIFY(faultOf(librarySchedule("zb-h1", 4, 8), optionsOf("arrival", ClockMode::Virtual)).find("other ops") !=
                std::string::npos);
        QVERIFY(faultOf(librarySchedule("pipedream", 4, 8), optionsOf("hint", ClockMode::Virtual)).find("weights of") !=
                std::string::npos);
        TrainingOptions met = optionsOf("hint", ClockMode::Wall);
        met.channels.sends = SendMode::Rendezvous;
        QVERIFY(faultOf(schedule, met).find("overtake") != std::string::npos);
        TrainingOptions few = optionsOf("hint", ClockMode::Wall);
        few.channels.perDirection = 1;
        QVERIFY(faultOf(schedule, few).find("overtake") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestReadyTraining)
#include "tst_ready_training.moc"
