// Gradients by finite differences: every parameter tensor of a small model, the stream between stages, and every layer
// kind alone by way of slices that hold little else.
#include <QtTest>

#include <cmath>

#include "engine_rig.h"
#include "schedules/base/hashing.h"

using namespace stagewright;
using test::Rig;

namespace {

const ModelConfig small{.layers = 2, .hidden = 24, .heads = 3, .sequence = 9, .vocabulary = 31};

// Weights away from their small start, so that every path carries weight; embeddings of about 1.
void spread(Rig& rig)
{
    for (ParameterView& view : rig.parameters()) {
        const float scale = view.name.starts_with("embedding") ? 40.0F : view.name.ends_with("gamma") ? 1.0F : 8.0F;
        for (std::size_t i = 0; i < view.value.size(); ++i)
            view.value[i] = view.value[i] * scale + 1e-4F * (static_cast<float>(mixBits(i) % 1000) - 500.0F);
    }
}

// d loss / d value by central differences in the direction of the gradient itself: one number for a whole tensor, well
// above the noise of fp32. Returns (measured, expected).
std::pair<double, double> alongGradient(Rig& rig, const ParameterView& view)
{
    double square = 0;
    for (const float g : view.gradient) square += static_cast<double>(g) * g;
    const double norm = std::sqrt(square);
    const std::vector<float> start(view.value.begin(), view.value.end());
    const double reach = 2e-2;
    const auto lossAt = [&](double distance) {
        for (std::size_t i = 0; i < start.size(); ++i)
            view.value[i] = static_cast<float>(start[i] + distance * view.gradient[i] / norm);
        const double loss = rig.forward(0, 0);
        for (auto& stage : rig.stages) stage->dropMicrobatches();
        return loss;
    };
    // Fourth-order central difference.
    const double measured =
        (8 * (lossAt(reach / 2) - lossAt(-reach / 2)) - (lossAt(reach) - lossAt(-reach))) / (6 * reach);
    std::ranges::copy(start, view.value.begin());
    return {measured, norm};
}

} // namespace

class TestGradients : public QObject {
    Q_OBJECT
private slots:
    void alongTheGradient_data()
    {
        QTest::addColumn<int>("stages");
        QTest::addColumn<int>("sequence");
        QTest::addColumn<std::vector<int>>("slices");
        QTest::newRow("one stage") << 1 << 9 << std::vector<int>();
        QTest::newRow("two stages") << 2 << 9 << std::vector<int>();
        QTest::newRow("several blocks of queries") << 1 << 150 << std::vector<int>(); // more rows than one block
        QTest::newRow("slices") << 2 << 9 << std::vector<int>{4, 1, 3, 1};
        QTest::newRow("slices of several blocks") << 1 << 150 << std::vector<int>{70, 80};
    }
    void alongTheGradient()
    {
        QFETCH(int, stages);
        QFETCH(int, sequence);
        ModelConfig model = small;
        model.sequence = sequence;
        Rig rig(model, 2, stages);
        QFETCH(std::vector<int>, slices);
        rig.setSlices(slices);
        spread(rig);
        rig.forward(0, 0);
        rig.inputGrads(0);
        rig.weightGrads(0);
        for (const ParameterView& view : rig.parameters()) {
            const auto [measured, expected] = alongGradient(rig, view);
            QVERIFY2(expected > 1e-6, (view.name + " has no gradient").c_str());
            const double error = std::abs(measured - expected) / expected;
            QVERIFY2(error < 5e-3, qPrintable(QString("%1: %2 measured, %3 computed")
                                                  .arg(QString::fromStdString(view.name))
                                                  .arg(measured)
                                                  .arg(expected)));
        }
    }

    // Single elements, which a wrong direction of the right length would not survive.
    void singleElements()
    {
        Rig rig(small, 2, 1);
        spread(rig);
        rig.forward(0, 0);
        rig.inputGrads(0);
        rig.weightGrads(0);
        for (const ParameterView& view : rig.parameters()) {
            float largest = 0;
            for (const float g : view.gradient) largest = std::max(largest, std::abs(g));
            for (std::size_t pick = 0; pick < 3; ++pick) {
                const std::size_t i = (pick * 7919 + 3) % view.value.size();
                const float start = view.value[i];
                const auto lossAt = [&](float value) {
                    view.value[i] = value;
                    const double loss = rig.forward(0, 0);
                    rig.stages[0]->dropMicrobatches();
                    return loss;
                };
                const float reach = 3e-2F;
                const double measured = (lossAt(start + reach) - lossAt(start - reach)) / (2.0 * reach);
                view.value[i] = start;
                QVERIFY2(std::abs(measured - view.gradient[i]) < 2e-2 * largest + 2e-4,
                         qPrintable(QString("%1[%2]: %3 measured, %4 computed")
                                        .arg(QString::fromStdString(view.name))
                                        .arg(i)
                                        .arg(measured)
                                        .arg(view.gradient[i])));
            }
        }
    }

