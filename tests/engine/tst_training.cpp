// The rank loop executes any valid schedule, keeps its order, and clearly refuses what it can't run.
#include <QTest>

#include <map>
#include <set>

#include "schedules/execute/simulate.h"
#include "schedules/text/csv.h"
#include "schedules/timeline/timeline_of.h"
#include "support/elsewhere.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

struct Case {
    const char* name;
    int ranks;
    int microbatches;
};
constexpr Case cases[] = {{"gpipe", 3, 5}, {"1f1b", 4, 8}, {"interleaved-1f1b", 2, 4}, {"zb-h1", 4, 8}, {"1f1b", 1, 3}};

Bytes sumOf(const Timeline& timeline, int rank, MemoryCategory category)
{
    Bytes sum = 0;
    for (const MemoryEvent& event : timeline.memoryOf(rank)) sum += event.category == category ? event.delta : 0;
    return sum;
}

Bytes peakOf(const Timeline& timeline, int rank, MemoryCategory category)
{
    Bytes now = 0;
    Bytes peak = 0;
    const auto events = timeline.memoryOf(rank);
    for (std::size_t i = 0; i < events.size(); ++i) {
        if (events[i].category != category) continue;
        now += events[i].delta;
        bool lastAtTime = true;
        for (std::size_t j = i + 1; j < events.size() && events[j].time == events[i].time; ++j) {
            if (events[j].category == category) lastAtTime = false;
        }
        if (lastAtTime) peak = std::max(peak, now);
    }
    return peak;
}

} // namespace

class TestTraining : public QObject {
    Q_OBJECT

private slots:
    // A kind that exists here only is executed by the runner of its resource, which exists here only, too.
    void opsOfAResourceHaveItsRunner()
    {
        class Counting : public OpRunner {
        public:
            void run(const Op& op, int rank, const std::function<void()>& work) override
            {
                ran[static_cast<std::size_t>(rank)].push_back(op);
                work();
            }
            std::array<std::vector<Op>, 2> ran; // by rank
        };
        const ExtraKind elsewhere = backwardElsewhere();
        const Schedule plain = librarySchedule("1f1b", 2, 4);
        const Schedule schedule = withBackwardsOf(plain, elsewhere);
        TrainingOptions options = fakeOptions();
        const auto refused = fakeTraining(schedule, options);
        QVERIFY(!refused && !refused.error().remedy.empty());
        const auto runner = std::make_shared<Counting>();
        options.runners[ruleOf(elsewhere.kind()).resource] = runner;
        auto training = fakeTraining(schedule, options);
        QVERIFY2(training, training ? "" : training.error().message.c_str());
        auto reference = fakeTraining(plain, fakeOptions());
        QVERIFY(reference);
        for (int step = 0; step < 2; ++step) {
            const auto outcome = (*training)->step({}), expected = (*reference)->step({});
            QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
            QCOMPARE(outcome->loss, expected->loss); // the same arithmetic
            const Track* lane = outcome->timeline->trackOf(1, ruleOf(elsewhere.kind()).lane);
            QVERIFY(lane != nullptr);
            QCOMPARE(lane->end - lane->begin, SpanId{4});
            QCOMPARE(scheduleOf(*outcome->timeline, step).value().order, schedule.order);
        }
        QVERIFY(runner->ran[0].empty());
        QCOMPARE(runner->ran[1].size(), std::size_t{8});
        QCOMPARE(runner->ran[1].front(), asKind(makeBackward(1, 0), elsewhere.kind()));
    }

