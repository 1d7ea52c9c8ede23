// Recomputation: the same bits as without, memory to the byte, any layers of a stage, misuse.
#include <QtTest>

#include "engine_rig.h"

using namespace stagewright;
using test::Rig;
using test::sameBits;
using test::Tally;

namespace {

const ModelConfig small{.layers = 4, .hidden = 32, .heads = 4, .sequence = 20, .vocabulary = 61};
const Bytes rows = 4 * 20, stream = rows * 32, probabilities = 4 * 4 * 20 * 20; // of a batch of 4
const Bytes keptByBlock = 10 * stream + 2 * rows + probabilities;
const Bytes keptByHead = stream + rows + rows * 61;

// Two microbatches in flight; recomputation just before each input gradient. Returns gradients and losses.
std::pair<std::vector<float>, std::vector<double>> trainTwo(Rig& rig, bool recompute)
{
    std::vector<double> losses;
    rig.zeroGradients();
    for (const int microbatch : {0, 1})
        losses.push_back(
            rig.forward(0, microbatch, recompute ? &StageModel::forwardForRecompute : &StageModel::forward));
    for (const int microbatch : {0, 1}) {
        const std::vector<Part> parts = rig.partsOf(microbatch);
        for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
            if (recompute) rig.recompute(*part);
            rig.inputGradPart(*part);
        }
    }
    for (const int microbatch : {0, 1}) rig.weightGrads(microbatch);
    return {rig.gradients(), losses};
}

} // namespace

class TestRecompute : public QObject {
    Q_OBJECT
private slots:
    void sameBitsAsWithout_data()
    {
        QTest::addColumn<std::vector<int>>("layers"); // of the stages
        QTest::addColumn<int>("first");
        QTest::addColumn<int>("last");
        QTest::addColumn<std::vector<int>>("slices");
        const std::vector<int> none, two{2, 2};
        QTest::newRow("all, one stage") << std::vector<int>{4} << 0 << 3 << none;
        QTest::newRow("all, two stages") << two << 0 << 3 << none;
        QTest::newRow("all, more than there are") << two << -5 << 900 << none;
        QTest::newRow("ends alone") << std::vector<int>{0, 4, 0} << 0 << 3 << none;
        QTest::newRow("inner layers") << std::vector<int>{4} << 1 << 2 << none;
        QTest::newRow("across a cut") << two << 1 << 2 << none;
        QTest::newRow("the first layer") << two << 0 << 0 << none;
        QTest::newRow("the last layer") << two << 3 << 3 << none;
        QTest::newRow("no layer") << two << 2 << 1 << none;
        QTest::newRow("all, slices") << two << 0 << 3 << std::vector<int>{9, 1, 10};
        QTest::newRow("one layer, slices") << two << 2 << 2 << std::vector<int>{9, 1, 10};
    }
    void sameBitsAsWithout()
    {
        QFETCH(std::vector<int>, layers);
        QFETCH(int, first);
        QFETCH(int, last);
        QFETCH(std::vector<int>, slices);
        const int stages = static_cast<int>(layers.size());
        Rig plain(small, 4, stages, {}, layers), rig(small, 4, stages, {}, layers);
        plain.setSlices(slices);
        rig.setSlices(slices);
        for (auto& stage : rig.stages) stage->setRecomputedLayers(first, last);
        for (int step = 1; step <= 2; ++step) {
            const auto [expected, losses] = trainTwo(plain, false);
            const auto [gradients, ownLosses] = trainTwo(rig, true);
            QVERIFY(std::ranges::any_of(expected, [](float g) { return g != 0; }));
            QVERIFY(sameBits(gradients, expected));
            QCOMPARE(ownLosses, losses);
            for (Rig* one : {&plain, &rig})
                for (auto& stage : one->stages) stage->optimizerStep({}, step, 1.0F);
        }
        for (const auto category :
             {MemoryCategory::Activations, MemoryCategory::Workspace, MemoryCategory::Communication})
            QCOMPARE(rig.inUse(category), Bytes{0});
    }

