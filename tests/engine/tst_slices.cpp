// Parts of a microbatch: slices of the sequence, halves of the batch, and weight gradients over several parts, against
// the whole within 1e-5 relative by tensor; memory to the byte; misuse.
#include <QtTest>

#include "engine_rig.h"

using namespace stagewright;
using test::farthestGradient;
using test::Rig;
using test::sameBits;
using test::Tally;

namespace {

constexpr double tolerance = 1e-5; // relative, of a tensor's norm
const ModelConfig small{.layers = 3, .hidden = 32, .heads = 4, .sequence = 20, .vocabulary = 61};

std::vector<float> wholeGradients(const ModelConfig& model, int microbatches, std::vector<double>* losses = nullptr)
{
    Rig rig(model, 4, 1);
    for (int j = 0; j < microbatches; ++j) {
        const double loss = rig.forward(0, j);
        if (losses) losses->push_back(loss);
        rig.inputGrads(j);
        rig.weightGrads(j);
    }
    return rig.gradients();
}

QString described(const std::pair<double, std::string>& farthest)
{
    return QString("%1 is %2 apart").arg(QString::fromStdString(farthest.second)).arg(farthest.first);
}

Part half(int microbatch, int index) { return {microbatch, -1, static_cast<std::uint8_t>(index)}; }

Part slice(int microbatch, int index) { return {microbatch, static_cast<std::int16_t>(index), 0}; }

} // namespace

class TestSlices : public QObject {
    Q_OBJECT
private slots:
    void slicesAreExact_data()
    {
        QTest::addColumn<int>("stages");
        QTest::addColumn<int>("sequence");
        QTest::addColumn<std::vector<int>>("lengths");
        QTest::newRow("one slice") << 1 << 20 << std::vector<int>{20};
        QTest::newRow("three") << 1 << 20 << std::vector<int>{8, 7, 5};
        QTest::newRow("two stages") << 2 << 20 << std::vector<int>{8, 7, 5};
        QTest::newRow("of one token") << 2 << 20 << std::vector<int>{1, 18, 1};
        QTest::newRow("all of one token") << 1 << 20 << std::vector<int>(20, 1);
        QTest::newRow("at a block of queries") << 1 << 150 << std::vector<int>{64, 64, 22};
        QTest::newRow("across blocks of queries") << 1 << 150 << std::vector<int>{100, 50};
        QTest::newRow("a token before many") << 1 << 150 << std::vector<int>{1, 149};
    }
    void slicesAreExact()
    {
        QFETCH(int, stages);
        QFETCH(int, sequence);
        QFETCH(std::vector<int>, lengths);
        ModelConfig model = small;
        model.sequence = sequence;
        std::vector<double> losses;
        const std::vector<float> expected = wholeGradients(model, 2, &losses);
        Rig rig(model, 4, stages);
        rig.setSlices(lengths);
        for (int j = 0; j < 2; ++j) // both in flight
            QVERIFY(std::abs(rig.forward(0, j) - losses[static_cast<std::size_t>(j)]) < 1e-6);
        for (int j = 0; j < 2; ++j) rig.inputGrads(j);
        for (int j = 0; j < 2; ++j) rig.weightGrads(j);
        const auto farthest = farthestGradient(rig, expected);
        QVERIFY2(farthest.first < tolerance, qPrintable(described(farthest)));
        for (const auto category :
             {MemoryCategory::Activations, MemoryCategory::Workspace, MemoryCategory::Communication})
            QCOMPARE(rig.inUse(category), Bytes{0});
    }