    // The gradient of the stream that a stage hands back, against the loss that the later stages give.
    void inputGradient()
    {
        Rig rig(small, 2, 2);
        spread(rig);
        rig.draw(0, 0);
        const Buffer stream = rig.stages[0]->forward(0, {}, rig.tokens, rig.targets);
        rig.stages[1]->forward(0, rig.copyTo(1, stream, 0), rig.tokens, rig.targets);
        const Buffer grad = rig.stages[1]->inputGrad(0, {});
        rig.stages[1]->dropMicrobatches();
        QCOMPARE(grad.size(), stream.size());
        double norm = 0;
        for (const float g : grad.span()) norm += static_cast<double>(g) * g;
        norm = std::sqrt(norm);
        QVERIFY(norm > 1e-6);
        const auto lossAt = [&](double distance) {
            Buffer moved = rig.copyTo(1, stream, 0);
            for (std::size_t i = 0; i < moved.size(); ++i)
                moved.data()[i] += static_cast<float>(distance * grad.data()[i] / norm);
            rig.stages[1]->forward(0, std::move(moved), rig.tokens, rig.targets);
            rig.stages[1]->dropMicrobatches();
            return rig.stages[1]->loss(0);
        };
        const double reach = 5e-2;
        const double measured = (lossAt(reach) - lossAt(-reach)) / (2 * reach);
        QVERIFY2(std::abs(measured - norm) < 5e-3 * norm, qPrintable(QString("%1, %2").arg(measured).arg(norm)));
    }

    // A position's loss depends on no later token.
    void causality()
    {
        ModelConfig model = small;
        model.sequence = 100;
        Rig rig(model, 1, 2);
        rig.draw(0, 0);
        const Buffer before = rig.stages[0]->forward(0, {}, rig.tokens, rig.targets);
        const std::size_t changed = 70;
        rig.tokens[changed] = static_cast<std::uint8_t>((rig.tokens[changed] + 1) % model.vocabulary);
        const Buffer after = rig.stages[0]->forward(1, {}, rig.tokens, rig.targets);
        const auto hidden = static_cast<std::size_t>(model.hidden);
        for (std::size_t row = 0; row < 100; ++row) {
            const bool equal = std::equal(before.data() + row * hidden, before.data() + (row + 1) * hidden,
                                          after.data() + row * hidden);
            QCOMPARE(equal, row < changed);
        }
        rig.stages[0]->dropMicrobatches();
    }

    void lossScale()
    {
        Rig rig(small, 2, 1);
        rig.forward(0, 0);
        rig.inputGrads(0);
        rig.weightGrads(0);
        const std::vector<float> whole = rig.gradients();
        rig.stages[0]->zeroGradients();
        rig.stages[0]->setLossScale(0.25F);
        rig.forward(0, 0);
        rig.inputGrads(0);
        rig.weightGrads(0);
        const std::vector<float> quarter = rig.gradients();
        for (std::size_t i = 0; i < whole.size(); ++i) QCOMPARE(quarter[i], whole[i] * 0.25F); // a power of two: exact
    }

    void lossOfUniformGuess()
    {
        Rig rig(small, 4, 1);
        for (ParameterView& view : rig.parameters())
            if (view.name == "head.weight") std::ranges::fill(view.value, 0.0F);
        QVERIFY(std::abs(rig.forward(0, 0) - std::log(31.0)) < 1e-6);
        rig.stages[0]->dropMicrobatches();
    }

    void nanIsSeen_data()
    {
        QTest::addColumn<int>("parameter");
        Rig rig(small, 2, 1);
        const auto parameters = rig.parameters();
        for (std::size_t i = 0; i < parameters.size(); ++i)
            QTest::newRow(parameters[i].name.c_str()) << static_cast<int>(i);
    }
    void nanIsSeen()
    {
        QFETCH(int, parameter);
        Rig rig(small, 2, 1);
        const auto parameters = rig.parameters();
        const ParameterView& view = parameters[static_cast<std::size_t>(parameter)];
        rig.draw(0, 0);
        // An entry that is used: row 0 of the token table may not be.
        const std::size_t entry =
            view.name == "embedding.token" ? rig.tokens[0] * static_cast<std::size_t>(small.hidden) : 0;
        view.value[entry] = std::numeric_limits<float>::quiet_NaN();
        QVERIFY(std::isnan(rig.forward(0, 0)));
        rig.inputGrads(0);
        rig.weightGrads(0);
        QVERIFY(std::isnan(rig.stages[0]->gradientSquareSum()));
    }
};

QTEST_APPLESS_MAIN(TestGradients)
#include "tst_gradients.moc"