    void keptToTheByte()
    {
        Rig rig(small, 4, 3, {}, {1, 2, 1});
        std::vector<Tally> tallies(3);
        for (std::size_t s = 0; s < 3; ++s) {
            rig.allocators[s]->setSink(&tallies[s]);
            rig.allocators[s]->resetPeaks();
        }
        rig.forward(0, 0, &StageModel::forwardForRecompute);
        // Tokens; the input; the input and the targets. Four bytes of text are a float.
        const Bytes dropped[] = {rows, 4 * stream, 4 * stream + rows};
        const Bytes whole[] = {4 * keptByBlock + rows, 8 * keptByBlock, 4 * (keptByBlock + keptByHead)};
        for (std::size_t s = 0; s < 3; ++s) {
            QCOMPARE(tallies[s].of(MemoryCategory::Activations, 0), dropped[s]);
            QCOMPARE(tallies[s].total, dropped[s]);
            QCOMPARE(rig.allocators[s]->peak(MemoryCategory::Activations), dropped[s]); // what passed by was workspace
        }
        rig.recompute(0);
        for (std::size_t s = 0; s < 3; ++s) {
            QCOMPARE(tallies[s].of(MemoryCategory::Activations, 0), whole[s]);
            QCOMPARE(tallies[s].total, whole[s]);
        }
        rig.inputGrads(0);
        rig.weightGrads(0);
        for (std::size_t s = 0; s < 3; ++s) {
            QCOMPARE(tallies[s].total, Bytes{0});
            rig.allocators[s]->setSink(nullptr);
        }
    }

    void someLayersKeptToTheByte()
    {
        Rig rig(small, 4, 1);
        rig.stages[0]->setRecomputedLayers(1, 2);
        rig.forward(0, 0, &StageModel::forwardForRecompute);
        QCOMPARE(rig.inUse(MemoryCategory::Activations), 4 * (2 * keptByBlock + stream + keptByHead) + rows);
        rig.recompute(0);
        QCOMPARE(rig.inUse(MemoryCategory::Activations), 4 * (4 * keptByBlock + keptByHead) + rows);
        rig.inputGrads(0);
        rig.weightGrads(0);
        QCOMPARE(rig.inUse(MemoryCategory::Activations), Bytes{0});
    }

    // A slice that others follow leaves its keys and values in every dropped layer.
    void slicesKeptToTheByte()
    {
        Rig rig(small, 4, 1);
        rig.setSlices({8, 12});
        const auto how = &StageModel::forwardForRecompute;
        rig.forwardPart(0, {0, 0, 0}, how);
        const Bytes first = 4 * 8 + 4 * (4 * 2 * (4 * 8 * 32)) + 4 * 8; // tokens, keys and values, targets
        QCOMPARE(rig.inUse(MemoryCategory::Activations), first);
        rig.forwardPart(0, {0, 1, 0}, how);
        QCOMPARE(rig.inUse(MemoryCategory::Activations), first + 4 * 12 + 4 * 12);
        rig.stages[0]->dropMicrobatches();
    }

    // The whole is dropped, its halves are recomputed and go back one by one.
    void halves()
    {
        Rig plain(small, 4, 2), rig(small, 4, 2);
        const auto [expected, losses] = trainTwo(plain, false);
        rig.zeroGradients();
        for (const int microbatch : {0, 1}) rig.forward(0, microbatch, &StageModel::forwardForRecompute);
        for (const int microbatch : {0, 1})
            for (const std::uint8_t half : {std::uint8_t{1}, std::uint8_t{2}}) {
                const Part part(microbatch, -1, half);
                rig.recompute(part);
                rig.inputGradPart(part);
                rig.weightGradPart(part);
            }
        const auto [apart, name] = test::farthestGradient(rig, expected);
        QVERIFY2(apart < 1e-5, qPrintable(QString("%1: %2").arg(QString::fromStdString(name)).arg(apart)));
        QCOMPARE(rig.inUse(MemoryCategory::Activations), Bytes{0});
    }

    void misuseIsNamed()
    {
        Rig rig(small, 4, 1);
        QVERIFY_EXCEPTION_THROWN(rig.recompute(0), std::logic_error);
        rig.forward(0, 0);
        QVERIFY_EXCEPTION_THROWN(rig.recompute(0), std::logic_error); // nothing was dropped
        rig.forward(0, 1, &StageModel::forwardForRecompute);
        QVERIFY_EXCEPTION_THROWN(rig.forward(0, 1), std::logic_error);
        try {
            rig.inputGradPart(1);
            QFAIL("an input gradient of dropped layers");
        } catch (const std::logic_error& e) {
            QCOMPARE(e.what(), "stage 0, microbatch 1: input gradient before its recomputation");
        }
        rig.recompute(1);
        QVERIFY_EXCEPTION_THROWN(rig.recompute(1), std::logic_error);
        for (const int microbatch : {0, 1}) { // none of this did harm
            rig.inputGrads(microbatch);
            rig.weightGrads(microbatch);
        }
        Rig plain(small, 4, 1);
        QVERIFY(sameBits(rig.gradients(), trainTwo(plain, false).first));
    }
};

QTEST_APPLESS_MAIN(TestRecompute)
#include "tst_recompute.moc"