    // Microbatches side by side, weight gradients at once, later or in one op: the bits depend on the order of W alone.
    void slicesInterleaved()
    {
        Rig plain(small, 4, 2), rig(small, 4, 2);
        for (Rig* one : {&plain, &rig}) one->setSlices({8, 7, 5});
        for (int j = 0; j < 2; ++j) {
            plain.forward(0, j);
            plain.inputGrads(j);
        }
        for (int s = 2; s >= 0; --s)
            for (int j = 0; j < 2; ++j) plain.weightGradPart(slice(j, s));
        for (int s = 0; s < 3; ++s)
            for (int j = 0; j < 2; ++j) rig.forwardPart(0, slice(j, s));
        for (int s = 2; s >= 0; --s)
            for (int j = 0; j < 2; ++j) {
                rig.inputGradPart(slice(j, s));
                rig.weightGradPart(slice(j, s));
            }
        QVERIFY(sameBits(rig.gradients(), plain.gradients()));
    }

    void slicesKeptToTheByte()
    {
        Rig rig(small, 4, 1);
        rig.setSlices({8, 12});
        const Bytes first = 4 * 8, second = 4 * 12; // rows
        const auto keptForward = [&](Bytes rows, Bytes keys, Bytes queries) {
            return 4 * (3 * (10 * rows * 32 + 2 * rows + 4 * 4 * queries * keys) + rows * 32 + rows + rows * 61) + rows;
        };
        const auto keptBackward = [](Bytes rows) {
            return 4 * (3 * (16 * rows * 32 + 13 * 32) + rows * 32 + rows * 61 + 2 * 32 + rows * 32) + rows;
        };
        rig.forwardPart(0, slice(0, 0));
        QCOMPARE(rig.inUse(MemoryCategory::Activations), keptForward(first, 8, 8));
        rig.forwardPart(0, slice(0, 1));
        const Bytes whole = keptForward(first, 8, 8) + keptForward(second, 20, 12);
        QCOMPARE(rig.inUse(MemoryCategory::Activations), whole);
        rig.inputGradPart(slice(0, 1)); // its own, and room for the key and value gradients of the first slice
        QCOMPARE(rig.inUse(MemoryCategory::Activations),
                 keptForward(first, 8, 8) + 3 * 4 * 3 * first * 32 + keptBackward(second));
        rig.weightGradPart(slice(0, 1));
        rig.inputGradPart(slice(0, 0));
        QCOMPARE(rig.inUse(MemoryCategory::Activations), keptBackward(first));
        rig.weightGradPart(slice(0, 0));
        QCOMPARE(rig.inUse(MemoryCategory::Activations), Bytes{0});
        QCOMPARE(rig.inUse(MemoryCategory::Workspace), Bytes{0});
    }

    void slicesOfHalves()
    {
        const std::vector<float> expected = wholeGradients(small, 1);
        Rig rig(small, 4, 2);
        rig.setSlices({13, 7});
        const auto part = [](int index, int s) {
            return Part(0, static_cast<std::int16_t>(s), static_cast<std::uint8_t>(index));
        };
        for (const int s : {0, 1})
            for (const int h : {1, 2}) rig.forwardPart(0, part(h, s));
        for (const int h : {2, 1})
            for (const int s : {1, 0}) {
                rig.inputGradPart(part(h, s));
                rig.weightGradPart(part(h, s));
            }
        const auto farthest = farthestGradient(rig, expected);
        QVERIFY2(farthest.first < tolerance, qPrintable(described(farthest)));
    }