    void runsEverySchedule_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("ranks");
        QTest::addColumn<int>("microbatches");
        QTest::addColumn<int>("clock");
        for (const Case& c : cases) {
            for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
                QTest::addRow("%s p=%d %s", c.name, c.ranks, toText(clock).data())
                    << QString(c.name) << c.ranks << c.microbatches << static_cast<int>(clock);
            }
        }
    }

    void runsEverySchedule()
    {
        QFETCH(QString, name);
        QFETCH(int, ranks);
        QFETCH(int, microbatches);
        QFETCH(int, clock);
        const Schedule schedule = librarySchedule(name.toStdString(), ranks, microbatches);
        auto training = fakeTraining(schedule, fakeOptions(static_cast<ClockMode>(clock)));
        QVERIFY2(training, training ? "" : training.error().message.c_str());
        Nanos last = 0;
        double before = 0;
        for (int step = 0; step < 3; ++step) {
            auto outcome = (*training)->step({});
            QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
            QCOMPARE(outcome->step, step);
            QVERIFY(outcome->loss > 0);
            QVERIFY(outcome->loss != before);
            before = outcome->loss;
            const Timeline& timeline = *outcome->timeline;
            QCOMPARE(timeline.clock(), std::string(toText((*training)->clock())));
            QCOMPARE(timeline.provenance(), Provenance::Measured);
            QVERIFY(timeline.schedule());
            QVERIFY(timeline.hasCpuTime());
            auto ran = scheduleOf(timeline, step);
            QVERIFY2(ran, ran ? "" : ran.error().message.c_str());
            QVERIFY(*ran == schedule);
            for (const Span& span : timeline.spans()) QCOMPARE(span.step, step);
            QVERIFY(timeline.begin() >= last); // after the earlier steps
            QVERIFY(outcome->stepTime > 0);
            last = timeline.end();
        }
    }

    // Data edges are those of the simulator, and no op starts before its inputs.
    void edgesAreThoseOfTheSimulator()
    {
        for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
            const Schedule schedule = librarySchedule("interleaved-1f1b", 2, 4);
            auto training = fakeTraining(schedule, fakeOptions(clock));
            auto outcome = (*training)->step({});
            QVERIFY(outcome);
            auto simulated = simulatedTimeline(schedule, CostModel::uniform(schedule));
            const auto pairsOf = [](const Timeline& timeline) {
                std::multiset<std::pair<std::string, std::string>> pairs;
                for (const Edge& edge : timeline.edges()) {
                    if (edge.kind != EdgeKind::Data) continue;
                    pairs.emplace(timeline.nameOf(timeline.spans()[edge.from]),
                                  timeline.nameOf(timeline.spans()[edge.to]));
                }
                return pairs;
            };
            QVERIFY(pairsOf(*outcome->timeline) == pairsOf(**simulated));
            for (const Edge& edge : outcome->timeline->edges()) {
                QVERIFY(edge.arrival >= outcome->timeline->spans()[edge.from].end);
                QVERIFY(edge.arrival <= outcome->timeline->spans()[edge.to].start);
            }
        }
    }

    // The simulator's figures from measured sizes equal the measured ones, on every rank.
    void activationPeaksAreExact_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<int>("clock");
        QTest::addColumn<int>("stash"); // of the fake backend; 0: the CPU's layers
        for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1"}) {
            for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
                for (const int stash : {0, 40, 300}) { // I frees a part; I adds a stash for W
                    QTest::addRow("%s %s %d", name, toText(clock).data(), stash)
                        << QString(name) << static_cast<int>(clock) << stash;
                }
            }
        }
    }

    void activationPeaksAreExact()
    {
        QFETCH(QString, name);
        QFETCH(int, clock);
        QFETCH(int, stash);
        const Schedule schedule = librarySchedule(name.toStdString(), 4, 8);
        FakeOptions fake;
        fake.keptForWeights = static_cast<std::size_t>(stash);
        auto options = fakeOptions(static_cast<ClockMode>(clock));
        if (stash == 0) options.backend = "cpu";
        auto training = stash == 0 ? trainingOf(schedule, options) : fakeTraining(schedule, options, fake);
        QVERIFY2(training, training ? "" : training.error().message.c_str());
        QVERIFY((*training)->step({}));
        auto outcome = (*training)->step({});
        QVERIFY(outcome);
        const Timeline& timeline = *outcome->timeline;

        CostModel costs(schedule.stages, CostSource::Fitted);
        std::map<std::pair<OpKind, int>, Bytes> deltas;
        for (int rank = 0; rank < schedule.ranks; ++rank) {
            const Track& track = *timeline.trackOf(rank, Lane::Compute);
            for (const Span& span : timeline.spansOf(track)) {
                Bytes delta = 0;
                for (const MemoryEvent& event : timeline.memoryOf(rank)) {
                    // what an op holds inside it is of none
                    if (event.category == MemoryCategory::Activations && event.microbatch == span.op.microbatch &&
                        event.time == span.end)
                        delta += event.delta;
                }
                if (!isBusy(span.op.kind)) continue;
                const auto known = deltas.emplace(std::pair(span.op.kind, span.op.stage), delta).first;
                QCOMPARE(delta, known->second); // the same for every microbatch
                StageMemory& memory = costs.memory[span.op.stage];
                if (span.op.kind == OpKind::Forward) memory.activation = delta;
                if (span.op.kind == OpKind::InputGrad) memory.freedAtInput = -delta;
            }
        }
        const std::vector<Bytes> simulated = activationPeaks(schedule, costs);
        const std::vector<Bytes> measured = (*training)->peak(MemoryCategory::Activations);
        for (int rank = 0; rank < schedule.ranks; ++rank) {
            const auto r = static_cast<std::size_t>(rank);
            QVERIFY(simulated[r] > 0);
            QCOMPARE(measured[r], simulated[r]);
            QCOMPARE(peakOf(timeline, rank, MemoryCategory::Activations), simulated[r]);
            QCOMPARE(sumOf(timeline, rank, MemoryCategory::Activations), Bytes(0));
            QCOMPARE(sumOf(timeline, rank, MemoryCategory::Communication), Bytes(0));
            QCOMPARE(sumOf(timeline, rank, MemoryCategory::Workspace), Bytes(0));
            const Bytes workspace = (*training)->peak(MemoryCategory::Workspace)[r];
            QVERIFY(workspace > 0);
            if (stash > 0) QCOMPARE(workspace, Bytes(64 * 4));
            // and what else was there only within an op
            QVERIFY(peakOf(timeline, rank, MemoryCategory::Workspace) >= workspace);
            QVERIFY((*training)->peak(MemoryCategory::Communication)[r] >= Bytes(16 * 4));
        }
    }

    // Weights and gradients are present from the start of the first step on, once.
    void weightsAreAllocatedOnce()
    {
        auto options = fakeOptions();
        options.stageLayers = {8, 8};
        auto training = fakeTraining(librarySchedule("1f1b", 2, 2), options);
        auto first = (*training)->step({});
        auto second = (*training)->step({});
        for (int rank = 0; rank < 2; ++rank) {
            QCOMPARE(sumOf(*first->timeline, rank, MemoryCategory::Weights), Bytes(8 * 16 * 4));
            QCOMPARE(sumOf(*second->timeline, rank, MemoryCategory::Weights), Bytes(0));
            QCOMPARE((*training)->peak(MemoryCategory::Gradients)[static_cast<std::size_t>(rank)], Bytes(8 * 16 * 4));
        }
        QCOMPARE(first->timeline->memoryOf(0).front().time, Nanos(0));
    }

    void opsOverSeveralMicrobatchesRunInOrder()
    {
        const auto schedule = readScheduleCsv("0F0,0F1,0I1,0I0,0W0-1\n1F0-1,1I1,1I0,1W0,1W1\n");
        QVERIFY2(schedule.has_value(), schedule ? "" : schedule.error().message.c_str());
        std::mutex mutex;
        std::vector<int> weights;
        FakeOptions fake;
        fake.hook = [&](OpKind kind, int stage, int microbatch) {
            if (kind != OpKind::WeightGrad || stage != 0) return;
            const std::lock_guard lock(mutex);
            weights.push_back(microbatch);
        };
        auto training = fakeTraining(*schedule, fakeOptions(), fake);
        QVERIFY2(training, training ? "" : training.error().message.c_str());
        auto outcome = (*training)->step({});
        QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
        QCOMPARE(weights, (std::vector<int>{0, 1}));
        auto ran = scheduleOf(*outcome->timeline, 0);
        QVERIFY(ran && *ran == *schedule);
    }

    void pairedOpsRunInOrder()
    {
        Schedule schedule = librarySchedule("1f1b", 2, 4);
        schedule.paired.resize(2);
        for (std::size_t i = 0; i + 1 < schedule.order[0].size(); ++i) {
            if (schedule.order[0][i].kind == OpKind::Backward && schedule.order[0][i + 1].kind == OpKind::Forward) {
                schedule.paired[0].push_back(static_cast<std::uint32_t>(i));
                break;
            }
        }
        QVERIFY(!schedule.paired[0].empty());
        for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
            auto training = fakeTraining(schedule, fakeOptions(clock));
            QVERIFY2(training, training ? "" : training.error().message.c_str());
            auto outcome = (*training)->step({});
            QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
            auto ran = scheduleOf(*outcome->timeline, 0);
            QVERIFY(ran && *ran == schedule);
        }
    }

    void refusesWhatItCannotRun()
    {
        Schedule wrong = librarySchedule("1f1b", 2, 4);
        std::swap(wrong.order[1][0], wrong.order[1][1]);
        auto invalid = fakeTraining(wrong, fakeOptions());
        QVERIFY(!invalid);
        QCOMPARE(invalid.error().code, ErrorCode::Invalid);

        auto noLayers = fakeOptions();
        noLayers.workload = noLayers.workload->withLayers(1);
        QVERIFY(!fakeTraining(librarySchedule("1f1b", 4, 4), noLayers));
    }

    void saysHowItRuns()
    {
        auto options = fakeOptions();
        options.links.all.latency = 1000;
        auto training = fakeTraining(librarySchedule("zb-h1", 2, 4), options);
        const auto configuration = (*training)->configuration();
        const auto valueOf = [&](const std::string& key) {
            for (const auto& [k, v] : configuration) {
                if (k == key) return v;
            }
            return std::string("(none)");
        };
        QCOMPARE(valueOf("clock"), std::string("virtual"));
        QCOMPARE(valueOf("ranks"), std::string("2"));
        QCOMPARE(valueOf("microbatch_size"), std::string("2"));
        QVERIFY(valueOf("permits") != "(none)");
        QVERIFY(valueOf("link").find("1000 ns") != std::string::npos);
        bool compiler = false;
        for (const auto& [key, value] : (*training)->environment())
            compiler = compiler || (key == "compiler" && !value.empty());
        QVERIFY(compiler);
    }
};

QTEST_GUILESS_MAIN(TestTraining)
#include "tst_training.moc"
