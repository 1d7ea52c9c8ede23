// Model texts and their errors, layers over stages, sampling of the corpus.
#include <QtTest>

#include <QTemporaryDir>

#include <numeric>
#include <set>
#include <string>

#include "engine/workload/gpt/corpus.h"
#include "engine/workload/gpt/model_config.h"
#include "support/workloads.h"

using namespace stagewright;

namespace {

std::vector<int> layersOf(const std::vector<StageSlice>& slices)
{
    std::vector<int> layers;
    for (const StageSlice& slice : slices) layers.push_back(slice.layerCount);
    return layers;
}

} // namespace

class TestModelConfig : public QObject {
    Q_OBJECT
private slots:
    void roundTrip()
    {
        const auto model = parseModelConfig("layers=4,hidden=256,heads=8,seq=64");
        QVERIFY(model);
        QCOMPARE(*model, (ModelConfig{.layers = 4, .hidden = 256, .heads = 8, .sequence = 64}));
        QCOMPARE(toText(*model), std::string("layers=4,hidden=256,heads=8,seq=64"));
        QCOMPARE(*parseModelConfig(toText(*model)), *model);
        QCOMPARE(*parseModelConfig(""), ModelConfig{});
        QCOMPARE(parseModelConfig("vocab=6144")->vocabulary, 6144);
        QCOMPARE(toText(*parseModelConfig("vocab=6144")),
                 std::string("layers=8,hidden=128,heads=4,seq=128,vocab=6144"));
        QCOMPARE(parseModelConfig("heads=2", *model)->hidden, 256);
    }