    void halvesAreExact_data()
    {
        QTest::addColumn<QString>("forward");
        QTest::addColumn<QString>("input");
        QTest::addColumn<QString>("weight");
        QTest::newRow("F whole, I and W by half") << "whole"
                                                  << "half"
                                                  << "half";
        QTest::newRow("all by half") << "half"
                                     << "half"
                                     << "half";
        QTest::newRow("F and W whole") << "whole"
                                       << "half"
                                       << "whole";
        QTest::newRow("W whole") << "half"
                                 << "half"
                                 << "whole";
        QTest::newRow("W by half") << "whole"
                                   << "whole"
                                   << "half";
    }
    void halvesAreExact()
    {
        QFETCH(QString, forward);
        QFETCH(QString, input);
        QFETCH(QString, weight);
        std::vector<double> losses;
        const std::vector<float> expected = wholeGradients(small, 2, &losses);
        Rig rig(small, 4, 2);
        const auto parts = [](const QString& how, int microbatch) {
            return how == "half" ? std::vector<Part>{half(microbatch, 1), half(microbatch, 2)}
                                 : std::vector<Part>{Part(microbatch)};
        };
        for (int j = 0; j < 2; ++j) {
            double loss = 0;
            const auto those = parts(forward, j);
            for (const Part& part : those) loss += rig.forwardPart(0, part) / static_cast<double>(those.size());
            QVERIFY(std::abs(loss - losses[static_cast<std::size_t>(j)]) < 1e-6);
        }
        for (int j = 0; j < 2; ++j)
            for (const Part& part : parts(input, j)) rig.inputGradPart(part);
        for (int j = 0; j < 2; ++j)
            for (const Part& part : parts(weight, j)) rig.weightGradPart(part);
        const auto farthest = farthestGradient(rig, expected);
        QVERIFY2(farthest.first < tolerance, qPrintable(described(farthest)));
        QCOMPARE(rig.inUse(MemoryCategory::Activations), Bytes{0});
        QCOMPARE(rig.inUse(MemoryCategory::Workspace), Bytes{0});
    }

    // Half of what a whole kept goes with each half.
    void halvesKeptToTheByte()
    {
        Rig rig(small, 4, 1);
        rig.forward(0, 0);
        const Bytes whole = rig.inUse(MemoryCategory::Activations);
        rig.inputGradPart(half(0, 1));
        rig.weightGradPart(half(0, 1));
        QCOMPARE(rig.inUse(MemoryCategory::Activations), whole / 2);
        rig.inputGradPart(half(0, 2));
        rig.weightGradPart(half(0, 2));
        QCOMPARE(rig.inUse(MemoryCategory::Activations), Bytes{0});
    }

    void weightGradOverSeveral()
    {
        const std::vector<float> expected = wholeGradients(small, 3);
        Rig rig(small, 4, 2);
        Tally tally;
        rig.allocators[0]->setSink(&tally);
        for (int j = 0; j < 3; ++j) rig.forward(0, j);
        for (int j = 0; j < 3; ++j) rig.inputGrads(j);
        const Part parts[] = {0, 1, 2};
        const Bytes kept = tally.total;
        tally.peak = 0;
        for (auto& stage : rig.stages) stage->weightGradOver(parts);
        // At worst all activations (4 · M · H each) lie there stacked, before the first of them is freed.
        QCOMPARE(tally.peak, kept + 4 * 3 * 4 * (4 * 20 * 32));
        QCOMPARE(tally.total, Bytes{0});
        const auto farthest = farthestGradient(rig, expected);
        QVERIFY2(farthest.first < tolerance, qPrintable(described(farthest)));
        rig.allocators[0]->setSink(nullptr);
    }

    void weightGradOverOne()
    {
        Rig rig(small, 4, 2);
        const std::vector<float> expected = wholeGradients(small, 2);
        for (const Part part : {Part(0), Part(1)}) {
            rig.forwardPart(0, part);
            rig.inputGradPart(part);
            for (auto& stage : rig.stages) stage->weightGradOver({&part, 1});
        }
        QVERIFY(sameBits(rig.gradients(), expected));
    }

    void weightGradOverSlicesAndMicrobatches()
    {
        const std::vector<float> expected = wholeGradients(small, 2);
        Rig rig(small, 4, 2);
        rig.setSlices({8, 7, 5});
        std::vector<Part> parts;
        for (int j = 0; j < 2; ++j) {
            rig.forward(0, j);
            rig.inputGrads(j);
            for (const Part& part : rig.partsOf(j)) parts.push_back(part);
        }
        for (auto& stage : rig.stages) stage->weightGradOver(parts);
        const auto farthest = farthestGradient(rig, expected);
        QVERIFY2(farthest.first < tolerance, qPrintable(described(farthest)));
    }

