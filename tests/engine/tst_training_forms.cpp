// Schedules whose ops are not one whole microbatch each, whose stages have copies, and whose lists name the
// optimizer: all train like their one-rank replay and like the undivided model.
#include <QTest>

#include "engine/check/check.h"
#include "engine/training/execution_plan.h"
#include "schedules/text/csv.h"
#include "training_rig.h"

using namespace stagewright;
using namespace stagewright::test;

namespace {

Schedule fromCsv(const char* csv)
{
    auto schedule = readScheduleCsv(csv, {}, "mine");
    if (!schedule) qFatal("%s", schedule.error().message.c_str());
    return *schedule;
}

TrainingOptions cpuOptions(ClockMode clock = ClockMode::Virtual)
{
    TrainingOptions options;
    options.workload = test::gpt({5, 8, 2, 9, 256});
    options.microbatchSize = 4;
    options.clock = clock;
    return options;
}

struct Form {
    const char* name;
    const char* csv;
    const char* note; // of the check
};
constexpr Form forms[] = {
    {"W over several", "0F0,0F1,0I0,0I1,0W0-1\n1F0,1I0,1F1,1I1,1W0-1\n", "one GEMM"},
    {"F over several", "0F0-1,0B0,0B1,0F2-3,0B2,0B3\n1F0-1,1B0,1B1,1F2-3,1B2,1B3\n", "bit for bit"},
    {"F over several feeds single ones", "0F0-1,0B0,0B1\n1F0,1B0,1F1,1B1\n", "bit for bit"},
    {"single F feed one over several", "0F0,0F1,0B0,0B1\n1F0-1,1B0,1B1\n", "bit for bit"},
    {"B by half", "0F0,0F1,0B0h0,0B0h1,0B1h0,0B1h1\n1F0,1B0h0,1B0h1,1F1,1B1h0,1B1h1\n", "halves"},
    {"all by half",
     "0F0h0,0F0h1,0F1h0,0B0h0,0F1h1,0B0h1,0B1h0,0B1h1\n1F0h0,1B0h0,1F0h1,1B0h1,1F1h0,1B1h0,1F1h1,1B1h1\n", "halves"},
    {"one stage by half", "0F0,0F1,0B0,0B1\n1F0,1B0h0,1B0h1,1F1,1B1h0,1B1h1\n2F0,2B0,2F1,2B1\n", "halves"},
    {"I by half, W whole", "0F0,0I0h0,0I0h1,0W0\n1F0,1I0h0,1I0h1,1W0\n", "halves"},
    {"slices", "0F0.0,0F0.1,0F0.2,0B0.2,0B0.1,0B0.0\n1F0.0,1F0.1,1F0.2,1B0.2,1B0.1,1B0.0\n", "slices"},
    {"slices, split backward, two in flight",
     "0F0.0,0F0.1,0F1.0,0F1.1,0I0.1,0I0.0,0W0.1,0I1.1,0I1.0,0W0.0,0W1.1,0W1.0\n"
     "1F0.0,1F0.1,1I0.1,1F1.0,1I0.0,1F1.1,1W0.1,1W0.0,1I1.1,1I1.0,1W1.1,1W1.0\n",
     "slices"},
    {"recomputed", "0F0,0F1,0R0,0B0,0R1,0B1\n1F0,1B0,1F1,1R1,1B1\n", "bit for bit"},
    {"recomputed before the gradient is there", "0F0,0F1,0R0,0R1,0B0,0I1,0W1\n1F0,1R0,1B0,1F1,1B1\n", "bit for bit"},
    {"slices recomputed", "0F0.0,0F0.1,0R0.1,0B0.1,0R0.0,0B0.0\n1F0.0,1F0.1,1B0.1,1B0.0\n", "slices"},
    {"copies", "0F0,1F1,1B1,0B0\n1F0,0F1,1B0,0B1\n", "copies"},
    {"copies, one of them reduced early", "0F0,1F1,1B1,1REDUCE_GRAD,0B0,0REDUCE_GRAD\n1F0,0F1,1B0,0B1,0REDUCE_GRAD\n",
     "copies"},
    {"optimizer in the lists", "0F0,0F1,0B0,0B1,0OPT\n1F0,1B0,1F1,1B1,1OPT\n", "bit for bit"},
    {"optimizer before other stages' ops",
     "0F0,0F1,3F0,3B0,3F1,3B1,3OPT,0B0,0B1,0OPT\n"
     "1F0,2F0,1F1,2F1,2B0,1B0,2B1,2OPT,1B1,1OPT\n",
     "bit for bit"},
};

} // namespace