    void errors_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        QTest::newRow("unknown key") << "layer=4"
                                     << "model: unknown key 'layer'";
        QTest::newRow("no equals") << "layers"
                                   << "model: 'layers' is not key=value";
        QTest::newRow("empty item") << "layers=4,,heads=2"
                                    << "model: '' is not key=value";
        QTest::newRow("trailing comma") << "layers=4,"
                                        << "model 'layers=4,': nothing after the last comma";
        QTest::newRow("word") << "layers=four"
                              << "model: layers='four' is not a whole number";
        QTest::newRow("rest") << "seq=12x"
                              << "model: seq='12x' is not a whole number";
        QTest::newRow("empty") << "seq="
                               << "model: seq='' is not a whole number";
        QTest::newRow("too large to read") << "seq=99999999999"
                                           << "model: seq='99999999999' is not a whole number";
        QTest::newRow("zero") << "layers=0"
                              << "model: layers=0 is out of range";
        QTest::newRow("vocabulary below the bytes") << "vocab=61"
                                                    << "model: vocab=61, but tokens are bytes";
        QTest::newRow("vocabulary too large") << "vocab=65537"
                                              << "model: vocab=65537 is out of range";
        QTest::newRow("negative") << "seq=-3"
                                  << "model: seq=-3 is out of range";
        QTest::newRow("large") << "hidden=65537,heads=1"
                               << "model: hidden=65537 is out of range";
        QTest::newRow("twice") << "seq=3,seq=4"
                               << "model: 'seq' is given twice";
        QTest::newRow("heads") << "hidden=100,heads=3"
                               << "model: hidden=100 is not a multiple of heads=3";
    }
    void errors()
    {
        QFETCH(QString, text);
        QFETCH(QString, message);
        const auto model = parseModelConfig(text.toStdString());
        QVERIFY(!model);
        QCOMPARE(model.error().code, ErrorCode::Usage);
        QCOMPARE(QString::fromStdString(model.error().message), message);
        QVERIFY(!model.error().remedy.empty());
    }

    void slices()
    {
        const ModelConfig model;
        const auto four = *slicesOf(*test::gpt(model), 4);
        QCOMPARE(layersOf(four), (std::vector<int>{2, 2, 2, 2}));
        QVERIFY(four[0].first && !four[0].last && four[3].last && !four[3].first);
        QCOMPARE(four[2].firstLayer, 4);
        QCOMPARE(four[2].stage, 2);
        const auto one = *slicesOf(*test::gpt(model), 1);
        QVERIFY(one[0].first && one[0].last);
        // Embedding and head cost time, so the ends get fewer layers where possible: 10 layers over 4 stages.
        QCOMPARE(layersOf(*slicesOf(*test::gpt({.layers = 10}), 4)), (std::vector<int>{2, 3, 3, 2}));
        // With hidden=8 the head (4,096) weighs more than two layers (1,680 each).
        QCOMPARE(layersOf(*slicesOf(*test::gpt({.layers = 9, .hidden = 8, .sequence = 8}), 3)),
                 (std::vector<int>{4, 4, 1}));
        QCOMPARE(layersOf(*slicesOf(*test::gpt({.layers = 8}), 8)), std::vector<int>(8, 1));
        QCOMPARE(layersOf(*slicesOf(*test::gpt(model), 3, {0, 8, 0})), (std::vector<int>{0, 8, 0}));
    }

    // The largest stage is as small as any cut allows: against all cuts.
    void slicesAreBalanced()
    {
        for (const int layers : {3, 5, 9})
            for (const int hidden : {8, 32, 128}) {
                const ModelConfig model{.layers = layers, .hidden = hidden, .sequence = 16};
                const auto cost = [&](int stage, int count) {
                    return count * (24.0 * hidden * hidden + 2.0 * hidden * 17) + (stage == 0 ? hidden : 0.0) +
                           (stage == 2 ? 512.0 * hidden : 0.0);
                };
                double best = 1e300;
                for (int a = 1; a < layers - 1; ++a)
                    for (int b = 1; a + b < layers; ++b)
                        best = std::min(best, std::max({cost(0, a), cost(1, b), cost(2, layers - a - b)}));
                const auto counts = layersOf(*slicesOf(*test::gpt(model), 3));
                QCOMPARE(std::max({cost(0, counts[0]), cost(1, counts[1]), cost(2, counts[2])}), best);
                QCOMPARE(counts[0] + counts[1] + counts[2], layers);
            }
    }

    void sliceErrors()
    {
        const ModelConfig model;
        QCOMPARE(slicesOf(*test::gpt(model), 9).error().message, std::string("the model has 8 layers for 9 stages"));
        QCOMPARE(slicesOf(*test::gpt(model), 2, {4, 5}).error().message,
                 std::string("the stages' layers sum to 9; the model has 8"));
        QCOMPARE(slicesOf(*test::gpt(model), 2, {8}).error().message,
                 std::string("layers are given for 1 stages; the schedule has 2"));
        QCOMPARE(slicesOf(*test::gpt(model), 3, {4, 0, 4}).error().message, std::string("stage 1: 0 layers"));
        QCOMPARE(slicesOf(*test::gpt(model), 2, {9, -1}).error().code, ErrorCode::Usage);
        QCOMPARE(slicesOf(*test::gpt(model), 0).error().code, ErrorCode::Usage);
    }

    void sampling()
    {
        const auto corpus = Corpus::builtIn();
        std::vector<std::uint8_t> tokens(3 * 50), targets(tokens.size()), again(tokens.size()), unused(tokens.size());
        corpus->sample(1, 4, 2, 3, 50, tokens, targets);
        corpus->sample(1, 4, 2, 3, 50, again, unused);
        QCOMPARE(again, tokens);
        for (std::size_t row = 0; row < 3; ++row)
            for (std::size_t i = 0; i + 1 < 50; ++i) QCOMPARE(targets[row * 50 + i], tokens[row * 50 + i + 1]);
        std::set<std::string> distinct{{tokens.begin(), tokens.end()}};
        corpus->sample(2, 4, 2, 3, 50, again, unused);
        distinct.emplace(again.begin(), again.end());
        corpus->sample(1, 5, 2, 3, 50, again, unused);
        distinct.emplace(again.begin(), again.end());
        corpus->sample(1, 4, 3, 3, 50, again, unused);
        distinct.emplace(again.begin(), again.end());
        QCOMPARE(distinct.size(), std::size_t{4});
        // Samples are the same however they are cut into microbatches.
        std::vector<std::uint8_t> one(50), next(50);
        for (std::size_t row = 0; row < 3; ++row) {
            corpus->sample(1, 4, 2 + static_cast<std::int64_t>(row), 1, 50, one, next);
            QVERIFY(std::equal(one.begin(), one.end(), tokens.begin() + static_cast<std::ptrdiff_t>(row * 50)));
            QVERIFY(std::equal(next.begin(), next.end(), targets.begin() + static_cast<std::ptrdiff_t>(row * 50)));
        }
        // A text shorter than the sample is read again and again.
        const auto tiny = Corpus::fromBytes({'a', 'b', 'c'}, "tiny");
        tiny->sample(1, 0, 0, 3, 50, tokens, targets);
        for (std::size_t i = 0; i < tokens.size(); ++i)
            QCOMPARE(targets[i], static_cast<std::uint8_t>('a' + (tokens[i] - 'a' + 1) % 3));
    }

    // Every byte of the text can be seen, the last one as a target only.
    void samplingReachesTheEnds()
    {
        std::vector<std::uint8_t> bytes(20);
        std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
        const auto corpus = Corpus::fromBytes(bytes, "count");
        std::set<int> tokensSeen, targetsSeen;
        std::vector<std::uint8_t> tokens(16), targets(16);
        for (int step = 0; step < 200; ++step) {
            corpus->sample(1, step, 0, 1, 16, tokens, targets);
            tokensSeen.insert(tokens.begin(), tokens.end());
            targetsSeen.insert(targets.begin(), targets.end());
        }
        QVERIFY(tokensSeen.contains(0) && tokensSeen.contains(18) && !tokensSeen.contains(19));
        QVERIFY(targetsSeen.contains(19) && targetsSeen.contains(1) && !targetsSeen.contains(0));
    }

    void files()
    {
        const QTemporaryDir folder;
        const std::string path = folder.filePath("text.txt").toStdString();
        QCOMPARE(Corpus::fromFile(path).error().code, ErrorCode::Unreadable);
        QFile file(QString::fromStdString(path));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(QByteArray(1023, 'x'));
        file.flush();
        QVERIFY(QString::fromStdString(Corpus::fromFile(path).error().message).contains("1023 bytes"));
        file.write("y");
        file.close();
        const auto corpus = Corpus::fromFile(path);
        QVERIFY(corpus);
        QCOMPARE((*corpus)->size(), std::size_t{1024});
        QCOMPARE((*corpus)->name(), path);
        QVERIFY(!Corpus::fromFile(folder.path().toStdString())); // a folder
    }

    void builtInText()
    {
        const auto corpus = Corpus::builtIn();
        QCOMPARE(corpus->name(), std::string("built-in"));
        QFile source(STAGEWRIGHT_SOURCE_DIR "/engine/workload/gpt/workshop.txt");
        QVERIFY(source.open(QIODevice::ReadOnly));
        QCOMPARE(corpus->size(), static_cast<std::size_t>(source.size()));
        QVERIFY(corpus->size() > 40'000);
    }
};

QTEST_APPLESS_MAIN(TestModelConfig)
#include "tst_model_config.moc"