    void misuseOfSlices()
    {
        Rig rig(small, 4, 1);
        StageModel& stage = *rig.stages[0];
        const int tooFew[] = {8, 7}, withNothing[] = {20, 0}, fine[] = {8, 7, 5};
        QVERIFY_EXCEPTION_THROWN(stage.setSlices(tooFew), std::invalid_argument);
        QVERIFY_EXCEPTION_THROWN(stage.setSlices(withNothing), std::invalid_argument);
        rig.setSlices({8, 7, 5});
        QVERIFY_EXCEPTION_THROWN(stage.forward(slice(0, 3), {}, rig.tokens, rig.targets), std::invalid_argument);
        QVERIFY_EXCEPTION_THROWN(rig.forwardPart(0, slice(0, 1)), std::logic_error); // the first is missing
        rig.forwardPart(0, slice(0, 0));
        QVERIFY_EXCEPTION_THROWN(rig.forwardPart(0, slice(0, 0)), std::logic_error);
        QVERIFY_EXCEPTION_THROWN(rig.forwardPart(0, slice(0, 2)), std::logic_error);
        QVERIFY_EXCEPTION_THROWN(rig.inputGradPart(slice(0, 0)), std::logic_error); // later forwards are missing
        QVERIFY_EXCEPTION_THROWN(stage.setSlices(fine), std::logic_error);
        rig.forwardPart(0, slice(0, 1));
        rig.forwardPart(0, slice(0, 2));
        try {
            rig.inputGradPart(slice(0, 1));
            QFAIL("an input gradient before a later slice's");
        } catch (const std::logic_error& e) {
            QCOMPARE(e.what(), "stage 0, microbatch 0, slice 1: input gradient out of order; slice 2 is next");
        }
        QVERIFY_EXCEPTION_THROWN(rig.weightGradPart(slice(0, 2)), std::logic_error);
        rig.inputGrads(0);
        QVERIFY_EXCEPTION_THROWN(rig.inputGradPart(slice(0, 0)), std::logic_error);
        rig.weightGrads(0); // none of this did harm
        const auto farthest = farthestGradient(rig, wholeGradients(small, 1));
        QVERIFY2(farthest.first < tolerance, qPrintable(described(farthest)));
    }

    void misuseOfHalves()
    {
        Rig odd(small, 3, 1);
        odd.forward(0, 0);
        QVERIFY_EXCEPTION_THROWN(odd.inputGradPart(half(0, 1)), std::invalid_argument);
        odd.stages[0]->dropMicrobatches();
        Rig rig(small, 4, 1);
        QVERIFY_EXCEPTION_THROWN(rig.inputGradPart(half(0, 3)), std::invalid_argument);
        QVERIFY_EXCEPTION_THROWN(rig.inputGradPart(half(0, 1)), std::logic_error);
        rig.forward(0, 0);
        QVERIFY_EXCEPTION_THROWN(rig.forwardPart(0, half(0, 1)), std::logic_error);
        rig.inputGradPart(half(0, 1));
        QVERIFY_EXCEPTION_THROWN(rig.inputGradPart(half(0, 1)), std::logic_error);
        QVERIFY_EXCEPTION_THROWN(rig.inputGradPart(0), std::logic_error);
        QVERIFY_EXCEPTION_THROWN(rig.forward(0, 0), std::logic_error);
        QVERIFY_EXCEPTION_THROWN(rig.weightGradPart(0), std::logic_error); // the second half is missing
        rig.inputGradPart(half(0, 2));
        const Part twice[] = {half(0, 1), half(0, 1)};
        QVERIFY_EXCEPTION_THROWN(rig.stages[0]->weightGradOver(twice), std::logic_error);
        QVERIFY_EXCEPTION_THROWN(rig.stages[0]->weightGradOver({}), std::logic_error);
        rig.weightGradPart(0);
        const auto farthest = farthestGradient(rig, wholeGradients(small, 1));
        QVERIFY2(farthest.first < tolerance, qPrintable(described(farthest)));
    }
};

QTEST_APPLESS_MAIN(TestSlices)
#include "tst_slices.moc"