class TestTrainingForms : public QObject {
    Q_OBJECT

private slots:
    void everyForm_data()
    {
        QTest::addColumn<int>("index");
        QTest::addColumn<int>("clock");
        for (int i = 0; i < static_cast<int>(std::size(forms)); ++i) {
            for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual})
                QTest::addRow("%s, %s", forms[i].name, toText(clock).data()) << i << static_cast<int>(clock);
        }
    }

    void everyForm()
    {
        QFETCH(int, index);
        QFETCH(int, clock);
        const Form& form = forms[index];
        TrainingOptions options = cpuOptions(static_cast<ClockMode>(clock));
        options.optimizer.clipNorm = 0; // optimizer ops in lists: nothing to take back
        const auto result = checkOf(fromCsv(form.csv), options, 3, {});
        QVERIFY2(result, result ? "" : result.error().message.c_str());
        QVERIFY2(result->passed, result->note.c_str());
        QVERIFY(result->gradientsEqual && result->lossesEqual && result->repeatEqual && result->orderEqual);
        QVERIFY2(result->note.find(form.note) != std::string::npos, result->note.c_str());
    }

    // A link delays every part by its own size; nothing starts before its inputs are there.
    void linksCarryParts()
    {
        for (const Form& form : forms) {
            for (const ClockMode clock : {ClockMode::Wall, ClockMode::Virtual}) {
                TrainingOptions options = cpuOptions(clock);
                options.links.all = {20'000, 1e8};
                auto training = trainingOf(fromCsv(form.csv), options);
                QVERIFY2(training, training ? "" : training.error().message.c_str());
                const auto outcome = (*training)->step({});
                QVERIFY2(outcome, outcome ? "" : outcome.error().message.c_str());
                const Timeline& timeline = *outcome->timeline;
                int delayed = 0;
                for (const Edge& edge : timeline.edges()) {
                    if (edge.kind != EdgeKind::Data) continue;
                    QVERIFY(edge.arrival >= timeline.spans()[edge.from].end);
                    QVERIFY(edge.arrival <= timeline.spans()[edge.to].start);
                    delayed += edge.arrival >= timeline.spans()[edge.from].end + 20'000 ? 1 : 0;
                }
                if (timeline.ranks() > 1) QVERIFY2(delayed > 0, form.name);
                Bytes left = 0;
                for (int rank = 0; rank < timeline.ranks(); ++rank) {
                    for (const MemoryEvent& event : timeline.memoryOf(rank))
                        left += event.category == MemoryCategory::Activations ? event.delta : 0;
                }
                QCOMPARE(left, Bytes(0));
            }
        }
    }

    // Unequal slices, the last of one token, and layers recomputed in part.
    void unequalSlices()
    {
        Schedule schedule = fromCsv(forms[8].csv);
        schedule.sliceLengths = {10, 6, 1};
        const auto tokens = sliceTokens(schedule, 9);
        QVERIFY(tokens);
        QCOMPARE(*tokens, (std::vector<int>{5, 3, 1}));
        const auto result = checkOf(schedule, cpuOptions(), 2, {});
        QVERIFY2(result, result ? "" : result.error().message.c_str());
        QVERIFY2(result->passed, result->note.c_str());
    }

    void slicesByLargestRemainder()
    {
        Schedule schedule = fromCsv(forms[8].csv);
        QCOMPARE(*sliceTokens(schedule, 9), (std::vector<int>{3, 3, 3}));
        QCOMPARE(*sliceTokens(schedule, 11), (std::vector<int>{4, 4, 3}));
        QCOMPARE(*sliceTokens(fromCsv(forms[0].csv), 11), std::vector<int>());
        schedule.sliceLengths = {100, 100, 1};
        const auto empty = sliceTokens(schedule, 9);
        QVERIFY(!empty);
        QCOMPARE(empty.error().code, ErrorCode::Usage);
        QVERIFY2(empty.error().message.find("slice 2 of 3") != std::string::npos, empty.error().message.c_str());
        QVERIFY(!checkOf(schedule, cpuOptions(), 1, {}));
    }

    void recomputesOnlySomeLayers()
    {
        TrainingOptions options = cpuOptions();
        const Schedule schedule = fromCsv(forms[10].csv);
        const auto peakOf = [&] {
            auto training = trainingOf(schedule, options);
            if (!training || !(*training)->step({})) return Bytes(-1);
            return (*training)->peak(MemoryCategory::Activations)[0];
        };
        const Bytes all = peakOf();
        options.recomputedLayers = {1, 1};
        const Bytes some = peakOf();
        options.recomputedLayers = {1, 0};
        const Bytes none = peakOf();
        QVERIFY2(0 < all && all < some && some < none, qPrintable(QString("%1 %2 %3").arg(all).arg(some).arg(none)));
        options.recomputedLayers = {1, 1};
        const auto result = checkOf(schedule, options, 2, {});
        QVERIFY2(result, result ? "" : result.error().message.c_str());
        QVERIFY2(result->passed, result->note.c_str());
    }

    void refuses_data()
    {
        QTest::addColumn<QString>("csv");
        QTest::addColumn<QString>("message");
        QTest::newRow("F by half, B whole") << "0F0h0,0F0h1,0B0\n"
                                            << "its forward ran as 0F0h1";
        QTest::newRow("I whole, W by half") << "0F0,0I0,0W0h0,0W0h1\n"
                                            << "0I0 before it is larger";
        QTest::newRow("slices of halves") << "0F0.0,0F0.1,0B0.1,0B0.0\n1F0,1B0h0,1B0h1\n"
                                          << "can't be trained together";
        QTest::newRow("copies and optimizer") << "0F0,1F1,1B1,0B0,0OPT,1OPT\n1F0,0F1,1B0,0B1,0OPT,1OPT\n"
                                              << "one barrier per step";
        QTest::newRow("a stage without optimizer") << "0F0,0B0\n1F0,1B0,1OPT\n"
                                                   << "stage 0: no optimizer op";
        QTest::newRow("slices backwards in rising order") << "0F0.0,0F0.1,0B0.0,0B0.1\n"
                                                          << "gradient of a slice before";
    }

    void refuses()
    {
        QFETCH(QString, csv);
        QFETCH(QString, message);
        const auto result = checkOf(fromCsv(csv.toUtf8().constData()), cpuOptions(), 1, {});
        QVERIFY(!result);
        QVERIFY2(QString::fromStdString(result.error().message).contains(message), result.error().message.c_str());
    }

    void halvesNeedAnEvenBatch()
    {
        TrainingOptions options = cpuOptions();
        options.microbatchSize = 3;
        auto training = trainingOf(fromCsv(forms[4].csv), options);
        QVERIFY(!training);
        QVERIFY2(training.error().message.find("microbatch size 3 is odd") != std::string::npos,
                 training.error().message.c_str());
    }
};

QTEST_GUILESS_MAIN(TestTrainingForms)
#include "tst_training_forms.moc"
